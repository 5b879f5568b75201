//! The end of a participant's group is told: no call that needs the group succeeds, and each kind
//! of waiting hears of it.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::process::Command;
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Barrier};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

use futures_core::Stream;
use spindle_dds::idl::{KeyHash, Slot as _};
use spindle_dds::qos::{DataReaderQos, DataWriterQos, Reliability, ResourceLimits};
use spindle_dds::{
    DataReader, DataReaderListener, DataWriter, DataWriterListener, DomainParticipant,
    DomainParticipantListener, Duration, Error, InstanceState, LivelinessChangedStatus,
    ParticipantBuilder, PublicationMatchedStatus, Result, StateMasks, StatusMask,
    SubscriptionMatchedStatus, WaitSet, testing,
};

use crate::flight::State;
use crate::meeting::{
    Meeting, enable, keep_all_reader, reader, reader_with, reliable_writer, state, take, until,
    wait_for_members, wait_in, writer, writer_with,
};

/// Sends on what a participant is told.
struct Told(Sender<String>);

impl DomainParticipantListener for Told {
    fn on_failed(&mut self, _: &DomainParticipant, reason: &str) {
        let _ = self.0.send(reason.to_owned());
    }
}

/// A participant that the others soon give up, and what it is told.
fn participant(meeting: &Meeting) -> (DomainParticipant, Receiver<String>) {
    participant_of(meeting.builder())
}

fn participant_of(builder: ParticipantBuilder) -> (DomainParticipant, Receiver<String>) {
    let (sender, told) = mpsc::channel();
    let participant = builder
        .property("spindle.failure.limit_ms", "1000")
        .property("spindle.rejoin", "off")
        .listener(StatusMask::NONE, Told(sender))
        .create()
        .expect("a participant");
    (participant, told)
}

/// Two of them.
fn pair(meeting: &Meeting) -> ([DomainParticipant; 2], Receiver<String>) {
    let ((stays, _), (goes, told)) = (participant(meeting), participant(meeting));
    ([stays, goes], told)
}

/// The second of two stands still until the first goes on without it. Returns the reason that it
/// is told.
fn expel(participants: &[DomainParticipant; 2], told: &Receiver<String>) -> String {
    let still = testing::ByHand::new(&participants[1]).expect("enabled");
    wait_for_members(&participants[..1], 1);
    drop(still);
    told.recv().expect("the listener is told")
}

fn check<T: std::fmt::Debug>(result: Result<T>, reason: &str) {
    let error = result.expect_err("the group has failed");
    assert!(
        matches!(&error, Error::Error(text) if text == reason),
        "{error}, not {reason}"
    );
}

fn check_writer(writer: &DataWriter<State>, reason: &str) {
    check(writer.write(&state(1, 1)), reason);
    check(writer.write_w_timestamp(&state(1, 1), 7), reason);
    check(writer.dispose(&state(1, 1)), reason);
    check(writer.unregister_instance(&state(1, 1)), reason);
    check(writer.register_instance(&state(1, 1)), reason);
    check(writer.loan().map(|_| ()), reason);
    check(writer.loan_w_timestamp(64, 7).map(|_| ()), reason);
    check(writer.wait_for_acknowledgments(Duration::ZERO), reason);
    let publisher = writer.publisher().expect("alive");
    check(publisher.wait_for_acknowledgments(Duration::ZERO), reason);
}

/// The property of the process that this test starts.
const REPORT: &str = "SPINDLE_TEST_REPORT";

#[test]
fn the_end_is_written_to_stderr() {
    if let Ok(report) = std::env::var(REPORT) {
        let meeting = Meeting::new();
        let builder = match &*report {
            "" => meeting.builder(),
            report => meeting.builder().property("spindle.failure.report", report),
        };
        let ((stays, _), (goes, told)) = (participant(&meeting), participant_of(builder));
        let participants = [stays, goes];
        enable(&participants);
        println!("\nreason: {}", expel(&participants, &told));
        return;
    }
    for (report, is_written) in [("", true), ("stderr", true), ("off", false)] {
        let test = [
            "--exact",
            "ended::the_end_is_written_to_stderr",
            "--nocapture",
        ];
        let output = Command::new(std::env::current_exe().expect("this program"))
            .args(test)
            .env(REPORT, report)
            .output()
            .expect("a process");
        let [out, error] =
            [output.stdout, output.stderr].map(|it| String::from_utf8(it).expect("text"));
        let reason = out.lines().find_map(|line| line.strip_prefix("reason: "));
        let reason = reason.unwrap_or_else(|| panic!("no reason: {out}{error}"));
        let written = format!("spindle-dds: domain 0: {reason}\n");
        assert_eq!(error.contains(&written), is_written, "{report:?}: {error}");
        assert_eq!(error.contains(reason), is_written, "{report:?}: {error}");
    }
}

