//! What the agents do, while they do it: bars at a terminal, lines elsewhere. It is all read from the log.

use std::collections::{BTreeMap, HashMap};
use std::io::IsTerminal as _;
use std::time::Duration;

use indicatif::{HumanCount, MultiProgress, ProgressBar, ProgressStyle};
use neuron::ledger::{From, Subscription};
use neuron::plan::Outline;
use neuron::store::Select;
use neuron::topic::catalog;
use neuron::vocabulary::Message as _;
use neuron::vocabulary::clearance::PlanDeclared;
use neuron::vocabulary::orchestration::PackageAssigned;
use neuron::vocabulary::step::{StepCompleted, StepDoubted, StepFailed, StepProgressed, StepStarted};
use neuron::{Envelope, Error, Ledger, Listener, Pattern, Result, RunId, TokenId, Topic};

/// Follows one run.
pub(crate) struct Watch {
    log: Subscription,
    gauges: Listener,
    packages: Topic,
    /// Whether what is read was written before this process.
    is_past: bool,
    agents: HashMap<Topic, Agent>,
    bars: Option<MultiProgress>,
    /// How the command line is asked about the store.
    neuron: String,
}

/// One agent as far as it is known.
struct Agent {
    name: String,
    steps: usize,
    ended: usize,
    /// The running steps by key.
    running: BTreeMap<String, Running>,
    /// Commands that settle the steps in doubt, by key, each with what it is about.
    doubts: BTreeMap<String, String>,
    bar: Option<ProgressBar>,
}

struct Running {
    name: String,
    /// How far it is, in its own words.
    told: String,
}

impl Watch {
    /// Follows a run, from its beginning if it has begun.
    pub(crate) fn new(ledger: &Ledger, run: &RunId, neuron: String) -> Result<Self, Error> {
        let first = ledger
            .read(Select::Topic(catalog::lifecycle(run)))
            .limit(1)
            .envelopes()
            .next();
        let from = first.transpose()?.map_or(From::Now, |created| From::After(created.pos));
        let mut watch = Self {
            log: ledger.subscribe(Pattern::new("**")?, from)?,
            gauges: ledger.bus().listen(Pattern::exactly(&catalog::progress(run))),
            packages: catalog::packages(run),
            is_past: true,
            agents: HashMap::new(),
            bars: std::io::stderr().is_terminal().then(MultiProgress::new),
            neuron,
        };
        watch.catch_up()?;
        Ok(watch)
    }

    /// Takes in what an earlier process wrote. What it had begun runs no more; what is in doubt still is.
    fn catch_up(&mut self) -> Result<(), Error> {
        while let Some(envelope) = self.log.try_next()? {
            self.show(&envelope);
        }
        self.is_past = false;
        for agent in self.agents.values_mut() {
            agent.running.clear();
            agent.draw();
            agent.doubts.values().for_each(|doubt| agent.say(doubt));
        }
        Ok(())
    }

    /// Shows what comes, until it is dropped or the log cannot be read.
    pub(crate) async fn follow(&mut self) -> Error {
        loop {
            tokio::select! {
                committed = self.log.next() => match committed {
                    Ok(envelope) => self.show(&envelope),
                    Err(error) => return error,
                },
                // A gauge that was missed is followed by another.
                gauge = self.gauges.next() => if let Ok(gauge) = gauge {
                    self.gauge(&gauge);
                },
            }
        }
    }

    /// Shows what stands already, and nothing more.
    pub(crate) fn finish(mut self) {
        while let Ok(Some(envelope)) = self.log.try_next() {
            self.show(&envelope);
        }
        let bars = self.agents.values().filter_map(|agent| agent.bar.as_ref());
        bars.filter(|bar| !bar.is_finished()).for_each(ProgressBar::abandon);
    }

