//! Disks that are full or fail.

use super::*;

#[test]
fn a_sync_is_not_tried_again() {
    let disk = SimDisk::default();
    let mut log = created(&disk);
    append(&mut log, 0..3);
    log.sync().unwrap();
    append(&mut log, 3..6);
    disk.fail_sync_after(0);
    let error = log.sync().unwrap_err();
    assert!(matches!(error, LogError::Dead { .. }), "{error}");
    let syncs = disk.syncs();
    assert_eq!(log.sync(), Err(error.clone()));
    assert_eq!(log.append(1, 2, &[(meta(9), &[])]), Err(error.clone()));
    assert_eq!(log.truncate(0), Err(error.clone()));
    assert_eq!(log.dead(), Some(&error));
    assert_eq!((log.synced(), disk.syncs()), (3, syncs));
    disk.lose_unsynced();
    let (mut log, _) = opened(&disk);
    assert_eq!(positions(&mut log), [0, 1, 2]);
}

#[test]
fn a_full_disk_leaves_the_log_usable() {
    let disk = SimDisk::default();
    let mut log = created(&disk);
    append(&mut log, 0..3);
    for room in (0..400).step_by(13) {
        disk.set_capacity(Some(disk.used() + room));
        let last = log.last();
        let payload = [7; 300];
        for _ in 0..3 {
            let error = log.append(1, 2, &[(meta(last.end), &payload)]);
            let Err(LogError::Full { file, .. }) = error else {
                if room >= 396 {
                    break;
                }
                panic!("{error:?}");
            };
            assert!(file.ends_with(".segment"), "{file}");
            assert_eq!(log.last(), last);
        }
        disk.set_capacity(None);
        append(&mut log, [last.end, last.end + 1]);
    }
    log.sync().unwrap();
    let expected = positions(&mut log);
    assert!(log.figures().segments > 2);
    disk.lose_unsynced();
    let (mut log, report) = opened(&disk);
    assert_eq!(report, OpenReport::default());
    assert_eq!(positions(&mut log), expected);
}

#[test]
fn a_full_disk_leaves_the_state() {
    let disk = SimDisk::default();
    disk.set_capacity(Some(10));
    let error = TopicLog::create(disk.clone(), ID, &head()).unwrap_err();
    assert!(matches!(error, LogError::Full { .. }));
    disk.set_capacity(None);
    let mut log = created(&disk);
    disk.set_capacity(Some(disk.used() + 10));
    let state = LogState {
        lineage: 7,
        ..log.state().clone()
    };
    let error = log.record(state.clone()).unwrap_err();
    assert!(matches!(error, LogError::Full { .. }));
    assert_eq!(log.state().lineage, 0);
    let other = LogHead {
        topic: "other".to_owned(),
        ..head()
    };
    let error = log.set_head(&other).unwrap_err();
    assert!(matches!(error, LogError::Full { .. }));
    disk.set_capacity(None);
    log.record(state.clone()).unwrap();
    log.set_head(&other).unwrap();
    let (log, _) = opened(&disk);
    assert_eq!((log.state(), log.head()), (&state, &other));
}

#[test]
fn what_is_out_of_order_is_refused() {
    let disk = SimDisk::default();
    let mut log = created(&disk);
    append(&mut log, [5]);
    let (position, end) = (5, 6);
    assert_eq!(
        log.append(1, 2, &[(meta(5), &[])]),
        Err(LogError::Order { position, end })
    );
    let (position, end) = (7, 8);
    let twice = [(meta(7), &[][..]), (meta(7), &[][..])];
    assert_eq!(
        log.append(1, 2, &twice),
        Err(LogError::Order { position, end })
    );
    let (position, end) = (u64::MAX, 6);
    assert_eq!(
        log.append(1, 2, &[(meta(u64::MAX), &[])]),
        Err(LogError::Order { position, end })
    );
    let other = LogState::default();
    assert_eq!(log.record(other), Err(LogError::OtherLog(LogId(0))));
    assert_eq!(positions(&mut log), [5]);
}

#[test]
fn a_log_that_is_read_only_does_not_change() {
    let disk = SimDisk::default();
    assert!(TopicLog::open(disk.clone()).unwrap().is_none());
    let mut log = created(&disk);
    append(&mut log, 0..3);
    let segment = disk
        .contents()
        .into_keys()
        .find(|it| it.ends_with("segment"))
        .unwrap();
    let mut torn = disk.contents()[&segment].clone();
    torn.extend([1; 7]);
    disk.put(&segment, torn);
    let before = disk.contents();
    let (mut log, report) = TopicLog::open_read_only(disk.clone()).unwrap().unwrap();
    let cut = Some((segment, log.figures().bytes, 7));
    assert_eq!(
        report,
        OpenReport {
            cut,
            ..OpenReport::default()
        }
    );
    assert_eq!(positions(&mut log), [0, 1, 2]);
    assert_eq!(log.sync(), Err(LogError::ReadOnly));
    assert_eq!(log.truncate(0), Err(LogError::ReadOnly));
    assert_eq!(log.append(1, 1, &[(meta(9), &[])]), Err(LogError::ReadOnly));
    assert_eq!(log.record(log.state().clone()), Err(LogError::ReadOnly));
    assert_eq!(disk.contents(), before);
    assert!(matches!(
        TopicLog::create(disk, ID, &head()),
        Err(LogError::Exists)
    ));
}
