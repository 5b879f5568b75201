//! What waits to be sent to one peer: ranges and words, in the order of calls, and
//! messages, in an order of their own.
//!
//! A long message does not hold up pushes: it goes in parts between them. But what
//! opens a segment goes behind the messages that were there before it, for they may
//! be what has the peer make that segment.

use std::collections::VecDeque;
use std::sync::Arc;

use super::record::{HEADER_LEN, Header, PART_LEN_MAX, RECORD_LEN_MAX};
use crate::fabric::Ring;
use crate::mem::Region;
use crate::news::QUEUE_LEN_MAX;
use crate::segment::SegmentKey;

/// How many of the newest records are looked through for a range that covers
/// the one to be queued.
const LOOK_BACK: usize = 32;

/// Slots that cost no allocation when they are first used.
pub(super) const SLOTS: usize = 256;

/// A segment as streams need it: what stands for it there, and my row.
#[derive(Debug)]
pub(super) struct Own {
    /// Mine until the segment is dropped, in all streams.
    pub(super) slot: u16,
    pub(super) key: SegmentKey,
    pub(super) row: Region,
}

/// Something to be sent.
#[derive(Debug, Clone)]
pub(super) enum Push {
    /// Fetched from the row when it is taken from the queue.
    Range {
        slot: u16,
        at: usize,
        len: usize,
    },
    /// Carries its value.
    Word {
        slot: u16,
        at: usize,
        value: u64,
    },
    Ring(Ring),
    /// What comes for this slot is of this segment.
    Open(Arc<Own>),
    /// No more comes for it.
    Shut {
        slot: u16,
    },
}

/// Bytes of stream that one part of a message takes, at most.
pub(super) const PART_ROOM: usize = HEADER_LEN + PART_LEN_MAX;

/// A message, and how much of it was taken.
#[derive(Debug)]
struct Message {
    bytes: Arc<[u8]>,
    taken: usize,
}

/// Part of a message.
#[derive(Debug)]
pub(super) struct Part {
    bytes: Arc<[u8]>,
    from: usize,
    to: usize,
}

impl Part {
    pub(super) fn header(&self) -> Header {
        Header::Part {
            len: self.to - self.from,
            last: self.to == self.bytes.len(),
        }
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes[self.from..self.to]
    }
}

/// The queue is full: its peer takes too little.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Full {
    pub(super) waiting: usize,
}

/// A bounded queue. It allocates only while it grows.
#[derive(Debug)]
pub(super) struct Queue {
    records: VecDeque<Push>,
    max: usize,
    /// Bytes that wait, headers included.
    bytes: usize,
    /// By slot: whether what opens it was put.
    open: Vec<bool>,
    messages: VecDeque<Message>,
    /// Bytes of messages that wait.
    messages_len: usize,
    /// How many messages were put, and how many of them were taken.
    messages_put: u64,
    messages_taken: u64,
    /// For each record among those that wait that opens a segment: how many
    /// messages go before it.
    behind: VecDeque<u64>,
    closed: bool,
    /// A farewell is the last that is taken.
    bye: bool,
}

impl Queue {
    pub(super) fn new(max: usize) -> Self {
        Self {
            records: VecDeque::with_capacity(max.min(256)),
            max,
            bytes: 0,
            open: Vec::with_capacity(SLOTS),
            messages: VecDeque::new(),
            messages_len: 0,
            messages_put: 0,
            messages_taken: 0,
            behind: VecDeque::with_capacity(SLOTS),
            closed: false,
            bye: false,
        }
    }

    /// Whether nothing is left to be taken.
    pub(super) fn is_empty(&self) -> bool {
        self.records.is_empty() && self.messages.is_empty() && !self.bye
    }

