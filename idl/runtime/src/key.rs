//! Key hashes.

use std::fmt;

/// Identifies an instance of a topic: 16 bytes, equal for equal keys.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct KeyHash(pub [u8; 16]);

impl KeyHash {
    /// The hash of every sample of a type without a key.
    pub const NONE: Self = Self([0; 16]);
}

impl fmt::Debug for KeyHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeyHash(")?;
        for byte in self.0 {
            write!(f, "{byte:02x}")?;
        }
        f.write_str(")")
    }
}
