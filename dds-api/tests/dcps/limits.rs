//! RESOURCE_LIMITS of writers.

use std::thread;

use spindle_dds::qos::{
    DataReaderQos, DataWriterQos, History, Length, Reliability, ResourceLimits,
};
use spindle_dds::{
    DataReader, DataWriter, DomainParticipant, Duration, Result, ReturnCode, testing,
};

use crate::flight::State;
use crate::meeting::{
    Meeting, PATIENCE, enable, keep_all_reader, reader_with, state, take, until, wait_until,
    writer_with,
};

const NONE: Length = Length::Unlimited;

/// A group of a writer with limits, which waits so long, and a reader that keeps samples
/// in the ring until it has taken them and given them back.
struct Pair {
    participants: [DomainParticipant; 2],
    _meeting: Meeting,
    writer: DataWriter<State>,
    reader: DataReader<State>,
}

impl Pair {
    fn new(reliability: Reliability, limits: [Length; 3]) -> Self {
        let [max_samples, max_instances, max_samples_per_instance] = limits;
        let meeting = Meeting::new();
        let participants: [_; 2] = meeting.participants();
        let qos = DataWriterQos {
            reliability,
            history: History::keep_all(),
            resource_limits: ResourceLimits {
                max_samples,
                max_instances,
                max_samples_per_instance,
            },
            ..DataWriterQos::default()
        };
        let writer = writer_with(&participants[0], "State", qos);
        let mut qos = DataReaderQos {
            reliability,
            ..keep_all_reader()
        };
        qos.property.set("spindle.reader.storage", "ring");
        let reader = reader_with(&participants[1], "State", qos);
        enable(&participants);
        Self {
            participants,
            _meeting: meeting,
            writer,
            reader,
        }
    }

    fn reliable(patience: Duration, limits: [Length; 3]) -> Self {
        Self::new(Reliability::reliable(patience), limits)
    }

    /// Writes, as soon as what was given back has been heard of.
    fn write(&self, icao: u32, number: u32) {
        once_there_is_room(|| self.writer.write(&state(icao, number)));
    }

    fn publish(&self, icao: u32) -> Result<spindle_dds::Receipt> {
        let mut loan = self.writer.loan()?;
        loan.set_icao(icao);
        loan.callsign("A").expect("short").publish()
    }

    fn take(&self, count: usize) {
        take(&self.reader, count, |_| ());
    }
}

fn check<T: std::fmt::Debug>(result: Result<T>, code: ReturnCode, says: &str) {
    assert_eq!(ReturnCode::of(&result), code, "{result:?}");
    let text = result.expect_err("an error").to_string();
    assert!(text.contains(says), "{text:?} says nothing of {says:?}");
}

/// Repeats a write until it does not time out.
fn once_there_is_room(mut write: impl FnMut() -> Result<spindle_dds::Receipt>) {
    until("there is room", || match write() {
        Err(error) if error.is_timeout() => false,
        result => {
            result.expect("sent");
            true
        }
    });
}

/// How long writers wait that are to find no room. No limit on anything that succeeds.
const SHORT: Duration = Duration::from_millis(5);

#[test]
fn a_writer_waits_for_one_of_its_samples_to_be_released() {
    let pair = Pair::reliable(SHORT, [4.into(), NONE, NONE]);
    let full = |result| check(result, ReturnCode::Timeout, "max_samples 4");
    (0..4).for_each(|number| pair.write(number, number));
    full(pair.writer.write(&state(1, 4)));
    full(pair.publish(1));
    full(pair.writer.dispose(&state(1, 0)));
    pair.take(1);
    pair.write(1, 5);
    full(pair.writer.write(&state(1, 6)));
    pair.take(4);
    // Loans count like samples.
    let mut loans: Vec<_> = (0..4).map(|_| pair.writer.loan().expect("room")).collect();
    full(pair.writer.write(&state(1, 7)));
    loans.pop();
    pair.write(1, 8);
}

