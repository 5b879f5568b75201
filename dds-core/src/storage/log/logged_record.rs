//! A record of a log, as it goes from one log to another.

use super::super::record::Record;

/// Bytes before the [`Record`] in [`LoggedRecord::write`].
const PREFIX_LEN: usize = 24;

/// A record with what its log says of it. It is the same in all logs of its topic.
///
/// ```text
///   0  generation   8  epoch   16  chain   20  1: is_after_gap   21  0, 0, 0   24  record
/// ```
///
/// Little endian.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoggedRecord {
    /// Number of the generation in which it was logged.
    pub generation: u64,
    /// View in which it was delivered.
    pub epoch: u64,
    /// Its chain value.
    pub chain: u32,
    /// Whether records between it and the one before were removed by compaction: its chain value does
    /// not follow that of the one before.
    pub is_after_gap: bool,
    /// The record.
    pub record: Record,
}

impl LoggedRecord {
    /// Its bytes, as [`read`](Self::read) takes them.
    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.byte_len());
        self.write(&mut bytes);
        bytes
    }

    /// Appends its bytes.
    pub fn write(&self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(&self.generation.to_le_bytes());
        bytes.extend_from_slice(&self.epoch.to_le_bytes());
        bytes.extend_from_slice(&self.chain.to_le_bytes());
        bytes.extend_from_slice(&[u8::from(self.is_after_gap), 0, 0, 0]);
        bytes.extend_from_slice(self.record.bytes());
    }

    /// Takes the first record off bytes. `None`, with the bytes as they were, if they do not begin with a
    /// whole one.
    pub fn read(bytes: &mut &[u8]) -> Option<Self> {
        let (prefix, mut rest) = bytes.split_first_chunk::<PREFIX_LEN>()?;
        let (words, _) = prefix.as_chunks::<8>();
        let [_, _, _, _, is_after_gap @ (0 | 1), 0, 0, 0] = words[2] else {
            return None;
        };
        let record = Record::read(&mut rest)?;
        let [a, b, c, d, ..] = words[2];
        *bytes = rest;
        Some(Self {
            generation: u64::from_le_bytes(words[0]),
            epoch: u64::from_le_bytes(words[1]),
            chain: u32::from_le_bytes([a, b, c, d]),
            is_after_gap: is_after_gap == 1,
            record,
        })
    }

    /// Number of its bytes.
    pub fn byte_len(&self) -> usize {
        PREFIX_LEN + self.record.bytes().len()
    }

    /// The position after it.
    pub fn end(&self) -> u64 {
        self.record.position().saturating_add(1)
    }
}
