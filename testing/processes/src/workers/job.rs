//! What a worker is told.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::participant::RING_MESSAGES;
use crate::hosts::Host;
use crate::{Failure, churn, closing, crowd, history, isolation, leaks, logged};

/// What a worker is to do.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Job {
    /// Process id of the main process, with which the worker ends.
    pub(crate) parent: u32,
    pub(crate) role: Role,
    /// Where the participants meet if there are no `hosts`.
    pub(crate) directory: PathBuf,
    /// The hosts among which the workers are dealt out.
    pub(crate) hosts: Vec<Host>,
    /// The host of this one.
    pub(crate) host: Option<Host>,
    /// Participants of the group, this one included.
    pub(crate) participants: u32,
    pub(crate) wait: Wait,
    /// `spindle.failure.limit_ms`, if not the product's default.
    pub(crate) limit_ms: Option<u64>,
    /// Messages and bytes that a ring has room for.
    pub(crate) ring_messages: u32,
    pub(crate) ring_bytes: u64,
    /// Bytes of payload of a sample.
    pub(crate) payload_len: usize,
    /// From one paced sample of a writer to the next.
    pub(crate) period_ns: u64,
    /// Length of a phase.
    pub(crate) phase_ns: u64,
    /// `isolation`: topic A keeps no pace.
    pub(crate) free: bool,
    /// `churn --views`: how many views have to begin.
    pub(crate) views: u64,
    /// `closing`: how many topics there are.
    pub(crate) topics: u32,
    /// `crowd`: how many samples each participant sends. `history`: each writer, before others join.
    pub(crate) samples: u64,
    /// `churn --views`: a descriptor is left behind in each round, on purpose.
    pub(crate) forget: bool,
}

impl Job {
    /// For `participants` workers: phases of `seconds`, and `rate_hz` paced samples a second of
    /// `payload_len` bytes.
    pub(crate) fn new(
        role: Role,
        participants: usize,
        seconds: f64,
        rate_hz: f64,
        payload_len: usize,
    ) -> Result<Self, Failure> {
        let phase = Duration::try_from_secs_f64(seconds);
        let phase = phase.map_err(|error| Failure::Run(error.to_string()))?;
        if !(1.0..=RATE_HZ_MAX).contains(&rate_hz) {
            return Err(Failure::Run(format!("a rate is from 1 to {RATE_HZ_MAX}")));
        }
        Ok(Self {
            parent: std::process::id(),
            role,
            directory: PathBuf::new(),
            hosts: Vec::new(),
            host: None,
            participants: participants as u32,
            wait: Wait::Balanced,
            limit_ms: None,
            ring_messages: RING_MESSAGES,
            ring_bytes: RING_BYTES,
            payload_len,
            period_ns: (1e9 / rate_hz) as u64,
            phase_ns: phase.as_nanos() as u64,
            free: false,
            views: 0,
            topics: 0,
            samples: 0,
            forget: false,
        })
    }

    /// Where the participants of this worker's host meet.
    pub(crate) fn meeting_directory(&self) -> &Path {
        let of_host = self.host.as_ref().map(|host| &host.directory);
        of_host.unwrap_or(&self.directory)
    }
}

/// Values of the property `spindle.wait`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Wait {
    /// Spin briefly, then sleep.
    Balanced,
    /// Sleep at once.
    Block,
}

impl fmt::Display for Wait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Balanced => "balanced",
            Self::Block => "block",
        })
    }
}

/// Which worker it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Role {
    Isolation(isolation::Role),
    Churn(churn::Role),
    Leaks(leaks::Role),
    Crowd(crowd::Role),
    Closing(closing::Role),
    History(history::Role),
    Logged(logged::Role),
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Isolation(role) => write!(f, "{role:?}"),
            Self::Churn(role) => write!(f, "{role:?}"),
            Self::Leaks(role) => write!(f, "{role:?}"),
            Self::Closing(role) => write!(f, "{role:?}"),
            Self::Crowd(role) => write!(f, "{role:?}"),
            Self::History(role) => write!(f, "{role:?}"),
            Self::Logged(role) => write!(f, "{role:?}"),
        }
    }
}

const RING_BYTES: u64 = 1 << 20;
const RATE_HZ_MAX: f64 = 1e6;
