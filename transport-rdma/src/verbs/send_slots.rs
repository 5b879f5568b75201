//! How much of a send queue is in use.
//!
//! A work request takes a slot from when it is posted until it is known to be complete. Only
//! completions of signalled requests are reported; each implies those of all requests before
//! it. Posting without a free slot is an error on some devices and goes unnoticed on others,
//! so slots are counted here.

/// At least one in this many work requests is signalled; far fewer than there are slots.
pub(super) const SIGNAL_EVERY: u64 = 64;

/// The slots of one send queue.
#[derive(Debug)]
pub(super) struct SendSlots {
    all: u64,
    posted: u64,
    /// Number of work requests that are known to be complete.
    completed: u64,
    /// Id of the last signalled request.
    signalled: u64,
}

impl SendSlots {
    /// `all` must be more than [`SIGNAL_EVERY`].
    pub(super) fn new(all: u32) -> Self {
        let all = u64::from(all);
        assert!(all > SIGNAL_EVERY, "{all} slots");
        Self {
            all,
            posted: 0,
            completed: 0,
            signalled: 0,
        }
    }

    /// Number of free slots.
    pub(super) fn free(&self) -> u64 {
        self.all - (self.posted - self.completed)
    }

    /// Takes a slot for the next work request; returns its id and whether it is signalled.
    /// With `told`, it is signalled because its completion matters.
    pub(super) fn take(&mut self, told: bool) -> (u64, bool) {
        assert!(self.free() > 0, "a send queue is overrun");
        self.posted += 1;
        let signals = told || self.posted - self.signalled >= SIGNAL_EVERY;
        if signals {
            self.signalled = self.posted;
        }
        (self.posted, signals)
    }

    /// The work request of this id and all before it are complete.
    pub(super) fn complete(&mut self, id: u64) {
        self.completed = self.completed.max(id.min(self.posted));
    }

    /// Number of work requests so far; the id of the last one.
    #[cfg(test)]
    pub(super) fn posted(&self) -> u64 {
        self.posted
    }

    pub(super) fn completed(&self) -> u64 {
        self.completed
    }

    /// Whether a completion will be reported.
    pub(super) fn awaits(&self) -> bool {
        self.signalled > self.completed
    }

    /// Whether all work requests are known to be complete.
    pub(super) fn is_still(&self) -> bool {
        self.completed == self.posted
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::Rng;

    /// Any device: it completes requests in order, arbitrarily late, and reports only signalled
    /// ones.
    #[test]
    fn slots_are_never_overrun_and_always_come_back() {
        const ALL: u32 = 100;
        for seed in 0..100 {
            let rng = &mut Rng::new(seed);
            let mut slots = SendSlots::new(ALL);
            // Ids of signalled requests that the device has not reported yet.
            let mut told = std::collections::VecDeque::new();
            let mut in_queue = 0_u64;
            for _ in 0..5000 {
                if rng.chance(0.7) && slots.free() > 0 {
                    let (id, signals) = slots.take(rng.chance(0.05));
                    in_queue = id - slots.completed();
                    assert!(in_queue <= u64::from(ALL), "seed {seed}");
                    if signals {
                        told.push_back(id);
                    }
                } else if slots.free() == 0 || rng.chance(0.1) {
                    // Full: a completion must be outstanding.
                    assert!(slots.awaits() || slots.free() > 0, "seed {seed}");
                    if let Some(id) = told.pop_front() {
                        slots.complete(id);
                    }
                }
            }
            assert!(in_queue > 0);
            while let Some(id) = told.pop_front() {
                slots.complete(id);
            }
            assert!(!slots.awaits() && slots.posted() - slots.completed() < SIGNAL_EVERY);
        }
    }

    #[test]
    fn an_overrun_is_noticed() {
        let post = |count| {
            let mut slots = SendSlots::new(SIGNAL_EVERY as u32 + 1);
            for _ in 0..count {
                slots.take(false);
            }
        };
        post(SIGNAL_EVERY + 1);
        assert!(std::panic::catch_unwind(|| post(SIGNAL_EVERY + 2)).is_err());
    }
}
