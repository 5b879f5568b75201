//! A reader's way from epoch to epoch: what comes next.

use std::collections::VecDeque;
use std::sync::Arc;

use spindle_dds_transport::Fabric;

use super::arrival::Arrival;
use super::reader_epoch::{MatchedWriters, ReaderEpoch};

/// What is next for a reader.
pub(crate) enum EpochItem<F: Fabric> {
    /// The writers of the next epoch.
    Enter(Arc<MatchedWriters<F>>),
    Arrival(Arrival<F>),
}

impl<F: Fabric> EpochItem<F> {
    /// Whether the participant has lost its group here.
    pub(crate) fn is_loss(&self) -> bool {
        matches!(self, Self::Enter(matched) if matched.is_out_of_group())
    }

    /// Bytes that it takes where it is kept, as a copy.
    pub(crate) fn bytes(&self) -> usize {
        let more = match self {
            Self::Enter(matched) => matched.bytes(),
            Self::Arrival(Arrival::Message(message)) => message.payload.bytes().len(),
            Self::Arrival(Arrival::Departed { .. }) => 0,
        };
        size_of::<Self>() + more
    }
}

/// Arrivals of one epoch come before those of the next.
pub(crate) struct EpochCursor<F: Fabric> {
    /// The epoch whose queue is read next.
    epoch: Arc<ReaderEpoch<F>>,
    /// What came by epochs before that one.
    backlog: VecDeque<EpochItem<F>>,
    /// How often the participant loses its group in the backlog.
    losses: usize,
}

impl<F: Fabric> EpochCursor<F> {
    pub(crate) fn new(epoch: Arc<ReaderEpoch<F>>) -> Self {
        Self {
            epoch,
            backlog: VecDeque::new(),
            losses: 0,
        }
    }

    pub(crate) fn epoch(&self) -> &Arc<ReaderEpoch<F>> {
        &self.epoch
    }

    /// Bytes that its queues have allocated.
    pub(crate) fn bytes(&self) -> usize {
        let mut bytes = self.backlog.capacity() * size_of::<EpochItem<F>>();
        let mut next = Some(&self.epoch);
        while let Some(epoch) = next {
            bytes += epoch.arrivals.bytes();
            next = epoch.next();
        }
        bytes
    }

    #[inline]
    pub(crate) fn is_at(&self, epoch: &ReaderEpoch<F>) -> bool {
        std::ptr::eq(&*self.epoch, epoch)
    }

    /// Whether something of earlier epochs is left.
    pub(crate) fn is_behind(&self) -> bool {
        !self.backlog.is_empty()
    }

    /// Whether the participant loses its group in what is left of earlier epochs.
    pub(crate) fn has_loss(&self) -> bool {
        self.losses > 0
    }

    /// Whether a transfer of history is awaited from an epoch on that is next.
    pub(crate) fn has_transfer(&self) -> bool {
        let awaits = |it: &EpochItem<F>| match it {
            EpochItem::Enter(matched) => matched.awaits.is_some(),
            EpochItem::Arrival(_) => false,
        };
        let mut next = self.epoch.next();
        while let Some(epoch) = next {
            if epoch.matched.awaits.is_some() {
                return true;
            }
            next = epoch.next();
        }
        self.backlog.iter().any(awaits)
    }

    /// Whether anything is next.
    #[inline]
    pub(crate) fn has_any(&self) -> bool {
        // `next` is read before the queue: once it is set, nothing more is pushed here.
        self.is_behind() || self.epoch.next().is_some() || !self.epoch.arrivals.is_empty()
    }

    /// What is next, in this epoch or the one after it.
    pub(crate) fn next(&mut self) -> Option<EpochItem<F>> {
        if let Some(item) = self.backlog.pop_front() {
            self.losses -= usize::from(item.is_loss());
            return Some(item);
        }
        // `next` is read before the queue: once it is set, nothing more is pushed here.
        let next = self.epoch.next().cloned();
        if let Some(arrival) = self.epoch.arrivals.pop() {
            return Some(EpochItem::Arrival(arrival));
        }
        self.epoch = next?;
        Some(EpochItem::Enter(self.epoch.matched.clone()))
    }

    /// Gives back what was next.
    pub(crate) fn put_back(&mut self, item: EpochItem<F>) {
        self.losses += usize::from(item.is_loss());
        self.backlog.push_front(item);
    }

    /// Moves the queues of epochs that have a next one into the backlog: otherwise each epoch
    /// would keep its queue.
    pub(crate) fn catch_up(&mut self) {
        while let Some(next) = self.epoch.next().cloned() {
            while let Some(arrival) = self.epoch.arrivals.pop() {
                self.backlog.push_back(EpochItem::Arrival(arrival));
            }
            let entered = EpochItem::Enter(next.matched.clone());
            self.losses += usize::from(entered.is_loss());
            self.backlog.push_back(entered);
            self.epoch = next;
        }
    }

    /// Drops everything, and goes to the last epoch. Returns its writers.
    pub(crate) fn discard(&mut self) -> Arc<MatchedWriters<F>> {
        loop {
            let next = self.epoch.next().cloned();
            while self.epoch.arrivals.pop().is_some() {}
            match next {
                Some(next) => self.epoch = next,
                None => break,
            }
        }
        self.backlog.clear();
        self.losses = 0;
        self.epoch.matched.clone()
    }
}

impl<F: Fabric> Drop for EpochCursor<F> {
    fn drop(&mut self) {
        // One epoch at a time: dropping a long chain recursively would need a deep stack.
        while let Some(next) = self.epoch.next().cloned() {
            self.epoch = next;
        }
    }
}
