//! The participant of a worker, how a sample is sent, and how requests are read.

use std::io::{self, BufRead};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use serde::de::DeserializeOwned;
use spindle_dds::{DataWriter, DomainParticipant, ParticipantBuilder};

use super::Job;
use crate::Failure;
use crate::exchange::Probe;

/// A participant with the properties of the job, not created yet.
pub(crate) fn builder(job: &Job) -> ParticipantBuilder {
    let mut properties = vec![
        ("spindle.ring.messages", job.ring_messages.to_string()),
        ("spindle.ring.bytes", job.ring_bytes.to_string()),
        ("spindle.wait", job.wait.to_string()),
    ];
    if let Some(limit_ms) = job.limit_ms {
        properties.push(("spindle.failure.limit_ms", limit_ms.to_string()));
    }
    if let Some(host) = &job.host {
        properties.push(("spindle.listen", host.listen.clone()));
        properties.push(("spindle.contacts", host.contact.clone()));
        let rdma = if host.device.is_some() {
            "required"
        } else {
            "off"
        };
        properties.push(("spindle.rdma", rdma.to_owned()));
        let device = host.device.iter().cloned();
        properties.extend(device.map(|device| ("spindle.rdma.device", device)));
    }
    let directory = job.meeting_directory().to_string_lossy();
    let builder = DomainParticipant::builder(0).property("spindle.directory", &directory);
    let set =
        |builder: ParticipantBuilder, (name, value): (&str, String)| builder.property(name, &value);
    properties.into_iter().fold(builder, set)
}

/// Enables it, and blocks until all participants of the job are in the group.
pub(crate) fn enable(job: &Job, participant: &DomainParticipant) -> Result<(), Failure> {
    participant.enable()?;
    let others = job.participants.saturating_sub(1) as usize;
    while participant.discovered_participants()?.len() < others {
        thread::sleep(POLL_EVERY);
    }
    Ok(())
}

/// The requests on standard input, a line of JSON each, read by a thread. They end with the input, or
/// at a line that is no request.
pub(crate) fn requests<R: DeserializeOwned + Send + 'static>() -> Receiver<R> {
    let (sender, requests) = channel();
    thread::spawn(move || {
        for line in io::stdin().lock().lines().map_while(Result::ok) {
            let Ok(request) = serde_json::from_str(&line) else {
                return;
            };
            if sender.send(request).is_err() {
                return;
            }
        }
    });
    requests
}

/// Builds a sample in the ring and publishes it.
pub(crate) fn send(
    writer: &DataWriter<Probe>,
    writer_number: u32,
    number: u64,
    due_at_ns: u64,
    payload_len: usize,
) -> Result<(), Failure> {
    let mut sample = writer.loan_with(payload_len + SAMPLE_OVERHEAD)?;
    sample
        .set_writer(writer_number)
        .set_number(number)
        .set_due_at_ns(due_at_ns);
    sample.payload_reuse_with(payload_len, |_| {})?.publish()?;
    Ok(())
}

/// Bytes of a sample beside its payload, at most.
pub(crate) const SAMPLE_OVERHEAD: usize = 64;
/// Messages that a ring has room for, unless the job says otherwise.
pub(super) const RING_MESSAGES: u32 = 1024;
const POLL_EVERY: Duration = Duration::from_millis(1);
