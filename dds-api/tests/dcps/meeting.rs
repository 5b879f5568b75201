//! Groups for tests.

use std::thread;

use spindle_dds::idl::TopicType;
use spindle_dds::qos::{
    DataReaderQos, DataWriterQos, History, Presentation, PresentationAccessScope, PublisherQos,
    Reliability, SubscriberQos,
};
use spindle_dds::{
    DataReader, DataWriter, DomainParticipant, Duration, Error, ParticipantBuilder, Samples,
    StatusMask, Topic, WaitSet,
};
use tempfile::TempDir;

use crate::flight::State;

/// A place where participants of one test meet.
pub(crate) struct Meeting {
    directory: TempDir,
}

impl Meeting {
    pub(crate) fn new() -> Self {
        Self {
            directory: tempfile::tempdir().expect("a temporary directory"),
        }
    }

    /// Created by the first participant, for this user alone.
    pub(crate) fn directory(&self) -> String {
        let directory = self.directory.path().join("domains");
        directory.to_str().expect("UTF-8").to_owned()
    }

    pub(crate) fn builder(&self) -> ParticipantBuilder {
        DomainParticipant::builder(0)
            .property("spindle.directory", &self.directory())
            .disabled()
    }

    pub(crate) fn participant(&self) -> DomainParticipant {
        self.builder().create().expect("a participant")
    }

    pub(crate) fn participants<const N: usize>(&self) -> [DomainParticipant; N] {
        std::array::from_fn(|_| self.participant())
    }
}

/// Enables all at once, each in a thread of its own, until each knows of all.
pub(crate) fn enable(participants: &[DomainParticipant]) {
    thread::scope(|scope| {
        for participant in participants {
            scope.spawn(|| participant.enable().expect("it is let in"));
        }
    });
    wait_for_members(participants, participants.len());
}

/// Looks until `condition` holds. After a minute it never will.
pub(crate) fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
    while !condition() {
        assert!(std::time::Instant::now() < deadline, "{what}: never");
        thread::sleep(std::time::Duration::from_micros(200));
    }
}

/// Blocks until each of them is in a view of so many.
pub(crate) fn wait_for_members(participants: &[DomainParticipant], members: usize) {
    for participant in participants {
        until(&format!("{participant:?} is one of {members}"), || {
            let others = participant.discovered_participants();
            others.expect("enabled").len() + 1 == members
        });
    }
}

pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// It waits for room, and replaces nothing.
pub(crate) fn reliable_writer() -> DataWriterQos {
    DataWriterQos {
        history: History::keep_all(),
        reliability: Reliability::reliable(PATIENCE),
        ..DataWriterQos::default()
    }
}

pub(crate) fn keep_all_reader() -> DataReaderQos {
    DataReaderQos {
        reliability: Reliability::reliable(Duration::ZERO),
        history: History::keep_all(),
        ..DataReaderQos::default()
    }
}

fn ordered() -> Presentation {
    Presentation {
        access_scope: PresentationAccessScope::Topic,
        coherent_access: false,
        ordered_access: true,
    }
}

/// A RELIABLE writer that offers order over its topic.
pub(crate) fn writer(participant: &DomainParticipant, topic: &str) -> DataWriter<State> {
    writer_with(participant, topic, reliable_writer())
}

pub(crate) fn writer_with(
    participant: &DomainParticipant,
    topic: &str,
    qos: DataWriterQos,
) -> DataWriter<State> {
    writer_of(participant, topic, qos)
}

/// As [`writer_with`], of any type.
pub(crate) fn writer_of<T: TopicType>(
    participant: &DomainParticipant,
    topic: &str,
    qos: DataWriterQos,
) -> DataWriter<T> {
    let topic = topic_of(participant, topic);
    let publisher = PublisherQos {
        presentation: ordered(),
        ..PublisherQos::default()
    };
    let publisher = participant
        .publisher()
        .qos(publisher)
        .create()
        .expect("a publisher");
    publisher
        .writer(&topic)
        .qos(qos)
        .create()
        .expect("a writer")
}

