//! What the main process and the participants tell each other.

use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, Write};

use serde::{Deserialize, Serialize};

use super::options::Durability;

/// Which participant it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Role {
    pub(super) part: Part,
    pub(super) durability: Durability,
}

/// What it does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Part {
    /// It writes a history, then at a pace. The number is that of its samples.
    Writer(u32),
    /// It reads: it stays, and is killed as a donor.
    Keeper(u32),
    /// It reads: it comes late, and goes or is killed.
    Joiner(u32),
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Writer(number) => write!(f, "writer {number}"),
            Self::Keeper(number) => write!(f, "keeper {number}"),
            Self::Joiner(number) => write!(f, "joiner {number}"),
        }
    }
}

/// What a participant is asked to do: a line of its standard input. When that ends, it leaves.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Request {
    /// Of a writer: to write no more.
    Stop,
    /// Of a reader: to say so when it has so many samples of each writer.
    Until(BTreeMap<u32, u64>),
}

/// A line of its standard output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Line {
    /// A writer has written its history. A keeper has joined.
    Ready,
    /// How far a reader is.
    Seen(Seen),
    /// A writer has written so many samples, and none takes longer than so long.
    Written { samples: u64, longest_ns: u64 },
    /// A reader has what it was asked to wait for.
    Complete(Seen),
    /// A reader has a sample that is not the next one of its writer.
    Wrong { lost: u64, twice: u64, text: String },
    /// It gives up.
    Failed(String),
}

/// How far a reader is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Seen {
    pub(super) samples: u64,
    /// Whether it awaits no history.
    pub(super) has_history: bool,
    /// From its start until it had.
    pub(super) history_ns: u64,
    /// SAMPLE_LOST.
    pub(super) sample_lost: u64,
}

impl Line {
    /// Prints it. Without a main process that reads, the line is lost, which is no failure.
    pub(super) fn print(&self) {
        let mut out = io::stdout().lock();
        let _ = serde_json::to_writer(&mut out, self)
            .map_err(io::Error::from)
            .and_then(|()| out.write_all(b"\n"))
            .and_then(|()| out.flush());
    }
}
