//! Removing records that nothing needs any more.
//!
//! ```text
//!   reading   all records of the segments that may be changed are put into a history with the limits of
//!             the log's head: what it keeps lives
//!   looking   each segment, the oldest first: how much of it lives
//!   copying   one of which less than half lives is written anew without the others; a first one without a
//!             record that lives is removed
//! ```
//!
//! All of it is done in steps of some bytes, between which records are appended.
//!
//! # What may be removed
//! Only records of segments that take no more records, and that have only *settled* ones: those that are
//! never truncated. And a record is removed only because of others in these segments. Otherwise a
//! truncation would lose the old and the new.
//!
//! After it the log says the same: who puts what is left into a history gets what all of it would give. So:
//! - A message that disposes of an instance or unregisters it stays as long as an older record of the
//!   instance does that does not live, in a segment that is not written anew. It would live again.
//! - Where RESOURCE_LIMITS left no room for a record, nothing is removed from its segment on: with
//!   an older record gone there would be room for it, and none for a later one that lives.

use std::collections::BTreeSet;

use super::super::history::{HistoryLimits, Put, SampleHistory};
use super::super::record::{Record, RecordMeta};
use super::compact::Copy;
use super::disk::Disk;
use super::error::LogError;
use super::layout::{RecordHead, SEGMENT_HEAD_LEN};
use super::segment::Mark;
use super::topic_log::TopicLog;
use crate::subgroup::header::MessageKind;

/// What names the instance of a record, as the history that it is put into knows it.
pub type InstanceOf<'a> = &'a dyn Fn(&Record, &SampleHistory) -> [u8; 16];

/// One pass over a log that removes what no reader gets that comes later.
#[derive(Debug)]
pub struct Compaction {
    limits: HistoryLimits,
    now_ns: u64,
    /// Truncations of the log when it began: another one ends it.
    truncations: u64,
    /// Number of the first segment that is left as it is.
    until: u64,
    phase: Phase,
    /// Positions of the records that live, ascending.
    live: Vec<u64>,
    /// Key hashes of records that stay and do not live, in the segments before.
    shadows: BTreeSet<[u8; 16]>,
    is_stopped_by_limit: bool,
}

#[derive(Debug)]
enum Phase {
    Reading(Box<Reading>),
    Looking(Looking),
    Copying(Copy, Looking),
    Done,
}

#[derive(Debug, Default)]
struct Reading {
    history: SampleHistory,
    number: u64,
    /// `None`: its beginning.
    mark: Option<Mark>,
    /// When the newest of its records was written.
    at_ns: u64,
}

/// What was found of a segment.
#[derive(Debug, Default)]
struct Looking {
    number: u64,
    mark: Option<Mark>,
    /// Bytes of the records that are kept.
    kept: u64,
    /// Key hashes of the others.
    shadows: BTreeSet<[u8; 16]>,
    /// The last record so far, and its bytes if it is not one that is kept.
    last: Option<([u8; 16], u64)>,
}

impl Compaction {
    /// A pass over the segments below a position, below which the log is never truncated. `now_ns` is the time
    /// since 1970.
    pub fn new<D: Disk>(
        log: &TopicLog<D>,
        settled: u64,
        limits: HistoryLimits,
        now_ns: u64,
    ) -> Self {
        Self {
            limits,
            now_ns,
            truncations: log.truncations,
            until: log.settled_until(settled),
            phase: Phase::Reading(Box::new(Reading {
                number: log.first_segment(),
                ..Reading::default()
            })),
            live: Vec::new(),
            shadows: BTreeSet::new(),
            is_stopped_by_limit: false,
        }
    }

    /// The same where it is known which records live: their positions, ascending.
    #[cfg(test)]
    pub(super) fn of_live<D: Disk>(log: &TopicLog<D>, settled: u64, live: Vec<u64>) -> Self {
        Self {
            live,
            phase: Phase::Looking(Looking::at(log.first_segment())),
            ..Self::new(log, settled, HistoryLimits::default(), 0)
        }
    }

    /// The limits that it applies.
    pub fn limits(&self) -> &HistoryLimits {
        &self.limits
    }

    /// Whether a limit has left no room for a record: nothing is removed from its segment on.
    pub fn is_stopped_by_limit(&self) -> bool {
        self.is_stopped_by_limit
    }

    /// Does all that is left to do.
    pub fn run<D: Disk>(
        &mut self,
        log: &mut TopicLog<D>,
        instance_of: InstanceOf<'_>,
    ) -> Result<(), LogError> {
        while self.step(log, instance_of, 1 << 20)? {}
        Ok(())
    }

    /// Reads about that many bytes, and writes what is kept of them. Gives whether there is more to do. Nothing is
    /// left to do after an error.
    pub fn step<D: Disk>(
        &mut self,
        log: &mut TopicLog<D>,
        instance_of: InstanceOf<'_>,
        bytes_max: u64,
    ) -> Result<bool, LogError> {
        log.check_usable()?;
        let phase = std::mem::replace(&mut self.phase, Phase::Done);
        if self.truncations != log.truncations {
            return Ok(false);
        }
        self.phase = match phase {
            Phase::Reading(reading) => self.read_on(log, *reading, instance_of, bytes_max)?,
            Phase::Looking(looking) => self.look_on(log, looking, bytes_max)?,
            Phase::Copying(copy, looking) => self.copy_on(log, copy, looking, bytes_max)?,
            Phase::Done => Phase::Done,
        };
        Ok(!matches!(self.phase, Phase::Done))
    }

