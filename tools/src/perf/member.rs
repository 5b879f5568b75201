//! A participant that writes and reads: it sends its samples, and takes those of all.

use std::sync::{Mutex, PoisonError};

use super::figures::Counts;
use super::job::{Job, Report};
use super::reader::Log;
use super::writer::Sender;
use super::{Failure, clock, participant};

pub(super) fn run(job: &Job, index: u32) -> Result<Report, Failure> {
    let (participant, topic) = participant::create(job)?;
    let writer = participant::writer(job, &participant, &topic)?;
    let (reader, log) = participant::logged_reader(job, &participant, &topic)?;
    let idle = participant::idle_topics(job, &participant)?;
    let _idle_writers = participant::idle_writers(job, &participant, &idle)?;
    let _idle_readers = participant::idle_readers(job, &participant, &idle)?;
    let mut sender = Sender::new(job, index, writer);
    participant::enable(job, &participant)?;
    let cpu_started_ns = clock::process_cpu_ns();
    let switches = clock::voluntary_switches()?;
    let mut written = sender.send_all(job)?;
    // Who has all samples may go: the others get them without it.
    let seen = |log: &Mutex<Log>| log.lock().unwrap_or_else(PoisonError::into_inner).is_all();
    participant::wait_until(&reader, &log, job.listener, |_| seen(&log))?;
    written.counts = Counts::from(&participant.counters()?);
    written.peers = participant::ways(&participant)?;
    let mut report = log.lock().unwrap_or_else(PoisonError::into_inner).report();
    report.cpu_ns = clock::process_cpu_ns() - cpu_started_ns;
    report.switches = clock::voluntary_switches()?.saturating_sub(switches);
    report.counts = written.counts;
    report.written = Some(Box::new(written));
    participant.close()?;
    Ok(report)
}