#[test]
fn no_call_of_a_writer_succeeds_after_the_group_has_failed() {
    let meeting = Meeting::new();
    let (participants, told) = pair(&meeting);
    let [stays, goes] = &participants;
    let _heard = reader(stays, "State");
    let mut loose = reliable_writer();
    loose.reliability = Reliability::best_effort();
    let one = ResourceLimits {
        max_samples: 1.into(),
        ..ResourceLimits::default()
    };
    let limited = |qos: &DataWriterQos| DataWriterQos {
        resource_limits: one,
        ..qos.clone()
    };
    let kinds = [
        reliable_writer(),
        loose.clone(),
        limited(&reliable_writer()),
        limited(&loose),
    ];
    let writers = kinds.map(|qos| writer_with(goes, "State", qos));
    let silent = writer(goes, "Unheard");
    enable(&participants);
    for writer in &writers {
        writer.write(&state(1, 0)).expect("room");
    }
    writers[0]
        .wait_for_acknowledgments(Duration::INFINITE)
        .expect("received");
    let open: Vec<_> = [&writers[0], &writers[1], &writers[3], &writers[3]]
        .map(|writer| {
            testing::loan(writer, 64).expect("room, or none for a sample that is dropped")
        })
        .into();
    let reason = expel(&participants, &told);
    for loan in open {
        check(loan.finish(24, KeyHash::NONE), &reason);
    }
    for writer in &writers {
        check_writer(writer, &reason);
    }
    check_writer(&silent, &reason);
    check_writer(&writer(goes, "State"), &reason);
    check_writer(&writer(goes, "Another"), &reason);
    assert_eq!(told.try_recv(), Err(mpsc::TryRecvError::Empty), "told once");
    check(goes.close(), &reason);
}

/// A call of a listener.
#[derive(Debug, PartialEq)]
enum Call {
    Data,
    Subscription(i32, i32),
    Liveliness(i32, i32),
    Publication(i32, i32),
}

/// Sends on the calls of a reader's or a writer's listener.
struct Calls(Sender<Call>);

impl DataReaderListener<State> for Calls {
    fn on_data_available(&mut self, _: &DataReader<State>) {
        let _ = self.0.send(Call::Data);
    }

    fn on_subscription_matched(
        &mut self,
        _: &DataReader<State>,
        status: &SubscriptionMatchedStatus,
    ) {
        let call = Call::Subscription(status.current_count, status.current_count_change);
        let _ = self.0.send(call);
    }

    fn on_liveliness_changed(&mut self, _: &DataReader<State>, status: &LivelinessChangedStatus) {
        let call = Call::Liveliness(status.alive_count, status.not_alive_count);
        let _ = self.0.send(call);
    }
}

impl DataWriterListener<State> for Calls {
    fn on_publication_matched(&mut self, _: &DataWriter<State>, status: &PublicationMatchedStatus) {
        let call = Call::Publication(status.current_count, status.current_count_change);
        let _ = self.0.send(call);
    }
}

