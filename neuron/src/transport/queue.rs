use std::collections::VecDeque;

use crate::limits;

/// What was lost, added up.
pub(crate) trait Loss<T>: Default {
    /// One more.
    fn count(&mut self, item: &T);
    /// Those of another place.
    fn add(&mut self, other: Self);
}

impl<T> Loss<T> for u64 {
    fn count(&mut self, _item: &T) {
        *self += 1;
    }

    fn add(&mut self, other: Self) {
        *self = self.saturating_add(other);
    }
}

/// What waits for one reader: at most so many items and bytes. What comes to a full one is dropped, and the reader is
/// told at the very place where it would have stood.
#[derive(Debug)]
pub(crate) struct Queue<T, L> {
    entries: VecDeque<Entry<T, L>>,
    items: usize,
    bytes: usize,
}

#[derive(Debug)]
enum Entry<T, L> {
    Item(T, usize),
    Lost(L),
}

impl<T, L> Default for Queue<T, L> {
    fn default() -> Self {
        Self {
            entries: VecDeque::new(),
            items: 0,
            bytes: 0,
        }
    }
}

impl<T, L: Loss<T>> Queue<T, L> {
    /// Takes an item of so many bytes in, if there is room.
    pub(crate) fn push(&mut self, item: T, bytes: usize) {
        let is_full = self.items >= limits::EPHEMERAL_QUEUE_MAX
            || (self.items > 0 && self.bytes + bytes > limits::EPHEMERAL_QUEUE_BYTES_MAX);
        if is_full {
            self.lost().count(&item);
            return;
        }
        self.items += 1;
        self.bytes += bytes;
        self.entries.push_back(Entry::Item(item, bytes));
    }

    /// Takes in what was lost on the way here.
    pub(crate) fn lose(&mut self, loss: L) {
        self.lost().add(loss);
    }

    /// As [`Queue::lose`], before everything that waits.
    pub(crate) fn lose_first(&mut self, mut loss: L) {
        if let Some(Entry::Lost(_)) = self.entries.front()
            && let Some(Entry::Lost(later)) = self.entries.pop_front()
        {
            loss.add(later);
        }
        self.entries.push_front(Entry::Lost(loss));
    }

    fn lost(&mut self) -> &mut L {
        if !matches!(self.entries.back(), Some(Entry::Lost(_))) {
            self.entries.push_back(Entry::Lost(L::default()));
        }
        match self.entries.back_mut() {
            Some(Entry::Lost(lost)) => lost,
            _ => unreachable!("it was pushed just now"),
        }
    }

    /// The next item, or what was lost before the one that follows.
    pub(crate) fn pop(&mut self) -> Option<Result<T, L>> {
        match self.entries.pop_front()? {
            Entry::Item(item, bytes) => {
                self.items -= 1;
                self.bytes -= bytes;
                Some(Ok(item))
            }
            Entry::Lost(lost) => Some(Err(lost)),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*};

    use super::Queue;
    use crate::limits;

    proptest! {
        #[test]
        fn every_item_is_given_or_counted_at_its_place_and_the_bounds_hold(
            steps in vec((0_usize..2_000, 0_usize..2_000, 0_usize..40_000), 1..20),
        ) {
            let mut queue = Queue::<u64, u64>::default();
            let (mut pushed, mut told) = (0_u64, 0_u64);
            for (push, pop, bytes) in steps {
                for _ in 0..push {
                    queue.push(pushed, bytes);
                    pushed += 1;
                }
                prop_assert!(queue.items <= limits::EPHEMERAL_QUEUE_MAX);
                prop_assert!(queue.bytes <= limits::EPHEMERAL_QUEUE_BYTES_MAX || queue.items == 1);
                prop_assert!(queue.entries.len() <= 2 * queue.items + 1);
                for _ in 0..pop {
                    match queue.pop() {
                        // The numbers go up by one, and what is missing is what was told.
                        Some(Ok(item)) => { prop_assert_eq!(item, told); told += 1; }
                        Some(Err(lost)) => told += lost,
                        None => break,
                    }
                }
            }
            while let Some(entry) = queue.pop() {
                told += entry.map_or_else(|lost| lost, |_| 1);
            }
            prop_assert_eq!(told, pushed);
            prop_assert_eq!((queue.items, queue.bytes), (0, 0));
        }
    }
}
