//! A log that is written.

use serde::{Deserialize, Serialize};

use super::super::record::RecordMeta;
use super::super::roster::LogId;
use super::disk::{Disk, DiskError};
use super::error::LogError;
use super::figures::LogFigures;
use super::layout::{RECORD_HEAD_LEN, RecordHead, SEGMENT_HEAD_LEN, SegmentHead, chain};
use super::logged_record::LoggedRecord;
use super::meta::{HEAD, LogHead, LogState, SUPERBLOCK, Start, Superblock, UNFINISHED};
use super::segment::{Mark, Segment, file_of};

/// Length from which on a segment takes no more records, unless told otherwise.
pub const SEGMENT_BYTES: u64 = 64 << 20;

/// The last record of a log; all 0 without one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct LastRecord {
    /// Number of the generation in which it was logged.
    pub generation: u64,
    /// View in which it was delivered.
    pub epoch: u64,
    /// The position after it.
    pub end: u64,
    /// Its chain value.
    pub chain: u32,
}

/// Whether a log can be written.
#[derive(Debug, Clone)]
pub(super) enum Condition {
    Usable,
    ReadOnly,
    Dead(LogError),
}

/// The log of a topic.
#[derive(Debug)]
pub struct TopicLog<D> {
    pub(super) disk: D,
    pub(super) head: LogHead,
    pub(super) superblock: Superblock,
    pub(super) segments: Vec<Segment>,
    /// The place after the last record, in the last segment.
    pub(super) end: Mark,
    /// The same as of the last sync.
    pub(super) synced: Mark,
    pub(super) condition: Condition,
    pub(super) segment_bytes: u64,
    pub(super) figures: LogFigures,
    /// Truncations by this process.
    pub(super) truncations: u64,
    /// The new file of a segment that is written anew.
    pub(super) unfinished: Option<String>,
}

impl<D: Disk> TopicLog<D> {
    /// Creates an empty log. It is durable when this returns.
    pub fn create(disk: D, id: LogId, head: &LogHead) -> Result<Self, LogError> {
        let mut log = Self {
            disk,
            head: head.clone(),
            superblock: Superblock {
                state: LogState {
                    id,
                    ..LogState::default()
                },
                ..Superblock::default()
            },
            segments: Vec::new(),
            end: Mark::default(),
            synced: Mark::default(),
            condition: Condition::Usable,
            segment_bytes: SEGMENT_BYTES,
            figures: LogFigures::default(),
            truncations: 0,
            unfinished: None,
        };
        let files = log.disk.list();
        let files = files.map_err(|error| LogError::unreadable(SUPERBLOCK, error))?;
        let is_log = |file: &str| file == SUPERBLOCK || super::segment::first_of(file).is_some();
        if files.iter().any(|(file, _)| is_log(file)) {
            return Err(LogError::Exists);
        }
        let leftovers = files.iter().filter(|(file, _)| file.ends_with(UNFINISHED));
        for (file, _) in leftovers {
            log.remove(file)?;
        }
        // The superblock says that there is a log: it comes last.
        log.replace(HEAD, &head.bytes()?)?;
        log.replace(SUPERBLOCK, &log.superblock.bytes()?)?;
        Ok(log)
    }

    /// With another length from which on a segment takes no more records.
    #[must_use]
    pub fn with_segment_bytes(mut self, bytes: u64) -> Self {
        self.segment_bytes = bytes;
        self
    }

    /// The topic.
    pub fn head(&self) -> &LogHead {
        &self.head
    }

    /// What it knows of the logs of its group.
    pub fn state(&self) -> &LogState {
        &self.superblock.state
    }

    /// The last record.
    pub fn last(&self) -> LastRecord {
        self.end.last
    }

    /// The position after the last record, 0 without one.
    pub fn appended(&self) -> u64 {
        self.end.last.end
    }

    /// The position after the last record that is durable, 0 without one.
    pub fn synced(&self) -> u64 {
        self.synced.last.end
    }

