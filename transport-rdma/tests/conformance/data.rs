//! F1 to F5: pushes arrive, whole and in order.

use spindle_dds_transport::{FABRIC_AREA, Fabric, MessagePush, PeerSet, Rank, Region};

use crate::harness::{Actor, Harness, Outcome, Turn, ensure};

const A: usize = FABRIC_AREA;
const B: usize = FABRIC_AREA + 128;

pub(crate) fn everybody_but(fabric: &impl Fabric) -> PeerSet {
    let all = (0..fabric.members()).map(|rank| Rank(rank as u16));
    all.filter(|&rank| rank != fabric.me()).collect()
}

fn words(row: &Region) -> Vec<u64> {
    (0..row.len()).step_by(8).map(|at| row.load(at)).collect()
}

/// A zeroed row promises nothing.
pub(crate) fn rows_begin_zeroed<H: Harness>(group: &H) -> Outcome {
    for rank in 0..group.fabric(0).members() {
        let fabric = group.fabric(rank);
        ensure!(fabric.me().index() == rank, "{rank} is {}", fabric.me());
        for of in 0..fabric.members() {
            let row = fabric.row(Rank(of as u16));
            ensure!(
                words(row).iter().all(|&word| word == 0),
                "row {of} at {rank} is not zero"
            );
            ensure!(
                row.is_writable() == (of == rank),
                "{rank} may write row {of}"
            );
        }
    }
    Ok(())
}

/// Every member's push arrives in the copies of all others.
pub(crate) fn f1_a_pushed_range_arrives<H: Harness>(group: &H) -> Outcome {
    let members = group.fabric(0).members();
    for rank in 0..members {
        let fabric = group.fabric(rank);
        for word in 0..16 {
            fabric.store(A + word * 8, (rank as u64 + 1) << 8 | word as u64);
        }
        // SAFETY: in bounds, and no other code accesses this part of the row yet.
        unsafe {
            fabric
                .row(fabric.me())
                .place(B, 64)
                .write_bytes(rank as u8 + 1, 64)
        };
        fabric.push(A, 256, &everybody_but(fabric));
    }
    group.settle();
    for (reader, of) in (0..members).flat_map(|r| (0..members).map(move |of| (r, of))) {
        let row = group.fabric(reader).row(Rank(of as u16));
        for word in 0..16 {
            let (seen, sent) = (row.load(A + word * 8), (of as u64 + 1) << 8 | word as u64);
            ensure!(seen == sent, "{reader} sees {seen:x} of {of}, not {sent:x}");
        }
        // SAFETY: settled; nothing is written any more.
        let bytes = unsafe { row.bytes(B, 64) };
        ensure!(
            bytes == [of as u8 + 1; 64],
            "{reader} sees {bytes:?} of {of}"
        );
    }
    Ok(())
}

