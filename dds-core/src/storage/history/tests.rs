use super::*;

use spindle_dds_transport::sim::Rng;

fn key(of: u8) -> [u8; 16] {
    [of; 16]
}

const KEEP_ALL: HistoryLimits = HistoryLimits {
    depth: None,
    samples: None,
    instances: None,
    samples_per_instance: None,
    cleanup_delay_ns: Some(0),
};

const fn keep_last(depth: u32) -> HistoryLimits {
    HistoryLimits {
        depth: Some(depth),
        ..KEEP_ALL
    }
}

fn put(history: &mut SampleHistory, record: Record, limits: &HistoryLimits) -> Put {
    history.put(record.meta().key, record, limits, 0)
}

fn sequences(history: &mut SampleHistory) -> Vec<u64> {
    let snapshot = history.snapshot();
    let records = snapshot.records().iter();
    records.map(|it| it.meta().sequence).collect()
}

#[test]
fn keep_last_keeps_the_last_of_each_instance() {
    let mut history = SampleHistory::default();
    for at in 1..=9 {
        let record = Record::test(1, at, (at % 2) as u8, at);
        assert_eq!(put(&mut history, record, &keep_last(2)), Put::Kept);
    }
    assert_eq!(sequences(&mut history), [6, 7, 8, 9]);
    assert_eq!((history.samples(), history.instances()), (4, 2));
    assert_eq!(history.payload_bytes(), 4 * 8);
}

#[test]
fn older_records_take_their_places_as_far_as_there_is_room() {
    let mut history = SampleHistory::default();
    for at in [7, 8, 3, 5, 2, 8] {
        put(&mut history, Record::test(1, at, 1, at), &keep_last(3));
    }
    assert_eq!(sequences(&mut history), [5, 7, 8]);
    let mut all = SampleHistory::default();
    for at in [7, 8, 3, 5, 2, 8] {
        put(&mut all, Record::test(1, at, 1, at), &KEEP_ALL);
    }
    assert_eq!(sequences(&mut all), [2, 3, 5, 7, 8]);
}

#[test]
fn limits_leave_no_room() {
    let limits = HistoryLimits {
        samples: Some(3),
        instances: Some(2),
        samples_per_instance: Some(2),
        ..KEEP_ALL
    };
    let mut history = SampleHistory::default();
    let mut at = 0;
    let mut next = |history: &mut SampleHistory, key| {
        at += 1;
        put(history, Record::test(1, at, key, at), &limits)
    };
    assert_eq!(next(&mut history, 1), Put::Kept);
    assert_eq!(next(&mut history, 1), Put::Kept);
    let full = Put::Full(HistoryLimit::SamplesPerInstance);
    assert_eq!(next(&mut history, 1), full);
    assert_eq!(next(&mut history, 2), Put::Kept);
    assert_eq!(next(&mut history, 2), Put::Full(HistoryLimit::Samples));
    assert_eq!(next(&mut history, 3), Put::Full(HistoryLimit::Instances));
    assert_eq!(history.samples(), 3);
}

#[test]
fn a_disposed_instance_is_kept_until_no_writer_has_it_registered() {
    let mut history = SampleHistory::default();
    let limits = HistoryLimits {
        cleanup_delay_ns: Some(100),
        ..keep_last(1)
    };
    let of = |kind, writer, at| Record::of_kind(kind, writer, at, 1, at);
    let mut put = |record, now| history.put(key(1), record, &limits, now);
    put(of(MessageKind::Data, 1, 1), 0);
    put(of(MessageKind::Data, 2, 2), 0);
    put(of(MessageKind::Dispose, 1, 3), 0);
    put(of(MessageKind::Unregister, 1, 4), 0);
    assert_eq!(history.next_purge(), None);
    assert_eq!(sequences(&mut history), [2, 3, 4]);
    history.writer_gone([2; 16], false, &limits, 50);
    assert_eq!(history.next_purge(), Some(150));
    history.purge(149);
    assert_eq!(history.samples(), 1);
    history.purge(150);
    assert_eq!((history.instances(), history.bytes()), (0, 0));
}

