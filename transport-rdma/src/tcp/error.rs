//! Why a station could not do what it was asked for.

use std::io;

use crate::segment::SegmentKey;

/// Why an operation of a [`Station`](super::Station) failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StationError {
    /// A peer that cannot be connected.
    #[error("member {id:032x} cannot be connected: {problem}")]
    Peer {
        /// Who.
        id: u128,
        /// Why not.
        problem: &'static str,
    },
    /// A segment that makes no sense, or is there already, or is over.
    #[error("segment {lane} of epoch {epoch} cannot be made: {problem}")]
    Segment {
        /// Of its key.
        epoch: u64,
        /// Of its key.
        lane: u32,
        /// What is wrong.
        problem: String,
    },
    /// A system call failed that should not.
    #[error("{what}: {source}")]
    System {
        /// What was tried.
        what: &'static str,
        /// What the kernel said.
        source: io::Error,
    },
}

impl StationError {
    /// For `map_err`.
    pub(super) fn system<E: Into<io::Error>>(what: &'static str) -> impl Fn(E) -> Self {
        move |source| Self::System {
            what,
            source: source.into(),
        }
    }

    pub(crate) fn segment(key: SegmentKey, problem: impl Into<String>) -> Self {
        Self::Segment {
            epoch: key.epoch,
            lane: key.lane,
            problem: problem.into(),
        }
    }
}
