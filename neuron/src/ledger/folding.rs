use super::{Ledger, reading::last_by};
use crate::{
    Digest, Error, ErrorKind, Fold, Millis, Result,
    fold::{Codec, Folded},
    limits,
    store::{Range, Select, Snapshot},
};

impl Ledger {
    /// Folds what the fold selects, up to and with `upto` (a `pos`); `None` = to now. Blocks.
    ///
    /// It begins at the snapshot of the fold, if it keeps any ([`Fold::snapshot`]) and there is one that does not go too
    /// far; the answer is the same. Folded to now, a long way is put aside as the next snapshot.
    ///
    /// # Errors
    /// The first unreadable envelope, or what the fold says.
    pub fn fold<F: Fold>(&self, fold: &F, upto: Option<u64>) -> Result<Folded<F::State>, Error> {
        let Some(upto) = upto else {
            return self.fold_to_now(fold).map(|(folded, _)| folded);
        };
        let to = upto.min(self.0.store.last()?.0);
        let (mut folded, _) = self.resumed(fold, to);
        self.take(fold, &mut folded, to)?;
        Ok(folded)
    }

    pub(super) fn fold_to_now<F: Fold>(&self, fold: &F) -> Result<(Folded<F::State>, Way), Error> {
        let (last, _) = self.0.store.last()?;
        let (mut folded, mut way) = self.resumed(fold, last);
        way.took(self.take(fold, &mut folded, last)?);
        self.put_aside(fold, &folded, &mut way);
        Ok((folded, way))
    }

    /// Takes a fold further, from where it stands. Blocks.
    ///
    /// # Errors
    /// As [`Ledger::fold`].
    pub fn fold_on<F: Fold>(&self, fold: &F, folded: &mut Folded<F::State>, upto: Option<u64>) -> Result<(), Error> {
        let (last, _) = self.0.store.last()?;
        self.take(fold, folded, upto.map_or(last, |upto| upto.min(last)))?;
        Ok(())
    }

    /// Folds to a moment: the state the store had then. Blocks.
    ///
    /// # Errors
    /// As [`Ledger::fold`].
    pub fn fold_at<F: Fold>(&self, fold: &F, time: Millis) -> Result<Folded<F::State>, Error> {
        let upto = last_by(&*self.0.store, time)?;
        self.fold(fold, Some(upto))
    }

    /// Folds in everything up to `to`, which stands. Gives how many envelopes that were.
    fn take<F: Fold>(&self, fold: &F, folded: &mut Folded<F::State>, to: u64) -> Result<u64, Error> {
        if folded.upto >= to {
            return Ok(0);
        }
        let reading = self.read(fold.select()).from(folded.upto + 1).to(to);
        let mut count = 0;
        folded.resume(fold, reading.envelopes().inspect(|_| count += 1))?;
        folded.upto = to;
        Ok(count)
    }

    /// The state of the fold's snapshot, if there is one that goes no further than `to`; else that before the first
    /// envelope. Whatever is wrong with a snapshot, it is only done without.
    fn resumed<F: Fold>(&self, fold: &F, to: u64) -> (Folded<F::State>, Way) {
        let found = fold.snapshot().map_or(Ok(None), |codec| self.taken_up(&codec, to));
        let found = found.unwrap_or_else(|error| {
            tracing::debug!(%error, "a snapshot is of no use; the log is folded from its beginning");
            None
        });
        found.unwrap_or_else(|| (Folded::start(fold), Way::default()))
    }

    fn taken_up<S>(&self, codec: &Codec<S>, to: u64) -> Result<Option<(Folded<S>, Way)>, Error> {
        let Some(Snapshot { pos, id, state }) = self.0.store.snapshot(&codec.key())? else {
            return Ok(None);
        };
        if pos > to || self.id_at(pos)? != Some(id) {
            return Ok(None);
        }
        let way = Way::after(pos, state.len());
        let state = codec.decode(&state)?;
        Ok(Some((Folded { state, upto: pos }, way)))
    }

    /// Keeps a state as the fold's snapshot, if it keeps any and the way to it was long. What fails is told, and nothing
    /// else comes of it.
    pub(super) fn put_aside<F: Fold>(&self, fold: &F, folded: &Folded<F::State>, way: &mut Way) {
        if !way.is_long(fold, folded.upto) {
            return;
        }
        let Some(codec) = fold.snapshot() else { return };
        let put = || -> Result<usize, Error> {
            let pos = folded.upto;
            let Some(id) = self.id_at(pos)? else { return Ok(0) };
            let state = codec.encode(&folded.state)?;
            let bytes = state.len();
            let key = codec.key();
            self.0.store.put_snapshot(&key, &Snapshot { pos, id, state })?;
            Ok(bytes)
        };
        let bytes = put().unwrap_or_else(|error| {
            if error.kind() == ErrorKind::TooLarge {
                tracing::debug!(%error, "a state is not put aside");
            } else {
                tracing::warn!(%error, "a state could not be put aside; the next fold takes longer");
            }
            way.bytes
        });
        // Also after a failure: what failed is tried again after another long way.
        *way = Way::after(folded.upto, bytes);
    }

    fn id_at(&self, pos: u64) -> Result<Option<Digest>, Error> {
        let page = self.0.store.page(&Select::All, Range::at(pos))?;
        Ok(page.rows.first().map(|row| row.id))
    }
}

/// What was folded since the last snapshot.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Way {
    from: u64,
    taken: u64,
    /// Of the last snapshot.
    bytes: usize,
}

impl Way {
    /// From a snapshot of so many bytes on.
    fn after(pos: u64, bytes: usize) -> Self {
        Self {
            from: pos,
            taken: 0,
            bytes,
        }
    }

    /// So many envelopes more were folded in.
    pub(super) fn took(&mut self, count: u64) {
        self.taken += count;
    }

    /// Whether it took so long that the next one should not have to go it again.
    pub(super) fn is_long<F: Fold>(&self, fold: &F, upto: u64) -> bool {
        if fold.snapshot().is_none() {
            return false;
        }
        let work = match fold.select() {
            // What others have written is at least passed over.
            Select::All | Select::Pattern(_) => upto - self.from,
            Select::Topic(_) | Select::Kind(_) | Select::CausedBy(_) | Select::Key(..) => self.taken,
        };
        work >= limits::SNAPSHOT_EVERY.max(self.bytes as u64 / limits::SNAPSHOT_BYTES_PER_ENVELOPE)
    }
}
