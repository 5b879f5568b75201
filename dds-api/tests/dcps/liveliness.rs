//! Which writers are alive, and where in the order they cease to be.

use std::sync::mpsc;

use spindle_dds::qos::{DataReaderQos, Liveliness, LivelinessKind, PolicyId, ResourceLimits};
use spindle_dds::{
    DataReader, DataReaderListener, Duration, Error, LivelinessChangedStatus, StatusMask, WaitSet,
};

use crate::flight::State;
use crate::meeting::{
    Meeting, PATIENCE, enable, keep_all_reader, reader, reader_with, reliable_writer, state, take,
    wait_for_members, writer, writer_with,
};
use crate::membership::killed_child;

fn status(reader: &DataReader<State>) -> LivelinessChangedStatus {
    reader.liveliness_changed_status().expect("alive")
}

fn lease(lease_duration: Duration) -> Liveliness {
    Liveliness {
        lease_duration,
        ..Liveliness::default()
    }
}

#[test]
fn a_lease_that_cannot_be_kept_is_refused_with_both_numbers() {
    let meeting = Meeting::new();
    let participant = meeting
        .builder()
        .property("spindle.failure.limit_ms", "500")
        .create()
        .expect("a participant");
    let topic = participant.topic::<State>("State").create().expect("one");
    let publisher = participant.publisher().create().expect("a publisher");
    let subscriber = participant.subscriber().create().expect("a subscriber");
    let make = |liveliness: Liveliness| {
        let mut writer = reliable_writer();
        writer.liveliness = liveliness;
        let mut reader = keep_all_reader();
        reader.liveliness = liveliness;
        let mut other = topic.qos().expect("alive");
        other.liveliness = liveliness;
        let name = format!("Other{}", liveliness.lease_duration);
        [
            publisher.writer(&topic).qos(writer).create().err(),
            subscriber.reader(&topic).qos(reader).create().err(),
            participant.topic::<State>(&name).qos(other).create().err(),
        ]
    };
    for error in make(lease(Duration::from_millis(999))) {
        let error = error.expect("too short");
        assert!(matches!(error, Error::Unsupported(_)), "{error}");
        let text = error.to_string();
        assert!(
            text.contains("999ms") && text.contains("limit_ms (500)"),
            "{text}"
        );
    }
    for long in [Duration::from_secs(1), Duration::INFINITE] {
        assert_eq!(make(lease(long)), [None, None, None]);
    }
    for kind in [
        LivelinessKind::ManualByParticipant,
        LivelinessKind::ManualByTopic,
    ] {
        let manual = Liveliness {
            kind,
            ..lease(Duration::from_secs(1))
        };
        for error in make(manual) {
            let error = error.expect("not built");
            assert!(matches!(error, Error::Unsupported(_)), "{error}");
            let text = error.to_string();
            assert!(text.contains("LIVELINESS") && text.contains(&kind.to_string()));
        }
    }
}

#[test]
fn a_lease_has_to_be_offered() {
    let meeting = Meeting::new();
    let participants: [_; 2] = meeting.participants();
    let seconds = |seconds| lease(Duration::from_secs(seconds));
    let mut offers = reliable_writer();
    offers.liveliness = seconds(8);
    let writer = writer_with(&participants[0], "State", offers);
    let readers = [Some(7), Some(8), None].map(|asked| {
        let liveliness = asked.map(seconds).unwrap_or_default();
        let qos = DataReaderQos {
            liveliness,
            ..keep_all_reader()
        };
        reader_with(&participants[1], "State", qos)
    });
    enable(&participants);
    let matched = writer.publication_matched_status().expect("alive");
    assert_eq!(matched.current_count, 2);
    let refused = writer.offered_incompatible_qos_status().expect("alive");
    assert_eq!(
        (refused.total_count, refused.last_policy),
        (1, Some(PolicyId::Liveliness))
    );
    let alive = readers.each_ref().map(|reader| status(reader).alive_count);
    assert_eq!(alive, [0, 1, 1]);
}

/// Sends on what it is told.
struct Told(mpsc::Sender<LivelinessChangedStatus>);

impl DataReaderListener<State> for Told {
    fn on_liveliness_changed(&mut self, _: &DataReader<State>, status: &LivelinessChangedStatus) {
        let _ = self.0.send(*status);
    }
}

