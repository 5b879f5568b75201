//! Why a link to a peer has ended.

use std::io;

use super::record::RecordError;
use super::secure::FrameError;
use crate::station::event::CLOSED_BY_PEER;

/// Why a link has ended.
#[derive(Debug, thiserror::Error)]
pub(super) enum Fault {
    #[error("{CLOSED_BY_PEER}")]
    Closed,
    #[error("{0}")]
    UnreadMessages(String),
    #[error("it ended its stream")]
    Ended,
    #[error("its stream ended inside a record")]
    EndedInside,
    #[error("its stream broke: {0}")]
    Broken(io::Error),
    #[error("it sent a record {0}")]
    InvalidRecord(RecordError),
    #[error("it sent an encrypted frame {0}")]
    InvalidFrame(FrameError),
    #[error("it takes too little: {waiting} records wait for it already")]
    Overflow { waiting: usize },
    #[error("the thread that serves the streams has ended: {0}")]
    NoThread(io::Error),
    #[error("{0}")]
    OtherPath(String),
}