#[test]
fn listeners_alone_hear_the_end_once_and_what_has_come_can_be_taken() {
    let meeting = Meeting::new();
    let (participants, told) = pair(&meeting);
    let [stays, goes] = &participants;
    let (fed, heard) = (writer(stays, "State"), reader(stays, "State"));
    let (recorder, own) = (reader(goes, "State"), writer(goes, "State"));
    enable(&participants);
    fed.write(&state(1, 7)).expect("room");
    own.write(&state(2, 8)).expect("room");
    for writer in [&fed, &own] {
        let acknowledged = writer.wait_for_acknowledgments(Duration::INFINITE);
        acknowledged.expect("received");
    }
    until("both are there", || {
        recorder.read(2).is_ok_and(|samples| samples.len() == 2)
    });
    let (sender, calls) = mpsc::channel();
    recorder.subscription_matched_status().expect("alive");
    recorder.liveliness_changed_status().expect("alive");
    own.publication_matched_status().expect("alive");
    let listener = Box::new(Calls(sender.clone()));
    recorder
        .set_listener(StatusMask::ALL, Some(listener))
        .expect("alive");
    own.set_listener(StatusMask::ALL, Some(Box::new(Calls(sender))))
        .expect("alive");
    let reason = expel(&participants, &told);
    let mut said: Vec<Call> = Vec::new();
    let expected = [
        Call::Subscription(1, -1),
        Call::Liveliness(1, 1),
        Call::Publication(1, -1),
    ];
    while !(expected.iter().all(|call| said.contains(call)) && said.contains(&Call::Data)) {
        said.push(calls.recv().expect("the listeners are told"));
    }
    // What was received of the other participant is there, and its instance has no writer now.
    // The two samples were written at one time: each order is right.
    let mut infos = take(&recorder, 3, |sample| {
        let number = sample.data().ok().map(|data: State| data.number);
        (number, sample.info().instance_state)
    });
    infos[..2].sort_by_key(|(number, _)| *number);
    let lost = InstanceState::NotAliveNoWriters;
    let expected_infos = [
        (Some(7), lost),
        (Some(8), InstanceState::Alive),
        (None, lost),
    ];
    assert_eq!(infos, expected_infos);
    check(recorder.take(1), &reason);
    assert_eq!(
        recorder.matched_publications(),
        Ok(vec![own.instance_handle()])
    );
    assert_eq!(
        own.matched_subscriptions(),
        Ok(vec![recorder.instance_handle()])
    );
    check(goes.close(), &reason);
    said.extend(calls.try_iter().filter(|call| *call != Call::Data));
    for call in &expected {
        let times = said.iter().filter(|it| *it == call).count();
        assert_eq!(times, 1, "{call:?} of {said:?}");
    }
    said.retain(|call| *call != Call::Data);
    assert_eq!(said.len(), expected.len(), "{said:?}");
    // The one that stays hears the same of the other.
    let status = heard.liveliness_changed_status().expect("alive");
    assert_eq!((status.alive_count, status.not_alive_count), (1, 1));
}

/// Wakes a thread that polls a future.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut context = Context::from_waker(&waker);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return output;
        }
        thread::park();
    }
}

/// The last item of a stream, after which it has ended.
fn last_of_stream(reader: &DataReader<State>) -> Option<Error> {
    let mut stream = reader.stream(64);
    let mut last = None;
    loop {
        let next = block_on(poll_fn(|context| Pin::new(&mut stream).poll_next(context)));
        match next {
            Some(item) => last = item.err(),
            None => return last,
        }
    }
}

#[test]
fn each_kind_of_waiting_ends_with_the_group() {
    let meeting = Meeting::new();
    let (participants, told) = pair(&meeting);
    let [stays, goes] = &participants;
    let fed = writer(stays, "State");
    let full = DataReaderQos {
        resource_limits: one_sample(),
        ..keep_all_reader()
    };
    let _full = reader_with(stays, "Full", full);
    let recorder = reader(goes, "State");
    let streamed = reader(goes, "State");
    let mut qos = reliable_writer();
    qos.reliability = Reliability::reliable(Duration::INFINITE);
    qos.property.set("spindle.ring.messages", "4");
    let blocked = writer_with(goes, "Full", qos);
    enable(&participants);
    fed.write(&state(1, 7)).expect("room");
    let acknowledged = fed.wait_for_acknowledgments(Duration::INFINITE);
    acknowledged.expect("received");
    until("it is there", || recorder.read(1).is_ok());
    recorder.subscription_matched_status().expect("alive");
    recorder.liveliness_changed_status().expect("alive");
    blocked.publication_matched_status().expect("alive");
    let gone = StateMasks {
        instance: InstanceState::NotAliveNoWriters.into(),
        ..StateMasks::ANY
    };
    let of_reader = |mask| {
        let condition = recorder.status_condition().expect("alive");
        condition.set_enabled_statuses(mask);
        condition
    };
    let waits: [WaitSet; 3] = std::array::from_fn(|_| WaitSet::new());
    waits[0].attach(of_reader(
        StatusMask::SUBSCRIPTION_MATCHED | StatusMask::LIVELINESS_CHANGED,
    ));
    let of_writer = blocked.status_condition().expect("alive");
    of_writer.set_enabled_statuses(StatusMask::PUBLICATION_MATCHED);
    waits[1].attach(&of_writer);
    waits[2].attach(recorder.read_condition(gone).expect("alive"));
    thread::scope(|scope| {
        let waiting = waits
            .each_ref()
            .map(|waits| wait_in(scope, waits, Duration::INFINITE));
        let stream = scope.spawn(|| last_of_stream(&streamed));
        until("the stream waits", || {
            testing::has_waiting_stream(&streamed)
        });
        let writing = scope.spawn(|| {
            loop {
                if let Err(error) = blocked.write(&state(1, 1)) {
                    return error;
                }
            }
        });
        until("it waits for room", || {
            testing::waiting_writers(goes) == Ok(1)
        });
        let reason = expel(&participants, &told);
        for waiting in waiting {
            let held = waiting.join().expect("no panic").expect("it is woken");
            assert_eq!(held.len(), 1);
        }
        let ended = Error::Error(reason);
        assert_eq!(writing.join().expect("no panic"), ended);
        assert_eq!(stream.join().expect("no panic"), Some(ended));
    });
}