#[test]
fn a_writer_that_left_is_not_counted_and_one_that_failed_is_not_alive() {
    let meeting = Meeting::new();
    let participants: [_; 3] = meeting.participants();
    let heard = reader(&participants[0], "State");
    let listens = reader(&participants[0], "State");
    let (told, calls) = mpsc::channel();
    listens
        .set_listener(StatusMask::LIVELINESS_CHANGED, Some(Box::new(Told(told))))
        .expect("alive");
    let deleted = writer(&participants[1], "State");
    let leaves = writer(&participants[2], "State");
    enable(&participants);
    let changed = StatusMask::LIVELINESS_CHANGED;
    let condition = heard.status_condition().expect("alive");
    condition.set_enabled_statuses(changed);
    let waits = WaitSet::new();
    waits.attach(&condition);
    // What it says, and the changes that it has said by then.
    let becomes = |alive: i32, not_alive: i32| {
        let mut changes = (0, 0);
        loop {
            let status = status(&heard);
            changes.0 += status.alive_count_change;
            changes.1 += status.not_alive_count_change;
            if (status.alive_count, status.not_alive_count) == (alive, not_alive) {
                return (changes, status.last_publication_handle);
            }
            waits.wait(PATIENCE).expect("it changes");
        }
    };
    assert_eq!(becomes(2, 0).0, (2, 0));
    assert!(!heard.status_changes().expect("alive").contains(changed));
    let publisher = deleted.publisher().expect("alive");
    publisher.delete_datawriter(&deleted).expect("no loans");
    assert_eq!(becomes(1, 0), ((-1, 0), deleted.instance_handle()));
    participants[2].close().expect("it leaves");
    assert_eq!(becomes(0, 0), ((-1, 0), leaves.instance_handle()));
    let mut child = killed_child(&meeting);
    let ((came, lost), theirs) = becomes(1, 0);
    assert_eq!((came, lost), (1, 0));
    let matched = heard.matched_publications().expect("enabled");
    assert_eq!(matched, [theirs]);
    child.kill().expect("it lives");
    child.wait().expect("it ended");
    assert_eq!(becomes(0, 1), ((-1, 1), theirs));
    let matched = heard.subscription_matched_status().expect("alive");
    assert_eq!((matched.total_count, matched.current_count), (3, 0));
    // It is not matched any more: once the status has told of it, it is not counted.
    let _next = writer(&participants[0], "State");
    assert_eq!(becomes(1, 0).0, (1, -1));
    let (mut sum, mut crashes) = ((0, 0), 0);
    while (sum.0, crashes) != (1, 1) {
        let status = calls.recv().expect("the listener is told");
        sum.0 += status.alive_count_change;
        sum.1 += status.not_alive_count_change;
        crashes += i32::from(status.not_alive_count_change > 0);
        assert_eq!((status.alive_count, status.not_alive_count), sum);
    }
}

/// Position and data of a sample, and how many writers are alive, and not, behind it.
type Handed = (u64, Option<(u32, u32)>, (i32, i32));

/// A reader with room for one sample is handed one after the other, with the news of
/// writers between them: it sees between which two samples a writer ceases to be alive.
#[test]
fn a_death_stands_at_one_place_of_the_order() {
    const SAMPLES: u32 = 100;
    let meeting = Meeting::new();
    let participants: [_; 3] = meeting.participants();
    let written = writer(&participants[0], "State");
    let narrow = DataReaderQos {
        resource_limits: ResourceLimits {
            max_samples: 1.into(),
            ..ResourceLimits::default()
        },
        ..keep_all_reader()
    };
    let narrow = participants
        .each_ref()
        .map(|it| reader_with(it, "State", narrow.clone()));
    let witnesses = participants.each_ref().map(|it| reader(it, "State"));
    enable(&participants);
    let mut child = killed_child(&meeting);
    wait_for_members(&participants, 4);
    let of_child = |reader| {
        let icao = take(reader, 1, |sample| sample.data().map(|it: State| it.icao));
        icao.contains(&Ok(9))
    };
    for number in 0..SAMPLES {
        written.write(&state(1, number)).expect("sent");
    }
    while !of_child(&witnesses[0]) {}
    child.kill().expect("it lives");
    child.wait().expect("it ended");
    wait_for_members(&participants, 3);
    for number in SAMPLES..=2 * SAMPLES {
        written.write(&state(1, number)).expect("sent");
    }
    // Once they have the last, all has arrived.
    for witness in &witnesses {
        let is_last = |sample: spindle_dds::Sample<'_, State>| {
            sample
                .data()
                .is_ok_and(|it| it.number == 2 * SAMPLES && it.icao == 1)
        };
        while take(witness, 1, is_last) != [true] {}
    }
    let orders = narrow.each_ref().map(|reader| {
        let mut all: Vec<Handed> = Vec::new();
        while all.last().is_none_or(|it| it.1 != Some((1, 2 * SAMPLES))) {
            let taken = take(reader, 1, |sample| {
                let data = sample.data().ok().map(|it| (it.icao, it.number));
                (sample.info().position(), data)
            });
            let status = status(reader);
            let counts = (status.alive_count, status.not_alive_count);
            all.extend(
                taken
                    .iter()
                    .map(|(position, data)| (*position, *data, counts)),
            );
        }
        all
    });
    assert!(orders.iter().all(|order| *order == orders[0]));
    let order = &orders[0];
    let gone = order.iter().position(|(_, data, _)| data.is_none());
    let gone = gone.expect("its instance has lost its writer");
    // The news is behind the last sample before it, which comes when the one before
    // that is taken.
    for (at, (_, _, (alive, not_alive))) in order.iter().enumerate() {
        // The first status that tells of a death is the last to count it.
        let dead = i32::from(at + 2 == gone);
        assert_eq!(*not_alive, dead, "{at}, {gone}");
        if at + 2 >= gone {
            assert_eq!(*alive, 1, "{at}, {gone}");
        }
    }
}
