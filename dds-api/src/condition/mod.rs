//! Conditions and wait-sets (DDS 1.4 §2.2.2.1.6 to §2.2.2.1.9).

mod guard;
mod observers;
mod read;
mod states;
mod status;
mod wait_set;

use std::sync::Arc;

pub use guard::GuardCondition;
pub(crate) use observers::{DataWaiter, Observers, Signal, Subject};
pub use read::ReadCondition;
pub(crate) use read::ReadConditions;
pub use states::{InstanceStateMask, SampleStateMask, StateMasks, ViewStateMask};
pub use status::StatusCondition;
pub use wait_set::WaitSet;

/// Any of the conditions that can be attached to a [`WaitSet`]. Two are equal
/// when they are the same condition.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Condition {
    /// Set by the application.
    Guard(GuardCondition),
    /// Statuses of an entity.
    Status(StatusCondition),
    /// Samples in a reader.
    Read(ReadCondition),
}

impl Condition {
    /// Whether it holds now (`get_trigger_value`).
    pub fn trigger_value(&self) -> bool {
        match self {
            Self::Guard(condition) => condition.trigger_value(),
            Self::Status(condition) => condition.trigger_value(),
            Self::Read(condition) => condition.trigger_value(),
        }
    }

    /// Whether it makes a wait-set return.
    fn is_signaled(&self) -> bool {
        match self {
            Self::Status(condition) => condition.is_signaled(),
            Self::Guard(_) | Self::Read(_) => self.trigger_value(),
        }
    }

    /// Whether it was deleted, while its reader was not.
    fn is_deleted(&self) -> bool {
        matches!(self, Self::Read(condition) if condition.is_deleted())
    }

    /// Whether its entity was inherited by `fork`.
    fn is_inherited(&self) -> bool {
        match self {
            Self::Guard(_) => false,
            Self::Status(condition) => condition.status_flags().is_inherited(),
            Self::Read(condition) => condition.status_flags().is_inherited(),
        }
    }

    fn observers(&self) -> &Observers {
        match self {
            Self::Guard(condition) => condition.observers(),
            Self::Status(condition) => condition.observers(),
            Self::Read(condition) => condition.observers(),
        }
    }

    fn subject(&self) -> Subject {
        match self {
            Self::Guard(_) => Subject::Guard,
            Self::Status(_) => Subject::Statuses,
            Self::Read(_) => Subject::Samples,
        }
    }

    /// Where a thread that waits for this condition can step the engine itself: in an enabled
    /// participant, if the condition depends on data. One thread at a time can do so there, so
    /// threads that wait for rare events do not.
    fn data_waiter(&self) -> Option<Arc<dyn DataWaiter>> {
        match self {
            Self::Guard(_) => None,
            Self::Status(condition) => condition.status_flags().data_waiter_if_enabled(),
            Self::Read(condition) => condition.status_flags().data_waiter(),
        }
    }

    fn attach(&self, signal: &Arc<Signal>) {
        if self.is_inherited() {
            // Waiting for it fails.
            return;
        }
        self.observers().attach(self.subject(), signal);
    }

    fn detach(&self, signal: &Arc<Signal>) {
        if self.is_inherited() {
            return;
        }
        self.observers().detach(self.subject(), signal);
    }
}

macro_rules! is_condition {
    ($($condition:ident as $variant:ident),+) => { $(
        impl From<$condition> for Condition {
            fn from(condition: $condition) -> Self {
                Self::$variant(condition)
            }
        }

        impl From<&$condition> for Condition {
            fn from(condition: &$condition) -> Self {
                Self::$variant(condition.clone())
            }
        }
    )+ };
}

is_condition!(
    GuardCondition as Guard,
    StatusCondition as Status,
    ReadCondition as Read
);

impl From<&Self> for Condition {
    fn from(condition: &Self) -> Self {
        condition.clone()
    }
}
