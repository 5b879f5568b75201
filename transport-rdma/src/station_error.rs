//! Why a station could not do what it was asked for, whatever part of it.

use crate::segment::SegmentKey;
use crate::shm::SetupError;

/// Why an operation of a station failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StationError {
    /// The system did not give what was needed.
    #[error(transparent)]
    System(#[from] SetupError),
    /// An address that no station of this version has.
    #[error("{0:?} is no address of a station")]
    Address(String),
    /// The peer could not be reached, or is lost.
    #[error("member {id:032x} cannot be reached: {reason}")]
    Unreachable {
        /// Who.
        id: u128,
        /// Why not.
        reason: String,
    },
    /// The peer does not want the connection.
    #[error("member {id:032x} refuses the connection: {reason}")]
    Refused {
        /// Who.
        id: u128,
        /// Its words, or why this side refuses it.
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
    /// The peer takes nothing: too much waits for it already.
    #[error("{waiting} bytes wait for member {id:032x}, which takes none")]
    Full {
        /// Who.
        id: u128,
        /// Bytes that wait.
        waiting: usize,
    },
    /// The station has been closed.
    #[error("the station has been closed")]
    Closed,
    /// A segment that makes no sense, or is there already.
    #[error("segment {index} of epoch {epoch} cannot be made: {problem}")]
    Segment {
        /// Of its key.
        epoch: u64,
        /// Of its key.
        index: u32,
        /// What is wrong.
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
