//! Failures of peers, between the thread that detects them and the one that polls.

use core::sync::atomic::{AtomicBool, Ordering};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use crate::fabric::peers::{PeerSet, Rank};
use crate::fabric::{FailureCause, PeerFailure};

/// Failures that were not taken yet.
#[derive(Debug, Default)]
pub(crate) struct Failures {
    any: AtomicBool,
    queue: Mutex<VecDeque<PeerFailure>>,
}

impl Failures {
    pub(crate) fn put(&self, failure: PeerFailure) {
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        queue.push_back(failure);
        self.any.store(true, Ordering::Release);
    }

    /// Takes the next failure. One load if there is none.
    pub(crate) fn take(&self) -> Option<PeerFailure> {
        // Acquire: pairs with the release in `put`.
        if !self.any.load(Ordering::Acquire) {
            return None;
        }
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        let failure = queue.pop_front();
        self.any.store(!queue.is_empty(), Ordering::Release);
        failure
    }
}

/// A segment that reports failures.
#[derive(Debug)]
pub(crate) struct Control {
    members: Vec<u128>,
    told: PeerSet,
    failures: Weak<Failures>,
}

impl Control {
    /// `members` are the ids by rank; failures are put into `failures`.
    pub(crate) fn new(members: Vec<u128>, failures: &Arc<Failures>) -> Self {
        Self {
            members,
            told: PeerSet::EMPTY,
            failures: Arc::downgrade(failures),
        }
    }

    /// Reports a failure to all control segments, and removes those that were dropped.
    pub(crate) fn tell_all(controls: &mut Vec<Self>, id: u128, cause: &FailureCause) {
        controls.retain(|control| control.failures.strong_count() > 0);
        for control in controls {
            control.tell(id, cause);
        }
    }

    /// Reports a failure, once for each peer.
    pub(crate) fn tell(&mut self, id: u128, cause: &FailureCause) {
        let Some(at) = self.members.iter().position(|&member| member == id) else {
            return;
        };
        let peer = Rank(at as u16);
        if let (false, Some(failures)) = (self.told.contains(peer), self.failures.upgrade()) {
            self.told.insert(peer);
            let cause = cause.clone();
            failures.put(PeerFailure { peer, cause });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_control_segment_reports_each_member_once() {
        let failures = Arc::<Failures>::default();
        let mut control = Control::new(vec![5, 6], &failures);
        for _ in 0..2 {
            control.tell(6, &FailureCause::ProcessEnded);
            control.tell(7, &FailureCause::ProcessEnded);
        }
        let failure = failures.take().expect("told");
        assert_eq!(failure.peer, Rank(1));
        assert!(failures.take().is_none());
    }
}
