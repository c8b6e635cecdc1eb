//! A run is taken up: from nothing, or where its log ends.

use std::{
    collections::{BTreeSet, HashMap, VecDeque},
    sync::Arc,
};

use neuron::{
    Error, ErrorKind, Receipt, Result, RunId, TokenId,
    ownership::{Claimed, Takeover},
    scope::{self, Runtime},
    token::{Control, Orders, ThreadOrder},
    topic::catalog,
};
use tokio::sync::mpsc;
use tracing::Instrument as _;

use super::{
    super::{
        admission::Gatekeeper,
        body::Link,
        engine::Engine,
        execute::{Seat, execute, told},
        scribe::Scribe,
        signal::Signal,
        supervise::Errand,
    },
    Driver,
};
use crate::{
    ancestry::Ancestry,
    board::{BoardView, facts},
    package::Key,
    protocol::{Event, Order, State},
};

impl Driver {
    /// A run that has just begun.
    pub(crate) fn begin(engine: &Arc<Engine>, errand: &Errand, claim: &Claimed, created: &Receipt) -> Self {
        let ancestry = Ancestry::alone(&errand.id, (created.at, created.pos));
        Self::new(engine, errand, claim, ancestry)
    }

    fn new(engine: &Arc<Engine>, errand: &Errand, claim: &Claimed, ancestry: Ancestry) -> Self {
        let owner = (claim.name.clone(), claim.epoch);
        let (link, signals) = mpsc::unbounded_channel();
        Self {
            engine: engine.clone(),
            id: errand.id.clone(),
            scribe: Scribe::new(engine.ledger.clone(), errand.id.clone(), owner.clone()),
            owner,
            taken_over: false,
            resumed: false,
            ancestry,
            state: State::default(),
            jobs: HashMap::new(),
            body: None,
            output: None,
            link,
            signals,
            entry: errand.entry,
            args: errand.args.revealed.clone(),
            tokens: BTreeSet::new(),
            acts: VecDeque::new(),
        }
    }

    /// A run that another incarnation left, read from its log.
    pub(crate) async fn resume(engine: &Arc<Engine>, errand: &Errand, claim: Claimed) -> Result<Self, Error> {
        let (ledger, id) = (engine.ledger.clone(), errand.id.clone());
        let read = move || Ok::<_, Error>((Ancestry::of(&ledger, &id)?, facts(&ledger, &id)?));
        let read = tokio::task::spawn_blocking(read).await;
        let (ancestry, facts) = read.map_err(|error| Error::new(ErrorKind::Io, error))??;
        let mut driver = Self::new(engine, errand, &claim, ancestry);
        let mut board = BoardView::default();
        for (envelope, fact) in &facts {
            board.record(fact)?;
            driver.scribe.stands(envelope, fact);
        }
        driver.state = State::resume(board);
        driver.resumed = true;
        driver.taken_over = matches!(claim.from, Takeover::Dead | Takeover::Hung);
        tracing::info!(
            packages = driver.state.board().packages().len(),
            "the run goes on where its log ends"
        );
        Ok(driver)
    }

    /// Orders that were given before this process listened.
    pub(super) async fn obey_standing_orders(&mut self) -> Result<(), Error> {
        self.obey(None).await?;
        let packages = self.state.board().packages().iter();
        let tokens: Vec<TokenId> = packages.map(|package| package.assigned.token.clone()).collect();
        for token in tokens {
            self.connect(&token);
            self.obey(Some(token)).await?;
        }
        Ok(())
    }

    async fn obey(&mut self, token: Option<TokenId>) -> Result<(), Error> {
        let topic = token
            .as_ref()
            .map_or_else(|| catalog::run_control(&self.id), catalog::control);
        if self.engine.ledger.store().head(&topic)? == 0 {
            return Ok(());
        }
        let Orders { paused, cancelled, .. } = self.engine.ledger.fold(&Control::new(topic), None)?.state;
        let pause = paused.then_some(Order::Pause);
        let cancel = cancelled.map(|because| Order::Cancel { because });
        for order in pause.into_iter().chain(cancel) {
            let token = token.clone();
            self.advance(Event::Ordered { token, order }).await?;
        }
        Ok(())
    }

    /// Orders for the threads of a package that were given before it ran here.
    pub(super) fn obey_for_threads(&self, token: &TokenId, runtime: &Runtime) -> Result<(), Error> {
        let (ledger, topic) = (&self.engine.ledger, catalog::control(token));
        if ledger.store().head(&topic)? == 0 {
            return Ok(());
        }
        for (thread, orders) in ledger.fold(&Control::new(topic), None)?.state.threads {
            let pause = orders.paused.then_some(ThreadOrder::Pause);
            let cancel = orders.cancelled.map(|because| ThreadOrder::Cancel { because });
            for order in pause.into_iter().chain(cancel) {
                runtime.order_thread(&thread, &order);
            }
        }
        Ok(())
    }

    pub(super) async fn start_body(&mut self) -> Result<(), Error> {
        if self.state.conclusion().is_some() {
            return Ok(());
        }
        let mut seat = Seat::of_orchestrator(&self.id, self.owner.clone(), None);
        (seat.born, seat.resumed, seat.taken_over) = (self.ancestry.born(), self.resumed, self.taken_over);
        (seat.before, seat.fork) = (self.ancestry.of_orchestrator(), self.fork());
        let runtime = seat
            .runtime(&self.engine, self.shared(None), None::<Gatekeeper>)
            .await?;
        self.body = Some(runtime.clone());
        let (link, id, birth) = (self.link.clone(), self.ancestry.scope(), self.ancestry.birth());
        let (entry, args) = (self.entry, self.args.clone());
        let driven = async move {
            let body = move |scope| {
                let body = entry.run(scope, args);
                Ok(Box::pin(async move { body.await.map(|ran| ran.json) }) as _)
            };
            let ended = execute(runtime, &id, birth, Box::new(body), None).await;
            let _ = link.send(told(None, ended));
        };
        tokio::spawn(driven.in_current_span());
        Ok(())
    }

    /// The run, if it is a fork.
    pub(super) fn fork(&self) -> Option<RunId> {
        self.ancestry.is_fork().then(|| self.id.clone())
    }

    /// The program's state, with what links an orchestrator's body to this run.
    pub(super) fn shared(&self, within: Option<Key>) -> scope::State {
        let mut state = self.engine.state.clone();
        let signals = self.link.clone();
        state.insert(Link {
            take: Arc::new(move |body, packages| {
                // A driver that is gone has no use for them.
                let _ = signals.send(Signal::Assigned { body, packages });
            }),
            within,
        });
        state
    }
}
