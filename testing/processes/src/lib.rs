//! Spindle DDS in real processes that fail.
//!
//! Each command starts processes of its own, disturbs them, and judges what they saw:
//!
//! | command | what happens | what must hold |
//! |---|---|---|
//! | `flight` | feeds and displays are killed, stopped, or join late | all displays have the same samples in the same order |
//! | `churn` | endpoints are created and deleted in a loop | no sample is lost or delivered twice |
//! | `churn --views` | the same, and participants that join and leave | no process holds more of the system afterwards |
//! | `isolation` | a participant holds loans, blocks its listener, stops taking | the others go on |
//! | `closing` | a participant with 1,000 topics closes while others exchange samples | the others go on, no sample is lost |
//! | `crowd` | a hundred participants enter, exchange samples and leave | none is expelled, no sample is lost |
//! | `history` | readers join late, and are killed as they get history; so is a donor | each reader has all samples, once, in order |
//! | `logged` | all participants of a PERSISTENT topic are killed at once, again and again | what was acknowledged is in the logs, which are equal |
//! | `faults` | each system call of join, change and leave, or on logs, fails once | the others go on, the one with the fault says why |
//! | `soak` | for a long time, a random fault every few seconds | no healthy participant is disturbed, nothing grows |
//!
//! The verdict is the last line of output, as JSON (for all but `flight` and `soak` with `--json`),
//! and the exit code.
// Filters of system calls need it, in one module.
#![deny(unsafe_code)]

mod churn;
mod clock;
mod closing;
mod crowd;
mod faults;
mod flight;
mod history;
mod hosts;
mod isolation;
mod leaks;
mod logged;
mod resources;
mod soak;
mod workers;

use std::process::ExitCode;

spindle_dds::include_idl!("exchange");
spindle_dds::include_idl!("traffic");

/// What to run.
#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// Feeds decode a recording of Mode S frames and publish what they learn; displays subscribe,
    /// and prove that all of them saw the same samples in the same order, whatever fails.
    Flight(Box<flight::Options>),
    /// Endpoints come and go while others publish: what that costs the others, and that no
    /// sample is lost.
    Churn(churn::Options),
    /// Rates of the others while one participant holds loans, blocks its listener, and stops
    /// taking.
    ///
    /// The writers keep a pace, so that a rate shows how long its topic was held up, and not
    /// how busy the processors were. With --free topic A keeps none; where there are fewer
    /// processors than busy threads, its ratio is mostly noise: the less the others do, the
    /// faster it is.
    Isolation(isolation::Options),
    /// A participant with many topics closes while others exchange samples: none of them is
    /// expelled, and no sample is lost.
    Closing(closing::Options),
    /// Many participants enter at once, exchange samples and leave at once: none is expelled.
    Crowd(crowd::Options),
    /// Readers that join late get the history of TRANSIENT_LOCAL or TRANSIENT writers that go on
    /// writing: each has all samples, once, in order, whatever is killed meanwhile.
    History(history::Options),
    /// All participants of a PERSISTENT topic are killed at once, again and again, and start anew on
    /// their logs: what was acknowledged is in them, and they have the same records.
    Logged(logged::Options),
    /// Each system call of the paths of join, change and leave fails once in one of three
    /// participants, with each errno that it may fail with: the others go on, and the one with
    /// the fault goes on too, or says why not.
    Faults(faults::Options),
    /// Many participants with many topics, and a random fault every few seconds, for a long time:
    /// those without a fault go on and lose nothing, those with one come back, and no process
    /// holds more and more of the system.
    Soak(soak::Options),
    /// A participant of `soak`.
    #[command(hide = true)]
    SoakMember {
        /// What it is to do, as JSON.
        job: String,
    },
    /// A participant of `faults`.
    #[command(hide = true)]
    Participant {
        /// What it is told, as JSON.
        job: String,
    },
    /// A participant of `churn`, `closing`, `crowd`, `history`, `isolation` or `logged`.
    #[command(hide = true)]
    Worker {
        /// What it is to do, as JSON.
        job: String,
    },
}

/// Why there is no result, or a bad one.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error(transparent)]
    Recording(#[from] flight::RecordingError),
    #[error(transparent)]
    Dds(#[from] spindle_dds::Error),
    #[error(transparent)]
    Io(#[from] std::io::Error),
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    #[error(transparent)]
    Network(#[from] spindle_dds_children::netns::NetworkError),
    #[error(transparent)]
    Workers(#[from] spindle_dds_children::WorkersError),
    #[error("{0}")]
    Run(String),
    #[error("a sample came out of order: {found} of writer {writer}, not {expected}")]
    OutOfOrder {
        writer: u32,
        found: u64,
        expected: u64,
    },
}

/// Runs a command to its end.
pub fn run(command: Command) -> ExitCode {
    let outcome = match command {
        Command::Flight(options) => return flight::run(&options),
        Command::Churn(options) => match options.views {
            None => churn::run(&options),
            Some(views) => leaks::run(&options, views),
        },
        Command::Isolation(options) => isolation::run(&options),
        Command::Closing(options) => closing::run(&options),
        Command::Crowd(options) => crowd::run(&options),
        Command::History(options) => history::run(&options),
        Command::Logged(options) => logged::run(&options),
        Command::Faults(options) => faults::run(&options),
        Command::Soak(options) => soak::run(&options),
        Command::SoakMember { job } => return soak::work(&job),
        Command::Participant { job } => return faults::work(&job),
        Command::Worker { job } => return workers::work(&job),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("processes: {failure}");
            ExitCode::FAILURE
        }
    }
}
