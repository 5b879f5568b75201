#![allow(clippy::unwrap_used)]

mod compacting;
mod crashes;
mod errors;
mod flips;
mod mend;
mod passes;
mod records;

use super::*;
use crate::storage::{LogId, RecordMeta};
use crate::subgroup::header::MessageKind;

fn meta(position: u64) -> RecordMeta {
    RecordMeta {
        position,
        sequence: position.wrapping_add(1),
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
