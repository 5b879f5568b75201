//! One participant of the crowd.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use spindle_dds::qos::{DataReaderQos, DataWriterQos, HistoryKind, ReliabilityKind};
use spindle_dds::{DataReader, StatusMask, WaitSet};

use crate::exchange::Probe;
use crate::resources::Resources;
use crate::workers::Job;
use crate::workers::participant::{builder, send};
use crate::{Failure, clock};

/// Which participant it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Role {
    /// One of many.
    Participant,
}

/// What a participant found. Times are of CLOCK_MONOTONIC.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Findings {
    pub(super) started_at_ns: u64,
    pub(super) entered_at_ns: u64,
    /// Number of the view when all samples had been taken.
    pub(super) view: u64,
    pub(super) taken: u64,
    pub(super) cpu_ns: u64,
    /// When all samples had been taken.
    pub(super) resources: Resources,
}

/// Does the work of one participant.
pub(crate) fn work(job: &Job, role: Role) -> Result<Findings, Failure> {
    let Role::Participant = role;
    let started_at_ns = clock::monotonic_ns();
    let participant = builder(job).disabled().create()?;
    let topic = participant.topic("Crowd").create()?;
    let (publisher, subscriber) = (
        participant.publisher().create()?,
        participant.subscriber().create()?,
    );
    let mut qos = DataWriterQos::default();
    qos.reliability.kind = ReliabilityKind::Reliable;
    qos.reliability.max_blocking_time = spindle_dds::Duration::INFINITE;
    qos.history.kind = HistoryKind::KeepAll;
    let writer = publisher.writer::<Probe>(&topic).qos(qos).create()?;
    let mut qos = DataReaderQos::default();
    qos.reliability.kind = ReliabilityKind::Reliable;
    qos.history.kind = HistoryKind::KeepAll;
    let reader = subscriber.reader(&topic).qos(qos).create()?;
    participant.enable()?;
    let entered_at_ns = clock::monotonic_ns();

    let all = i32::try_from(job.participants).unwrap_or(i32::MAX);
    let condition = reader.status_condition()?;
    condition.set_enabled_statuses(StatusMask::DATA_AVAILABLE | StatusMask::SUBSCRIPTION_MATCHED);
    let waits = WaitSet::new();
    waits.attach(&condition);
    while reader.subscription_matched_status()?.total_count < all
        || writer.publication_matched_status()?.total_count < all
    {
        wait_a_while(&waits)?;
    }
    for number in 0..job.samples {
        send(&writer, std::process::id(), number, 0, 0)?;
    }
    let mut taken = Taken::default();
    while taken.count < job.samples * u64::from(job.participants) {
        if !taken.take(&reader)? {
            wait_a_while(&waits)?;
        }
    }
    let findings = Findings {
        started_at_ns,
        entered_at_ns,
        view: participant.counters()?.view,
        taken: taken.count,
        resources: Resources::now()?,
        cpu_ns: clock::process_cpu_ns(),
    };
    let matched = [
        reader.subscription_matched_status()?.total_count,
        writer.publication_matched_status()?.total_count,
    ];
    if matched != [all; 2] {
        return Err(Failure::Run(format!(
            "it was matched with {matched:?} of {all}: a participant came twice"
        )));
    }
    participant.close()?;
    Ok(Findings {
        cpu_ns: clock::process_cpu_ns(),
        ..findings
    })
}

/// Samples that were taken.
#[derive(Debug, Default)]
struct Taken {
    count: u64,
    /// By writer: the number of its next sample.
    next: BTreeMap<u32, u64>,
}

impl Taken {
    /// Takes once. Whether there was anything.
    fn take(&mut self, reader: &DataReader<Probe>) -> Result<bool, Failure> {
        let samples = match reader.take(TAKE_MAX) {
            Ok(samples) => samples,
            Err(error) if error.is_no_data() => return Ok(false),
            Err(error) => return Err(error.into()),
        };
        for sample in samples.iter().filter(|sample| sample.info().valid_data) {
            let view = sample.view()?;
            let (writer, found) = (view.writer(), view.number());
            let next = self.next.entry(writer).or_default();
            if found != *next {
                let expected = *next;
                return Err(Failure::OutOfOrder {
                    writer,
                    found,
                    expected,
                });
            }
            *next += 1;
            self.count += 1;
        }
        Ok(true)
    }
}

/// Until something happens; a second at most, because a failed group shows only when its
/// entities are looked at.
fn wait_a_while(waits: &WaitSet) -> Result<(), Failure> {
    match waits.wait(WAIT_MAX) {
        Err(error) if !error.is_timeout() => Err(error.into()),
        _ => Ok(()),
    }
}

const WAIT_MAX: Duration = Duration::from_secs(1);
const TAKE_MAX: usize = 64;