#[test]
fn a_waiting_writer_goes_on_when_a_sample_is_released_or_a_loan_dropped() {
    let pair = Pair::reliable(PATIENCE, [2.into(), NONE, NONE]);
    thread::scope(|scope| {
        scope.spawn(|| (0..500).for_each(|number| pair.write(1, number)));
        let numbers = take(&pair.reader, 500, |sample| {
            sample.data().expect("data").number
        });
        assert_eq!(numbers, (0..500).collect::<Vec<_>>());
    });
    // The oldest one stays out: nothing comes back to the ring.
    let older = pair.writer.loan().expect("room");
    let newer = pair.writer.loan().expect("room");
    let waits_until = |change: &mut dyn FnMut()| {
        thread::scope(|scope| {
            let waiting = scope.spawn(|| pair.write(2, 0));
            until("it waits", || {
                testing::waiting_writers(&pair.participants[0]) == Ok(1)
            });
            assert!(!waiting.is_finished(), "there are two");
            change();
        });
    };
    let mut newer = Some(newer);
    waits_until(&mut || drop(newer.take()));
    waits_until(&mut || pair.take(1));
    waits_until(&mut || pair.take(1));
    drop(older);
}

#[test]
fn each_instance_has_its_own_limit() {
    let pair = Pair::reliable(SHORT, [NONE, NONE, 2.into()]);
    let full = |result| check(result, ReturnCode::Timeout, "max_samples_per_instance 2");
    (0..2).for_each(|number| pair.write(1, number));
    full(pair.writer.write(&state(1, 2)));
    full(pair.publish(1));
    full(pair.writer.dispose(&state(1, 0)));
    (0..2).for_each(|number| pair.write(2, number));
    pair.publish(3).expect("another instance");
    pair.writer.dispose(&state(3, 0)).expect("its second");
    full(pair.writer.write(&state(3, 0)));
    let unregistered = pair.writer.unregister_instance(&state(1, 0));
    unregistered.expect("limits do not hold it up");
    pair.take(2);
    pair.write(1, 3);
    once_there_is_room(|| pair.publish(1));
}

#[test]
fn one_instance_too_many_is_an_error_at_once() {
    let pair = Pair::reliable(Duration::INFINITE, [NONE, 2.into(), NONE]);
    let full = |result| check(result, ReturnCode::OutOfResources, "max_instances 2");
    let handle = pair.writer.register_instance(&state(1, 0)).expect("one");
    pair.write(2, 0);
    full(pair.writer.write(&state(3, 0)));
    full(pair.publish(3));
    full(pair.writer.dispose(&state(3, 0)));
    check(
        pair.writer.register_instance(&state(3, 0)),
        ReturnCode::OutOfResources,
        "max_instances 2",
    );
    assert_eq!(pair.writer.register_instance(&state(1, 0)), Ok(handle));
    pair.publish(1).expect("it is registered");
    pair.writer.dispose(&state(2, 0)).expect("it is known");
    full(pair.publish(3));
    pair.writer.unregister_instance(&state(2, 0)).expect("sent");
    pair.publish(3).expect("one was unregistered");
    full(pair.publish(2));
}

#[test]
fn a_best_effort_writer_drops_and_its_readers_know() {
    let pair = Pair::new(Reliability::best_effort(), [3.into(), 3.into(), 2.into()]);
    let dropped = |result: Result<spindle_dds::Receipt>| result.expect("no error").was_dropped();
    assert!(!dropped(pair.writer.write(&state(1, 0))));
    assert!(!dropped(pair.publish(1)));
    assert!(dropped(pair.writer.write(&state(1, 1))), "the instance");
    assert!(dropped(pair.publish(1)), "the instance");
    assert!(!dropped(pair.writer.write(&state(2, 0))));
    assert!(dropped(pair.writer.write(&state(3, 0))), "samples");
    assert!(dropped(pair.publish(3)), "samples");
    assert_eq!(pair.writer.dropped_samples(), 4);
    pair.take(3);
    let lost = pair.reader.sample_lost_status().expect("alive");
    assert_eq!(lost.total_count, 2, "nothing came after the others yet");
    while dropped(pair.writer.write(&state(2, 1))) {}
    let sequences = take(&pair.reader, 1, |sample| sample.info().writer_sequence());
    let dropped = pair.writer.dropped_samples();
    assert_eq!(sequences, [4 + dropped]);
    let condition = pair.reader.status_condition().expect("alive");
    wait_until(condition, || {
        let lost = pair.reader.sample_lost_status().expect("alive");
        u64::try_from(lost.total_count) == Ok(dropped)
    });
    pair.writer.register_instance(&state(3, 0)).expect("three");
    check(
        pair.writer.write(&state(4, 0)),
        ReturnCode::OutOfResources,
        "max_instances 3",
    );
}
