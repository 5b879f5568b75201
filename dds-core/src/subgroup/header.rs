//! The message header: 64 bytes, eight words, the same on every fabric.
//!
//! ```text
//!   word 0   message index + 1, 64 bits: a zeroed header is no message
//!   word 1   payload offset in granules of 16 bytes | length in bytes << 32
//!   word 2   kind | flags << 8 | encapsulation << 16 | writer << 32
//!   word 3   writer sequence number, from 1
//!   word 4   source timestamp, nanoseconds since 1970, signed
//!   word 5   low half of the topic key
//!   word 6-7 key hash, 16 bytes in memory order
//! ```

use crate::limits::{GRANULE, HEADER_LEN};

/// The meaning of a message for its instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum MessageKind {
    /// A sample.
    Data = 1,
    /// The instance is disposed of; the payload is the key.
    Dispose = 2,
    /// The writer gives the instance up; the payload is the key.
    Unregister = 3,
    /// Dispose and unregister at once (autodispose); the payload is the key.
    DisposeUnregister = 4,
    /// For the layer above, never for an application.
    Control = 5,
}

impl MessageKind {
    pub(crate) const fn from_byte(byte: u8) -> Option<Self> {
        Some(match byte {
            1 => Self::Data,
            2 => Self::Dispose,
            3 => Self::Unregister,
            4 => Self::DisposeUnregister,
            5 => Self::Control,
            _ => return None,
        })
    }
}

/// A decoded, checked header. Kind, flags, encapsulation and writer lie as in word 2, so that they
/// are read and written together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct Header {
    /// Index among the sender's messages, nulls included, from 0.
    pub index: u64,
    /// Byte offset in the sender's payload ring, a multiple of 16.
    pub offset: u64,
    /// Payload length in bytes.
    pub len: u32,
    /// The kind of message.
    pub kind: MessageKind,
    /// For the layer above; 0 today.
    pub flags: u8,
    /// RTPS encapsulation identifier of the payload.
    pub encapsulation: u16,
    /// The writer's number, unique within its participant.
    pub writer: u32,
    /// Sequence number of the message at its writer, from 1. Messages that the writer dropped for
    /// lack of room count too.
    pub writer_seq: u64,
    /// Source timestamp, nanoseconds since 1970.
    pub timestamp: i64,
    /// Low half of the topic's key.
    pub topic: u64,
    /// Key hash of the instance; zero for topics without a key.
    pub key_hash: [u8; 16],
}

/// Index of the word that holds the writer sequence number: it is filled in
/// last, by the publishing thread, in order.
pub(crate) const WRITER_SEQ_WORD: usize = 3;

pub(crate) const WORDS: usize = HEADER_LEN / 8;

impl Header {
    /// Header of a message of `len` bytes at `offset`, for tests.
    #[cfg(test)]
    pub(crate) const fn test(index: u64, offset: u64, len: u32) -> Self {
        Self {
            index,
            offset,
            len,
            kind: MessageKind::Control,
            flags: 0,
            encapsulation: 0,
            writer: 0,
            writer_seq: 0,
            timestamp: 0,
            topic: 0,
            key_hash: [0; 16],
        }
    }

    /// Word 1: payload offset in granules | length in bytes << 32.
    #[inline]
    pub(crate) const fn place(&self) -> u64 {
        self.offset / GRANULE as u64 | (self.len as u64) << 32
    }

    /// The writer's number, from word 2.
    pub(crate) const fn writer_in(word: u64) -> u32 {
        (word >> 32) as u32
    }

    /// The eight words of the header.
    #[inline]
    pub fn to_words(&self) -> [u64; WORDS] {
        let key_hash = u128::from_le_bytes(self.key_hash);
        [
            self.index + 1,
            self.place(),
            self.kind as u64
                | u64::from(self.flags) << 8
                | u64::from(self.encapsulation) << 16
                | u64::from(self.writer) << 32,
            self.writer_seq,
            self.timestamp as u64,
            self.topic,
            key_hash as u64,
            (key_hash >> 64) as u64,
        ]
    }

    /// Decodes and checks words that came from a peer, for a ring of `ring_bytes`. `None` for an
    /// unknown kind, or for payload that does not lie inside the ring.
    pub fn from_words(words: &[u64; WORDS], ring_bytes: u64) -> Option<Self> {
        let offset = (words[1] & 0xffff_ffff) * GRANULE as u64;
        let len = (words[1] >> 32) as u32;
        // Both terms are far below 2^63: no overflow.
        if offset + u64::from(len) > ring_bytes {
            return None;
        }
        let mut key_hash = [0; 16];
        key_hash[..8].copy_from_slice(&words[6].to_le_bytes());
        key_hash[8..].copy_from_slice(&words[7].to_le_bytes());
        Some(Self {
            index: words[0].checked_sub(1)?,
            offset,
            len,
            kind: MessageKind::from_byte(words[2] as u8)?,
            flags: (words[2] >> 8) as u8,
            encapsulation: (words[2] >> 16) as u16,
            writer: Self::writer_in(words[2]),
            writer_seq: words[3],
            timestamp: words[4] as i64,
            topic: words[5],
            key_hash,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> Header {
        Header {
            index: 0x0102_0304_0506_0708,
            offset: 0x10 * 16,
            len: 0x21,
            kind: MessageKind::Dispose,
            flags: 0x31,
            encapsulation: 0x4142,
            writer: 0x5152_5354,
            writer_seq: 0x6162_6364_6566_6768,
            timestamp: -2,
            topic: 0x8182_8384_8586_8788,
            key_hash: core::array::from_fn(|i| 0x90 + i as u8),
        }
    }

    #[test]
    fn the_layout_is_fixed() {
        let text: Vec<String> = example()
            .to_words()
            .iter()
            .map(|word| format!("{word:016x}"))
            .collect();
        insta::assert_snapshot!(text.join("\n"), @r"
        0102030405060709
        0000002100000010
        5152535441423102
        6162636465666768
        fffffffffffffffe
        8182838485868788
        9796959493929190
        9f9e9d9c9b9a9998
        ");
        assert_eq!(WORDS * 8, HEADER_LEN);
    }

    #[test]
    fn decoding_inverts_encoding() {
        let header = example();
        assert_eq!(Header::from_words(&header.to_words(), 1024), Some(header));
    }

    #[test]
    fn invalid_words_are_refused() {
        let words = example().to_words();
        assert_eq!(
            Header::from_words(&words, 0x10 * 16 + 0x20),
            None,
            "payload past the end"
        );
        for kind in [0, 6, 255] {
            let mut bad = words;
            bad[2] = bad[2] & !0xff | kind;
            assert_eq!(Header::from_words(&bad, 1024), None, "kind {kind}");
        }
        let mut far = words;
        far[1] = u64::MAX;
        assert_eq!(
            Header::from_words(&far, u64::MAX / 4),
            Header::from_words(&far, u64::MAX / 4)
        );
        assert_eq!(Header::from_words(&far, 1 << 34), None);
    }
}
