//! Mends a damaged log from another log of its topic.
//!
//! Of each damaged segment, the sound records stay. Those that are missing between them are taken from the
//! other log. In the result each record has the chain value that follows from the one before, over all of
//! the segment and to the segment after it: so what was put in is what was there. What is damaged behind
//! the last sound record of the log cannot be known by that, and is not mended.
//!
//! A segment is replaced as a whole by rename. The damaged file is kept under another name.

use std::collections::BTreeMap;

use super::super::roster::LogId;
use super::disk::{Disk, DiskError};
use super::error::LogError;
use super::layout::{RecordHead, SegmentHead, chain};
use super::meta::{HEAD, LogHead, SUPERBLOCK, Superblock, UNFINISHED};
use super::scan::Scan;
use super::segment::first_of;
use super::topic_log::{LastRecord, TopicLog};

/// Ends the name of a damaged file that is kept.
const DAMAGED: &str = ".damaged";
/// Bytes that are read at once from the other log.
const READ_LEN: usize = 1 << 20;

/// A file that was mended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mended {
    /// Its name.
    pub file: String,
    /// The name under which the damaged one is kept.
    pub kept: String,
    /// Positions of the first and the last record that were taken from the other log; `None`: of none.
    pub positions: Option<(u64, u64)>,
    /// Number of these records.
    pub records: u64,
}

/// Why a log cannot be mended.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MendError {
    /// A file of the log cannot be read or written.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The other log cannot be read.
    #[error("the other log: {0}")]
    Other(LogError),
    /// Its records do not descend from the same beginning as those of the other log.
    #[error("the other log does not descend from the same beginning")]
    Lineage,
    /// What is missing cannot be known for sure.
    #[error("{file}: {why}")]
    Unknown {
        /// The file.
        file: String,
        /// What cannot be known.
        why: String,
    },
}

impl<D: Disk> TopicLog<D> {
    /// Mends a log that cannot be opened, or whose records cannot be read, from another log of the topic.
    /// What is sound stays as it is. A torn tail is left to [`open`](Self::open).
    ///
    /// # Errors
    /// What could be mended before stays so.
    pub fn mend<O: Disk>(disk: &mut D, other: &mut TopicLog<O>) -> Result<Vec<Mended>, MendError> {
        let files = disk.list();
        let files = files.map_err(|error| LogError::unreadable(SUPERBLOCK, error))?;
        let files: BTreeMap<String, u64> = files.into_iter().collect();
        let superblock = read_whole(disk, SUPERBLOCK, &files)?;
        let superblock = Superblock::read(&superblock)?;
        let lineage = superblock.state.lineage;
        if lineage == 0 || lineage != other.state().lineage {
            return Err(MendError::Lineage);
        }
        if superblock.truncating.is_some() {
            return Err(unknown(SUPERBLOCK, "the log is being truncated"));
        }
        let mut mender = Mender {
            disk,
            other,
            files,
            superblock,
            mended: Vec::new(),
        };
        mender.head()?;
        mender.segments()?;
        Ok(mender.mended)
    }
}

struct Mender<'a, D, O> {
    disk: &'a mut D,
    other: &'a mut TopicLog<O>,
    files: BTreeMap<String, u64>,
    superblock: Superblock,
    mended: Vec<Mended>,
}

/// What is before a segment.
#[derive(Debug, Clone, Copy)]
struct Before {
    number: u64,
    last: LastRecord,
    records: u64,
}

/// What comes after a segment.
#[derive(Debug, Clone, Copy)]
struct After {
    /// Position of its first record.
    first: u64,
    /// Its head, if that is sound.
    head: Option<SegmentHead>,
}

/// The records of a segment that is made anew.
#[derive(Debug, Default)]
struct Rebuilt {
    records: BTreeMap<u64, (RecordHead, Vec<u8>)>,
    /// Positions of those of the other log.
    taken: Vec<u64>,
}

