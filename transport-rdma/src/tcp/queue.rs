//! What waits to be sent to one peer: ranges and words, in the order of calls.

use std::collections::VecDeque;

use super::record::{HEADER_LEN, RECORD_LEN_MAX};
use crate::fabric::Ring;

/// How many of the newest records are looked through for a range that covers
/// the one to be queued.
const LOOK_BACK: usize = 32;

/// Something to be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Push {
    /// Fetched from the row when it is taken from the queue.
    Range {
        at: usize,
        len: usize,
    },
    /// Carries its value.
    Word {
        at: usize,
        value: u64,
    },
    Ring(Ring),
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
    closed: bool,
}

impl Queue {
    pub(super) fn new(max: usize) -> Self {
        Self {
            records: VecDeque::with_capacity(max.min(256)),
            max,
            bytes: 0,
            closed: false,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.records.len()
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
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
    }

    /// Appends a record, unless what waits already says the same.
    pub(super) fn put(&mut self, record: Push) -> Result<(), Full> {
        if self.closed || self.is_covered(record) || self.extends_last(record) {
            return Ok(());
        }
        if self.records.len() >= self.max {
            let waiting = self.records.len();
            return Err(Full { waiting });
        }
        self.bytes += wire_len(record);
        self.records.push_back(record);
        Ok(())
    }

    /// Whether a range that waits will fetch these bytes. It fetches them after
    /// this call, so the copy is the same as if they were fetched again at once:
    /// words that vouch for something never stand in ranges (F1b).
    fn is_covered(&self, record: Push) -> bool {
        let Push::Range { at, len } = record else {
            return false;
        };
        let covers = |waiting: &Push| match *waiting {
            Push::Range { at: from, len: all } => from <= at && at + len <= from + all,
            Push::Word { .. } | Push::Ring(_) => false,
        };
        self.records.iter().rev().take(LOOK_BACK).any(covers)
    }

    /// Makes the newest record a little longer, or louder, if that does.
    fn extends_last(&mut self, record: Push) -> bool {
        match (self.records.back_mut(), record) {
            (Some(Push::Range { at, len }), Push::Range { at: more, len: by }) => {
                let (from, end) = ((*at).min(more), (*at + *len).max(more + by));
                let touches = end - from <= *len + by;
                if touches {
                    self.bytes += end - from - *len;
                    (*at, *len) = (from, end - from);
                }
                touches
            }
            (Some(Push::Ring(ring)), Push::Ring(other)) => {
                *ring = (*ring).max(other);
                true
            }
            _ => false,
        }
    }

    /// Moves records from the front into `plan` that take at most `room` bytes
    /// of stream, the last of them perhaps a part of a range.
    pub(super) fn take(&mut self, plan: &mut Vec<Push>, mut room: usize) {
        while plan.len() < plan.capacity()
            && let Some(front) = self.records.front_mut()
            && room >= HEADER_LEN + 8
        {
            let most = (room - HEADER_LEN).min(RECORD_LEN_MAX) & !7;
            let taken = match front {
                Push::Range { at, len } if *len > most => {
                    let part = Push::Range { at: *at, len: most };
                    (*at, *len) = (*at + most, *len - most);
                    // What is left needs a header of its own.
                    self.bytes += HEADER_LEN;
                    part
                }
                whole => {
                    let whole = *whole;
                    self.records.pop_front();
                    whole
                }
            };
            room -= wire_len(taken);
            self.bytes -= wire_len(taken);
            plan.push(taken);
        }
    }
}

/// Bytes of stream, for a range that goes in one record.
fn wire_len(record: Push) -> usize {
    match record {
        Push::Range { len, .. } => HEADER_LEN + len,
        Push::Word { .. } => HEADER_LEN + 8,
        Push::Ring(_) => HEADER_LEN,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::Rng;

    fn range(at: usize, len: usize) -> Push {
        Push::Range { at, len }
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
                .for_each(|&push| queue.put(push).expect("room"));
            let bytes = expected.iter().map(|&push| wire_len(push)).sum::<usize>();
            assert_eq!(queue.bytes(), bytes, "{pushes:?}");
            assert_eq!(taken(&mut queue, 1 << 16), expected);
            assert_eq!((queue.len(), queue.bytes()), (0, 0));
        };
        let word = |value| Push::Word { at: 512, value };
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
        check(&[acks, data, acks], &[data]);
        check(&[data, word(1), acks], &[data, word(1), acks]);
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
        assert_eq!((queue.len(), queue.bytes()), (0, 0));
    }

    #[test]
    fn a_full_queue_says_so() {
        let mut queue = Queue::new(2);
        queue.put(Push::Word { at: 0, value: 1 }).expect("room");
        queue.put(range(8, 8)).expect("room");
        queue.put(range(16, 8)).expect("it extends the last");
        let full = queue.put(Push::Word { at: 0, value: 2 });
        assert_eq!(full, Err(Full { waiting: 2 }));
        queue.close();
        queue.put(Push::Word { at: 0, value: 2 }).expect("dropped");
        assert_eq!((queue.len(), queue.bytes()), (0, 0));
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
                            Push::Range { at, len } => {
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
                            Push::Ring(_) => {}
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
                        queue.put(Push::Word { at: 0, value }).expect("room");
                    }
                    _ if rng.chance(0.3) => {
                        let room = 20 + rng.below(200);
                        apply(taken(&mut queue, room), &row, &needed);
                    }
                    _ => {}
                }
            }
            let mut last = row;
            while queue.len() > 0 {
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
