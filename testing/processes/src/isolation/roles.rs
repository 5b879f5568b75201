//! The three participants.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use spindle_dds::{DataReader, DataReaderListener, DataWriter, Loan, Samples};

use super::entities::{Entities, POLL_EVERY, TakingListener, Watched, drain};
use super::pacer::{Pacer, Sent};
use super::timetable::{EXTRA_TOPIC, Phase, TOPICS, Timetable};
use super::watch::{Seen, SharedWatch, Watch, with};
use crate::exchange::{Probe, ProbeBuilder};
use crate::workers::Job;
use crate::workers::participant::{SAMPLE_OVERHEAD, enable, send};
use crate::{Failure, clock};

/// Which participant it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Role {
    /// It publishes A to D.
    Writer,
    /// It reads all topics, and publishes a little of B.
    Reader,
    /// It reads A to D, publishes B and E, and misbehaves.
    Culprit,
}

/// What a participant found.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Findings {
    /// Processor time from the creation of the entities to the end.
    pub(super) cpu_ns: u64,
    /// By topic: samples published.
    pub(super) published: BTreeMap<String, u64>,
    /// By topic and phase: samples whose write began in the phase.
    pub(super) sent: BTreeMap<String, Vec<u64>>,
    /// By topic and phase: the longest write under way in the phase.
    pub(super) longest_write_ns: BTreeMap<String, Vec<u64>>,
    /// By topic: what was taken.
    pub(super) seen: BTreeMap<String, Seen>,
    pub(super) misdeeds: Misdeeds,
}

/// What the culprit did.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub(super) struct Misdeeds {
    /// Samples of A that it held.
    pub(super) samples_held: u64,
    /// Builder loans that it held.
    pub(super) loans_held: u64,
    pub(super) holding_ns: u64,
    pub(super) listener_ns: u64,
    pub(super) not_taking_ns: u64,
    /// Samples of C that it took while it was not to take.
    pub(super) taken_meanwhile: u64,
}

/// Does the work of one role.
pub(crate) fn work(job: &Job, role: Role) -> Result<Findings, Failure> {
    let entities = Entities::new(job)?;
    let timetable = Timetable::new(job.phase_ns);
    let cpu_started_ns = clock::process_cpu_ns();
    let mut findings = match role {
        Role::Writer => publish(job, &entities, &timetable),
        Role::Reader => read(job, &entities, &timetable),
        Role::Culprit => misbehave(job, &entities, &timetable),
    }?;
    findings.cpu_ns = clock::process_cpu_ns() - cpu_started_ns;
    entities.participant.close()?;
    Ok(findings)
}

fn publish(job: &Job, entities: &Entities, timetable: &Timetable) -> Result<Findings, Failure> {
    let periods_ns = [
        if job.free { 0 } else { job.period_ns },
        job.period_ns,
        PERIOD_OF_C_NS,
        PERIOD_OF_D_NS,
    ];
    let mut writers = Vec::new();
    for topic in TOPICS {
        let ring_messages = (topic == "C").then_some(RING_OF_C);
        writers.push(entities.writer(topic, ring_messages)?);
    }
    enable(job, &entities.participant)?;
    let start_ns = clock::monotonic_ns() + LEAD.as_nanos() as u64;
    timetable.set_start(start_ns);
    send(&writers[0], 0, 0, start_ns, job.payload_len)?;

    let pacers = writers.iter().zip(periods_ns).map(|(writer, period_ns)| {
        let pacer = Pacer {
            writer: writer.clone(),
            timetable: timetable.clone(),
            payload_len: job.payload_len,
            period_ns,
        };
        std::thread::spawn(move || pacer.run())
    });
    let pacers: Vec<_> = pacers.collect();
    let mut findings = Findings::default();
    for (topic, pacer) in TOPICS.into_iter().zip(pacers) {
        let sent = pacer
            .join()
            .map_err(|_| Failure::Run(format!("the writer of {topic} panicked")))??;
        findings.note_sent(topic, sent);
    }
    // The sample that said when the phases begin.
    *findings.published.entry(TOPICS[0].to_owned()).or_default() += 1;
    delete(entities, &writers)?;
    Ok(findings)
}

