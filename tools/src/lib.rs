//! The `spindle` command: measures the middleware, compares it with others, shows what runs,
//! examines machines, and checks IDL and QoS files.
//!
//! `benchmarks/paper` uses this library too: it runs `spindle perf` for the paper's experiments,
//! and measures the host around each run by [`harness`].

#![forbid(unsafe_code)]

mod bench;
mod doctor;
pub mod harness;
mod idl;
mod log;
mod perf;
mod qos;
mod top;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Tools of Spindle DDS.
#[derive(Debug, Parser)]
#[command(name = "spindle", version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Measure throughput, latency, and what idling and many topics cost, with a process for each
    /// participant.
    #[command(subcommand)]
    Perf(perf::Command),
    /// Compare Spindle with other middleware on this machine.
    Bench(bench::BenchOptions),
    /// Check whether this machine is fit for Spindle, and which fabric connects it to peers.
    Doctor(doctor::DoctorOptions),
    /// Show the participants of a domain on this host, live: rates, batches, latencies, memory, which
    /// participants are blocked by others, and which endpoints do not match.
    Top(top::TopOptions),
    /// Check IDL files, generate Rust from them, and print their types.
    #[command(subcommand)]
    Idl(idl::Command),
    /// List, print, verify, repair and compact the logs of PERSISTENT topics.
    #[command(subcommand)]
    Log(log::Command),
    /// Check files of QoS profiles.
    #[command(subcommand)]
    Qos(qos::Command),
}

/// Runs the command that this process's arguments name.
pub fn run() -> ExitCode {
    match Arguments::parse().command {
        Command::Perf(command) => perf::run(command),
        Command::Bench(options) => bench::run(&options),
        Command::Doctor(options) => doctor::run(&options),
        Command::Top(options) => top::run(&options),
        Command::Idl(command) => idl::run(&command),
        Command::Log(command) => log::run(&command),
        Command::Qos(command) => qos::run(&command),
    }
}
