//! Reading and truncating a log.

use super::disk::Disk;
use super::error::LogError;
use super::logged_record::LoggedRecord;
use super::meta::Superblock;
use super::segment::Mark;
use super::topic_log::TopicLog;
use super::walk::{BAD_CRC, Walked, Walker};

/// A place between two records of a log.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    /// Index of the segment.
    pub(super) segment: usize,
    pub(super) mark: Mark,
}

/// Records that are read at once.
struct Part {
    records: Vec<LoggedRecord>,
    bytes: usize,
    bytes_max: usize,
}

impl Part {
    /// Gives whether there is room.
    fn put(&mut self, record: LoggedRecord) -> bool {
        self.bytes += record.byte_len();
        let has_room = self.records.is_empty() || self.bytes <= self.bytes_max;
        if has_room {
            self.records.push(record);
        }
        has_room
    }
}

impl<D: Disk> TopicLog<D> {
    /// The records at `from` and after it, oldest first: at least one, if there is any, and no more than
    /// take `bytes_max` in [`LoggedRecord::write`].
    pub fn read(&mut self, from: u64, bytes_max: usize) -> Result<Vec<LoggedRecord>, LogError> {
        let mut part = Part {
            records: Vec::new(),
            bytes: 0,
            bytes_max,
        };
        if let Some(Place { segment, mark }) = self.place(from)? {
            let mut is_full = self.read_segment(segment, mark, &mut part)?;
            for segment in segment + 1..self.segments.len() {
                if is_full {
                    break;
                }
                let start = self.segments[segment].start();
                is_full = self.read_segment(segment, start, &mut part)?;
            }
        }
        Ok(part.records)
    }

    /// Reads the records of a segment from a place on. Gives whether there was no room for one.
    fn read_segment(
        &mut self,
        index: usize,
        mark: Mark,
        part: &mut Part,
    ) -> Result<bool, LogError> {
        let segment = &self.segments[index];
        let start = self.superblock.start;
        let id = self.superblock.state.id;
        let mut walker = Walker::new(id, &segment.file, segment.len, mark);
        loop {
            let before = walker.mark();
            let damaged = |what| LogError::damaged(&segment.file, before.offset, what);
            let head = match walker.peek(&mut self.disk)? {
                Walked::Record(head) => head,
                Walked::End => break self.check_end(index, before).map(|()| false),
                Walked::Bad(what) => return Err(damaged(what)),
            };
            let Some(payload) = walker.payload(&mut self.disk, &head)? else {
                return Err(damaged(BAD_CRC));
            };
            let begins_log = before.records == start.records;
            let logged = LoggedRecord {
                generation: head.generation,
                epoch: head.epoch,
                chain: head.chain,
                is_after_gap: head.is_after_gap || begins_log && start.last.end > 0,
                record: head.record(payload),
            };
            if !part.put(logged) {
                return Ok(true);
            }
            walker.pass(&head);
        }
    }

    /// The segment after one knows the last record of that one.
    pub(super) fn check_end(&self, index: usize, end: Mark) -> Result<(), LogError> {
        let next = self.segments.get(index + 1);
        if next.is_none_or(|it| it.start().last == end.last) {
            return Ok(());
        }
        let what = "records at its end are missing";
        Err(LogError::damaged(
            &self.segments[index].file,
            end.offset,
            what,
        ))
    }

    /// End position and chain value of the last record below a position; zeros without one.
    pub fn chain_before(&mut self, position: u64) -> Result<(u64, u32), LogError> {
        let start = self.superblock.start.last;
        if position < start.end {
            // What was removed is not known.
            return Ok((0, 0));
        }
        let place = self.place(position)?;
        let last = place.map_or(self.end.last, |it| it.mark.last);
        Ok((last.end, last.chain))
    }

    /// The end position that is a number of records before that of a record here; 0 if there are not as many.
    pub fn step_back(&mut self, end: u64, records: u64) -> Result<u64, LogError> {
        let Some(place) = self.place(end)? else {
            return Ok(0);
        };
        let mut left = records;
        for index in (0..=place.segment).rev() {
            self.index(index)?;
            let segment = &self.segments[index];
            let mut stop = match index == place.segment {
                true => place.mark.offset,
                false => segment.len,
            };
            for mark in segment.marks().iter().rev() {
                if mark.offset >= stop {
                    continue;
                }
                let id = self.superblock.state.id;
                let mut walker = Walker::new(id, &segment.file, stop, *mark);
                let mut ends = Vec::new();
                while walker.mark().offset < stop {
                    ends.push(walker.mark().last.end);
                    let Walked::Record(head) = walker.peek(&mut self.disk)? else {
                        let offset = walker.mark().offset;
                        return Err(LogError::damaged(&segment.file, offset, "no record"));
                    };
                    walker.pass(&head);
                }
                // Each is the end before one of the records.
                if left <= ends.len() as u64 {
                    return Ok(match left {
                        0 => end,
                        left => ends[ends.len() - left as usize],
                    });
                }
                left -= ends.len() as u64;
                stop = mark.offset;
            }
        }
        Ok(0)
    }

