//! Failures of peers between the thread that notices and the one that polls.

use core::sync::atomic::{AtomicBool, Ordering};
use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use crate::fabric::Failure;

/// Failures that nobody has taken yet.
#[derive(Debug, Default)]
pub(crate) struct Failures {
    any: AtomicBool,
    queue: Mutex<VecDeque<Failure>>,
}

impl Failures {
    pub(crate) fn put(&self, failure: Failure) {
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        queue.push_back(failure);
        self.any.store(true, Ordering::Release);
    }

    /// The next one. Without any, this is one load.
    pub(crate) fn take(&self) -> Option<Failure> {
        // Acquire: pairs with `put`.
        if !self.any.load(Ordering::Acquire) {
            return None;
        }
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        let failure = queue.pop_front();
        self.any.store(!queue.is_empty(), Ordering::Release);
        failure
    }
}
