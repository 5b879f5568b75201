//! Removing what nothing needs, and going from log to log.

use super::*;

fn long_log(disk: &SimDisk) -> TopicLog<SimDisk> {
    let mut log = created(disk);
    for round in 0..100 {
        append(&mut log, (0..3).map(|it| round * 10 + it));
    }
    log.sync().unwrap();
    log
}

fn compact(log: &mut TopicLog<SimDisk>, settled: u64, keep: &dyn Fn(u64) -> bool) {
    let live = positions(log).into_iter().filter(|it| keep(*it)).collect();
    let mut compaction = Compaction::of_live(log, settled, live);
    compaction.run(log, &|record, _| record.meta().key).unwrap();
}

/// Takes all that `to` lacks, in small parts.
fn pull(from: &mut TopicLog<SimDisk>, to: &mut TopicLog<SimDisk>) {
    loop {
        let part = from.read(to.appended(), 700).unwrap();
        if part.is_empty() {
            break;
        }
        let mut bytes = Vec::new();
        part.iter().for_each(|it| it.write(&mut bytes));
        let mut rest = &bytes[..];
        let read: Vec<_> = core::iter::from_fn(|| LoggedRecord::read(&mut rest)).collect();
        assert_eq!(read, part);
        to.append_logged(&read).unwrap();
    }
}

#[test]
fn compaction_keeps_what_lives_and_the_chain() {
    let disk = SimDisk::default();
    let mut log = long_log(&disk);
    let (last, before) = (log.last(), log.figures());
    let keep = |position: u64| position > 300 && position.is_multiple_of(10);
    let all = positions(&mut log);
    compact(&mut log, 900, &keep);
    let after = log.figures();
    assert!(after.bytes * 2 < before.bytes, "{before:?} {after:?}");
    assert!(after.segments < before.segments);
    let check = |log: &mut TopicLog<SimDisk>| {
        let left = positions(log);
        assert!(
            all.iter()
                .filter(|it| keep(**it))
                .all(|it| left.contains(it))
        );
        assert!(left.len() < all.len() / 2 && left[0] > 200, "{left:?}");
        assert_eq!(log.last(), last);
        let verified = log.verify(&mut |_| ()).unwrap();
        assert_eq!(verified.damaged, []);
        assert!(verified.gaps > 10);
    };
    check(&mut log);
    disk.lose_unsynced();
    let (mut log, report) = opened(&disk);
    assert_eq!(report, OpenReport::default());
    check(&mut log);
    // Nothing is left to do.
    let bytes = log.figures().bytes;
    compact(&mut log, 900, &|position| {
        keep(position) || position.is_multiple_of(10)
    });
    assert_eq!(log.figures().bytes, bytes);
    let settled = log.settled();
    assert!((800..900).contains(&settled), "{settled}");
    assert_eq!(
        log.truncate(settled - 1),
        Err(LogError::Compacted { settled })
    );
    log.truncate(900).unwrap();
    assert_eq!(log.appended(), 893);
    log.truncate(0).unwrap();
    append(&mut log, 0..3);
    assert_eq!(positions(&mut log), [0, 1, 2]);
}

#[test]
fn a_log_is_equal_to_the_one_that_it_pulls_from() {
    for is_compacted in [false, true] {
        let (a, b) = (SimDisk::default(), SimDisk::default());
        let mut log = long_log(&a);
        if is_compacted {
            compact(&mut log, 900, &|position| {
                position > 300 && position.is_multiple_of(20)
            });
        }
        let mut other = TopicLog::create(b.clone(), LogId(77), &head()).unwrap();
        other = other.with_segment_bytes(3000);
        pull(&mut log, &mut other);
        assert_eq!(other.last(), log.last());
        let all = log.read(0, usize::MAX).unwrap();
        assert_eq!(other.read(0, usize::MAX).unwrap(), all);
        other.sync().unwrap();
        b.lose_unsynced();
        let (mut other, _) = opened(&b);
        assert_eq!(other.read(0, usize::MAX).unwrap(), all);
        assert_eq!(other.verify(&mut |_| ()).unwrap().damaged, []);
        // Both go on alike.
        append(&mut log, 2000..2003);
        append(&mut other, 2000..2003);
        assert_eq!(other.last(), log.last());
    }
}

#[test]
fn a_record_that_does_not_follow_is_refused() {
    let (a, b) = (SimDisk::default(), SimDisk::default());
    let mut log = long_log(&a);
    let mut other = TopicLog::create(b, LogId(77), &head()).unwrap();
    append(&mut other, [0, 2]);
    let part = log.read(other.appended(), 700).unwrap();
    let position = part[0].record.position();
    assert_eq!(
        other.append_logged(&part),
        Err(LogError::Chain { position })
    );
    assert_ne!(log.chain_before(3).unwrap(), other.chain_before(3).unwrap());
    assert_eq!(log.chain_before(1).unwrap(), other.chain_before(1).unwrap());
    other.truncate(1).unwrap();
    pull(&mut log, &mut other);
    assert_eq!(other.last(), log.last());
}
