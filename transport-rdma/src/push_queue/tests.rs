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

/// These pushes, put one after the other, are taken like this.
fn check(pushes: &[Push], expected: &[Push]) {
    let mut queue = PushQueue::new(100);
    pushes
        .iter()
        .for_each(|push| queue.put(push.clone()).expect("room"));
    let bytes = expected.iter().map(Push::len).sum::<usize>();
    assert_eq!(queue.bytes(), bytes, "{pushes:?}");
    assert_eq!(taken(&mut queue), expected);
    assert_eq!((queue.len(), queue.bytes()), (0, 0));
}

fn taken(queue: &mut PushQueue) -> Vec<Push> {
    core::iter::from_fn(|| queue.take(usize::MAX)).collect()
}

#[test]
fn a_push_that_waits_is_not_queued_twice() {
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
    Push::Messages(QueuedMessages::one(0, payload, (header, 24), guard))
}

#[test]
fn messages_that_follow_each_other_are_sent_as_one() {
    let word = |at, value| Push::Word { slot: 0, at, value };
    let wake = Push::Wake(WakeReason::Data);
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
    let parts =
        |from: usize, len, header, value| [range(from, len), range(header, 24), word(512, value)];
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
