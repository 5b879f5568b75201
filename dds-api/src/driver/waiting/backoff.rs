//! How often a thread steps in vain before it sleeps.

use std::hint;
use std::thread;
use std::time::{Duration, Instant};

use crate::properties::WaitPolicy;

/// How often a thread polls again before it sleeps: waking it often costs the waker more than the
/// event that it waits for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BackoffLimits {
    pub(crate) spins: u32,
    pub(crate) yields: u32,
}

impl BackoffLimits {
    /// More polling threads than processors is normal. `balanced` yields whenever it has found
    /// nothing: on an idle processor that is a short pause, on a busy one it lets another thread
    /// work. Even `spin` yields soon, and ends after some milliseconds.
    pub(crate) const fn of(policy: WaitPolicy) -> Self {
        let (spins, yields) = match policy {
            WaitPolicy::Balanced => (0, 32),
            WaitPolicy::Spin => (500, 10_000),
            WaitPolicy::Block => (0, 0),
        };
        Self { spins, yields }
    }

    /// The same where members outnumber processors. Others work while a thread yields, and what it
    /// waits for has often come after the first time. Further yields are of little use; without any, it
    /// sleeps more often, and each sleep costs a wake-up by another member, also with `block`. (10
    /// processes with 5 topics at 50 Hz on 2 processors, processor time a delivery: 40 to 48 µs
    /// without yields, 23 to 26 with one to three, 30 with 32.)
    pub(crate) const fn crowded(self) -> Self {
        match self.yields > Self::of(WaitPolicy::Balanced).yields {
            // `spin`: what the user has asked for.
            true => self,
            false => Self {
                spins: 0,
                yields: YIELDS_CROWDED,
            },
        }
    }
}

/// Yields before a thread sleeps, where members outnumber processors.
const YIELDS_CROWDED: u32 = 2;

/// A yield lasts for as long as other threads want the processor; yielding ends after this time.
const YIELDS_FOR: Duration = Duration::from_millis(5);

/// Polls without progress, one after the other.
#[derive(Debug, Default)]
pub(crate) struct Backoff {
    vain: u32,
    yields_since: Option<Instant>,
}

impl Backoff {
    /// One more poll made no progress: spins or yields. False if it is time to sleep.
    pub(crate) fn again(&mut self, limits: BackoffLimits) -> bool {
        self.again_at(limits, Instant::now)
    }

    fn again_at(&mut self, limits: BackoffLimits, now: impl Fn() -> Instant) -> bool {
        self.vain += 1;
        if self.vain <= limits.spins {
            hint::spin_loop();
            return true;
        }
        if self.vain > limits.spins + limits.yields {
            return false;
        }
        let since = *self.yields_since.get_or_insert_with(&now);
        if now().duration_since(since) >= YIELDS_FOR {
            return false;
        }
        thread::yield_now();
        true
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn where_it_is_crowded_a_thread_yields_twice_unless_it_is_to_spin() {
        let crowded = |policy| BackoffLimits::of(policy).crowded();
        for policy in [WaitPolicy::Balanced, WaitPolicy::Block] {
            let limits = crowded(policy);
            assert_eq!((limits.spins, limits.yields), (0, YIELDS_CROWDED));
        }
        let (spin, alone) = (
            crowded(WaitPolicy::Spin),
            BackoffLimits::of(WaitPolicy::Spin),
        );
        assert_eq!((spin.spins, spin.yields), (alone.spins, alone.yields));
    }

    #[test]
    fn it_ends_after_its_limits_or_in_time() {
        let few = BackoffLimits {
            spins: 3,
            yields: 2,
        };
        let begun = Instant::now();
        let mut backoff = Backoff::default();
        let again = |_: &i32| backoff.again_at(few, || begun);
        assert_eq!((0..9).take_while(again).count(), 5);
        let endless = BackoffLimits {
            spins: 0,
            yields: u32::MAX,
        };
        // A clock that goes on by a millisecond whenever it is read.
        let reads = Cell::new(0);
        let now = || begun + Duration::from_millis(reads.replace(reads.get() + 1));
        let mut backoff = Backoff::default();
        let again = |_: &i32| backoff.again_at(endless, now);
        assert_eq!((0..9).take_while(again).count(), 4);
    }
}
