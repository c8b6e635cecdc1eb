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
        if let Some(live) = runs.get(id).filter(|live| live.end.has_changed().is_ok()) {
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
            let outcome = supervise(&engine, errand).instrument(span).await;
            // Gone before the end is told, so that whoever runs it again reads the log.
            engine.runs().remove(&id);
            engine.ownership.forget(&owned(&id));
            told.send_replace(Some(outcome));
        });
        Ok(end)
    }

    /// The runs that this process drives or waits for.
    pub(crate) fn is_live(&self, id: &RunId) -> bool {
        self.runs().contains_key(id)
    }

    pub(crate) fn live(&self) -> usize {
        self.runs().len()
    }
}
