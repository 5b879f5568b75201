//! F6 and F7: failures, fences, and the rows of members that are gone.

use spindle_dds_transport::{FABRIC_AREA, Fabric, Rank};

use crate::data::everybody_but;
use crate::harness::{Actor, Harness, Outcome, Turn, ensure};

const A: usize = FABRIC_AREA;

/// A death is reported to every member, once, with its cause.
pub(crate) fn f6_a_death_is_reported_once_to_each<H: Harness>(group: &H) -> Outcome {
    group.kill(1);
    let survivor = |rank: usize| {
        Actor::new(rank, move |fabric: &H::F| {
            let Some(failure) = fabric.poll() else {
                return Ok(Turn::Idle);
            };
            ensure!(
                failure.peer == Rank(1),
                "{rank} is told of {}",
                failure.peer
            );
            ensure!(group.is_death(&failure.cause), "{failure:?}");
            Ok(Turn::Done)
        })
    };
    let survivors = || (0..group.fabric(0).members()).filter(|&rank| rank != 1);
    group.run(survivors().map(survivor).collect())?;
    group.kill(1);
    group.settle();
    for rank in survivors() {
        let again = group.fabric(rank).poll();
        ensure!(again.is_none(), "{rank} is told again: {again:?}");
    }
    Ok(())
}

/// Members push to each other at the same time: the last word of each arrives.
pub(crate) fn f6_no_push_to_a_live_member_is_lost<H: Harness>(group: &H) -> Outcome {
    let last = group.rounds();
    let member = |rank: usize| {
        let mut value = 0;
        Actor::new(rank, move |fabric: &H::F| {
            if value < last {
                value += 1;
                fabric.store(A, value);
                fabric.push(A, 16, &everybody_but(fabric));
                fabric.push_word(A + 16, value, &everybody_but(fabric));
                return Ok(Turn::Busy);
            }
            let there = |peer| [A, A + 16].map(|at| fabric.row(peer).load(at)) == [last; 2];
            let all = everybody_but(fabric).iter().all(there);
            Ok(if all { Turn::Done } else { Turn::Idle })
        })
    };
    group.run((0..group.fabric(0).members()).map(member).collect())
}

/// Once a peer is fenced, its row does not change here, whatever the peer does, and bytes that
/// a guard vouched for before stay readable.
pub(crate) fn f6_nothing_of_a_fenced_peer_is_seen<H: Harness>(group: &H) -> Outcome {
    const WORDS: usize = 32;
    let last = group.rounds();
    let mut value = 0;
    let writer = Actor::new(0, move |fabric: &H::F| {
        value += 1;
        let to = everybody_but(fabric);
        for word in 1..WORDS {
            fabric.store(A + word * 8, value);
        }
        fabric.push(A + 8, (WORDS - 1) * 8, &to);
        fabric.push_word(A, value, &to);
        Ok(if value == last {
            Turn::Done
        } else {
            Turn::Busy
        })
    });
    let look = |fabric: &H::F| -> [u64; WORDS] {
        core::array::from_fn(|word| fabric.row(Rank(0)).load(A + word * 8))
    };
    let mut frozen = None;
    let mut looks = 0;
    let reader = Actor::new(1, move |fabric: &H::F| {
        let Some(frozen) = frozen else {
            // At some moment in the middle.
            if fabric.row(Rank(0)).load(A) < last / 3 {
                return Ok(Turn::Idle);
            }
            fabric.fence(Rank(0));
            let now = look(fabric);
            ensure!(
                now.iter().all(|&word| word >= now[0]),
                "guard {} of {now:?}",
                now[0]
            );
            frozen = Some(now);
            return Ok(Turn::Busy);
        };
        looks += 1;
        let now = look(fabric);
        ensure!(now == frozen, "a fenced row changed: {frozen:?}, {now:?}");
        Ok(if looks > last { Turn::Done } else { Turn::Busy })
    });
    group.run(vec![writer, reader])?;
    let before = look(group.fabric(1));
    group.settle();
    ensure!(
        look(group.fabric(1)) == before,
        "a fenced row changed at last"
    );
    Ok(())
}

/// A dead member's row stays readable, fenced or not.
pub(crate) fn f7_rows_of_dead_members_stay_readable<H: Harness>(group: &H) -> Outcome {
    let dying = group.fabric(0);
    dying.push_word(A, 7, &everybody_but(dying));
    group.settle();
    group.kill(0);
    group.settle();
    for rank in 1..dying.members() {
        let fabric = group.fabric(rank);
        ensure!(
            fabric.row(Rank(0)).load(A) == 7,
            "{rank} lost the row of the dead"
        );
        fabric.fence(Rank(0));
        ensure!(
            fabric.row(Rank(0)).load(A) == 7,
            "{rank} lost the row by fencing it"
        );
    }
    Ok(())
}