fn one_sample() -> ResourceLimits {
    ResourceLimits {
        max_samples: 1.into(),
        ..ResourceLimits::default()
    }
}

#[test]
fn a_writer_that_waits_within_its_limits_gets_the_reason() {
    let meeting = Meeting::new();
    let (participants, told) = pair(&meeting);
    let [stays, goes] = &participants;
    let full = DataReaderQos {
        resource_limits: one_sample(),
        ..keep_all_reader()
    };
    let _full = reader_with(stays, "Full", full);
    let qos = DataWriterQos {
        resource_limits: one_sample(),
        reliability: Reliability::reliable(Duration::INFINITE),
        ..reliable_writer()
    };
    let written = writer_with(goes, "Full", qos);
    enable(&participants);
    thread::scope(|scope| {
        let writing = scope.spawn(|| {
            loop {
                if let Err(error) = written.write(&state(1, 1)) {
                    return error;
                }
            }
        });
        // A sample that finds the reader full is not released.
        until("it waits for a release", || {
            testing::waiting_writers(goes) == Ok(1)
        });
        testing::fail(goes, "there are no more views").expect("enabled");
        let reason = told.recv().expect("the listener is told");
        assert_eq!(writing.join().expect("no panic"), Error::Error(reason));
    });
}

#[test]
fn what_is_written_as_the_group_fails_is_delivered_or_refused() {
    const THREADS: u32 = 3;
    for _ in 0..20 {
        let meeting = Meeting::new();
        let (participants, told) = pair(&meeting);
        let [stays, goes] = &participants;
        let heard = reader(stays, "State");
        let written = writer(goes, "State");
        enable(&participants);
        // What waits for the group's notice of the writer would end with the group.
        written.write(&state(0, 0)).expect("room");
        let acknowledged = written.wait_for_acknowledgments(Duration::INFINITE);
        acknowledged.expect("received");
        take(&heard, 1, |_| ());
        let start = Barrier::new(THREADS as usize + 1);
        let sent: u32 = thread::scope(|scope| {
            let threads = (0..THREADS).map(|icao| {
                let (start, written) = (&start, &written);
                scope.spawn(move || {
                    start.wait();
                    let mut number = 0;
                    loop {
                        match written.write(&state(icao, number)) {
                            Ok(_) => number += 1,
                            Err(Error::Error(reason)) => {
                                assert!(reason.contains("no more views"), "{reason}");
                                return number;
                            }
                            Err(error) => panic!("{error}"),
                        }
                    }
                })
            });
            let threads: Vec<_> = threads.collect();
            start.wait();
            let mut come = take(&heard, 10, |_| ()).len() as u32;
            testing::fail(goes, "there are no more views").expect("enabled");
            let sent = threads.into_iter().map(|it| it.join().expect("no panic"));
            let sent: u32 = sent.sum();
            while come < sent {
                come += take(&heard, 1, |sample| u32::from(sample.info().valid_data))[0];
            }
            sent
        });
        assert!(sent >= 10);
        let reason = told.recv().expect("the listener is told");
        check_writer(&written, &reason);
    }
}
