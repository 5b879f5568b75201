//! The entities of a worker.

use std::sync::{Arc, Mutex, PoisonError};

use spindle_dds::properties::engine_switch;
use spindle_dds::qos::{
    DataReaderQos, DataWriterQos, DurabilityKind, HistoryKind, ReliabilityKind,
};
use spindle_dds::{
    DataReader, DataWriter, DomainParticipant, Duration, ParticipantBuilder, PeerPath, Publisher,
    StatusMask, Subscriber, SubscriptionMatchedStatus, Topic, WaitSet,
};

use super::job::{Job, Role};
use super::options::{Durability, Level};
use super::perf::Probe;
use super::reader::{Log, Taker};
use super::{Failure, outsider, rendezvous};

/// A disabled participant, and the measured topic.
pub(super) fn create(job: &Job) -> Result<(DomainParticipant, Topic<Probe>), Failure> {
    let participant = disabled(job)?;
    let topic = participant.topic("Probe").create()?;
    Ok((participant, topic))
}

/// A disabled participant.
pub(super) fn disabled(job: &Job) -> Result<DomainParticipant, Failure> {
    Ok(builder(job).disabled().create()?)
}

/// The builder of a participant with the properties of the job.
pub(super) fn builder(job: &Job) -> ParticipantBuilder {
    let storage = if job.copy { "copy" } else { "ring" };
    let builder = DomainParticipant::builder(0);
    let builder = match &job.place {
        None => builder,
        Some(place) => place.builder(builder),
    };
    let builder = match job.limit_ms {
        None => builder,
        Some(limit_ms) => builder.property("spindle.failure.limit_ms", &limit_ms.to_string()),
    };
    // Each topic has its own subgroup, so that none shares rings with the measured one.
    let pinned = (0..job.idle_topics).map(|at| (idle_topic(at), at + 2));
    let others = job.idle_topics + job.scenario.more_topics > 0 || job.outsider.is_some();
    let pinned = pinned.chain(others.then(|| ("Probe".to_owned(), 1)));
    let more = (0..job.scenario.more_topics).map(|at| (more_topic(at), at + 2 + job.idle_topics));
    let last = 2 + job.idle_topics + job.scenario.more_topics;
    let aside = job
        .outsider
        .as_ref()
        .map(|_| (outsider::TOPIC.to_owned(), last));
    let own = aside.filter(|_| job.role == Role::Outsider);
    let pinned = pinned
        .chain(more)
        .filter(|_| job.role != Role::Outsider)
        .chain(own);
    let builder = pinned.fold(builder, |builder, (name, subgroup)| {
        let property = format!("spindle.topic.{name}.subgroup");
        builder.property(&property, &subgroup.to_string())
    });
    let properties = job.without.iter().filter_map(|it| engine_switch(it));
    let builder = properties.fold(builder, |builder, name| builder.property(&name, "false"));
    let builder = match job.durability {
        Durability::Persistent => {
            let own = format!("log-{}", job.role.to_string().replace(' ', "-"));
            let own = job.directory.join(own);
            let builder = builder.property("spindle.log.directory", &own.to_string_lossy());
            builder.property("spindle.log.sync", job.log_sync())
        }
        _ => builder,
    };
    let sizes = [
        ("spindle.ring.messages", job.ring_messages.map(u64::from)),
        ("spindle.ring.bytes", job.ring_bytes),
    ];
    let sizes = sizes.into_iter();
    let builder = sizes.fold(builder, |builder, (name, size)| match size {
        None => builder,
        Some(size) => builder.property(name, &size.to_string()),
    });
    builder
        .property("spindle.directory", &job.directory.to_string_lossy())
        .property("spindle.doorbell", &job.doorbell.to_string())
        .property("spindle.wait", &job.wait.to_string())
        .property("spindle.prefault", &job.prefault.to_string())
        .property("spindle.reader.storage", storage)
}

/// The topics in which members write, in a disabled participant.
pub(super) fn measured_topics(
    job: &Job,
    participant: &DomainParticipant,
) -> Result<Vec<Topic<Probe>>, Failure> {
    let names = std::iter::once("Probe".to_owned());
    let names = names.chain((0..job.scenario.more_topics).map(more_topic));
    let topics = names.map(|name| Ok(participant.topic(&name).create()?));
    topics.collect()
}

