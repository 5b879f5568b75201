//! When a station looks for its files.

use std::time::{Duration, Instant};

use crate::shm::domain::LOOK_EVERY;

/// Pause before a missing socket is made anew, when that has failed.
const LOOK_AGAIN_AFTER: Duration = Duration::from_millis(500);

/// The next look at the domain's files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Looks {
    /// At this time, whatever is heard until then.
    pub(super) next: Instant,
    /// The last look could not make the socket anew. Each attempt locks the record, which finds the
    /// socket missing and says so: what is said counts for nothing before the next look.
    has_failed: bool,
}

impl Looks {
    /// All was there at this time.
    pub(super) fn new(now: Instant) -> Self {
        Self {
            next: now + LOOK_EVERY,
            has_failed: false,
        }
    }

    /// The socket is missing, and could not be made anew.
    pub(super) fn failed(&mut self, now: Instant) {
        *self = Self {
            next: now + LOOK_AGAIN_AFTER,
            has_failed: true,
        };
    }

    /// Whether to look now. `is_missing`: the socket was found missing.
    pub(super) fn is_due(&self, is_missing: bool, now: Instant) -> bool {
        is_missing && !self.has_failed || now >= self.next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_that_cannot_be_made_anew_is_looked_for_after_a_pause() {
        let begin = Instant::now();
        let mut looks = Looks::new(begin);
        assert!(!looks.is_due(false, begin));
        assert!(looks.is_due(true, begin));
        assert!(looks.is_due(false, looks.next));
        looks.failed(begin);
        // Its own attempt has said that the socket is missing.
        assert!(!looks.is_due(true, begin));
        assert!(looks.next < begin + LOOK_EVERY);
        assert!(looks.is_due(true, looks.next));
        assert!(Looks::new(begin).is_due(true, begin), "it was made anew");
    }
}
