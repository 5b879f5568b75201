//! The queue of pushes to one peer: ranges and words, in call order.
//!
//! Ranges wait, not bytes: they are fetched when they are sent. So a range that is pushed
//! again while it waits is not queued twice, and ranges that touch are merged.
//!
//! Messages of a ring that follow each other are one record while they wait: one range of
//! payload, one of headers, and behind them the guard with its last value. Nothing but wake-ups
//! lies between them, so no other word is overtaken (F2); a peer sees the payload of a later
//! message before the guard of an earlier one, as F5 allows, and of the guard's values the last.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::fabric::{FABRIC_AREA, WakeReason};
use crate::memory::Region;
use crate::station::segment::SegmentKey;

/// How many of the newest records are searched for a range that covers the one to be
/// queued.
const LOOK_BACK: usize = 32;

/// Most bytes between the payloads of two messages that are sent as one range: less than the
/// header of a range and what handling it costs.
const GAP_MAX: usize = 64;

/// Most bytes of messages in one record. A record to which messages are added is sent whole
/// within one system call, so its guard does not wait for what is published meanwhile.
const MESSAGES_LEN_MAX: usize = 1 << 15;

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
        Push::Messages(QueuedMessages {
            slot: self.slot,
            payload: Span::new(payload),
            headers: Span::new(header),
            guard,
            is_begun: false,
        })
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

/// A range of a row, in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Span {
    at: usize,
    len: usize,
}

impl Span {
    const fn new((at, len): (usize, usize)) -> Self {
        Self { at, len }
    }

    fn end(self) -> usize {
        self.at + self.len
    }

    /// Both, with the gap between them: the next one begins where this one ends, or a few bytes
    /// behind. An empty one adds nothing.
    fn followed_by(self, next: Self) -> Option<Self> {
        match (self.len, next.len) {
            (_, 0) => Some(self),
            (0, _) => Some(next),
            _ if next.at < self.end() || next.at - self.end() > GAP_MAX => None,
            _ => Some(Self {
                at: self.at,
                len: next.end() - self.at,
            }),
        }
    }

    /// Takes at most `most` bytes from the front.
    fn take(&mut self, most: usize) -> Self {
        let taken = Self {
            at: self.at,
            len: self.len.min(most),
        };
        (self.at, self.len) = (taken.end(), self.len - taken.len);
        taken
    }
}

/// Messages of a ring that wait, one behind the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct QueuedMessages {
    slot: u16,
    payload: Span,
    headers: Span,
    /// Offset and value of the word that vouches for all of them.
    guard: (usize, u64),
    /// A part was taken: no message is added any more.
    is_begun: bool,
}

impl QueuedMessages {
    fn len(&self) -> usize {
        self.payload.len + self.headers.len + 8
    }

    /// Adds a message that was pushed directly behind these; false if it has to wait in a
    /// record of its own.
    fn add(&mut self, next: &Self) -> bool {
        let follows = !self.is_begun
            && self.slot == next.slot
            && self.guard.0 == next.guard.0
            && self.guard.1 < next.guard.1
            && self.len() + next.len() <= MESSAGES_LEN_MAX;
        let payload = self.payload.followed_by(next.payload);
        let headers = self.headers.followed_by(next.headers);
        match (follows, payload, headers) {
            (true, Some(payload), Some(headers)) => {
                (self.payload, self.headers, self.guard) = (payload, headers, next.guard);
                true
            }
            _ => false,
        }
    }

