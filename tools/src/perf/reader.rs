//! A reader: takes samples, checks their order, and measures their latency.

use std::sync::{Arc, Mutex, PoisonError};

use hdrhistogram::Histogram;
use spindle_dds::{DataReader, DataReaderListener, SubscriptionMatchedStatus};

use super::figures::{self, Counts, Latencies};
use super::job::{Job, Report};
use super::logs::LogReport;
use super::perf::Probe;
use super::scenario::Scenario;
use super::usage::Usage;
use super::{Failure, clock, participant, payload};

pub(super) fn run(job: &Job, index: u32) -> Result<Report, Failure> {
    let (participant, topic) = participant::create(job)?;
    let (reader, log) = participant::logged_reader(job, &participant, &topic)?;
    let silent = (index < job.silent).then(|| participant::writer(job, &participant, &topic));
    let _silent = silent.transpose()?;
    let idle = participant::idle_topics(job, &participant)?;
    let _idle_readers = participant::idle_readers(job, &participant, &idle)?;
    participant::enable(job, &participant)?;
    let usage = Usage::begin(job, &participant)?;
    let (all, silent) = (job.writers + job.silent as i32, job.silent as i32);
    let done = |matched: &SubscriptionMatchedStatus| {
        matched.total_count >= all && matched.current_count <= silent
    };
    let taken = match job.poll {
        true => participant::poll_until(&reader, &log, done),
        false => participant::wait_until(&reader, &log, job.listener, done),
    };
    taken.map_err(|failure| participant::explained(&participant, failure))?;
    let mut report = log.lock().unwrap_or_else(PoisonError::into_inner).report();
    usage.end(job, &participant, &mut report)?;
    report.counts = Counts::from(&participant.counters()?);
    report.log = LogReport::of(job, &participant)?;
    participant.close()?;
    Ok(report)
}

/// What a reader has taken.
pub(super) struct Log {
    copy: bool,
    fill: bool,
    size: usize,
    warm_up: u64,
    /// Whether latencies are measured.
    is_timed: bool,
    scenario: Scenario,
    /// Samples that each writer sends, with those to warm up.
    samples_per_writer: u64,
    /// Number of writers in each topic.
    writers: usize,
    /// For each writer, the number of its next sample.
    next: Vec<u64>,
    /// Whether a missing sample is an error.
    is_reliable: bool,
    samples: u64,
    lost: u64,
    started_ns: u64,
    ended_ns: u64,
    /// Sum of the bytes read.
    sum: u64,
    latency: Histogram<u64>,
    uncorrected: Histogram<u64>,
    /// Failure in a listener.
    failure: Option<Failure>,
}

/// A listener that takes all available samples.
#[derive(Clone)]
pub(super) struct Taker(pub(super) Arc<Mutex<Log>>);

impl DataReaderListener<Probe> for Taker {
    fn on_data_available(&mut self, reader: &DataReader<Probe>) {
        let mut log = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if log.scenario.is_upcall_once {
            clock::spin(log.scenario.upcall_ns);
        }
        if let Err(failure) = log.take_all(reader) {
            log.failure = Some(failure);
        }
    }
}

impl Log {
    pub(super) fn new(job: &Job) -> Result<Self, Failure> {
        Ok(Self {
            copy: job.copy,
            fill: job.fill,
            size: job.size,
            warm_up: job.warm_up,
            is_timed: job.period_ns > 0 || job.scenario.is_stamped,
            scenario: job.scenario,
            samples_per_writer: job.warm_up + job.samples,
            writers: usize::try_from(job.writers).unwrap_or(0),
            next: Vec::new(),
            is_reliable: job.level == super::options::Level::Atomic,
            samples: 0,
            lost: 0,
            started_ns: 0,
            ended_ns: 0,
            sum: 0,
            latency: figures::histogram()?,
            uncorrected: figures::histogram()?,
            failure: None,
        })
    }

    /// Takes all available samples. Fails if a listener has failed before.
    pub(super) fn take_all(&mut self, reader: &DataReader<Probe>) -> Result<(), Failure> {
        self.failure()?;
        while self.take_some(reader)? {}
        Ok(())
    }