    /// Removes the records at positions from `end` on. They are gone for good when this returns.
    pub fn truncate(&mut self, end: u64) -> Result<(), LogError> {
        self.check_usable()?;
        if end >= self.end.last.end {
            return Ok(());
        }
        let settled = self.superblock.settled;
        if end > 0 && end < settled {
            return Err(LogError::Compacted { settled });
        }
        self.truncations += 1;
        self.drop_unfinished()?;
        let place = self.place(end)?;
        if let Some(Place { segment, mark }) = place
            && segment > 0
            && mark == self.segments[segment].start()
        {
            // It becomes the last one.
            self.index(segment - 1)?;
        }
        self.sync()?;
        let superblock = Superblock {
            truncating: Some(end),
            synced: match end {
                0 => 0,
                _ => place.map_or(0, |it| it.mark.last.end),
            },
            ..self.superblock.clone()
        };
        // A crash on the way is made good at the next opening.
        self.replace_superblock(superblock)?;
        self.cut(place)?;
        self.sync_directory()?;
        let mut superblock = Superblock {
            truncating: None,
            ..self.superblock.clone()
        };
        if end == 0 {
            superblock.begin_anew();
            self.end = Mark::default();
            self.synced = self.end;
        }
        self.replace_superblock(superblock)
    }

    /// Ends the log at a place. `None` is before all records.
    fn cut(&mut self, place: Option<Place>) -> Result<(), LogError> {
        let start = self.start();
        let kept = match place {
            Some(Place { segment, mark }) => {
                let is_first = mark.offset <= self.segments[segment].start().offset;
                segment + usize::from(!is_first)
            }
            None => 0,
        };
        while self.segments.len() > kept {
            if let Some(segment) = self.segments.pop() {
                self.remove(&segment.file)?;
            }
        }
        let mark = place.map_or_else(
            || Mark {
                offset: 0,
                last: start.last,
                records: start.records,
            },
            |it| it.mark,
        );
        if place.is_some_and(|it| it.segment + 1 == kept)
            && let Some(segment) = self.segments.last_mut()
        {
            segment.end_at(mark);
            let file = segment.file.clone();
            let cut = self.disk.truncate(&file, mark.offset);
            if let Err(error) = cut.and_then(|()| self.disk.sync(&file)) {
                return Err(self.die(&file, &error));
            }
            self.figures.syncs += 1;
        }
        self.end = Mark {
            offset: self.segments.last().map_or(0, |it| it.len),
            ..mark
        };
        self.synced = self.end;
        Ok(())
    }

    /// The place before the first record at a position or after it. `None`: there is no segment.
    pub(super) fn place(&mut self, position: u64) -> Result<Option<Place>, LogError> {
        let count = self
            .segments
            .partition_point(|it| it.start().last.end <= position);
        if self.segments.is_empty() {
            return Ok(None);
        }
        let segment = count.saturating_sub(1);
        if position >= self.end.last.end {
            let segment = self.segments.len() - 1;
            let mark = self.end;
            return Ok(Some(Place { segment, mark }));
        }
        self.index(segment)?;
        let found = &self.segments[segment];
        let id = self.superblock.state.id;
        let mark = found.mark_before(position);
        let mut walker = Walker::new(id, &found.file, found.len, mark);
        loop {
            match walker.peek(&mut self.disk)? {
                Walked::Record(head) if head.meta.position < position => walker.pass(&head),
                Walked::Record(_) | Walked::End => break,
                Walked::Bad(what) => {
                    return Err(LogError::damaged(&found.file, walker.mark().offset, what));
                }
            }
        }
        let mark = walker.mark();
        Ok(Some(Place { segment, mark }))
    }

    /// Fills the index of a segment.
    fn index(&mut self, index: usize) -> Result<(), LogError> {
        let segment = &mut self.segments[index];
        if segment.is_indexed {
            return Ok(());
        }
        let file = segment.file.clone();
        let id = self.superblock.state.id;
        let mut walker = Walker::new(id, &file, segment.len, segment.start());
        loop {
            match walker.peek(&mut self.disk)? {
                Walked::Record(head) => {
                    segment.note(walker.mark());
                    walker.pass(&head);
                }
                Walked::End => break,
                Walked::Bad(what) => {
                    return Err(LogError::damaged(&file, walker.mark().offset, what));
                }
            }
        }
        self.check_end(index, walker.mark())?;
        self.segments[index].is_indexed = true;
        Ok(())
    }
}
