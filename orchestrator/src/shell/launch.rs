use std::sync::Arc;

use neuron::{
    Error, Result, RunId,
    def::{Encoded, Entry},
    ownership::Claimed,
};
use tokio::sync::watch;
use tracing::Instrument as _;

use super::{
    engine::{Engine, Live, conflict},
    standing::End,
    supervise::{Errand, owned, supervise},
};

/// Takes a run off the list of those that go on in this process.
struct Leaving<'a> {
    engine: &'a Engine,
    id: &'a RunId,
}

impl Drop for Leaving<'_> {
    fn drop(&mut self) {
        self.engine.runs().remove(self.id);
        let name = owned(self.id);
        if std::thread::panicking() {
            // What it has started may still write.
            self.engine.ownership.abandon(&name);
        } else {
            self.engine.ownership.forget(&name);
        }
    }
}

impl Engine {
    /// Drives a run in this process, or attaches to it if this process drives it already.
    pub(crate) fn start(
        self: &Arc<Self>,
        id: &RunId,
        entry: &'static Entry,
        args: Encoded,
        claimed: Option<Claimed>,
    ) -> Result<watch::Receiver<Option<End>>, Error> {
        let mut runs = self.runs();
        let name = entry.meta().name;
        if let Some(live) = runs.get(id).filter(|live| live.is_driven()) {
            if live.name != name || live.args != args.recorded {
                return Err(conflict(id, live.name));
            }
            return Ok(live.end.clone());
        }
        let (told, end) = watch::channel(None);
        let live = Live {
            name,
            args: args.recorded.clone(),
            end: end.clone(),
        };
        runs.insert(id.clone(), live);
        drop(runs);
        let (engine, id) = (self.clone(), id.clone());
        let span = tracing::info_span!("run", run = %id, orchestrator = name);
        let errand = Errand {
            id: id.clone(),
            entry,
            args,
            claimed,
        };
        tokio::spawn(async move {
            // Also where it panics: then nobody drives the run, and whoever asks for it may.
            let leaving = Leaving {
                engine: &engine,
                id: &id,
            };
            let outcome = supervise(&engine, errand).instrument(span).await;
            // Gone before the end is told, so that whoever runs it again reads the log.
            drop(leaving);
            told.send_replace(Some(outcome));
        });
        Ok(end)
    }

    /// The runs that this process drives or waits for.
    pub(crate) fn is_live(&self, id: &RunId) -> bool {
        self.runs().get(id).is_some_and(Live::is_driven)
    }

    pub(crate) fn live(&self) -> usize {
        self.runs().values().filter(|live| live.is_driven()).count()
    }
}
