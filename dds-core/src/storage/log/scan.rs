//! What is left of a segment that is damaged.

use super::super::roster::LogId;
use super::layout::{RECORD_HEAD_LEN, RECORD_MAGIC, RecordHead, SEGMENT_HEAD_LEN, SegmentHead};

/// The contents of a segment's file, as far as they are as they were written.
#[derive(Debug)]
pub(super) struct Scan<'a> {
    pub(super) head: Option<SegmentHead>,
    /// The sound records with their offsets, in the order of the file.
    pub(super) records: Vec<(usize, RecordHead)>,
    /// The offset of the first byte that belongs to none of them.
    pub(super) bad: Option<usize>,
    bytes: &'a [u8],
}

impl<'a> Scan<'a> {
    /// Looks for records of a log; behind what is none, at each byte.
    pub(super) fn new(log: LogId, bytes: &'a [u8]) -> Self {
        let head = bytes
            .first_chunk()
            .and_then(|it| SegmentHead::read(log, it));
        let mut scan = Self {
            head,
            records: Vec::new(),
            bad: head.is_none().then_some(0),
            bytes,
        };
        let mut at = SEGMENT_HEAD_LEN;
        while at < bytes.len() {
            match record_at(log, bytes, at) {
                Some(head) => {
                    scan.records.push((at, head));
                    at += head.record_len() as usize;
                }
                None => {
                    scan.bad.get_or_insert(at);
                    let rest = bytes[at + 1..].iter();
                    let next = rest.take_while(|it| **it != RECORD_MAGIC).count();
                    at += 1 + next;
                }
            }
        }
        scan
    }

    /// The payload of a record.
    pub(super) fn payload(&self, at: usize, head: &RecordHead) -> &'a [u8] {
        &self.bytes[at + RECORD_HEAD_LEN..at + head.record_len() as usize]
    }
}

/// The record that begins at an offset, if all of it is there.
fn record_at(log: LogId, bytes: &[u8], at: usize) -> Option<RecordHead> {
    let (head, rest) = bytes[at..].split_first_chunk()?;
    let head = RecordHead::read(log, head)?;
    let payload = rest.get(..head.len as usize)?;
    head.has_payload(payload).then_some(head)
}
