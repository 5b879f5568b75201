//! The participants of a run, and what became of it.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::super::injector::Counts;

/// A participant of the run.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, clap::ValueEnum,
)]
#[value(rename_all = "UPPER")]
pub(in crate::faults) enum Role {
    /// Founds the group, and lets C in.
    A,
    /// Writes all the time, and reads.
    B,
    /// Joins, creates and deletes a writer, and leaves. Where topics are logged it joins once more.
    C,
    /// Where topics are logged: has a log, from the beginning to the end. No call of it fails.
    #[value(skip)]
    D,
    /// The same. Without the logs of two others, the rest is a majority.
    #[value(skip)]
    E,
}

/// Those of which calls fail.
pub(in crate::faults) const ROLES: [Role; 3] = [Role::A, Role::B, Role::C];
/// Those that have logs.
const LOGGERS: [Role; 5] = [Role::A, Role::B, Role::C, Role::D, Role::E];

/// What carries the samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
pub(in crate::faults) enum Over {
    /// Shared memory of one host.
    Shm,
    /// Streams between two hosts, which are addresses of this one: A and C on one, B on the
    /// other.
    Tcp,
    /// Shared memory, with a PERSISTENT topic and a log at each participant: calls on the logs fail.
    Logged,
}

impl Over {
    /// The participants of a run.
    pub(in crate::faults) fn roles(self) -> &'static [Role] {
        match self {
            Self::Shm | Self::Tcp => &ROLES,
            Self::Logged => &LOGGERS,
        }
    }
}

/// What went wrong with a participant.
#[derive(Debug, Clone, Serialize)]
pub(in crate::faults) struct Finding {
    pub(in crate::faults) symptom: Symptom,
    pub(in crate::faults) role: Role,
    pub(in crate::faults) text: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(in crate::faults) enum Symptom {
    /// One without a fault has stopped, or was expelled.
    Stops,
    /// One without a fault was refused, and the reason is not the true one.
    Refused,
    /// The one with the fault was refused, or has stopped, and does not name the cause.
    Silent,
    /// It was refused with the cause, and the same again without a cause.
    Stuck,
    /// Something did not happen in time.
    Hangs,
    /// A sample was lost, came twice, or out of order; or an acknowledged one is not in a log.
    Lost,
    /// A log cannot be read, or differs from the others.
    Damaged,
    /// More descriptors are open than before.
    Leaks,
    /// A process has ended.
    Crashes,
}

/// What became of a run.
#[derive(Debug, Clone)]
pub(in crate::faults) enum Outcome {
    /// The call was not made this time.
    NotReached,
    /// All went on.
    WentOn,
    /// It was refused or has stopped, and this says why. The others went on.
    Told(String),
    Failed(Finding),
    /// The same, and not when it was run again.
    FailedOnce(Finding),
}

/// A run that has ended.
#[derive(Debug)]
pub(in crate::faults) struct Ended {
    pub(in crate::faults) outcome: Outcome,
    /// Which call has failed.
    pub(in crate::faults) failed_call: Option<String>,
    /// Of each process whose calls were counted.
    pub(in crate::faults) counts: Vec<Counts>,
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotReached => f.write_str("the call was not made"),
            Self::WentOn => f.write_str("all went on"),
            Self::Told(text) => write!(f, "told: {text}"),
            Self::Failed(finding) => write!(f, "FAILED: {finding}"),
            Self::FailedOnce(finding) => write!(f, "failed once: {finding}"),
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} {:?}: {}", self.role, self.symptom, self.text)
    }
}