    /// Of records of rows.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn messages_len(&self) -> usize {
        self.messages_len
    }

    /// Whether anything of it is dropped, because the peer has failed.
    pub(super) fn is_closed(&self) -> bool {
        self.closed
    }

    /// Drops all, and all that comes.
    pub(super) fn close(&mut self) {
        self.closed = true;
        self.records = VecDeque::new();
        self.bytes = 0;
        self.messages = VecDeque::new();
        self.messages_len = 0;
        self.behind = VecDeque::new();
        self.bye = false;
    }

    /// Drops all, and all that comes, but for a farewell.
    pub(super) fn leave(&mut self) {
        let is_open = !self.closed;
        self.close();
        self.bye = is_open;
    }

    /// Whether all that is left is a farewell, which is taken by this.
    pub(super) fn take_bye(&mut self) -> bool {
        core::mem::take(&mut self.bye)
    }

    /// Appends a message, unless too much waits.
    pub(super) fn put_message(&mut self, bytes: &[u8]) -> Result<(), Full> {
        let waiting = self.messages_len;
        if waiting + bytes.len() > QUEUE_LEN_MAX {
            return Err(Full { waiting });
        }
        if !self.closed {
            self.messages_len += bytes.len();
            self.messages_put += 1;
            let bytes = bytes.into();
            self.messages.push_back(Message { bytes, taken: 0 });
        }
        Ok(())
    }

    /// Moves the next part of a message out.
    pub(super) fn take_part(&mut self) -> Option<Part> {
        let message = self.messages.front_mut()?;
        let from = message.taken;
        let to = message.bytes.len().min(from + PART_LEN_MAX);
        message.taken = to;
        self.messages_len -= to - from;
        let bytes = Arc::clone(&message.bytes);
        if to == bytes.len() {
            self.messages.pop_front();
            self.messages_taken += 1;
        }
        Some(Part { bytes, from, to })
    }

    /// Whether what is next has to wait for a message.
    fn is_behind(&self) -> bool {
        let opens = matches!(self.records.front(), Some(Push::Open(_)));
        opens && self.behind.front() > Some(&self.messages_taken)
    }

    /// Appends a record of a segment, behind one that opens it if it is the first.
    pub(super) fn put_in(&mut self, own: &Arc<Own>, record: Push) -> Result<(), Full> {
        let slot = usize::from(own.slot);
        if self.open.len() <= slot {
            self.open.resize(slot + 1, false);
        }
        if !self.open[slot] {
            self.put(Push::Open(Arc::clone(own)))?;
            self.open[slot] = true;
        }
        self.put(record)
    }

    /// The end of a segment, if anything of it was ever put.
    pub(super) fn shut(&mut self, slot: u16) -> Result<(), Full> {
        let open = self.open.get_mut(usize::from(slot));
        match open.is_some_and(core::mem::take) {
            true => self.put(Push::Shut { slot }),
            false => Ok(()),
        }
    }

    /// Appends a record, unless what waits already says the same.
    pub(super) fn put(&mut self, record: Push) -> Result<(), Full> {
        if self.closed || self.is_covered(&record) || self.extends_last(&record) {
            return Ok(());
        }
        if self.records.len() >= self.max {
            let waiting = self.records.len();
            return Err(Full { waiting });
        }
        if matches!(record, Push::Open(_)) {
            self.behind.push_back(self.messages_put);
        }
        self.bytes += wire_len(&record);
        self.records.push_back(record);
        Ok(())
    }

    /// Whether a range that waits will fetch these bytes. It fetches them after
    /// this call, so the copy is the same as if they were fetched again at once:
    /// words that vouch for something never stand in ranges (F1b). Before a
    /// segment was opened or shut, its slot may have been another's.
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
            .take_while(|waiting| !matches!(waiting, Push::Open(_) | Push::Shut { .. }))
            .any(covers)
    }

    /// Makes the newest record a little longer, or louder, if that does.
    fn extends_last(&mut self, record: &Push) -> bool {
        match (self.records.back_mut(), record) {
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
            (Some(Push::Ring(ring)), Push::Ring(other)) => {
                *ring = (*ring).max(*other);
                true
            }
            _ => false,
        }
    }

    /// Moves records from the front into `plan` that take at most `room` bytes
    /// of stream, the last of them perhaps a part of a range. If messages wait, a
    /// part of one has its share of the room.
    pub(super) fn take(&mut self, plan: &mut Vec<Push>, room: usize) {
        let mut room = match self.messages.is_empty() {
            true => room,
            false => room.saturating_sub(PART_ROOM),
        };
        while plan.len() < plan.capacity()
            && !self.is_behind()
            && let Some(front) = self.records.front_mut()
            && room >= HEADER_LEN + 8
        {
            let most = (room - HEADER_LEN).min(RECORD_LEN_MAX) & !7;
            let taken = match front {
                Push::Range { slot, at, len } if *len > most => {
                    let part = Push::Range {
                        slot: *slot,
                        at: *at,
                        len: most,
                    };
                    (*at, *len) = (*at + most, *len - most);
                    // What is left needs a header of its own.
                    self.bytes += HEADER_LEN;
                    part
                }
                _ => match self.records.pop_front() {
                    Some(open @ Push::Open(_)) => {
                        self.behind.pop_front();
                        open
                    }
                    Some(whole) => whole,
                    None => return,
                },
            };
            room -= wire_len(&taken);
            self.bytes -= wire_len(&taken);
            plan.push(taken);
        }
    }
}

