//! `spindle bench`: experiments that take minutes.

mod paper;
mod peers;

use std::process::ExitCode;

use clap::Args;

/// What to run: one of them.
#[derive(Debug, Args)]
pub(crate) struct BenchOptions {
    /// The experiments of the Spindle paper, in virtual time, on costs from its text.
    #[arg(long, required_unless_present = "peers", conflicts_with = "peers")]
    simulated: bool,
    /// Spindle and the other middleware that is installed, in turns on this machine.
    #[arg(long)]
    peers: bool,
    #[command(flatten)]
    of_paper: paper::PaperOptions,
    #[command(flatten)]
    of_peers: peers::PeersOptions,
}

pub(crate) fn run(options: &BenchOptions) -> ExitCode {
    match options.peers {
        true => peers::run(&options.of_peers),
        false => paper::run(&options.of_paper),
    }
}
