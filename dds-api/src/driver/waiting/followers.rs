//! What the polling thread and the threads that wait for data know of each other.

use std::num::NonZero;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use spindle_dds_transport::WakeInterest;
use spindle_dds_transport::poller_role::PollerRole;

use super::backoff::BackoffLimits;
use super::empty_reads::EmptyReads;

/// Samples that are to stay in a ring are copied out if the ring is nearly full of them and their
/// reader has not asked for samples for this long.
pub(crate) const NEGLECTED_AFTER: Duration = Duration::from_millis(20);

/// Shared by the polling thread and the threads that wait for data.
#[derive(Debug)]
pub(crate) struct Followers {
    pub(crate) role: PollerRole,
    /// Threads that wait for the poller role while the polling thread is awake.
    pub(crate) waiting: AtomicU32,
    /// When the sleep of the polling thread times out, in ns of the engine's time.
    pub(crate) poller_wakes_at: AtomicU64,
    /// How often a follower has leased the role.
    pub(crate) leases: AtomicU32,
    /// How soon the polling thread checks whether the follower is back, in ns.
    pub(crate) back_within: AtomicU64,
    /// When the role was leased, in ns of the engine's time; 0 if the follower is back.
    went_at: AtomicU64,
    /// How many waits from now on end without a lease.
    distrust: AtomicU32,
    /// How many these are when a follower is late the next time.
    distrust_next: AtomicU32,
    /// Reads that found nothing.
    pub(crate) empty_reads: EmptyReads,
    /// Processors that this process may run on.
    pub(crate) processors: usize,
    limits: BackoffLimits,
}

/// How soon the polling thread checks whether a follower that has leased the role is back.
pub(crate) const BACK_WITHIN: Duration = Duration::from_millis(1);
/// How soon the polling thread does its upkeep after a follower has left.
pub(crate) const UPKEEP_WITHIN: Duration = NEGLECTED_AFTER;
/// A follower that stays away for longer is late: about as long as a few wake-ups take.
const TRUSTED_FOR: Duration = Duration::from_micros(100);
/// Waits without a lease after a follower was late.
const DISTRUST: u32 = 64;
/// The most of them: they double each time that a follower is late.
const DISTRUST_MAX: u32 = 1 << 16;

impl Followers {
    pub(crate) fn new(limits: BackoffLimits) -> Self {
        Self {
            role: PollerRole::new(),
            waiting: AtomicU32::new(0),
            poller_wakes_at: AtomicU64::new(u64::MAX),
            leases: AtomicU32::new(0),
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

    /// Whether a thread waits for data that would poll if the polling thread slept.
    pub(crate) fn has_waiting(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) != 0
    }

    /// The polling thread sleeps until `then`, in ns of the engine's time.
    pub(crate) fn set_poller_wakes_at(&self, then: u64) {
        self.poller_wakes_at.store(then, Ordering::Relaxed);
    }

    /// How often a follower has leased the role.
    pub(crate) fn leases(&self) -> u32 {
        self.leases.load(Ordering::Relaxed)
    }

    /// How soon the polling thread checks whether the follower is back.
    pub(crate) fn back_within(&self) -> Duration {
        Duration::from_nanos(self.back_within.load(Ordering::Relaxed))
    }

    /// A follower has leased the role, and did not come back in time.
    pub(crate) fn distrust(&self) {
        self.distrust.store(DISTRUST, Ordering::Relaxed);
    }

    /// A follower leases the role.
    pub(crate) fn note_lease(&self, now: u64) {
        self.went_at.store(now.max(1), Ordering::Relaxed);
    }

    /// A follower is there. If it had leased the role and is late, it is trusted less.
    pub(crate) fn note_return(&self, now: u64) {
        let went_at = self.went_at.load(Ordering::Relaxed);
        if went_at == 0 {
            return;
        }
        self.went_at.store(0, Ordering::Relaxed);
        // One follower at a time.
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
            // One follower at a time; at worst the polling thread sets it anew meanwhile.
            self.distrust.store(left - 1, Ordering::Relaxed);
        }
        left == 0
    }
}

/// Whether a sleeper that announced `announced` is woken for what is `wanted`.
pub(crate) fn covers(announced: WakeInterest, wanted: WakeInterest) -> bool {
    announced >= wanted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_follower_that_is_late_again_is_trusted_less_each_time() {
        let followers = Followers::new(BackoffLimits {
            spins: 0,
            yields: 0,
        });
        let in_time = TRUSTED_FOR.as_nanos() as u64;
        let waits_without_trust = || (0..).take_while(|_: &u32| !followers.trusts()).count() as u32;
        let lease_for = |ns: u64| {
            followers.note_lease(1000);
            followers.note_return(1000 + ns);
        };
        lease_for(in_time);
        assert_eq!(waits_without_trust(), 0);
        lease_for(in_time + 1);
        assert_eq!(waits_without_trust(), DISTRUST);
        lease_for(in_time + 1);
        assert_eq!(waits_without_trust(), 2 * DISTRUST);
        followers.note_return(u64::MAX);
        assert_eq!(waits_without_trust(), 0, "there was no lease");
        (0..20).for_each(|_| lease_for(in_time + 1));
        assert_eq!(waits_without_trust(), DISTRUST_MAX);
        lease_for(in_time);
        lease_for(in_time + 1);
        assert_eq!(waits_without_trust(), DISTRUST, "it was in time meanwhile");
    }
}
