//! Opens the frames of what is received.

use super::direction_key::{DirectionKey, KEY_LEN};
use super::{PREFIX_LEN, TAG_LEN};

/// Why bytes are not the next frame. Completes the sentence "it sent an encrypted frame ...".
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum FrameError {
    #[error("of {len} bytes, which is too short")]
    TooShort { len: usize },
    #[error(
        "that does not open (the {number}th): it was changed, repeated, left out or moved on its way"
    )]
    NotOpened { number: u64 },
}

/// Opens the frames of one direction, in whatever pieces they arrive.
#[derive(Debug)]
pub(crate) struct Opener {
    key: DirectionKey,
    /// The beginning of a frame.
    partial: Vec<u8>,
}

/// Number of bytes that follow the prefix of a frame.
pub(crate) fn sealed_len(prefix: [u8; PREFIX_LEN]) -> Result<usize, FrameError> {
    let len = usize::from(u16::from_le_bytes(prefix));
    match len > TAG_LEN {
        true => Ok(len),
        false => Err(FrameError::TooShort { len }),
    }
}

impl Opener {
    pub(crate) fn new(key: &[u8; KEY_LEN], frames_per_key: u64) -> Self {
        Self {
            key: DirectionKey::new(key, frames_per_key),
            // What is received allocates nothing later.
            partial: Vec::with_capacity(PREFIX_LEN + usize::from(u16::MAX)),
        }
    }

    /// Whether the stream stands between two frames.
    pub(crate) fn is_between_frames(&self) -> bool {
        self.partial.is_empty()
    }

    /// Opens the next frame, without its prefix, in place. After an error the opener must not be
    /// used again.
    pub(crate) fn open_one<'a>(&mut self, sealed: &'a mut [u8]) -> Result<&'a [u8], FrameError> {
        open(&mut self.key, sealed)
    }

    /// Opens the next bytes of the stream, whose contents are undefined afterwards, and passes
    /// the plaintext of each frame that is complete by now to `take`, until that returns false.
    /// After an error, or false, the opener must not be used again.
    pub(crate) fn open(
        &mut self,
        mut bytes: &mut [u8],
        mut take: impl FnMut(&[u8]) -> bool,
    ) -> Result<(), FrameError> {
        while !bytes.is_empty() {
            if self.partial.is_empty()
                && let Some(&prefix) = bytes.first_chunk()
                && let whole = PREFIX_LEN + sealed_len(prefix)?
                && whole <= bytes.len()
            {
                let (frame, rest) = bytes.split_at_mut(whole);
                if !take(open(&mut self.key, &mut frame[PREFIX_LEN..])?) {
                    return Ok(());
                }
                bytes = rest;
                continue;
            }
            let whole = match self.partial.first_chunk() {
                None => PREFIX_LEN,
                Some(&prefix) => PREFIX_LEN + sealed_len(prefix)?,
            };
            let lacks = whole - self.partial.len();
            let (piece, rest) = bytes.split_at_mut(lacks.min(bytes.len()));
            self.partial.extend_from_slice(piece);
            bytes = rest;
            if whole > PREFIX_LEN && self.partial.len() == whole {
                let goes_on = take(open(&mut self.key, &mut self.partial[PREFIX_LEN..])?);
                self.partial.clear();
                if !goes_on {
                    return Ok(());
                }
            }
        }
        Ok(())
    }
}

fn open<'a>(key: &mut DirectionKey, sealed: &'a mut [u8]) -> Result<&'a [u8], FrameError> {
    let number = key.number();
    let plain = key.open(sealed);
    let plain = plain.map(|plain| &*plain);
    plain.ok_or(FrameError::NotOpened { number })
}
