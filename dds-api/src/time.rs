//! Points in time.

use std::time::{Duration as Span, Instant};

use spindle_dds_qos::Duration;

/// When to give up; never, for an infinite duration.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Deadline(Option<Instant>);

impl Deadline {
    pub(crate) fn after(duration: Duration) -> Self {
        Self(
            duration
                .as_std()
                .and_then(|span| Instant::now().checked_add(span)),
        )
    }

    /// What is left; `None` when it is over, `Some(None)` when it never is.
    pub(crate) fn left(self) -> Option<Option<Span>> {
        let Some(end) = self.0 else {
            return Some(None);
        };
        let left = end.saturating_duration_since(Instant::now());
        (!left.is_zero()).then_some(Some(left))
    }

    /// So much later.
    pub(crate) fn later_by(self, span: Span) -> Self {
        Self(self.0.and_then(|end| end.checked_add(span)))
    }

    /// The same as a duration: zero when it is over.
    pub(crate) fn remaining(self) -> Duration {
        match self.left() {
            None => Duration::ZERO,
            Some(None) => Duration::INFINITE,
            Some(Some(left)) => Duration::from_std(left),
        }
    }
}
