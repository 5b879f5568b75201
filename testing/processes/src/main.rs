//! The command `processes`: see the library.
#![forbid(unsafe_code)]

use std::process::ExitCode;

use clap::Parser;
use spindle_dds_processes::Command;

/// Runs Spindle DDS in processes that are killed, stopped, join late, and misbehave.
#[derive(Debug, Parser)]
#[command(name = "processes", version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

fn main() -> ExitCode {
    spindle_dds_processes::run(Arguments::parse().command)
}
