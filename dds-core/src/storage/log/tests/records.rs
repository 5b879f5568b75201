//! What was appended is read.

use super::*;

#[test]
fn what_was_synced_is_read_after_a_crash() {
    let disk = SimDisk::default();
    let mut log = created(&disk);
    for round in 0..100 {
        append(&mut log, (0..3).map(|it| round * 10 + it));
    }
    log.sync().unwrap();
    let (last, figures) = (log.last(), log.figures());
    assert!(figures.segments > 5, "{figures:?}");
    let expected = positions(&mut log);
    assert_eq!(expected.len(), 300);
    append(&mut log, [5000]);
    disk.lose_unsynced();
    let (mut log, report) = opened(&disk);
    assert_eq!(report, OpenReport::default());
    assert_eq!(log.last(), last);
    assert_eq!(log.synced(), last.end);
    assert_eq!(log.head(), &head());
    assert_eq!(positions(&mut log), expected);
    append(&mut log, [5000]);
    assert_eq!(log.verify(&mut |_| ()).unwrap().damaged, []);
}

#[test]
fn a_truncation_lasts() {
    for end in [0, 1, 2, 3, 10, 11, 500, 501, 992, 993] {
        let disk = SimDisk::default();
        let mut log = created(&disk);
        for round in 0..100 {
            append(&mut log, (0..3).map(|it| round * 10 + it));
        }
        log.sync().unwrap();
        let mut expected = positions(&mut log);
        expected.retain(|it| *it < end);
        log.truncate(end).unwrap();
        assert_eq!(positions(&mut log), expected, "{end}");
        disk.lose_unsynced();
        let (mut log, _) = opened(&disk);
        assert_eq!(positions(&mut log), expected, "{end}");
        assert_eq!(log.appended(), expected.last().map_or(0, |it| it + 1));
        assert_eq!(
            log.chain_before(end).unwrap(),
            (log.appended(), log.chain())
        );
        append(&mut log, [end, end + 5000]);
        expected.extend([end, end + 5000]);
        assert_eq!(positions(&mut log), expected, "{end}");
        assert_eq!(log.verify(&mut |_| ()).unwrap().damaged, []);
    }
}

#[test]
fn steps_back_are_counted_in_records() {
    let disk = SimDisk::default();
    let mut log = created(&disk);
    for round in 0..100 {
        append(&mut log, (0..3).map(|it| round * 10 + it));
    }
    let ends: Vec<u64> = positions(&mut log).iter().map(|it| it + 1).collect();
    for from in [0_usize, 1, 2, 150, 299] {
        for records in 0..310 {
            let expected = from.checked_sub(records).map_or(0, |it| ends[it]);
            let back = log.step_back(ends[from], records as u64).unwrap();
            assert_eq!(back, expected, "{from} {records}");
        }
    }
}
