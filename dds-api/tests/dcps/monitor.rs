//! The figures that participants report to an observer.

use std::path::Path;
use std::thread;
use std::time::Instant;

use spindle_dds::monitor::{DeliveryClass, LogCondition, Monitor, ParticipantFigures};
use spindle_dds::qos::{DataReaderQos, DataWriterQos, History, ResourceLimits};
use spindle_dds::{DomainParticipant, Duration};

use crate::logged::{close, logger, persistent_writer};
use crate::meeting::{
    Meeting, enable, keep_all_reader, reader, reader_with, reliable_writer, state, take, until,
    writer, writer_with,
};

const PATIENCE: std::time::Duration = std::time::Duration::from_secs(60);

fn observe(monitor: &mut Monitor) -> Vec<ParticipantFigures> {
    let seen = monitor.observe(PATIENCE).expect("a domain");
    seen.into_iter()
        .map(|seen| seen.figures.expect("it tells"))
        .collect()
}

/// The participants' figures by their ranks, which all agree on.
fn ranked(monitor: &mut Monitor) -> Vec<ParticipantFigures> {
    let mut all = observe(monitor);
    let rank = |figures: &ParticipantFigures| {
        let mut members = figures.members.iter();
        members.position(|member| member.member == figures.member)
    };
    all.sort_by_key(rank);
    all
}

#[test]
fn a_monitor_receives_the_figures_of_each_participant() {
    let meeting = Meeting::new();
    let participants: [_; 2] = meeting.participants();
    let writer = writer(&participants[0], "Told");
    let reader = reader(&participants[1], "Told");
    enable(&participants);
    let mut monitor = Monitor::new(0, Some(Path::new(&meeting.directory())));
    // From now on deliveries are timed.
    observe(&mut monitor);
    let views = |participants: &[DomainParticipant]| {
        let view = |it: &DomainParticipant| it.counters().expect("enabled").view;
        participants.iter().map(view).collect::<Vec<_>>()
    };
    let before = views(&participants);
    for number in 0..100 {
        writer.write(&state(1, number)).expect("room");
    }
    take(&reader, 100, |_| ());
    let told = observe(&mut monitor);
    assert_eq!(views(&participants), before, "an observer is no member");
    assert_eq!(told.len(), 2);
    let wrote = |told: &&ParticipantFigures| told.topics[0].writers == 1;
    let sender = told.iter().find(wrote).expect("the writer's");
    let receiver = told.iter().find(|it| !wrote(it)).expect("the reader's");
    let (sent, received) = (&sender.topics[0], &receiver.topics[0]);
    assert_eq!(
        (&*sent.topic, sent.sent, received.received),
        ("Told", 100, 100)
    );
    assert!(sent.sent_bytes >= 400 && sent.sent_bytes == received.received_bytes);
    assert_eq!((received.readers, received.full_readers), (1, 0));
    assert_eq!(sender.engine.counters.sent, 100);
    assert!(sender.engine.counters.data.pushes >= 3);
    assert!(receiver.engine.counters.upcalls >= 1);
    assert_eq!(receiver.latency_others.count(), 100);
    assert_eq!(receiver.latency_own.count(), 0);
    assert_eq!((sender.view, sender.members.len()), (receiver.view, 2));
    let subgroup = &receiver.engine.subgroups[0];
    assert_eq!((subgroup.delivered, subgroup.members.len()), (100, 2));
    assert_eq!(subgroup.received, [subgroup.received_num; 2]);
    for figures in &told {
        let detector = figures.engine.detector.as_ref().expect("in a view");
        let [other] = detector.heartbeats[..] else {
            panic!("{detector:?}");
        };
        let other = &figures.members[usize::from(other.member)];
        assert_ne!(other.member, figures.member);
        assert_eq!(detector.interval_ns, detector.timeout_ns / 3);
    }
    for participant in participants {
        participant.close().expect("it leaves");
    }
    assert!(observe(&mut monitor).is_empty(), "no participant is left");
}

