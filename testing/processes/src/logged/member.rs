//! A participant with a log: it writes, and says what is acknowledged.

use std::io::{self, Write};
use std::process::ExitCode;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use spindle_dds::qos::{
    DataReaderQos, DataWriterQos, DurabilityKind, DurabilityService, HistoryKind, ReliabilityKind,
};

use crate::workers::Job;
use crate::workers::participant::{self, send};
use crate::{Failure, clock};

/// Which participant it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Role {
    pub(super) number: u32,
}

/// A line of its standard output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Line {
    /// So many samples of its writer, which this names, are acknowledged.
    Acknowledged { writer: String, samples: u64 },
    /// A write fails, as the logs take no samples: why.
    Shut(String),
    /// It gives up.
    Failed(String),
}

/// The topic.
pub(super) const TOPIC: &str = "Logged";

/// Samples between two waits for acknowledgements.
const SAMPLES_BETWEEN: u64 = 16;
/// How long one wait may take: before a round ends, too few logs may be there.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long one write may take before it says why.
const BLOCKED_MAX: spindle_dds::Duration = spindle_dds::Duration::from_millis(500);

pub(crate) fn work(job: &Job, role: Role) -> ExitCode {
    match write(job, role) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            print(&Line::Failed(failure.to_string()));
            ExitCode::FAILURE
        }
    }
}

/// Until it is killed.
fn write(job: &Job, role: Role) -> Result<(), Failure> {
    let log = job.directory.join(format!("log-{}", role.number));
    let builder =
        participant::builder(job).property("spindle.log.directory", &log.to_string_lossy());
    let participant = builder.disabled().create()?;
    let topic = participant.topic(TOPIC).create()?;
    let mut qos = DataWriterQos::default();
    qos.reliability.kind = ReliabilityKind::Reliable;
    qos.reliability.max_blocking_time = BLOCKED_MAX;
    qos.history.kind = HistoryKind::KeepAll;
    qos.durability = DurabilityKind::Persistent.into();
    qos.durability_service = DurabilityService {
        history_kind: HistoryKind::KeepAll,
        ..DurabilityService::default()
    };
    let publisher = participant.publisher().create()?;
    let writer = publisher.writer(&topic).qos(qos).create()?;
    let qos = DataReaderQos {
        durability: DurabilityKind::Persistent.into(),
        ..DataReaderQos::default()
    };
    let subscriber = participant.subscriber().create()?;
    let _reader = subscriber.reader(&topic).qos(qos).create()?;
    participant.enable()?;
    let name = format!("{:?}", writer.instance_handle());
    let mut samples = 0;
    let mut due_at_ns = clock::monotonic_ns();
    loop {
        for _ in 0..SAMPLES_BETWEEN {
            let send = || send(&writer, role.number, samples, due_at_ns, job.payload_len);
            while let Some(why) = timeout(send())? {
                print(&Line::Shut(why));
            }
            samples += 1;
            due_at_ns += job.period_ns;
            clock::sleep_until(due_at_ns);
        }
        writer.wait_for_acknowledgments(PATIENCE)?;
        print(&Line::Acknowledged {
            writer: name.clone(),
            samples,
        });
    }
}

/// The text of a TIMEOUT.
fn timeout(done: Result<(), Failure>) -> Result<Option<String>, Failure> {
    match done {
        Err(Failure::Dds(spindle_dds::Error::Timeout(why))) => Ok(Some(why)),
        done => done.map(|()| None),
    }
}

/// Prints a line. Without a main process that reads, it is lost, which is no failure.
fn print(line: &Line) {
    let mut out = io::stdout().lock();
    let _ = serde_json::to_writer(&mut out, line)
        .map_err(io::Error::from)
        .and_then(|()| out.write_all(b"\n"))
        .and_then(|()| out.flush());
}
