//! Opening a log.

use std::collections::BTreeMap;

use super::disk::Disk;
use super::error::LogError;
use super::figures::LogFigures;
use super::layout::{SEGMENT_HEAD_LEN, SegmentHead};
use super::meta::{HEAD, LogHead, SUPERBLOCK, Superblock, UNFINISHED, check_len};
use super::segment::{Mark, Segment, file_of, first_of};
use super::topic_log::{Condition, SEGMENT_BYTES, TopicLog};
use super::walk::{Walked, Walker};

/// What was found at an opening.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OpenReport {
    /// A torn tail: file, offset and number of bytes that were cut, or would be by
    /// [`TopicLog::open`].
    pub cut: Option<(String, u64, u64)>,
    /// A truncation that a crash had interrupted was finished: its position.
    pub truncated: Option<u64>,
    /// Files of what a crash had interrupted, which were removed.
    pub removed: Vec<String>,
}

impl<D: Disk> TopicLog<D> {
    /// Opens a log, and cuts a torn tail. All of it is durable when this returns. `None`: there is no log.
    ///
    /// Only the last segment is read in full. [`verify`](Self::verify) reads all.
    pub fn open(disk: D) -> Result<Option<(Self, OpenReport)>, LogError> {
        Self::open_as(disk, Condition::Usable)
    }

    /// Opens a log, and changes nothing: not now, and not later.
    pub fn open_read_only(disk: D) -> Result<Option<(Self, OpenReport)>, LogError> {
        Self::open_as(disk, Condition::ReadOnly)
    }

    fn open_as(mut disk: D, condition: Condition) -> Result<Option<(Self, OpenReport)>, LogError> {
        let files = disk.list();
        let files = files.map_err(|error| LogError::unreadable(SUPERBLOCK, error))?;
        let files: BTreeMap<String, u64> = files.into_iter().collect();
        let Some(superblock) = files.get(SUPERBLOCK) else {
            let Some(segment) = files.keys().find(|it| first_of(it).is_some()) else {
                return Ok(None);
            };
            let what = format!("it is missing, but {segment} is there");
            return Err(LogError::damaged(SUPERBLOCK, 0, what));
        };
        let superblock = Superblock::read(&read_whole(&mut disk, SUPERBLOCK, *superblock)?)?;
        let Some(head) = files.get(HEAD) else {
            return Err(LogError::damaged(HEAD, 0, "it is missing"));
        };
        let head = LogHead::read(&read_whole(&mut disk, HEAD, *head)?)?;
        let mut log = Self {
            disk,
            head,
            superblock,
            segments: Vec::new(),
            end: Mark::default(),
            synced: Mark::default(),
            condition,
            segment_bytes: SEGMENT_BYTES,
            figures: LogFigures::default(),
            truncations: 0,
            unfinished: None,
        };
        let mut report = OpenReport {
            truncated: log.superblock.truncating,
            ..OpenReport::default()
        };
        let unfinished = files.keys().filter(|it| it.ends_with(UNFINISHED));
        report.removed.extend(unfinished.cloned());
        log.find_segments(&files, &mut report)?;
        if report.truncated == Some(0) {
            log.superblock.begin_anew();
        }
        let file_len = log.find_end(&mut report)?;
        if matches!(log.condition, Condition::Usable) {
            log.make_good(&report, file_len)?;
        }
        Ok(Some((log, report)))
    }

    /// Reads the heads of all segments.
    fn find_segments(
        &mut self,
        files: &BTreeMap<String, u64>,
        report: &mut OpenReport,
    ) -> Result<(), LogError> {
        let start = self.superblock.start;
        let truncating = self.superblock.truncating;
        let id = self.superblock.state.id;
        let found = files
            .iter()
            .filter_map(|(file, len)| Some((first_of(file)?, *len)));
        let found: Vec<(u64, u64)> = found.collect();
        for (index, (first, len)) in found.iter().enumerate() {
            let file = file_of(*first);
            if truncating.is_some_and(|end| *first >= end) {
                report.removed.push(file);
                continue;
            }
            let mut bytes = [0; SEGMENT_HEAD_LEN];
            let read = self.disk.read(&file, 0, &mut bytes);
            let read = read.map_err(|error| LogError::unreadable(&file, error))?;
            let head = SegmentHead::read(id, &bytes).filter(|_| read == SEGMENT_HEAD_LEN);
            let Some(head) = head else {
                let is_last = index + 1 == found.len();
                if is_last && *len <= SEGMENT_HEAD_LEN as u64 {
                    // It is synced before the first record is written.
                    report.cut = Some((file.clone(), 0, *len));
                    report.removed.push(file);
                    continue;
                }
                return Err(LogError::damaged(&file, 0, "it has no head of this log"));
            };
            if head.number < start.segment {
                report.removed.push(file);
                continue;
            }
            self.add_segment(*first, *len, &head)?;
        }
        Ok(())
    }

