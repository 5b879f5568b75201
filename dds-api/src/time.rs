//! Points in time.

use std::time::{Duration as Span, Instant};

use rustix::time::{ClockId, clock_gettime};
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

/// Now, in nanoseconds since 1970. No system call.
#[inline]
pub(crate) fn source_timestamp() -> i64 {
    // Not by `SystemTime`, which is made to be subtracted: this is asked for each sample.
    let now = clock_gettime(ClockId::Realtime);
    let seconds = now.tv_sec.saturating_mul(1_000_000_000);
    seconds.saturating_add(now.tv_nsec)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps_are_of_the_clock_of_the_system() {
        let since_epoch = || {
            let now = std::time::SystemTime::now();
            let since = now.duration_since(std::time::UNIX_EPOCH);
            since.expect("after 1970").as_nanos() as i64
        };
        let before = since_epoch();
        let stamps = [source_timestamp(), source_timestamp()];
        assert!(before <= stamps[0] && stamps[0] <= stamps[1] && stamps[1] <= since_epoch());
    }
}
