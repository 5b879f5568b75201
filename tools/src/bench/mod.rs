//! `spindle bench`: experiments that take minutes.
//!
//! ```text
//!   paper     the experiments of the paper, in virtual time and with real processes
//!   peers     Spindle and other middleware, in turns
//!   distance  the time that a cache line takes between processors
//!   load      processor time: of a run, and of everything else
//!   process   the processes of a run
//!   spread    what several runs come to
//!   toll      what a thread that only sleeps takes from others
//! ```

mod distance;
mod load;
mod paper;
mod peers;
mod process;
mod spread;
mod toll;

use std::process::ExitCode;

use clap::Args;

/// What to run: the experiments of the paper in both ways, if nothing else is said.
#[derive(Debug, Args)]
pub(crate) struct BenchOptions {
    /// The experiments of the Spindle paper in virtual time alone, on costs from its text.
    #[arg(long, conflicts_with_all = ["real", "peers", "of_peers"])]
    simulated: bool,
    /// The experiments of the Spindle paper with real processes of this machine alone.
    #[arg(long, conflicts_with_all = ["peers", "of_peers"])]
    real: bool,
    /// Spindle and the other middleware that is installed, in turns on this machine.
    #[arg(long)]
    peers: bool,
    /// How often real processes run for each figure; of peers, after once to warm up
    /// [default: 5, and 1 with --quick].
    #[arg(long, conflicts_with = "simulated",
          value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: Option<u32>,
    #[command(flatten)]
    of_paper: paper::PaperOptions,
    #[command(flatten)]
    of_peers: peers::PeersOptions,
}

pub(crate) fn run(options: &BenchOptions) -> ExitCode {
    let rounds = options.rounds.map(|rounds| rounds as usize);
    if options.peers {
        return peers::run(&options.of_peers, rounds.unwrap_or(ROUNDS));
    }
    let quick = if options.of_paper.quick { 1 } else { ROUNDS };
    let ways = paper::Ways {
        simulated: !options.real,
        real: (!options.simulated).then(|| rounds.unwrap_or(quick)),
    };
    paper::run(&options.of_paper, ways)
}

const ROUNDS: usize = 5;