    /// The chain value of the last record, 0 without one.
    pub fn chain(&self) -> u32 {
        self.end.last.chain
    }

    /// Why it takes no more records, if a write or a sync has failed.
    pub fn dead(&self) -> Option<&LogError> {
        match &self.condition {
            Condition::Dead(error) => Some(error),
            Condition::Usable | Condition::ReadOnly => None,
        }
    }

    /// What it has done.
    pub fn figures(&self) -> LogFigures {
        LogFigures {
            segments: self.segments.len() as u64,
            bytes: self.segments.iter().map(|it| it.len).sum(),
            records: self.end.records,
            ..self.figures
        }
    }

    /// The files.
    pub fn disk(&self) -> &D {
        &self.disk
    }

    /// The files, which have to stay as they are.
    pub fn into_disk(self) -> D {
        self.disk
    }

    /// Replaces what it says of its topic. It is durable when this returns.
    pub fn set_head(&mut self, head: &LogHead) -> Result<(), LogError> {
        if *head != self.head {
            self.check_usable()?;
            self.replace(HEAD, &head.bytes()?)?;
            self.head = head.clone();
        }
        Ok(())
    }

    /// Replaces what it knows of the logs of its group, and syncs. All is durable when this returns.
    pub fn record(&mut self, state: LogState) -> Result<(), LogError> {
        if state.id != self.superblock.state.id {
            return Err(LogError::OtherLog(state.id));
        }
        self.sync()?;
        let superblock = Superblock {
            state,
            ..self.superblock.clone()
        };
        self.replace_superblock(superblock)
    }

    /// Appends messages that were delivered in a view, with one write. Their positions ascend, and come
    /// after those before. They are durable after [`sync`](Self::sync).
    pub fn append(
        &mut self,
        generation: u64,
        epoch: u64,
        records: &[(RecordMeta, &[u8])],
    ) -> Result<(), LogError> {
        let mut heads = Vec::with_capacity(records.len());
        let mut last = self.end.last.chain;
        for (meta, payload) in records {
            check_payload(payload)?;
            let mut head = RecordHead::new(generation, epoch, meta, payload);
            head.chain = chain(last, head.crc);
            last = head.chain;
            heads.push(head);
        }
        let payloads: Vec<&[u8]> = records.iter().map(|(_, payload)| *payload).collect();
        self.write(&mut heads, &payloads)
    }

    /// Appends records of another log of the topic, as they stand there. They follow the last record of
    /// this one, or come after a gap of that log.
    pub fn append_logged(&mut self, records: &[LoggedRecord]) -> Result<(), LogError> {
        let mut heads = Vec::with_capacity(records.len());
        let mut last = self.end.last.chain;
        for logged in records {
            let (meta, payload) = (logged.record.meta(), logged.record.payload());
            check_payload(payload)?;
            let mut head = RecordHead::new(logged.generation, logged.epoch, &meta, payload);
            head.chain = logged.chain;
            head.is_after_gap = logged.is_after_gap;
            if !head.is_after_gap && head.chain != chain(last, head.crc) {
                let position = meta.position;
                return Err(LogError::Chain { position });
            }
            last = head.chain;
            heads.push(head);
        }
        let payloads: Vec<&[u8]> = records.iter().map(|it| it.record.payload()).collect();
        self.write(&mut heads, &payloads)
    }

    /// Makes all that was appended durable. After an error the log takes no more.
    pub fn sync(&mut self) -> Result<(), LogError> {
        self.check_usable()?;
        if self.synced == self.end {
            return Ok(());
        }
        let Some(segment) = self.segments.last() else {
            return Ok(());
        };
        self.figures.syncs += 1;
        match self.disk.sync(&segment.file) {
            Ok(()) => {
                self.synced = self.end;
                Ok(())
            }
            Err(error) => {
                let file = segment.file.clone();
                Err(self.die(&file, &error))
            }
        }
    }

