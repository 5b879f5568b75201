//! News: a member that reads only what is named misses nothing.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use spindle_dds_transport::shm::DoorbellChoice;
use spindle_dds_transport::{
    FABRIC_AREA, Fabric, News, PeerSet, Rank, SeenNews, WakeInterest, WakeReason,
};

use crate::harness::{Harness, Outcome, Segments, Turn, ensure};
use crate::segments::open_everywhere;
use crate::sleeping::{only, sleeper};
use crate::stations::StationGroup;

const A: usize = FABRIC_AREA;

/// A token goes round, in one of several segments each time. Every member sleeps until it
/// arrives, and reads the segments in which there is news.
pub(crate) fn nothing_is_missed_where_only_news_are_read<H: Segments>(group: &H) -> Outcome {
    const SEGMENTS: usize = 5;
    let (members, rounds) = (group.fabric(0).members(), group.rounds());
    let everyone: Vec<_> = (0..members).collect();
    let made: Vec<Vec<H::F>> = (0..SEGMENTS)
        .map(|_| open_everywhere(group, group.agree(&everyone, false), members))
        .collect();
    let mut of_member: Vec<Vec<H::F>> = everyone.iter().map(|_| Vec::new()).collect();
    for segment in made {
        let parts = of_member.iter_mut().zip(segment);
        parts.for_each(|(all, part)| all.push(part));
    }
    let member = |(rank, segments): (usize, Vec<H::F>)| {
        let (before, after) = ((rank + members - 1) % members, (rank + 1) % members);
        let (mut passed, mut newest) = (0, 0);
        let mut seen = SeenNews::default();
        sleeper(rank, WakeInterest::Data, move |fabric: &H::F| {
            if passed == rounds {
                return Ok(Turn::Done);
            }
            let news = fabric.news(&mut seen).unwrap_or(News::ALL);
            for segment in &segments {
                if news.buckets.contains(segment.news_bucket()) {
                    newest = newest.max(segment.row(Rank(before as u16)).load(A));
                }
            }
            // The first member passes the token on first.
            if newest < passed + u64::from(rank != 0) {
                return Ok(Turn::Idle);
            }
            passed += 1;
            let by = &segments[(passed as usize + rank) % SEGMENTS];
            by.push_word(A, passed, &only(after));
            by.wake(&only(after), WakeReason::Data);
            Ok(Turn::Busy)
        })
    };
    group.run(everyone.into_iter().zip(of_member).map(member).collect())
}

/// A look without news names nothing, on fabrics that know.
pub(crate) fn what_was_seen_is_no_news_any_more<H: Segments>(group: &H) -> Outcome {
    let members: Vec<_> = (0..group.fabric(0).members()).collect();
    let made = [0, 1].map(|_| open_everywhere(group, group.agree(&members, false), members.len()));
    let [segment, other] = &made;
    let mut seen = SeenNews::default();
    group.settle();
    if group.fabric(1).news(&mut seen).is_none() {
        return Ok(());
    }
    for value in 1..100 {
        let found = group.fabric(1).news(&mut seen);
        ensure!(found == Some(News::default()), "{found:?} of nothing");
        segment[0].push_word(A, value, &only(1));
        segment[0].wake(&PeerSet::EMPTY, WakeReason::Data);
        group.settle();
        let found = group.fabric(1).news(&mut seen).unwrap_or_default();
        let bucket = segment[1].news_bucket();
        ensure!(
            found.buckets.contains(bucket),
            "{bucket} is not in {found:?}"
        );
        let is_other =
            other[1].news_bucket() == bucket || !found.buckets.contains(other[1].news_bucket());
        ensure!(is_other, "{found:?} is more than {bucket}");
    }
    Ok(())
}

/// Threads of a member acknowledge while another one pushes. A peer that reads only what is
/// named finds the last value of each.
#[test]
fn acknowledgements_of_several_threads_are_news() {
    const THREADS: usize = 3;
    const LAST: u64 = 20_000;
    let ack = |thread: usize| A + 8 + thread * 8;
    let group = StationGroup::new(crate::ONE, crate::ROW_LEN, &[DoorbellChoice::Auto]);
    let everyone: Vec<_> = (0..crate::MEMBERS).collect();
    let segment = open_everywhere(&group, group.agree(&everyone, false), everyone.len());
    let (reader, writer) = (&segment[0], &segment[1]);
    let is_late = AtomicBool::new(false);
    thread::scope(|scope| {
        for at in 0..THREADS {
            scope.spawn(move || (1..=LAST).for_each(|it| writer.acknowledge(ack(at), it, Rank(0))));
        }
        scope.spawn(|| {
            for value in 1..=LAST {
                writer.push_word(A, value, &only(0));
                writer.wake(&only(0), WakeReason::Data);
            }
        });
        let mut seen = SeenNews::default();
        let (mut data, mut acks) = (0, [0; THREADS]);
        let end = Instant::now() + Duration::from_secs(20);
        while (data, acks) != (LAST, [LAST; THREADS]) && Instant::now() < end {
            let news = group.fabric(0).news(&mut seen).expect("known on one host");
            let row = reader.row(Rank(1));
            if news.buckets.contains(reader.news_bucket()) {
                data = row.load(A);
            }
            if news.acknowledged {
                acks = core::array::from_fn(|at| row.load(ack(at)));
            }
        }
        is_late.store((data, acks) != (LAST, [LAST; THREADS]), Ordering::Relaxed);
    });
    assert!(!is_late.into_inner(), "something was missed");
}
