//! The digest of the order, by which members detect in production that their orders differ.
//!
//! It covers (sequence number, sender, topic, length) of every ordered message, seeded by epoch and
//! subgroup. A checkpoint stands at every multiple of [`DIGEST_EVERY`]: the digest of all messages
//! before it. It detects mistakes, not attacks, so a fast mixing function is enough.

use crate::limits::{DIGEST_EVERY, DIGESTS_KEPT};

/// Running digest of the order of one epoch.
#[derive(Debug, Clone)]
pub(crate) struct Digest {
    value: u64,
    /// Checkpoints taken; number `c` stands at position `(c + 1) * DIGEST_EVERY`.
    taken: u64,
    /// The last checkpoints, by number modulo [`DIGESTS_KEPT`].
    kept: [u64; DIGESTS_KEPT as usize],
}

const K0: u64 = 0x9e37_79b9_7f4a_7c15;
const K1: u64 = 0xd6e8_feb8_6659_fd93;

const fn mix(a: u64, b: u64) -> u64 {
    let product = (a ^ K0) as u128 * (b ^ K1) as u128;
    (product >> 64) as u64 ^ product as u64
}

impl Digest {
    pub(crate) fn new(epoch: u64, subgroup: u32) -> Self {
        let value = mix(mix(K1, epoch), u64::from(subgroup));
        Self {
            value,
            taken: 0,
            kept: [0; DIGESTS_KEPT as usize],
        }
    }

    /// Adds the message at `seq`. The caller takes the checkpoints before it first.
    pub(crate) fn add(&mut self, seq: u64, sender: u16, topic: u64, len: u32) {
        let message = mix(seq, u64::from(sender) << 32 | u64::from(len));
        self.value = mix(self.value ^ message, topic);
    }

    /// The digest so far.
    pub(crate) fn value(&self) -> u64 {
        self.value
    }

    /// Whether a checkpoint is due when all messages below `position` have been added.
    pub(crate) fn is_due(&self, position: u64) -> bool {
        position / DIGEST_EVERY > self.taken
    }

    /// Exclusive end of the positions before the next checkpoint.
    pub(crate) fn due_at(&self) -> u64 {
        (self.taken + 1) * DIGEST_EVERY
    }

    /// Takes the checkpoints due at `position`, and calls `store` with the number and value of each
    /// that is kept.
    pub(crate) fn checkpoint(&mut self, position: u64, mut store: impl FnMut(u64, u64)) {
        let due = position / DIGEST_EVERY;
        // After a long run of nulls only the last few would be kept.
        for number in self.taken.max(due.saturating_sub(DIGESTS_KEPT))..due {
            self.kept[(number % DIGESTS_KEPT) as usize] = self.value;
            store(number, self.value);
        }
        self.taken = self.taken.max(due);
    }

    /// Number of checkpoints taken.
    pub(crate) fn taken(&self) -> u64 {
        self.taken
    }

    /// The value at a checkpoint, if it is still kept.
    pub(crate) fn at(&self, checkpoint: u64) -> Option<u64> {
        let kept = checkpoint < self.taken && checkpoint + DIGESTS_KEPT >= self.taken;
        kept.then(|| self.kept[(checkpoint % DIGESTS_KEPT) as usize])
    }

    /// The position at which a checkpoint stands.
    pub(crate) const fn position(checkpoint: u64) -> u64 {
        (checkpoint + 1) * DIGEST_EVERY
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest(messages: &[(u64, u16, u64, u32)]) -> u64 {
        let mut digest = Digest::new(1, 0);
        for &(seq, sender, topic, len) in messages {
            digest.add(seq, sender, topic, len);
        }
        digest.value()
    }

    #[test]
    fn every_field_and_the_order_count() {
        let base = digest(&[(0, 0, 7, 8), (1, 1, 7, 8)]);
        for other in [
            digest(&[(1, 1, 7, 8), (0, 0, 7, 8)]),
            digest(&[(0, 0, 7, 8), (2, 1, 7, 8)]),
            digest(&[(0, 0, 7, 8), (1, 0, 7, 8)]),
            digest(&[(0, 0, 7, 8), (1, 1, 6, 8)]),
            digest(&[(0, 0, 7, 8), (1, 1, 7, 9)]),
            digest(&[(0, 0, 7, 8)]),
        ] {
            assert_ne!(base, other);
        }
        assert_ne!(Digest::new(1, 0).value(), Digest::new(2, 0).value());
        assert_ne!(Digest::new(1, 0).value(), Digest::new(1, 1).value());
    }

    #[test]
    fn every_bit_of_every_field_counts() {
        let mut digests = vec![digest(&[(0, 0, 0, 0)])];
        for bit in 0..64 {
            digests.push(digest(&[(1 << bit, 0, 0, 0)]));
            digests.push(digest(&[(0, 0, 1 << bit, 0)]));
        }
        digests.extend((0..16).map(|bit| digest(&[(0, 1 << bit, 0, 0)])));
        digests.extend((0..32).map(|bit| digest(&[(0, 0, 0, 1 << bit)])));
        digests.extend((0..64).map(|bit| Digest::new(1 << bit, 0).value()));
        digests.extend((0..32).map(|bit| Digest::new(0, 1 << bit).value()));
        let count = digests.len();
        digests.sort_unstable();
        digests.dedup();
        assert_eq!(digests.len(), count);
    }

    #[test]
    fn the_last_eight_checkpoints_are_kept() {
        let mut digest = Digest::new(1, 0);
        let mut stored = Vec::new();
        assert_eq!(digest.taken(), 0);
        assert!(!digest.is_due(DIGEST_EVERY - 1) && digest.is_due(DIGEST_EVERY));
        digest.checkpoint(DIGEST_EVERY, |number, _| stored.push(number));
        digest.add(DIGEST_EVERY, 0, 0, 0);
        digest.checkpoint(20 * DIGEST_EVERY + 5, |number, _| stored.push(number));
        assert_eq!(digest.taken(), 20);
        assert_eq!(stored, [0, 12, 13, 14, 15, 16, 17, 18, 19]);
        assert_eq!((digest.at(11), digest.at(12)), (None, Some(digest.value())));
        assert_eq!((digest.at(19), digest.at(20)), (Some(digest.value()), None));
        assert_eq!(Digest::position(0), DIGEST_EVERY);
    }
}
