//! The journal of a display: an entry for each sample, written as soon as the sample is taken, so
//! that it outlives a display that is killed.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Where a display of a run keeps its journal.
pub(super) fn path(directory: &Path, display: u16) -> PathBuf {
    directory.join(format!("display-{display}.journal"))
}

/// A topic of the flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Topic {
    States,
    Alerts,
}

/// One sample, as a display took it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) topic: Topic,
    /// The feed that sent it.
    pub(super) feed: u16,
    /// The aircraft that it is about: its instance.
    pub(super) aircraft: u32,
    /// Sequence number of its writer, from 1.
    pub(super) number: u64,
    /// Position in the order of its topic.
    pub(super) position: u64,
    /// Digest of its fields and its publication handle.
    pub(super) digest: u64,
    /// Its source timestamp, nanoseconds since 1970.
    pub(super) sent_at_ns: i64,
    /// CLOCK_MONOTONIC when it was taken.
    pub(super) taken_at_ns: u64,
}

impl Entry {
    /// Whether it is the same sample at the same position, whenever it was taken.
    pub(super) fn is_same_as(&self, other: &Self) -> bool {
        let taken_at_ns = self.taken_at_ns;
        *self
            == Self {
                taken_at_ns,
                ..*other
            }
    }

    fn to_bytes(self) -> [u8; ENTRY_LEN] {
        let topic = u64::from(self.topic == Topic::Alerts);
        let first = u64::from(self.aircraft) << 32 | topic << 16 | u64::from(self.feed);
        let words = [
            first,
            self.number,
            self.position,
            self.digest,
            self.sent_at_ns.cast_unsigned(),
            self.taken_at_ns,
        ];
        let mut bytes = [0; ENTRY_LEN];
        for (to, word) in bytes.chunks_exact_mut(8).zip(words) {
            to.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    fn from_bytes(bytes: &[u8; ENTRY_LEN]) -> Self {
        let (words, _) = bytes.as_chunks();
        let word = |at: usize| u64::from_le_bytes(words[at]);
        Self {
            topic: match word(0) >> 16 & 1 {
                0 => Topic::States,
                _ => Topic::Alerts,
            },
            feed: word(0) as u16,
            aircraft: (word(0) >> 32) as u32,
            number: word(1),
            position: word(2),
            digest: word(3),
            sent_at_ns: word(4).cast_signed(),
            taken_at_ns: word(5),
        }
    }
}

/// A journal that is being written.
#[derive(Debug)]
pub(super) struct Journal {
    file: File,
    /// Entries that are not written to the file yet.
    bytes: Vec<u8>,
}

impl Journal {
    pub(super) fn create(path: &Path) -> io::Result<Self> {
        Ok(Self {
            file: File::create(path)?,
            bytes: Vec::new(),
        })
    }

    pub(super) fn append(&mut self, entry: Entry) {
        self.bytes.extend(entry.to_bytes());
    }

    /// Hands all entries to the kernel, so that they outlive this process.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        self.file.write_all(&self.bytes)?;
        self.bytes.clear();
        Ok(())
    }
}

/// All complete entries of a journal.
pub(super) fn read(path: &Path) -> io::Result<Vec<Entry>> {
    let bytes = std::fs::read(path)?;
    let (entries, _) = bytes.as_chunks();
    Ok(entries.iter().map(Entry::from_bytes).collect())
}

const ENTRY_LEN: usize = 48;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_torn_entry_is_left_out() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = path(directory.path(), 3);
        let entry = |number| Entry {
            topic: Topic::Alerts,
            feed: 7,
            aircraft: 0xab_cdef,
            number,
            position: 1 << 40,
            digest: u64::MAX,
            sent_at_ns: -1,
            taken_at_ns: 5,
        };
        let mut journal = Journal::create(&path).expect("a file");
        journal.append(entry(1));
        journal.append(entry(2));
        journal.flush().expect("written");
        assert_eq!(read(&path).expect("a file"), [entry(1), entry(2)]);
        let torn = std::fs::read(&path).expect("a file");
        std::fs::write(&path, &torn[..torn.len() - 1]).expect("written");
        assert_eq!(read(&path).expect("a file"), [entry(1)]);
    }
}
