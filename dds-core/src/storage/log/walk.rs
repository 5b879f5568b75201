//! Going through a segment, record by record.

use super::super::roster::LogId;
use super::disk::Disk;
use super::error::LogError;
use super::layout::{RECORD_HEAD_LEN, RECORD_MAGIC, RecordHead, chain};
use super::segment::Mark;

/// Bytes that are read at once, or more.
const BLOCK: u64 = 256 << 10;

/// What is wrong with a record that has another payload than was written.
pub(super) const BAD_CRC: &str = "the CRC of a record does not match";

/// What stands at a place of a segment.
#[derive(Debug)]
pub(super) enum Walked {
    Record(RecordHead),
    /// The segment ends there.
    End,
    /// No record that follows the one before; why.
    Bad(&'static str),
}

/// A place in a segment that moves over its records.
#[derive(Debug)]
pub(super) struct Walker<'a> {
    log: LogId,
    file: &'a str,
    len: u64,
    mark: Mark,
    buffer: Vec<u8>,
    /// Offset of the buffer in the file.
    buffer_at: u64,
}

impl<'a> Walker<'a> {
    /// Goes from a place of a file to `len`.
    pub(super) fn new(log: LogId, file: &'a str, len: u64, mark: Mark) -> Self {
        Self {
            log,
            file,
            len,
            mark,
            buffer: Vec::new(),
            buffer_at: 0,
        }
    }

    /// Where it is.
    pub(super) fn mark(&self) -> Mark {
        self.mark
    }

    /// The record at its place; of its payload only the length is known to be right. Does not move.
    pub(super) fn peek<D: Disk>(&mut self, disk: &mut D) -> Result<Walked, LogError> {
        let left = self.len.saturating_sub(self.mark.offset);
        match self.head(disk)? {
            _ if left == 0 => Ok(Walked::End),
            Some(head) => Ok(self.follows(head)),
            None => Ok(Walked::Bad("no whole record")),
        }
    }

    /// The head of a whole record at its place.
    fn head<D: Disk>(&mut self, disk: &mut D) -> Result<Option<RecordHead>, LogError> {
        let left = self.len.saturating_sub(self.mark.offset);
        if left < RECORD_HEAD_LEN as u64 {
            return Ok(None);
        }
        let log = self.log;
        let bytes = self.fill(disk, self.mark.offset, RECORD_HEAD_LEN as u64)?;
        let head = bytes.first_chunk().and_then(|it| RecordHead::read(log, it));
        Ok(head.filter(|it| it.record_len() <= left))
    }

    fn follows(&self, head: RecordHead) -> Walked {
        let last = self.mark.last;
        if head.meta.position < last.end || head.meta.position == u64::MAX {
            return Walked::Bad("its position is not after the one before");
        }
        if !head.is_after_gap && head.chain != chain(last.chain, head.crc) {
            return Walked::Bad("it does not follow the record before");
        }
        Walked::Record(head)
    }

    /// The payload of the record at its place, if it is the one that was written.
    pub(super) fn payload<D: Disk>(
        &mut self,
        disk: &mut D,
        head: &RecordHead,
    ) -> Result<Option<&[u8]>, LogError> {
        let bytes = self.fill(disk, self.mark.offset, head.record_len())?;
        let payload = &bytes[RECORD_HEAD_LEN..];
        Ok(head.has_payload(payload).then_some(payload))
    }

    /// Goes on behind a record.
    pub(super) fn pass(&mut self, head: &RecordHead) {
        self.mark = Mark {
            offset: self.mark.offset + head.record_len(),
            last: head.as_last(),
            records: self.mark.records + 1,
        };
    }

    /// Goes behind the next record, and checks its payload.
    pub(super) fn step<D: Disk>(&mut self, disk: &mut D) -> Result<Walked, LogError> {
        let walked = self.peek(disk)?;
        if let Walked::Record(head) = &walked {
            if self.payload(disk, head)?.is_none() {
                return Ok(Walked::Bad(BAD_CRC));
            }
            self.pass(head);
        }
        Ok(walked)
    }

    /// Whether what is bad at its place cannot be what a crash has left of a write that was not synced: a
    /// whole record stands there, or one after it was written when all up to here was synced.
    pub(super) fn is_damage<D: Disk>(&mut self, disk: &mut D) -> Result<bool, LogError> {
        if let Some(head) = self.head(disk)?
            && self.payload(disk, &head)?.is_some()
        {
            return Ok(true);
        }
        let place = self.mark.offset;
        let mut at = place + 1;
        while at + RECORD_HEAD_LEN as u64 <= self.len {
            let block = BLOCK.max(RECORD_HEAD_LEN as u64).min(self.len - at);
            let log = self.log;
            let bytes = self.fill(disk, at, block)?;
            for head in bytes
                .windows(RECORD_HEAD_LEN)
                .filter(|it| it[0] == RECORD_MAGIC)
            {
                let head = head.first_chunk().and_then(|it| RecordHead::read(log, it));
                if head.is_some_and(|it| u64::from(it.synced) > place) {
                    return Ok(true);
                }
            }
            at += block - (RECORD_HEAD_LEN as u64 - 1);
        }
        Ok(false)
    }

    /// `len` bytes of the file, which has them.
    fn fill<D: Disk>(&mut self, disk: &mut D, at: u64, len: u64) -> Result<&[u8], LogError> {
        let have = self.buffer_at..self.buffer_at + self.buffer.len() as u64;
        if at < have.start || at + len > have.end {
            let block = len.max(BLOCK).min(self.len - at);
            self.buffer.resize(block as usize, 0);
            self.buffer_at = at;
            let read = disk.read(self.file, at, &mut self.buffer);
            let read = read.map_err(|error| LogError::unreadable(self.file, error));
            self.buffer.truncate(*read.as_ref().unwrap_or(&0));
            if read? < len as usize {
                let why = format!("it ends before byte {}", at + len);
                return Err(LogError::unreadable(self.file, why));
            }
        }
        let start = (at - self.buffer_at) as usize;
        Ok(&self.buffer[start..start + len as usize])
    }
}
