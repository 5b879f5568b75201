//! Passes of compaction, by what a history is given by the log before and after them.

use spindle_dds_transport::sim::Rng;

use super::*;
use crate::storage::{HistoryLimits, Put, Record, SampleHistory};

const NOW_NS: u64 = 1 << 40;

fn key_of(record: &Record, _: &SampleHistory) -> [u8; 16] {
    record.meta().key
}

/// Positions of the records that a history keeps of these.
fn kept<'a>(records: impl IntoIterator<Item = &'a RecordMeta>, limits: &HistoryLimits) -> Vec<u64> {
    let mut history = SampleHistory::default();
    for meta in records {
        let at_ns = meta.timestamp.cast_unsigned();
        history.purge(at_ns);
        let _: Put = history.put(meta.key, Record::new(meta, &[]), limits, at_ns);
    }
    history.purge(NOW_NS);
    let kept = history.snapshot();
    kept.records().iter().map(Record::position).collect()
}

fn metas(log: &mut TopicLog<SimDisk>) -> Vec<RecordMeta> {
    let records = log.read(0, usize::MAX).unwrap();
    records.iter().map(|it| it.record.meta()).collect()
}

fn random_limits(rng: &mut Rng) -> HistoryLimits {
    let mut some = |limit: usize| match rng.below(3) {
        0 => Some(1 + rng.below(limit) as u64),
        _ => None,
    };
    HistoryLimits {
        depth: some(3).map(|it| it as u32),
        samples: some(12),
        instances: some(6),
        samples_per_instance: None,
        cleanup_delay_ns: [Some(0), Some(7), None][rng.below(3)],
    }
}

/// An instance has one writer here. That another one had it registered is forgotten with its last record.
fn random_meta(rng: &mut Rng, position: u64) -> RecordMeta {
    let key = rng.below(8).min(rng.below(8)) as u8;
    RecordMeta {
        position,
        sequence: position + 1,
        timestamp: position.cast_signed(),
        writer: [key % 2; 16],
        key: [key; 16],
        kind: match rng.below(12) {
            0 => MessageKind::Dispose,
            1 => MessageKind::Unregister,
            2 | 3 => MessageKind::DisposeUnregister,
            _ => MessageKind::Data,
        },
        encapsulation: 7,
    }
}

#[test]
fn a_history_is_given_the_same_by_a_compacted_log() {
    let mut removed = 0;
    for seed in 0..600 {
        let mut rng = Rng::new(seed);
        let limits = random_limits(&mut rng);
        let disk = SimDisk::default();
        let mut log = created(&disk).with_segment_bytes(200 + rng.below(1500) as u64);
        let mut all = Vec::new();
        let mut position = 0;
        for _ in 0..1 + rng.below(4) {
            for _ in 0..rng.below(80) {
                position += 1 + rng.below(2) as u64;
                let meta = random_meta(&mut rng, position);
                let payload = vec![0; rng.below(90)];
                log.append(1, 2, &[(meta, &payload)]).unwrap();
                all.push(meta);
            }
            log.sync().unwrap();
            let settled = rng.below(position as usize + 10) as u64;
            let mut compaction = Compaction::new(&log, settled, limits, NOW_NS);
            let bytes_max = rng.below(900) as u64;
            while compaction.step(&mut log, &key_of, bytes_max).unwrap() {}
            let left = metas(&mut log);
            let show = |it: &RecordMeta| format!("{}:{}:{:?} ", it.position, it.key[0], it.kind);
            let show = |all: &[RecordMeta]| all.iter().map(show).collect::<String>();
            let what = format!("seed {seed} {limits:?}\n{}\n{}", show(&all), show(&left));
            assert_eq!(kept(&all, &limits), kept(&left, &limits), "{what}");
            removed += all.len() - left.len();
            assert_eq!(log.verify(&mut |_| ()).unwrap().damaged, []);
        }
    }
    assert!(removed > 8_000, "{removed}");
}

/// A log of which most was superseded, in some segments.
fn superseded(disk: &SimDisk) -> TopicLog<SimDisk> {
    let mut log = created(disk).with_segment_bytes(1500);
    let first = RecordMeta {
        key: [99; 16],
        ..meta(0)
    };
    log.append(1, 2, &[(first, &payload(0))]).unwrap();
    (1..60).for_each(|position| append(&mut log, [position]));
    for round in 6..30 {
        append(&mut log, round * 10..round * 10 + 5);
    }
    log.sync().unwrap();
    log
}

