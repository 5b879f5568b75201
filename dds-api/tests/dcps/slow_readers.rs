//! RELIABLE writers whose readers are slow, and whose group is changing.

use spindle_dds::qos::{DataReaderQos, DataWriterQos, History, Reliability, ResourceLimits};
use spindle_dds::{
    DataReader, DataWriter, DomainParticipant, Duration, Error, InstanceState, Sample, testing,
};

use crate::flight::State;
use crate::meeting::{
    Meeting, PATIENCE, enable, keep_all_reader, reader, reader_with, state, take, until,
    writer_with,
};

/// A writer and a reader that keeps samples in the ring until it has taken them and given them back.
struct Pair {
    participants: [DomainParticipant; 2],
    writer: DataWriter<State>,
    reader: DataReader<State>,
    _meeting: Meeting,
}

impl Pair {
    fn new(history: History, change: impl FnOnce(&mut DataWriterQos)) -> Self {
        let meeting = Meeting::new();
        let participants: [_; 2] = meeting.participants();
        let mut qos = DataWriterQos {
            reliability: Reliability::reliable(Duration::from_millis(5)),
            history,
            ..DataWriterQos::default()
        };
        change(&mut qos);
        let writer = writer_with(&participants[0], "State", qos);
        let mut qos = keep_all_reader();
        qos.property.set("spindle.reader.storage", "ring");
        let reader = reader_with(&participants[1], "State", qos);
        enable(&participants);
        let pair = Self {
            participants,
            writer,
            reader,
            _meeting: meeting,
        };
        // From now on the group changes no more.
        pair.write(u32::MAX, [0]);
        pair.take_until(0);
        pair
    }

    /// Four samples of an instance may be in flight.
    fn limited(history: History) -> Self {
        Self::new(history, |qos| {
            qos.resource_limits = ResourceLimits {
                max_samples_per_instance: 4.into(),
                ..ResourceLimits::default()
            };
        })
    }

    fn write(&self, icao: u32, numbers: impl IntoIterator<Item = u32>) {
        for number in numbers {
            let written = self.writer.write(&state(icao, number));
            written.expect("it does not wait");
        }
    }

    /// Takes all, until the last sample has this number. Returns all numbers.
    fn take_until(&self, last: u32) -> Vec<u32> {
        let mut numbers = Vec::new();
        while numbers.last() != Some(&last) {
            numbers.extend(take(&self.reader, 1, number));
        }
        numbers
    }

    fn waits(&self) -> u64 {
        testing::waits_for_room(&self.participants[0]).expect("alive")
    }
}

fn number(sample: Sample<'_, State>) -> u32 {
    sample.data().expect("data").number
}

/// The next numbers, without what tells of states.
fn take_data(reader: &DataReader<State>, count: usize) -> Vec<u32> {
    let mut numbers = Vec::new();
    while numbers.len() < count {
        let next = take(reader, 1, |it| it.info().valid_data.then(|| number(it)));
        numbers.extend(next.into_iter().flatten());
    }
    numbers
}

#[test]
fn a_writer_that_keeps_the_last_replaces_the_oldest_that_is_not_sent() {
    let pair = Pair::limited(History::keep_last(2));
    pair.write(1, 0..20);
    assert_eq!(pair.waits(), 0);
    assert_eq!(pair.writer.dropped_samples(), 14);
    // Four are in flight, two wait.
    assert_eq!(pair.take_until(19), [0, 1, 2, 3, 18, 19]);
    let lost = pair.reader.sample_lost_status().expect("alive");
    assert_eq!(lost.total_count, 14, "it is told of the gap");
    pair.write(1, [20]);
    assert_eq!(pair.take_until(20), [20]);
}

#[test]
fn other_instances_are_not_replaced_and_come_in_the_order_of_writing() {
    let pair = Pair::limited(History::keep_last(1));
    pair.write(1, 0..5);
    pair.write(2, 5..6);
    pair.write(1, 6..7);
    assert_eq!(pair.take_until(6), [0, 1, 2, 3, 5, 6]);
}

#[test]
fn an_instance_has_the_state_that_was_written_last() {
    let pair = Pair::limited(History::keep_last(1));
    pair.write(1, 0..5);
    pair.writer.dispose(&state(1, 0)).expect("it does not wait");
    pair.write(1, [5, 6]);
    pair.write(2, [7]);
    pair.writer
        .unregister_instance(&state(2, 0))
        .expect("the same");
    let mut states = Vec::new();
    until("all come", || {
        if let Ok(samples) = pair.reader.take(100) {
            let each = samples.iter().map(|sample| {
                let data = sample.info().valid_data.then(|| number(sample));
                (data, sample.info().instance_state)
            });
            states.extend(each);
        }
        states.len() >= 8
    });
    let data: Vec<u32> = states.iter().filter_map(|(data, _)| *data).collect();
    assert_eq!(data, [0, 1, 2, 3, 6, 7], "4 and 5 are replaced");
    let other = states.iter().filter(|(data, _)| data.is_none());
    let other: Vec<_> = other.map(|(_, state)| *state).collect();
    assert_eq!(
        other.last(),
        Some(&InstanceState::NotAliveDisposed),
        "autodispose"
    );
    assert_eq!(other.len(), 2, "the disposal of 1 came, too");
}