    fn write(&mut self, heads: &mut [RecordHead], payloads: &[&[u8]]) -> Result<(), LogError> {
        self.check_usable()?;
        let Some(first) = heads.first() else {
            return Ok(());
        };
        let mut end = self.end.last.end;
        for head in &*heads {
            let position = head.meta.position;
            if position < end || position == u64::MAX {
                return Err(LogError::Order { position, end });
            }
            end = position + 1;
        }
        let len: u64 = heads.iter().map(RecordHead::record_len).sum();
        let is_full =
            |it: &Segment| it.len > SEGMENT_HEAD_LEN as u64 && it.len + len > self.segment_bytes;
        let first = first.meta.position;
        let is_full = self.segments.last().is_none_or(is_full);
        if is_full || self.drop_empty_segment(first)? {
            self.begin_segment(first)?;
        }
        let synced = u32::try_from(self.synced.offset).unwrap_or(u32::MAX);
        let mut bytes = Vec::with_capacity(heads.len() * RECORD_HEAD_LEN);
        for head in &mut *heads {
            head.synced = synced;
            bytes.extend_from_slice(&head.bytes(self.superblock.state.id));
        }
        let parts = bytes.chunks(RECORD_HEAD_LEN).zip(payloads);
        let parts: Vec<&[u8]> = parts.flat_map(|(head, payload)| [head, payload]).collect();
        self.write_parts(&parts)?;
        self.note(heads);
        Ok(())
    }

    /// Writes to the end of the last segment.
    fn write_parts(&mut self, parts: &[&[u8]]) -> Result<(), LogError> {
        let Some(segment) = self.segments.last() else {
            return Ok(());
        };
        let error = match self.disk.write(&segment.file, segment.len, parts) {
            Ok(()) => return Ok(()),
            Err(error) => error,
        };
        let (file, len) = (segment.file.clone(), segment.len);
        let DiskError::Full(why) = &error else {
            return Err(self.die(&file, &error));
        };
        let full = LogError::Full {
            file: file.clone(),
            why: why.clone(),
        };
        // The cut has to be durable before anything else is written there.
        let cut = self.disk.truncate(&file, len);
        match cut.and_then(|()| self.disk.sync(&file)) {
            Ok(()) => {
                self.figures.syncs += 1;
                self.synced = self.end;
                Err(full)
            }
            Err(error) => Err(self.die(&file, &error)),
        }
    }

    fn note(&mut self, heads: &[RecordHead]) {
        let Some(segment) = self.segments.last_mut() else {
            return;
        };
        for head in heads {
            segment.note(self.end);
            self.end = Mark {
                offset: self.end.offset + head.record_len(),
                last: head.as_last(),
                records: self.end.records + 1,
            };
            self.figures.written += head.record_len();
        }
        segment.len = self.end.offset;
        self.figures.appended += heads.len() as u64;
    }

    /// Removes the last segment if it has no record and is named after a later one than comes now.
    fn drop_empty_segment(&mut self, first: u64) -> Result<bool, LogError> {
        let is_empty = |it: &mut Segment| it.len == SEGMENT_HEAD_LEN as u64 && it.first > first;
        let Some(segment) = self.segments.pop_if(is_empty) else {
            return Ok(false);
        };
        self.end.offset = self.segments.last().map_or(0, |it| it.len);
        self.synced = self.end;
        self.remove(&segment.file)?;
        self.sync_directory()?;
        Ok(true)
    }

