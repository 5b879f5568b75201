//! What is shown in which order, and what waits.

use super::*;

#[test]
fn history_comes_first_then_what_came_meanwhile_then_what_comes() {
    let mut it = Fixture::durable();
    it.begin(&[1], LEFT, None);
    it.deliver(data(1, 1..3));
    it.begin(&[1, 2], LEFT, Some(7));
    assert_eq!(it.wakes(), 1);
    assert_eq!(it.lasts(8), None, "another transfer");
    assert_eq!(it.lasts(7), Some(vec![(1, 2)]));
    it.deliver(data(2, 6..8));
    it.deliver(data(1, 3..5));
    assert_eq!(it.take_samples(), of(1, 1..3), "it came before");
    let mut history = records(data(2, [1, 2, 5]));
    assert_eq!(it.offer(7, &mut history), HistoryOffer::Taken);
    assert!(history.is_empty());
    assert_eq!(it.take_samples(), of(2, [1, 2, 5]));
    assert!(it.is_awaiting() && it.port.has_historical_data().is_none());
    let progress = HistoryProgress {
        samples: 3,
        bytes: 222,
        donors: 1,
    };
    it.port.note_history(TransferId(7), progress);
    let status = it.port.historical_data();
    assert_eq!((status.samples, status.bytes, status.donors), (3, 222, 1));
    assert!(it.port.end_history(TransferId(7), &end_of(&[(2, 5)])));
    assert!(
        !it.port.end_history(TransferId(7), &end_of(&[])),
        "it is over"
    );
    assert_eq!(it.offer(7, &mut history), HistoryOffer::Closed);
    assert_eq!(it.lasts(7), Some(Vec::new()));
    assert!(!it.is_awaiting());
    assert_eq!(it.port.has_historical_data(), Some(Ok(())));
    it.deliver(data(2, 8..9));
    assert_eq!(
        it.take_samples(),
        [of(2, 6..8), of(1, 3..5), of(2, 8..9)].concat()
    );
    assert_eq!(it.lost(), 0, "what is not in a history was replaced");
    it.deliver(data(2, 11..12));
    assert_eq!(it.lost(), 2);
}

#[test]
fn what_does_not_fit_aside_waits_in_its_place() {
    let mut it = Fixture::new(Settings {
        aside_bytes: 1000,
        ..Settings::default()
    });
    it.begin(&[1], LEFT, Some(1));
    it.deliver(data(1, 11..13));
    assert!(!it.port.is_full());
    it.deliver(data(1, 13..100));
    assert!(it.port.is_full(), "the rest holds back its writer");
    // Nothing that comes later passes it, and epochs are held off.
    it.begin(&[1, 2], LEFT, None);
    it.deliver(data(2, 1..3));
    it.begin(&[1, 2, 3], LEFT, None);
    assert!(it.port.is_ready(&it.epoch));
    it.begin(&[1, 2], LEFT, None);
    assert!(!it.port.is_ready(&it.epoch), "three epochs are behind");
    it.deliver(data(1, 100..102));
    assert_eq!(it.take_samples(), []);
    it.transfer(1, data(1, 1..11), &[(1, 10)]);
    assert!(it.port.is_ready(&it.epoch) && !it.port.is_full());
    let all = [of(1, 1..100), of(2, 1..3), of(1, 100..102)].concat();
    assert_eq!(it.take_samples(), all);
    assert_eq!(it.lost(), 0);
}

#[test]
fn epochs_pass_while_history_is_awaited_if_what_comes_fits_aside() {
    let mut it = Fixture::durable();
    it.begin(&[1], LEFT, Some(1));
    for number in 0..10 {
        it.deliver(data(1, [2 * number + 11, 2 * number + 12]));
        it.begin(&[1, 2], LEFT, None);
        assert!(it.port.is_ready(&it.epoch), "no ring is held");
    }
    assert_eq!(
        it.matched(),
        [1].into(),
        "writers are matched in their place"
    );
    it.transfer(1, data(1, 1..11), &[(1, 10)]);
    assert_eq!(it.matched(), [1, 2].into());
    assert_eq!(it.take_samples(), of(1, 1..31));
}

