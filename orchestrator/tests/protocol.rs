//! The protocol as laws: random runs, cut anywhere, driven by a simulated shell that checks every command.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that fails is meant to panic"
)]

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use neuron::{
    Error, ErrorKind, Json, TokenId,
    vocabulary::{
        clearance::PlanDeclared,
        orchestration::{Claims, EdgeDeclared, EdgeReason, PackageAssigned, PackageKind},
    },
};
use orchestrator::{
    board::BoardView,
    fact::{Conclusion, Fact},
    package::{Key, Phase},
    protocol::{Assignment, Command, Event, Order, Planned, State, advance},
    ruling::Verdict,
};
use proptest::prelude::*;

/// A package of a simulated program.
#[derive(Clone, Debug)]
struct Work {
    /// Earlier packages of the same body, by place, and how they are waited for.
    needs: Vec<(usize, EdgeReason)>,
    claims: Claims,
    /// Its plan reads its values.
    late: bool,
    fails: bool,
    /// What it assigns itself.
    inner: Vec<Work>,
    /// While it runs it wants a step that owns this.
    amends: Option<u8>,
}

/// A body: rounds of packages; it awaits every package of the rounds before it.
#[derive(Clone, Debug)]
struct Program {
    work: Vec<Work>,
    /// Where a new round begins.
    breaks: BTreeSet<usize>,
}

fn claims(owns: &BTreeSet<u8>, uses: &BTreeSet<u8>) -> Claims {
    Claims {
        uses: uses.iter().map(|name| (format!("r{name}"), 1)).collect(),
        owns: owns.iter().map(|name| format!("r{name}")).collect(),
        once: BTreeSet::new(),
    }
}

fn leaf() -> impl Strategy<Value = Work> {
    let resources = || prop::collection::btree_set(0..4_u8, 0..2);
    let why = prop_oneof![Just(EdgeReason::Value), Just(EdgeReason::After)];
    let needs = prop::collection::vec((any::<prop::sample::Index>(), why), 0..3);
    let amends = prop::option::weighted(0.15, 0..4_u8);
    (
        needs,
        resources(),
        resources(),
        any::<bool>(),
        prop::bool::weighted(0.12),
        amends,
    )
        .prop_map(|(needs, owns, uses, late, fails, amends)| Work {
            // Places are made legal when the body is put together.
            needs: needs.into_iter().map(|(at, why)| (at.index(1 << 16), why)).collect(),
            claims: claims(&owns, &uses),
            late,
            fails,
            inner: vec![],
            amends,
        })
}

fn legal(mut work: Vec<Work>) -> Vec<Work> {
    for (at, one) in work.iter_mut().enumerate() {
        for (place, _) in &mut one.needs {
            *place %= at.max(1);
        }
        if at == 0 {
            one.needs.clear();
        }
        if !one.inner.is_empty() {
            one.claims = Claims::default();
            one.amends = None;
        }
    }
    work
}

fn program() -> impl Strategy<Value = Program> {
    let inner = prop_oneof![4 => Just(vec![]), 1 => prop::collection::vec(leaf(), 1..4)];
    let one = (leaf(), inner).prop_map(|(work, inner)| Work {
        inner: legal(inner),
        ..work
    });
    let breaks = prop::collection::btree_set(1..14_usize, 0..4);
    (prop::collection::vec(one, 1..14), breaks).prop_map(|(work, breaks)| Program {
        work: legal(work),
        breaks,
    })
}

/// What a package must end as, whatever the order and however often the process dies.
fn expected(work: &[Work]) -> Vec<Phase> {
    let mut ends = Vec::<Phase>::new();
    for one in work {
        let upstream = one.needs.iter().any(|(first, _)| ends[*first] != Phase::Done);
        ends.push(if upstream || one.fails {
            Phase::Failed
        } else {
            Phase::Done
        });
    }
    ends
}

fn key(path: &[usize]) -> String {
    let path: Vec<String> = path.iter().map(ToString::to_string).collect();
    format!("{}#1", path.join("-"))
}

fn assignment(path: &[usize], body: &[usize], work: &Work) -> Assignment {
    let own = key(path);
    let edges = work.needs.iter().enumerate().map(|(at, (first, why))| EdgeDeclared {
        from: key(&[body, &[*first]].concat()),
        to: own.clone(),
        why: *why,
        parameter: (*why == EdgeReason::Value).then(|| format!("p{at}")),
        index: None,
        resource: None,
        because: None,
    });
    Assignment {
        assigned: PackageAssigned {
            scope: "run".into(),
            key: own.clone(),
            name: "worker".into(),
            kind: if work.inner.is_empty() {
                PackageKind::Agent
            } else {
                PackageKind::Orchestrator
            },
            occurrence: 1,
            token: TokenId::new(format!("t-{}", own.trim_end_matches("#1"))).unwrap(),
            attempt: 1,
            args: None,
            claims: Claims::default(),
            estimate: None,
            priority: 0,
        },
        edges: edges.collect(),
        known: true,
    }
}

