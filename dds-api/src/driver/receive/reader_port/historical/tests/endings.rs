//! Writers, groups and readers that end, and come back.

use super::*;

#[test]
fn nothing_comes_twice_after_a_return() {
    let mut it = Fixture::durable();
    it.begin(&[1], LEFT, Some(1));
    it.transfer(1, data(1, 1..4), &[(1, 3)]);
    it.deliver(data(1, 4..6));
    it.lose_group();
    assert!(it.port.has_historical_data().is_none(), "it is in no view");
    it.begin(&[1], LEFT, Some(2));
    it.deliver(data(1, 9..10));
    assert_eq!(it.lasts(2), Some(vec![(1, 5)]));
    // Also if the donor did not look at what was asked for.
    it.transfer(2, data(1, 2..9), &[(1, 8)]);
    let shown = it.take(usize::MAX).into_iter();
    let shown: Vec<_> = shown.map(|it| (it.1, it.3)).collect();
    let before = (1..6).map(|it| (it, true)).chain([(0, false)]);
    assert_eq!(
        shown,
        Vec::from_iter(before.chain((6..10).map(|it| (it, true))))
    );
    assert_eq!(it.lost(), 0);
}

#[test]
fn writers_that_are_gone_leave_their_samples_without_writers() {
    let mut it = Fixture::durable();
    it.begin(&[1], LEFT, Some(1));
    let of_two = [(Data, 2, 1, 5), (Data, 2, 2, 6), (Data, 1, 1, 6)];
    it.transfer(1, of_two.to_vec(), &[(1, 1), (2, 2)]);
    assert_eq!(it.matched(), [1].into(), "it is not matched");
    let shown = it.take(usize::MAX);
    let expected = [
        (2, 1, 5, true, NO_WRITERS),
        (2, 2, 6, true, ALIVE),
        (1, 1, 6, true, ALIVE),
        (2, 0, 5, false, NO_WRITERS),
    ];
    assert_eq!(shown, expected);
    // The next transfer does not bring them again; nor those of one that was deleted here.
    it.deliver([(Data, 1, 2, 6)]);
    it.delete_writer(1);
    it.begin(&[3], LEFT, Some(2));
    assert_eq!(it.lasts(2), Some(vec![(1, 2), (2, 2)]));
    let all = [
        (Data, 2, 2, 6),
        (Data, 1, 1, 6),
        (Data, 1, 2, 6),
        (Data, 3, 1, 7),
    ];
    it.transfer(2, all.to_vec(), &[(1, 2), (2, 2), (3, 1)]);
    assert_eq!(it.take_samples(), [(1, 2), (3, 1)]);
    // One that comes back goes on.
    it.begin(&[2, 3], LEFT, None);
    it.deliver([(Data, 2, 4, 5)]);
    assert_eq!(it.lost(), 1);
}

#[test]
fn where_the_group_is_lost_a_prefix_is_shown_and_the_rest_comes_again() {
    for is_bounded in [false, true] {
        let mut it = Fixture::new(Settings {
            aside_bytes: if is_bounded { 400 } else { 1 << 20 },
            ..Settings::default()
        });
        it.begin(&[1], LEFT, None);
        it.deliver(data(1, 1..3));
        it.begin(&[1, 2], LEFT, Some(1));
        assert_eq!(it.take_samples(), of(1, 1..3));
        it.deliver(data(2, 9..12));
        it.deliver(data(1, 3..5));
        let mut history = records(data(2, 1..4));
        assert_eq!(it.offer(1, &mut history), HistoryOffer::Taken);
        // A third writer is new, and known from its beginning.
        it.begin(&[1, 2, 3], LEFT, None);
        it.deliver(data(3, 1..3));
        it.begin(&[1, 2, 3, 4], LEFT, Some(2));
        it.deliver(data(4, 4..6));
        it.wakes();
        it.lose_group();
        assert!(it.wakes() > 0, "what brings history is to look");
        assert_eq!(it.offer(1, &mut history), HistoryOffer::Closed);
        assert_eq!(it.offer(2, &mut history), HistoryOffer::Closed);
        let prefixes = [of(2, 1..4), of(1, 3..5), of(3, 1..3)].concat();
        assert_eq!(it.take_samples(), prefixes, "{is_bounded}");
        assert!(it.matched().is_empty() && !it.is_awaiting());
        it.begin(&[1, 2, 3, 4], LEFT, Some(3));
        it.deliver(data(2, 12..13));
        assert_eq!(it.lasts(3), Some(vec![(1, 4), (2, 3), (3, 2)]));
        it.transfer(
            3,
            [data(4, 1..6), data(2, 4..12)].concat(),
            &[(4, 5), (2, 11)],
        );
        assert_eq!(it.take_samples(), [of(4, 1..6), of(2, 4..13)].concat());
        assert_eq!(it.lost(), 0);
    }
}