fn more_topic(at: u32) -> String {
    format!("Probe{}", at + 1)
}

/// A reader, and the log of what it takes.
pub(super) fn logged_reader(
    job: &Job,
    participant: &DomainParticipant,
    topic: &Topic<Probe>,
) -> Result<(DataReader<Probe>, Arc<Mutex<Log>>), Failure> {
    let log = Arc::new(Mutex::new(Log::new(job)?));
    let subscriber = participant.subscriber().create()?;
    Ok((reader_into(job, &log, &subscriber, topic)?, log))
}

/// A reader for each topic, all with the same log.
pub(super) fn logged_readers(
    job: &Job,
    participant: &DomainParticipant,
    topics: &[Topic<Probe>],
    log: &Arc<Mutex<Log>>,
) -> Result<Vec<DataReader<Probe>>, Failure> {
    let subscriber = participant.subscriber().create()?;
    let readers = topics.iter();
    readers
        .map(|topic| reader_into(job, log, &subscriber, topic))
        .collect()
}

fn reader_into(
    job: &Job,
    log: &Arc<Mutex<Log>>,
    subscriber: &Subscriber,
    topic: &Topic<Probe>,
) -> Result<DataReader<Probe>, Failure> {
    let reader = subscriber.reader(topic).qos(reader_qos(job));
    let reader = match job.listener {
        true => reader.listener(StatusMask::DATA_AVAILABLE, Taker(log.clone())),
        false => reader,
    };
    Ok(reader.create()?)
}

/// The idle topics.
pub(super) fn idle_topics(
    job: &Job,
    participant: &DomainParticipant,
) -> Result<Vec<Topic<Probe>>, Failure> {
    let topics = (0..job.idle_topics).map(|at| Ok(participant.topic(&idle_topic(at)).create()?));
    topics.collect()
}

/// A writer for each idle topic.
pub(super) fn idle_writers(
    job: &Job,
    participant: &DomainParticipant,
    topics: &[Topic<Probe>],
) -> Result<Vec<DataWriter<Probe>>, Failure> {
    let writers = topics.iter().map(|topic| writer(job, participant, topic));
    writers.collect()
}

/// A reader for each idle topic.
pub(super) fn idle_readers(
    job: &Job,
    participant: &DomainParticipant,
    topics: &[Topic<Probe>],
) -> Result<Vec<DataReader<Probe>>, Failure> {
    let subscriber = participant.subscriber().create()?;
    let reader = |topic| Ok(subscriber.reader(topic).qos(reader_qos(job)).create()?);
    topics.iter().map(reader).collect()
}

fn idle_topic(at: u32) -> String {
    format!("Idle{at}")
}

/// Enables the participant, and blocks until it has discovered all others, and then for the
/// settling time of the job.
pub(super) fn enable(job: &Job, participant: &DomainParticipant) -> Result<(), Failure> {
    participant.enable()?;
    let others = job.participants.saturating_sub(1) as usize;
    while participant.discovered_participants()?.len() < others {
        std::thread::sleep(LOOK_FOR_OTHERS_AFTER);
    }
    if job.durability == Durability::Persistent && job.role != Role::Outsider {
        wait_for_logs(job, participant)?;
    }
    std::thread::sleep(std::time::Duration::from_nanos(job.scenario.settle_ns));
    Ok(())
}

/// Blocks until all logs of all participants count: one that comes later catches up first, and is not
/// waited for.
fn wait_for_logs(job: &Job, participant: &DomainParticipant) -> Result<(), Failure> {
    loop {
        let logs = participant.counters()?.logs;
        if logs.ready == logs.logs {
            break;
        }
        std::thread::sleep(LOOK_FOR_OTHERS_AFTER);
    }
    Ok(rendezvous::wait(job, "logs")?)
}

/// A failure of a participant that has lost its group, which explains gaps in what it has taken.
pub(super) fn explained(participant: &DomainParticipant, failure: Failure) -> Failure {
    let Ok(status) = participant.membership_status() else {
        return failure;
    };
    match (status.total_count, status.last_reason) {
        (1.., Some(reason)) => Failure::Workers(format!(
            "it has lost its group: {reason}; --limit-ms helps where processors are too few"
        )),
        _ => failure,
    }
}

