//! The side that takes history.

use std::collections::{BTreeMap, VecDeque};

use super::donor::PARTS_GRANTED;
use super::record::{Cursor, Record};

/// One transfer, at its reader: pulls from several sources at a time, and hands their records out as
/// one history, by position.
///
/// A source is the history of a writer's participant (TRANSIENT_LOCAL: one donor), or that of a topic
/// (TRANSIENT: any of its keepers; when one is lost, the next goes on after the last record that came).
#[derive(Debug)]
pub struct Joiner<D> {
    sources: Vec<Source<D>>,
    progress: TransferProgress,
    lasts: BTreeMap<[u8; 16], u64>,
}

#[derive(Debug)]
struct Source<D> {
    /// The donors that are left; the first is asked.
    donors: VecDeque<D>,
    /// The first donor has been asked.
    is_asked: bool,
    /// Parts that the donor may still send, or has sent and the reader has not read.
    outstanding: u32,
    /// Records of parts, not handed out, and how many of each part, oldest first.
    records: VecDeque<Record>,
    unread: VecDeque<usize>,
    /// Parts that have been read, and not been granted anew.
    to_grant: u32,
    /// The last record that came.
    cursor: Option<Cursor>,
    /// Nothing more comes.
    has_ended: bool,
    /// No donor is left, and the source had not come to its end.
    is_lost: bool,
}

/// What is to be sent to a donor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JoinerAsk<D> {
    /// [`Donor::ask`](super::Donor::ask).
    Ask {
        /// To this donor.
        donor: D,
        /// After this record.
        from: Option<Cursor>,
        /// It may send so many parts: none where those of another donor are not read.
        parts: u32,
    },
    /// [`Donor::more`](super::Donor::more).
    More {
        /// To this donor.
        donor: D,
    },
}

/// What is wrong with a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PartError {
    /// It was not granted.
    #[error("a part of history that was not asked for")]
    NotGranted,
    /// Its bytes are no records.
    #[error("a part of history that makes no sense")]
    Malformed,
    /// Its records are not after the last one.
    #[error("a part of history that is out of order")]
    OutOfOrder,
}

/// How far a transfer is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JoinerState {
    /// Records are to come, or to be read.
    Pulling,
    /// All was read.
    Done {
        /// Sources of which no donor was left before their end.
        lost_sources: usize,
    },
}

/// What has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TransferProgress {
    /// Records.
    pub records: u64,
    /// Their bytes, 64 each beside their payload.
    pub bytes: u64,
}

impl<D: Copy + Ord> Joiner<D> {
    /// Of each source the donors, the preferred one first. No donor is in two sources.
    pub fn new(sources: impl IntoIterator<Item = Vec<D>>) -> Self {
        let source = |donors: Vec<D>| Source {
            is_lost: donors.is_empty(),
            has_ended: donors.is_empty(),
            donors: donors.into(),
            is_asked: false,
            outstanding: 0,
            records: VecDeque::new(),
            unread: VecDeque::new(),
            to_grant: 0,
            cursor: None,
        };
        Self {
            sources: sources.into_iter().map(source).collect(),
            progress: TransferProgress::default(),
            lasts: BTreeMap::new(),
        }
    }

    /// What is to be sent now. Each is returned once.
    pub fn asks(&mut self) -> Vec<JoinerAsk<D>> {
        let mut asks = Vec::new();
        for source in self.sources.iter_mut().filter(|it| !it.has_ended) {
            let Some(donor) = source.donors.front().copied() else {
                continue;
            };
            if !source.is_asked {
                source.is_asked = true;
                source.to_grant = 0;
                let parts = PARTS_GRANTED.saturating_sub(source.unread.len() as u32);
                source.outstanding = parts;
                let from = source.cursor;
                asks.push(JoinerAsk::Ask { donor, from, parts });
            }
            for _ in 0..std::mem::take(&mut source.to_grant) {
                source.outstanding += 1;
                asks.push(JoinerAsk::More { donor });
            }
        }
        asks
    }

