//! The entities of the participants, and what a reader checks.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use spindle_dds::qos::{DataReaderQos, DataWriterQos, HistoryKind, ReliabilityKind};
use spindle_dds::{
    DataReader, DataReaderBuilder, DataReaderListener, DataWriter, DomainParticipant, Error,
    Publisher, StatusMask, Subscriber, Topic,
};

use super::super::job::Job;
use super::super::options::HEADER_BYTES;
use super::super::perf::Probe;
use super::super::{Failure, clock, participant};

pub(super) const BUSY: &str = "Busy";
pub(super) const CALM: &str = "Calm";
pub(super) const FAR: &str = "Far";
/// One sample, which says when it begins.
pub(super) const START: &str = "Start";
/// One sample of each that has counted what it has.
pub(super) const COUNTED: &str = "Counted";

/// A participant, still disabled, with topics that share no subgroup.
pub(super) struct Entities {
    pub(super) participant: DomainParticipant,
    pub(super) publisher: Publisher,
    pub(super) subscriber: Subscriber,
    topics: BTreeMap<&'static str, Topic<Probe>>,
}

impl Entities {
    pub(super) fn new(job: &Job) -> Result<Self, Failure> {
        let names = [BUSY, CALM, FAR, START, COUNTED];
        let mut builder = participant::builder(job);
        for (name, subgroup) in names.iter().zip(1..) {
            let pin = format!("spindle.topic.{name}.subgroup");
            builder = builder.property(&pin, &u32::to_string(&subgroup));
        }
        let participant = builder.disabled().create()?;
        let mut topics = BTreeMap::new();
        for name in names {
            topics.insert(name, participant.topic(name).create()?);
        }
        Ok(Self {
            topics,
            publisher: participant.publisher().create()?,
            subscriber: participant.subscriber().create()?,
            participant,
        })
    }

    /// A RELIABLE, KEEP_ALL writer.
    pub(super) fn writer(&self, topic: &str) -> Result<DataWriter<Probe>, Failure> {
        let mut qos = DataWriterQos::default();
        qos.reliability.kind = ReliabilityKind::Reliable;
        qos.reliability.max_blocking_time = spindle_dds::Duration::INFINITE;
        qos.history.kind = HistoryKind::KeepAll;
        let topic = &self.topics[topic];
        Ok(self.publisher.writer(topic).qos(qos).create()?)
    }

    /// A RELIABLE, KEEP_ALL reader, and what its listener takes.
    pub(super) fn reader(
        &self,
        topic: &str,
        watch: &SharedWatch,
    ) -> Result<DataReader<Probe>, Failure> {
        let taker = Taker(watch.clone());
        let builder = self.builder(topic);
        Ok(builder
            .listener(StatusMask::DATA_AVAILABLE, taker)
            .create()?)
    }

    /// The same without a listener.
    pub(super) fn quiet_reader(&self, topic: &str) -> Result<DataReader<Probe>, Failure> {
        Ok(self.builder(topic).create()?)
    }

    fn builder(&self, topic: &str) -> DataReaderBuilder<'_, Probe> {
        let mut qos = DataReaderQos::default();
        qos.reliability.kind = ReliabilityKind::Reliable;
        qos.history.kind = HistoryKind::KeepAll;
        self.subscriber.reader(&self.topics[topic]).qos(qos)
    }
}

/// Builds one sample in place and publishes it.
pub(super) fn send(
    writer: &DataWriter<Probe>,
    guest: u32,
    number: u64,
    due_at_ns: u64,
    size: usize,
) -> Result<(), Failure> {
    let mut sample = writer.loan_with(size + HEADER_BYTES as usize)?;
    sample
        .set_writer(guest)
        .set_number(number)
        .set_due_at_ns(due_at_ns);
    sample.payload_reuse_with(size, |_| {})?.publish()?;
    Ok(())
}

/// What a reader got.
#[derive(Debug, Default)]
pub(super) struct Watch {
    /// By writer: the next number, and how many came.
    writers: BTreeMap<u32, (u64, u64)>,
    /// Whether writers are to be heard from their first sample on.
    from_first: bool,
    /// When the last ones were taken.
    pub(super) taken_at_ns: u64,
    /// `due_at_ns` of the last sample.
    pub(super) due_at_ns: u64,
    /// How many were taken up to these times.
    pub(super) counted: Vec<(u64, u64)>,
    /// From and to: longer times in which nothing came.
    pub(super) gaps_ns: Vec<(u64, u64)>,
    failure: Option<Failure>,
}

