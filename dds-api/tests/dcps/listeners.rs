//! Which listener is called, on which thread, and that nothing else waits for it.

use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;

use spindle_dds::{
    AnyDataReader, DataReader, DataReaderListener, DomainParticipantListener, Duration, Error,
    StatusMask, Subscriber, SubscriberListener, SubscriptionMatchedStatus,
};

use crate::flight::State;
use crate::meeting::{Meeting, enable, keep_all_reader, reader, state, take, wait_until, writer};

/// Reports which listener was called.
struct Caller(&'static str, Sender<&'static str>);

impl DataReaderListener<State> for Caller {
    fn on_data_available(&mut self, reader: &DataReader<State>) {
        let _ = reader.take(100);
        let _ = self.1.send(self.0);
    }
}

impl SubscriberListener for Caller {
    fn on_data_available(&mut self, reader: &AnyDataReader) {
        let reader = reader.downcast::<State>().expect("its type");
        let _ = reader.take(100);
        let _ = self.1.send(self.0);
    }
}

impl DomainParticipantListener for Caller {
    fn on_data_available(&mut self, reader: &AnyDataReader) {
        assert!(reader.downcast::<crate::flight::Blob>().is_none());
        assert_eq!(reader.topic().name(), "State");
        let _ = self.1.send(self.0);
    }
}

#[test]
fn the_most_specific_listener_is_told() {
    let data = StatusMask::DATA_AVAILABLE;
    let none = StatusMask::NONE;
    // Masks of reader, subscriber and participant; the listener that is called.
    let cases = [
        ([data, data, data], Some("reader")),
        ([none, data, data], Some("subscriber")),
        ([none, none, data], Some("participant")),
        ([none, none, none], None),
    ];
    for (masks, expected) in cases {
        let (told, calls) = mpsc::channel();
        let meeting = Meeting::new();
        let participant = meeting.participant();
        let writer = writer(&participant, "State");
        let reader = reader(&participant, "State");
        let caller = |name| Caller(name, told.clone());
        reader
            .set_listener(masks[0], Some(Box::new(caller("reader"))))
            .expect("alive");
        let subscriber = reader.subscriber().expect("alive");
        subscriber
            .set_listener(masks[1], Some(Box::new(caller("subscriber"))))
            .expect("alive");
        participant
            .set_listener(masks[2], Some(Box::new(caller("participant"))))
            .expect("alive");
        enable(std::slice::from_ref(&participant));
        writer.write(&state(1, 1)).expect("sent");
        check(&calls, expected, &reader);
    }
}

fn check(calls: &Receiver<&'static str>, expected: Option<&str>, reader: &DataReader<State>) {
    match expected {
        Some(name) => assert_eq!(calls.recv().expect("a listener is called"), name),
        None => {
            // No listener: the status stays for the condition.
            let condition = reader.status_condition().expect("alive");
            condition.set_enabled_statuses(StatusMask::DATA_AVAILABLE);
            let waits = spindle_dds::WaitSet::new();
            waits.attach(&condition);
            waits.wait(Duration::INFINITE).expect("it holds");
            assert!(calls.try_recv().is_err());
        }
    }
}

#[test]
fn a_mask_without_a_listener_swallows() {
    let (told, calls) = mpsc::channel();
    let meeting = Meeting::new();
    let participant = meeting.participant();
    let writer = writer(&participant, "State");
    let reader = reader(&participant, "State");
    reader
        .set_listener(StatusMask::DATA_AVAILABLE, None)
        .expect("alive");
    let listener = Box::new(Caller("participant", told));
    participant
        .set_listener(StatusMask::DATA_AVAILABLE, Some(listener))
        .expect("alive");
    enable(std::slice::from_ref(&participant));
    writer.write(&state(1, 1)).expect("sent");
    assert_eq!(take(&reader, 1, |_| ()).len(), 1);
    participant.close().expect("it leaves");
    assert!(calls.try_recv().is_err());
}