#[test]
fn a_full_cache_takes_the_next_records_when_a_take_has_made_room() {
    let mut it = Fixture::new(Settings {
        limits: max_samples(3),
        ..Settings::default()
    });
    it.begin(&[1], LEFT, Some(1));
    it.deliver(data(1, 9..11));
    it.wakes();
    let mut history = records(data(1, 1..9));
    assert_eq!(it.offer(1, &mut history), HistoryOffer::Full);
    assert_eq!((history.len(), it.wakes()), (5, 0));
    it.deliver(data(1, 11..12));
    assert_eq!(it.offer(1, &mut history), HistoryOffer::Full);
    assert_eq!(it.wakes(), 0, "what comes makes no room");
    assert_eq!(it.take(1).len(), 1);
    assert_eq!(it.wakes(), 1);
    assert_eq!(it.take(1).len(), 1);
    assert_eq!(it.wakes(), 0, "it knows");
    assert_eq!(it.offer(1, &mut history), HistoryOffer::Full);
    assert_eq!(history.len(), 3);
    assert_eq!(it.take_samples(), of(1, 3..6));
    assert_eq!(it.offer(1, &mut history), HistoryOffer::Taken);
    assert!(it.port.end_history(TransferId(1), &end_of(&[(1, 8)])));
    assert!(it.port.is_full(), "what was kept aside waits for room");
    assert_eq!(it.port.has_historical_data(), Some(Ok(())));
    for expected in [6..9, 9..12] {
        assert_eq!(it.take_samples(), of(1, expected));
    }
    let rejected = it.port.with_statuses(|it| it.rejected.read().0);
    assert_eq!((rejected, it.lost()), (3, 0), "each once");
}

#[test]
fn a_best_effort_reader_rejects_what_does_not_fit() {
    let mut it = Fixture::new(Settings {
        limits: max_samples(3),
        is_reliable: false,
        ..Settings::default()
    });
    it.begin(&[1], LEFT, Some(1));
    it.transfer(1, data(1, 1..9), &[(1, 8)]);
    assert_eq!(it.take_samples(), of(1, 1..4));
    assert_eq!(it.port.with_statuses(|it| it.rejected.read().0), 5);
    it.deliver(data(1, 9..10));
    assert_eq!(it.take_samples(), of(1, 9..10));
    assert_eq!(it.lost(), 0);
}

#[test]
fn a_writer_departs_in_its_place() {
    let mut it = Fixture::durable();
    it.begin(&[1, 2], LEFT, Some(1));
    it.deliver(data(1, 3..5));
    it.delete_writer(1);
    it.deliver(data(2, 1..2).into_iter().map(|it| (it.0, it.1, it.2, 2)));
    it.begin(&[], Departure::Failed, None);
    assert_eq!(it.matched(), [1, 2].into());
    it.transfer(1, data(1, 1..3), &[(1, 2)]);
    assert!(it.matched().is_empty());
    let shown = it.take(usize::MAX);
    let expected = [
        (1, 1, 1, true, NO_WRITERS),
        (1, 2, 1, true, NO_WRITERS),
        (1, 3, 1, true, NO_WRITERS),
        (1, 4, 1, true, NO_WRITERS),
        (1, 0, 1, false, NO_WRITERS),
        (2, 1, 2, true, NO_WRITERS),
        (2, 0, 2, false, NO_WRITERS),
    ];
    assert_eq!(shown, expected);
}

#[test]
fn two_transfers_come_one_after_the_other() {
    let mut it = Fixture::durable();
    it.begin(&[1], LEFT, Some(1));
    it.deliver(data(1, 3..5));
    it.begin(&[1, 2], LEFT, Some(2));
    it.deliver(data(2, 4..5));
    it.deliver(data(1, 5..6));
    assert_eq!(it.lasts(2), None);
    let mut early = records(data(2, 1..4));
    assert_eq!(it.offer(2, &mut early), HistoryOffer::NotYet);
    assert!(!it.port.end_history(TransferId(2), &end_of(&[])));
    it.wakes();
    it.transfer(1, data(1, 1..3), &[(1, 2)]);
    assert_eq!(it.take_samples(), of(1, 1..5));
    assert_eq!(it.wakes(), 1, "the second can begin");
    assert!(it.is_awaiting() && it.port.has_historical_data().is_none());
    assert_eq!(it.lasts(2), Some(vec![(1, 4)]));
    it.transfer(2, data(2, 1..4), &[(2, 3)]);
    assert_eq!(it.take_samples(), [of(2, 1..5), of(1, 5..6)].concat());
    assert!(!it.is_awaiting());
}