/// A watch that a listener and a thread have in common.
pub(super) type SharedWatch = Arc<Mutex<Watch>>;

/// Does something with a watch.
pub(super) fn with<R>(watch: &SharedWatch, work: impl FnOnce(&mut Watch) -> R) -> R {
    work(&mut watch.lock().unwrap_or_else(PoisonError::into_inner))
}

impl Watch {
    /// Of a reader that is there before any writer.
    pub(super) fn of_all() -> Self {
        Self {
            from_first: true,
            ..Self::default()
        }
    }

    /// The same, for a listener and a thread.
    pub(super) fn from_first() -> SharedWatch {
        Arc::new(Mutex::new(Self::of_all()))
    }

    /// Of one that may come later than its writers.
    pub(super) fn from_any() -> SharedWatch {
        SharedWatch::default()
    }

    /// Takes until nothing is left.
    pub(super) fn take_all(&mut self, reader: &DataReader<Probe>) -> Result<(), Failure> {
        while self.take_some(reader)? {}
        Ok(())
    }

    /// Takes once. Whether there was anything.
    pub(super) fn take_some(&mut self, reader: &DataReader<Probe>) -> Result<bool, Failure> {
        let samples = match reader.take(TAKE_MAX) {
            Ok(samples) => samples,
            Err(error) if error.is_no_data() => return Ok(false),
            // A listener may be called while its reader is deleted.
            Err(Error::AlreadyDeleted(_)) => return Ok(false),
            Err(error) => return Err(error.into()),
        };
        let now_ns = clock::monotonic_ns();
        let mut count = 0;
        for sample in samples.iter().filter(|sample| sample.info().valid_data) {
            let view = sample.view()?;
            self.due_at_ns = view.due_at_ns();
            self.note(view.writer(), view.number())?;
            count += 1;
        }
        if count > 0 {
            self.count(now_ns, count);
        }
        Ok(true)
    }

    fn note(&mut self, writer: u32, found: u64) -> Result<(), Failure> {
        let first = if self.from_first { 0 } else { found };
        let (next, count) = self.writers.entry(writer).or_insert((first, 0));
        let wanted = std::mem::replace(next, found + 1);
        *count += 1;
        match found == wanted {
            true => Ok(()),
            false => Err(Failure::OutOfOrder {
                writer,
                found,
                wanted,
            }),
        }
    }

    fn count(&mut self, now_ns: u64, samples: u64) {
        let since_ns = std::mem::replace(&mut self.taken_at_ns, now_ns);
        if since_ns > 0 && now_ns - since_ns >= GAP_NS {
            self.gaps_ns.push((since_ns, now_ns));
        }
        match self.counted.last_mut() {
            Some((until_ns, count)) if now_ns / SLICE_NS == *until_ns / SLICE_NS => {
                *count += samples;
            }
            _ => self.counted.push((now_ns, samples)),
        }
    }

    /// Samples of writer 0, and of all others.
    pub(super) fn samples(&self) -> (u64, u64) {
        let own = self.writers.get(&0).map_or(0, |(_, count)| *count);
        let all: u64 = self.writers.values().map(|(_, count)| *count).sum();
        (own, all - own)
    }

    /// Samples that came in a stretch of time.
    pub(super) fn samples_in(&self, (from_ns, to_ns): (u64, u64)) -> u64 {
        let slices = self.counted.iter();
        let within = slices.filter(|(at_ns, _)| (from_ns..to_ns).contains(at_ns));
        within.map(|(_, count)| *count).sum()
    }

    /// Forgets when what came: that would grow for ever.
    pub(super) fn forget_times(&mut self) {
        self.counted.clear();
        self.gaps_ns.clear();
    }

    /// What went wrong in the listener.
    pub(super) fn check(&mut self) -> Result<(), Failure> {
        self.failure.take().map_or(Ok(()), Err)
    }
}

/// Takes whatever is there.
struct Taker(SharedWatch);

impl DataReaderListener<Probe> for Taker {
    fn on_data_available(&mut self, reader: &DataReader<Probe>) {
        with(&self.0, |watch| {
            if let Err(failure) = watch.take_all(reader) {
                watch.failure.get_or_insert(failure);
            }
        });
    }
}

const TAKE_MAX: usize = 256;
/// What is no gap.
const GAP_NS: u64 = 200_000;
/// Samples are counted by parts of time this long.
const SLICE_NS: u64 = 1_000_000;
