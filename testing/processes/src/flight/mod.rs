//! `processes flight`: a recorded flight on several displays, with faults.
//!
//! The launcher starts all other processes:
//!
//! ```text
//!                      feed 0  (even frames)        feed 1  (odd frames)
//!                        |  AircraftState, Alert      |
//!                        +-------------+--------------+
//!                                      | atomic multicast: one order
//!                     +----------------+-----------------+
//!                 display 0        display 1         display 2
//! ```
//!
//! Each display digests the samples that it takes, in its own process, and the launcher
//! compares. A run with a fault also compares sample by sample: each display keeps a journal. What
//! a display has that joined late, or came back, is what its profile keeps.

mod digest;
mod display;
mod fault;
mod fault_sequence;
mod feed;
mod journal;
mod kept;
mod launcher;
mod logs;
mod mode_s;
mod options;
mod recording;
mod report;
mod returned;
mod samples;
mod tables;
mod tracker;
mod verdict;

use std::process::ExitCode;

use spindle_dds::DomainParticipant;
use spindle_dds_children::die_with_parent;

pub(crate) use self::options::Options;
use self::options::Role;
pub(crate) use self::recording::RecordingError;
use self::report::Line;
use crate::Failure;

/// Is the launcher, or one process of a run.
pub(crate) fn run(options: &Options) -> ExitCode {
    match options.role {
        Some(role) => run_role(options, role),
        None => match launcher::run(options) {
            Ok(true) => ExitCode::SUCCESS,
            Ok(false) => {
                eprintln!("processes flight: the displays did not see what they should");
                ExitCode::FAILURE
            }
            Err(failure) => {
                eprintln!("processes flight: {failure}");
                ExitCode::FAILURE
            }
        },
    }
}

/// A feed or a display.
fn run_role(options: &Options, role: Role) -> ExitCode {
    if options
        .parent
        .is_some_and(|parent| !die_with_parent(parent))
    {
        return ExitCode::FAILURE;
    }
    // What the middleware logs, filtered by RUST_LOG: errors alone by default.
    let filter = tracing_subscriber::EnvFilter::from_default_env();
    let subscriber = tracing_subscriber::fmt().with_env_filter(filter);
    subscriber.with_writer(std::io::stderr).init();
    let result = match role {
        Role::Feed(index) => feed::run(options, index).map(Line::Fed),
        Role::Display(_) => display::run(options).map(Line::Shown),
    };
    match result {
        Ok(line) => {
            line.print();
            ExitCode::SUCCESS
        }
        Err(failure) => {
            let error = failure.to_string();
            Line::Failed { error }.print();
            ExitCode::FAILURE
        }
    }
}

/// A participant, still disabled, with the QoS of the run.
fn create_participant(options: &Options) -> Result<DomainParticipant, Failure> {
    let mut builder = DomainParticipant::builder(options.domain.unwrap_or(0))
        .qos_profiles(&options.qos)?
        .profile(&options.profile);
    if let Some(directory) = &options.directory {
        builder = builder.property("spindle.directory", &directory.to_string_lossy());
    }
    let device = options.devices.first();
    let network = [
        ("spindle.listen", options.listen.as_deref()),
        ("spindle.contacts", options.contacts.as_deref()),
        ("spindle.rdma", device.map(|_| "required")),
        ("spindle.rdma.device", device.map(String::as_str)),
    ];
    for (name, value) in network {
        if let Some(value) = value {
            builder = builder.property(name, value);
        }
    }
    if let (Some(Role::Display(index)), Some(logs)) = (options.role, &options.logs) {
        let directory = logs::directory(logs, index);
        builder = builder.property("spindle.log.directory", &directory.to_string_lossy());
    }
    if let Some(limit_ms) = options.fault.limit_ms {
        builder = builder.property("spindle.failure.limit_ms", &limit_ms.to_string());
    }
    Ok(builder.disabled().create()?)
}
