//! What the polling thread and the threads that wait for data know of each other.

use std::num::NonZero;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use spindle_dds_transport::WakeInterest;
use spindle_dds_transport::poller_role::PollerRole;

use super::backoff::BackoffLimits;
use super::empty_reads::EmptyReads;

/// Samples that are to stay in a ring are copied out when the ring is nearly
/// full of them and nobody has asked for one for so long.
pub(crate) const NEGLECTED_AFTER: Duration = Duration::from_millis(20);

/// Between the polling thread and those that wait for data.
#[derive(Debug)]
pub(crate) struct Followers {
    pub(crate) duty: PollerRole,
    /// Threads that wait for data.
    pub(crate) visitors: AtomicU32,
    /// When the keeper looks by itself at the latest: nanoseconds of the engine's time.
    pub(crate) looks_at: AtomicU64,
    /// How often a guest has gone away on trust.
    pub(crate) aways: AtomicU32,
    /// How soon the keeper looks whether it comes back: nanoseconds.
    pub(crate) back_within: AtomicU64,
    /// When one did so last, and did not come back yet: nanoseconds of the engine's time, or 0.
    went_at: AtomicU64,
    /// Visits that a guest is not trusted to return from.
    distrust: AtomicU32,
    /// How many these are when one is late the next time.
    distrust_next: AtomicU32,
    /// Backoff of threads that poll.
    pub(crate) empty_reads: EmptyReads,
    /// How many this process may run on.
    pub(crate) processors: usize,
    limits: BackoffLimits,
}

/// How soon the keeper looks whether a guest that is away comes back.
pub(crate) const BACK_WITHIN: Duration = Duration::from_millis(1);
/// How soon the keeper does its upkeep after a guest has gone.
pub(crate) const UPKEEP_WITHIN: Duration = NEGLECTED_AFTER;
/// Who stays away for longer is late: as long as it takes to wake the keeper a few times.
const TRUSTED_FOR: Duration = Duration::from_micros(100);
/// Visits after one from which a guest did not return in time.
const DISTRUST: u32 = 64;
/// The most of them: after the next one from which it is late, it is twice as many.
const DISTRUST_MAX: u32 = 1 << 16;

impl Followers {
    pub(crate) fn new(limits: BackoffLimits) -> Self {
        Self {
            duty: PollerRole::new(),
            visitors: AtomicU32::new(0),
            looks_at: AtomicU64::new(u64::MAX),
            aways: AtomicU32::new(0),
            back_within: AtomicU64::new(BACK_WITHIN.as_nanos() as u64),
            went_at: AtomicU64::new(0),
            distrust: AtomicU32::new(0),
            distrust_next: AtomicU32::new(DISTRUST),
            empty_reads: EmptyReads::default(),
            processors: thread::available_parallelism().map_or(1, NonZero::get),
            limits,
        }
    }

    pub(crate) fn backoff_limits(&self) -> BackoffLimits {
        self.limits
    }

    /// Whether somebody waits for data, and looks for it if the keeper does not.
    pub(crate) fn has_visitors(&self) -> bool {
        self.visitors.load(Ordering::Relaxed) != 0
    }

    /// The keeper sleeps until then.
    pub(crate) fn looks_at(&self, then: u64) {
        self.looks_at.store(then, Ordering::Relaxed);
    }

    /// How often a guest has gone away on trust.
    pub(crate) fn aways(&self) -> u32 {
        self.aways.load(Ordering::Relaxed)
    }

    /// How soon the keeper looks whether a guest that is away comes back.
    pub(crate) fn back_within(&self) -> Duration {
        Duration::from_nanos(self.back_within.load(Ordering::Relaxed))
    }

    /// A guest was away, and did not come back.
    pub(crate) fn distrust(&self) {
        self.distrust.store(DISTRUST, Ordering::Relaxed);
    }

    /// A guest goes away on trust.
    pub(crate) fn goes(&self, now: u64) {
        self.went_at.store(now.max(1), Ordering::Relaxed);
    }

    /// A guest is there; if it was away, that was not for long, or it is trusted less.
    pub(crate) fn comes(&self, now: u64) {
        let went_at = self.went_at.load(Ordering::Relaxed);
        if went_at == 0 {
            return;
        }
        self.went_at.store(0, Ordering::Relaxed);
        // One guest at a time.
        let late = self.distrust_next.load(Ordering::Relaxed);
        let next = match Duration::from_nanos(now.saturating_sub(went_at)) <= TRUSTED_FOR {
            true => DISTRUST,
            false => {
                self.distrust.store(late, Ordering::Relaxed);
                (late * 2).min(DISTRUST_MAX)
            }
        };
        self.distrust_next.store(next, Ordering::Relaxed);
    }

    pub(crate) fn trusts(&self) -> bool {
        let left = self.distrust.load(Ordering::Relaxed);
        if left > 0 {
            // One guest at a time; the keeper starts anew meanwhile at worst.
            self.distrust.store(left - 1, Ordering::Relaxed);
        }
        left == 0
    }
}

/// Whether who sleeps for `announced` is woken for what is wanted.
pub(crate) fn covers(announced: WakeInterest, wanted: WakeInterest) -> bool {
    announced == WakeInterest::DataAndAcks || wanted == WakeInterest::Data
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_late_again_is_trusted_less_each_time() {
        let seat = Followers::new(BackoffLimits {
            spins: 0,
            yields: 0,
        });
        let in_time = TRUSTED_FOR.as_nanos() as u64;
        let visits_without_trust = || (0..).take_while(|_: &u32| !seat.trusts()).count() as u32;
        let away = |ns: u64| {
            seat.goes(1000);
            seat.comes(1000 + ns);
        };
        away(in_time);
        assert_eq!(visits_without_trust(), 0);
        away(in_time + 1);
        assert_eq!(visits_without_trust(), DISTRUST);
        away(in_time + 1);
        assert_eq!(visits_without_trust(), 2 * DISTRUST);
        seat.comes(u64::MAX);
        assert_eq!(visits_without_trust(), 0, "it was not away");
        (0..20).for_each(|_| away(in_time + 1));
        assert_eq!(visits_without_trust(), DISTRUST_MAX);
        away(in_time);
        away(in_time + 1);
        assert_eq!(visits_without_trust(), DISTRUST, "it was in time meanwhile");
    }
}