impl<D: Disk, O: Disk> Mender<'_, D, O> {
    /// The other log has the same head.
    fn head(&mut self) -> Result<(), MendError> {
        let read = read_whole(self.disk, HEAD, &self.files);
        let Err(LogError::Damaged { .. }) = read.and_then(|bytes| LogHead::read(&bytes)) else {
            return Ok(());
        };
        let bytes = self.other.head().bytes()?;
        self.replace(HEAD, &bytes, Vec::new())
    }

    fn segments(&mut self) -> Result<(), MendError> {
        let id = self.superblock.state.id;
        let firsts = self
            .files
            .keys()
            .filter_map(|file| Some((first_of(file)?, file.clone())));
        let segments: Vec<(u64, String)> = firsts.collect();
        let start = self.superblock.start;
        let mut before = Before {
            number: start.segment,
            last: start.last,
            records: start.records,
        };
        for (index, (_, file)) in segments.iter().enumerate() {
            let bytes = read_whole(self.disk, file, &self.files)?;
            let scan = Scan::new(id, &bytes);
            if let Some(head) = scan.head {
                if head.number < before.number {
                    // Its removal was interrupted.
                    continue;
                }
                if head.number > before.number {
                    return Err(unknown(file, "the segment before it is missing"));
                }
            }
            let after = match segments.get(index + 1) {
                Some((first, file)) => Some(After {
                    first: *first,
                    head: self.segment_head(id, file)?,
                }),
                None => None,
            };
            let sound = sound_end(&scan, &before, after.as_ref(), self.superblock.synced);
            let (last, records) = match sound {
                Some(last) => (last, scan.records.len() as u64),
                None => self.rebuild(file, &scan, &before, after.as_ref())?,
            };
            // Records that were removed by compaction are counted by the heads alone.
            let counted = after.and_then(|it| it.head).map(|it| it.records);
            before = Before {
                number: before.number + 1,
                last,
                records: counted.unwrap_or(before.records + records),
            };
        }
        Ok(())
    }

    fn segment_head(&mut self, id: LogId, file: &str) -> Result<Option<SegmentHead>, LogError> {
        let mut bytes = [0; super::layout::SEGMENT_HEAD_LEN];
        let read = self.disk.read(file, 0, &mut bytes);
        read.map_err(|error| LogError::unreadable(file, error))?;
        Ok(SegmentHead::read(id, &bytes))
    }

    /// Makes a segment anew. Gives its last record, and the number of its records.
    fn rebuild(
        &mut self,
        file: &str,
        scan: &Scan<'_>,
        before: &Before,
        after: Option<&After>,
    ) -> Result<(LastRecord, u64), MendError> {
        let mut rebuilt = Rebuilt::default();
        for (at, head) in &scan.records {
            let payload = scan.payload(*at, head).to_vec();
            rebuilt.records.insert(head.meta.position, (*head, payload));
        }
        let last = rebuilt
            .records
            .last_key_value()
            .map(|(position, _)| *position);
        let end = match (after, last) {
            (Some(after), _) => after.head.map_or(after.first, |head| head.before.end),
            (None, Some(last)) => last + 1,
            (None, None) => return Err(unknown(file, "no record after the damage is left")),
        };
        self.take(file, before.last.end, end, &mut rebuilt)?;
        let last = rebuilt.link(file, before.last)?;
        if after
            .and_then(|it| it.head)
            .is_some_and(|it| it.before != last)
        {
            return Err(unknown(file, "the segment after it does not follow"));
        }
        if after.is_none() && self.superblock.synced > last.end {
            return Err(unknown(file, "what is damaged is at the end of the log"));
        }
        let head = SegmentHead {
            log: self.superblock.state.id,
            number: before.number,
            before: before.last,
            records: before.records,
        };
        let bytes = rebuilt.bytes(&head);
        self.replace(file, &bytes, rebuilt.taken)?;
        Ok((last, rebuilt.records.len() as u64))
    }

    /// Takes what is missing from the other log.
    fn take(
        &mut self,
        file: &str,
        from: u64,
        end: u64,
        rebuilt: &mut Rebuilt,
    ) -> Result<(), MendError> {
        let mut next = from;
        while next < end {
            let read = self.other.read(next, READ_LEN).map_err(MendError::Other)?;
            let Some(last) = read.last() else { break };
            next = last.end();
            for logged in read.iter().take_while(|it| it.record.position() < end) {
                let position = logged.record.position();
                if let Some((own, _)) = rebuilt.records.get(&position) {
                    if own.chain != logged.chain {
                        let why = format!("the logs differ at position {position}, or before");
                        return Err(unknown(file, &why));
                    }
                    continue;
                }
                if logged.is_after_gap {
                    return Err(unknown(file, "the other log is compacted there"));
                }
                let (meta, payload) = (logged.record.meta(), logged.record.payload());
                let mut head = RecordHead::new(logged.generation, logged.epoch, &meta, payload);
                head.chain = logged.chain;
                rebuilt.records.insert(position, (head, payload.to_vec()));
                rebuilt.taken.push(position);
            }
        }
        Ok(())
    }

    /// Keeps a damaged file under another name, and puts a new one in its place.
    fn replace(&mut self, file: &str, bytes: &[u8], taken: Vec<u64>) -> Result<(), MendError> {
        let mut kept = format!("{file}{DAMAGED}");
        for number in 2.. {
            if !self.files.contains_key(&kept) {
                break;
            }
            kept = format!("{file}{DAMAGED}{number}");
        }
        if self.files.contains_key(file) {
            let damaged = read_whole(self.disk, file, &self.files)?;
            self.write_new(&kept, &damaged)?;
        }
        let unfinished = format!("{file}{UNFINISHED}");
        if self.files.contains_key(&unfinished) {
            let removed = self.disk.remove(&unfinished);
            removed.map_err(|error| failed(&unfinished, error))?;
        }
        self.write_new(&unfinished, bytes)?;
        let disk = &mut *self.disk;
        let renamed = disk.rename(&unfinished, file);
        let renamed = renamed.and_then(|()| disk.sync_directory());
        renamed.map_err(|error| failed(file, error))?;
        self.files.insert(kept.clone(), 0);
        self.mended.push(Mended {
            file: file.to_owned(),
            kept,
            positions: taken.first().copied().zip(taken.last().copied()),
            records: taken.len() as u64,
        });
        Ok(())
    }

    fn write_new(&mut self, file: &str, bytes: &[u8]) -> Result<(), LogError> {
        let disk = &mut *self.disk;
        let written = disk.create(file);
        let written = written.and_then(|()| disk.write(file, 0, &[bytes]));
        let written = written.and_then(|()| disk.sync(file));
        written.map_err(|error| failed(file, error))
    }
}