/// The path to each peer.
pub(super) fn peer_paths(participant: &DomainParticipant) -> Result<Vec<PeerPath>, Failure> {
    let peers = participant.peers()?;
    Ok(peers.into_iter().map(|peer| peer.path).collect())
}

pub(super) fn writer(
    job: &Job,
    participant: &DomainParticipant,
    topic: &Topic<Probe>,
) -> Result<DataWriter<Probe>, Failure> {
    writer_of(job, &participant.publisher().create()?, topic)
}

/// A writer of this publisher.
pub(super) fn writer_of(
    job: &Job,
    publisher: &Publisher,
    topic: &Topic<Probe>,
) -> Result<DataWriter<Probe>, Failure> {
    let mut qos = DataWriterQos::default();
    qos.reliability.kind = reliability(job.level);
    qos.durability.kind = durability(job.durability);
    qos.reliability.max_blocking_time = Duration::from_secs(BLOCKING_S);
    qos.history.kind = HistoryKind::KeepAll;
    Ok(publisher.writer(topic).qos(qos).create()?)
}

/// The QoS of a reader that keeps all samples.
pub(super) fn reader_qos(job: &Job) -> DataReaderQos {
    let mut qos = DataReaderQos::default();
    qos.reliability.kind = reliability(job.level);
    qos.durability.kind = durability(job.durability);
    qos.history.kind = HistoryKind::KeepAll;
    qos
}

/// Takes samples, or those that the listener leaves, until the reader's matches are `done`.
pub(super) fn wait_until(
    reader: &DataReader<Probe>,
    log: &Mutex<Log>,
    listens: bool,
    done: impl Fn(&SubscriptionMatchedStatus) -> bool,
) -> Result<(), Failure> {
    let waits = WaitSet::new();
    let condition = reader.status_condition()?;
    condition.set_enabled_statuses(match listens {
        true => StatusMask::SUBSCRIPTION_MATCHED,
        false => StatusMask::SUBSCRIPTION_MATCHED | StatusMask::DATA_AVAILABLE,
    });
    waits.attach(&condition);
    loop {
        // A writer leaves after its last sample: read the matches first, then take.
        let done = done(&reader.subscription_matched_status()?);
        log.lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take_all(reader)?;
        if done {
            return Ok(());
        }
        match waits.wait(LOOK_AGAIN_AFTER) {
            Ok(_) => {}
            Err(error) if error.is_timeout() => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Polls for samples until the reader's matches are `done`.
pub(super) fn poll_until(
    reader: &DataReader<Probe>,
    log: &Mutex<Log>,
    done: impl Fn(&SubscriptionMatchedStatus) -> bool,
) -> Result<(), Failure> {
    let mut log = log.lock().unwrap_or_else(PoisonError::into_inner);
    let mut idle = 0;
    loop {
        if log.take_some(reader)? {
            idle = 0;
            continue;
        }
        idle += 1;
        if idle <= SPINS {
            std::hint::spin_loop();
            continue;
        }
        // There may be more readers than processors.
        std::thread::yield_now();
        // A writer leaves after its last sample: read the matches first, then take.
        if done(&reader.subscription_matched_status()?) {
            return log.take_all(reader);
        }
    }
}

fn reliability(level: Level) -> ReliabilityKind {
    match level {
        Level::Atomic => ReliabilityKind::Reliable,
        Level::Unordered => ReliabilityKind::BestEffort,
    }
}

fn durability(durability: Durability) -> DurabilityKind {
    match durability {
        Durability::Volatile => DurabilityKind::Volatile,
        Durability::TransientLocal => DurabilityKind::TransientLocal,
        Durability::Transient => DurabilityKind::Transient,
        Durability::Persistent => DurabilityKind::Persistent,
    }
}

/// Longest time that a writer waits for room.
pub(super) const BLOCKING_S: u64 = 60;
/// Interval of takes: a failed group is reported when samples are taken.
const LOOK_AGAIN_AFTER: Duration = Duration::from_secs(1);
/// Polls without samples before a reader yields.
const SPINS: u32 = 200;
const LOOK_FOR_OTHERS_AFTER: std::time::Duration = std::time::Duration::from_millis(1);
