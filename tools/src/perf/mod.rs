//! `spindle perf`: measurements in processes of their own.
//!
//! This process starts one for each participant, tells it its [`Job`](job::Job) on the
//! command line, and gets back one line of JSON, its [`Answer`](job::Answer).

mod bystander;
mod children;
mod clock;
mod drill;
mod figures;
mod fleet;
mod idle;
mod job;
mod latency;
mod member;
mod options;
mod participant;
mod payload;
mod place;
mod reader;
mod throughput;
mod work;
mod worker;
mod writer;

use std::process::ExitCode;

pub(crate) use bystander::beside;
use options::{IdleOptions, LatencyOptions, ThroughputOptions, WorkOptions};

spindle_dds::include_idl!("perf");

/// What can be measured.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    /// Samples a second, with writers that send as fast as they can.
    Throughput(ThroughputOptions),
    /// Time from publishing to the subscriber, with writers that keep a pace.
    Latency(LatencyOptions),
    /// Processor time of participants that have nothing to do, and how fast they wake.
    Idle(IdleOptions),
    /// What a writer and readers do with all bytes of their samples, which go from one thread to
    /// others in blocks, with nothing said of any sample: what bytes cost without a middleware.
    Work(WorkOptions),
    /// A participant of a measurement.
    #[command(hide = true)]
    Worker {
        /// What it is to do, as JSON.
        job: String,
    },
}

/// Why there is no result.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error(transparent)]
    Dds(#[from] spindle_dds::Error),
    #[error(transparent)]
    Io(#[from] std::io::Error),
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    #[error(transparent)]
    Histogram(#[from] hdrhistogram::CreationError),
    #[error("{0}")]
    Workers(String),
    #[error("a sample came out of order: {found} of writer {writer}, not {wanted}")]
    OutOfOrder {
        writer: u32,
        found: u64,
        wanted: u64,
    },
    #[error("a sample of {found} bytes came, not of {wanted}")]
    WrongSize { found: usize, wanted: usize },
}

pub(crate) fn run(command: Command) -> ExitCode {
    let outcome = match command {
        Command::Throughput(options) => throughput::run(&options),
        Command::Latency(options) => latency::run(&options),
        Command::Idle(options) => idle::run(&options),
        Command::Work(options) => work::run(&options),
        Command::Worker { job } => return worker::run(&job),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("spindle perf: {failure}");
            ExitCode::FAILURE
        }
    }
}