    /// Takes some of the available samples. False if there are none.
    pub(super) fn take_some(&mut self, reader: &DataReader<Probe>) -> Result<bool, Failure> {
        let samples = match reader.take(TAKE_MAX) {
            Ok(samples) => samples,
            Err(error) if error.is_no_data() => return Ok(false),
            Err(error) => return Err(error.into()),
        };
        let before = self.samples;
        for sample in &samples {
            if !sample.info().valid_data {
                continue;
            }
            if self.copy {
                let data = sample.data()?;
                self.record(
                    data.writer,
                    data.number,
                    (data.due_at_ns, data.sent_at_ns),
                    &data.payload,
                )?;
            } else {
                let view = sample.view()?;
                self.record(
                    view.writer(),
                    view.number(),
                    (view.due_at_ns(), view.sent_at_ns()),
                    view.payload(),
                )?;
            }
        }
        if !self.is_timed && self.samples > before {
            self.ended_ns = clock::monotonic_ns();
        }
        Ok(true)
    }

    fn record(
        &mut self,
        writer: u32,
        number: u64,
        (due_at_ns, sent_at_ns): (u64, u64),
        payload: &[u8],
    ) -> Result<(), Failure> {
        if payload.len() != self.size {
            let (found, wanted) = (payload.len(), self.size);
            return Err(Failure::WrongSize { found, wanted });
        }
        self.sum = self.sum.wrapping_add(payload::sum(payload, self.fill));
        self.advance(writer, number)?;
        if !self.scenario.is_upcall_once {
            clock::spin(self.scenario.upcall_ns);
        }
        let is_prompt = self.scenario.is_prompt(writer as usize, self.writers);
        if number < self.warm_up || !is_prompt {
            return Ok(());
        }
        if self.is_timed || self.samples == 0 {
            let now_ns = clock::monotonic_ns();
            self.ended_ns = now_ns;
            if self.started_ns == 0 {
                self.started_ns = now_ns;
            }
            if self.is_timed {
                self.latency
                    .saturating_record(now_ns.saturating_sub(due_at_ns));
                self.uncorrected
                    .saturating_record(now_ns.saturating_sub(sent_at_ns));
            }
        }
        self.samples += 1;
        Ok(())
    }

    /// Checks that samples of a writer come in its order, with gaps only if it is BEST_EFFORT.
    fn advance(&mut self, writer: u32, number: u64) -> Result<(), Failure> {
        let index = writer as usize;
        if index >= self.next.len() && index < WRITERS_MAX {
            self.next.resize(index + 1, 0);
        }
        let wanted = self.next.get(index).copied().unwrap_or(u64::MAX);
        if number < wanted || (number > wanted && self.is_reliable) {
            return Err(Failure::OutOfOrder {
                writer,
                found: number,
                wanted,
            });
        }
        self.lost += number - wanted;
        self.next[index] = number + 1;
        Ok(())
    }

    /// Whether all measured samples have been taken.
    pub(super) fn is_all(&self) -> bool {
        let all = self.writers * (1 + self.scenario.more_topics as usize);
        let mut measured = (0..all).filter(|it| self.scenario.is_prompt(*it, self.writers));
        measured.all(|writer| self.next.get(writer) == Some(&self.samples_per_writer))
    }

    /// Starts the clock now instead of at the first sample.
    pub(super) fn start(&mut self) {
        self.started_ns = clock::monotonic_ns();
    }

    /// The failure of a listener, once.
    pub(super) fn failure(&mut self) -> Result<(), Failure> {
        self.failure.take().map_or(Ok(()), Err)
    }

    pub(super) fn report(&self) -> Report {
        // The black box keeps the compiler from removing the reads.
        std::hint::black_box(self.sum);
        let unseen: u64 = self
            .next
            .iter()
            .enumerate()
            .filter(|(writer, _)| self.scenario.is_prompt(*writer, self.writers))
            .map(|(_, next)| self.samples_per_writer.saturating_sub(*next))
            .sum();
        Report {
            samples: self.samples,
            lost: self.lost + unseen,
            elapsed_ns: self.ended_ns.saturating_sub(self.started_ns),
            latency: Latencies::from(&self.latency),
            uncorrected: Latencies::from(&self.uncorrected),
            ..Report::default()
        }
    }
}

const TAKE_MAX: usize = 256;
const WRITERS_MAX: usize = 1024;