fn read(job: &Job, entities: &Entities, timetable: &Timetable) -> Result<Findings, Failure> {
    let mut readers = Vec::new();
    for topic in TOPICS.into_iter().chain([EXTRA_TOPIC]) {
        let watch = Watch::new(timetable, topic == TOPICS[0]);
        let listener = Some(TakingListener(watch.clone()));
        readers.push((topic, entities.reader(topic, None, watch, listener)?));
    }
    let writer = entities.writer("B", None)?;
    enable(job, &entities.participant)?;
    await_start(timetable, readers.iter().map(|(_, reader)| reader))?;
    let pacer = Pacer {
        writer: writer.clone(),
        timetable: timetable.clone(),
        payload_len: job.payload_len,
        period_ns: job.period_ns.saturating_mul(SHARE_OF_B),
    };
    let sent = pacer.run()?;
    delete(entities, &[writer])?;
    drain(readers.iter().map(|(_, reader)| reader))?;
    let mut findings = Findings::default();
    findings.note_sent("B", sent);
    findings.note_seen(readers.iter().map(|(topic, reader)| (*topic, reader)));
    Ok(findings)
}

fn misbehave(job: &Job, entities: &Entities, timetable: &Timetable) -> Result<Findings, Failure> {
    let mut culprit = Culprit::new(job, entities, timetable)?;
    enable(job, &entities.participant)?;
    await_start(timetable, [&culprit.a].into_iter())?;
    while !timetable.is_over(clock::monotonic_ns()) {
        culprit.take_turn()?;
        std::thread::sleep(POLL_EVERY);
    }
    culprit.release()?;
    delete(
        entities,
        &[culprit.writer_b.clone(), culprit.writer_e.clone()],
    )?;
    drain(culprit.readers().map(|(_, reader)| reader))?;
    let mut findings = Findings {
        misdeeds: culprit.misdeeds,
        ..Findings::default()
    };
    findings.misdeeds.listener_ns = culprit.listener_ns.load(Ordering::Acquire);
    for topic in ["B", EXTRA_TOPIC] {
        let published = culprit.misdeeds.loans_held / 2;
        findings.published.insert(topic.to_owned(), published);
    }
    findings.note_seen(culprit.readers());
    Ok(findings)
}

/// The participant that misbehaves.
struct Culprit {
    timetable: Timetable,
    payload_len: usize,
    a: Watched,
    b: Watched,
    c: Watched,
    d: Watched,
    writer_b: DataWriter<Probe>,
    writer_e: DataWriter<Probe>,
    held: Option<Held>,
    /// Since when it does not take from C, and how many samples of C it had taken by then.
    not_taking_since: Option<(u64, u64)>,
    /// How long its listener did not return.
    listener_ns: Arc<AtomicU64>,
    misdeeds: Misdeeds,
}

/// What the culprit does not give back.
struct Held {
    samples: Samples<Probe>,
    /// The number in the first of the samples.
    number: u64,
    loans: [ProbeBuilder<Loan<Probe>>; 2],
    since_ns: u64,
}

impl Culprit {
    fn new(job: &Job, entities: &Entities, timetable: &Timetable) -> Result<Self, Failure> {
        let watch = |tells_start| Watch::new(timetable, tells_start);
        let no_listener = None::<TakingListener>;
        let watch_b = watch(false);
        let listener_ns = Arc::new(AtomicU64::new(0));
        let blocking = BlockingListener {
            watch: watch_b.clone(),
            timetable: timetable.clone(),
            blocked_ns: listener_ns.clone(),
        };
        Ok(Self {
            timetable: timetable.clone(),
            payload_len: job.payload_len,
            a: entities.reader("A", None, watch(true), no_listener)?,
            b: entities.reader("B", None, watch_b, Some(blocking))?,
            c: entities.reader(
                "C",
                Some(SAMPLES_OF_C),
                watch(false),
                None::<TakingListener>,
            )?,
            d: entities.reader("D", None, watch(false), None::<TakingListener>)?,
            writer_b: entities.writer("B", None)?,
            writer_e: entities.writer(EXTRA_TOPIC, None)?,
            held: None,
            not_taking_since: None,
            listener_ns,
            misdeeds: Misdeeds::default(),
        })
    }

    fn readers(&self) -> impl Iterator<Item = (&'static str, &Watched)> + Clone {
        TOPICS.into_iter().zip([&self.a, &self.b, &self.c, &self.d])
    }

    /// Takes from the topics from which it takes in this phase. The listener takes from B.
    fn take_turn(&mut self) -> Result<(), Failure> {
        let now_ns = clock::monotonic_ns();
        match self.timetable.is_phase(now_ns, Phase::Loans) {
            true if self.held.is_none() => self.hold(now_ns)?,
            true => {}
            false => self.release()?,
        }
        if self.timetable.is_phase(now_ns, Phase::KeepAll) {
            let taken = || with(&self.c.watch, |watch| watch.samples());
            self.not_taking_since
                .get_or_insert_with(|| (now_ns, taken()));
        } else {
            if let Some((since_ns, before)) = self.not_taking_since.take() {
                let taken = with(&self.c.watch, |watch| watch.samples());
                self.misdeeds.not_taking_ns = now_ns - since_ns;
                self.misdeeds.taken_meanwhile = taken - before;
            }
            self.c.take_all()?;
        }
        self.a.take_all()?;
        self.d.take_all()
    }