    /// Only shows: an envelope that does not decode is for others to report.
    fn show(&mut self, envelope: &Envelope) {
        if envelope.topic == self.packages {
            if let Ok(Some(assigned)) = PackageAssigned::read(envelope) {
                self.assigned(assigned);
            }
            return;
        }
        if let Ok(Some(plan)) = PlanDeclared::read(envelope) {
            if let (Some(agent), Ok(outline)) = (self.agent(&plan.token), plan.outline.decode::<Outline>()) {
                agent.steps = outline.rows.len();
                agent.draw();
            }
            return;
        }
        let is_past = self.is_past;
        let Some(agent) = self.agents.get_mut(&envelope.topic) else {
            return;
        };
        if let Ok(Some(started)) = StepStarted::read(envelope) {
            let (name, told) = (started.name, String::new());
            agent.doubts.remove(&started.key);
            agent.running.insert(started.key, Running { name, told });
        } else if let Ok(Some(completed)) = StepCompleted::read(envelope) {
            agent.ended(envelope, &completed.key, &completed.name, "done", is_past);
        } else if let Ok(Some(failed)) = StepFailed::read(envelope) {
            agent.ended(envelope, &failed.key, &failed.name, "failed", is_past);
        } else if let Ok(Some(doubted)) = StepDoubted::read(envelope) {
            let (name, reason, key) = (doubted.name, doubted.reason, doubted.key);
            let resolve = format!("{} resolve {key} redo", self.neuron);
            let doubt = format!("{name} is in doubt: {reason}. To have it run again:\n  {resolve}");
            if !is_past {
                agent.say(&doubt);
            }
            agent.doubts.insert(key, doubt);
        }
        agent.draw();
    }

    fn gauge(&mut self, gauge: &Envelope) {
        let Ok(Some(progressed)) = StepProgressed::read(gauge) else {
            return;
        };
        for agent in self.agents.values_mut() {
            if let Some(step) = agent.running.get_mut(&progressed.scope) {
                step.told = format!(" {} {}", HumanCount(progressed.done), progressed.text);
                agent.draw();
            }
        }
    }

    fn assigned(&mut self, assigned: PackageAssigned) {
        let bar = self.bars.as_ref().map(|bars| {
            let bar = bars.add(
                ProgressBar::new(0)
                    .with_style(style())
                    .with_prefix(assigned.name.clone()),
            );
            bar.enable_steady_tick(Duration::from_millis(100));
            bar
        });
        let agent = Agent {
            name: assigned.name,
            steps: 0,
            ended: 0,
            running: BTreeMap::new(),
            doubts: BTreeMap::new(),
            bar,
        };
        self.agents.entry(catalog::steps(&assigned.token)).or_insert(agent);
    }

    fn agent(&mut self, token: &TokenId) -> Option<&mut Agent> {
        self.agents.get_mut(&catalog::steps(token))
    }
}

impl Agent {
    fn ended(&mut self, envelope: &Envelope, key: &str, name: &str, how: &str, is_past: bool) {
        self.running.remove(key);
        self.doubts.remove(key);
        self.ended += 1;
        if self.bar.is_none() && !is_past {
            let took = envelope.headers.decode::<u64>("duration-ms").unwrap_or(0);
            self.say(&format!("{name} {how} ({} of {}, {took} ms)", self.ended, self.steps));
        }
    }

    fn say(&self, what: &str) {
        let line = format!("{:>12}  {what}", self.name);
        match &self.bar {
            Some(bar) => bar.println(line),
            None => crate::tell(&line),
        }
    }

    fn draw(&self) {
        let Some(bar) = &self.bar else { return };
        let running = self.running.values().map(|step| format!("{}{}", step.name, step.told));
        let running: Vec<_> = running.collect();
        bar.set_length(self.steps as u64);
        bar.set_position(self.ended as u64);
        bar.set_message(running.join(", "));
        if self.steps > 0 && self.ended >= self.steps {
            bar.finish();
        }
    }
}

#[allow(clippy::expect_used, reason = "the template is a constant")]
fn style() -> ProgressStyle {
    ProgressStyle::with_template("{prefix:>12} {bar:24} {pos:>2}/{len} {elapsed:>4} {wide_msg}")
        .expect("a template that parses")
        .progress_chars("━╸─")
}
