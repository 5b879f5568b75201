//! Records of a stream: their format, and the errors of what is not one.
//!
//! ```text
//!   0        8       12     14     16                    16 + len
//!   +--------+-------+------+------+--- ... -------------+
//!   | offset |  len  | slot | kind |  len bytes of a row |     little-endian
//!   +--------+-------+------+------+--- ... -------------+
//! ```
//! A *slot* stands for a segment, from the record that opens it (with the key in place of
//! offset and length) to the one that shuts it; then it is free for another segment. A
//! wake-up has neither slot, offset nor bytes. A part of a message has bytes, of any
//! number, but neither slot nor offset. The final record of a stream that is closed on
//! purpose has none of them.

use crate::fabric::{FABRIC_AREA, WakeReason};
use crate::station::event::MESSAGE_LEN_MAX;
use crate::station::segment::SegmentKey;

/// Bytes of a header.
pub(super) const HEADER_LEN: usize = 16;

/// Most bytes of a row in one record; a longer range takes several.
pub(super) const RECORD_LEN_MAX: usize = 1 << 16;

/// Most bytes of a message in one record, so that it holds up no push for long.
pub(super) const PART_LEN_MAX: usize = 1 << 14;

const WRITE: u16 = u16::from_le_bytes(*b"wr");
const RING_DATA: u16 = u16::from_le_bytes(*b"rd");
const RING_STABILITY: u16 = u16::from_le_bytes(*b"ra");
const RING_ROOM: u16 = u16::from_le_bytes(*b"rr");
const OPEN: u16 = u16::from_le_bytes(*b"op");
const SHUT: u16 = u16::from_le_bytes(*b"sh");
const PART: u16 = u16::from_le_bytes(*b"mp");
const LAST_PART: u16 = u16::from_le_bytes(*b"ml");
const BYE: u16 = u16::from_le_bytes(*b"by");

/// A valid header, as far as can be told without its segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Header {
    Write { slot: u16, at: usize, len: usize },
    Wake(WakeReason),
    Open { slot: u16, key: SegmentKey },
    Shut { slot: u16 },
    Part { len: usize, last: bool },
    Bye,
}

/// Why bytes are not a record. Completes the sentence "it sent a record ...".
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum RecordError {
    #[error("of an unknown kind ({0:#06x})")]
    Kind(u16),
    #[error("of {len} bytes at {at}, which are no whole words")]
    Unaligned { at: u64, len: u32 },
    #[error("of no bytes at {at}")]
    Empty { at: u64 },
    #[error("of {len} bytes, more than {RECORD_LEN_MAX}")]
    TooLong { len: u32 },
    #[error("of {len} bytes at {at}, outside its row of {row}")]
    Outside { at: usize, len: usize, row: usize },
    #[error("at {at}, in the part of its row that is the fabric's own")]
    FabricArea { at: u64 },
    #[error("of {len} bytes at {at}, which it cannot have")]
    Bytes { at: u64, len: u32 },
    #[error("in slot {slot} that belongs in none")]
    InSlot { slot: u16 },
    #[error("of a message of more than {MESSAGE_LEN_MAX} bytes")]
    LongMessage,
    #[error("for slot {slot}, which is no segment")]
    NotOpen { slot: u16 },
    #[error("that opens slot {slot}, which is a segment already")]
    OpenTwice { slot: u16 },
    #[error("that opens segment {index} of epoch {epoch}, of which it is no member")]
    NoMember { epoch: u64, index: u32 },
}

impl Header {
    pub(super) fn encode(self) -> [u8; HEADER_LEN] {
        let (at, len, slot, kind) = match self {
            Self::Write { slot, at, len } => (at as u64, len as u32, slot, WRITE),
            Self::Wake(WakeReason::Data) => (0, 0, 0, RING_DATA),
            Self::Wake(WakeReason::Stability) => (0, 0, 0, RING_STABILITY),
            Self::Wake(WakeReason::Room) => (0, 0, 0, RING_ROOM),
            Self::Open { slot, key } => (key.epoch, key.index, slot, OPEN),
            Self::Shut { slot } => (0, 0, slot, SHUT),
            Self::Part { len, last: false } => (0, len as u32, 0, PART),
            Self::Part { len, last: true } => (0, len as u32, 0, LAST_PART),
            Self::Bye => (0, 0, 0, BYE),
        };
        let mut bytes = [0; HEADER_LEN];
        bytes[..8].copy_from_slice(&at.to_le_bytes());
        bytes[8..12].copy_from_slice(&len.to_le_bytes());
        bytes[12..14].copy_from_slice(&slot.to_le_bytes());
        bytes[14..].copy_from_slice(&kind.to_le_bytes());
        bytes
    }

