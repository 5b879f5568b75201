//! A real flight on several displays.
//!
//! One process starts all others:
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
//! Each display digests what it takes, in its own process, and the launcher compares.
#![forbid(unsafe_code)]

mod children;
mod clock;
mod digest;
mod display;
mod drill;
mod fault;
mod feed;
mod hosts;
mod journal;
mod launcher;
mod mode_s;
mod options;
mod recording;
mod report;
mod samples;
mod tracker;
mod verdict;

use std::process::ExitCode;

use clap::Parser;
use spindle_dds::DomainParticipant;

use options::{Options, Role};
use report::Line;

spindle_dds::include_idl!("flight");

/// Why a process of the example gives up.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error(transparent)]
    Recording(#[from] recording::RecordingError),
    #[error(transparent)]
    Dds(#[from] spindle_dds::Error),
    #[error(transparent)]
    Io(#[from] std::io::Error),
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    #[error("{0}")]
    Run(String),
}

fn main() -> ExitCode {
    let options = Options::parse();
    match options.role {
        Some(role) => one_of_many(&options, role),
        None => match launcher::run(&options) {
            Ok(true) => ExitCode::SUCCESS,
            Ok(false) => {
                eprintln!("flight_state: the displays did not see what they should");
                ExitCode::FAILURE
            }
            Err(failure) => {
                eprintln!("flight_state: {failure}");
                ExitCode::FAILURE
            }
        },
    }
}

/// A feed or a display.
fn one_of_many(options: &Options, role: Role) -> ExitCode {
    if options
        .parent
        .is_some_and(|parent| !children::die_with(parent))
    {
        return ExitCode::FAILURE;
    }
    // What the middleware tells of itself: by RUST_LOG, errors if nothing else is asked for.
    let filter = tracing_subscriber::EnvFilter::from_default_env();
    let told = tracing_subscriber::fmt().with_env_filter(filter);
    told.with_writer(std::io::stderr).init();
    let result = match role {
        Role::Feed(index) => feed::run(options, index).map(Line::Fed),
        Role::Display(_) => display::run(options).map(Line::Shown),
    };
    match result {
        Ok(line) => {
            line.send();
            ExitCode::SUCCESS
        }
        Err(failure) => {
            let error = failure.to_string();
            Line::Failed { error }.send();
            ExitCode::FAILURE
        }
    }
}

/// A participant, still disabled, with the QoS of the run.
fn join(options: &Options) -> Result<DomainParticipant, Failure> {
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
    if let Some(limit_ms) = options.fault.limit_ms {
        builder = builder.property("spindle.failure.limit_ms", &limit_ms.to_string());
    }
    Ok(builder.disabled().create()?)
}