#[test]
fn a_sample_makes_a_disposed_instance_alive() {
    let mut history = SampleHistory::default();
    let of = |kind, at| Record::of_kind(kind, 1, at, 1, at);
    let delayed = HistoryLimits {
        cleanup_delay_ns: Some(100),
        ..keep_last(1)
    };
    for (kind, at) in [
        (MessageKind::Data, 1),
        (MessageKind::DisposeUnregister, 2),
        (MessageKind::Data, 3),
    ] {
        assert_eq!(history.put(key(1), of(kind, at), &delayed, at), Put::Kept);
    }
    assert_eq!(sequences(&mut history), [3]);
    history.purge(u64::MAX);
    assert_eq!(history.samples(), 1);
    // A disposal that is older than the sample comes late.
    let late = of(MessageKind::Dispose, 2);
    assert_eq!(put(&mut history, late, &keep_last(1)), Put::Superseded);
    put(
        &mut history,
        of(MessageKind::DisposeUnregister, 4),
        &keep_last(1),
    );
    assert_eq!(history.instances(), 0, "no delay");
    let unknown = of(MessageKind::Unregister, 5);
    assert_eq!(put(&mut history, unknown, &KEEP_ALL), Put::Superseded);
}

#[test]
fn an_older_sample_brings_no_instance_back_that_has_ended() {
    let of = |kind, at| Record::of_kind(kind, 1, at, 1, at);
    let mut history = SampleHistory::default();
    history.set_filling(true);
    put(&mut history, of(MessageKind::Data, 5), &KEEP_ALL);
    put(
        &mut history,
        of(MessageKind::DisposeUnregister, 6),
        &KEEP_ALL,
    );
    // From another keeper.
    put(&mut history, of(MessageKind::Data, 2), &KEEP_ALL);
    assert_eq!(history.next_purge(), None);
    history.set_filling(false);
    history.purge(0);
    assert_eq!((history.samples(), history.instances()), (0, 0));
}

#[test]
fn instances_are_removed_in_the_order_of_their_times() {
    let of = |at, key| Record::of_kind(MessageKind::DisposeUnregister, 1, at, key, at);
    let mut history = SampleHistory::default();
    for (at, delay) in [(1, 300), (2, 100), (3, 200)] {
        let limits = HistoryLimits {
            cleanup_delay_ns: Some(delay),
            ..KEEP_ALL
        };
        history.put(key(at), of(at.into(), at), &limits, 0);
    }
    assert_eq!(history.next_purge(), Some(100));
    history.purge(200);
    assert!(history.has_instance(&key(1)));
    assert_eq!(history.instances(), 1);
}

#[test]
fn positions_that_begin_anew_leave_the_order_of_each_writer() {
    let mut history = SampleHistory::default();
    for at in 1..=4 {
        put(
            &mut history,
            Record::test(1, at, at as u8, 100 + at),
            &KEEP_ALL,
        );
    }
    history.forget_positions();
    put(&mut history, Record::test(1, 5, 5, 0), &KEEP_ALL);
    put(&mut history, Record::test(1, 6, 6, 1), &KEEP_ALL);
    assert_eq!(sequences(&mut history), [1, 2, 3, 4, 5, 6]);
    assert_eq!(history.snapshot().lasts(), &[([1; 16], 6)].into());
    let mut of_two = SampleHistory::default();
    put(&mut of_two, Record::test(9, 1, 1, 100), &keep_last(2));
    put(&mut of_two, Record::test(3, 1, 1, 101), &keep_last(2));
    of_two.forget_positions();
    put(&mut of_two, Record::test(1, 1, 1, 1), &keep_last(2));
    let snapshot = of_two.snapshot();
    let writers = snapshot.records().iter().map(|it| it.meta().writer[0]);
    assert_eq!(writers.collect::<Vec<_>>(), [9, 1]);
}

