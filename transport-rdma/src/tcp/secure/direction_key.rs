//! The key of one direction of a connection, and the number of the next frame.

use ring::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, Tag, UnboundKey};
use zeroize::Zeroizing;

use super::TAG_LEN;

/// Bytes of a key.
pub(crate) const KEY_LEN: usize = 32;

/// Frames that are sealed with one key: with frames of at most 64 KiB, at most 64 GiB. AES-GCM
/// is used far beyond that elsewhere (TLS 1.3: 2^24.5 records of 16 KiB).
pub(crate) const FRAMES_PER_KEY: u64 = 1 << 20;

/// The number that is no frame's: the next key is made with it.
const REKEY_NUMBER: u64 = u64::MAX;

/// A key and a counter. Each number is used once with a key, as the counter only rises.
pub(super) struct DirectionKey {
    key: LessSafeKey,
    /// Number of the next frame.
    next: u64,
    frames_per_key: u64,
}

/// Omits the key.
impl core::fmt::Debug for DirectionKey {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("DirectionKey")
            .field("next", &self.next)
            .finish_non_exhaustive()
    }
}

impl DirectionKey {
    pub(super) fn new(key: &[u8; KEY_LEN], frames_per_key: u64) -> Self {
        Self {
            key: cipher(key),
            next: 0,
            frames_per_key,
        }
    }

    /// Number of the next frame.
    pub(super) fn number(&self) -> u64 {
        self.next
    }

    /// Encrypts the next frame in place, and returns its tag.
    pub(super) fn seal(&mut self, plain: &mut [u8]) -> [u8; TAG_LEN] {
        let tag = seal(&self.key, self.next, plain);
        self.advance();
        tag
    }

    /// Checks and decrypts the next frame, which ends with its tag, in place; `None` if it is not
    /// that one, unchanged. After that, nothing may be opened any more.
    pub(super) fn open<'a>(&mut self, sealed: &'a mut [u8]) -> Option<&'a mut [u8]> {
        let nonce = nonce(self.next);
        let plain = self.key.open_in_place(nonce, Aad::empty(), sealed).ok()?;
        self.advance();
        Some(plain)
    }

    fn advance(&mut self) {
        self.next += 1;
        if self.next.is_multiple_of(self.frames_per_key) {
            let mut next_key = Zeroizing::new([0; KEY_LEN]);
            seal(&self.key, REKEY_NUMBER, &mut *next_key);
            self.key = cipher(&next_key);
        }
    }
}

fn cipher(key: &[u8; KEY_LEN]) -> LessSafeKey {
    LessSafeKey::new(UnboundKey::new(&AES_256_GCM, key).expect("a key of the right length"))
}

/// The nonce of a frame, as Noise has it for AES-GCM.
fn nonce(number: u64) -> Nonce {
    let mut bytes = [0; 12];
    bytes[4..].copy_from_slice(&number.to_be_bytes());
    Nonce::assume_unique_for_key(bytes)
}

fn seal(key: &LessSafeKey, number: u64, plain: &mut [u8]) -> [u8; TAG_LEN] {
    let tag: Tag = key
        .seal_in_place_separate_tag(nonce(number), Aad::empty(), plain)
        .expect("far shorter than AES-GCM allows");
    let mut bytes = [0; TAG_LEN];
    bytes.copy_from_slice(tag.as_ref());
    bytes
}