    fn read_on<D: Disk>(
        &mut self,
        log: &mut TopicLog<D>,
        mut reading: Reading,
        instance_of: InstanceOf<'_>,
        bytes_max: u64,
    ) -> Result<Phase, LogError> {
        let index = log.index_of(reading.number);
        let Some(index) = index.filter(|_| reading.number < self.until) else {
            reading.history.purge(reading.at_ns);
            let kept = reading.history.snapshot();
            self.live = kept.records().iter().map(Record::position).collect();
            return Ok(Phase::Looking(Looking::at(log.first_segment())));
        };
        let mark = reading.mark.unwrap_or_else(|| log.segments[index].start());
        let (history, newest_ns) = (&mut reading.history, &mut reading.at_ns);
        let mut has_room = true;
        let (mark, is_end) = log.walk(index, mark, bytes_max, &mut |_, head, payload| {
            let instance = instance_of(&head.record(payload), history);
            // The cleanup delay of an instance counts from then on. What was written later may have revived it.
            let at_ns = u64::try_from(head.meta.timestamp).map_or(0, |at| at.min(self.now_ns));
            *newest_ns = at_ns.max(*newest_ns);
            history.purge(*newest_ns);
            let record = Record::new(&head.meta, &[]);
            let put = history.put(instance, record, &self.limits, at_ns);
            has_room &= !matches!(put, Put::Full(_));
        })?;
        if !has_room {
            self.is_stopped_by_limit = true;
            self.until = reading.number;
            reading = Reading {
                number: log.first_segment(),
                ..Reading::default()
            };
        } else if is_end {
            reading.number += 1;
            reading.mark = None;
        } else {
            reading.mark = Some(mark);
        }
        Ok(Phase::Reading(Box::new(reading)))
    }

    fn look_on<D: Disk>(
        &mut self,
        log: &mut TopicLog<D>,
        mut looking: Looking,
        bytes_max: u64,
    ) -> Result<Phase, LogError> {
        let index = log.index_of(looking.number);
        let Some(index) = index.filter(|_| looking.number < self.until) else {
            return Ok(Phase::Done);
        };
        let mark = looking.mark.unwrap_or_else(|| log.segments[index].start());
        let (mark, is_end) = log.walk(index, mark, bytes_max, &mut |_, head, _| {
            looking.see(head, self.keeps(&head.meta));
        })?;
        looking.mark = Some(mark);
        if !is_end {
            return Ok(Phase::Looking(looking));
        }
        let next = Looking::at(looking.number + 1);
        let bytes = log.segments[index].len - SEGMENT_HEAD_LEN as u64;
        let bytes_after = looking.kept + looking.last.map_or(0, |(_, len)| len);
        let is_removed = index == 0 && looking.kept == 0;
        if !is_removed && bytes_after * 2 >= bytes {
            self.shadows.append(&mut looking.shadows);
            return Ok(Phase::Looking(next));
        }
        let settled = log.index_of(self.until).map(|it| log.segments[it].start());
        log.settle(settled.map_or(0, |it| it.last.end))?;
        if is_removed {
            log.remove_first()?;
            return Ok(Phase::Looking(next));
        }
        let copy = log.begin_copy(index)?;
        Ok(Phase::Copying(copy, looking))
    }

    fn copy_on<D: Disk>(
        &mut self,
        log: &mut TopicLog<D>,
        mut copy: Copy,
        looking: Looking,
        bytes_max: u64,
    ) -> Result<Phase, LogError> {
        if !log.copy_some(&mut copy, bytes_max, &|head| self.keeps(&head.meta))? {
            return Ok(Phase::Copying(copy, looking));
        }
        let last = looking.last.filter(|(_, len)| *len > 0);
        self.shadows.extend(last.map(|(key, _)| key));
        Ok(Phase::Looking(Looking::at(looking.number + 1)))
    }

    /// Whether a record is kept, be it the last one or not.
    fn keeps(&self, meta: &RecordMeta) -> bool {
        let is_state = meta.kind != MessageKind::Data;
        self.live.binary_search(&meta.position).is_ok()
            || is_state && self.shadows.contains(&meta.key)
    }
}

impl Looking {
    fn at(number: u64) -> Self {
        Self {
            number,
            ..Self::default()
        }
    }

    fn see(&mut self, head: &RecordHead, is_kept: bool) {
        let (key, len) = (head.meta.key, head.record_len());
        if is_kept {
            self.kept += len;
        } else {
            self.shadows.insert(key);
        }
        self.last = Some((key, if is_kept { 0 } else { len }));
    }
}

impl<D: Disk> TopicLog<D> {
    /// The number of the first segment.
    fn first_segment(&self) -> u64 {
        self.segments.first().map_or(0, |it| it.number)
    }

    /// Index of the first segment that takes records, or has one that is not synced or not below a position.
    fn settled_segments(&self, settled: u64) -> usize {
        let settled = settled.min(self.synced());
        let nexts = self.segments.get(1..).unwrap_or_default();
        nexts.partition_point(|next| next.start().last.end <= settled)
    }

    /// The number of the first segment that a [`Compaction`] below this position leaves as it is.
    pub fn settled_until(&self, settled: u64) -> u64 {
        let until = self.segments.get(self.settled_segments(settled));
        until.map_or(0, |it| it.number)
    }

    /// Bytes of the segments that a [`Compaction`] below this position may change.
    pub fn settled_bytes(&self, settled: u64) -> u64 {
        let segments = &self.segments[..self.settled_segments(settled)];
        segments.iter().map(|it| it.len).sum()
    }

    /// Position below which records were removed that others below it have superseded: never truncated, except
    /// all.
    pub fn settled(&self) -> u64 {
        self.superblock.settled
    }
}
