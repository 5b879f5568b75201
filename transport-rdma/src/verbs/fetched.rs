//! Which bytes of a row the device may still fetch.
//!
//! The device fetches a range when its work request is executed, so a word of a range may be
//! newer in the copy than when it was pushed. A short range is carried inline, with its bytes
//! at the time of posting. This is not done while a longer range in flight covers the same
//! words: that one may be fetched later and land earlier, and a word would fall (F2).

/// The bytes that the device may still fetch: one interval over all ranges in flight.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Fetched {
    from: usize,
    to: usize,
    /// Id of the last work request of these.
    until: u64,
}

impl Fetched {
    /// Work request `id` fetches this range; those up to `completed` are complete.
    pub(super) fn add(&mut self, at: usize, len: usize, id: u64, completed: u64) {
        if self.until <= completed {
            (self.from, self.to) = (at, at + len);
        }
        self.from = self.from.min(at);
        self.to = self.to.max(at + len);
        self.until = id;
    }

    /// Whether some of these bytes may still be fetched.
    pub(super) fn may_touch(&self, at: usize, len: usize, completed: u64) -> bool {
        self.until > completed && at < self.to && self.from < at + len
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A word of a short range must not be carried inline past a long range that was not
    /// fetched yet: the long one would land first, with a newer value.
    #[test]
    fn ranges_in_flight_are_known() {
        let mut fetched = Fetched::default();
        assert!(!fetched.may_touch(0, 64, 0), "nothing is");
        fetched.add(256, 512, 3, 0);
        assert!(fetched.may_touch(760, 8, 2) && fetched.may_touch(0, 264, 2));
        assert!(!fetched.may_touch(768, 8, 2) && !fetched.may_touch(0, 256, 2));
        assert!(!fetched.may_touch(760, 8, 3), "it is complete");
        fetched.add(1024, 8, 5, 2);
        assert!(fetched.may_touch(256, 8, 3), "both, as one");
        fetched.add(2048, 8, 9, 5);
        assert!(!fetched.may_touch(256, 8, 5), "of what is on its way only");
    }
}
