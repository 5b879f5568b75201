//! Outcome a device may still fetch from a row.
//!
//! Ranges are fetched by the device, when it is their turn, so a word of a range may be
//! newer in the copy than when it was pushed. A short range is carried inline instead, as
//! it is when it is posted: but not while a longer one is on its way that covers the same
//! words, which may be fetched later, and land earlier. Else a word would fall (F2).

/// Where the device may still fetch from: all ranges that it fetches, as one.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Fetched {
    from: usize,
    to: usize,
    /// The last of their work requests.
    until: u64,
}

impl Fetched {
    /// A range is fetched by the work request `id`; those up to `completed` are complete.
    pub(super) fn add(&mut self, at: usize, len: usize, id: u64, completed: u64) {
        if self.until <= completed {
            (self.from, self.to) = (at, at + len);
        }
        self.from = self.from.min(at);
        self.to = self.to.max(at + len);
        self.until = id;
    }

    /// Whether some of these bytes may be fetched later than now.
    pub(super) fn may_touch(&self, at: usize, len: usize, completed: u64) -> bool {
        self.until > completed && at < self.to && self.from < at + len
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A word of a short range must not be carried inline past a long range that is not
    /// fetched yet: the long one would land first, with a newer value.
    #[test]
    fn what_may_still_be_fetched_is_known() {
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