    fn hold(&mut self, now_ns: u64) -> Result<(), Failure> {
        let taken = with(&self.a.watch, |watch| watch.take_some(&self.a.reader))?;
        let Some(samples) = taken else {
            return Ok(());
        };
        let Some(number) = first_number(&samples)? else {
            return Ok(());
        };
        let max_bytes = self.payload_len + SAMPLE_OVERHEAD;
        let loans = [
            self.writer_b.loan_with(max_bytes)?,
            self.writer_e.loan_with(max_bytes)?,
        ];
        self.misdeeds.samples_held = samples.len() as u64;
        self.misdeeds.loans_held = loans.len() as u64;
        self.held = Some(Held {
            samples,
            number,
            loans,
            since_ns: now_ns,
        });
        Ok(())
    }

    /// Publishes the loans that it holds and gives the samples back, which must not have changed.
    fn release(&mut self) -> Result<(), Failure> {
        let Some(held) = self.held.take() else {
            return Ok(());
        };
        if first_number(&held.samples)? != Some(held.number) {
            let text = "a sample has changed while it was on loan";
            return Err(Failure::Run(text.to_owned()));
        }
        for mut loan in held.loans {
            loan.set_number(held.number);
            loan.payload_reuse_with(self.payload_len, |_| {})?
                .publish()?;
        }
        self.misdeeds.holding_ns = clock::monotonic_ns() - held.since_ns;
        Ok(())
    }
}

fn first_number(samples: &Samples<Probe>) -> Result<Option<u64>, Failure> {
    let first = samples.iter().find(|sample| sample.info().valid_data);
    Ok(match first {
        Some(sample) => Some(sample.view()?.number()),
        None => None,
    })
}

/// A listener that does not return for the length of a phase.
struct BlockingListener {
    watch: SharedWatch,
    timetable: Timetable,
    blocked_ns: Arc<AtomicU64>,
}

impl DataReaderListener<Probe> for BlockingListener {
    fn on_data_available(&mut self, reader: &DataReader<Probe>) {
        let began_ns = clock::monotonic_ns();
        if self.timetable.is_phase(began_ns, Phase::Listener) {
            while self
                .timetable
                .is_phase(clock::monotonic_ns(), Phase::Listener)
            {
                std::thread::sleep(POLL_EVERY);
            }
            let blocked_ns = clock::monotonic_ns() - began_ns;
            self.blocked_ns.fetch_max(blocked_ns, Ordering::AcqRel);
        }
        with(&self.watch, |watch| watch.take_all_quietly(reader));
    }
}

impl Findings {
    fn note_sent(&mut self, topic: &str, sent: Sent) {
        self.published.insert(topic.to_owned(), sent.samples);
        self.sent.insert(topic.to_owned(), sent.by_phase);
        self.longest_write_ns
            .insert(topic.to_owned(), sent.longest_write_ns);
    }

    fn note_seen<'a>(&mut self, readers: impl Iterator<Item = (&'static str, &'a Watched)>) {
        for (topic, reader) in readers {
            let seen = with(&reader.watch, |watch| watch.seen());
            self.seen.insert(topic.to_owned(), seen);
        }
    }
}

/// Takes until the first sample of A has said when the phases begin.
fn await_start<'a>(
    timetable: &Timetable,
    readers: impl Iterator<Item = &'a Watched> + Clone,
) -> Result<(), Failure> {
    while !timetable.is_known() {
        for reader in readers.clone() {
            reader.take_all()?;
        }
        std::thread::sleep(POLL_EVERY);
    }
    Ok(())
}

/// Deletes writers, once all readers have acknowledged all samples.
fn delete(entities: &Entities, writers: &[DataWriter<Probe>]) -> Result<(), Failure> {
    for writer in writers {
        writer.wait_for_acknowledgments(spindle_dds::Duration::INFINITE)?;
        entities.publisher.delete_datawriter(writer)?;
    }
    Ok(())
}

/// From the formation of the group to the first phase.
const LEAD: Duration = Duration::from_secs(1);
const PERIOD_OF_C_NS: u64 = 1_000_000;
const PERIOD_OF_D_NS: u64 = 500_000;
/// Messages; so few that the writer of C soon waits.
const RING_OF_C: u32 = 64;
const SAMPLES_OF_C: u32 = 16;
/// The reader publishes one sample of B where the writer publishes so many.
const SHARE_OF_B: u64 = 20;
