use std::collections::{BTreeMap, HashSet};

use neuron::{
    Error, ErrorKind, Result, RunId,
    def::{Encoded, Entry},
    limits,
};

use super::{
    Neuron,
    handlers::Handlers,
    standing::{Standing, standing},
    supervise::owned,
    tries::Tries,
};
use crate::{
    builds::{BuildOrders, Builds},
    runs::{Begun, Unfinished},
};

/// What [`Neuron::recover`] found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recovered {
    /// Runs that go on in this process now.
    pub here: Vec<RunId>,
    /// Runs that another process drives.
    pub elsewhere: Vec<RunId>,
    /// Runs whose orchestrator is not registered in this program.
    pub without_code: Vec<RunId>,
    /// Runs whose arguments this program cannot read back, because they hold a secret or have another form today: they
    /// go on when they are run again with their arguments.
    pub unreadable: Vec<RunId>,
    /// Runs whose log is damaged: they are left alone, and `verify` says what is wrong with it.
    pub damaged: Vec<RunId>,
    /// Runs that an order about a build leaves to others (`neuron builds`).
    pub refused: Vec<RunId>,
    /// Runs that wait for room: so many are recovered at once.
    pub waiting: Vec<RunId>,
}

/// What can be done with an unfinished run here.
enum Ready {
    /// It is driven with these arguments.
    Now(Encoded),
    /// Its arguments cannot be read back.
    Unreadable,
    /// Its log is damaged, and that was told.
    Damaged,
    /// An order about a build leaves it to others.
    Refused,
    /// It has ended meanwhile.
    Ended,
}

impl Neuron {
    /// Takes up the unfinished runs whose code this program registers and that no living process drives, a bounded
    /// number at once. They go on in the background.
    ///
    /// # Errors
    /// A kind of the disk.
    pub async fn recover(&self) -> Result<Recovered, Error> {
        let ledger = self.0.ledger.clone();
        let folded = tokio::task::spawn_blocking(move || ledger.fold(&Unfinished, None)).await;
        let unfinished = folded.map_err(|error| Error::new(ErrorKind::Io, error))??.state;
        let mut found = Recovered::default();
        for (id, name) in oldest_first(&unfinished) {
            let Some(entry) = self.0.registry.get("orchestrator", &name) else {
                found.without_code.push(id);
                continue;
            };
            if self.0.is_live(&id) {
                found.here.push(id);
                continue;
            }
            if self.0.live() >= limits::RECOVERED_AT_ONCE_MAX {
                found.waiting.push(id);
                continue;
            }
            let args = match self.ready(&id, entry).await? {
                Ready::Now(args) => args,
                Ready::Unreadable => {
                    found.unreadable.push(id);
                    continue;
                }
                Ready::Damaged => {
                    found.damaged.push(id);
                    continue;
                }
                Ready::Refused => {
                    found.refused.push(id);
                    continue;
                }
                Ready::Ended => continue,
            };
            match self.0.ownership.claim(&owned(&id)).await {
                Ok(claimed) => {
                    self.0.start(&id, entry, args, Some(claimed))?;
                    found.here.push(id);
                }
                Err(error) if error.kind() == ErrorKind::Owned => found.elsewhere.push(id),
                Err(error) => return Err(error),
            }
        }
        Ok(found)
    }