/// Batches of payload and headers, then a guard, in a ring of `SLOTS` slots that are reused
/// once all members have acknowledged them: what a guard covers has arrived, unmixed. (Fails
/// if a word push carries a later value, becomes part of the range before it, or overtakes it;
/// and if shared memory shows it first.) In turn, a batch is pushed range by range, by one
/// call, and its last slot as a message. One half of a slot is written as bytes, the other as
/// words.
pub(crate) fn f1b_a_guard_vouches_for_what_was_pushed_before_it<H: Harness>(group: &H) -> Outcome {
    const SLOTS: u64 = 4;
    const SLOT: usize = 64;
    const HALF: usize = SLOT / 2;
    const RING: usize = FABRIC_AREA + 256;
    let words = |index: u64| [u64::from_ne_bytes([index as u8; 8]); HALF / 8];
    let (guard, ack, last) = (A, B, group.rounds());
    let at = |index: u64| RING + (index % SLOTS) as usize * SLOT;

    let (mut sent, mut turn) = (0, 0);
    let writer = Actor::new(0, move |fabric: &H::F| {
        let to = everybody_but(fabric);
        let room = to
            .iter()
            .map(|peer| fabric.row(peer).load(ack))
            .min()
            .unwrap_or(sent)
            + SLOTS;
        if sent == last {
            return Ok(Turn::Done);
        }
        if sent == room {
            return Ok(Turn::Idle);
        }
        let batch = (room - sent).min(1 + sent % 3).min(last - sent);
        turn += 1;
        let indexes = sent..sent + batch;
        for index in indexes.clone() {
            let half = fabric.row(Rank(0)).place(at(index), HALF);
            // SAFETY: in bounds, and all members have acknowledged the slot's last use.
            unsafe { half.write_bytes(index as u8, HALF) };
        }
        sent += batch;
        let of_message = u64::from(turn % 3 == 0);
        let whole = indexes.start..sent - of_message;
        whole
            .clone()
            .for_each(|index| fabric.store_words(at(index) + HALF, &words(index)));
        let ranges: Vec<_> = whole.map(|index| (at(index), SLOT)).collect();
        if turn % 3 == 1 {
            fabric.push_guarded(&ranges, guard, sent, &to);
            return Ok(Turn::Busy);
        }
        ranges
            .iter()
            .for_each(|(at, len)| fabric.push(*at, *len, &to));
        if of_message == 0 {
            fabric.push_word(guard, sent, &to);
            return Ok(Turn::Busy);
        }
        let message = MessagePush {
            payload: (at(sent - 1), HALF),
            header: at(sent - 1) + HALF,
            words: &words(sent - 1),
            guard,
            count: sent,
        };
        fabric.push_message(&message, &to, to.len());
        Ok(Turn::Busy)
    });
    let reader = |rank: usize| {
        let mut seen = 0;
        Actor::new(rank, move |fabric: &H::F| {
            let row = fabric.row(Rank(0));
            let now = row.load(guard);
            ensure!(now >= seen && now <= last, "guard {now} after {seen}");
            for index in seen..now {
                // SAFETY: vouched for by the guard, not acknowledged yet.
                let slot = unsafe { row.bytes(at(index), SLOT) };
                ensure!(
                    slot == [index as u8; SLOT],
                    "{rank}: guard {now}, slot {index}: {slot:?}"
                );
            }
            if now == seen {
                return Ok(Turn::Idle);
            }
            seen = now;
            fabric.push_word(ack, seen, &[Rank(0)].into_iter().collect());
            Ok(if seen == last { Turn::Done } else { Turn::Busy })
        })
    };
    let readers = (1..group.fabric(0).members()).map(reader);
    group.run(core::iter::once(writer).chain(readers).collect())
}

/// Two words are pushed one after the other: a reader that sees the second sees the first.
pub(crate) fn f2_words_take_effect_in_call_order<H: Harness>(group: &H) -> Outcome {
    in_order(group, |fabric, value, to| {
        fabric.push_word(A, value, to);
        fabric.push_word(B, value, to);
    })
}

/// The same if the first is part of a range, perhaps with a later value.
pub(crate) fn f2_a_range_takes_effect_before_later_pushes<H: Harness>(group: &H) -> Outcome {
    in_order(group, |fabric, value, to| {
        fabric.store(A, value);
        fabric.push(A, 64, to);
        fabric.push_word(B, value, to);
    })
}

/// Two words are stored, and nothing is pushed until the end: if they become visible, then in
/// order.
pub(crate) fn f5_stores_visible_early_are_in_order<H: Harness>(group: &H) -> Outcome {
    let last = group.rounds();
    in_order(group, |fabric, value, to| {
        fabric.store(A, value);
        fabric.store(B, value);
        if value == last {
            fabric.push(A, 8, to);
            fabric.push(B, 8, to);
        }
    })
}