#[test]
fn disposals_are_part_of_a_history() {
    let mut it = Fixture::durable();
    it.begin(&[1, 2], LEFT, Some(1));
    let history = vec![
        (Data, 1, 1, 5),
        (Dispose, 1, 2, 5),
        (Data, 2, 1, 6),
        (Unregister, 2, 2, 6),
        (Dispose, 1, 3, 7),
        (Data, 2, 3, 7),
    ];
    it.transfer(1, history, &[(1, 3), (2, 3)]);
    let shown = it.take(usize::MAX);
    let expected = [
        (1, 1, 5, true, DISPOSED),
        (1, 2, 5, false, DISPOSED),
        (2, 1, 6, true, NO_WRITERS),
        (2, 2, 6, false, NO_WRITERS),
        (1, 3, 7, false, ALIVE),
        (2, 3, 7, true, ALIVE),
    ];
    assert_eq!(shown, expected);
}

#[test]
fn arrivals_while_another_thread_has_the_reader_keep_their_order() {
    let mut it = Fixture::durable();
    it.begin(&[1], LEFT, Some(1));
    it.deliver(data(1, 3..5));
    let arrivals = data(1, 5..8).into_iter();
    let arrivals: Vec<_> = arrivals.filter_map(|message| it.arrival(message)).collect();
    it.port.with(|_| {
        let mut batch = ArrivalBatch::new();
        arrivals.into_iter().for_each(|arrival| batch.push(arrival));
        it.port.settle(&it.epoch, &mut batch);
    });
    it.deliver(data(1, 8..9));
    assert!(it.port.end_history(TransferId(1), &end_of(&[(1, 2)])));
    assert_eq!(it.take_samples(), of(1, 3..9));
}

#[test]
fn what_waits_for_historical_data_is_told_when_it_has_come_or_will_not() {
    let mut it = Fixture::durable();
    let notifier = it.shared.notifier.clone();
    let future = WaitingFuture::new(&notifier, None);
    let wait = it.port.wait_for_history(future.marker());
    let is_told = || future.marker().take_mark();
    assert!(!is_told() && it.port.has_historical_data().is_none());
    drop(wait);
    it.begin(&[1], LEFT, Some(1));
    assert!(!is_told(), "it does not wait any more");
    let wait = it.port.wait_for_history(future.marker());
    assert!(it.port.has_historical_data().is_none());
    let end = end_of(&[]);
    assert!(it.port.end_history(TransferId(1), &end) && is_told());
    assert_eq!(it.port.has_historical_data(), Some(Ok(())));
    it.shared.group_status.close();
    it.port.group_failed();
    assert!(is_told());
    assert!(matches!(it.port.has_historical_data(), Some(Err(_))));
    drop(wait);
}

#[test]
fn records_of_writers_whose_types_are_not_known_are_rekeyed() {
    let mut it = Fixture::durable();
    it.begin(&[1], LEFT, Some(1));
    let other_hash = |writer| {
        let record = record((Data, writer, 1, 5), 1);
        let meta = RecordMeta {
            key: [9; 16],
            ..record.meta()
        };
        Record::new(&meta, record.payload())
    };
    let mut history = [other_hash(2)].into();
    assert_eq!(it.offer(1, &mut history), HistoryOffer::Taken);
    assert_eq!(it.take(1), [(2, 1, 5, true, ALIVE)]);
    let mut history = [other_hash(1)].into();
    assert_eq!(it.offer(1, &mut history), HistoryOffer::Taken);
    let query = Query {
        max: 1,
        masks: StateMasks::ANY,
        whose: Whose::Any,
    };
    let items = it.port.select(Access::Take, &query);
    assert_eq!(
        items[0].0.instance_handle.key_hash(),
        Some(KeyHash([9; 16]))
    );
    it.port.return_loan(items);
}