/// The shell of a simulated process. Everything but the log is lost when it dies.
struct Process<'a> {
    program: &'a Program,
    log: &'a mut Vec<Fact>,
    state: State,
    running: BTreeMap<Key, Vec<usize>>,
    held: BTreeSet<Key>,
    /// Steps that wait for a ruling.
    asking: BTreeSet<Key>,
    amended: BTreeMap<Key, Claims>,
    tried: BTreeSet<Key>,
    given: usize,
    body_ended: bool,
    concluded: Option<Conclusion>,
    /// Commands until the process dies.
    life: usize,
}

struct Died;

impl<'a> Process<'a> {
    fn start(program: &'a Program, log: &'a mut Vec<Fact>, life: usize) -> Self {
        let board = fold(log);
        Self {
            program,
            log,
            state: State::resume(board),
            running: BTreeMap::new(),
            held: BTreeSet::new(),
            asking: BTreeSet::new(),
            amended: BTreeMap::new(),
            tried: BTreeSet::new(),
            given: 0,
            body_ended: false,
            concluded: None,
            life,
        }
    }

    fn work(&self, path: &[usize]) -> &Work {
        let outer = &self.program.work[path[0]];
        path.get(1).map_or(outer, |at| &outer.inner[*at])
    }

    fn path(key: &str) -> Vec<usize> {
        key.trim_end_matches("#1")
            .split('-')
            .map(|part| part.parse().unwrap())
            .collect()
    }

    fn outcome(&self, key: &str) -> Option<bool> {
        self.log.iter().find_map(|fact| match fact {
            Fact::Ended { package, outcome } if package == key => Some(outcome.is_ok()),
            _ => None,
        })
    }

    fn event(&mut self, event: Event) -> Result<(), Died> {
        let mut events = VecDeque::from([event]);
        while let Some(event) = events.pop_front() {
            let commands = advance(&mut self.state, event).expect("a legal event");
            let appends = |command: &Command| {
                matches!(
                    command,
                    Command::Record(_) | Command::Answer { .. } | Command::Conclude(_)
                )
            };
            // Appends that follow each other are one batch: a process dies before or after it, not within.
            for batch in commands.chunk_by(|one, two| appends(one) && appends(two)) {
                if self.life == 0 {
                    return Err(Died);
                }
                self.life -= 1;
                for command in batch {
                    self.carry_out(command.clone(), &mut events);
                }
            }
        }
        Ok(())
    }

    fn carry_out(&mut self, command: Command, events: &mut VecDeque<Event>) {
        match command {
            Command::Record(fact) => self.append(fact),
            Command::Answer { package, outcome } => self.append(Fact::Ended {
                package: package.to_string(),
                outcome,
            }),
            Command::Plan { package } => events.push_back(self.plan(package)),
            Command::Start { package } => {
                self.check_start(&package);
                let path = Self::path(&package);
                let inner: Vec<_> = self.work(&path).inner.clone();
                self.running.insert(package.clone(), path.clone());
                if !inner.is_empty() {
                    let laid = inner.iter().enumerate();
                    let packages = laid
                        .map(|(at, work)| assignment(&[&path[..], &[at]].concat(), &path, work))
                        .collect();
                    events.push_back(Event::Assigned {
                        within: Some(package),
                        packages,
                    });
                }
            }
            Command::Rule { package, verdict, .. } => {
                assert!(self.asking.remove(&package), "a ruling that nobody waits for");
                if let Verdict::Go { .. } = verdict {
                    let wanted = self.wanted(&package);
                    let clash = self.running.keys().filter(|other| **other != package);
                    assert!(
                        clash
                            .into_iter()
                            .all(|other| self.holds(other).conflict(&wanted).is_none())
                    );
                    self.amended.insert(package, wanted);
                }
            }
            Command::Hold { package } => assert!(self.running.contains_key(&package) && self.held.insert(package)),
            Command::Release { package } => assert!(self.held.remove(&package)),
            Command::Stop { package } => {
                let outcome = Err(Error::new(ErrorKind::Cancelled, "stopped"));
                self.running.remove(&package).expect("only what runs is stopped");
                events.push_back(Event::Ended { package, outcome });
            }
            Command::Abandon => self.body_ended = true,
            Command::Conclude(conclusion) => {
                assert!(self.running.is_empty(), "a run ends after its packages");
                self.append(Fact::Concluded(conclusion.clone()));
                assert_eq!(self.concluded.replace(conclusion), None);
            }
        }
    }