    pub(super) fn decode(bytes: [u8; HEADER_LEN]) -> Result<Self, RecordError> {
        let whole = u128::from_le_bytes(bytes);
        let (at, len) = (whole as u64, (whole >> 64) as u32);
        let (slot, kind) = ((whole >> 96) as u16, (whole >> 112) as u16);
        let header = match kind {
            WRITE => return Self::write(slot, at, len),
            OPEN => {
                let key = SegmentKey {
                    epoch: at,
                    index: len,
                };
                return Ok(Self::Open { slot, key });
            }
            SHUT => Self::Shut { slot },
            PART | LAST_PART => return Self::part(slot, at, len, kind == LAST_PART),
            BYE => Self::Bye,
            RING_DATA => Self::Wake(WakeReason::Data),
            RING_STABILITY => Self::Wake(WakeReason::Stability),
            RING_ROOM => Self::Wake(WakeReason::Room),
            _ => return Err(RecordError::Kind(kind)),
        };
        if (at, len) != (0, 0) {
            return Err(RecordError::Bytes { at, len });
        }
        if !matches!(header, Self::Shut { .. }) && slot != 0 {
            return Err(RecordError::InSlot { slot });
        }
        Ok(header)
    }

    fn part(slot: u16, at: u64, len: u32, last: bool) -> Result<Self, RecordError> {
        if slot != 0 {
            return Err(RecordError::InSlot { slot });
        }
        if at != 0 || len as usize > PART_LEN_MAX {
            return Err(RecordError::Bytes { at, len });
        }
        let len = len as usize;
        Ok(Self::Part { len, last })
    }

    fn write(slot: u16, at: u64, len: u32) -> Result<Self, RecordError> {
        if len == 0 {
            return Err(RecordError::Empty { at });
        }
        if len as usize > RECORD_LEN_MAX {
            return Err(RecordError::TooLong { len });
        }
        if !at.is_multiple_of(8) || !len.is_multiple_of(8) {
            return Err(RecordError::Unaligned { at, len });
        }
        if at < FABRIC_AREA as u64 {
            return Err(RecordError::FabricArea { at });
        }
        Ok(Self::Write {
            slot,
            at: at as usize,
            len: len as usize,
        })
    }
}

fn kind(header: &[u8; HEADER_LEN]) -> u16 {
    u16::from_le_bytes([header[14], header[15]])
}

/// Whether a header is one of rows, or of an unknown kind.
pub(super) fn is_of_rows(header: &[u8; HEADER_LEN]) -> bool {
    !matches!(kind(header), PART | LAST_PART | BYE)
}

/// Number of bytes that follow a header of rows.
pub(super) fn body_len(header: &[u8; HEADER_LEN]) -> usize {
    let len = [header[8], header[9], header[10], header[11]];
    match kind(header) {
        WRITE => u32::from_le_bytes(len) as usize,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(at: u64, len: u32, slot: u16, kind: u16) -> [u8; HEADER_LEN] {
        let high = u128::from(kind) << 16 | u128::from(slot);
        let whole = high << 96 | u128::from(len) << 64 | u128::from(at);
        whole.to_le_bytes()
    }

    #[test]
    fn invalid_headers_are_refused_by_name() {
        let check = |at, len, slot, kind, expected: RecordError| {
            let decoded = Header::decode(header(at, len, slot, kind));
            assert_eq!(decoded, Err(expected));
        };
        use RecordError as E;
        check(512, 8, 1, 0, E::Kind(0));
        check(512, 8, 1, WRITE + 1, E::Kind(WRITE + 1));
        check(512, 0, 1, WRITE, E::Empty { at: 512 });
        check(512, 12, 1, WRITE, E::Unaligned { at: 512, len: 12 });
        check(513, 8, 1, WRITE, E::Unaligned { at: 513, len: 8 });
        check(512, 1 << 17, 1, WRITE, E::TooLong { len: 1 << 17 });
        check(512, u32::MAX, 1, WRITE, E::TooLong { len: u32::MAX });
        check(0, 8, 1, WRITE, E::FabricArea { at: 0 });
        check(248, 16, 1, WRITE, E::FabricArea { at: 248 });
        check(0, 8, 0, RING_DATA, E::Bytes { at: 0, len: 8 });
        check(8, 0, 0, RING_STABILITY, E::Bytes { at: 8, len: 0 });
        check(8, 0, 1, SHUT, E::Bytes { at: 8, len: 0 });
        check(0, 0, 1, RING_DATA, E::InSlot { slot: 1 });
        check(0, 0, 1, BYE, E::InSlot { slot: 1 });
        check(0, 8, 1, LAST_PART, E::InSlot { slot: 1 });
        check(8, 8, 0, PART, E::Bytes { at: 8, len: 8 });
        let len = 1 + PART_LEN_MAX as u32;
        check(0, len, 0, PART, E::Bytes { at: 0, len });
    }

    #[test]
    fn headers_are_decoded_as_they_were_encoded() {
        let (epoch, index) = (u64::MAX, u32::MAX);
        for header in [
            Header::Write {
                slot: u16::MAX,
                at: FABRIC_AREA,
                len: RECORD_LEN_MAX,
            },
            Header::Wake(WakeReason::Room),
            Header::Wake(WakeReason::Stability),
            Header::Wake(WakeReason::Data),
            Header::Open {
                slot: 7,
                key: SegmentKey { epoch, index },
            },
            Header::Shut { slot: 7 },
            Header::Part {
                len: 7,
                last: false,
            },
            Header::Part {
                len: PART_LEN_MAX,
                last: true,
            },
            Header::Bye,
        ] {
            assert_eq!(Header::decode(header.encode()), Ok(header));
        }
    }
}
