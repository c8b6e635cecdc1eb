use std::collections::{BTreeMap, BTreeSet};

use neuron::{
    Error, ErrorKind, Result, TokenId,
    vocabulary::orchestration::{EdgeReason, PackageKind},
};

use crate::{
    board::{BoardView, Package},
    fact::Conclusion,
    package::{Claims, Key, Outcome},
};

/// What the protocol knows of a run: the board, which is folded from the log, and what has happened in this process.
#[derive(Clone, Debug, Default)]
pub struct State {
    pub(super) board: BoardView,
    /// The packages that the bodies have asked for in this process, by their place on the board.
    pub(super) live: BTreeMap<usize, Live>,
    /// Those of them that have not ended.
    pub(super) open: BTreeSet<usize>,
    /// Those that have been asked for their plan and not said it yet.
    pub(super) asked: BTreeSet<usize>,
    /// Those that wait for a ruling on their plan.
    pub(super) declared: BTreeSet<usize>,
    /// Who holds what: the packages that run, by resource.
    pub(super) held: BTreeMap<String, BTreeSet<usize>>,
    /// Ended packages whose dependants were not looked at yet, and orchestrators whose packages have ended.
    pub(super) touched: BTreeSet<usize>,
    /// Packages that may be able to go on, since something about them has changed.
    pub(super) woken: BTreeSet<usize>,
    /// Who goes before whom by rulings made before a restart.
    pub(super) orders: Vec<(usize, usize)>,
    /// Packages that were told to stop.
    pub(super) stopped: BTreeSet<usize>,
    pub(super) paused: bool,
    pub(super) paused_tokens: BTreeSet<TokenId>,
    pub(super) cancelled_tokens: BTreeMap<TokenId, Cancellation>,
    /// The reason of the order to cancel the run.
    pub(super) cancelled: Option<Cancellation>,
    pub(super) body: Option<Outcome>,
    pub(super) conclusion: Option<Conclusion>,
}

/// A package in this process.
#[derive(Clone, Debug)]
pub(super) struct Live {
    pub(super) key: Key,
    pub(super) stage: Stage,
    pub(super) known: bool,
    /// The orchestrator's package whose body assigned it.
    pub(super) within: Option<usize>,
    /// What it assigned itself and has not ended.
    pub(super) children: BTreeSet<usize>,
    /// What it waits for, and why.
    pub(super) needs: BTreeMap<usize, BTreeSet<EdgeReason>>,
    /// Whether all values were there when it was last asked for its plan.
    pub(super) complete: bool,
    /// What waits for it.
    pub(super) needed_by: BTreeSet<usize>,
    /// How its body ended, while what it assigned goes on.
    pub(super) body: Option<Outcome>,
    /// What it may hold, once its plan is known.
    pub(super) claims: Claims,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// It has been asked for its plan.
    Asked,
    /// Its plan cannot be written before a value is there.
    Waiting,
    /// Its plan waits for a ruling.
    Declared,
    /// It may run.
    Cleared,
    /// It runs.
    Running,
    /// It has its answer.
    Ended,
}

impl Live {
    /// Whether an argument is still to come.
    pub(super) fn waits_for_value(&self) -> bool {
        self.needs.values().any(|why| why.contains(&EdgeReason::Value))
    }
}

impl State {
    /// The state of a run whose log folds to this board; [`BoardView::default`] for a new one. The bodies then run
    /// again, and assign what they had assigned.
    pub fn resume(board: BoardView) -> Self {
        let ruled = board.edges().iter().filter(|edge| edge.why == EdgeReason::Clearance);
        let ends = ruled.filter_map(|edge| Some((board.place(&edge.from)?, board.place(&edge.to)?)));
        Self {
            orders: ends.collect(),
            conclusion: board.conclusion().cloned(),
            board,
            ..Self::default()
        }
    }

    /// The board as it stands.
    pub fn board(&self) -> &BoardView {
        &self.board
    }

    /// The packages that run, in the order of their assignment.
    pub fn running(&self) -> impl Iterator<Item = &Key> {
        let running = self.live.values().filter(|live| live.stage == Stage::Running);
        running.map(|live| &live.key)
    }

    /// How the run ended, once it has.
    pub fn conclusion(&self) -> Option<&Conclusion> {
        self.conclusion.as_ref()
    }

    pub(super) fn find(&self, key: &str) -> Result<usize, Error> {
        let place = self.board.place(key).filter(|place| self.live.contains_key(place));
        place.ok_or_else(|| illegal(format!("package `{key}` is not on the board of this process")))
    }

    pub(super) fn package(&self, place: usize) -> &Package {
        &self.board.packages()[place]
    }

    /// A package that is known to be live.
    #[allow(
        clippy::expect_used,
        reason = "places come from `find` and from the sets of live packages"
    )]
    pub(super) fn live(&mut self, place: usize) -> &mut Live {
        self.live.get_mut(&place).expect("a live package")
    }

    pub(super) fn stage(&self, place: usize) -> Stage {
        self.live.get(&place).map_or(Stage::Ended, |live| live.stage)
    }

    pub(super) fn nests(&self, place: usize) -> bool {
        self.package(place).assigned.kind == PackageKind::Orchestrator
    }

    /// Whether a package may start steps, as far as orders go: its own, and those to the orchestrators it belongs to.
    pub(super) fn is_held(&self, place: usize) -> bool {
        let around = std::iter::successors(Some(place), |place| self.live.get(place).and_then(|live| live.within));
        let mut tokens = around.map(|place| &self.package(place).assigned.token);
        self.paused || tokens.any(|token| self.paused_tokens.contains(token))
    }
}

/// An order to cancel, with its reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Cancellation(pub(super) Option<String>);

impl Cancellation {
    /// The answer of a package that was cancelled before it could give one.
    pub(super) fn answer(&self) -> Error {
        let why = "it was cancelled";
        let why = self
            .0
            .as_ref()
            .map_or_else(|| why.into(), |because| format!("{why}: {because}"));
        Error::new(ErrorKind::Cancelled, why)
    }
}

/// An event that cannot happen.
pub(super) fn illegal(why: impl std::fmt::Display) -> Error {
    Error::new(ErrorKind::Misuse, why)
}
