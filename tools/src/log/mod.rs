//! `spindle log`: the logs of PERSISTENT topics, below directories of `spindle.log.directory`.
//!
//! - `options`: the commands; `logs`: the logs that one is about; `failure`: why it fails.
//! - `ls`, `cat`, `verify` with `same`, `repair`, `compact`: what they do. All of it is done by
//!   [`spindle_dds::log`], which a program can use as well.
//! - `sample`, `timestamp`: records as JSON.

mod cat;
mod compact;
mod failure;
mod logs;
mod ls;
mod options;
mod repair;
mod same;
mod sample;
mod timestamp;
mod verify;

use std::process::ExitCode;

use failure::Failure;
pub(crate) use options::Command;

/// Exit code 0: done, and nothing is wrong. 1: it cannot be done, or logs are damaged or different. 2: wrong
/// arguments.
pub(crate) fn run(command: &Command) -> ExitCode {
    let done = match command {
        Command::Ls(options) => ls::run(options),
        Command::Cat(options) => cat::run(options),
        Command::Verify(options) => verify::run(options),
        Command::Repair(options) => repair::run(options),
        Command::Compact(options) => compact::run(options),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        // The reader of the pipe has ended.
        Err(Failure::Output(error)) if error.kind() == std::io::ErrorKind::BrokenPipe => {
            ExitCode::SUCCESS
        }
        Err(Failure::Found) => ExitCode::FAILURE,
        Err(failure) => {
            eprintln!("spindle log: {failure}");
            ExitCode::FAILURE
        }
    }
}