/// Bytes of stream, for a range that goes in one record.
fn wire_len(record: &Push) -> usize {
    match record {
        Push::Range { len, .. } => HEADER_LEN + len,
        Push::Word { .. } => HEADER_LEN + 8,
        Push::Ring(_) | Push::Open(_) | Push::Shut { .. } => HEADER_LEN,
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

    fn taken(queue: &mut Queue, room: usize) -> Vec<Push> {
        let mut plan = Vec::with_capacity(64);
        queue.take(&mut plan, room);
        plan
    }

    #[test]
    fn what_waits_is_not_queued_twice() {
        let check = |pushes: &[Push], expected: &[Push]| {
            let mut queue = Queue::new(100);
            pushes
                .iter()
                .for_each(|push| queue.put(push.clone()).expect("room"));
            let bytes = expected.iter().map(wire_len).sum::<usize>();
            assert_eq!(queue.bytes(), bytes, "{pushes:?}");
            assert_eq!(taken(&mut queue, 1 << 16), expected);
            assert_eq!((queue.records.len(), queue.bytes()), (0, 0));
        };
        let word = |value| Push::Word {
            slot: 0,
            at: 512,
            value,
        };
        let (data, acks) = (Push::Ring(Ring::Data), Push::Ring(Ring::Acks));
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

    /// A slot is another's after it was shut: what waits for the old one covers
    /// nothing of the new one.
    #[test]
    fn segments_do_not_share_ranges() {
        let own = |slot, lane| {
            let key = SegmentKey { epoch: 1, lane };
            let row = Region::heap(512);
            Arc::new(Own { slot, key, row })
        };
        let mut queue = Queue::new(100);
        let range = |slot| Push::Range {
            slot,
            at: 256,
            len: 64,
        };
        let (first, second, third) = (own(0, 0), own(1, 1), own(0, 2));
        queue.shut(0).expect("never opened");
        queue.put_in(&first, range(0)).expect("room");
        queue.put_in(&second, range(1)).expect("room");
        queue.put_in(&second, range(1)).expect("covered");
        queue.shut(0).expect("room");
        queue.put_in(&third, range(0)).expect("room");
        let expected = [
            Push::Open(first),
            range(0),
            Push::Open(second),
            range(1),
            Push::Shut { slot: 0 },
            Push::Open(third),
            range(0),
        ];
        assert_eq!(taken(&mut queue, 1000), expected);
        assert_eq!((queue.records.len(), queue.bytes()), (0, 0));
    }

    #[test]
    fn long_ranges_are_taken_in_parts() {
        let mut queue = Queue::new(100);
        queue.put(range(0, 100)).expect("room");
        assert_eq!(taken(&mut queue, 23), []);
        assert_eq!(taken(&mut queue, 16 + 47), [range(0, 40)]);
        assert_eq!(queue.bytes(), 16 + 60);
        // What is left covers no more what was taken.
        queue.put(range(32, 8)).expect("room");
        assert_eq!(taken(&mut queue, 1000), [range(32, 68)]);
        assert_eq!((queue.records.len(), queue.bytes()), (0, 0));
    }

    /// A message goes in parts between pushes, but what opens a segment does not
    /// overtake it.
    #[test]
    fn messages_hold_up_only_what_they_may_announce() {
        let key = SegmentKey { epoch: 1, lane: 0 };
        let row = Region::heap(512);
        let own = Arc::new(Own { slot: 0, key, row });
        let word = |value| Push::Word {
            slot: 9,
            at: 256,
            value,
        };
        let mut queue = Queue::new(100);
        queue.put(word(1)).expect("room");
        queue.put_message(&[7; PART_LEN_MAX + 1]).expect("room");
        queue.put(word(2)).expect("room");
        queue.put_in(&own, word(3)).expect("room");
        queue.put_message(&[]).expect("room");
        assert_eq!(queue.messages_len(), PART_LEN_MAX + 1);
        let mut part = |last, len, pushes: &[Push]| {
            assert_eq!(taken(&mut queue, 1 << 16), pushes);
            let part = queue.take_part().expect("a part");
            assert_eq!(part.header(), Header::Part { len, last });
            assert_eq!(part.bytes(), vec![7; len]);
        };
        part(false, PART_LEN_MAX, &[word(1), word(2)]);
        part(true, 1, &[]);
        part(true, 0, &[Push::Open(Arc::clone(&own)), word(3)]);
        assert!(queue.is_empty() && queue.take_part().is_none());
    }

    #[test]
    fn messages_are_bounded_and_go_with_who_leaves() {
        let mut queue = Queue::new(100);
        let message = vec![0; QUEUE_LEN_MAX / 2];
        for _ in 0..2 {
            queue.put_message(&message).expect("room");
        }
        let waiting = QUEUE_LEN_MAX;
        assert_eq!(queue.put_message(&[0]), Err(Full { waiting }));
        assert!(!queue.take_bye());
        queue.leave();
        assert!(queue.take_part().is_none() && !queue.is_empty());
        assert!(queue.take_bye() && queue.is_empty());
        queue.put_message(&[0]).expect("dropped");
        queue.leave();
        assert!(queue.is_empty(), "it was closed");
    }

    #[test]
    fn a_full_queue_says_so() {
        let word = |value| Push::Word {
            slot: 0,
            at: 0,
            value,
        };
        let mut queue = Queue::new(2);
        queue.put(word(1)).expect("room");
        queue.put(range(8, 8)).expect("room");
        queue.put(range(16, 8)).expect("it extends the last");
        let full = queue.put(word(2));
        assert_eq!(full, Err(Full { waiting: 2 }));
        queue.close();
        queue.put(word(2)).expect("dropped");
        assert_eq!((queue.records.len(), queue.bytes()), (0, 0));
    }

    /// Words that rise are pushed in ranges, others carry their index: whoever
    /// sees index `k` sees all that was pushed before it (F1b, F2), no word
    /// falls, and all arrives.
    #[test]
    fn any_order_of_putting_and_taking_keeps_the_order_of_calls() {
        const WORDS: usize = 40;
        for seed in 0..300 {
            let rng = &mut Rng::new(seed);
            let mut queue = Queue::new(usize::MAX);
            let mut row = [0_u64; WORDS];
            let mut copy = row;
            // What each word must be at least, as of each word push.
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
                        let room = 20 + rng.below(200);
                        apply(taken(&mut queue, room), &row, &needed);
                    }
                    _ => {}
                }
            }
            let mut last = row;
            while !queue.is_empty() {
                last = apply(taken(&mut queue, 100), &row, &needed);
            }
            assert_eq!(queue.bytes(), 0, "seed {seed}");
            assert!(
                last.iter().zip(pushed).all(|(now, due)| *now >= due),
                "seed {seed}"
            );
        }
    }
}
