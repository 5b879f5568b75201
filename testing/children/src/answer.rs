//! What a worker prints.

use std::fmt::Display;
use std::io::Write;
use std::process::ExitCode;

use serde::{Deserialize, Serialize};

/// The one line that a worker prints, as JSON.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer<T> {
    /// What it found.
    Done(T),
    /// Why it gave up.
    Failed {
        /// The error in words.
        error: String,
    },
}

impl<T: Serialize> Answer<T> {
    /// The answer of a worker whose job had this result.
    pub fn of<E: Display>(result: Result<T, E>) -> Self {
        match result {
            Ok(report) => Self::Done(report),
            Err(error) => Self::Failed {
                error: error.to_string(),
            },
        }
    }

    /// Prints the line. Returns the exit code that goes with it.
    pub fn print(&self) -> ExitCode {
        match serde_json::to_string(self) {
            Ok(line) => {
                // Without a reader of its output a worker is about to be killed: that is no failure
                // of its own.
                let _ = writeln!(std::io::stdout(), "{line}");
            }
            Err(error) => {
                eprintln!("{error}");
                return ExitCode::FAILURE;
            }
        }
        match self {
            Self::Done(_) => ExitCode::SUCCESS,
            Self::Failed { .. } => ExitCode::FAILURE,
        }
    }
}