const NEWEST: HistoryLimits = HistoryLimits {
    depth: Some(1),
    samples: None,
    instances: None,
    samples_per_instance: None,
    cleanup_delay_ns: Some(0),
};

#[test]
fn a_pass_may_be_cut_off_by_a_crash_at_each_call_of_the_disk() {
    let expected = {
        let mut log = superseded(&SimDisk::default());
        let all = metas(&mut log);
        let mut compaction = Compaction::new(&log, u64::MAX, NEWEST, NOW_NS);
        compaction.run(&mut log, &key_of).unwrap();
        let left = metas(&mut log);
        assert!(
            left.len() * 3 < all.len(),
            "{} of {}",
            left.len(),
            all.len()
        );
        assert!(log.figures().compacted > 5);
        left
    };
    let mut cut = 0;
    for calls in 0.. {
        let disk = SimDisk::default();
        let mut log = superseded(&disk);
        let all = metas(&mut log);
        disk.cut_power_after(calls);
        let mut compaction = Compaction::new(&log, u64::MAX, NEWEST, NOW_NS);
        let is_whole = loop {
            match compaction.step(&mut log, &key_of, 300) {
                Ok(true) => {}
                Ok(false) => break true,
                Err(_) => break false,
            }
        };
        if is_whole {
            break;
        }
        cut += 1;
        disk.crash(&mut Rng::new(calls));
        let (mut log, report) = opened(&disk);
        assert_eq!(report.cut, None);
        assert_eq!(log.verify(&mut |_| ()).unwrap().damaged, []);
        let found = metas(&mut log);
        assert_eq!(kept(&found, &NEWEST), kept(&all, &NEWEST));
        assert_eq!(found.last(), all.last());
        let mut again = Compaction::new(&log, u64::MAX, NEWEST, NOW_NS);
        again.run(&mut log, &key_of).unwrap();
        assert_eq!(metas(&mut log), expected, "after {calls} calls");
    }
    assert!(cut > 30, "{cut}");
}

#[test]
fn records_are_appended_between_steps() {
    let disk = SimDisk::default();
    let mut log = superseded(&disk);
    let all = metas(&mut log);
    let mut compaction = Compaction::new(&log, u64::MAX, NEWEST, NOW_NS);
    let mut position = 1000;
    let mut figures = log.figures();
    while compaction.step(&mut log, &key_of, 300).unwrap() {
        let now = log.figures();
        assert!(now.syncs_of_state - figures.syncs_of_state <= 6);
        append(&mut log, [position]);
        log.sync().unwrap();
        position += 1;
        figures = log.figures();
    }
    let left = metas(&mut log);
    assert!(left.len() < all.len() / 2 + (position - 1000) as usize);
    disk.lose_unsynced();
    let (mut log, _) = opened(&disk);
    assert_eq!(metas(&mut log), left);
    assert_eq!(log.verify(&mut |_| ()).unwrap().damaged, []);
}

#[test]
fn a_truncation_ends_a_pass() {
    let disk = SimDisk::default();
    let mut log = superseded(&disk);
    let mut compaction = Compaction::new(&log, 200, NEWEST, NOW_NS);
    let files = |disk: &SimDisk| disk.contents().into_keys().any(|it| it.ends_with(".new"));
    while !files(&disk) {
        assert!(compaction.step(&mut log, &key_of, 100).unwrap());
    }
    log.truncate(0).unwrap();
    assert!(!files(&disk));
    append(&mut log, 0..40);
    log.sync().unwrap();
    let before = metas(&mut log);
    assert!(!compaction.step(&mut log, &key_of, 100).unwrap());
    assert_eq!(metas(&mut log), before);
}

#[test]
fn without_room_the_log_stays_as_it_is() {
    let disk = SimDisk::default();
    let mut log = superseded(&disk);
    let before = metas(&mut log);
    for room in [0, 100, 200, 250] {
        disk.set_capacity(Some(disk.used() + room));
        let mut compaction = Compaction::new(&log, u64::MAX, NEWEST, NOW_NS);
        let error = compaction.run(&mut log, &key_of).unwrap_err();
        assert!(matches!(error, LogError::Full { .. }), "{error}");
        assert_eq!(metas(&mut log), before);
    }
    disk.set_capacity(None);
    let mut compaction = Compaction::new(&log, u64::MAX, NEWEST, NOW_NS);
    compaction.run(&mut log, &key_of).unwrap();
    assert!(metas(&mut log).len() < before.len());
}
