//! A reader: takes samples as they come, checks them, and times them.

use std::sync::{Arc, Mutex, PoisonError};

use hdrhistogram::Histogram;
use spindle_dds::{DataReader, DataReaderListener, SubscriptionMatchedStatus};

use super::drill::Drill;
use super::figures::{self, Counts, Latencies};
use super::job::{Job, Report};
use super::perf::Probe;
use super::{Failure, clock, participant, payload};

pub(super) fn run(job: &Job, index: u32) -> Result<Report, Failure> {
    let (participant, topic) = participant::create(job)?;
    let (reader, log) = participant::logged_reader(job, &participant, &topic)?;
    let silent = (index < job.silent).then(|| participant::writer(job, &participant, &topic));
    let _silent = silent.transpose()?;
    let idle = participant::idle_topics(job, &participant)?;
    let _idle_readers = participant::idle_readers(job, &participant, &idle)?;
    participant::enable(job, &participant)?;
    let cpu_started_ns = clock::process_cpu_ns();
    let switches = clock::voluntary_switches()?;
    let (all, silent) = (job.writers + job.silent as i32, job.silent as i32);
    let done = |matched: &SubscriptionMatchedStatus| {
        matched.total_count >= all && matched.current_count <= silent
    };
    match job.poll {
        true => participant::poll_until(&reader, &log, done)?,
        false => participant::wait_until(&reader, &log, job.listener, done)?,
    }
    let mut report = log.lock().unwrap_or_else(PoisonError::into_inner).report();
    report.cpu_ns = clock::process_cpu_ns() - cpu_started_ns;
    report.switches = clock::voluntary_switches()?.saturating_sub(switches);
    report.counts = Counts::from(&participant.counters()?);
    participant.close()?;
    Ok(report)
}

/// What a reader has seen.
pub(super) struct Log {
    copy: bool,
    fill: bool,
    size: usize,
    warm_up: u64,
    timed: bool,
    drill: Drill,
    /// What each writer is to send in all, and what comes next of it.
    each: u64,
    /// In each topic.
    writers: usize,
    next: Vec<u64>,
    /// Whether none may be missing.
    complete: bool,
    samples: u64,
    lost: u64,
    started_ns: u64,
    ended_ns: u64,
    sum: u64,
    latency: Histogram<u64>,
    uncorrected: Histogram<u64>,
    failure: Option<Failure>,
}

/// Takes whatever is there.
#[derive(Clone)]
pub(super) struct Taker(pub(super) Arc<Mutex<Log>>);

impl DataReaderListener<Probe> for Taker {
    fn on_data_available(&mut self, reader: &DataReader<Probe>) {
        let mut log = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if log.drill.upcall_once {
            clock::spin(log.drill.upcall_ns);
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
            timed: job.period_ns > 0 || job.drill.stamped,
            drill: job.drill,
            each: job.warm_up + job.samples,
            writers: usize::try_from(job.writers).unwrap_or(0),
            next: Vec::new(),
            complete: job.level == super::options::Level::Atomic,
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

    /// Takes until nothing is left. Nothing more after a failure.
    pub(super) fn take_all(&mut self, reader: &DataReader<Probe>) -> Result<(), Failure> {
        self.failure()?;
        while self.take_some(reader)? {}
        Ok(())
    }

    /// Takes what is there, up to a limit; whether there was any.
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
                self.look_at(
                    data.writer,
                    data.number,
                    (data.due_at_ns, data.sent_at_ns),
                    &data.payload,
                )?;
            } else {
                let view = sample.view()?;
                self.look_at(
                    view.writer(),
                    view.number(),
                    (view.due_at_ns(), view.sent_at_ns()),
                    view.payload(),
                )?;
            }
        }
        if !self.timed && self.samples > before {
            self.ended_ns = clock::monotonic_ns();
        }
        Ok(true)
    }

    fn look_at(
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
        if !self.drill.upcall_once {
            clock::spin(self.drill.upcall_ns);
        }
        let is_prompt = self.drill.is_prompt(writer as usize, self.writers);
        if number < self.warm_up || !is_prompt {
            return Ok(());
        }
        if self.timed || self.samples == 0 {
            let now_ns = clock::monotonic_ns();
            self.ended_ns = now_ns;
            if self.started_ns == 0 {
                self.started_ns = now_ns;
            }
            if self.timed {
                self.latency
                    .saturating_record(now_ns.saturating_sub(due_at_ns));
                self.uncorrected
                    .saturating_record(now_ns.saturating_sub(sent_at_ns));
            }
        }
        self.samples += 1;
        Ok(())
    }

    /// Samples of one writer come in its order; only BEST_EFFORT may leave some out.
    fn advance(&mut self, writer: u32, number: u64) -> Result<(), Failure> {
        let index = writer as usize;
        if index >= self.next.len() && index < WRITERS_MAX {
            self.next.resize(index + 1, 0);
        }
        let wanted = self.next.get(index).copied().unwrap_or(u64::MAX);
        if number < wanted || (number > wanted && self.complete) {
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

    /// Whether all samples that are measured have been taken.
    pub(super) fn is_all(&self) -> bool {
        let all = self.writers * (1 + self.drill.more_topics as usize);
        let mut measured = (0..all).filter(|it| self.drill.is_prompt(*it, self.writers));
        measured.all(|writer| self.next.get(writer) == Some(&self.each))
    }

    /// Starts the clock now, and not at the first sample.
    pub(super) fn start(&mut self) {
        self.started_ns = clock::monotonic_ns();
    }

    /// What a listener has run into, and can tell nobody.
    pub(super) fn failure(&mut self) -> Result<(), Failure> {
        self.failure.take().map_or(Ok(()), Err)
    }

    pub(super) fn report(&self) -> Report {
        // A black box for the sum, so that reading is not optimised away.
        std::hint::black_box(self.sum);
        let unseen: u64 = self
            .next
            .iter()
            .enumerate()
            .filter(|(writer, _)| self.drill.is_prompt(*writer, self.writers))
            .map(|(_, next)| self.each.saturating_sub(*next))
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
