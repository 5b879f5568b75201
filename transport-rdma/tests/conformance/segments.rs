//! Additional segments: order over all of them, late openers, fences and failures in one of
//! them, and the common sleep.

use spindle_dds_transport::{FABRIC_AREA, Fabric, Rank, WakeInterest, WakeReason};

use crate::data::everybody_but;
use crate::harness::{Actor, Outcome, Segments, Turn, ensure};
use crate::sleeping::{only, sleeper, total_wakes};

const A: usize = FABRIC_AREA;
const B: usize = FABRIC_AREA + 128;

/// All members in an additional segment, with the same ranks.
fn index<H: Segments>(group: &H) -> H::Segment {
    let everybody: Vec<_> = (0..group.fabric(0).members()).collect();
    group.agree(&everybody, false)
}

pub(crate) fn open_everywhere<H: Segments>(
    group: &H,
    segment: H::Segment,
    members: usize,
) -> Vec<H::F> {
    let ranks = 0..members;
    ranks.map(|rank| group.open(segment, rank)).collect()
}

/// Words rise in one segment and then in the other, in ranges and alone: a reader that sees the
/// later one sees the earlier one.
pub(crate) fn f2_order_holds_across_segments<H: Segments>(group: &H) -> Outcome {
    let (members, last) = (group.fabric(0).members(), group.rounds());
    let mut indices = open_everywhere(group, index(group), members).into_iter();
    let index = indices.next().expect("a member");
    let mut value = 0;
    let writer = Actor::new(0, move |fabric: &H::F| {
        value += 1;
        let to = everybody_but(fabric);
        index.store(A, value);
        index.push(A, 64, &to);
        fabric.push_word(A, value, &to);
        index.push_word(B, value, &to);
        Ok(match value == last {
            true => Turn::Done,
            false => Turn::Busy,
        })
    });
    let reader = |(rank, index): (usize, H::F)| {
        let mut seen = [0; 3];
        Actor::new(rank, move |fabric: &H::F| {
            let third = index.row(Rank(0)).load(B);
            let second = fabric.row(Rank(0)).load(A);
            let now = [index.row(Rank(0)).load(A), second, third];
            ensure!(now.is_sorted_by(|a, b| a >= b), "{rank} sees {now:?}");
            let turn = match now {
                now if now == [last; 3] => Turn::Done,
                now if now == seen => Turn::Idle,
                _ => Turn::Busy,
            };
            seen = now;
            Ok(turn)
        })
    };
    let readers = (1..members).zip(indices).map(reader);
    group.run(core::iter::once(writer).chain(readers).collect())
}

/// A member opens a segment after others have pushed in it for long and have continued to push
/// elsewhere; it misses nothing, there or in its other segments.
pub(crate) fn f6_a_late_opener_sees_all_that_was_pushed<H: Segments>(group: &H) -> Outcome {
    let (segment, last) = (index(group), group.rounds());
    let index = group.open(segment, 0);
    let mut value = 0;
    let writer = Actor::new(0, move |fabric: &H::F| {
        value += 1;
        let to = everybody_but(fabric);
        index.store(A + 8, value);
        index.push(A, 64, &to);
        index.push_word(B, value, &to);
        fabric.push_word(A, value, &to);
        Ok(match value == last {
            true => Turn::Done,
            false => Turn::Busy,
        })
    });
    let late = |rank: usize| {
        let mut turns = 0;
        let mut index = None;
        Actor::new(rank, move |fabric: &H::F| {
            turns += 1;
            if turns < last * rank as u64 / 2 {
                return Ok(Turn::Busy);
            }
            let index = index.get_or_insert_with(|| group.open(segment, rank));
            let (control, row) = (fabric.row(Rank(0)).load(A), index.row(Rank(0)));
            let now = [row.load(A + 8), row.load(B)];
            let seen = now[0] >= control && now[1] >= control;
            ensure!(seen, "{rank} sees {now:?}, then {control}");
            Ok(match now == [last; 2] && control == last {
                true => Turn::Done,
                false => Turn::Idle,
            })
        })
    };
    let openers = (1..group.fabric(0).members()).map(late);
    group.run(core::iter::once(writer).chain(openers).collect())
}

/// A member that is fenced in one segment does not change there, and continues elsewhere.
pub(crate) fn f6_a_fence_leaves_other_segments_alone<H: Segments>(group: &H) -> Outcome {
    let (members, last) = (group.fabric(0).members(), group.rounds());
    let mut indices = open_everywhere(group, index(group), members).into_iter();
    let index = indices.next().expect("a member");
    let mut value = 0;
    let writer = Actor::new(0, move |fabric: &H::F| {
        value += 1;
        let to = everybody_but(fabric);
        index.push_word(A, value, &to);
        fabric.push_word(A, value, &to);
        Ok(match value == last {
            true => Turn::Done,
            false => Turn::Busy,
        })
    });
    let index = indices.next().expect("a member");
    let mut frozen = None;
    let reader = Actor::new(1, move |fabric: &H::F| {
        let (there, here) = (fabric.row(Rank(0)).load(A), index.row(Rank(0)).load(A));
        if frozen.is_none() && there >= last / 3 {
            index.fence(Rank(0));
            frozen = Some(index.row(Rank(0)).load(A));
            return Ok(Turn::Busy);
        }
        let stands = frozen.is_none_or(|frozen| frozen == here);
        ensure!(stands, "a fenced row changed: {frozen:?}, {here}");
        Ok(match there == last {
            true => Turn::Done,
            false => Turn::Idle,
        })
    });
    group.run(vec![writer, reader])
}

