//! The queue of pushes to one peer: ranges and words, in call order.
//!
//! Ranges wait, not bytes: they are fetched when they are sent. So a range that is pushed
//! again while it waits is not queued twice, and ranges that touch are merged.

use std::collections::VecDeque;
use std::sync::Arc;

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
        if self.is_covered(&push) || self.extends_last(&push) {
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
    /// `most`.
    pub(crate) fn take(&mut self, most: usize) -> Option<Push> {
        let front = self.records.front_mut()?;
        let taken = match &mut front.push {
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