    /// Keeps taking up unfinished runs until it is dropped, also those of a process that dies or hangs later, and runs
    /// the handlers of this program, each function with `#[on("…")]`.
    ///
    /// A run that is held, because this code does not fit its log, is taken up once; again when somebody says something
    /// to it (an order, a ruling), or by another process. One that was left for another reason is tried again less and
    /// less often, at least once a minute.
    ///
    /// A handler is a durable consumer: of all processes that serve, one runs it and the others stand by. When this is
    /// dropped the handlers stop, and what they had in hand is handed out again, its delivery uncounted. When an order
    /// drains the build they take no further message, and have [`limits::DRAIN_GRACE`] to end what they have in hand. The
    /// runs go on.
    ///
    /// ```
    /// use neuron::{Append, Author, Contract, Draft, Event, Pattern, Topic, on};
    /// # use orchestrator::prelude::*;
    ///
    /// #[orchestrator]
    /// async fn ship(_board: &Board, order: String) -> Result<String> {
    ///     Ok(format!("{order} is on its way"))
    /// }
    ///
    /// /// A run per order. The order names it, so that a second delivery finds the first one's run.
    /// #[on("orders.placed")]
    /// async fn placed(event: &Event, order: String) -> Result<()> {
    ///     let neuron = event.state::<Neuron>()?;
    ///     neuron.run(ship, order).id(event.envelope().id().to_string()).await?;
    ///     Ok(())
    /// }
    ///
    /// # async fn show() -> Result<()> {
    /// let neuron = Neuron::open("shop.db").await?;
    /// let orders = Pattern::new("orders.placed")?;
    /// neuron.ledger().declare(&orders, Contract::Durable, &Author::new("shop")?).await?;
    /// neuron.serve().await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Denied`] naming the order, once the build of this program is retired; [`ErrorKind::Contract`] if a
    /// consumer of a handler's name exists and is given other messages; a kind of the disk.
    pub async fn serve(&self) -> Result<(), Error> {
        let mut handlers = None;
        // A view: each look costs what has changed since the one before, however long the log is.
        let unfinished = self.0.ledger.view(Unfinished).await?;
        let orders = self.0.ledger.view(BuildOrders).await?;
        // What cannot be read back is for whoever knows its arguments, or mends the store: this program will not.
        let mut passed_over = HashSet::new();
        let mut tries = Tries::default();
        loop {
            let build = &self.0.build;
            let begins = orders.now().await?.read(|orders| {
                orders.serves(build)?;
                Ok::<_, Error>(orders.begins(build).is_ok())
            })??;
            if !begins && handlers.as_ref().is_some_and(Handlers::close) {
                tracing::info!(
                    build,
                    "the handlers stop: by an order this build begins nothing any more"
                );
            }
            if begins && handlers.as_ref().is_none_or(Handlers::are_over) {
                handlers = Some(Handlers::start(self));
            }
            let open = unfinished.now().await?;
            open.read(|open| tries.keep(&self.0.switchboard, |run| open.contains_key(run)))?;
            for (id, name) in open.read(oldest_first)? {
                let entry = self.0.registry.get("orchestrator", &name);
                let Some(entry) = entry.filter(|_| !self.0.is_live(&id) && !passed_over.contains(&id)) else {
                    continue;
                };
                if self.0.live() >= limits::RECOVERED_AT_ONCE_MAX {
                    break;
                }
                if !tries.may_be_taken_up(&id, &self.0.switchboard) {
                    continue;
                }
                match self.ready(&id, entry).await? {
                    // Whoever drives it now is watched, and followed when it dies or hangs.
                    Ready::Now(args) => {
                        self.0.switchboard.acted_on(&id);
                        tries.took_up(&id, self.0.start(&id, entry, args, None)?);
                    }
                    Ready::Unreadable | Ready::Damaged => drop(passed_over.insert(id)),
                    // It may be released.
                    Ready::Refused | Ready::Ended => {}
                }
            }
            match &mut handlers {
                Some(handlers) => handlers.watch(limits::SERVE_POLL).await?,
                None => tokio::time::sleep(limits::SERVE_POLL).await,
            }
        }
    }

    /// Reads what an unfinished run is to be driven with.
    async fn ready(&self, id: &RunId, entry: &'static Entry) -> Result<Ready, Error> {
        let (ledger, run) = (self.0.ledger.clone(), id.clone());
        let builds = Builds::of(&self.0.ledger)?;
        let read = tokio::task::spawn_blocking(move || standing(&ledger, &run)).await;
        let read = match read.map_err(|error| Error::new(ErrorKind::Io, error))? {
            // One damaged run keeps nobody from the others.
            Err(error) if error.kind() == ErrorKind::Corrupt => {
                tracing::error!(%error, run = %id, "the log of a run is damaged; it is not taken up");
                return Ok(Ready::Damaged);
            }
            read => read?,
        };
        Ok(match read {
            Standing::Open(created) if builds.takes_up(&self.0.build, &created.build).is_err() => Ready::Refused,
            Standing::Open(created) => {
                let args = self.0.registry.normalise(entry, &created.args);
                args.map_or(Ready::Unreadable, Ready::Now)
            }
            Standing::New | Standing::Ended(..) => Ready::Ended,
        })
    }
}

/// The runs and their orchestrators, in the order in which they began.
fn oldest_first(runs: &BTreeMap<RunId, Begun>) -> Vec<(RunId, String)> {
    let mut runs: Vec<_> = runs.iter().collect();
    runs.sort_by_key(|(_, begun)| begun.pos);
    let runs = runs.into_iter();
    runs.map(|(id, begun)| (id.clone(), begun.name.clone())).collect()
}
