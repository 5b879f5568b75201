//! Why a station could not do what it was asked for.

use std::net::SocketAddr;

use crate::shm::SetupError;
use crate::station_error::StationError;
use crate::verbs::RdmaError;

/// Why an operation of a [`Station`](super::Station) failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HybridError {
    /// The system did not give what the station needs.
    #[error(transparent)]
    Join(#[from] SetupError),
    /// Something with a known peer, on this host or elsewhere, or with a segment.
    #[error(transparent)]
    Station(#[from] StationError),
    /// RDMA is required, and cannot be had.
    #[error(transparent)]
    Rdma(#[from] RdmaError),
    /// A secret that everybody knows.
    #[error("the domain's secret is empty: leave it out, or give one")]
    EmptySecret,
    /// The one that was called is this station itself.
    #[error("that is this station itself")]
    ThisStation,
    /// A member elsewhere, and this station has no part in a network.
    #[error("member {id:032x} is on another host, and this station is open for its own only")]
    NoNetwork {
        /// Who.
        id: u128,
    },
    /// Whoever was called by a contact address could not be reached.
    #[error("nobody of the domain is reached at {contact}: {reason}")]
    Unreachable {
        /// Where.
        contact: SocketAddr,
        /// Why not.
        reason: String,
    },
    /// Whoever was called by a contact address does not want the connection.
    #[error("{contact} refuses the connection: {reason}")]
    Refused {
        /// Where.
        contact: SocketAddr,
        /// Its words, or why this side refuses it.
        reason: String,
    },
}

impl HybridError {
    /// Whether a contact refuses because the two do not have the same secret, or only one of
    /// them has one. A refusal comes in words, which stay as they are in any version.
    pub fn is_for_secret(&self) -> bool {
        matches!(self, Self::Refused { reason, .. } if reason.contains(" secret"))
    }
}
