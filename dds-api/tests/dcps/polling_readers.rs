//! A reader that polls steps the engine itself: it needs no other thread of its participant.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::{Duration, Instant};

use spindle_dds::{
    DataReader, DataReaderListener, DataWriter, DomainParticipant, Result, Samples, StateMasks,
    StatusMask, testing,
};

use crate::flight::State;
use crate::meeting::{Meeting, enable, reader, reliable_writer, state, take, writer, writer_with};

/// A participant with this strategy.
fn waits(meeting: &Meeting, wait: &str) -> DomainParticipant {
    let builder = meeting.builder().property("spindle.wait", wait);
    builder.create().expect("a participant")
}

/// A writer and a reader of one participant that have met, and have nothing to say.
fn endpoints(
    participant: &DomainParticipant,
    topic: &str,
) -> (DataWriter<State>, DataReader<State>) {
    (writer(participant, topic), reader(participant, topic))
}

fn begin(writer: &DataWriter<State>, reader: &DataReader<State>) {
    writer.write(&state(0, 0)).expect("sent");
    assert_eq!(take(reader, 1, |_| ()).len(), 1);
}

/// Looks until it is there, or says what it was told.
fn poll(reader: &DataReader<State>, look: impl Fn() -> Result<Samples<State>>) -> Samples<State> {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        match look() {
            Ok(samples) => return samples,
            Err(error) => assert!(error.is_no_data(), "{reader:?}: {error}"),
        }
        assert!(Instant::now() < deadline, "{reader:?}: nothing comes");
    }
}

#[test]
fn what_has_come_is_taken_without_another_thread() {
    for wait in ["spin", "balanced", "block"] {
        let meeting = Meeting::new();
        let participant = waits(&meeting, wait);
        let (writer, reader) = endpoints(&participant, "State");
        enable(std::slice::from_ref(&participant));
        begin(&writer, &reader);
        let still = testing::Still::new(&participant).expect("up");
        for number in 1..100 {
            writer.write(&state(1, number)).expect("sent");
            assert_eq!(poll(&reader, || reader.take(1)).len(), 1, "{wait}");
            assert!(reader.read(1).is_err_and(|error| error.is_no_data()));
            writer.write(&state(1, number)).expect("sent");
            assert_eq!(poll(&reader, || reader.read(1)).len(), 1, "{wait}");
            reader.take(1).expect("it is there still");
        }
        drop(still);
    }
}

#[test]
fn a_polling_reader_receives_everything_and_may_stop() {
    const SAMPLES: u32 = 20_000;
    for wait in ["spin", "balanced", "block"] {
        let meeting = Meeting::new();
        let participants = [0, 1].map(|_| waits(&meeting, wait));
        let [first, second] = &participants;
        let writer = writer(first, "State");
        let reader = reader(second, "State");
        enable(&participants);
        begin(&writer, &reader);
        thread::scope(|scope| {
            scope.spawn(|| {
                for number in 0..SAMPLES {
                    writer.write(&state(1, number)).expect("sent");
                    // Now and then the reader finds nothing for a while.
                    if number.is_multiple_of(5_000) {
                        thread::sleep(Duration::from_millis(5));
                    }
                }
            });
            let mut next = 0;
            while next < SAMPLES {
                for sample in &poll(&reader, || reader.take(64)) {
                    assert_eq!(sample.view().expect("data").number(), next);
                    next += 1;
                }
            }
        });
        // Only the polling thread steps from now on.
        writer.write(&state(1, 7)).expect("sent");
        let condition = reader.read_condition(StateMasks::ANY).expect("alive");
        let deadline = Instant::now() + Duration::from_secs(60);
        while !condition.trigger_value() {
            assert!(Instant::now() < deadline, "{wait}: the last one is left");
            thread::sleep(Duration::from_millis(1));
        }
    }
}

/// Sends to itself, when it may, and says whether it finds that.
struct Writes {
    writer: DataWriter<State>,
    reader: DataReader<State>,
    called: Sender<()>,
    may: Receiver<()>,
    found: Sender<bool>,
}

impl DataReaderListener<State> for Writes {
    fn on_data_available(&mut self, reader: &DataReader<State>) {
        let _ = reader.take(100);
        let _ = self.called.send(());
        if self.may.recv().is_ok() {
            self.writer.write(&state(2, 2)).expect("sent");
            let _ = self.found.send(self.reader.take(100).is_ok());
        }
    }
}

#[test]
fn a_listener_that_looks_brings_nothing() {
    let meeting = Meeting::new();
    let participant = waits(&meeting, "balanced");
    let (writer, reader) = endpoints(&participant, "Heard");
    let (answers, answered) = endpoints(&participant, "Answers");
    enable(std::slice::from_ref(&participant));
    begin(&writer, &reader);
    begin(&answers, &answered);
    let still = testing::Still::new(&participant).expect("up");
    let [(called, calls), (go, may)] = [(); 2].map(|()| mpsc::channel());
    let (found, finds) = mpsc::channel();
    let listener = Writes {
        writer: answers,
        reader: answered.clone(),
        called,
        may,
        found,
    };
    reader
        .set_listener(StatusMask::DATA_AVAILABLE, Some(Box::new(listener)))
        .expect("alive");
    writer.write(&state(1, 1)).expect("sent");
    // This thread steps, and the listener is called.
    while calls.recv_timeout(Duration::from_millis(1)).is_err() {
        assert!(answered.take(1).is_err_and(|error| error.is_no_data()));
    }
    go.send(()).expect("it waits");
    assert!(!finds.recv().expect("it is called"));
    assert_eq!(poll(&answered, || answered.take(1)).len(), 1);
    drop(still);
}

#[test]
fn a_polling_reader_leaves_its_writers_room() {
    let meeting = Meeting::new();
    let participants = [0, 1].map(|_| waits(&meeting, "balanced"));
    let [first, second] = &participants;
    let mut small = reliable_writer();
    small.property.set("spindle.ring.bytes", "4096");
    let writer = writer_with(first, "Left", small);
    let left = reader(second, "Left");
    let polled = reader(second, "Polled");
    enable(&participants);
    begin(&writer, &left);
    let is_over = AtomicBool::new(false);
    let deadline = Instant::now() + Duration::from_secs(120);
    thread::scope(|scope| {
        let poller = scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) && Instant::now() < deadline {
                assert!(polled.take(1).is_err_and(|error| error.is_no_data()));
            }
        });
        let mut written = 0;
        for _ in 0..8 {
            // They are not taken, and too few to fill the ring's headers.
            for _ in 0..16 {
                writer.write(&state(1, written)).expect("there is room");
                written += 1;
            }
            // Half of the ring in one piece: nothing may lie in its midst.
            drop(testing::loan(&writer, 2048).expect("there is room"));
        }
        is_over.store(true, Ordering::Relaxed);
        poller.join().expect("no panic");
        let found = take(&left, written as usize, |sample| {
            sample.view().map(|it| it.number())
        });
        let found: Result<Vec<_>> = found.into_iter().collect();
        assert_eq!(found.expect("data"), (0..written).collect::<Vec<_>>());
    });
}
