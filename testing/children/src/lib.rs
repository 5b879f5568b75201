//! Child processes of `spindle perf` and of `testing/processes`.
//!
//! [`Children`] starts processes, signals them, and reports what they print. [`run_workers`] is for
//! those that have one job each and answer with one line: a worker prints an [`Answer`].
//!
//! Processes end with the one that started them: on return, error and panic because dropping
//! [`Children`] kills them, and on a signal because each has called [`die_with_parent`].
#![forbid(unsafe_code)]

mod answer;
mod children;
mod failures;
pub mod netns;
mod workers;

use std::ffi::OsString;
use std::fs::Permissions;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use tempfile::TempDir;

pub use self::answer::Answer;
pub use self::children::{ChildEvent, Children, die_with_parent};
pub use self::failures::{describe_failure, group_by_error};
pub use self::workers::{Worker, WorkersError, run_workers};

/// This program once more, with other arguments.
pub fn this_program(arguments: Vec<OsString>) -> io::Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(arguments);
    Ok(command)
}

/// A directory that no other user can enter, for what the processes of a run share. Dropping it
/// removes it.
pub fn private_directory(prefix: &str) -> io::Result<TempDir> {
    tempfile::Builder::new()
        .prefix(prefix)
        .permissions(Permissions::from_mode(0o700))
        .tempdir()
}