    fn add_segment(&mut self, first: u64, len: u64, head: &SegmentHead) -> Result<(), LogError> {
        let file = file_of(first);
        let start = self.superblock.start;
        let follows = match self.segments.last() {
            Some(before) => {
                head.number == before.number + 1
                    && head.before.end > before.first
                    && head.records > before.start().records
            }
            None => {
                let number_is_right = head.number == start.segment;
                number_is_right && head.before == start.last && head.records == start.records
            }
        };
        if !follows || head.before.end > first {
            return Err(LogError::damaged(
                &file,
                32,
                "the segment before it is missing",
            ));
        }
        let segment = Segment::new(first, head.number, len, head.before, head.records);
        self.segments.push(segment);
        Ok(())
    }

    /// Reads the last segment. Gives the length of its file.
    fn find_end(&mut self, report: &mut OpenReport) -> Result<u64, LogError> {
        let start = self.superblock.start;
        let truncating = self.superblock.truncating;
        let Some(segment) = self.segments.last_mut() else {
            self.end = Mark {
                offset: 0,
                last: start.last,
                records: start.records,
            };
            self.synced = self.end;
            return self.check_synced(SUPERBLOCK, 0).map(|()| 0);
        };
        let (file, file_len) = (segment.file.clone(), segment.len);
        let id = self.superblock.state.id;
        let mut walker = Walker::new(id, &file, file_len, segment.start());
        let mut bad = None;
        loop {
            let mark = walker.mark();
            match walker.step(&mut self.disk)? {
                Walked::Record(head) if truncating.is_some_and(|it| head.meta.position >= it) => {
                    self.end = mark;
                    break;
                }
                Walked::Record(_) => segment.note(mark),
                Walked::End => {
                    self.end = mark;
                    break;
                }
                Walked::Bad(what) => {
                    bad = Some(what);
                    self.end = mark;
                    break;
                }
            }
        }
        segment.end_at(self.end);
        segment.is_indexed = true;
        self.synced = self.end;
        if let Some(what) = bad {
            if walker.is_damage(&mut self.disk)? {
                return Err(LogError::damaged(&file, self.end.offset, what));
            }
            let torn = file_len - self.end.offset;
            report.cut = Some((file.clone(), self.end.offset, torn));
        }
        self.check_synced(&file, self.end.offset)?;
        Ok(file_len)
    }

    /// The superblock knows how far the log was synced when it was written.
    fn check_synced(&self, file: &str, offset: u64) -> Result<(), LogError> {
        let Superblock { synced, .. } = self.superblock;
        if self.end.last.end < synced {
            let what = format!("records before position {synced} are missing");
            return Err(LogError::damaged(file, offset, what));
        }
        Ok(())
    }

    /// Does what a crash had interrupted, and makes all that was found durable.
    fn make_good(&mut self, report: &OpenReport, file_len: u64) -> Result<(), LogError> {
        for file in &report.removed {
            self.remove(file)?;
        }
        if let Some(segment) = self.segments.last() {
            let (file, len) = (segment.file.clone(), segment.len);
            let cut = match len < file_len {
                true => self.disk.truncate(&file, len),
                false => Ok(()),
            };
            if let Err(error) = cut.and_then(|()| self.disk.sync(&file)) {
                return Err(self.die(&file, &error));
            }
        }
        self.sync_directory()?;
        if self.superblock.truncating.is_some() {
            let superblock = Superblock {
                truncating: None,
                ..self.superblock.clone()
            };
            self.replace_superblock(superblock)?;
        }
        Ok(())
    }
}

fn read_whole<D: Disk>(disk: &mut D, file: &str, len: u64) -> Result<Vec<u8>, LogError> {
    let mut bytes = vec![0; check_len(file, len)?];
    let read = disk.read(file, 0, &mut bytes);
    let read = read.map_err(|error| LogError::unreadable(file, error))?;
    bytes.truncate(read);
    Ok(bytes)
}
