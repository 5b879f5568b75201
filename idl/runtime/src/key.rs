//! Key hashes.

use std::fmt;

use md5::{Digest, Md5};

use crate::encapsulation::{ByteOrder, Representation};
use crate::encode::{Encoder, HashMembers};
use crate::error::CdrError;
use crate::primitive::Primitive;

/// Identifies an instance of a topic: 16 bytes, equal for equal keys.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct KeyHash(pub [u8; 16]);

impl KeyHash {
    /// The hash of every sample of a type without a key.
    pub const NONE: Self = Self([0; 16]);

    /// The hash of a key whose type has keys of more than 16 bytes; `key` is what [`KeyBytes`] has
    /// of it.
    pub fn of_long_key(key: &[u8]) -> Self {
        Self(Md5::digest(key).into())
    }
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

/// An encoder of the key members of a value in big endian XCDR2 that computes their hash,
/// without allocating.
#[derive(Debug)]
pub struct KeyHasher {
    sink: Sink,
    position: usize,
    origin: usize,
    depth: u8,
}

#[derive(Debug)]
enum Sink {
    Plain([u8; 16]),
    Digest(Opaque<Md5>),
}

/// A digest state with an opaque `Debug`.
struct Opaque<T>(T);

impl<T> fmt::Debug for Opaque<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("..")
    }
}

impl KeyHasher {
    /// For keys of at most `key_bytes_max` bytes, `None` without a bound. If that exceeds 16
    /// bytes, every key of the type is digested, also a shorter one.
    pub fn new(key_bytes_max: Option<usize>) -> Self {
        let sink = match key_bytes_max {
            Some(0..=16) => Sink::Plain([0; 16]),
            _ => Sink::Digest(Opaque(Md5::new())),
        };
        Self {
            sink,
            position: 0,
            origin: 0,
            depth: 0,
        }
    }

    /// The hash of the bytes written.
    pub fn finish(self) -> KeyHash {
        match self.sink {
            Sink::Plain(bytes) => KeyHash(bytes),
            Sink::Digest(digest) => KeyHash(digest.0.finalize().into()),
        }
    }
}

impl Encoder for KeyHasher {
    type Selection = HashMembers;
    const PATCHES: bool = false;

    fn representation(&self) -> Representation {
        Representation::Xcdr2
    }

    fn position(&self) -> usize {
        self.position
    }

    fn origin_mut(&mut self) -> &mut usize {
        &mut self.origin
    }

    fn depth_mut(&mut self) -> &mut u8 {
        &mut self.depth
    }

    fn bytes(&mut self, bytes: &[u8]) -> Result<(), CdrError> {
        match &mut self.sink {
            Sink::Plain(out) => {
                let end = self.position.saturating_add(bytes.len());
                if let Some(out) = out.get_mut(self.position..end) {
                    out.copy_from_slice(bytes);
                }
            }
            Sink::Digest(digest) => digest.0.update(bytes),
        }
        self.position += bytes.len();
        Ok(())
    }

    fn zeros(&mut self, count: usize) -> Result<(), CdrError> {
        self.bytes(&[0; 8][..count.min(8)])
    }

    fn primitives<P: Primitive>(&mut self, values: &[P]) -> Result<(), CdrError> {
        let mut buffer = [0; 16];
        for value in values {
            value.store(ByteOrder::Big, &mut buffer[..P::SIZE]);
            self.bytes(&buffer[..P::SIZE])?;
        }
        Ok(())
    }

    /// Never called: keys have no headers, and digested bytes cannot be replaced.
    fn patch<P: Primitive>(&mut self, _at: usize, _value: P) {}

    fn insert(&mut self, _at: usize, _count: usize) -> Result<(), CdrError> {
        Ok(())
    }
}

/// An encoder of the key members of a value in big endian XCDR2 that keeps the bytes: what a
/// [`KeyHasher`] makes the hash of. Of values of one type, the bytes are equal if and only if the
/// keys are, whereas the digests of two keys may be equal.
#[derive(Debug, Default)]
pub struct KeyBytes {
    bytes: Vec<u8>,
    origin: usize,
    depth: u8,
}

impl KeyBytes {
    /// Begins anew, in the same memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        (self.origin, self.depth) = (0, 0);
    }

    /// The bytes written.
    pub fn as_slice(&self) -> &[u8] {
        &self.bytes
    }
}

impl Encoder for KeyBytes {
    type Selection = HashMembers;
    const PATCHES: bool = false;

    fn representation(&self) -> Representation {
        Representation::Xcdr2
    }

    fn position(&self) -> usize {
        self.bytes.len()
    }

    fn origin_mut(&mut self) -> &mut usize {
        &mut self.origin
    }

    fn depth_mut(&mut self) -> &mut u8 {
        &mut self.depth
    }

    fn bytes(&mut self, bytes: &[u8]) -> Result<(), CdrError> {
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    fn zeros(&mut self, count: usize) -> Result<(), CdrError> {
        self.bytes(&[0; 8][..count.min(8)])
    }

    fn primitives<P: Primitive>(&mut self, values: &[P]) -> Result<(), CdrError> {
        let mut buffer = [0; 16];
        for value in values {
            value.store(ByteOrder::Big, &mut buffer[..P::SIZE]);
            self.bytes(&buffer[..P::SIZE])?;
        }
        Ok(())
    }

    /// Never called: keys have no headers.
    fn patch<P: Primitive>(&mut self, _at: usize, _value: P) {}

    fn insert(&mut self, _at: usize, _count: usize) -> Result<(), CdrError> {
        Ok(())
    }
}
