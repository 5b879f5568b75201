//! Writing a segment anew without the records that nothing needs any more.
//!
//! The new file is written beside the old one, some bytes a call, and replaces it by rename. Records that
//! follow removed ones say so. The last record of a segment always stays, so that the segment after it still
//! follows. A first segment without a record that lives is removed; the superblock then says where the
//! log begins.

use super::disk::Disk;
use super::error::LogError;
use super::layout::{RecordHead, SegmentHead};
use super::meta::{Start, Superblock, UNFINISHED};
use super::segment::Mark;
use super::topic_log::TopicLog;
use super::walk::{BAD_CRC, Walked, Walker};

/// A segment that is being written anew.
#[derive(Debug)]
pub(super) struct Copy {
    /// Number of the segment.
    number: u64,
    /// The new file.
    unfinished: String,
    /// Bytes of it.
    len: u64,
    /// How far the old file was read.
    mark: Mark,
    is_after_gap: bool,
}

impl<D: Disk> TopicLog<D> {
    /// The index of a segment by its number.
    pub(super) fn index_of(&self, number: u64) -> Option<usize> {
        let first = self.segments.first()?.number;
        let index = usize::try_from(number.checked_sub(first)?).ok()?;
        (index < self.segments.len()).then_some(index)
    }

    /// Shows records of a segment from a place on, until they have a number of bytes: at least one, if there
    /// is any. Gives the place after them, and whether the segment ends there.
    pub(super) fn walk(
        &mut self,
        index: usize,
        from: Mark,
        bytes_max: u64,
        see: &mut dyn FnMut(Mark, &RecordHead, &[u8]),
    ) -> Result<(Mark, bool), LogError> {
        let segment = &self.segments[index];
        let id = self.superblock.state.id;
        let mut walker = Walker::new(id, &segment.file, segment.len, from);
        loop {
            let before = walker.mark();
            let damaged = |what| LogError::damaged(&segment.file, before.offset, what);
            let head = match walker.peek(&mut self.disk)? {
                Walked::Record(head) => head,
                Walked::End => {
                    self.check_end(index, before)?;
                    return Ok((before, true));
                }
                Walked::Bad(what) => return Err(damaged(what)),
            };
            if before.offset - from.offset >= bytes_max.max(1) {
                return Ok((before, false));
            }
            let Some(payload) = walker.payload(&mut self.disk, &head)? else {
                return Err(damaged(BAD_CRC));
            };
            see(before, &head, payload);
            walker.pass(&head);
        }
    }

    /// What is below this position is never truncated from now on.
    pub(super) fn settle(&mut self, settled: u64) -> Result<(), LogError> {
        if settled <= self.superblock.settled {
            return Ok(());
        }
        self.replace_superblock(Superblock {
            settled,
            ..self.superblock.clone()
        })
    }

    /// Removes the first segment. Another one follows.
    pub(super) fn remove_first(&mut self) -> Result<(), LogError> {
        let Some(next) = self.segments.get(1) else {
            return Ok(());
        };
        let (segment, start) = (next.number, next.start());
        self.replace_superblock(Superblock {
            start: Start {
                segment,
                last: start.last,
                records: start.records,
            },
            ..self.superblock.clone()
        })?;
        let segment = self.segments.remove(0);
        self.remove(&segment.file)?;
        self.sync_directory()?;
        self.figures.compacted += 1;
        Ok(())
    }

    /// Begins to write a segment anew.
    pub(super) fn begin_copy(&mut self, index: usize) -> Result<Copy, LogError> {
        self.drop_unfinished()?;
        let segment = &self.segments[index];
        let start = segment.start();
        let head = SegmentHead {
            log: self.superblock.state.id,
            number: segment.number,
            before: start.last,
            records: start.records,
        };
        let mut copy = Copy {
            number: segment.number,
            unfinished: format!("{}{UNFINISHED}", segment.file),
            len: 0,
            mark: start,
            is_after_gap: false,
        };
        if let Err(error) = self.disk.create(&copy.unfinished) {
            return Err(self.not_created(&copy.unfinished, &error));
        }
        self.unfinished = Some(copy.unfinished.clone());
        self.write_copy(&mut copy, &head.bytes())?;
        Ok(copy)
    }

    /// Copies what is kept of some bytes of the segment. They are synced when this returns, so that the last
    /// sync has little to do. Gives whether the new file has replaced the old one.
    pub(super) fn copy_some(
        &mut self,
        copy: &mut Copy,
        bytes_max: u64,
        keep: &dyn Fn(&RecordHead) -> bool,
    ) -> Result<bool, LogError> {
        let Some(index) = self.index_of(copy.number) else {
            return Ok(true);
        };
        let (id, end) = (self.superblock.state.id, self.segments[index].len);
        let mut bytes = Vec::new();
        let mut is_after_gap = copy.is_after_gap;
        let walked = self.walk(index, copy.mark, bytes_max, &mut |mark, head, payload| {
            let is_last = mark.offset + head.record_len() == end;
            if is_last || keep(head) {
                let head = RecordHead {
                    is_after_gap: head.is_after_gap || is_after_gap,
                    ..*head
                };
                bytes.extend_from_slice(&head.bytes(id));
                bytes.extend_from_slice(payload);
                is_after_gap = false;
            } else {
                is_after_gap = true;
            }
        });
        let (mark, is_end) = match walked {
            Ok(walked) => walked,
            Err(error) => {
                self.drop_unfinished()?;
                return Err(error);
            }
        };
        (copy.mark, copy.is_after_gap) = (mark, is_after_gap);
        if !bytes.is_empty() {
            self.write_copy(copy, &bytes)?;
        }
        if !is_end {
            return Ok(false);
        }
        let file = self.segments[index].file.clone();
        if let Err(error) = self.disk.rename(&copy.unfinished, &file) {
            return Err(self.undo(&copy.unfinished, &error));
        }
        self.unfinished = None;
        self.sync_directory()?;
        self.segments[index].rewritten(copy.len);
        self.figures.written += copy.len;
        self.figures.compacted += 1;
        Ok(true)
    }

    fn write_copy(&mut self, copy: &mut Copy, bytes: &[u8]) -> Result<(), LogError> {
        let file = &copy.unfinished;
        if let Err(error) = self.disk.write(file, copy.len, &[bytes]) {
            self.unfinished = None;
            return Err(self.undo(file, &error));
        }
        copy.len += bytes.len() as u64;
        self.figures.syncs_of_state += 1;
        let synced = self.disk.sync(file);
        synced.map_err(|error| self.die(file, &error))
    }

    /// Removes the new file of a segment that was given up.
    pub(super) fn drop_unfinished(&mut self) -> Result<(), LogError> {
        match self.unfinished.take() {
            Some(file) => self.remove(&file),
            None => Ok(()),
        }
    }
}
