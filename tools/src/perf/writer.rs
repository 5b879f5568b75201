//! A writer: sends its samples as fast as it can, or at a fixed rate.

use spindle_dds::{DataWriter, Duration, Error, Publisher};

use super::figures::Counts;
use super::job::{Job, Report};
use super::logs::LogReport;
use super::options::HEADER_BYTES;
use super::participant::BLOCKING_S;
use super::perf::Probe;
use super::usage::Usage;
use super::{Failure, clock, participant, payload};

pub(super) fn run(job: &Job, index: u32) -> Result<Report, Failure> {
    let (participant, topic) = participant::create(job)?;
    let writer = participant::writer(job, &participant, &topic)?;
    let idle = participant::idle_topics(job, &participant)?;
    let _idle_writers = participant::idle_writers(job, &participant, &idle)?;
    let mut sender = Sender::new(job, index, writer);
    participant::enable(job, &participant)?;
    let usage = Usage::begin(job, &participant)?;
    let mut report = sender.send_all(job)?;
    // The counters then include everything. Returns at once for BEST_EFFORT.
    sender.wait_until_received(&mut report)?;
    usage.end(job, &participant, &mut report)?;
    report.counts = Counts::from(&participant.counters()?);
    report.log = LogReport::of(job, &participant)?;
    report.peers = participant::peer_paths(&participant)?;
    participant.close()?;
    Ok(report)
}

/// Sends samples as the job asks for.
#[derive(Debug)]
pub(super) struct Sender {
    writer: DataWriter<Probe>,
    index: u32,
    size: usize,
    fill: bool,
    /// Whether samples carry the time of sending.
    is_stamped: bool,
    /// The sample that is copied, if samples are copied.
    original: Option<Probe>,
    retries: u64,
}

impl Sender {
    pub(super) fn new(job: &Job, index: u32, writer: DataWriter<Probe>) -> Self {
        let original = job.copy.then(|| Probe {
            writer: index,
            payload: vec![0; job.size],
            ..Probe::default()
        });
        Self {
            writer,
            index,
            size: job.size,
            fill: job.fill,
            is_stamped: job.period_ns > 0 || job.scenario.is_stamped,
            original,
            retries: 0,
        }
    }

    /// Sends all samples of the job, at its rate if it has one.
    pub(super) fn send_all(&mut self, job: &Job) -> Result<Report, Failure> {
        let started_ns = clock::monotonic_ns();
        // Writers take turns within a period, so that no two samples are due at once.
        let writers = job.writers.max(1) as u64;
        let first_due_ns = started_ns + u64::from(self.index) * job.period_ns / writers;
        for number in 0..job.warm_up + job.samples {
            let due_at_ns = first_due_ns + number * job.period_ns;
            if job.period_ns > 0 {
                clock::wait_until(due_at_ns);
            }
            self.send(number, due_at_ns)?;
        }
        Ok(Report {
            samples: job.warm_up + job.samples,
            retries: self.retries,
            elapsed_ns: clock::monotonic_ns() - started_ns,
            ..Report::default()
        })
    }

    /// Waits until all matched readers have received the samples, if the writer is RELIABLE. Samples that
    /// are logged are on disk then.
    pub(super) fn wait_until_received(&self, report: &mut Report) -> Result<(), Failure> {
        let longest = Duration::from_secs(BLOCKING_S);
        let begun_ns = clock::monotonic_ns();
        self.writer.wait_for_acknowledgments(longest)?;
        report.on_disk_ns = report.elapsed_ns + (clock::monotonic_ns() - begun_ns);
        Ok(())
    }

    /// Deletes the writer, which has nothing more to send.
    pub(super) fn delete_from(&self, publisher: &Publisher) -> Result<(), Failure> {
        Ok(publisher.delete_datawriter(&self.writer)?)
    }

    /// Sends samples of the job until `done`, which is called after each of them and may block.
    pub(super) fn send_until(
        &mut self,
        job: &Job,
        done: impl Fn() -> bool,
    ) -> Result<Report, Failure> {
        let started_ns = clock::monotonic_ns();
        let mut sent = 0;
        while sent < job.samples {
            self.send(sent, 0)?;
            sent += 1;
            if done() {
                break;
            }
        }
        Ok(Report {
            samples: sent,
            retries: self.retries,
            elapsed_ns: clock::monotonic_ns() - started_ns,
            ..Report::default()
        })
    }

    /// Sends one sample, and retries until there is room.
    pub(super) fn send(&mut self, number: u64, due_at_ns: u64) -> Result<(), Failure> {
        let sent_at_ns = if self.is_stamped {
            clock::monotonic_ns()
        } else {
            0
        };
        loop {
            match &mut self.original {
                Some(sample) => {
                    sample.number = number;
                    sample.due_at_ns = due_at_ns;
                    sample.sent_at_ns = sent_at_ns;
                    payload::write(&mut sample.payload, number, self.fill);
                    self.writer.write(sample)?;
                }
                None => self.build(number, due_at_ns, sent_at_ns)?,
            }
            // A BEST_EFFORT writer does not wait for room: it drops the sample, and counts it.
            let dropped = self.writer.dropped_samples();
            if std::mem::replace(&mut self.retries, dropped) == dropped {
                return Ok(());
            }
            std::thread::yield_now();
        }
    }

    fn build(&self, number: u64, due_at_ns: u64, sent_at_ns: u64) -> Result<(), Error> {
        let mut sample = self.writer.loan_with(self.size + HEADER_BYTES as usize)?;
        sample
            .set_number(number)
            .set_due_at_ns(due_at_ns)
            .set_sent_at_ns(sent_at_ns)
            .set_writer(self.index);
        sample
            .payload_reuse_with(self.size, |payload| {
                payload::write(payload, number, self.fill)
            })?
            .publish()?;
        Ok(())
    }
}
