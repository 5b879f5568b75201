//! Participants that stay, and the one that closes.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use spindle_dds::qos::{DataReaderQos, DataWriterQos, HistoryKind, ReliabilityKind};
use spindle_dds::{DataReader, DataWriter, DomainParticipant, StatusMask};

use crate::churn::{SharedWatch, TICK, TakingListener, Watch, with};
use crate::exchange::Probe;
use crate::resources::Resources;
use crate::workers::Job;
use crate::workers::participant::{builder, send};
use crate::{Failure, clock};

/// Which participant it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Role {
    /// It publishes and takes until the end, and is known by this number.
    Stays(u32),
    /// It closes while the others publish.
    Closes,
}

/// What a participant found.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Findings {
    pub(super) published: u64,
    pub(super) taken: u64,
    pub(super) longest_write_ns: u64,
    /// How long `close` took, of the one that closes.
    pub(super) close_ns: u64,
    pub(super) cpu_ns: u64,
    pub(super) descriptors: u64,
}

/// Does the work of one participant.
pub(crate) fn work(job: &Job, role: Role) -> Result<Findings, Failure> {
    let entities = Entities::new(job)?;
    entities.wait_until_matched(job)?;
    let descriptors = Resources::now()?.descriptors;
    let findings = match role {
        Role::Stays(number) => stay(job, &entities, number),
        Role::Closes => close(job, entities),
    };
    Ok(Findings {
        cpu_ns: clock::process_cpu_ns(),
        descriptors,
        ..findings?
    })
}

/// A participant with a writer and a reader of each topic.
struct Entities {
    participant: DomainParticipant,
    writers: Vec<DataWriter<Probe>>,
    /// Their listeners take into the watches.
    _readers: Vec<DataReader<Probe>>,
    /// By topic.
    watches: Vec<SharedWatch>,
    /// Says that all may publish, and in the end how many samples a participant has published.
    said: DataWriter<Probe>,
    heard: DataReader<Probe>,
}

impl Entities {
    fn new(job: &Job) -> Result<Self, Failure> {
        let participant = builder(job).disabled().create()?;
        let publisher = participant.publisher().create()?;
        let subscriber = participant.subscriber().create()?;
        let mut writer_qos = DataWriterQos::default();
        writer_qos.reliability.kind = ReliabilityKind::Reliable;
        writer_qos.reliability.max_blocking_time = spindle_dds::Duration::INFINITE;
        writer_qos.history.kind = HistoryKind::KeepAll;
        let mut reader_qos = DataReaderQos::default();
        reader_qos.reliability.kind = ReliabilityKind::Reliable;
        reader_qos.history.kind = HistoryKind::KeepAll;
        let (mut writers, mut readers, mut watches) = (Vec::new(), Vec::new(), Vec::new());
        for number in 0..job.topics {
            let topic = participant.topic(&format!("Topic{number}")).create()?;
            let writer = publisher.writer::<Probe>(&topic).qos(writer_qos.clone());
            writers.push(writer.create()?);
            let watch = Watch::from_first();
            let listener = TakingListener(watch.clone());
            let reader = subscriber.reader(&topic).qos(reader_qos.clone());
            readers.push(
                reader
                    .listener(StatusMask::DATA_AVAILABLE, listener)
                    .create()?,
            );
            watches.push(watch);
        }
        let topic = participant.topic("Said").create()?;
        let said = publisher.writer(&topic).qos(writer_qos).create()?;
        let heard = subscriber.reader(&topic).qos(reader_qos).create()?;
        Ok(Self {
            participant,
            writers,
            _readers: readers,
            watches,
            said,
            heard,
        })
    }

    /// Enables the participant, and waits until all its writers have all readers.
    fn wait_until_matched(&self, job: &Job) -> Result<(), Failure> {
        self.participant.enable()?;
        let all = i32::try_from(job.participants).unwrap_or(i32::MAX);
        for writer in self.writers.iter().chain([&self.said]) {
            while writer.publication_matched_status()?.total_count < all {
                std::thread::sleep(POLL_EVERY);
            }
        }
        Ok(())
    }

