use super::*;
use crate::storage::{LogId, RecordMeta};
use crate::subgroup::header::MessageKind;

fn meta(position: u64) -> RecordMeta {
    RecordMeta {
        position,
        sequence: position + 1,
        timestamp: -5,
        writer: [3; 16],
        key: [(position % 7) as u8; 16],
        kind: MessageKind::Data,
        encapsulation: 7,
    }
}

fn payload(position: u64) -> Vec<u8> {
    let len = (position * 7 % 61) as usize;
    (0..len).map(|at| (at as u64 ^ position) as u8).collect()
}

fn head() -> LogHead {
    LogHead {
        domain: 3,
        topic: "a/b".to_owned(),
        type_name: "T".to_owned(),
        type_information: vec![1, 2, 3],
        ..LogHead::default()
    }
}

const ID: LogId = LogId(0x1234_5678);

fn created(disk: &SimDisk) -> TopicLog<SimDisk> {
    let log = TopicLog::create(disk.clone(), ID, &head()).unwrap();
    log.with_segment_bytes(4096)
}

fn opened(disk: &SimDisk) -> (TopicLog<SimDisk>, OpenReport) {
    let (log, report) = TopicLog::open(disk.clone()).unwrap().unwrap();
    (log.with_segment_bytes(4096), report)
}

fn append(log: &mut TopicLog<SimDisk>, positions: impl IntoIterator<Item = u64>) {
    let records: Vec<_> = positions
        .into_iter()
        .map(|it| (meta(it), payload(it)))
        .collect();
    let records: Vec<_> = records.iter().map(|(meta, it)| (*meta, &it[..])).collect();
    log.append(1, 2, &records).unwrap();
}

fn positions(log: &mut TopicLog<SimDisk>) -> Vec<u64> {
    let records = log.read(0, usize::MAX).unwrap();
    for logged in &records {
        let position = logged.record.position();
        assert_eq!(logged.record.meta(), meta(position));
        assert_eq!(logged.record.payload(), payload(position));
    }
    records.iter().map(|it| it.record.position()).collect()
}

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
    disk.crash(&mut |_| 0);
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
        disk.crash(&mut |_| 0);
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
    for from in [0, 1, 2, 150, 299] {
        for records in 0..310 {
            let expected = (from as usize)
                .checked_sub(records)
                .map_or(0, |it| ends[it]);
            let back = log.step_back(ends[from], records as u64).unwrap();
            assert_eq!(back, expected, "{from} {records}");
        }
    }
}