/// The writer raises A before B. Readers never see B above A, nor either fall, and see both
/// reach their last value.
fn in_order<H: Harness>(group: &H, write: impl Fn(&H::F, u64, &PeerSet) + Send) -> Outcome {
    let last = group.rounds();
    let mut value = 0;
    let writer = Actor::new(0, move |fabric: &H::F| {
        value += 1;
        write(fabric, value, &everybody_but(fabric));
        Ok(if value == last {
            Turn::Done
        } else {
            Turn::Busy
        })
    });
    let reader = |rank: usize| {
        let mut seen = (0, 0);
        Actor::new(rank, move |fabric: &H::F| {
            let row = fabric.row(Rank(0));
            let second = row.load(B);
            let first = row.load(A);
            ensure!(first >= second, "{rank} sees {second} before {first}");
            ensure!(first >= seen.0 && second >= seen.1, "{rank}: a word fell");
            let turn = match (first, second) {
                now if now == (last, last) => Turn::Done,
                now if now == seen => Turn::Idle,
                _ => Turn::Busy,
            };
            seen = (first, second);
            Ok(turn)
        })
    };
    let readers = (1..group.fabric(0).members()).map(reader);
    group.run(core::iter::once(writer).chain(readers).collect())
}

/// Pushes to one member do not wait for another, here a dead one.
pub(crate) fn f3_a_dead_peer_holds_up_no_other<H: Harness>(group: &H) -> Outcome {
    group.kill(1);
    f3_rest_goes_on(group)
}

fn f3_rest_goes_on<H: Harness>(group: &H) -> Outcome {
    let last = group.rounds();
    let mut value = 0;
    let writer = Actor::new(0, move |fabric: &H::F| {
        value += 1;
        fabric.push_word(A, value, &everybody_but(fabric));
        Ok(if value == last {
            Turn::Done
        } else {
            Turn::Busy
        })
    });
    let reader = Actor::new(2, move |fabric: &H::F| {
        let done = fabric.row(Rank(0)).load(A) == last;
        Ok(if done { Turn::Done } else { Turn::Idle })
    });
    group.run(vec![writer, reader])
}

/// Both halves of each word always agree, in overlapping ranges.
pub(crate) fn f4_words_never_tear<H: Harness>(group: &H) -> Outcome {
    const WORDS: usize = 24;
    let last = group.rounds();
    let mut value = 0;
    let writer = Actor::new(0, move |fabric: &H::F| {
        value += 1;
        for word in 0..WORDS {
            fabric.store(A + word * 8, value << 32 | value);
        }
        let from = value as usize % WORDS;
        fabric.push(A + from * 8, (WORDS - from) * 8, &everybody_but(fabric));
        if value < last {
            return Ok(Turn::Busy);
        }
        fabric.push(A, WORDS * 8, &everybody_but(fabric));
        Ok(Turn::Done)
    });
    let reader = |rank: usize| {
        let mut seen = [0; WORDS];
        Actor::new(rank, move |fabric: &H::F| {
            let before = seen;
            for (word, seen) in seen.iter_mut().enumerate() {
                let now = fabric.row(Rank(0)).load(A + word * 8);
                ensure!(
                    now >> 32 == now & 0xffff_ffff,
                    "{rank} sees half a word: {now:016x}"
                );
                *seen = now;
            }
            let done = seen == [last << 32 | last; WORDS];
            Ok(match done {
                true => Turn::Done,
                false if seen == before => Turn::Idle,
                false => Turn::Busy,
            })
        })
    };
    let readers = (1..group.fabric(0).members()).map(reader);
    group.run(core::iter::once(writer).chain(readers).collect())
}

/// The counters count all pushes.
pub(crate) fn counters_count_pushes<H: Harness>(group: &H) -> Outcome {
    let fabric = group.fabric(0);
    let to = everybody_but(fabric);
    let peers = to.len() as u64;
    fabric.store(A, 1);
    fabric.push(A, 64, &to);
    fabric.push_word(B, 1, &to);
    fabric.push(A, 8, &PeerSet::EMPTY);
    for payload in [0, 16] {
        let message = MessagePush {
            payload: (A + 64, payload),
            header: A,
            words: &[1; 8],
            guard: B,
            count: 2,
        };
        fabric.push_message(&message, &to, to.len());
    }
    let counted = fabric.counters();
    ensure!(counted.pushes == peers * 4, "{counted:?}");
    ensure!(counted.word_pushes == peers * 3, "{counted:?}");
    ensure!(
        counted.bytes_pushed == peers * (72 + 72 + 88),
        "{counted:?}"
    );
    ensure!(
        counted.peer_wakes + counted.sleeps + counted.nudges == 0,
        "{counted:?}"
    );
    Ok(())
}