impl Rebuilt {
    /// Checks that each record follows the one before. Gives the last one.
    fn link(&self, file: &str, before: LastRecord) -> Result<LastRecord, MendError> {
        let mut last = before;
        for (head, _) in self.records.values() {
            let position = head.meta.position;
            let follows = head.is_after_gap || head.chain == chain(last.chain, head.crc);
            if position < last.end || !follows {
                let why = format!(
                    "the other log does not have what was between position {} and {position}",
                    last.end
                );
                return Err(unknown(file, &why));
            }
            last = head.as_last();
        }
        Ok(last)
    }

    /// The file: all of it is synced before it is renamed.
    fn bytes(&self, head: &SegmentHead) -> Vec<u8> {
        let mut bytes = head.bytes().to_vec();
        for (record, payload) in self.records.values() {
            let synced = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
            let record = RecordHead { synced, ..*record };
            bytes.extend_from_slice(&record.bytes(head.log));
            bytes.extend_from_slice(payload);
        }
        bytes
    }
}

/// The last record of a segment that is as it was written, but for a torn tail.
fn sound_end(
    scan: &Scan<'_>,
    before: &Before,
    after: Option<&After>,
    synced: u64,
) -> Option<LastRecord> {
    let head = scan.head?;
    if head.before != before.last {
        return None;
    }
    let bad = scan.bad.unwrap_or(usize::MAX);
    let (intact, behind) = scan
        .records
        .split_at(scan.records.partition_point(|it| it.0 < bad));
    let mut last = before.last;
    for (_, head) in intact {
        let follows = head.is_after_gap || head.chain == chain(last.chain, head.crc);
        if head.meta.position < last.end || !follows {
            return None;
        }
        last = head.as_last();
    }
    let is_sound = match after {
        Some(after) => scan.bad.is_none() && after.head.is_none_or(|it| it.before == last),
        // A bad record is a torn tail, unless it is known that it was synced.
        None => last.end >= synced && behind.iter().all(|it| it.1.synced as usize <= bad),
    };
    is_sound.then_some(last)
}

fn read_whole<D: Disk>(
    disk: &mut D,
    file: &str,
    files: &BTreeMap<String, u64>,
) -> Result<Vec<u8>, LogError> {
    let Some(len) = files.get(file) else {
        return Err(LogError::damaged(file, 0, "it is missing"));
    };
    let len = usize::try_from(*len).unwrap_or(usize::MAX);
    let mut bytes = Vec::new();
    let room = bytes.try_reserve_exact(len);
    room.map_err(|error| LogError::unreadable(file, error))?;
    bytes.resize(len, 0);
    let read = disk.read(file, 0, &mut bytes);
    let read = read.map_err(|error| LogError::unreadable(file, error))?;
    bytes.truncate(read);
    Ok(bytes)
}

fn unknown(file: &str, why: &str) -> MendError {
    MendError::Unknown {
        file: file.to_owned(),
        why: why.to_owned(),
    }
}

fn failed(file: &str, error: DiskError) -> LogError {
    let file = file.to_owned();
    match error {
        DiskError::Full(why) => LogError::Full { file, why },
        DiskError::Failed(why) => LogError::Dead { file, why },
    }
}
