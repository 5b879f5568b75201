//! Records, as they stand in a stream, and what is none.
//!
//! ```text
//!   0        8       12       16                    16 + len
//!   +--------+-------+--------+--- ... -------------+
//!   | offset |  len  |  kind  |  len bytes of a row |     little-endian
//!   +--------+-------+--------+--- ... -------------+
//! ```
//! A ring has neither offset nor bytes.

use crate::fabric::{FABRIC_AREA, Ring};

/// Bytes before those of the row.
pub(super) const HEADER_LEN: usize = 16;

/// Most bytes of a row in one record; longer ranges go in several.
pub(super) const RECORD_LEN_MAX: usize = 1 << 16;

const WRITE: u32 = u32::from_le_bytes(*b"writ");
const RING_DATA: u32 = u32::from_le_bytes(*b"data");
const RING_ACKS: u32 = u32::from_le_bytes(*b"acks");

/// A header that makes sense for the row it was checked against.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Header {
    Write { at: usize, len: usize },
    Ring(Ring),
}

/// Why some bytes are no record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum RecordError {
    #[error("of an unknown kind ({0:#010x})")]
    Kind(u32),
    #[error("of {len} bytes at {at}, which are no whole words")]
    Unaligned { at: u64, len: u32 },
    #[error("of no bytes at {at}")]
    Empty { at: u64 },
    #[error("of {len} bytes, more than {RECORD_LEN_MAX}")]
    TooLong { len: u32 },
    #[error("of {len} bytes at {at}, outside its row of {row}")]
    Outside { at: u64, len: u32, row: usize },
    #[error("at {at}, in the part of its row that is the fabric's own")]
    FabricArea { at: u64 },
    #[error("that rings and has {len} bytes at {at}")]
    RingWithBytes { at: u64, len: u32 },
}

impl Header {
    pub(super) fn encode(self) -> [u8; HEADER_LEN] {
        let (at, len, kind) = match self {
            Self::Write { at, len } => (at as u64, len as u32, WRITE),
            Self::Ring(Ring::Data) => (0, 0, RING_DATA),
            Self::Ring(Ring::Acks) => (0, 0, RING_ACKS),
        };
        let mut bytes = [0; HEADER_LEN];
        bytes[..8].copy_from_slice(&at.to_le_bytes());
        bytes[8..12].copy_from_slice(&len.to_le_bytes());
        bytes[12..].copy_from_slice(&kind.to_le_bytes());
        bytes
    }

    pub(super) fn decode(bytes: [u8; HEADER_LEN], row: usize) -> Result<Self, RecordError> {
        let whole = u128::from_le_bytes(bytes);
        let (at, len, kind) = (whole as u64, (whole >> 64) as u32, (whole >> 96) as u32);
        let ring = match kind {
            WRITE => return Self::write(at, len, row),
            RING_DATA => Ring::Data,
            RING_ACKS => Ring::Acks,
            _ => return Err(RecordError::Kind(kind)),
        };
        if (at, len) != (0, 0) {
            return Err(RecordError::RingWithBytes { at, len });
        }
        Ok(Self::Ring(ring))
    }

    fn write(at: u64, len: u32, row: usize) -> Result<Self, RecordError> {
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
        let end = at.checked_add(len.into());
        if end.is_none_or(|end| end > row as u64) {
            return Err(RecordError::Outside { at, len, row });
        }
        Ok(Self::Write {
            at: at as usize,
            len: len as usize,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROW: usize = 4096;

    fn header(at: u64, len: u32, kind: u32) -> [u8; HEADER_LEN] {
        let whole = u128::from(kind) << 96 | u128::from(len) << 64 | u128::from(at);
        whole.to_le_bytes()
    }

    #[test]
    fn headers_that_make_no_sense_are_refused_by_name() {
        let check = |at, len, kind, expected: RecordError| {
            let decoded = Header::decode(header(at, len, kind), ROW);
            assert_eq!(decoded, Err(expected));
        };
        use RecordError as E;
        let row = ROW;
        check(512, 8, 0, E::Kind(0));
        check(512, 8, WRITE + 1, E::Kind(WRITE + 1));
        check(512, 0, WRITE, E::Empty { at: 512 });
        check(512, 12, WRITE, E::Unaligned { at: 512, len: 12 });
        check(513, 8, WRITE, E::Unaligned { at: 513, len: 8 });
        check(512, 1 << 17, WRITE, E::TooLong { len: 1 << 17 });
        check(512, u32::MAX, WRITE, E::TooLong { len: u32::MAX });
        check(
            4096,
            8,
            WRITE,
            E::Outside {
                at: 4096,
                len: 8,
                row,
            },
        );
        check(
            4088,
            16,
            WRITE,
            E::Outside {
                at: 4088,
                len: 16,
                row,
            },
        );
        let at = u64::MAX - 7;
        check(at, 16, WRITE, E::Outside { at, len: 16, row });
        check(0, 8, WRITE, E::FabricArea { at: 0 });
        check(248, 16, WRITE, E::FabricArea { at: 248 });
        check(0, 8, RING_DATA, E::RingWithBytes { at: 0, len: 8 });
        check(8, 0, RING_ACKS, E::RingWithBytes { at: 8, len: 0 });
    }

    #[test]
    fn headers_are_decoded_as_they_were_encoded() {
        let (at, len) = (FABRIC_AREA, ROW - FABRIC_AREA);
        for header in [
            Header::Write { at, len },
            Header::Write {
                at: ROW - 8,
                len: 8,
            },
            Header::Ring(Ring::Acks),
            Header::Ring(Ring::Data),
        ] {
            assert_eq!(Header::decode(header.encode(), ROW), Ok(header));
        }
    }
}
