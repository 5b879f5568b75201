//! The queue of pushes to one peer: ranges and words, in call order.
//!
//! Ranges wait, not bytes: they are fetched when they are sent. So a range that is pushed
//! again while it waits is not queued twice, and ranges that touch are merged.
//!
//! Messages of a ring that follow each other are one record while they wait: one range of
//! payload, one of headers, and behind them the guard with its last value. Nothing but wake-ups
//! lies between them, so no other word is overtaken (F2); a peer sees the payload of a later
//! message before the guard of an earlier one, as F5 allows, and of the guard's values the last.

mod messages;

use std::collections::VecDeque;
use std::sync::Arc;

use self::messages::QueuedMessages;
use crate::fabric::{FABRIC_AREA, WakeReason};
use crate::memory::Region;
use crate::station::segment::SegmentKey;

/// How many of the newest records are searched for a range that covers the one to be
/// queued.
const LOOK_BACK: usize = 32;

/// Number of slots whose first use allocates nothing.
pub(crate) const SLOTS: usize = 256;

/// A segment as its pushes need it: its slot and my row.
#[derive(Debug)]
pub(crate) struct OwnSegment {
    /// Stands for the segment with all peers, until it is dropped.
    pub(crate) slot: u16,
    pub(crate) key: SegmentKey,
    pub(crate) row: Region,
}

impl OwnSegment {
    /// A push of `len` bytes of the row.
    ///
    /// # Panics
    /// If the range is unaligned, outside the row, or in the fabric's area.
    pub(crate) fn range(&self, at: usize, len: usize) -> Push {
        self.check(at, len);
        let slot = self.slot;
        Push::Range { slot, at, len }
    }

    /// A push of a word of the row.
    ///
    /// # Panics
    /// As [`range`](Self::range).
    pub(crate) fn word(&self, at: usize, value: u64) -> Push {
        self.check(at, 8);
        let slot = self.slot;
        Push::Word { slot, at, value }
    }

    /// A push of a message: its payload and header (offset and length), and its guard.
    ///
    /// # Panics
    /// As [`range`](Self::range).
    pub(crate) fn message(
        &self,
        payload: (usize, usize),
        header: (usize, usize),
        guard: (usize, u64),
    ) -> Push {
        for (at, len) in [payload, header, (guard.0, 8)] {
            if len > 0 {
                self.check(at, len);
            }
        }
        Push::Messages(QueuedMessages::one(self.slot, payload, header, guard))
    }

    fn check(&self, at: usize, len: usize) {
        let inside = at >= FABRIC_AREA && self.row.contains(at, len);
        assert!(
            inside && at.is_multiple_of(8) && len.is_multiple_of(8),
            "push of {len} bytes at {at}: unaligned, outside the row or in the fabric's area"
        );
    }
}

/// A record of the queue.
#[derive(Debug, Clone)]
pub(crate) enum Push {
    /// A range, fetched from the row when it is sent.
    Range { slot: u16, at: usize, len: usize },
    /// A word with its value.
    Word { slot: u16, at: usize, value: u64 },
    /// Messages of a ring, one behind the other. Taken in parts, as ranges and a word.
    Messages(QueuedMessages),
    /// A wake-up of the peer.
    Wake(WakeReason),
    /// From here on the slot stands for this segment.
    Open(Arc<OwnSegment>),
    /// The slot is free from here on.
    Shut { slot: u16 },
}

impl Push {
    /// Bytes of the row.
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Range { len, .. } => *len,
            Self::Word { .. } => 8,
            Self::Messages(messages) => messages.len(),
            Self::Wake(_) | Self::Open(_) | Self::Shut { .. } => 0,
        }
    }
}

/// The queue is full: its peer reads too slowly.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Full {
    pub(crate) waiting: usize,
}

/// A waiting push.
#[derive(Debug)]
struct Record {
    push: Push,
    /// It is the first of its batch.
    begins_batch: bool,
}

/// A bounded queue of pushes. It allocates only while it grows.
#[derive(Debug)]
pub(crate) struct PushQueue {
    records: VecDeque<Record>,
    /// Most records that may wait.
    max: usize,
    /// The next record that is appended begins a batch.
    next_begins_batch: bool,
    /// Bytes of rows that wait.
    bytes: usize,
    /// By slot: whether its opening record was appended.
    open: Vec<bool>,
}

impl PushQueue {
    pub(crate) fn new(max: usize) -> Self {
        Self {
            records: VecDeque::with_capacity(max.min(256)),
            max,
            next_begins_batch: false,
            bytes: 0,
            open: Vec::with_capacity(SLOTS),
        }
    }

