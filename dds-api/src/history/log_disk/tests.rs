use spindle_dds_core::MessageKind;
use spindle_dds_core::storage::log::{Compaction, LogError, LogHead, TopicLog};
use spindle_dds_core::storage::{HistoryLimits, LogId, RecordMeta};

use super::mounted::Mounted;
use super::*;

const ID: LogId = LogId(77);

fn created(path: &Path) -> TopicLog<LogDirectory> {
    let disk = LogDirectory::create(path).unwrap();
    let log = TopicLog::create(disk, ID, &LogHead::default()).unwrap();
    log.with_segment_bytes(100_000)
}

fn append(
    log: &mut TopicLog<LogDirectory>,
    positions: std::ops::Range<u64>,
) -> Result<(), LogError> {
    let payload = [5; 300];
    let records: Vec<_> = positions
        .map(|position| (meta(position), &payload[..]))
        .collect();
    log.append(1, 2, &records)
}

fn meta(position: u64) -> RecordMeta {
    RecordMeta {
        position,
        sequence: position + 1,
        timestamp: 0,
        writer: [1; 16],
        key: [2; 16],
        kind: MessageKind::Data,
        encapsulation: 7,
    }
}

fn positions(log: &mut TopicLog<LogDirectory>) -> Vec<u64> {
    let records = log.read(0, usize::MAX).unwrap();
    records.iter().map(|it| it.record.position()).collect()
}

#[test]
fn a_log_lives_in_a_directory() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("domain-0/a%2Fb");
    let mut log = created(&path);
    // More parts than the kernel takes at once, and more files than stay open.
    append(&mut log, 0..2000).unwrap();
    for round in 1..20 {
        append(&mut log, round * 2000..round * 2000 + 100).unwrap();
        log.sync().unwrap();
    }
    let all = positions(&mut log);
    assert_eq!(all.len(), 3900);
    assert!(log.figures().segments > OPEN_MAX as u64);
    assert!(log.disk().open.len() <= OPEN_MAX);
    let lens: u64 = log.into_disk().list().unwrap().iter().map(|it| it.1).sum();
    assert!(lens < 3900 * 400, "room is no length");

    let (mut log, report) = TopicLog::open(LogDirectory::new(&path)).unwrap().unwrap();
    assert_eq!(report, Default::default());
    assert_eq!(positions(&mut log), all);
    log.truncate(6003).unwrap();
    let left: Vec<u64> = all.into_iter().filter(|it| *it < 6003).collect();
    let before = log.figures().bytes;
    let limits = HistoryLimits {
        depth: Some(1),
        ..HistoryLimits::default()
    };
    let mut compaction = Compaction::new(&log, 2000, limits, 1);
    compaction
        .run(&mut log, &|record, _| record.meta().key)
        .unwrap();
    assert!(log.figures().bytes < before);
    append(&mut log, 7000..7003).unwrap();
    log.sync().unwrap();
    let (mut log, report) = TopicLog::open(LogDirectory::new(&path)).unwrap().unwrap();
    assert_eq!(report, Default::default());
    let found = positions(&mut log);
    assert_eq!(found[found.len() - 3..], [7000, 7001, 7002]);
    assert!(found.iter().all(|it| left.contains(it) || *it >= 7000));
    assert_eq!(log.verify(&mut |_| ()).unwrap().damaged, []);
}

#[test]
fn a_torn_tail_is_cut_in_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let mut log = created(folder.path());
    append(&mut log, 0..3).unwrap();
    log.sync().unwrap();
    drop(log);
    let segment = folder.path().join("0000000000000000.segment");
    let mut bytes = fs::read(&segment).unwrap();
    let whole = bytes.len();
    bytes.extend_from_within(whole - 200..);
    fs::write(&segment, &bytes).unwrap();
    let read_only = TopicLog::open_read_only(LogDirectory::new(folder.path()))
        .unwrap()
        .unwrap();
    assert_eq!(fs::read(&segment).unwrap(), bytes);
    let (mut log, report) = TopicLog::open(LogDirectory::new(folder.path()))
        .unwrap()
        .unwrap();
    assert_eq!(report, read_only.1);
    assert_eq!(report.cut.map(|it| (it.1, it.2)), Some((whole as u64, 200)));
    assert_eq!(fs::metadata(&segment).unwrap().len(), whole as u64);
    assert_eq!(positions(&mut log), [0, 1, 2]);
}

#[test]
fn what_can_be_read_only_is_not_written_and_says_why() {
    let folder = tempfile::tempdir().unwrap();
    let Some(mounted) = Mounted::new(folder.path()) else {
        return;
    };
    let mut log = created(folder.path());
    append(&mut log, 0..3).unwrap();
    log.sync().unwrap();
    drop(log);
    mounted.remount("ro");
    let opened = TopicLog::open(LogDirectory::new(folder.path()));
    let (mut log, _) = opened.unwrap().unwrap();
    assert_eq!(positions(&mut log), [0, 1, 2]);
    let error = append(&mut log, 3..4).unwrap_err();
    assert!(matches!(error, LogError::Dead { .. }), "{error}");
    assert!(error.to_string().contains("Read-only file system"));
    let mut disk = log.into_disk();
    let error = disk.truncate("superblock", 0).unwrap_err();
    assert!(error.to_string().contains("Read-only file system"));
}

#[test]
fn a_file_system_without_room_names_the_directory() {
    let folder = tempfile::tempdir().unwrap();
    let Some(mounted) = Mounted::new(folder.path()) else {
        return;
    };
    let path = folder.path().join("domain-0/topic");
    let mut log = created(&path);
    let error = loop {
        let last = log.last().end;
        if let Err(error) = append(&mut log, last..last + 40) {
            break error;
        }
        log.sync().unwrap();
    };
    assert!(matches!(error, LogError::Full { .. }), "{error}");
    let text = error.to_string();
    assert!(
        text.contains(path.to_str().unwrap()) && text.contains("No space left"),
        "{text}"
    );
    let last = log.last();
    assert_eq!(append(&mut log, last.end..last.end + 40), Err(error));
    assert_eq!(log.last(), last);

    mounted.remount("size=16m");
    append(&mut log, last.end..last.end + 40).unwrap();
    log.sync().unwrap();
    drop(log);
    let (mut log, report) = TopicLog::open(LogDirectory::new(&path)).unwrap().unwrap();
    assert_eq!(report, Default::default());
    let expected: Vec<u64> = (0..last.end + 40).collect();
    assert_eq!(positions(&mut log), expected);
}