    /// Only the last segment can have records that are not synced.
    fn begin_segment(&mut self, first: u64) -> Result<(), LogError> {
        self.sync()?;
        let last = self.segments.last();
        let start = self.superblock.start.segment;
        let number = last.map_or(start, |it| it.number + 1);
        let head = SegmentHead {
            log: self.superblock.state.id,
            number,
            before: self.end.last,
            records: self.end.records,
        };
        let file = file_of(first);
        self.write_new(&file, &head.bytes())?;
        self.sync_directory()?;
        let len = SEGMENT_HEAD_LEN as u64;
        let mut segment = Segment::new(first, number, len, head.before, head.records);
        segment.is_indexed = true;
        self.end = segment.start();
        self.synced = self.end;
        self.segments.push(segment);
        self.figures.written += len;
        Ok(())
    }
}

/// The files of the state.
impl<D: Disk> TopicLog<D> {
    pub(super) fn replace_superblock(
        &mut self,
        mut superblock: Superblock,
    ) -> Result<(), LogError> {
        self.check_usable()?;
        if superblock.truncating.is_none() {
            superblock.synced = self.synced.last.end;
        }
        self.replace(SUPERBLOCK, &superblock.bytes()?)?;
        self.superblock = superblock;
        Ok(())
    }

    pub(super) fn start(&self) -> Start {
        self.superblock.start
    }

    /// Replaces a file as a whole.
    pub(super) fn replace(&mut self, file: &str, bytes: &[u8]) -> Result<(), LogError> {
        let unfinished = format!("{file}{UNFINISHED}");
        self.write_new(&unfinished, bytes)?;
        if let Err(error) = self.disk.rename(&unfinished, file) {
            return Err(self.undo(&unfinished, &error));
        }
        self.sync_directory()
    }

    /// Writes and syncs a new file. The directory is not synced.
    pub(super) fn write_new(&mut self, file: &str, bytes: &[u8]) -> Result<(), LogError> {
        if let Err(error) = self.disk.create(file) {
            return Err(self.not_created(file, &error));
        }
        if let Err(error) = self.disk.write(file, 0, &[bytes]) {
            return Err(self.undo(file, &error));
        }
        self.figures.syncs_of_state += 1;
        let synced = self.disk.sync(file);
        synced.map_err(|error| self.die(file, &error))
    }

    pub(super) fn not_created(&mut self, file: &str, error: &DiskError) -> LogError {
        match error {
            DiskError::Full(why) => full(file, why),
            DiskError::Failed(_) => self.die(file, error),
        }
    }

    /// Removes a file that there was no room for. After any other error the log is dead.
    pub(super) fn undo(&mut self, file: &str, error: &DiskError) -> LogError {
        let DiskError::Full(why) = error else {
            return self.die(file, error);
        };
        // For good: a segment of another name may come next.
        let removed = self.remove(file).and_then(|()| self.sync_directory());
        removed.err().unwrap_or_else(|| full(file, why))
    }

    pub(super) fn remove(&mut self, file: &str) -> Result<(), LogError> {
        let removed = self.disk.remove(file);
        removed.map_err(|error| self.die(file, &error))
    }

    pub(super) fn sync_directory(&mut self) -> Result<(), LogError> {
        self.figures.syncs_of_state += 1;
        let synced = self.disk.sync_directory();
        synced.map_err(|error| self.die("the directory", &error))
    }

    pub(super) fn check_usable(&self) -> Result<(), LogError> {
        match &self.condition {
            Condition::Usable => Ok(()),
            Condition::ReadOnly => Err(LogError::ReadOnly),
            Condition::Dead(error) => Err(error.clone()),
        }
    }

    pub(super) fn die(&mut self, file: &str, error: &DiskError) -> LogError {
        let error = LogError::Dead {
            file: file.to_owned(),
            why: error.to_string(),
        };
        self.condition = Condition::Dead(error.clone());
        error
    }
}

fn full(file: &str, why: &str) -> LogError {
    LogError::Full {
        file: file.to_owned(),
        why: why.to_owned(),
    }
}

fn check_payload(payload: &[u8]) -> Result<(), LogError> {
    match u32::try_from(payload.len()) {
        Ok(_) => Ok(()),
        Err(_) => Err(LogError::TooLong { what: "a payload" }),
    }
}
