//! Errors of a station's operations.

use std::net::SocketAddr;

use crate::shm::error::SetupError;
use crate::station::error::StationError;
use crate::verbs::RdmaError;

/// Why an operation of a [`Station`](super::Station) failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HybridError {
    /// A resource of this host could not be set up.
    #[error(transparent)]
    Join(#[from] SetupError),
    /// Concerns a known peer, on this host or another, or a segment.
    #[error(transparent)]
    Station(#[from] StationError),
    /// RDMA is required and not available.
    #[error(transparent)]
    Rdma(#[from] RdmaError),
    /// The secret is empty, and so no secret.
    #[error("the domain's secret is empty: leave it out, or give one")]
    EmptySecret,
    /// The called station is this one.
    #[error("that is this station itself")]
    ThisStation,
    /// The member is on another host, and this station has no network.
    #[error("member {id:032x} is on another host, and this station is open for its own only")]
    NoNetwork {
        /// The member.
        id: u128,
    },
    /// No station of the domain was reached at a contact address.
    #[error("no station of the domain is reached at {contact}: {reason}")]
    Unreachable {
        /// The address.
        contact: SocketAddr,
        /// The reason.
        reason: String,
    },
    /// The station at a contact address refuses the connection, or this side does.
    #[error("{contact} refuses the connection: {reason}")]
    Refused {
        /// The address.
        contact: SocketAddr,
        /// The reason of the side that refuses.
        reason: String,
    },
}

impl HybridError {
    /// Whether a contact refuses because the two do not have the same secret, or only one of
    /// them has one. Recognized by the text of the refusal, which is the same in all versions.
    pub fn is_for_secret(&self) -> bool {
        matches!(self, Self::Refused { reason, .. } if reason.contains(" secret"))
    }
}
