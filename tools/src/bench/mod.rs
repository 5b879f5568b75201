//! `spindle bench`: experiments that take minutes.

mod peers;

use std::process::ExitCode;

use clap::Args;

/// What to run.
#[derive(Debug, Args)]
pub(crate) struct BenchOptions {
    /// Spindle and the other middleware that is installed, in turns on this machine.
    #[arg(long, required = true)]
    peers: bool,
    #[command(flatten)]
    of_peers: peers::PeersOptions,
}

pub(crate) fn run(options: &BenchOptions) -> ExitCode {
    peers::run(&options.of_peers)
}