#[test]
fn waiting_for_acknowledgments_includes_what_waits() {
    let pair = Pair::limited(History::keep_last(1));
    pair.write(1, 0..5);
    let receipt = pair.writer.write(&state(1, 5)).expect("it does not wait");
    assert!(receipt.had_to_wait() && !receipt.was_dropped());
    assert_eq!(receipt.message_index(), None);
    let short = Duration::from_millis(1);
    let waits: [&dyn Fn() -> spindle_dds::Result<()>; 2] =
        [&|| pair.writer.wait_for_acknowledgments(short), &|| {
            pair.writer.wait_for(&receipt, short)
        }];
    for wait in waits {
        // At first the samples before it have not been received.
        until("the reason is that none is taken", || {
            let Err(Error::Timeout(text)) = wait() else {
                panic!("what waits is not sent");
            };
            let parts = ["1 samples wait", "this process", "holds loans"];
            parts.iter().all(|part| text.contains(part))
        });
    }
    pair.take_until(5);
    pair.writer
        .wait_for(&receipt, PATIENCE)
        .expect("it is sent");
    let acknowledged = pair.writer.wait_for_acknowledgments(PATIENCE);
    acknowledged.expect("all is sent");
}

#[test]
fn a_full_ring_replaces_too_and_keep_all_tells_who_is_slow() {
    let small = |qos: &mut DataWriterQos| {
        qos.property.set("spindle.ring.messages", "16");
        qos.property.set("spindle.ring.bytes", "4096");
    };
    let pair = Pair::new(History::keep_last(3), small);
    pair.write(1, 0..500);
    assert_eq!(pair.waits(), 0);
    let numbers = pair.take_until(499);
    assert_eq!(numbers[numbers.len() - 3..], [497, 498, 499]);
    let gaps = numbers.windows(2).filter(|two| two[1] != two[0] + 1);
    // More than one where the reader's participant finds the time to copy samples out meanwhile.
    assert!(gaps.count() >= 1, "{numbers:?}");
    let pair = Pair::new(History::keep_all(), small);
    let error = loop {
        if let Err(error) = pair.writer.write(&state(1, 1)) {
            break error;
        }
    };
    let text = error.to_string();
    assert!(
        error.is_timeout() && text.contains("this process"),
        "{text}"
    );
}

#[test]
fn loans_of_the_writer_are_named_as_the_reason() {
    let pair = Pair::new(History::keep_all(), |qos| {
        qos.property.set("spindle.ring.messages", "4");
    });
    let loans: Vec<_> = std::iter::from_fn(|| pair.writer.loan().ok()).collect();
    let error = pair.writer.write(&state(1, 1)).expect_err("no room");
    let text = error.to_string();
    let count = format!("{} loans", loans.len());
    for part in ["loans of this participant", &count] {
        assert!(text.contains(part), "{text:?} says nothing of {part:?}");
    }
    drop(loans);
    pair.writer
        .write(&state(1, 1))
        .expect("there is room again");
}

#[test]
fn a_loan_that_finds_no_room_waits_like_a_sample() {
    let pair = Pair::new(History::keep_last(1), |qos| {
        qos.property.set("spindle.ring.messages", "4");
    });
    let mut held = Vec::new();
    let mut publish = |number| {
        let mut loan = pair.writer.loan().expect("private memory, if need be");
        loan.set_icao(1).set_number(number);
        let receipt = loan.callsign("").expect("short").publish();
        held.push(pair.writer.loan().expect("the same"));
        receipt.expect("it does not wait").had_to_wait()
    };
    // Those that are held fill the ring by then.
    let mut had_to_wait = 0;
    let mut last = 0;
    while had_to_wait < 10 {
        last += 1;
        had_to_wait = if publish(last) { had_to_wait + 1 } else { 0 };
    }
    drop(held);
    let numbers = pair.take_until(last);
    assert!(
        numbers.is_sorted() && !numbers.contains(&(last - 1)),
        "{numbers:?}"
    );
}

#[test]
fn a_loan_from_before_is_published_behind_what_waits() {
    let pair = Pair::limited(History::keep_last(1));
    pair.write(1, 0..4);
    let mut loan = pair.writer.loan().expect("room in the ring");
    pair.write(1, 4..5);
    loan.set_icao(2).set_number(5);
    loan.callsign("").expect("short").publish().expect("kept");
    assert_eq!(pair.take_until(5), [0, 1, 2, 3, 4, 5]);
}

