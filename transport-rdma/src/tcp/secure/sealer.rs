//! Makes frames of what is sent.

use super::direction_key::{DirectionKey, KEY_LEN};
use super::{OVERHEAD, PLAIN_LEN_MAX, PREFIX_LEN, TAG_LEN};

/// Seals the frames of one direction.
#[derive(Debug)]
pub(crate) struct Sealer {
    key: DirectionKey,
}

impl Sealer {
    pub(crate) fn new(key: &[u8; KEY_LEN], frames_per_key: u64) -> Self {
        Self {
            key: DirectionKey::new(key, frames_per_key),
        }
    }

    /// Makes a frame of `stage[PREFIX_LEN..][..len]`, in place, and returns its length, which is
    /// greater by [`OVERHEAD`]. `len` is at most [`PLAIN_LEN_MAX`].
    pub(crate) fn seal(&mut self, stage: &mut [u8], len: usize) -> usize {
        debug_assert!(len <= PLAIN_LEN_MAX);
        let sealed_len = (len + TAG_LEN) as u16;
        stage[..PREFIX_LEN].copy_from_slice(&sealed_len.to_le_bytes());
        let (plain, rest) = stage[PREFIX_LEN..].split_at_mut(len);
        let tag = self.key.seal(plain);
        rest[..TAG_LEN].copy_from_slice(&tag);
        len + OVERHEAD
    }

    /// The frame of these bytes, at most [`PLAIN_LEN_MAX`].
    pub(crate) fn seal_copy(&mut self, plain: &[u8]) -> Vec<u8> {
        let mut frame = vec![0; OVERHEAD + plain.len()];
        frame[PREFIX_LEN..][..plain.len()].copy_from_slice(plain);
        self.seal(&mut frame, plain.len());
        frame
    }
}

/// What becomes of a stage before it is written.
#[derive(Debug)]
pub(crate) enum Sealing {
    /// It is written as it is.
    Plain,
    Sealed(Box<Sealer>),
    /// Nothing is written any more; the key is gone.
    Ended,
}

impl Sealing {
    /// Where plaintext begins in a stage of `len` bytes, and how much of it there may be: all of the
    /// stage without encryption; `None` if nothing is written any more.
    pub(crate) fn stage(&self, len: usize) -> Option<(usize, usize)> {
        match self {
            Self::Plain => Some((0, len)),
            Self::Sealed(_) => {
                let room = len.saturating_sub(OVERHEAD);
                Some((PREFIX_LEN, room.min(PLAIN_LEN_MAX)))
            }
            Self::Ended => None,
        }
    }

    /// Seals a stage whose plaintext ends at `to`; returns where what is written ends.
    pub(crate) fn seal(&mut self, stage: &mut [u8], to: usize) -> usize {
        match self {
            Self::Sealed(sealer) => sealer.seal(stage, to - PREFIX_LEN),
            Self::Plain | Self::Ended => to,
        }
    }
}
