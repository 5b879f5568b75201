//! The bytes of segment files.
//!
//! A segment has a head of 96 bytes, and records after it without gaps:
//!
//! ```text
//!    0  "SPDLSEGM"          8  version     12  CRC32C of all the others, begun with the log's id
//!   16  log id             32  number of the segment, from 0        40  0
//!   48  the last record before it: 48 generation  56 epoch  64 end  72 chain  76 0
//!   80  records before it  88  0
//! ```
//!
//! A record has a head of 96 bytes, then the payload:
//!
//! ```text
//!    0  0xd5                1  kind, and 0x80 after a gap          2  encapsulation
//!    4  payload length      8  crc: CRC32C of 4..8, 24..96, kind, encapsulation, payload
//!   12  chain: CRC32C of the chain of the record before, crc
//!   16  head crc: CRC32C of 0..16 and 20..96, begun with the log's id
//!   20  offset in this file below which all was synced when it was written, at most 2^32 - 1
//!   24  generation   32  epoch   40  position   48  sequence   56  timestamp
//!   64  writer       80  key hash                              96  payload
//! ```
//!
//! Little endian. `crc` and `chain` are the same in all logs of a topic. As the head's CRC begins with
//! the log's id, bytes of another log in a payload are not taken for a record of this one.

use super::super::record::{Record, RecordMeta};
use super::super::roster::LogId;
use super::topic_log::LastRecord;
use crate::subgroup::header::MessageKind;

/// Bytes of a segment before its first record.
pub(super) const SEGMENT_HEAD_LEN: usize = 96;
/// Bytes of a record before its payload.
pub(super) const RECORD_HEAD_LEN: usize = 96;

const SEGMENT_MAGIC: [u8; 8] = *b"SPDLSEGM";
const SEGMENT_VERSION: u32 = 1;
/// The first byte of a record.
pub(super) const RECORD_MAGIC: u8 = 0xd5;
const AFTER_GAP: u8 = 0x80;

/// The head of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SegmentHead {
    pub(super) log: LogId,
    /// Segments before it since the log began.
    pub(super) number: u64,
    /// The last record before it.
    pub(super) before: LastRecord,
    /// Records before it.
    pub(super) records: u64,
}

impl SegmentHead {
    pub(super) fn bytes(&self) -> [u8; SEGMENT_HEAD_LEN] {
        let mut bytes = [0; SEGMENT_HEAD_LEN];
        bytes[0..8].copy_from_slice(&SEGMENT_MAGIC);
        bytes[8..12].copy_from_slice(&SEGMENT_VERSION.to_le_bytes());
        bytes[16..32].copy_from_slice(&self.log.0.to_le_bytes());
        bytes[32..40].copy_from_slice(&self.number.to_le_bytes());
        bytes[48..56].copy_from_slice(&self.before.generation.to_le_bytes());
        bytes[56..64].copy_from_slice(&self.before.epoch.to_le_bytes());
        bytes[64..72].copy_from_slice(&self.before.end.to_le_bytes());
        bytes[72..76].copy_from_slice(&self.before.chain.to_le_bytes());
        bytes[80..88].copy_from_slice(&self.records.to_le_bytes());
        let crc = salted(self.log, &[&bytes[..12], &bytes[16..]]);
        bytes[12..16].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    pub(super) fn read(log: LogId, bytes: &[u8; SEGMENT_HEAD_LEN]) -> Option<Self> {
        let head = Self {
            log: LogId(u128::from_le_bytes(at(bytes, 16))),
            number: u64::from_le_bytes(at(bytes, 32)),
            before: LastRecord {
                generation: u64::from_le_bytes(at(bytes, 48)),
                epoch: u64::from_le_bytes(at(bytes, 56)),
                end: u64::from_le_bytes(at(bytes, 64)),
                chain: u32::from_le_bytes(at(bytes, 72)),
            },
            records: u64::from_le_bytes(at(bytes, 80)),
        };
        (head.log == log && head.bytes() == *bytes).then_some(head)
    }
}

/// The head of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RecordHead {
    pub(super) meta: RecordMeta,
    pub(super) len: u32,
    pub(super) crc: u32,
    pub(super) chain: u32,
    pub(super) synced: u32,
    pub(super) generation: u64,
    pub(super) epoch: u64,
    pub(super) is_after_gap: bool,
}

impl RecordHead {
    /// The head of a message. `len` of its payload is less than 4 GiB.
    pub(super) fn new(generation: u64, epoch: u64, meta: &RecordMeta, payload: &[u8]) -> Self {
        let mut head = Self {
            meta: *meta,
            len: payload.len() as u32,
            crc: 0,
            chain: 0,
            synced: 0,
            generation,
            epoch,
            is_after_gap: false,
        };
        head.crc = head.crc_of(payload);
        head
    }

