//! A member: sends its samples, unless it only reads, and takes the samples of all members.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use spindle_dds::{DataReader, DataWriter, DomainParticipant, Publisher};

use super::figures::Counts;
use super::idle::{SETTLE, Traffic, settled};
use super::job::{Job, Report};
use super::logs::LogReport;
use super::options::Durability;
use super::perf::Probe;
use super::reader::Log;
use super::scenario::Last;
use super::usage::Usage;
use super::writer::Sender;
use super::{Failure, clock, participant, rendezvous};

pub(super) fn run(job: &Job, index: u32) -> Result<Report, Failure> {
    let participant = participant::disabled(job)?;
    let topics = participant::measured_topics(job, &participant)?;
    let publisher = participant.publisher().create()?;
    let sends = i64::from(index) < i64::from(job.writers);
    let writers = topics
        .iter()
        .filter(|_| sends)
        .map(|topic| participant::writer_of(job, &publisher, topic))
        .collect::<Result<Vec<_>, _>>()?;
    let log = Arc::new(Mutex::new(Log::new(job)?));
    let readers = participant::logged_readers(job, &participant, &topics, &log)?;
    let idle = participant::idle_topics(job, &participant)?;
    let _idle_writers = participant::idle_writers(job, &participant, &idle)?;
    let _idle_readers = participant::idle_readers(job, &participant, &idle)?;
    participant::enable(job, &participant)?;
    let usage = Usage::begin(job, &participant)?;
    // A sample before all have begun to count would be missing in their figures.
    rendezvous::wait(job, "counting")?;
    if let Last::SilentNs(_) = job.scenario.last {
        // Without nulls, a silent writer that is first in the order blocks the others' samples
        // until it is deleted: the clock has to run before.
        log.lock().unwrap_or_else(PoisonError::into_inner).start();
    }
    let member = Member {
        job,
        index,
        publisher,
        log,
    };
    let explained = |failure| participant::explained(&participant, failure);
    let mut written = member.send(writers).map_err(explained)?;
    // A member that has received all samples may leave: the others receive them without it. But logs that
    // are too few acknowledge nothing.
    member.wait(&readers).map_err(explained)?;
    if job.durability == Durability::Persistent {
        rendezvous::wait(job, "acknowledged")?;
    }
    written.counts = Counts::from(&participant.counters()?);
    written.peers = participant::peer_paths(&participant)?;
    let mut report = member.log().report();
    usage.end(job, &participant, &mut report)?;
    report.counts = written.counts.clone();
    report.log = LogReport::of(job, &participant)?;
    written.idle_traffic = stay(job, &participant)?;
    report.written = sends.then(|| Box::new(written));
    participant.close()?;
    Ok(report)
}

struct Member<'a> {
    job: &'a Job,
    index: u32,
    publisher: Publisher,
    log: Arc<Mutex<Log>>,
}

impl Member<'_> {
    fn log(&self) -> std::sync::MutexGuard<'_, Log> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends in all topics, with one thread per topic.
    fn send(&self, writers: Vec<DataWriter<Probe>>) -> Result<Report, Failure> {
        let sent = std::thread::scope(|scope| {
            let threads = (0..).zip(writers).map(|(topic, writer)| {
                let index = self.index + topic * self.job.writers as u32;
                scope.spawn(move || self.send_in(index, writer))
            });
            let threads: Vec<_> = threads.collect();
            let sent = threads.into_iter().map(|thread| match thread.join() {
                Ok(sent) => sent,
                Err(panic) => std::panic::resume_unwind(panic),
            });
            sent.collect::<Result<Vec<Report>, Failure>>()
        })?;
        Ok(merged(sent))
    }

    fn send_in(&self, index: u32, writer: DataWriter<Probe>) -> Result<Report, Failure> {
        let is_prompt = |index| {
            let writers = self.job.writers as usize;
            self.job.scenario.is_prompt(index as usize, writers)
        };
        match self.job.scenario.last {
            Last::DelayedNs(ns) if !is_prompt(index) => {
                let mut sender = Sender::new(self.job, index, writer);
                sender.send_until(self.job, || {
                    clock::wait_yielding(ns);
                    self.log().is_all()
                })
            }
            Last::SleepsNs(ns) if !is_prompt(index) => {
                clock::minimise_timer_slack()?;
                let mut sender = Sender::new(self.job, index, writer);
                sender.send_until(self.job, || {
                    std::thread::sleep(Duration::from_nanos(ns));
                    self.log().is_all()
                })
            }
            Last::SilentNs(ns) if !is_prompt(index) => {
                let until_ns = clock::monotonic_ns() + ns;
                while !self.log().is_all() && clock::monotonic_ns() < until_ns {
                    std::thread::sleep(LOOK_AGAIN_AFTER);
                }
                self.publisher.delete_datawriter(&writer)?;
                Ok(Report::default())
            }
            Last::SilentNs(ns) => {
                let until_ns = clock::monotonic_ns() + ns + REST_NS;
                let mut sender = Sender::new(self.job, index, writer);
                let sent = sender.send_all(self.job)?;
                while !self.log().is_all() && clock::monotonic_ns() < until_ns {
                    std::thread::sleep(LOOK_AGAIN_AFTER);
                }
                // Without nulls a writer that sends no more blocks the others.
                if !self.log().is_all() {
                    sender.delete_from(&self.publisher)?;
                }
                Ok(sent)
            }
            _ => {
                let mut sender = Sender::new(self.job, index, writer);
                let mut sent = sender.send_all(self.job)?;
                if self.job.durability == Durability::Persistent {
                    sender.wait_until_received(&mut sent)?;
                }
                Ok(sent)
            }
        }
    }

    /// Waits until all samples have been taken.
    fn wait(&self, readers: &[DataReader<Probe>]) -> Result<(), Failure> {
        for looks in 1_u32.. {
            if self.log().is_all() {
                break;
            }
            self.log().failure()?;
            // A failed group is reported when samples are taken.
            if looks % TAKE_EVERY == 0 {
                for reader in readers {
                    self.log().take_all(reader)?;
                }
            }
            std::thread::sleep(LOOK_AGAIN_AFTER);
        }
        Ok(())
    }
}

/// The sum over the topics in which a member has sent.
fn merged(sent: impl IntoIterator<Item = Report>) -> Report {
    let sent = sent.into_iter();
    sent.fold(Report::default(), |all, one| Report {
        samples: all.samples + one.samples,
        retries: all.retries + one.retries,
        elapsed_ns: all.elapsed_ns.max(one.elapsed_ns),
        on_disk_ns: all.on_disk_ns.max(one.on_disk_ns),
        ..all
    })
}

/// Stays idle for the time that the job asks for, and counts the pushes.
fn stay(job: &Job, participant: &DomainParticipant) -> Result<Traffic, Failure> {
    if job.scenario.still_ns == 0 {
        return Ok(Traffic::default());
    }
    let before = settled(participant)?;
    std::thread::sleep(Duration::from_nanos(job.scenario.still_ns));
    let pushed = Traffic::of(participant)?.since(&before);
    // The others end a little later: they would count the pushes of this member's leave.
    std::thread::sleep(2 * SETTLE);
    Ok(pushed)
}

/// Time for the last samples after the silent member has deleted its writer.
const REST_NS: u64 = 500_000_000;
const LOOK_AGAIN_AFTER: Duration = Duration::from_millis(2);
/// Once a second.
const TAKE_EVERY: u32 = 500;