    /// What has been said: by number of the participant.
    fn hear(&self, heard: &mut BTreeMap<u32, u64>) -> Result<(), Failure> {
        match self.heard.take(TAKE_MAX) {
            Ok(samples) => {
                for sample in samples.iter().filter(|sample| sample.info().valid_data) {
                    let view = sample.view()?;
                    heard.insert(view.writer(), view.number());
                }
                Ok(())
            }
            Err(error) if error.is_no_data() => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Samples of all topics that have been taken.
    fn taken(&self) -> Result<u64, Failure> {
        let mut taken = 0;
        for watch in &self.watches {
            taken += with(watch, |watch| {
                let (of_first, of_others) = watch.samples();
                watch.check().map(|()| of_first + of_others)
            })?;
        }
        Ok(taken)
    }
}

/// By which the one that closes is known.
const CLOSES: u32 = u32::MAX;

fn close(job: &Job, entities: Entities) -> Result<Findings, Failure> {
    send(&entities.said, CLOSES, 0, 0, 0)?;
    std::thread::sleep(Duration::from_nanos(job.phase_ns));
    let since = Instant::now();
    entities.participant.close()?;
    Ok(Findings {
        close_ns: since.elapsed().as_nanos() as u64,
        ..Findings::default()
    })
}

fn stay(job: &Job, entities: &Entities, number: u32) -> Result<Findings, Failure> {
    let mut heard = BTreeMap::new();
    while !heard.contains_key(&CLOSES) {
        std::thread::sleep(TICK);
        entities.hear(&mut heard)?;
    }
    let mut findings = Findings::default();
    publish(job, entities, number, &mut findings)?;
    send(&entities.said, number, findings.published, 0, 0)?;
    // All others but the one that has closed.
    let staying = job.participants as usize - 1;
    heard.remove(&CLOSES);
    loop {
        entities.hear(&mut heard)?;
        findings.taken = entities.taken()?;
        if heard.len() == staying && findings.taken >= heard.values().sum() {
            break;
        }
        std::thread::sleep(POLL_EVERY);
    }
    let matched = entities.said.publication_matched_status()?.total_count;
    if matched != i32::try_from(job.participants).unwrap_or(i32::MAX) {
        return Err(Failure::Run(format!(
            "it was matched with {matched} participants of {}: one came twice",
            job.participants
        )));
    }
    entities.participant.close()?;
    // Nothing may come twice, either.
    findings.taken = entities.taken()?;
    Ok(findings)
}

/// Publishes to all topics in turn, at a pace, until one participant has closed, and for a while
/// after.
fn publish(
    job: &Job,
    entities: &Entities,
    number: u32,
    findings: &mut Findings,
) -> Result<(), Failure> {
    let topics = entities.writers.len() as u64;
    let others = job.participants as usize - 1;
    let mut end_ns = None;
    let mut due_ns = clock::monotonic_ns();
    loop {
        let now_ns = clock::monotonic_ns();
        if end_ns.is_some_and(|end_ns| now_ns >= end_ns) {
            return Ok(());
        }
        // What a long delay has cost is left out.
        due_ns = due_ns.max(now_ns.saturating_sub(crate::churn::CATCH_UP_NS));
        while due_ns <= now_ns {
            let (topic, sample) = (findings.published % topics, findings.published / topics);
            let since_ns = clock::monotonic_ns();
            send(&entities.writers[topic as usize], number, sample, 0, 0)?;
            let took_ns = clock::monotonic_ns() - since_ns;
            findings.longest_write_ns = findings.longest_write_ns.max(took_ns);
            findings.published += 1;
            due_ns += job.period_ns;
        }
        if end_ns.is_none() && entities.participant.discovered_participants()?.len() < others {
            end_ns = Some(now_ns + job.phase_ns);
        }
        std::thread::sleep(TICK);
    }
}

const POLL_EVERY: Duration = Duration::from_millis(10);
const TAKE_MAX: usize = 64;
