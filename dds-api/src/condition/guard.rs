//! Conditions that the application sets.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::observers::Observers;

/// A condition whose trigger value is set by the application (DDS 1.4
/// §2.2.2.1.8), for instance to make a [`WaitSet`](super::WaitSet) return.
#[derive(Debug, Clone, Default)]
pub struct GuardCondition(Arc<Guard>);

#[derive(Debug, Default)]
struct Guard {
    value: AtomicBool,
    observers: Observers,
}

impl GuardCondition {
    /// A condition that does not hold yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets whether it holds.
    pub fn set_trigger_value(&self, value: bool) {
        self.0.value.store(value, Ordering::SeqCst);
        if value {
            self.0.observers.notify();
        }
    }

    /// Whether it holds.
    pub fn trigger_value(&self) -> bool {
        self.0.value.load(Ordering::SeqCst)
    }

    pub(super) fn observers(&self) -> &Observers {
        &self.0.observers
    }
}

impl PartialEq for GuardCondition {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for GuardCondition {}