    /// Takes a part of at most `most` bytes: payload, headers, and last the guard. Whether it
    /// was the last.
    fn take(&mut self, most: usize) -> (Push, bool) {
        self.is_begun = true;
        let slot = self.slot;
        for span in [&mut self.payload, &mut self.headers] {
            if span.len > 0 {
                let Span { at, len } = span.take(most);
                return (Push::Range { slot, at, len }, false);
            }
        }
        let (at, value) = self.guard;
        (Push::Word { slot, at, value }, true)
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
mod tests {
    use core::slice;

    use super::*;
    use crate::sim::Rng;

    impl PartialEq for Push {
        fn eq(&self, other: &Self) -> bool {
            format!("{self:?}") == format!("{other:?}")
        }
    }

    fn range(at: usize, len: usize) -> Push {
        Push::Range { slot: 0, at, len }
    }

    fn taken(queue: &mut PushQueue) -> Vec<Push> {
        core::iter::from_fn(|| queue.take(usize::MAX)).collect()
    }

    #[test]
    fn a_push_that_waits_is_not_queued_twice() {
        let check = |pushes: &[Push], expected: &[Push]| {
            let mut queue = PushQueue::new(100);
            pushes
                .iter()
                .for_each(|push| queue.put(push.clone()).expect("room"));
            let bytes = expected.iter().map(Push::len).sum::<usize>();
            assert_eq!(queue.bytes(), bytes, "{pushes:?}");
            assert_eq!(taken(&mut queue), expected);
            assert_eq!((queue.len(), queue.bytes()), (0, 0));
        };
        let word = |value| Push::Word {
            slot: 0,
            at: 512,
            value,
        };
        let (data, acks) = (WakeReason::Data, WakeReason::Stability);
        let (data, acks) = (Push::Wake(data), Push::Wake(acks));
        check(&[range(0, 64), range(64, 64)], &[range(0, 128)]);
        check(&[range(64, 64), range(0, 64)], &[range(0, 128)]);
        check(&[range(0, 64), range(32, 64)], &[range(0, 96)]);
        check(&[range(0, 64), range(72, 8)], &[range(0, 64), range(72, 8)]);
        let with_words = [range(0, 64), word(1), range(8, 8), word(2)];
        check(&with_words, &[range(0, 64), word(1), word(2)]);
        let beside = [range(0, 64), word(1), range(64, 8)];
        check(&beside, &beside);
        check(&[word(1), word(1)], &[word(1), word(1)]);
        check(
            &[acks.clone(), data.clone(), acks.clone()],
            slice::from_ref(&data),
        );
        let between = [data.clone(), word(1), acks.clone()];
        check(&between, &between);
    }

    /// After a slot was shut it stands for another segment: waiting ranges of the old one
    /// cover nothing of the new one.
    #[test]
    fn segments_do_not_share_ranges() {
        let own = |slot, index| {
            let key = SegmentKey { epoch: 1, index };
            let row = Region::heap(512);
            Arc::new(OwnSegment { slot, key, row })
        };
        let mut queue = PushQueue::new(100);
        let range = |slot| Push::Range {
            slot,
            at: 256,
            len: 64,
        };
        let (first, second, third) = (own(0, 0), own(1, 1), own(0, 2));
        queue.shut(0).expect("never opened");
        queue.open(&first).expect("room");
        queue.put(range(0)).expect("room");
        queue.open(&second).expect("room");
        queue.put(range(1)).expect("room");
        queue.open(&second).expect("room");
        queue.put(range(1)).expect("covered");
        queue.shut(0).expect("room");
        queue.open(&third).expect("room");
        queue.put(range(0)).expect("room");
        let expected = [
            Push::Open(first),
            range(0),
            Push::Open(second),
            range(1),
            Push::Shut { slot: 0 },
            Push::Open(third),
            range(0),
        ];
        assert_eq!(taken(&mut queue), expected);
        assert_eq!((queue.len(), queue.bytes()), (0, 0));
    }

    #[test]
    fn long_ranges_are_taken_in_parts() {
        let mut queue = PushQueue::new(100);
        queue.put(range(0, 104)).expect("room");
        assert_eq!(queue.take(40), Some(range(0, 40)));
        assert_eq!(queue.bytes(), 64);
        // The rest does not cover what was taken.
        queue.put(range(32, 8)).expect("room");
        assert_eq!(taken(&mut queue), [range(32, 72)]);
        assert_eq!((queue.len(), queue.bytes()), (0, 0));
    }

    /// The first record of a batch begins it; of a range that is taken in parts, the first
    /// part.
    #[test]
    fn batches_begin_with_their_first_record() {
        let mut queue = PushQueue::new(100);
        let word = Push::Word {
            slot: 0,
            at: 512,
            value: 1,
        };
        let acks = range(256, 8);
        let batches = [
            vec![range(0, 128), word.clone(), acks.clone()],
            // Covered by a waiting range.
            vec![acks, range(128, 64), word.clone()],
            vec![word],
        ];
        for batch in batches {
            queue.begin_batch();
            batch
                .into_iter()
                .for_each(|push| queue.put(push).expect("room"));
        }
        let begins = core::iter::from_fn(|| {
            let begins = queue.begins_batch();
            queue.take(64).map(|_| begins)
        });
        let expected = [true, false, false, false, true, false, true];
        assert_eq!(begins.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_full_queue_says_so() {
        let word = |value| Push::Word {
            slot: 0,
            at: 0,
            value,
        };
        let mut queue = PushQueue::new(2);
        queue.put(word(1)).expect("room");
        queue.put(range(8, 8)).expect("room");
        queue.put(range(16, 8)).expect("it extends the last");
        let full = queue.put(word(2));
        assert_eq!(full, Err(Full { waiting: 2 }));
        queue.clear();
        assert_eq!((queue.len(), queue.bytes()), (0, 0));
    }

    fn message(payload: (usize, usize), header: usize, guard: (usize, u64)) -> Push {
        Push::Messages(QueuedMessages {
            slot: 0,
            payload: Span::new(payload),
            headers: Span::new((header, 24)),
            guard,
            is_begun: false,
        })
    }

    #[test]
    fn messages_that_follow_each_other_are_sent_as_one() {
        let word = |at, value| Push::Word { slot: 0, at, value };
        let wake = Push::Wake(WakeReason::Data);
        let check = |pushes: &[Push], expected: &[Push]| {
            let mut queue = PushQueue::new(100);
            pushes
                .iter()
                .for_each(|push| queue.put(push.clone()).expect("room"));
            let bytes = expected.iter().map(Push::len).sum::<usize>();
            assert_eq!(queue.bytes(), bytes, "{pushes:?}");
            assert_eq!(taken(&mut queue), expected);
            assert_eq!((queue.len(), queue.bytes()), (0, 0));
        };
        let one = message((4096, 128), 1000, (512, 1));
        let two = message((4224, 100), 1024, (512, 2));
        // A gap of 28 bytes is sent, too.
        let three = message((4352, 64), 1048, (512, 3));
        let together = [
            range(4096, 320),
            range(1000, 72),
            word(512, 3),
            wake.clone(),
        ];
        let pushes = [&one, &wake, &two, &wake, &three].map(Clone::clone);
        check(&pushes, &[&together[..3], &together[3..]].concat());
        check(&[one.clone(), two.clone(), three, wake], &together);
        // An acknowledgement lies between.
        let ack = range(600, 8);
        let parts = |from: usize, len, header, value| {
            [range(from, len), range(header, 24), word(512, value)]
        };
        let apart = [
            &parts(4096, 128, 1000, 1)[..],
            slice::from_ref(&ack),
            &parts(4224, 100, 1024, 2),
        ];
        check(&[one.clone(), ack.clone(), two.clone()], &apart.concat());
        // The ring begins anew; a message has no payload; another ring.
        let again = message((2048, 64), 1024, (512, 2));
        let apart = [parts(4096, 128, 1000, 1), parts(2048, 64, 1024, 2)].concat();
        check(&[one.clone(), again], &apart);
        let empty = message((0, 0), 1024, (512, 2));
        check(
            &[one.clone(), empty],
            &[range(4096, 128), range(1000, 48), word(512, 2)],
        );
        let other = message((4224, 100), 1024, (520, 2));
        let apart = [
            &parts(4096, 128, 1000, 1)[..],
            &[range(4224, 100), range(1024, 24), word(520, 2)],
        ];
        check(&[one.clone(), other], &apart.concat());
        // One that has begun to be taken grows no more.
        let mut queue = PushQueue::new(100);
        queue.put(one).expect("room");
        assert_eq!(queue.take(64), Some(range(4096, 64)));
        queue.put(two).expect("room");
        let rest = [
            &[range(4160, 64), range(1000, 24), word(512, 1)],
            &parts(4224, 100, 1024, 2)[..],
        ];
        assert_eq!(taken(&mut queue), rest.concat());
    }

    #[test]
    fn messages_in_one_record_are_bounded() {
        let mut queue = PushQueue::new(100);
        let len = 1000;
        for at in 0..100 {
            let guard = (512, 1 + at as u64);
            let push = message((4096 + at * len, len), 1024 + at * 24, guard);
            queue.put(push).expect("room");
        }
        assert_eq!(queue.len(), 4);
        let guards = taken(&mut queue).into_iter().filter_map(|push| match push {
            Push::Word { value, .. } => Some(value),
            _ => None,
        });
        assert_eq!(guards.collect::<Vec<_>>(), [31, 62, 93, 100]);
    }

    /// Messages of two rings, acknowledgements in ranges and words that vouch for them, in any
    /// order: whatever a guard or a word vouches for is there when it is.
    #[test]
    fn what_a_guard_vouches_for_is_there_and_no_other_word_is_overtaken() {
        const RINGS: usize = 2;
        const SLOTS: usize = 16;
        // A slot of a payload ring holds the number of its message; a header does, too.
        let payload_at = |ring: usize, slot: usize| 4096 + (ring * SLOTS + slot) * 64;
        let header_at = |ring: usize, slot: usize| 1024 + (ring * SLOTS + slot) * 24;
        let guard_at = |ring: usize| 512 + ring * 8;
        const ACK: usize = 640;
        const WORD: usize = 648;
        for seed in 0..300 {
            let rng = &mut Rng::new(seed);
            let mut queue = PushQueue::new(usize::MAX);
            let (mut row, mut copy) = (vec![0_u64; 1024], vec![0_u64; 1024]);
            // What was pushed when, by the number of a push; each word that vouches carries one.
            let mut sent = [0_u64; RINGS];
            let mut seen = [0_u64; RINGS];
            // For each value of WORD: the guards, and the acknowledgement, at that time.
            let mut due = vec![([0_u64; RINGS], 0_u64)];
            for turn in 0..600 {
                match rng.below(5) {
                    0 | 1 => {
                        let ring = rng.below(RINGS);
                        // A slot is used again only when its message has arrived.
                        if sent[ring] - seen[ring] < SLOTS as u64 {
                            let slot = sent[ring] as usize % SLOTS;
                            sent[ring] += 1;
                            let number = sent[ring];
                            let (payload, header) = (payload_at(ring, slot), header_at(ring, slot));
                            row[payload / 8..payload / 8 + 8].fill(number);
                            row[header / 8..header / 8 + 3].fill(number);
                            row[guard_at(ring) / 8] = number;
                            let guard = (guard_at(ring), number);
                            queue
                                .put(message((payload, 64), header, guard))
                                .expect("room");
                        }
                        if rng.chance(0.7) {
                            queue.put(Push::Wake(WakeReason::Data)).expect("room");
                        }
                    }
                    2 => {
                        row[ACK / 8] += 1;
                        queue.put(range(ACK, 8)).expect("room");
                    }
                    3 => {
                        let value = due.len() as u64;
                        due.push((sent, row[ACK / 8]));
                        row[WORD / 8] = value;
                        let at = WORD;
                        queue.put(Push::Word { slot: 0, at, value }).expect("room");
                    }
                    _ => {
                        let all = turn > 500;
                        let most = 8 * (1 + rng.below(40));
                        while let Some(push) = queue.take(most) {
                            match push {
                                Push::Range { at, len, .. } => {
                                    let words = at / 8..(at + len) / 8;
                                    copy[words.clone()].copy_from_slice(&row[words]);
                                }
                                Push::Word { at, value, .. } => {
                                    assert!(copy[at / 8] < value, "seed {seed}: a word falls");
                                    copy[at / 8] = value;
                                }
                                _ => {}
                            }
                            for ring in 0..RINGS {
                                let now = copy[guard_at(ring) / 8];
                                for number in seen[ring] + 1..=now {
                                    let slot = (number - 1) as usize % SLOTS;
                                    let at = payload_at(ring, slot) / 8;
                                    assert_eq!(copy[at..at + 8], [number; 8], "seed {seed}");
                                    let at = header_at(ring, slot) / 8;
                                    assert_eq!(copy[at..at + 3], [number; 3], "seed {seed}");
                                }
                                seen[ring] = now;
                            }
                            let (guards, ack) = due[copy[WORD / 8] as usize];
                            assert!(seen.iter().zip(guards).all(|(now, due)| *now >= due));
                            assert!(copy[ACK / 8] >= ack, "seed {seed}");
                            if !all && rng.chance(0.2) {
                                break;
                            }
                        }
                    }
                }
            }
            while queue.take(usize::MAX).is_some() {}
            assert_eq!((queue.len(), queue.bytes()), (0, 0));
        }
    }

    /// Rising words are pushed in ranges, others carry their index. A reader that sees
    /// index `k` sees all that was pushed before it (F1b, F2); no word falls; everything
    /// arrives.
    #[test]
    fn any_order_of_putting_and_taking_keeps_the_order_of_calls() {
        const WORDS: usize = 40;
        for seed in 0..300 {
            let rng = &mut Rng::new(seed);
            let mut queue = PushQueue::new(usize::MAX);
            let mut row = [0_u64; WORDS];
            let mut copy = row;
            // The least value of each word, as of each word push.
            let mut pushed = [0_u64; WORDS];
            let mut needed: Vec<[u64; WORDS]> = vec![pushed];
            let mut apply =
                |plan: Vec<Push>, row: &[u64; WORDS], needed: &[[u64; WORDS]]| -> [u64; WORDS] {
                    for push in plan {
                        match push {
                            Push::Range { at, len, .. } => {
                                for word in at / 8..(at + len) / 8 {
                                    assert!(copy[word] <= row[word], "seed {seed}");
                                    copy[word] = row[word];
                                }
                            }
                            Push::Word { value, .. } => {
                                let due = &needed[value as usize];
                                let all = copy.iter().zip(due).all(|(now, due)| now >= due);
                                assert!(all, "seed {seed}: {copy:?} at {value}, due {due:?}");
                            }
                            _ => {}
                        }
                    }
                    copy
                };
            for _ in 0..400 {
                match rng.below(4) {
                    0 => {
                        let words = 1 + rng.below(6);
                        let from = rng.below(WORDS - words + 1);
                        let words = from..from + words;
                        row[words.clone()].iter_mut().for_each(|word| *word += 1);
                        pushed[words.clone()].copy_from_slice(&row[words.clone()]);
                        queue.put(range(from * 8, words.len() * 8)).expect("room");
                    }
                    1 => row[rng.below(WORDS)] += 1,
                    2 => {
                        let value = needed.len() as u64;
                        needed.push(pushed);
                        queue
                            .put(Push::Word {
                                slot: 0,
                                at: 0,
                                value,
                            })
                            .expect("room");
                    }
                    _ if rng.chance(0.3) => {
                        let most = 8 * (1 + rng.below(20));
                        let some = (0..1 + rng.below(4)).map_while(|_| queue.take(most));
                        apply(some.collect(), &row, &needed);
                    }
                    _ => {}
                }
            }
            let mut last = row;
            while !queue.is_empty() {
                last = apply(queue.take(64).into_iter().collect(), &row, &needed);
            }
            assert_eq!(queue.bytes(), 0, "seed {seed}");
            assert!(
                last.iter().zip(pushed).all(|(now, due)| *now >= due),
                "seed {seed}"
            );
        }
    }
}
