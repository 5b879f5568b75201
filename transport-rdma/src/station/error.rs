//! Errors of a station's operations, for all of its parts.

use crate::shm::error::SetupError;
use crate::station::segment::SegmentKey;

/// Why an operation of a station failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StationError {
    /// A resource of this host could not be set up.
    #[error(transparent)]
    System(#[from] SetupError),
    /// Not an address that a station of this version has written.
    #[error("{0:?} is no address of a station")]
    Address(String),
    /// The peer cannot be reached, or is lost.
    #[error("member {id:032x} cannot be reached: {reason}")]
    Unreachable {
        /// The peer.
        id: u128,
        /// The reason.
        reason: String,
    },
    /// The peer refuses the connection, or this side does.
    #[error("member {id:032x} refuses the connection: {reason}")]
    Refused {
        /// The peer.
        id: u128,
        /// The reason of the side that refuses.
        reason: String,
    },
    /// The message is too long.
    #[error("a message has at most {max} bytes, not {len}")]
    TooLong {
        /// Its length.
        len: usize,
        /// The limit.
        max: usize,
    },
    /// Too many bytes wait for the peer already.
    #[error("{waiting} bytes wait for member {id:032x}, which takes none")]
    Full {
        /// The peer.
        id: u128,
        /// Number of bytes that wait.
        waiting: usize,
    },
    /// The station has been closed.
    #[error("the station has been closed")]
    Closed,
    /// The segment is invalid, or exists already.
    #[error("segment {index} of epoch {epoch} cannot be made: {problem}")]
    Segment {
        /// Epoch of its key.
        epoch: u64,
        /// Index of its key.
        index: u32,
        /// The problem.
        problem: String,
    },
}

impl StationError {
    pub(crate) fn segment(key: SegmentKey, problem: impl Into<String>) -> Self {
        let SegmentKey { epoch, index } = key;
        Self::Segment {
            epoch,
            index,
            problem: problem.into(),
        }
    }
}
