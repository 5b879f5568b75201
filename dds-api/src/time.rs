//! Deadlines of operations that block.

use std::time::{Duration as Span, Instant};

use spindle_dds_qos::Duration;

/// The end of a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Deadline {
    At(Instant),
    /// The wait does not end by itself.
    Infinite,
    /// There is no wait: what cannot be done at once is not done, and no reason is asked for.
    Passed,
}

impl Deadline {
    pub(crate) fn after(duration: Duration) -> Self {
        Self::of(Instant::now(), duration)
    }

    /// The end of an operation that began at `since`, and has so long.
    pub(crate) fn of(since: Instant, duration: Duration) -> Self {
        let span = duration.as_std();
        let end = span.and_then(|span| since.checked_add(span));
        end.map_or(Self::Infinite, Self::At)
    }

    /// The time left, as a duration.
    pub(crate) fn remaining(self) -> Duration {
        match self.left() {
            Some(Some(left)) => left.into(),
            Some(None) => Duration::INFINITE,
            None => Duration::ZERO,
        }
    }

    /// When it is; `None` if it is infinite, or has passed.
    pub(crate) fn instant(self) -> Option<Instant> {
        match self {
            Self::At(end) => Some(end),
            Self::Infinite | Self::Passed => None,
        }
    }

    /// The time left; `None` if it is over, `Some(None)` if it is infinite.
    pub(crate) fn left(self) -> Option<Option<Span>> {
        match self {
            Self::Infinite => Some(None),
            Self::Passed => None,
            Self::At(end) => {
                let left = end.saturating_duration_since(Instant::now());
                (!left.is_zero()).then_some(Some(left))
            }
        }
    }
}
