//! A message that is kept.

use core::fmt;
use std::sync::Arc;

use crate::subgroup::header::MessageKind;

/// Bytes before the payload of a record.
pub const HEAD_LEN: usize = 64;

/// Most bytes of a part of history, unless a single record takes more.
pub const PART_LEN_MAX: usize = 512 << 10;

/// A kept message in the form in which it is transferred. Clones share their bytes.
///
/// ```text
///   0  payload length   8  position   16  sequence   24  timestamp   32  writer   48  key hash
///   4  kind, 0          6  encapsulation             64  payload
/// ```
///
/// Little endian.
#[derive(Clone, PartialEq, Eq)]
pub struct Record(Arc<[u8]>);

/// What is known of a kept message beside its payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordMeta {
    /// Its position in the order of its subgroup; of an unordered message, the base of its epoch.
    pub position: u64,
    /// Its sequence number at its writer, from 1.
    pub sequence: u64,
    /// Source timestamp, nanoseconds since 1970.
    pub timestamp: i64,
    /// The writer's GUID, as the layer above has it.
    pub writer: [u8; 16],
    /// Key hash of its instance, as in the message's header.
    pub key: [u8; 16],
    /// The kind of message.
    pub kind: MessageKind,
    /// RTPS encapsulation identifier of the payload.
    pub encapsulation: u16,
}

/// A place in the history of a topic: after this record. It does not depend on the donor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cursor {
    /// Position of the record.
    pub position: u64,
    /// Its writer.
    pub writer: [u8; 16],
    /// Its sequence number.
    pub sequence: u64,
}

impl Record {
    /// Copies a message. Its payload has less than 4 GiB.
    pub fn new(meta: &RecordMeta, payload: &[u8]) -> Self {
        let mut head = [0; HEAD_LEN];
        head[0..4].copy_from_slice(&(payload.len() as u32).to_le_bytes());
        head[4] = meta.kind as u8;
        head[6..8].copy_from_slice(&meta.encapsulation.to_le_bytes());
        head[8..16].copy_from_slice(&meta.position.to_le_bytes());
        head[16..24].copy_from_slice(&meta.sequence.to_le_bytes());
        head[24..32].copy_from_slice(&meta.timestamp.to_le_bytes());
        head[32..48].copy_from_slice(&meta.writer);
        head[48..64].copy_from_slice(&meta.key);
        // One allocation, as the length of the iterator is known.
        let mut bytes: Arc<[u8]> = core::iter::repeat_n(0, HEAD_LEN + payload.len()).collect();
        if let Some(bytes) = Arc::get_mut(&mut bytes) {
            bytes[..HEAD_LEN].copy_from_slice(&head);
            bytes[HEAD_LEN..].copy_from_slice(payload);
        }
        Self(bytes)
    }

    /// What is known of it beside its payload.
    pub fn meta(&self) -> RecordMeta {
        RecordMeta {
            position: self.position(),
            sequence: self.word(16),
            timestamp: self.word(24).cast_signed(),
            writer: self.bytes_at(32),
            key: self.bytes_at(48),
            kind: MessageKind::from_byte(self.0[4]).unwrap_or(MessageKind::Data),
            encapsulation: u16::from_le_bytes(self.bytes_at(6)),
        }
    }

    /// Its position.
    pub fn position(&self) -> u64 {
        self.word(8)
    }

    /// Its place in the history of its topic.
    pub fn cursor(&self) -> Cursor {
        Cursor {
            position: self.position(),
            writer: self.bytes_at(32),
            sequence: self.word(16),
        }
    }

    /// The payload.
    pub fn payload(&self) -> &[u8] {
        &self.0[HEAD_LEN..]
    }

    /// Head and payload, as [`read`](Self::read) takes them.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// Takes the first record off the bytes of a part. `None`, with the bytes as they were, if they do not
    /// begin with a whole record of a known kind. Control messages are not kept.
    pub fn read(bytes: &mut &[u8]) -> Option<Self> {
        let len = u32::from_le_bytes(*bytes.first_chunk()?);
        let len = HEAD_LEN.checked_add(usize::try_from(len).ok()?)?;
        let (record, rest) = bytes.split_at_checked(len)?;
        let kind = MessageKind::from_byte(record[4])?;
        if kind == MessageKind::Control || record[5] != 0 {
            return None;
        }
        *bytes = rest;
        Some(Self(record.into()))
    }

    /// The same record at another position.
    pub(super) fn at_position(&self, position: u64) -> Self {
        Self::new(
            &RecordMeta {
                position,
                ..self.meta()
            },
            self.payload(),
        )
    }

    fn word(&self, at: usize) -> u64 {
        u64::from_le_bytes(self.bytes_at(at))
    }

    /// `at + N` is at most `HEAD_LEN`, which each record has.
    fn bytes_at<const N: usize>(&self, at: usize) -> [u8; N] {
        self.0[at..].first_chunk().copied().unwrap_or([0; N])
    }
}

impl fmt::Debug for Record {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Record")
            .field("meta", &self.meta())
            .field("payload", &self.payload().len())
            .finish()
    }
}

#[cfg(test)]
impl Record {
    /// A sample of 8 bytes.
    pub(super) fn test(writer: u8, sequence: u64, key: u8, position: u64) -> Self {
        Self::of_kind(MessageKind::Data, writer, sequence, key, position)
    }

    pub(super) fn of_kind(
        kind: MessageKind,
        writer: u8,
        sequence: u64,
        key: u8,
        position: u64,
    ) -> Self {
        let meta = RecordMeta {
            position,
            sequence,
            timestamp: -7,
            writer: [writer; 16],
            key: [key; 16],
            kind,
            encapsulation: 0x0700,
        };
        Self::new(&meta, &sequence.to_le_bytes())
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_read_as_it_was_written() {
        let first = Record::test(1, 2, 3, 4);
        let second = Record::of_kind(MessageKind::DisposeUnregister, 9, u64::MAX, 7, u64::MAX);
        let bytes = [first.bytes(), second.bytes()].concat();
        let mut rest = &bytes[..];
        assert_eq!(Record::read(&mut rest).as_ref(), Some(&first));
        let read = Record::read(&mut rest).unwrap();
        assert_eq!(read.meta(), second.meta());
        assert_eq!(read.payload(), second.payload());
        assert!(rest.is_empty());
        assert_eq!(Record::read(&mut rest), None);
    }

    #[test]
    fn what_is_no_whole_record_is_not_read() {
        let record = Record::test(1, 2, 3, 4);
        for len in 0..record.bytes().len() {
            let mut cut = &record.bytes()[..len];
            assert_eq!(Record::read(&mut cut), None);
            assert_eq!(cut.len(), len);
        }
        for (at, value) in [(0, 0xff), (3, 0xff), (4, 0), (4, 5), (4, 6), (5, 1)] {
            let mut bytes = record.bytes().to_vec();
            bytes[at] = value;
            assert_eq!(Record::read(&mut &bytes[..]), None, "byte {at}");
        }
    }
}