/// A KEEP_ALL reader that wants order over its topic.
pub(crate) fn reader(participant: &DomainParticipant, topic: &str) -> DataReader<State> {
    reader_with(participant, topic, keep_all_reader())
}

pub(crate) fn reader_with(
    participant: &DomainParticipant,
    topic: &str,
    qos: DataReaderQos,
) -> DataReader<State> {
    reader_of(participant, topic, qos)
}

/// As [`reader_with`], of any type.
pub(crate) fn reader_of<T: TopicType>(
    participant: &DomainParticipant,
    topic: &str,
    qos: DataReaderQos,
) -> DataReader<T> {
    let topic = topic_of(participant, topic);
    let subscriber = SubscriberQos {
        presentation: ordered(),
        ..SubscriberQos::default()
    };
    let subscriber = participant
        .subscriber()
        .qos(subscriber)
        .create()
        .expect("a subscriber");
    subscriber
        .reader(&topic)
        .qos(qos)
        .create()
        .expect("a reader")
}

fn topic_of<T: TopicType>(participant: &DomainParticipant, name: &str) -> Topic<T> {
    let known = participant
        .lookup_topic(name)
        .expect("the participant is alive");
    match known {
        Some(topic) => topic.downcast().expect("the same type"),
        None => participant.topic(name).create().expect("a topic"),
    }
}

pub(crate) fn state(icao: u32, number: u32) -> State {
    State {
        icao,
        number,
        ..State::default()
    }
}

/// Takes until there are `count` samples, whatever they say.
pub(crate) fn take<T: TopicType, R>(
    reader: &DataReader<T>,
    count: usize,
    mut each: impl FnMut(spindle_dds::Sample<'_, T>) -> R,
) -> Vec<R> {
    let mut all = Vec::new();
    while all.len() < count {
        let samples = take_some(reader, count - all.len());
        all.extend(samples.iter().map(&mut each));
    }
    all
}

/// Blocks until there is something to take.
pub(crate) fn take_some<T: TopicType>(reader: &DataReader<T>, max: usize) -> Samples<T> {
    let waits = WaitSet::new();
    let condition = reader.read_condition(Default::default()).expect("alive");
    waits.attach(&condition);
    loop {
        match reader.take(max) {
            Ok(samples) => return samples,
            Err(Error::NoData(_)) => {
                waits.wait(PATIENCE).expect("something comes");
            }
            Err(error) => panic!("{error}"),
        }
    }
}

/// A thread that waits; it does by the time that this returns.
pub(crate) fn wait_in<'scope>(
    scope: &'scope thread::Scope<'scope, '_>,
    waits: &'scope WaitSet,
    timeout: Duration,
) -> thread::ScopedJoinHandle<'scope, spindle_dds::Result<Vec<spindle_dds::Condition>>> {
    let waiting = scope.spawn(move || {
        loop {
            // The look below may be in the way for a moment.
            match waits.wait(timeout) {
                Err(Error::PreconditionNotMet(_)) => thread::yield_now(),
                result => return result,
            }
        }
    });
    while !waiting.is_finished()
        && !matches!(
            waits.wait(Duration::ZERO),
            Err(Error::PreconditionNotMet(_))
        )
    {
        thread::yield_now();
    }
    waiting
}

/// Blocks until a condition on the statuses of a reader holds.
pub(crate) fn wait_until(condition: spindle_dds::StatusCondition, mut holds: impl FnMut() -> bool) {
    condition.set_enabled_statuses(StatusMask::ALL);
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
    while !holds() {
        assert!(std::time::Instant::now() < deadline, "it never holds");
        let waits = WaitSet::new();
        waits.attach(&condition);
        let _ = waits.wait(Duration::from_millis(20));
    }
}