/// A death is reported once on each control segment of the dead member, also on one opened
/// afterwards; on other segments never.
pub(crate) fn f6_each_control_segment_reports_a_death<H: Segments>(group: &H) -> Outcome {
    let polled = |fabric: &H::F| -> Vec<_> {
        let failures = core::iter::from_fn(|| fabric.poll());
        failures.map(|failure| failure.peer).collect()
    };
    let index = group.agree(&[2, 1, 0], false);
    let open = group.agree(&[2, 1, 0], true);
    let (index, open) = (group.open(index, 2), group.open(open, 2));
    group.kill(1);
    let witness = Actor::new(0, |fabric: &H::F| {
        Ok(fabric.poll().map_or(Turn::Idle, |_| Turn::Done))
    });
    group.run(vec![witness])?;
    group.settle();
    let later = group.agree(&[2, 0, 1], true);
    let without = group.agree(&[0, 2], true);
    let (later, without) = (group.open(later, 1), group.open(without, 0));
    for (what, fabric, told) in [
        ("the group", group.fabric(0), &[][..]),
        ("a index", &index, &[]),
        ("a control segment", &open, &[Rank(1)]),
        ("a later one", &later, &[Rank(2)]),
        ("one without the dead", &without, &[]),
    ] {
        let seen = polled(fabric);
        ensure!(seen == told, "{what} reports {seen:?}");
    }
    Ok(())
}

/// Some members in another order: ranks are those of the segment.
pub(crate) fn ranks_are_of_the_segment<H: Segments>(group: &H) -> Outcome {
    let segment = group.agree(&[2, 0], false);
    let (first, second) = (group.open(segment, 0), group.open(segment, 1));
    for (rank, fabric) in [&first, &second].into_iter().enumerate() {
        ensure!(fabric.members() == 2, "{} members", fabric.members());
        ensure!(fabric.me().index() == rank, "{rank} is {}", fabric.me());
        let writable = [0, 1].map(|of| fabric.row(Rank(of)).is_writable());
        ensure!(
            writable[rank] && !writable[1 - rank],
            "{rank}: {writable:?}"
        );
    }
    first.push_word(A, 7, &only(1));
    group.settle();
    let seen = [second.row(Rank(0)).load(A), first.row(Rank(0)).load(A)];
    ensure!(seen == [7; 2], "{seen:?}");
    for rank in 0..group.fabric(0).members() {
        let elsewhere = group.fabric(rank).row(Rank(2)).load(A);
        ensure!(elsewhere == 0, "{rank} sees {elsewhere} in the group");
    }
    Ok(())
}

/// A token goes round, alternating between two segments; every member sleeps in one of them
/// until it arrives.
pub(crate) fn no_wake_up_is_lost_when_a_token_changes_segments<H: Segments>(group: &H) -> Outcome {
    let (members, rounds) = (group.fabric(0).members(), group.rounds());
    let indices = open_everywhere(group, index(group), members);
    let member = |(rank, index): (usize, H::F)| {
        let (before, after) = ((rank + members - 1) % members, (rank + 1) % members);
        let mut passed = 0;
        sleeper(rank, WakeInterest::Data, move |fabric: &H::F| {
            if passed == rounds {
                return Ok(Turn::Done);
            }
            // The first member passes the token on first.
            let needed = passed + u64::from(rank != 0);
            let by = |value: u64| match value % 2 {
                0 => fabric,
                _ => &index,
            };
            if by(needed).row(Rank(before as u16)).load(A) < needed {
                return Ok(Turn::Idle);
            }
            passed += 1;
            by(passed).push_word(A, passed, &only(after));
            by(passed).wake(&only(after), WakeReason::Data);
            Ok(Turn::Busy)
        })
    };
    group.run((0..members).zip(indices).map(member).collect())
}

/// A sleeper in one segment is woken and nudged through any.
pub(crate) fn sleep_is_shared_by_all_segments<H: Segments>(group: &H) -> Outcome {
    let members = group.fabric(0).members();
    let indices = open_everywhere(group, index(group), members);
    let woken_by = |fabric: &H::F, value| {
        let before = total_wakes(group);
        fabric.push_word(A, value, &only(1));
        fabric.wake(&only(1), WakeReason::Data);
        group.settle();
        total_wakes(group) - before
    };
    let (here, there) = (group.fabric(1), &indices[1]);
    for (value, sleeps, wakes) in [(1, here, there), (3, there, here)] {
        for waking in [group.fabric(0), &indices[0]] {
            sleeps.announce_sleep(WakeInterest::Data);
            group.settle();
            ensure!(woken_by(waking, value) == 1, "not woken");
            for nudge in [H::F::nudge, H::F::nudge_under_lock] {
                let before = wakes.counters().nudges;
                nudge(wakes);
                ensure!(sleeps.counters().nudges == before + 1, "not nudged");
            }
            wakes.announce_awake();
            group.settle();
            ensure!(woken_by(waking, value + 1) == 0, "woken awake");
        }
    }
    Ok(())
}
