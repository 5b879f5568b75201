//! Deadlines of operations that block.

use std::time::{Duration as Span, Instant};

use spindle_dds_qos::Duration;

/// The end of a wait; `None` for an infinite one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Deadline(Option<Instant>);

impl Deadline {
    pub(crate) fn after(duration: Duration) -> Self {
        Self::of(Instant::now(), duration)
    }

    /// The end of an operation that began at `since`, and has so long.
    pub(crate) fn of(since: Instant, duration: Duration) -> Self {
        Self(duration.as_std().and_then(|span| since.checked_add(span)))
    }

    /// The time left; `None` if it is over, `Some(None)` if it is infinite.
    pub(crate) fn left(self) -> Option<Option<Span>> {
        let Some(end) = self.0 else {
            return Some(None);
        };
        let left = end.saturating_duration_since(Instant::now());
        (!left.is_zero()).then_some(Some(left))
    }
}
