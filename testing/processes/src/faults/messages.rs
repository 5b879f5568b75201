//! What the main process and a participant tell each other: lines of JSON over a socket, which
//! the participant has as its standard input.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::hosts::Host;

/// What a participant is told on its command line.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Job {
    /// Process id of the main process, with which it ends.
    pub(super) parent: u32,
    /// Number of the participant, and of its writer.
    pub(super) number: u32,
    /// Where the participants of its host meet.
    pub(super) directory: PathBuf,
    pub(super) host: Option<Host>,
    /// The directory of its logs, if the topic is logged.
    pub(super) log: Option<PathBuf>,
    /// Its system calls are reported.
    pub(super) reported: bool,
}

/// What a participant is to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Request {
    /// Join, with a reader, and a writer if it is said.
    Join { writer: bool },
    /// Create a writer.
    CreateWriter,
    /// Delete the writer.
    DeleteWriter,
    /// Write so many samples.
    Write { samples: u64 },
    /// Write at a pace from now on, or no more.
    Pace { on: bool },
    /// Say how things are.
    Tell,
    /// Leave in order.
    Close,
    /// End the process.
    Exit,
}

/// What a participant answers.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Reply {
    Done(Situation),
    /// It was refused, or has stopped: the error in words.
    Failed(String),
}

/// What a participant sees.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Situation {
    /// The other participants of its view.
    pub(super) others: usize,
    /// Readers that its writer is matched with, and writers that its reader is.
    pub(super) readers: i32,
    pub(super) writers: i32,
    /// Samples that it has written.
    pub(super) written: u64,
    /// By writer: the number of the first sample that it got, and of the next one.
    pub(super) got: BTreeMap<u32, (u64, u64)>,
    /// By writer, as its handle prints: so many of its samples are acknowledged, where they are logged.
    pub(super) acknowledged: BTreeMap<String, u64>,
}
