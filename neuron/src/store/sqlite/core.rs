//! What the handles of one file share.

use std::{
    path::Path,
    sync::{Arc, Mutex, PoisonError},
};

use tokio::sync::watch as channel;

use super::{
    connect,
    fault::At as _,
    frames,
    lock::Lock,
    open::{self, Sight},
    options::{Access, Durability, Options},
    pool::Pool,
    sealed,
    side::Side,
    wal::Log,
    watch::{self, Watch},
    write::Writer,
};
use crate::{
    Error, ErrorKind, Result, limits,
    store::{commit::Committer, observer::Observers},
};

/// An open store.
#[derive(Debug)]
pub(super) struct Core {
    pub(super) path: Arc<Path>,
    pub(super) options: Options,
    // In the order of their end: the watch and the readers go before the writer closes the file.
    watch: Mutex<Option<Watch>>,
    pub(super) pool: Pool,
    pub(super) side: Side,
    pub(super) tail: channel::Sender<u64>,
    pub(super) committer: Option<Arc<Committer<Writer>>>,
    /// The write-ahead log, where this process writes.
    pub(super) log: Option<Arc<Log>>,
    pub(super) observers: Arc<Observers>,
    /// Why nobody may write to the file.
    pub(super) refusal: Option<Error>,
}

impl Core {
    pub(super) fn open(path: &Path, options: Options) -> Result<Self, Error> {
        let guard = guard(path, &options)?;
        open::checked(path, &options, Sight::Steady)?;
        frames::headed(path)?;
        let path: Arc<Path> = path.into();
        let refusal = Pool::new(path.clone(), false, options.wait).read(|reader| {
            let root = open::root(&path, &reader.connection)?;
            Ok(open::other_root(&path, root).or(sealed::refusal(&path, &reader.connection)?))
        })?;
        let writes = options.access != Access::Read && refusal.is_none();
        if writes {
            readable_log(&path, options.durability)?;
        }
        let (committer, log) = writes.then(|| committer(&path, &options)).transpose()?.unzip();
        let pool = Pool::new(path.clone(), writes, options.wait);
        let (last, _) = pool.read(|reader| reader.last())?;
        let tail = match &committer {
            Some(committer) => committer.tail().clone(),
            None => channel::Sender::new(0),
        };
        watch::advance(&tail, last);
        let observers = committer
            .as_ref()
            .map_or_else(Arc::default, |committer| committer.observers().clone());
        let watch = Watch::start(path.clone(), writes, tail.clone(), observers.clone())?;
        drop(guard);
        Ok(Self {
            watch: Mutex::new(Some(watch)),
            side: Side::new(&path, writes),
            path,
            options,
            pool,
            tail,
            committer,
            log,
            observers,
            refusal,
        })
    }
}

/// Keeps other processes from opening and closing the store, until it is dropped. Whoever only reads changes nothing, so it
/// needs none; beside what is no store nothing is left.
fn guard(path: &Path, options: &Options) -> Result<Option<Lock>, Error> {
    if options.access == Access::Read {
        return Ok(None);
    }
    open::checked(path, options, Sight::Passing)?;
    let mut lock = Lock::of_openings(path)?;
    lock.take(options.wait, path)?;
    Ok(Some(lock))
}

/// Whether the write-ahead log is read to its end: what is appended would overwrite what stands behind a break. Without
/// [`Durability::PowerLoss`] a power failure leaves such a log too, and may take the last commits back.
fn readable_log(path: &Path, durability: Durability) -> Result<(), Error> {
    match frames::whole(path) {
        Err(error) if error.kind() == ErrorKind::Corrupt && durability == Durability::Process => {
            tracing::warn!(%error, "commits are lost, as a power failure may do");
            Ok(())
        }
        looked => looked,
    }
}

fn committer(path: &Arc<Path>, options: &Options) -> Result<(Arc<Committer<Writer>>, Arc<Log>), Error> {
    let lock = Lock::of_writers(path)?;
    let connection = connect::writer(path, options.durability, options.wait).at(path)?;
    let log = Arc::new(Log::new(path.clone(), options.durability, &connection).at(path)?);
    let writer = Writer::new(connection, lock, options.wait, log.clone())?;
    let committer = Committer::new(writer, options.clock.clone(), options.fault.clone(), 0);
    committer.start_standby()?;
    Ok((committer, log))
}

impl Drop for Core {
    fn drop(&mut self) {
        // The writer closes the file last, so that it can move the write-ahead log into it and remove that.
        // Nobody opens the file while this process may be the last to close it. One that is stopped while it opens is not
        // waited for without end: SQLite's own locks hold then.
        let brief = limits::CLOSE_WAIT_MAX.min(self.options.wait);
        let guard = (self.committer.as_ref()).and_then(|_| Lock::of_openings(&self.path).ok());
        let guard = guard.and_then(|mut lock| lock.take(brief, &self.path).is_ok().then_some(lock));
        drop(self.watch.get_mut().unwrap_or_else(PoisonError::into_inner).take());
        self.pool.close();
        let Some(committer) = self.committer.take() else { return };
        if committer.is_inside() {
            // A callback let the last handle go: its own commit has to end before the file can be closed.
            let close = move || {
                committer.close();
                drop(guard);
            };
            if let Err(error) = std::thread::Builder::new().name("neuron-close".into()).spawn(close) {
                tracing::error!(%error, "the store stays open until the process ends: no thread can be started");
            }
        } else {
            committer.close();
            drop(guard);
        }
    }
}
