//! Links one after the other: what comes next in them.

use std::collections::VecDeque;
use std::sync::Arc;

use spindle_dds_transport::Fabric;

use crate::driver::receive::arrival::Arrival;
use crate::driver::receive::reader_epoch::{MatchedWriters, ReaderEpoch};

/// What is next for a reader.
pub(crate) enum EpochItem<F: Fabric> {
    /// To go on with the writers of the next epoch.
    Enter(Arc<MatchedWriters<F>>),
    Arrival(Arrival<F>),
}

/// The way of a reader from link to link. Arrivals of one come before those of the next.
pub(crate) struct EpochCursor<F: Fabric> {
    /// From where arrivals come.
    link: Arc<ReaderEpoch<F>>,
    /// What came by links before this one; the rest waits in the link's queue.
    backlog: VecDeque<EpochItem<F>>,
}

impl<F: Fabric> EpochCursor<F> {
    /// From this link on.
    pub(crate) fn new(link: Arc<ReaderEpoch<F>>) -> Self {
        Self {
            link,
            backlog: VecDeque::new(),
        }
    }

    /// Where it has come to.
    pub(crate) fn link(&self) -> &Arc<ReaderEpoch<F>> {
        &self.link
    }

    /// Whether it has come to this link.
    #[inline]
    pub(crate) fn is_at(&self, link: &ReaderEpoch<F>) -> bool {
        std::ptr::eq(&*self.link, link)
    }

    /// Whether there is something of links before this one.
    pub(crate) fn is_behind(&self) -> bool {
        !self.backlog.is_empty()
    }

    /// Whether anything is next.
    #[inline]
    pub(crate) fn has_any(&self) -> bool {
        // In this order: nothing is pushed here once there is a next one.
        self.is_behind() || self.link.next().is_some() || !self.link.arrivals.is_empty()
    }

    /// What is next, in this epoch or the one after it.
    pub(crate) fn next(&mut self) -> Option<EpochItem<F>> {
        if let Some(step) = self.backlog.pop_front() {
            return Some(step);
        }
        // In this order: nothing is pushed here once there is a next one.
        let next = self.link.next().cloned();
        if let Some(arrival) = self.link.arrivals.pop() {
            return Some(EpochItem::Arrival(arrival));
        }
        self.link = next?;
        Some(EpochItem::Enter(self.link.matched.clone()))
    }

    /// Links that lead on are emptied: they would keep their queues, one for each epoch.
    pub(crate) fn catch_up(&mut self) {
        while let Some(next) = self.link.next().cloned() {
            while let Some(arrival) = self.link.arrivals.pop() {
                self.backlog.push_back(EpochItem::Arrival(arrival));
            }
            self.backlog
                .push_back(EpochItem::Enter(next.matched.clone()));
            self.link = next;
        }
    }

    /// Throws away all that is there, and goes to the last link. Whose writers these are.
    pub(crate) fn discard(&mut self) -> Arc<MatchedWriters<F>> {
        loop {
            let next = self.link.next().cloned();
            while self.link.arrivals.pop().is_some() {}
            match next {
                Some(next) => self.link = next,
                None => break,
            }
        }
        self.backlog.clear();
        self.link.matched.clone()
    }
}

impl<F: Fabric> Drop for EpochCursor<F> {
    fn drop(&mut self) {
        // One link after the other: a long row of them would take a deep stack.
        while let Some(next) = self.link.next().cloned() {
            self.link = next;
        }
    }
}