    /// Number of waiting records.
    pub(crate) fn len(&self) -> usize {
        self.records.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// Bytes of rows that wait.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Discards all waiting records.
    pub(crate) fn clear(&mut self) {
        self.records = VecDeque::new();
        self.bytes = 0;
    }

    /// Appends the record that opens a segment; false if that was done before.
    pub(crate) fn open(&mut self, own: &Arc<OwnSegment>) -> Result<bool, Full> {
        let slot = usize::from(own.slot);
        if self.open.len() <= slot {
            self.open.resize(slot + 1, false);
        }
        if self.open[slot] {
            return Ok(false);
        }
        self.put(Push::Open(Arc::clone(own)))?;
        self.open[slot] = true;
        Ok(true)
    }

    /// Appends the end of a segment, if it was ever opened.
    pub(crate) fn shut(&mut self, slot: u16) -> Result<(), Full> {
        let open = self.open.get_mut(usize::from(slot));
        match open.is_some_and(core::mem::take) {
            true => self.put(Push::Shut { slot }),
            false => Ok(()),
        }
    }

    /// The next record that is appended begins a batch.
    #[cfg_attr(not(feature = "verbs"), allow(dead_code))] // Batches are counted for RDMA only.
    pub(crate) fn begin_batch(&mut self) {
        self.next_begins_batch = true;
    }

    /// Appends a record, unless a waiting record already has the same effect.
    pub(crate) fn put(&mut self, push: Push) -> Result<(), Full> {
        if self.is_covered(&push) || self.extends_last(&push) || self.follows_messages(&push) {
            return Ok(());
        }
        if self.records.len() >= self.max {
            let waiting = self.records.len();
            return Err(Full { waiting });
        }
        self.bytes += push.len();
        let begins_batch = core::mem::take(&mut self.next_begins_batch);
        self.records.push_back(Record { push, begins_batch });
        Ok(())
    }

    /// The next record.
    pub(crate) fn front(&self) -> Option<&Push> {
        Some(&self.records.front()?.push)
    }

    /// Whether the next record begins a batch.
    #[cfg_attr(not(feature = "verbs"), allow(dead_code))] // Batches are counted for RDMA only.
    pub(crate) fn begins_batch(&self) -> bool {
        self.records
            .front()
            .is_some_and(|record| record.begins_batch)
    }

    /// Takes the next record; of a range that is longer than `most` bytes, its first
    /// `most`; of messages, the next part.
    pub(crate) fn take(&mut self, most: usize) -> Option<Push> {
        let front = self.records.front_mut()?;
        let taken = match &mut front.push {
            Push::Messages(messages) => {
                front.begins_batch = false;
                let (part, is_last) = messages.take(most);
                if is_last {
                    self.records.pop_front();
                }
                part
            }
            Push::Range { slot, at, len } if *len > most => {
                front.begins_batch = false;
                let part = Push::Range {
                    slot: *slot,
                    at: *at,
                    len: most,
                };
                (*at, *len) = (*at + most, *len - most);
                part
            }
            _ => self.records.pop_front()?.push,
        };
        self.bytes -= taken.len();
        Some(taken)
    }

    /// Whether a waiting range will fetch these bytes. It fetches them after this call, so
    /// the copy is the same as if they were fetched again at once: words that vouch for
    /// something are never part of ranges (F1b). The search stops at a record that opens
    /// or shuts a slot, before which the slot may have stood for another segment.
    fn is_covered(&self, record: &Push) -> bool {
        let &Push::Range { slot, at, len } = record else {
            return false;
        };
        let covers = |waiting: &Push| match *waiting {
            Push::Range {
                slot: of,
                at: from,
                len: all,
            } => of == slot && from <= at && at + len <= from + all,
            _ => false,
        };
        let newest = self.records.iter().rev().take(LOOK_BACK);
        newest
            .map(|waiting| &waiting.push)
            .take_while(|waiting| !matches!(waiting, Push::Open(_) | Push::Shut { .. }))
            .any(covers)
    }

    /// Adds a message to those that were pushed last, if nothing was pushed since but a wake-up.
    fn follows_messages(&mut self, record: &Push) -> bool {
        let Push::Messages(next) = record else {
            return false;
        };
        let mut newest = self.records.iter_mut().rev().map(|record| &mut record.push);
        let last = match newest.next() {
            Some(Push::Wake(_)) => newest.next(),
            last => last,
        };
        let Some(Push::Messages(messages)) = last else {
            return false;
        };
        let before = messages.len();
        let added = messages.add(next);
        self.bytes += messages.len() - before;
        added
    }

    /// Extends the newest record, if that has the effect of appending this one.
    fn extends_last(&mut self, record: &Push) -> bool {
        let last = self.records.back_mut().map(|last| &mut last.push);
        match (last, record) {
            (
                Some(Push::Range { slot, at, len }),
                &Push::Range {
                    slot: of,
                    at: more,
                    len: by,
                },
            ) => {
                let (from, end) = ((*at).min(more), (*at + *len).max(more + by));
                let touches = *slot == of && end - from <= *len + by;
                if touches {
                    self.bytes += end - from - *len;
                    (*at, *len) = (from, end - from);
                }
                touches
            }
            (Some(Push::Wake(reason)), Push::Wake(other)) => {
                *reason = (*reason).max(*other);
                true
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests;