#[test]
fn a_reader_that_is_behind_gives_up_transfers_of_a_group_that_is_lost() {
    let mut it = Fixture::new(Settings {
        limits: max_samples(2),
        ..Settings::default()
    });
    it.begin(&[1], LEFT, None);
    it.deliver(data(1, 1..6));
    it.begin(&[1, 2], LEFT, Some(1));
    it.deliver(data(2, 4..6));
    it.lose_group();
    it.begin(&[1, 2], LEFT, Some(2));
    it.deliver(data(2, 8..9));
    assert_eq!(it.lasts(2), None);
    let mut shown = it.take_samples();
    shown.extend(it.take_samples());
    shown.extend(it.take_samples());
    assert_eq!(shown, of(1, 1..6));
    assert_eq!(
        it.offer(1, &mut records(data(2, 1..4))),
        HistoryOffer::Closed
    );
    assert_eq!(it.lasts(2), Some(vec![(1, 5)]));
    let mut history = records(data(2, 1..8));
    while it.offer(2, &mut history) == HistoryOffer::Full {
        shown.extend(it.take_samples());
    }
    assert!(it.port.end_history(TransferId(2), &end_of(&[(2, 7)])));
    shown.extend(it.take_samples());
    shown.extend(it.take_samples());
    assert_eq!(shown, [of(1, 1..6), of(2, 1..9)].concat());
}

#[test]
fn a_source_that_is_lost_is_told_and_what_came_meanwhile_is_shown() {
    let mut it = Fixture::durable();
    it.begin(&[1], LEFT, Some(1));
    it.deliver(data(1, 7..9));
    assert_eq!(
        it.offer(1, &mut records(data(1, 1..3))),
        HistoryOffer::Taken
    );
    it.begin(&[], Departure::Failed, None);
    let end = HistoryEnd {
        lasts: Vec::new(),
        lost_sources: 1,
    };
    assert!(it.port.end_history(TransferId(1), &end));
    assert_eq!(it.take_samples(), of(1, [1, 2, 7, 8]));
    assert_eq!(it.port.historical_data().lost_sources, 1);
    it.begin(&[1], LEFT, Some(2));
    assert_eq!(it.port.historical_data().lost_sources, 0);
    assert_eq!(it.lasts(2), Some(vec![(1, 8)]));
}

#[test]
fn a_reader_that_is_deleted_takes_nothing_more() {
    let mut it = Fixture::durable();
    it.begin(&[1], LEFT, Some(1));
    it.deliver(data(1, 3..5));
    it.wakes();
    it.port.close();
    assert_eq!(it.wakes(), 1);
    assert_eq!(it.lasts(1), Some(Vec::new()));
    assert_eq!(
        it.offer(1, &mut records(data(1, 1..3))),
        HistoryOffer::Closed
    );
    assert!(!it.port.end_history(TransferId(1), &end_of(&[])));
    let over = it.port.has_historical_data();
    assert!(
        matches!(over, Some(Err(Error::AlreadyDeleted(_)))),
        "{over:?}"
    );
    it.deliver(data(1, 5..6));
    assert!(!it.is_awaiting() && it.take_samples().is_empty());
}
