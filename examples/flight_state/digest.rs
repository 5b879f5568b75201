//! A 64-bit digest (FNV-1a) that each display computes for itself.

/// The digest of what has been folded in so far, in that order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Digest(u64);

impl Digest {
    pub(crate) const fn new() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }

    pub(crate) fn fold(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }

    /// The digest of two, in this order.
    pub(crate) fn combined(mut self, other: Self) -> Self {
        self.fold(&other.0.to_le_bytes());
        self
    }

    pub(crate) fn value(self) -> u64 {
        self.0
    }

    pub(crate) fn hex(self) -> String {
        format!("{:016x}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_fnv_1a() {
        let mut digest = Digest::new();
        digest.fold(b"foobar");
        assert_eq!(digest.hex(), "85944171f73967e8");
    }

    #[test]
    fn order_counts() {
        let (mut a, mut b) = (Digest::new(), Digest::new());
        a.fold(b"a");
        b.fold(b"b");
        assert_ne!(a.combined(b), b.combined(a));
    }
}
