//! Removing records that nothing needs any more.
//!
//! Segments that take no more records are looked at, one a call. One of which less than half lives is
//! written anew without the others, and replaced by rename. Its last record always stays, so that the
//! segment after it still follows. A first segment without a record that lives is removed; the
//! superblock then says where the log begins.

use super::super::record::RecordMeta;
use super::disk::Disk;
use super::error::LogError;
use super::layout::{RecordHead, SEGMENT_HEAD_LEN, SegmentHead};
use super::meta::{Start, Superblock, UNFINISHED};
use super::topic_log::TopicLog;
use super::walk::{BAD_CRC, Walked, Walker};

/// Bytes that are written at once, or more.
const BLOCK: usize = 1 << 20;

/// What became of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Compacted {
    /// What the next call takes as `from`.
    pub next: u64,
    /// Bytes of its records.
    pub bytes_before: u64,
    /// Bytes of its records now.
    pub bytes_after: u64,
}

impl<D: Disk> TopicLog<D> {
    /// Looks at the first segment whose records come at `from` or after it, and removes the records that
    /// `keep` denies if they are more than half of it. `None`: there is no such segment.
    ///
    /// Only segments with records below `settled` alone are touched. What is below `settled` is never
    /// truncated, and `keep` denies a record only because of others below `settled`: otherwise a later
    /// [`truncate`](Self::truncate) would lose the old and the new.
    pub fn compact(
        &mut self,
        from: u64,
        settled: u64,
        keep: &dyn Fn(&RecordMeta) -> bool,
    ) -> Result<Option<Compacted>, LogError> {
        self.check_usable()?;
        let count = self.segments.len();
        let mut starts = self.segments.iter().map(|it| it.start().last.end);
        let Some(index) = starts.position(|it| it >= from) else {
            return Ok(None);
        };
        let Some(next) = self.segments.get(index + 1).map(|it| it.start()) else {
            return Ok(None);
        };
        if index + 1 >= count || next.last.end > settled || settled > self.synced.last.end {
            return Ok(None);
        }
        let (bytes_before, live) = self.live(index, keep)?;
        let mut compacted = Compacted {
            next: next.last.end,
            bytes_before,
            bytes_after: bytes_before,
        };
        if live * 2 >= bytes_before {
            return Ok(Some(compacted));
        }
        let mut superblock = Superblock {
            settled: settled.max(self.superblock.settled),
            ..self.superblock.clone()
        };
        let is_removed = index == 0 && live == 0;
        if is_removed {
            superblock.start = Start {
                segment: self.segments[1].number,
                last: next.last,
                records: next.records,
            };
        }
        if superblock != self.superblock {
            self.replace_superblock(superblock)?;
        }
        if is_removed {
            let segment = self.segments.remove(0);
            self.remove(&segment.file)?;
            self.sync_directory()?;
            compacted.bytes_after = 0;
        } else {
            compacted.bytes_after = self.rewrite(index, keep)?;
        }
        Ok(Some(compacted))
    }

    /// Bytes of all records of a segment, and of those that are kept.
    fn live(
        &mut self,
        index: usize,
        keep: &dyn Fn(&RecordMeta) -> bool,
    ) -> Result<(u64, u64), LogError> {
        let segment = &self.segments[index];
        let id = self.superblock.state.id;
        let mut walker = Walker::new(id, &segment.file, segment.len, segment.start());
        let mut live = 0;
        loop {
            match walker.step(&mut self.disk)? {
                Walked::Record(head) if keep(&head.meta) => live += head.record_len(),
                Walked::Record(_) => {}
                Walked::End => {
                    self.check_end(index, walker.mark())?;
                    return Ok((segment.len - SEGMENT_HEAD_LEN as u64, live));
                }
                Walked::Bad(what) => {
                    return Err(LogError::damaged(&segment.file, walker.mark().offset, what));
                }
            }
        }
    }

    /// Writes a segment anew without the records that are not kept. Gives the bytes of its records.
    fn rewrite(
        &mut self,
        index: usize,
        keep: &dyn Fn(&RecordMeta) -> bool,
    ) -> Result<u64, LogError> {
        let file = self.segments[index].file.clone();
        let unfinished = format!("{file}{UNFINISHED}");
        if let Err(error) = self.disk.create(&unfinished) {
            return Err(self.not_created(&unfinished, &error));
        }
        let len = match self.copy_kept(index, &unfinished, keep) {
            Ok(len) => len,
            Err(error @ (LogError::Damaged { .. } | LogError::Unreadable { .. })) => {
                self.remove(&unfinished)?;
                return Err(error);
            }
            Err(error) => return Err(error),
        };
        self.figures.syncs_of_state += 1;
        if let Err(error) = self.disk.sync(&unfinished) {
            return Err(self.die(&unfinished, &error));
        }
        if let Err(error) = self.disk.rename(&unfinished, &file) {
            return Err(self.undo(&unfinished, &error));
        }
        self.sync_directory()?;
        self.segments[index].rewritten(len);
        self.figures.written += len;
        Ok(len - SEGMENT_HEAD_LEN as u64)
    }

    /// Copies what is kept of a segment. Gives the length of the copy.
    fn copy_kept(
        &mut self,
        index: usize,
        to: &str,
        keep: &dyn Fn(&RecordMeta) -> bool,
    ) -> Result<u64, LogError> {
        let id = self.superblock.state.id;
        let segment = &self.segments[index];
        let (file, end) = (segment.file.clone(), segment.len);
        let head = SegmentHead {
            log: id,
            number: segment.number,
            before: segment.start().last,
            records: segment.start().records,
        };
        let mut walker = Walker::new(id, &file, end, segment.start());
        let mut bytes = head.bytes().to_vec();
        let mut len = 0;
        let mut is_after_gap = false;
        while walker.mark().offset < end {
            let Walked::Record(head) = walker.peek(&mut self.disk)? else {
                return Err(LogError::damaged(&file, walker.mark().offset, "no record"));
            };
            let is_last = walker.mark().offset + head.record_len() == end;
            if is_last || keep(&head.meta) {
                let head = RecordHead {
                    is_after_gap: head.is_after_gap || is_after_gap,
                    ..head
                };
                let offset = walker.mark().offset;
                let Some(payload) = walker.payload(&mut self.disk, &head)? else {
                    return Err(LogError::damaged(&file, offset, BAD_CRC));
                };
                bytes.extend_from_slice(&head.bytes(id));
                bytes.extend_from_slice(payload);
                is_after_gap = false;
            } else {
                is_after_gap = true;
            }
            walker.pass(&head);
            if bytes.len() >= BLOCK || walker.mark().offset == end {
                if let Err(error) = self.disk.write(to, len, &[&bytes]) {
                    return Err(self.undo(to, &error));
                }
                len += bytes.len() as u64;
                bytes.clear();
            }
        }
        Ok(len)
    }
}
