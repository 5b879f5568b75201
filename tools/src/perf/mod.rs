//! `spindle perf`: measurements with a process for each participant.
//!
//! The parent starts the workers, passes each its [`Job`](job::Job) on the command line, and
//! reads one line of JSON from it, its [`Answer`](spindle_dds_children::Answer). The processes of
//! [`scale`] do one thing after the other, all together, and so follow orders.

mod bystander;
mod clock;
mod figures;
mod fleet;
mod idle;
mod job;
mod latency;
mod logs;
mod member;
mod netns;
mod options;
mod outsider;
mod participant;
mod payload;
mod per_host;
mod place;
mod plain_log;
mod reader;
mod rendezvous;
mod run_directory;
mod scale;
mod scenario;
mod throughput;
mod usage;
mod work;
mod worker;
mod writer;

use std::io::{self, StdoutLock, Write};
use std::process::ExitCode;

use netns::NetnsOptions;
use options::{IdleOptions, LatencyOptions, ThroughputOptions, WorkOptions};
use scale::ScaleOptions;
use serde::Serialize;
use spindle_dds_children::netns::NetworkError;

spindle_dds::include_idl!("perf");

/// The measurements.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    /// Samples per second, with writers that send as fast as they can.
    Throughput(ThroughputOptions),
    /// Latency from writer to reader, with writers that keep a fixed rate.
    Latency(LatencyOptions),
    /// Processor time of idle participants, and the latency of waking them.
    Idle(IdleOptions),
    /// Throughput or latency between hosts that are network namespaces, over links that delay and
    /// lose packets. As root.
    Netns(Box<NetnsOptions>),
    /// Time until many participants with many topics match, and the memory that they take.
    Scale(ScaleOptions),
    /// The cost of the bytes alone: threads hand blocks of samples to each other, and write and
    /// sum every byte, without any middleware.
    Work(WorkOptions),
    /// A worker process of a measurement.
    #[command(hide = true)]
    Worker {
        /// The worker's job as JSON.
        job: String,
    },
    /// A process of `scale`.
    #[command(hide = true)]
    ScaleWorker {
        /// Its job as JSON.
        job: String,
    },
}

/// Reasons for a measurement to fail.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error(transparent)]
    Dds(#[from] spindle_dds::Error),
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    #[error(transparent)]
    Histogram(#[from] hdrhistogram::CreationError),
    #[error(transparent)]
    Fleet(#[from] spindle_dds_children::WorkersError),
    #[error(transparent)]
    Network(#[from] NetworkError),
    #[error("{0}")]
    Workers(String),
    #[error("out of order: sample {found} of writer {writer}, expected {wanted}")]
    OutOfOrder {
        writer: u32,
        found: u64,
        wanted: u64,
    },
    #[error("a sample has {found} bytes, expected {wanted}")]
    WrongSize { found: usize, wanted: usize },
}

/// Prints an outcome, as JSON or as tables.
fn show<T: Serialize>(
    outcome: &T,
    as_json: bool,
    tables: impl FnOnce(&T, &mut StdoutLock<'_>) -> io::Result<()>,
) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    match as_json {
        true => writeln!(out, "{}", serde_json::to_string(outcome)?)?,
        false => tables(outcome, &mut out)?,
    }
    Ok(())
}

pub(crate) fn run(command: Command) -> ExitCode {
    let outcome = match command {
        Command::Throughput(options) => throughput::run(&options),
        Command::Latency(options) => latency::run(&options),
        Command::Idle(options) => idle::run(&options),
        Command::Netns(options) => netns::run(&options),
        Command::Scale(options) => scale::run(&options),
        Command::Work(options) => work::run(&options),
        Command::Worker { job } => return worker::run(&job),
        Command::ScaleWorker { job } => return scale::work(&job),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("spindle perf: {failure}");
            ExitCode::FAILURE
        }
    }
}