/// Writers do not wait for the group, not even KEEP_ALL ones, and nothing is lost.
#[test]
fn changes_of_the_group_hold_up_no_writer() {
    let meeting = Meeting::new();
    let participants: [_; 2] = meeting.participants();
    let heard = reader(&participants[1], "State");
    enable(&participants);
    for history in [History::keep_all(), History::keep_last(1)] {
        let qos = DataWriterQos {
            history,
            reliability: Reliability::reliable(Duration::ZERO),
            ..DataWriterQos::default()
        };
        let written = writer_with(&participants[0], "State", qos);
        // Its first sample is older than the view that has it.
        for number in 0..100 {
            written.write(&state(1, number)).expect("it is kept");
        }
        let mut come = Vec::new();
        for round in 1..20 {
            let _one_more = writer_with(&participants[0], "State", DataWriterQos::default());
            for number in round * 100..round * 100 + 100 {
                written.write(&state(1, number)).expect("it is kept");
            }
            come.extend(take_data(&heard, 100));
        }
        come.extend(take_data(&heard, 100));
        assert_eq!(come, (0..2_000).collect::<Vec<_>>());
        let publisher = written.publisher().expect("alive");
        publisher.delete_datawriter(&written).expect("alive");
    }
    let waits = testing::waits_for_room(&participants[0]).expect("alive");
    assert_eq!(waits, 0);
}

/// It gives back what its own depth has replaced, without a `take`.
#[test]
fn a_reader_that_keeps_the_last_holds_back_no_writer() {
    let meeting = Meeting::new();
    let participants: [_; 2] = meeting.participants();
    let mut qos = DataWriterQos {
        reliability: Reliability::reliable(PATIENCE),
        history: History::keep_all(),
        ..DataWriterQos::default()
    };
    qos.property.set("spindle.ring.messages", "16");
    let written = writer_with(&participants[0], "State", qos);
    let readers = ["copy", "ring"].map(|storage| {
        let mut qos = DataReaderQos {
            history: History::keep_last(2),
            ..keep_all_reader()
        };
        qos.property.set("spindle.reader.storage", storage);
        reader_with(&participants[1], "State", qos)
    });
    enable(&participants);
    for number in 0..5_000 {
        written.write(&state(1, number)).expect("there is room");
    }
    let acknowledged = written.wait_for_acknowledgments(PATIENCE);
    acknowledged.expect("received");
    for reader in &readers {
        until("the last one is there", || {
            let read = reader.read(10).expect("samples");
            read.iter().map(number).collect::<Vec<_>>() == [4_998, 4_999]
        });
    }
}

#[test]
fn a_deleted_writer_sends_what_waits() {
    let meeting = Meeting::new();
    let participants: [_; 2] = meeting.participants();
    let heard = reader(&participants[1], "State");
    enable(&participants);
    // The group may have no notice of a writer within the time that it waits when it is deleted.
    until("one has sent what waited", || {
        let written = writer_with(&participants[0], "State", DataWriterQos::default());
        written.write(&state(1, 7)).expect("it is kept");
        let publisher = written.publisher().expect("alive");
        publisher.delete_datawriter(&written).expect("alive");
        let taken = heard.take(10);
        taken.is_ok_and(|samples| samples.iter().any(|it| it.info().valid_data))
    });
}

#[test]
fn a_deleted_writer_that_keeps_all_has_max_blocking_time() {
    let meeting = Meeting::new();
    let participants: [_; 2] = meeting.participants();
    let slow = reader_with(
        &participants[1],
        "State",
        DataReaderQos {
            resource_limits: ResourceLimits {
                max_samples: 1.into(),
                ..ResourceLimits::default()
            },
            ..keep_all_reader()
        },
    );
    enable(&participants);
    let mut qos = DataWriterQos {
        reliability: Reliability::reliable(Duration::from_millis(30_000)),
        history: History::keep_all(),
        ..DataWriterQos::default()
    };
    qos.property.set("spindle.ring.messages", "4");
    // The group has no notice of it yet: what it writes waits.
    let written = writer_with(&participants[0], "State", qos);
    for number in 0..50 {
        written.write(&state(1, number)).expect("it is kept");
    }
    let publisher = written.publisher().expect("alive");
    std::thread::scope(|scope| {
        scope.spawn(|| publisher.delete_datawriter(&written).expect("alive"));
        let mut numbers = Vec::new();
        while numbers.last() != Some(&49) {
            std::thread::sleep(std::time::Duration::from_millis(10));
            numbers.extend(take_data(&slow, 1));
        }
        assert_eq!(numbers, (0..50).collect::<Vec<_>>());
    });
}
