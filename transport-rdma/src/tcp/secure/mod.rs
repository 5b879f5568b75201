//! Encryption of a connection: frames that are sealed and opened in place.
//!
//! ```text
//!   0        2                         2 + len
//!   +--------+---- ... ----+-----------+
//!   | length | ciphertext  | 16: tag   |     length: of ciphertext and tag, little-endian
//!   +--------+---- ... ----+-----------+
//! ```
//! The two keys of a connection, one for each direction, come from its handshake (Noise, see
//! `hybrid`); frames are transport messages of that protocol: AES-256-GCM, whose nonce is the number
//! of the frame. The number is not sent. So a frame that was changed, repeated, left out or moved
//! does not open, nor does any behind it, and the link ends. What the plaintext means is known
//! elsewhere: a frame may hold any part of a stream, and one that is fetched to be sent holds
//! whole records.
//!
//! After [`FRAMES_PER_KEY`] frames each side derives the next key from the present one (Noise,
//! section 11.3), and forgets the present one.
//!
//! Everything here is a state machine over bytes: no socket, no clock. Nothing is copied but the
//! beginning of a frame whose end has not arrived.

mod direction_key;
mod opener;
mod sealer;

pub(crate) use direction_key::{FRAMES_PER_KEY, KEY_LEN};
pub(crate) use opener::{FrameError, Opener, sealed_len};
pub(crate) use sealer::{Sealer, Sealing};

/// Bytes before the ciphertext.
pub(crate) const PREFIX_LEN: usize = 2;

/// Bytes of a tag.
const TAG_LEN: usize = 16;

/// Most bytes of plaintext in a frame.
pub(crate) const PLAIN_LEN_MAX: usize = u16::MAX as usize - TAG_LEN;

/// Bytes by which a frame is longer than its plaintext.
pub(crate) const OVERHEAD: usize = PREFIX_LEN + TAG_LEN;

/// The encryption of one connection, as one of its sides has it.
#[derive(Debug)]
pub(crate) struct SecureChannel {
    pub(crate) sealer: Sealer,
    pub(crate) opener: Opener,
}

impl SecureChannel {
    /// Keys are used for so many frames.
    pub(crate) fn new(seals: &[u8; KEY_LEN], opens: &[u8; KEY_LEN], frames_per_key: u64) -> Self {
        Self {
            sealer: Sealer::new(seals, frames_per_key),
            opener: Opener::new(opens, frames_per_key),
        }
    }
}

#[cfg(test)]
mod tests;
