use super::*;
use crate::flight::report::AircraftRow;

fn entry(feed: u16, number: u64, position: u64) -> Entry {
    Entry {
        topic: Topic::States,
        feed,
        aircraft: position as u32 % 3,
        number,
        position,
        digest: position * 31,
        sent_at_ns: position as i64,
        taken_at_ns: position * 1_000_000,
    }
}

/// One alert, then states of two feeds in turn.
fn journal(samples: u64) -> Vec<Entry> {
    let states = (0..samples).map(|at| entry((at % 2) as u16, at / 2 + 1, at + 10));
    let alert = Entry {
        topic: Topic::Alerts,
        ..entry(0, 1, 1)
    };
    std::iter::once(alert).chain(states).collect()
}

/// Feed 1 was killed, display 1 joined late, display 2 was killed too.
fn evidence() -> Evidence {
    Evidence {
        journals: vec![
            (Presence::Stayed, journal(10)),
            (Presence::Late, journal(10)[5..].to_vec()),
            (Presence::Gone, journal(6)),
        ],
        fed: BTreeMap::from([(
            0,
            FeedReport {
                published: 6,
                alerts: 1,
                ..FeedReport::default()
            },
        )]),
        killed_feed: Some(1),
        ..Evidence::default()
    }
}

fn check(what: &str, spoil: impl FnOnce(&mut Evidence), expected: bool) {
    let mut evidence = evidence();
    spoil(&mut evidence);
    let verdict = Verdict::of(what.to_owned(), &evidence);
    assert_eq!(verdict.held, expected, "{verdict:?}");
}

#[test]
fn each_fault_of_a_journal_is_found() {
    check("nothing is wrong", |_| {}, true);
    check(
        "a late display lost one",
        |it| it.journals[1].1.retain(|it| it.position != 16),
        false,
    );
    check(
        "a late display lost its last ones",
        |it| it.journals[1].1.truncate(5),
        false,
    );
    check(
        "a late display has no states",
        |it| it.journals[1].1.clear(),
        false,
    );
    check(
        "all lost one",
        |it| {
            it.journals
                .iter_mut()
                .for_each(|it| it.1.retain(|it| it.position != 14));
        },
        false,
    );
    check(
        "twice",
        |it| {
            let again = it.journals[0].1[3];
            it.journals[0].1.insert(4, again);
        },
        false,
    );
    let late_alert = |it: &mut Evidence, displays: &[usize], sent_at_ns| {
        let alert = Entry {
            topic: Topic::Alerts,
            sent_at_ns,
            ..entry(0, 2, 30)
        };
        displays
            .iter()
            .for_each(|at| it.journals[*at].1.push(alert));
        it.fed.entry(0).and_modify(|fed| fed.published += 1);
        it.fed.entry(0).and_modify(|fed| fed.alerts += 1);
    };
    // Display 1 took its first state of feed 0 at 14 ms.
    let (before, after) = (13_999_999, 14_000_001);
    check("a late alert", |it| late_alert(it, &[0, 1], after), true);
    check("a late alert lost", |it| late_alert(it, &[0], after), false);
    check("an alert before", |it| late_alert(it, &[0], before), true);
    check("another order", |it| it.journals[0].1.swap(4, 5), false);
    check("other bytes", |it| it.journals[2].1[4].digest += 1, false);
    check(
        "the killed display has more",
        |it| {
            it.journals[2].1 = journal(11);
        },
        false,
    );
    check(
        "not all of a feed that was not killed",
        |it| {
            it.fed.entry(0).and_modify(|fed| fed.published += 1);
        },
        false,
    );
    check(
        "another digest",
        |it| {
            it.shown = vec![DisplayReport::default()];
        },
        false,
    );
    check(
        "a stopped feed never left",
        |it| it.stopped_feed = Some(0),
        false,
    );
    let returned = |it: &mut Evidence| {
        it.fed.entry(0).and_modify(|fed| fed.returns = 1);
    };
    check("a healthy feed was expelled", returned, false);
    check(
        "a stopped feed came back",
        |it| {
            it.stopped_feed = Some(0);
            returned(it);
        },
        true,
    );
}

fn rows(aircraft: std::ops::Range<u32>) -> DisplayReport {
    let row = |icao| AircraftRow {
        icao,
        callsign: String::new(),
        altitude_ft: Some(icao as i32 * 100),
        ground_speed_kt: None,
        position_deg: None,
        on_ground: false,
        messages: 7,
    };
    DisplayReport {
        aircraft: aircraft.map(row).collect(),
        fifo_digests: BTreeMap::from([(0, String::new())]),
        ..DisplayReport::default()
    }
}

#[test]
fn a_display_that_joined_has_what_is_kept() {
    let kept = |what: &str, kept: Kept, from: &[usize], late: DisplayReport, expected: bool| {
        let of_journal = |it: &mut Evidence| {
            it.kept = Some(kept);
            it.shown = vec![rows(0..3)];
            it.late = Some(late);
            it.journals.truncate(2);
            it.journals[1].1 = from.iter().map(|at| journal(10)[*at]).collect();
        };
        check(what, of_journal, expected);
    };
    let last = Kept::Last {
        depth: 1,
        by_feed: false,
    };
    let all: Vec<usize> = (0..11).collect();
    kept("all", Kept::All, &all, rows(0..3), true);
    kept("all but one", Kept::All, &all[1..], rows(0..3), false);
    kept("a row is missing", Kept::All, &all, rows(0..2), false);
    let mut other = rows(0..3);
    other.aircraft[1].altitude_ft = None;
    kept("another row", Kept::All, &all, other, false);
    let lost = DisplayReport {
        lost: [1, 0],
        ..rows(0..3)
    };
    kept("one is SAMPLE_LOST", Kept::All, &all, lost, false);
    // Of the states the first three are replaced; the alert stands first.
    let table = [0, 4, 5, 6, 7, 8, 9, 10];
    kept("the table", last, &table, rows(0..3), true);
    kept("a part of it", last, &[0, 9, 10], rows(0..3), false);
    kept("nothing", Kept::Nothing, &all[5..], rows(1..2), true);
    kept(
        "nothing, a row too many",
        Kept::Nothing,
        &all[5..],
        rows(1..4),
        false,
    );
}

#[test]
fn only_gaps_after_the_fault_are_outages() {
    let mut journal = journal(10);
    journal
        .iter_mut()
        .skip(4)
        .for_each(|it| it.taken_at_ns += 3_000_000);
    assert_eq!(outage_ms(&journal, 9_000_000), 9.0);
    assert_eq!(outage_ms(&journal, 11_000_000), 4.0);
    assert_eq!(outage_ms(&journal, 17_000_000), 1.0);
}