struct OnReaders(Sender<&'static str>);

impl SubscriberListener for OnReaders {
    fn on_data_on_readers(&mut self, subscriber: &Subscriber) {
        let _ = self.0.send("subscriber");
        subscriber.notify_datareaders().expect("alive");
    }
}

#[test]
fn data_on_readers_comes_first() {
    let (told, calls) = mpsc::channel();
    let meeting = Meeting::new();
    let participant = meeting.participant();
    let writer = writer(&participant, "State");
    let reader = reader(&participant, "State");
    let caller = Box::new(Caller("reader", told.clone()));
    reader
        .set_listener(StatusMask::DATA_AVAILABLE, Some(caller))
        .expect("alive");
    let subscriber = reader.subscriber().expect("alive");
    let mask = StatusMask::DATA_ON_READERS;
    subscriber
        .set_listener(mask, Some(Box::new(OnReaders(told))))
        .expect("alive");
    enable(std::slice::from_ref(&participant));
    writer.write(&state(1, 1)).expect("sent");
    assert_eq!(calls.recv(), Ok("subscriber"));
    assert_eq!(calls.recv(), Ok("reader"));
}

struct Numbered(usize, Sender<usize>);

impl DataReaderListener<State> for Numbered {
    fn on_data_available(&mut self, reader: &DataReader<State>) {
        let _ = reader.take(1);
        let _ = self.1.send(self.0);
    }
}

/// More readers than the dispatch thread has bits for its callers.
#[test]
fn each_of_many_listeners_is_told() {
    const READERS: usize = 70;
    let (told, calls) = mpsc::channel();
    let meeting = Meeting::new();
    let participant = meeting.participant();
    let writer = writer(&participant, "State");
    let readers: Vec<_> = (0..READERS)
        .map(|number| {
            let reader = reader(&participant, "State");
            let listener = Box::new(Numbered(number, told.clone()));
            reader
                .set_listener(StatusMask::DATA_AVAILABLE, Some(listener))
                .expect("alive");
            reader
        })
        .collect();
    enable(std::slice::from_ref(&participant));
    // They are announced in more than one part.
    wait_until(writer.status_condition().expect("alive"), || {
        writer.matched_subscriptions().expect("enabled").len() == READERS
    });
    for round in 1..=3 {
        writer.write(&state(1, round)).expect("sent");
        let mut called: Vec<usize> = calls.iter().take(READERS).collect();
        called.sort_unstable();
        assert_eq!(called, (0..READERS).collect::<Vec<_>>());
    }
    drop(readers);
}

/// Blocks in its first callback until told to go on.
struct Blocker(Sender<()>, Receiver<()>);

impl DataReaderListener<State> for Blocker {
    fn on_data_available(&mut self, _: &DataReader<State>) {
        let _ = self.0.send(());
        let _ = self.1.recv();
    }

    fn on_subscription_matched(&mut self, _: &DataReader<State>, _: &SubscriptionMatchedStatus) {}
}

#[test]
fn a_blocked_listener_does_not_stop_delivery() {
    const SAMPLES: u32 = 5_000;
    let meeting = Meeting::new();
    let participants: [_; 2] = meeting.participants();
    let writer = writer(&participants[0], "State");
    let other = reader(&participants[0], "State");
    let blocked = reader(&participants[1], "State");
    let (blocking, is_blocked) = mpsc::channel();
    let (go_on, wait) = mpsc::channel();
    let listener = Box::new(Blocker(blocking, wait));
    blocked
        .set_listener(StatusMask::DATA_AVAILABLE, Some(listener))
        .expect("alive");
    enable(&participants);
    writer.write(&state(1, 0)).expect("sent");
    is_blocked.recv().expect("it is called");
    for number in 1..SAMPLES {
        writer.write(&state(1, number)).expect("sent");
    }
    // Others, and other threads of the same reader, get everything meanwhile.
    for reader in [&other, &blocked] {
        let numbers = take(reader, SAMPLES as usize, |sample| {
            sample.data().expect("data").number
        });
        assert_eq!(numbers, (0..SAMPLES).collect::<Vec<_>>());
    }
    drop(go_on);
    participants
        .iter()
        .for_each(|participant| participant.close().expect("it leaves"));
}

#[test]
fn a_condition_wakes_its_waiter_and_a_failed_wait_says_so() {
    let meeting = Meeting::new();
    let participant = meeting.participant();
    let writer = writer(&participant, "State");
    let reader = crate::meeting::reader_with(&participant, "State", keep_all_reader());
    enable(std::slice::from_ref(&participant));
    let waits = spindle_dds::WaitSet::new();
    let condition = reader
        .read_condition(spindle_dds::StateMasks::NOT_READ)
        .expect("alive");
    waits.attach(&condition);
    assert!(matches!(
        waits.wait(Duration::from_millis(1)),
        Err(Error::Timeout(_))
    ));
    let waiting = thread::scope(|scope| {
        let waiting = scope.spawn(|| waits.wait(Duration::INFINITE));
        writer.write(&state(1, 1)).expect("sent");
        waiting.join().expect("it wakes")
    });
    assert_eq!(waiting, Ok(vec![(&condition).into()]));
    assert_eq!(
        reader.read_w_condition(5, &condition).expect("one").len(),
        1
    );
    assert!(!condition.trigger_value(), "all is read");
    assert!(
        reader
            .read_w_condition(5, &condition)
            .is_err_and(|error| error.is_no_data())
    );
    wait_until(reader.status_condition().expect("alive"), || {
        !reader
            .status_changes()
            .expect("alive")
            .contains(StatusMask::DATA_AVAILABLE)
    });
}

#[test]
fn waiting_threads_are_woken_when_the_participant_closes() {
    let meeting = Meeting::new();
    let participant = meeting.participant();
    let reader = reader(&participant, "State");
    enable(std::slice::from_ref(&participant));
    let conditions: [spindle_dds::Condition; 2] = [
        reader.status_condition().expect("alive").into(),
        reader
            .read_condition(spindle_dds::StateMasks::ANY)
            .expect("alive")
            .into(),
    ];
    reader.subscription_matched_status().expect("alive");
    thread::scope(|scope| {
        for condition in &conditions {
            scope.spawn(move || {
                let waits = spindle_dds::WaitSet::new();
                waits.attach(condition);
                waits.wait(Duration::INFINITE).expect("it ends");
            });
        }
        participant.close().expect("it leaves");
    });
    assert!(matches!(reader.take(1), Err(Error::AlreadyDeleted(_))));
}
