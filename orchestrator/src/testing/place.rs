use std::sync::Arc;

use neuron::{
    Clock, Error, Ledger, Result,
    pipeline::Pipeline,
    store::{Durability, Fault, Memory, Options, Sqlite, Store},
    testing::{Cut, Faults},
};
use tempfile::TempDir;

use crate::{Builder, Neuron};

/// Where the log of a test stands, while processes on it come and go.
#[derive(Debug)]
pub(super) enum Place {
    Memory(Option<Memory>),
    Folder(TempDir),
}

impl Place {
    pub(super) fn memory() -> Self {
        Self::Memory(None)
    }

    /// A folder of its own, gone at the end.
    pub(super) fn folder() -> Result<Self, Error> {
        Ok(Self::Folder(tempfile::tempdir()?))
    }

    /// Opens it as a process would that comes after the ones before.
    pub(super) async fn open(
        &mut self,
        builder: Builder,
        clock: Arc<dyn Clock>,
        faults: &Faults,
        cut: &Arc<Cut>,
    ) -> Result<Neuron, Error> {
        let fault: Option<Arc<dyn Fault>> = Some(cut.clone());
        let store: Arc<dyn Store> = match self {
            Self::Memory(before) => {
                let store = match before {
                    None => Memory::with(clock.clone(), fault)?,
                    Some(before) => before.cut_apart(usize::MAX, clock.clone(), fault)?,
                };
                *before = Some(store.clone());
                Arc::new(store)
            }
            Self::Folder(folder) => {
                let options = Options {
                    clock: clock.clone(),
                    fault,
                    // What crashes here is a process at most, never the machine.
                    durability: Durability::Process,
                    ..Options::default()
                };
                Arc::new(Sqlite::open_apart(folder.path().join("run.db"), options)?)
            }
        };
        let ledger = Ledger::over(store, clock, Pipeline::default())?;
        builder.state(faults.until(cut.clone())).over(ledger).await
    }
}