/// A writer waits for a reader that does not take: the figures name it, and why.
#[test]
fn the_member_that_holds_a_writer_up_is_named() {
    let meeting = Meeting::new();
    let participants: [_; 3] = meeting.participants();
    let mut qos = reliable_writer();
    qos.property.set("spindle.ring.messages", "16");
    let writer = writer_with(&participants[0], "Held", qos);
    let limited = DataReaderQos {
        resource_limits: ResourceLimits {
            max_samples: 4.into(),
            ..ResourceLimits::default()
        },
        ..keep_all_reader()
    };
    let slow = reader_with(&participants[1], "Held", limited);
    let fast = reader(&participants[2], "Held");
    enable(&participants);
    // From now on the group takes messages, and the writer waits for its readers alone.
    writer.write(&state(1, 0)).expect("kept");
    for reader in [&slow, &fast] {
        take(reader, 1, |_| ());
    }
    let mut monitor = Monitor::new(0, Some(Path::new(&meeting.directory())));
    let deadline = Instant::now() + PATIENCE;
    thread::scope(|scope| {
        let writing = scope
            .spawn(|| (0..100).try_for_each(|number| writer.write(&state(1, number)).map(drop)));
        let holder = scope.spawn(|| take(&fast, 100, |_| ()));
        // Until it waits: the ring is full, and only one has not released.
        loop {
            let told = ranked(&mut monitor);
            let sender = told.iter().find(|it| it.topics[0].writers == 1);
            let sender = sender.expect("the writer's");
            let subgroup = &sender.engine.subgroups[0];
            let waits = sender
                .waits
                .iter()
                .find(|it| it.subgroup == subgroup.subgroup);
            let ring = subgroup
                .rings
                .iter()
                .find(|ring| ring.class == DeliveryClass::Ordered);
            let ring = ring.expect("its ring");
            let full = waits.is_some_and(|it| it.waiting == 1) && ring.messages == 16;
            let named: Vec<_> = ring
                .unreleased
                .iter()
                .map(|at| &told[usize::from(*at)])
                .collect();
            // Those are told one after the other: it may take some looks.
            if let ([held], true) = (&named[..], full)
                && held.topics[0].full_readers == 1
            {
                // What it has in its cache may be in the ring, or be copied out of it.
                let received = held.topics[0].received;
                assert!(received <= 21, "{received} of 1 + 16 + 4");
                if received >= 17 {
                    break;
                }
            }
            assert!(Instant::now() < deadline, "{told:#?}");
        }
        take(&slow, 100, |_| ());
        writing.join().expect("it ends").expect("room");
        holder.join().expect("it ends");
    });
    let told = observe(&mut monitor);
    let waits: Vec<_> = told.iter().flat_map(|it| &it.waits).collect();
    assert!(waits.iter().all(|it| it.waiting == 0) && waits.iter().any(|it| it.ns > 0));
}

/// A writer that keeps the last does not wait: its samples do, and the figures have them.
#[test]
fn samples_that_wait_in_a_history_are_told() {
    let meeting = Meeting::new();
    let participants: [_; 2] = meeting.participants();
    let mut qos = DataWriterQos {
        history: History::keep_last(3),
        ..reliable_writer()
    };
    qos.property.set("spindle.ring.messages", "16");
    let writer = writer_with(&participants[0], "Waiting", qos);
    let mut qos = keep_all_reader();
    qos.property.set("spindle.reader.storage", "ring");
    let reader = reader_with(&participants[1], "Waiting", qos);
    enable(&participants);
    let mut monitor = Monitor::new(0, Some(Path::new(&meeting.directory())));
    let mut waiting = || {
        let told = observe(&mut monitor);
        let mut topics = told.iter().flat_map(|it| &it.topics);
        let topic = topics.find(|it| it.writers == 1).expect("the writer's");
        (topic.waiting, topic.waiting_bytes)
    };
    writer.write(&state(1, 0)).expect("kept");
    take(&reader, 1, |_| ());
    assert_eq!(waiting(), (0, 0));
    for number in 1..=100 {
        writer.write(&state(1, number)).expect("kept");
    }
    let (samples, bytes) = waiting();
    assert_eq!(samples, 3);
    assert!(bytes >= 3 * 4, "{bytes}");
    while writer
        .wait_for_acknowledgments(Duration::from_millis(1))
        .is_err()
    {
        take(&reader, 1, |_| ());
    }
    assert_eq!(waiting(), (0, 0));
}

