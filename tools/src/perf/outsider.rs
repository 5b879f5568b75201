//! A participant that has nothing to do with what is measured: it writes and reads a topic of its
//! own, slowly, on a host that may be far.

use std::time::Duration;

use super::Failure;
use super::job::{Job, Report};
use super::participant;
use super::writer::Sender;

pub(super) fn run(job: &Job) -> Result<Report, Failure> {
    let participant = participant::disabled(job)?;
    let topic = participant.topic(TOPIC).create()?;
    let writer = participant::writer(job, &participant, &topic)?;
    let (reader, log) = participant::logged_reader(job, &participant, &topic)?;
    let mut sender = Sender::new(job, 0, writer);
    participant::enable(job, &participant)?;
    // Until the measurement is over.
    for number in 0.. {
        if participant.discovered_participants()?.is_empty() {
            break;
        }
        sender.send(number, 0)?;
        std::thread::sleep(PAUSE);
        let mut log = log
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        log.take_all(&reader)?;
    }
    participant.close()?;
    Ok(Report::default())
}

pub(super) const TOPIC: &str = "Aside";
const PAUSE: Duration = Duration::from_millis(10);
