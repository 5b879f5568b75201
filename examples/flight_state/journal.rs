//! What a display writes down of each sample, as soon as it has taken it, so that it is
//! known of one that is killed too.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Where a display of a run keeps its journal.
pub(crate) fn path(directory: &Path, display: u16) -> PathBuf {
    directory.join(format!("display-{display}.journal"))
}

/// A topic of the example.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Topic {
    States,
    Alerts,
}

/// One sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) topic: Topic,
    /// Its feed.
    pub(crate) feed: u16,
    /// How manieth of its writer it is, from 1.
    pub(crate) number: u64,
    /// In the order of its topic.
    pub(crate) position: u64,
    /// Of its fields and its publication handle.
    pub(crate) digest: u64,
    /// Its source timestamp, nanoseconds since 1970.
    pub(crate) sent_at_ns: i64,
    /// CLOCK_MONOTONIC when it was taken.
    pub(crate) taken_at_ns: u64,
}

impl Entry {
    /// The same sample at the same place, whenever it was taken.
    pub(crate) fn is(&self, other: &Self) -> bool {
        let taken_at_ns = self.taken_at_ns;
        *self
            == Self {
                taken_at_ns,
                ..*other
            }
    }

    fn to_bytes(self) -> [u8; ENTRY_LEN] {
        let topic = u64::from(self.topic == Topic::Alerts);
        let first = topic << 16 | u64::from(self.feed);
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
            topic: match word(0) >> 16 {
                0 => Topic::States,
                _ => Topic::Alerts,
            },
            feed: word(0) as u16,
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
pub(crate) struct Journal {
    file: File,
    bytes: Vec<u8>,
}

impl Journal {
    pub(crate) fn create(path: &Path) -> io::Result<Self> {
        Ok(Self {
            file: File::create(path)?,
            bytes: Vec::new(),
        })
    }

    pub(crate) fn put(&mut self, entry: Entry) {
        self.bytes.extend(entry.to_bytes());
    }

    /// What was put is out of this process's hands.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        self.file.write_all(&self.bytes)?;
        self.bytes.clear();
        Ok(())
    }
}

/// All whole entries of a journal.
pub(crate) fn read(path: &Path) -> io::Result<Vec<Entry>> {
    let bytes = std::fs::read(path)?;
    let (entries, _) = bytes.as_chunks();
    Ok(entries.iter().map(Entry::from_bytes).collect())
}

const ENTRY_LEN: usize = 48;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_torn_entry_is_none() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = path(directory.path(), 3);
        let entry = |number| Entry {
            topic: Topic::Alerts,
            feed: 7,
            number,
            position: 1 << 40,
            digest: u64::MAX,
            sent_at_ns: -1,
            taken_at_ns: 5,
        };
        let mut journal = Journal::create(&path).expect("a file");
        journal.put(entry(1));
        journal.put(entry(2));
        journal.flush().expect("written");
        assert_eq!(read(&path).expect("a file"), [entry(1), entry(2)]);
        let torn = std::fs::read(&path).expect("a file");
        std::fs::write(&path, &torn[..torn.len() - 1]).expect("written");
        assert_eq!(read(&path).expect("a file"), [entry(1)]);
    }
}
