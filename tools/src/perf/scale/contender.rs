//! What is measured.

use std::fmt;

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

/// A middleware with which processes are run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Contender {
    Spindle,
    Cyclone,
}

/// A middleware that is measured beside Spindle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Peer {
    /// Cyclone DDS, by its Python package: `pip install cyclonedds`.
    Cyclone,
}

impl From<Peer> for Contender {
    fn from(peer: Peer) -> Self {
        match peer {
            Peer::Cyclone => Self::Cyclone,
        }
    }
}

impl fmt::Display for Contender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Spindle => "spindle",
            Self::Cyclone => "cyclone",
        })
    }
}