#[test]
fn a_switch_that_is_off_is_off() {
    let run = |switches: &[&str]| {
        let meeting = Meeting::new();
        let participant = || {
            let off = |builder: spindle_dds::ParticipantBuilder, switch: &&str| {
                builder.property(&format!("spindle.engine.{switch}"), "false")
            };
            let builder = switches.iter().fold(meeting.builder(), off);
            builder.create().expect("a participant")
        };
        let participants = [participant(), participant()];
        let mut qos = reliable_writer();
        qos.property.set("spindle.ring.messages", "16");
        qos.property.set("spindle.ring.bytes", "16384");
        let writer = writer_with(&participants[0], "Off", qos);
        let reader = reader(&participants[1], "Off");
        enable(&participants);
        for number in 0..200 {
            writer.write(&state(1, number)).expect("room");
        }
        take(&reader, 200, |_| ());
        let counters = participants.each_ref();
        let counters = counters.map(|it| it.counters().expect("enabled").engine);
        let loan = writer.loan_with(2000).map(drop);
        (counters, loan)
    };
    let ([sender, receiver], loan) = run(&[]);
    assert!(loan.is_ok());
    assert!(sender.data.bytes < 200 * 1024);
    assert!(receiver.upcalls <= 200);
    let one_by_one = ["send_batching", "receive_batching", "delivery_batching"];
    let ([sender, receiver], _) = run(&one_by_one);
    let greatest = [
        sender.send_batches.quantile(1.0),
        receiver.receive_batches.quantile(1.0),
        receiver.delivery_batches.quantile(1.0),
    ];
    assert_eq!(greatest, [1, 1, 1]);
    let ([_, receiver], _) = run(&["batched_upcalls"]);
    assert_eq!(receiver.upcalls, 200);
}

#[test]
fn a_monitor_receives_the_figures_of_logs() {
    let logs = [(); 3].map(|()| tempfile::TempDir::new().expect("a directory"));
    let meeting = Meeting::new();
    let participants = [0, 1, 2].map(|at| logger(&meeting, logs[at].path()));
    let writers = participants
        .each_ref()
        .map(|it| writer_with(it, "State", persistent_writer()));
    enable(&participants);
    let mut monitor = Monitor::new(0, Some(Path::new(&meeting.directory())));
    for number in 0..100 {
        writers[0].write(&state(1, number)).expect("room");
    }
    writers[0]
        .wait_for_acknowledgments(Duration::from_millis(60_000))
        .expect("on disk");
    // The last round of a log thread is told a little later.
    until("three logs have all", || {
        let logs: Vec<_> = observe(&mut monitor)
            .into_iter()
            .flat_map(|it| it.logs)
            .collect();
        let has_all = |log: &spindle_dds::monitor::TopicLogFigures| {
            let is_open = log.condition == LogCondition::Open && log.topic == "State";
            let is_written = log.records == 100 && log.behind == 0 && log.files == 1;
            is_open && is_written && log.syncs > 0 && log.written_bytes >= 100 * 96
        };
        logs.len() == 3 && logs.iter().all(has_all)
    });
    drop(writers);
    let [first, others @ ..] = participants;
    close(others);
    // One of three is no majority.
    until("the one that is left is shut", || {
        let told = observe(&mut monitor);
        let log = told.first().and_then(|it| it.logs.first());
        log.is_some_and(|log| matches!(log.condition, LogCondition::Shut { .. }))
    });
    close([first]);
}
