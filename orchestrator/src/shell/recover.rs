use std::collections::BTreeSet;

use neuron::{
    Error, ErrorKind, Kind, Result, RunId,
    def::Entry,
    limits,
    store::Select,
    vocabulary::{Message as _, orchestration::OrchestrationCreated},
};

use super::{
    Neuron,
    standing::{Created, Standing, standing},
    supervise::owned,
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
    /// Runs that wait for room: so many are recovered at once.
    pub waiting: Vec<RunId>,
}

/// An unfinished run and the code that drives it.
struct Unfinished {
    id: RunId,
    created: Box<Created>,
    entry: Option<&'static Entry>,
}

impl Neuron {
    /// Takes up the unfinished runs whose code this program registers and that no living process drives, a bounded
    /// number at once. They go on in the background.
    ///
    /// # Errors
    /// A kind of the disk.
    pub async fn recover(&self) -> Result<Recovered, Error> {
        let mut found = Recovered::default();
        for Unfinished { id, created, entry } in self.unfinished().await? {
            let Some(entry) = entry else {
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
            let Ok(args) = entry.normalise(&created.args) else {
                found.unreadable.push(id);
                continue;
            };
            match self.0.ownership.claim(&owned(&id)).await {
                Ok(claimed) => {
                    self.0.start(&id, entry, args, Some(claimed))?;
                    found.here.push(id);
                }
                Err(error) if error.kind() == ErrorKind::Busy => found.elsewhere.push(id),
                Err(error) => return Err(error),
            }
        }
        Ok(found)
    }

    /// Keeps taking up unfinished runs until it is dropped: also those of a process that dies or hangs later.
    ///
    /// # Errors
    /// A kind of the disk.
    pub async fn serve(&self) -> Result<(), Error> {
        loop {
            for Unfinished { id, created, entry } in self.unfinished().await? {
                let Some(entry) = entry.filter(|_| !self.0.is_live(&id)) else {
                    continue;
                };
                // One that cannot be read back is for whoever knows its arguments; the others go on.
                if let Ok(args) = entry.normalise(&created.args)
                    && self.0.live() < limits::RECOVERED_AT_ONCE_MAX
                {
                    // Whoever drives it now is watched, and followed when it dies or hangs.
                    self.0.start(&id, entry, args, None)?;
                }
            }
            tokio::time::sleep(limits::SERVE_POLL).await;
        }
    }

    async fn unfinished(&self) -> Result<Vec<Unfinished>, Error> {
        let (ledger, registry) = (self.0.ledger.clone(), self.0.registry.clone());
        let read = move || {
            let kind = Kind::new(OrchestrationCreated::TYPE)?;
            let mut seen = BTreeSet::new();
            let mut unfinished = Vec::new();
            for envelope in ledger.read(Select::Kind(kind)).envelopes() {
                let topic = envelope?.topic;
                let Some(id) = topic.segments().nth(1).and_then(|id| RunId::new(id).ok()) else {
                    continue;
                };
                if !seen.insert(id.clone()) {
                    continue;
                }
                if let Standing::Open(created) = standing(&ledger, &id)? {
                    let entry = registry.get("orchestrator", &created.name);
                    unfinished.push(Unfinished { id, created, entry });
                }
            }
            Ok(unfinished)
        };
        let read = tokio::task::spawn_blocking(read).await;
        read.map_err(|error| Error::new(ErrorKind::Io, error))?
    }
}
