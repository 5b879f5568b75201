//! What is known of a segment file.

use super::layout::SEGMENT_HEAD_LEN;
use super::topic_log::LastRecord;

/// Bytes of a segment from one mark of its index to the next, or more.
const MARK_BYTES: u64 = 256 << 10;
const ENDING: &str = ".segment";

/// A place between two records of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Mark {
    /// Offset in the segment's file.
    pub(super) offset: u64,
    /// The last record before it.
    pub(super) last: LastRecord,
    /// Records before it since the log began.
    pub(super) records: u64,
}

#[derive(Debug)]
pub(super) struct Segment {
    pub(super) file: String,
    /// Position of the first record that was written to it.
    pub(super) first: u64,
    /// Segments before it since the log began.
    pub(super) number: u64,
    /// Length of the head and of all records.
    pub(super) len: u64,
    /// Places in it, ascending; the first is that before all its records.
    marks: Vec<Mark>,
    /// Whether the marks cover it.
    pub(super) is_indexed: bool,
}

impl Segment {
    pub(super) fn new(first: u64, number: u64, len: u64, last: LastRecord, records: u64) -> Self {
        let mark = Mark {
            offset: SEGMENT_HEAD_LEN as u64,
            last,
            records,
        };
        Self {
            file: file_of(first),
            first,
            number,
            len,
            marks: vec![mark],
            is_indexed: false,
        }
    }

    /// The place before its first record.
    pub(super) fn start(&self) -> Mark {
        self.marks.first().copied().unwrap_or_default()
    }

    /// Adds a place to the index, if it is far enough from the one before.
    pub(super) fn note(&mut self, mark: Mark) {
        let last = self.marks.last().map_or(0, |it| it.offset);
        if mark.offset >= last + MARK_BYTES {
            self.marks.push(mark);
        }
    }

    /// The last known place that has only records below a position before it.
    pub(super) fn mark_before(&self, position: u64) -> Mark {
        let count = self.marks.partition_point(|it| it.last.end <= position);
        self.marks[..count]
            .last()
            .copied()
            .unwrap_or_else(|| self.start())
    }

    /// The known places, ascending.
    pub(super) fn marks(&self) -> &[Mark] {
        &self.marks
    }

    /// It ends at a place from now on.
    pub(super) fn end_at(&mut self, mark: Mark) {
        self.len = mark.offset;
        self.marks.retain(|it| it.offset <= mark.offset);
    }

    /// Some of its records were removed.
    pub(super) fn rewritten(&mut self, len: u64) {
        self.len = len;
        self.marks.truncate(1);
        self.is_indexed = false;
    }
}

/// The file of a segment, by the position of its first record.
pub(super) fn file_of(first: u64) -> String {
    format!("{first:016x}{ENDING}")
}

/// The position of the first record in a file of that name, if it is one of a segment.
pub(super) fn first_of(file: &str) -> Option<u64> {
    let first = u64::from_str_radix(file.strip_suffix(ENDING)?, 16).ok()?;
    (file == file_of(first)).then_some(first)
}
