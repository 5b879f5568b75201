//! Whether a stream is busy: the thread that pushes leaves a busy stream to the I/O thread.

use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use core::time::Duration;
use std::sync::Arc;

/// A thread that sends again on a stream within this time, for each stream that the station has,
/// spends most of its time on sending: it is some times what a system call and waking the peer
/// take.
const BUSY_FOR: Duration = Duration::from_micros(25);

/// The sends of one stream. It is busy if two have ended a moment ago: a sample and the
/// acknowledgement of another, or an acknowledgement and the release behind it, are sent at once.
#[derive(Debug)]
pub(super) struct Pace {
    /// When the last two sends have ended, in ns; 0: never.
    last: AtomicU64,
    before: AtomicU64,
    streams: Arc<AtomicUsize>,
}

impl Pace {
    /// Of one more stream of the station, whose streams are counted in `streams`.
    pub(super) fn new(streams: &Arc<AtomicUsize>) -> Self {
        streams.fetch_add(1, Ordering::Relaxed);
        Self {
            last: AtomicU64::new(0),
            before: AtomicU64::new(0),
            streams: Arc::clone(streams),
        }
    }

    /// A send has ended. One thread at a time.
    pub(super) fn sent(&self, now: u64) {
        let last = self.last.swap(now.max(1), Ordering::Relaxed);
        self.before.store(last, Ordering::Relaxed);
    }

    pub(super) fn is_busy(&self, now: u64) -> bool {
        let before = self.before.load(Ordering::Relaxed);
        let streams = self.streams.load(Ordering::Relaxed) as u64;
        let busy_for = 2 * BUSY_FOR.as_nanos() as u64 * streams.max(1);
        before != 0 && now.saturating_sub(before) < busy_for
    }
}

impl Drop for Pace {
    fn drop(&mut self) {
        self.streams.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BUSY: u64 = BUSY_FOR.as_nanos() as u64;

    #[test]
    fn two_sends_in_a_moment_make_a_stream_busy() {
        let streams = Arc::default();
        let pace = Pace::new(&streams);
        let begun = 100 * BUSY;
        assert!(!pace.is_busy(begun));
        pace.sent(begun);
        assert!(!pace.is_busy(begun + 1), "one");
        pace.sent(begun + 1);
        assert!(pace.is_busy(begun + 2));
        assert!(pace.is_busy(begun + 2 * BUSY - 1));
        assert!(!pace.is_busy(begun + 2 * BUSY));
        pace.sent(begun + 50 * BUSY);
        assert!(
            !pace.is_busy(begun + 50 * BUSY),
            "the one before is long ago"
        );
    }

    #[test]
    fn with_more_streams_the_moment_is_longer() {
        let streams = Arc::default();
        let pace = Pace::new(&streams);
        let others = [(); 3].map(|()| Pace::new(&streams));
        pace.sent(1);
        pace.sent(2);
        assert!(pace.is_busy(8 * BUSY));
        assert!(!pace.is_busy(8 * BUSY + 1));
        drop(others);
        assert!(!pace.is_busy(2 * BUSY + 1));
    }
}