    fn append(&mut self, fact: Fact) {
        match &fact {
            Fact::Assigned(one) => assert!(
                !self
                    .log
                    .iter()
                    .any(|f| matches!(f, Fact::Assigned(two) if two.key == one.key))
            ),
            Fact::Declared(plan) => {
                assert!(
                    !self
                        .log
                        .iter()
                        .any(|f| matches!(f, Fact::Declared(two) if two.package == plan.package))
                );
            }
            Fact::Redeclared(_) => panic!("every plan is declared the same"),
            Fact::Go(go) => {
                let same = |f: &Fact| matches!(f, Fact::Go(two) if (&two.package, &two.amendment) == (&go.package, &go.amendment));
                assert!(!self.log.iter().any(same), "cleared twice");
            }
            Fact::Edge(edge) => assert!(!self.log.contains(&Fact::Edge(edge.clone())), "an edge declared twice"),
            Fact::Ended { package, .. } => assert_eq!(self.outcome(package), None, "answered twice"),
            _ => {}
        }
        self.log.push(fact);
    }

    fn plan(&self, package: Key) -> Event {
        let work = self.work(&Self::path(&package));
        let values = work.needs.iter().filter(|(_, why)| *why == EdgeReason::Value);
        let path = Self::path(&package);
        let there = |first: usize| self.outcome(&key(&[&path[..path.len() - 1], &[first]].concat())) == Some(true);
        let missing = values.map(|(first, _)| *first).any(|first| !there(first));
        let plan = if work.late && missing {
            Planned::Waiting
        } else {
            Planned::Written(PlanDeclared {
                package: package.to_string(),
                token: assignment(&path, &path[..path.len() - 1], work).assigned.token,
                outline: Json::null(),
                opaque: true,
                claims: work.claims.clone(),
                estimate: None,
            })
        };
        Event::Planned { package, plan }
    }

    fn wanted(&self, package: &str) -> Claims {
        let amends = self.work(&Self::path(package)).amends;
        claims(&amends.into_iter().collect(), &BTreeSet::new())
    }

    fn holds(&self, package: &Key) -> Claims {
        let mut held = self.work(&Self::path(package)).claims.clone();
        if let Some(more) = self.amended.get(package) {
            held.extend(more);
        }
        held
    }

    fn check_start(&self, package: &Key) {
        let path = Self::path(package);
        assert!(
            self.log
                .iter()
                .any(|fact| matches!(fact, Fact::Go(go) if *go.package == **package)),
            "cleared first"
        );
        for (first, _) in &self.work(&path).needs {
            let first = key(&[&path[..path.len() - 1], &[*first]].concat());
            assert_eq!(self.outcome(&first), Some(true), "{package} waits for {first}");
        }
        for other in self.running.keys() {
            assert_eq!(
                self.holds(other).conflict(&self.holds(package)),
                None,
                "{package} beside {other}"
            );
        }
        assert_eq!(self.outcome(package), None, "{package} has its answer");
    }

    /// The next round of the body, once it has the answers that it awaits.
    fn body(&mut self) -> Option<Event> {
        if self.body_ended {
            return None;
        }
        if (0..self.given).any(|at| self.outcome(&key(&[at])).is_none()) {
            return None;
        }
        if self.given == self.program.work.len() {
            self.body_ended = true;
            return Some(Event::BodyEnded { outcome: Ok(()) });
        }
        let next = self.program.breaks.range(self.given + 1..).next();
        let upto = next.copied().unwrap_or(usize::MAX).min(self.program.work.len());
        let round = self.given..upto;
        let packages = round.map(|at| assignment(&[at], &[], &self.program.work[at])).collect();
        self.given = upto;
        // The last round is not awaited: its packages run all the same.
        Some(Event::Assigned { within: None, packages })
    }

    /// What happens next, by chance.
    fn next(&mut self, chance: usize) -> Option<Event> {
        if chance.is_multiple_of(3)
            && let Some(event) = self.body()
        {
            return Some(event);
        }
        let free: Vec<Key> = self
            .running
            .keys()
            .filter(|key| !self.held.contains(*key))
            .cloned()
            .collect();
        if free.is_empty() {
            return self.body();
        }
        let package = free[chance / 3 % free.len()].clone();
        let work = self.work(&Self::path(&package)).clone();
        if work.amends.is_some() && chance.is_multiple_of(2) && self.tried.insert(package.clone()) {
            self.asking.insert(package.clone());
            let (step, name, claims) = (format!("{package}/step"), "extra".into(), self.wanted(&package));
            return Some(Event::Amended {
                package,
                step,
                name,
                claims,
            });
        }
        self.running.remove(&package);
        self.amended.remove(&package);
        let outcome = if work.fails {
            Err(Error::terminal("it breaks"))
        } else {
            Ok(())
        };
        Some(Event::Ended { package, outcome })
    }