    /// A part has come. Of a donor that is not asked any more it is ignored.
    ///
    /// # Errors
    /// What is wrong with it: the donor does not keep to the protocol.
    pub fn part(&mut self, donor: D, bytes: &[u8]) -> Result<(), PartError> {
        let Some(source) = self.asked(donor) else {
            return Ok(());
        };
        if source.outstanding == 0 {
            return Err(PartError::NotGranted);
        }
        let mut rest = bytes;
        let mut read = Vec::new();
        let mut cursor = source.cursor;
        while !rest.is_empty() {
            let record = Record::read(&mut rest).ok_or(PartError::Malformed)?;
            let next = Some(record.cursor());
            if next <= cursor {
                return Err(PartError::OutOfOrder);
            }
            cursor = next;
            read.push(record);
        }
        if read.is_empty() {
            return Err(PartError::Malformed);
        }
        source.outstanding -= 1;
        source.cursor = cursor;
        source.unread.push_back(read.len());
        let count = read.len() as u64;
        source.records.extend(read);
        self.progress.records += count;
        self.progress.bytes += bytes.len() as u64;
        Ok(())
    }

    /// A donor has sent all. Of one that is not asked any more it is ignored.
    pub fn end(&mut self, donor: D, lasts: impl IntoIterator<Item = ([u8; 16], u64)>) {
        let Some(source) = self.asked(donor) else {
            return;
        };
        source.has_ended = true;
        for (writer, last) in lasts {
            let known = self.lasts.entry(writer).or_default();
            *known = (*known).max(last);
        }
    }

    /// A donor is gone, or knows nothing of the transfer: the next one of its source goes on after the
    /// last record that has come.
    pub fn lost(&mut self, donor: D) {
        for source in self.sources.iter_mut().filter(|it| !it.has_ended) {
            let was_asked = source.donors.front() == Some(&donor);
            source.donors.retain(|it| *it != donor);
            if was_asked {
                source.is_asked = false;
                source.outstanding = 0;
                source.to_grant = 0;
            }
            if source.donors.is_empty() {
                source.has_ended = true;
                source.is_lost = true;
            }
        }
    }

    fn asked(&mut self, donor: D) -> Option<&mut Source<D>> {
        let mut sources = self.sources.iter_mut();
        sources.find(|it| it.is_asked && !it.has_ended && it.donors.front() == Some(&donor))
    }

    /// Whether a donor is one of those that may be asked.
    pub fn needs(&self, donor: D) -> bool {
        let mut sources = self.sources.iter().filter(|it| !it.has_ended);
        sources.any(|it| it.donors.contains(&donor))
    }

    /// The donors that are asked now.
    pub fn donors(&self) -> impl Iterator<Item = D> {
        let sources = self.sources.iter().filter(|it| !it.has_ended);
        sources.filter_map(|it| it.donors.front().copied())
    }

    /// The next record of all sources, by position. `None` while a source has none that came and may
    /// have more, or when all was handed out.
    pub fn next_record(&mut self) -> Option<Record> {
        let waits = |it: &Source<D>| it.records.is_empty() && !it.has_ended;
        if self.sources.iter().any(waits) {
            return None;
        }
        let first = |it: &&mut Source<D>| it.records.front().map(Record::cursor);
        let with_records = self.sources.iter_mut().filter(|it| !it.records.is_empty());
        let source = with_records.min_by_key(first)?;
        let record = source.records.pop_front()?;
        if let Some(left) = source.unread.front_mut() {
            *left -= 1;
            if *left == 0 {
                source.unread.pop_front();
                source.to_grant += u32::from(source.is_asked && source.can_grant());
            }
        }
        Some(record)
    }

    /// Whether all was handed out.
    pub fn state(&self) -> JoinerState {
        let is_done = |it: &Source<D>| it.has_ended && it.records.is_empty();
        if !self.sources.iter().all(is_done) {
            return JoinerState::Pulling;
        }
        JoinerState::Done {
            lost_sources: self.sources.iter().filter(|it| it.is_lost).count(),
        }
    }

    /// What has come.
    pub fn progress(&self) -> TransferProgress {
        self.progress
    }

    /// The last sequence number before the boundary of each writer that the donors know.
    pub fn lasts(&self) -> &BTreeMap<[u8; 16], u64> {
        &self.lasts
    }
}

impl<D> Source<D> {
    /// Parts of an earlier donor that are unread count as granted by the present one.
    fn can_grant(&self) -> bool {
        self.outstanding + self.to_grant + (self.unread.len() as u32) < PARTS_GRANTED
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