#[test]
fn a_snapshot_stays_as_it_was() {
    let mut history = SampleHistory::default();
    put(&mut history, Record::test(1, 1, 1, 1), &keep_last(1));
    let before = history.snapshot();
    put(&mut history, Record::test(1, 2, 1, 2), &keep_last(1));
    assert_eq!(before.records()[0].meta().sequence, 1);
    assert_eq!(history.snapshot().records()[0].meta().sequence, 2);
    let other = Record::test(2, 1, 1, 0);
    let mut second = SampleHistory::default();
    put(&mut second, other, &KEEP_ALL);
    let merged = Snapshot::merge(&[history.snapshot(), second.snapshot()]);
    let writers = merged.records().iter().map(|it| it.meta().writer[0]);
    assert_eq!(writers.collect::<Vec<_>>(), [2, 1]);
    assert_eq!(merged.lasts().len(), 2);
}

#[test]
fn what_comes_before_a_position_knows_nothing_of_what_comes_later() {
    let mut history = SampleHistory::default();
    for at in 1..=9 {
        put(&mut history, Record::test(1, at, 1, 10 * at), &KEEP_ALL);
    }
    put(&mut history, Record::test(2, 1, 1, 95), &KEEP_ALL);
    let before = history.snapshot().before(50);
    assert_eq!(before.records().len(), 4);
    assert_eq!(before.lasts(), &[([1; 16], 4)].into());
}

/// In the order of positions, a history is what a filter of the list of all records leaves.
#[test]
fn a_history_is_what_a_list_of_all_records_leaves() {
    for seed in 0..300 {
        let mut rng = Rng::new(seed);
        let depth = [None, Some(1), Some(3)][rng.below(3)];
        let limits = HistoryLimits { depth, ..KEEP_ALL };
        let mut history = SampleHistory::default();
        let mut records: Vec<Record> = (1..=rng.below(60) as u64)
            .map(|at| Record::test(rng.below(3) as u8, at, rng.below(4) as u8, 5 * at))
            .collect();
        let mut model: Vec<u64> = Vec::new();
        for instance in 0..4 {
            let of_instance = records.iter().filter(|it| it.meta().key == key(instance));
            let all: Vec<u64> = of_instance.map(|it| it.meta().sequence).collect();
            let from = depth.map_or(0, |depth| all.len().saturating_sub(depth as usize));
            model.extend(&all[from..]);
        }
        model.sort_unstable();
        if seed % 2 == 1 {
            // As a keeper gets them that is new itself.
            let live = records.split_off(records.len() / 2);
            records.splice(0..0, live);
        }
        for record in records {
            put(&mut history, record, &limits);
        }
        assert_eq!(sequences(&mut history), model, "seed {seed}");
        assert_eq!(history.samples(), model.len());
        assert_eq!(history.payload_bytes(), 8 * model.len());
    }
}

#[test]
fn instances_of_a_writer_that_leaves_and_disposes_of_them_end() {
    let mut history = SampleHistory::default();
    let limits = |cleanup_delay_ns| HistoryLimits {
        cleanup_delay_ns,
        ..HistoryLimits::default()
    };
    for (writer, key) in [(1, 1), (1, 2), (2, 2)] {
        let record = Record::test(writer, u64::from(key), key, 10 * u64::from(writer));
        history.put([key; 16], record, &limits(Some(0)), 0);
    }
    history.writer_gone([1; 16], true, &limits(Some(0)), 5);
    assert!(!history.has_instance(&[1; 16]));
    assert!(history.has_instance(&[2; 16]), "it has another writer");
    history.writer_gone([2; 16], true, &limits(Some(100)), 5);
    history.purge(104);
    assert!(history.has_instance(&[2; 16]));
    history.purge(105);
    assert_eq!((history.instances(), history.bytes()), (0, 0));
}