    fn run(&mut self, chances: &mut impl Iterator<Item = usize>) -> Result<(), Died> {
        while self.concluded.is_none() {
            let chance = chances.next().unwrap_or_default();
            let event = self.next(chance).expect("a run never stands still");
            self.event(event)?;
        }
        Ok(())
    }
}

fn fold(log: &[Fact]) -> BoardView {
    let mut board = BoardView::default();
    for fact in log {
        board.record(fact).unwrap();
    }
    board
}

fn ends(board: &BoardView, program: &Program) -> Result<(), TestCaseError> {
    let expect = |path: &[usize], want: Phase| {
        let package = board.package(&key(path)).expect("assigned");
        prop_assert_eq!(board.phase(package), want, "{}", key(path));
        Ok(())
    };
    let outer = expected(&program.work);
    for (at, work) in program.work.iter().enumerate() {
        expect(&[at], outer[at])?;
        let began = board.package(&key(&[at, 0])).is_some();
        if began {
            let inner = expected(&work.inner);
            (0..work.inner.len()).try_for_each(|one| expect(&[at, one], inner[one]))?;
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn a_run_cut_anywhere_ends_as_if_it_had_not_been(
        program in program(),
        lives in prop::collection::vec(0..60_usize, 0..6),
        chances in prop::collection::vec(0..10_000_usize, 0..200),
    ) {
        let mut log = Vec::new();
        let mut chances = chances.into_iter();
        for life in lives.into_iter().chain([usize::MAX]) {
            // A run whose end stands on the log is not driven again.
            if fold(&log).conclusion().is_some() {
                break;
            }
            if Process::start(&program, &mut log, life).run(&mut chances).is_ok() {
                break;
            }
        }
        let board = fold(&log);
        prop_assert_eq!(board.conclusion(), Some(&Conclusion::Completed));
        ends(&board, &program)?;
    }

    #[test]
    fn a_cancelled_run_starts_nothing_more_and_every_package_has_an_answer(
        program in program(),
        before in 0..20_usize,
        chances in prop::collection::vec(0..10_000_usize, 20),
    ) {
        let mut log = Vec::new();
        let mut process = Process::start(&program, &mut log, usize::MAX);
        for chance in chances.into_iter().take(before) {
            if process.concluded.is_none() {
                let event = process.next(chance).expect("a run never stands still");
                let _ = process.event(event);
            }
        }
        let over = process.concluded.is_some();
        let because = Some("enough".to_string());
        let _ = process.event(Event::Ordered { token: None, order: Order::Cancel { because: because.clone() } });
        prop_assert!(process.running.is_empty());
        let board = fold(&log);
        if !over {
            prop_assert_eq!(board.conclusion(), Some(&Conclusion::Cancelled { because }));
        }
        prop_assert!(board.packages().iter().all(|package| package.outcome.is_some()));
    }

    #[test]
    fn a_paused_run_starts_nothing_and_goes_on_where_it_stood(
        program in program(),
        pauses in prop::collection::vec(any::<bool>(), 40),
        chances in prop::collection::vec(0..10_000_usize, 40),
    ) {
        let mut log = Vec::new();
        let mut process = Process::start(&program, &mut log, usize::MAX);
        for (pause, chance) in pauses.into_iter().zip(chances) {
            let order = if pause { Order::Pause } else { Order::Resume };
            let _ = process.event(Event::Ordered { token: None, order });
            let running: Vec<Key> = process.running.keys().cloned().collect();
            prop_assert!(!pause || running.iter().all(|key| process.held.contains(key)));
            if process.concluded.is_none() && let Some(event) = process.next(chance) {
                let _ = process.event(event);
            }
            prop_assert!(!pause || process.running.keys().all(|key| running.contains(key)));
        }
        let _ = process.event(Event::Ordered { token: None, order: Order::Resume });
        let _ = process.run(&mut std::iter::repeat(0));
        ends(&fold(&log), &program)?;
    }
}

fn one(needs: &[(usize, EdgeReason)], owns: &[u8]) -> Work {
    Work {
        needs: needs.to_vec(),
        claims: claims(&owns.iter().copied().collect(), &BTreeSet::new()),
        late: false,
        fails: false,
        inner: vec![],
        amends: None,
    }
}

#[test]
fn packages_that_wait_for_each_other_are_denied_and_the_cycle_is_named() {
    let program = Program {
        work: vec![
            one(&[(1, EdgeReason::After)], &[]),
            one(&[(0, EdgeReason::Value)], &[]),
            one(&[], &[]),
        ],
        breaks: BTreeSet::new(),
    };
    let mut log = Vec::new();
    assert!(
        Process::start(&program, &mut log, usize::MAX)
            .run(&mut std::iter::repeat(0))
            .is_ok()
    );
    let board = fold(&log);
    let phases: Vec<Phase> = board.packages().iter().map(|package| board.phase(package)).collect();
    assert_eq!(phases, [Phase::Denied, Phase::Denied, Phase::Done]);
    let Some(Err(error)) = &board.packages()[0].outcome else {
        panic!("denied")
    };
    assert!(
        error.message().contains("wait for each other: worker") && error.message().contains("→"),
        "{error}"
    );
}

#[test]
fn a_denial_that_stands_on_the_log_is_not_given_twice() {
    let program = Program {
        work: vec![one(&[(1, EdgeReason::After)], &[]), one(&[(0, EdgeReason::After)], &[])],
        breaks: BTreeSet::new(),
    };
    for life in 0..8 {
        let mut log = Vec::new();
        let _ = Process::start(&program, &mut log, life).run(&mut std::iter::repeat(0));
        if fold(&log).conclusion().is_none() {
            let mut next = Process::start(&program, &mut log, usize::MAX);
            assert!(next.run(&mut std::iter::repeat(0)).is_ok());
        }
        let denials = log.iter().filter(|fact| matches!(fact, Fact::Denied(_))).count();
        assert_eq!(denials, 2, "cut after {life} commands");
    }
}

#[test]
fn a_resource_conflict_becomes_an_edge_with_its_reason() {
    let program = Program {
        work: vec![one(&[], &[1]), one(&[], &[1])],
        breaks: BTreeSet::new(),
    };
    let mut log = Vec::new();
    assert!(
        Process::start(&program, &mut log, usize::MAX)
            .run(&mut std::iter::repeat(0))
            .is_ok()
    );
    let board = fold(&log);
    let [edge] = board.edges() else {
        panic!("one edge: {:?}", board.edges())
    };
    assert_eq!(
        (&*edge.from, &*edge.to, edge.resource.as_deref()),
        ("0#1", "1#1", Some("r1"))
    );
    assert_eq!(edge.why, EdgeReason::Clearance);
}

#[test]
fn what_cannot_happen_is_an_error_and_no_panic() {
    let mut state = State::default();
    let error = advance(
        &mut state,
        Event::Ended {
            package: "nobody#1".into(),
            outcome: Ok(()),
        },
    )
    .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Misuse);
    let twice = vec![assignment(&[0], &[], &one(&[], &[])); 2];
    let error = advance(
        &mut State::default(),
        Event::Assigned {
            within: None,
            packages: twice,
        },
    )
    .unwrap_err();
    assert!(error.message().contains("assigned twice"), "{error}");
}

#[test]
fn a_plan_that_changed_is_declared_and_cleared_anew() {
    let work = one(&[], &[1]);
    let laid = || Event::Assigned {
        within: None,
        packages: vec![assignment(&[0], &[], &work)],
    };
    let plan = |outline: &str| Event::Planned {
        package: "0#1".into(),
        plan: Planned::Written(PlanDeclared {
            package: "0#1".into(),
            token: TokenId::new("t-0").unwrap(),
            outline: Json::of(outline).unwrap(),
            opaque: false,
            claims: work.claims.clone(),
            estimate: None,
        }),
    };
    let mut first = State::default();
    advance(&mut first, laid()).unwrap();
    assert!(
        advance(&mut first, plan("old"))
            .unwrap()
            .contains(&Command::Start { package: "0#1".into() })
    );

    let mut same = State::resume(first.board().clone());
    assert_eq!(
        advance(&mut same, laid()).unwrap(),
        [Command::Plan { package: "0#1".into() }]
    );
    assert_eq!(
        advance(&mut same, plan("old")).unwrap(),
        [Command::Start { package: "0#1".into() }]
    );

    let mut other = State::resume(first.board().clone());
    advance(&mut other, laid()).unwrap();
    let commands = advance(&mut other, plan("new")).unwrap();
    assert!(matches!(
        &commands[..],
        [
            Command::Record(Fact::Redeclared(_)),
            Command::Record(Fact::Go(_)),
            Command::Start { .. }
        ]
    ));
}
