//! Links one after the other: what comes next in them.

use std::collections::VecDeque;
use std::sync::Arc;

use spindle_dds_transport::Fabric;

use super::arrival::Step;
use super::link::{Link, Roster};

/// The way of a reader from link to link. Arrivals of one come before those of the next.
pub(super) struct Course<F: Fabric> {
    /// From where arrivals come.
    link: Arc<Link<F>>,
    /// What came by links before this one; the rest waits in the link's queue.
    backlog: VecDeque<Step<F>>,
}

impl<F: Fabric> Course<F> {
    /// From this link on.
    pub(super) fn new(link: Arc<Link<F>>) -> Self {
        Self {
            link,
            backlog: VecDeque::new(),
        }
    }

    /// Where it has come to.
    pub(super) fn link(&self) -> &Arc<Link<F>> {
        &self.link
    }

    /// Whether it has come to this link.
    #[inline]
    pub(super) fn is_at(&self, link: &Link<F>) -> bool {
        std::ptr::eq(&*self.link, link)
    }

    /// Whether there is something of links before this one.
    pub(super) fn is_behind(&self) -> bool {
        !self.backlog.is_empty()
    }

    /// Whether anything is next.
    #[inline]
    pub(super) fn has_any(&self) -> bool {
        // In this order: nothing is pushed here once there is a next one.
        self.is_behind() || self.link.next().is_some() || !self.link.arrivals.is_empty()
    }

    /// What is next, in this lane or the one after it.
    pub(super) fn next(&mut self) -> Option<Step<F>> {
        if let Some(step) = self.backlog.pop_front() {
            return Some(step);
        }
        // In this order: nothing is pushed here once there is a next one.
        let next = self.link.next().cloned();
        if let Some(arrival) = self.link.arrivals.pop() {
            return Some(Step::Arrival(arrival));
        }
        self.link = next?;
        Some(Step::Enter(self.link.roster.clone()))
    }

    /// Links that lead on are emptied: they would keep their queues, one for each lane.
    pub(super) fn catch_up(&mut self) {
        while let Some(next) = self.link.next().cloned() {
            while let Some(arrival) = self.link.arrivals.pop() {
                self.backlog.push_back(Step::Arrival(arrival));
            }
            self.backlog.push_back(Step::Enter(next.roster.clone()));
            self.link = next;
        }
    }

    /// Throws away all that is there, and goes to the last link. Whose writers these are.
    pub(super) fn discard(&mut self) -> Arc<Roster<F>> {
        loop {
            let next = self.link.next().cloned();
            while self.link.arrivals.pop().is_some() {}
            match next {
                Some(next) => self.link = next,
                None => break,
            }
        }
        self.backlog.clear();
        self.link.roster.clone()
    }
}

impl<F: Fabric> Drop for Course<F> {
    fn drop(&mut self) {
        // One link after the other: a long row of them would take a deep stack.
        while let Some(next) = self.link.next().cloned() {
            self.link = next;
        }
    }
}