    /// Bytes of the record, its payload included.
    pub(super) fn record_len(&self) -> u64 {
        RECORD_HEAD_LEN as u64 + u64::from(self.len)
    }

    /// What it leaves as the last record.
    pub(super) fn as_last(&self) -> LastRecord {
        LastRecord {
            generation: self.generation,
            epoch: self.epoch,
            end: self.meta.position.saturating_add(1),
            chain: self.chain,
        }
    }

    /// Whether the payload is the one that was written.
    pub(super) fn has_payload(&self, payload: &[u8]) -> bool {
        self.crc == self.crc_of(payload)
    }

    fn crc_of(&self, payload: &[u8]) -> u32 {
        let bytes = self.plain_bytes();
        let mut crc = crc32c::crc32c(&bytes[4..8]);
        crc = crc32c::crc32c_append(crc, &bytes[24..]);
        crc = crc32c::crc32c_append(crc, &[self.meta.kind as u8, bytes[2], bytes[3]]);
        crc32c::crc32c_append(crc, payload)
    }

    pub(super) fn bytes(&self, log: LogId) -> [u8; RECORD_HEAD_LEN] {
        let mut bytes = self.plain_bytes();
        let crc = salted(log, &[&bytes[..16], &bytes[20..]]);
        bytes[16..20].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// Without the CRC of the head.
    fn plain_bytes(&self) -> [u8; RECORD_HEAD_LEN] {
        let mut bytes = [0; RECORD_HEAD_LEN];
        bytes[0] = RECORD_MAGIC;
        bytes[1] = self.meta.kind as u8 | if self.is_after_gap { AFTER_GAP } else { 0 };
        bytes[2..4].copy_from_slice(&self.meta.encapsulation.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.len.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.crc.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.chain.to_le_bytes());
        bytes[20..24].copy_from_slice(&self.synced.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.generation.to_le_bytes());
        bytes[32..40].copy_from_slice(&self.epoch.to_le_bytes());
        bytes[40..48].copy_from_slice(&self.meta.position.to_le_bytes());
        bytes[48..56].copy_from_slice(&self.meta.sequence.to_le_bytes());
        bytes[56..64].copy_from_slice(&self.meta.timestamp.to_le_bytes());
        bytes[64..80].copy_from_slice(&self.meta.writer);
        bytes[80..96].copy_from_slice(&self.meta.key);
        bytes
    }

    /// `None` if its CRC does not match.
    pub(super) fn read(log: LogId, bytes: &[u8; RECORD_HEAD_LEN]) -> Option<Self> {
        if bytes[0] != RECORD_MAGIC {
            return None;
        }
        let kind = MessageKind::from_byte(bytes[1] & !AFTER_GAP)?;
        let crc = u32::from_le_bytes(at(bytes, 16));
        if kind == MessageKind::Control || crc != salted(log, &[&bytes[..16], &bytes[20..]]) {
            return None;
        }
        Some(Self {
            meta: RecordMeta {
                position: u64::from_le_bytes(at(bytes, 40)),
                sequence: u64::from_le_bytes(at(bytes, 48)),
                timestamp: i64::from_le_bytes(at(bytes, 56)),
                writer: at(bytes, 64),
                key: at(bytes, 80),
                kind,
                encapsulation: u16::from_le_bytes(at(bytes, 2)),
            },
            len: u32::from_le_bytes(at(bytes, 4)),
            crc: u32::from_le_bytes(at(bytes, 8)),
            chain: u32::from_le_bytes(at(bytes, 12)),
            synced: u32::from_le_bytes(at(bytes, 20)),
            generation: u64::from_le_bytes(at(bytes, 24)),
            epoch: u64::from_le_bytes(at(bytes, 32)),
            is_after_gap: bytes[1] & AFTER_GAP != 0,
        })
    }

    pub(super) fn record(&self, payload: &[u8]) -> Record {
        Record::new(&self.meta, payload)
    }
}

/// The chain value of a record, by that of the one before.
pub(super) fn chain(before: u32, crc: u32) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&before.to_le_bytes()), &crc.to_le_bytes())
}

fn salted(log: LogId, parts: &[&[u8]]) -> u32 {
    let salt = crc32c::crc32c(&log.0.to_le_bytes());
    parts
        .iter()
        .fold(salt, |crc, part| crc32c::crc32c_append(crc, part))
}

/// `from + N` is within the bytes wherever this is called.
fn at<const N: usize>(bytes: &[u8], from: usize) -> [u8; N] {
    bytes[from..].first_chunk().copied().unwrap_or([0; N])
}
