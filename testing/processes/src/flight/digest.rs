//! A 64-bit digest (FNV-1a): equal digests show equal samples in equal order.

/// The digest of the bytes folded in so far, in that order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Digest(u64);

impl Digest {
    pub(super) const fn new() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }

    pub(super) fn fold(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }

    /// The digest of two digests, in this order.
    pub(super) fn combined(mut self, other: Self) -> Self {
        self.fold(&other.0.to_le_bytes());
        self
    }

    pub(super) fn value(self) -> u64 {
        self.0
    }

    pub(super) fn hex(self) -> String {
        format!("{:016x}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_digest_is_fnv_1a() {
        let mut digest = Digest::new();
        digest.fold(b"foobar");
        assert_eq!(digest.hex(), "85944171f73967e8");
    }

    #[test]
    fn the_order_changes_the_digest() {
        let (mut a, mut b) = (Digest::new(), Digest::new());
        a.fold(b"a");
        b.fold(b"b");
        assert_ne!(a.combined(b), b.combined(a));
    }
}
