//! Errors of a station's operations.

use std::io::ErrorKind;
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
    /// Encryption is required, and there is no secret to make keys of.
    #[error("encryption is required, and there is no secret that all participants share")]
    NoSecret,
    /// Encryption and RDMA are both required.
    #[error("encryption and RDMA are both required, and what goes by RDMA is not encrypted")]
    EncryptionByRdma,
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
        /// The kind of the system's error, if the connection failed with one.
        kind: Option<ErrorKind>,
    },
    /// The station at a contact address refuses the connection, or this side does.
    #[error("{contact} refuses the connection: {reason}")]
    Refused {
        /// The address.
        contact: SocketAddr,
        /// Why, by the code of the refusal.
        cause: CallFailureCause,
        /// The reason of the side that refuses.
        reason: String,
    },
}

impl HybridError {
    /// Why a call of a contact failed.
    pub fn call_failure(&self) -> CallFailureCause {
        match self {
            Self::Refused { cause, .. } => *cause,
            Self::Unreachable { kind, .. } => match kind {
                Some(ErrorKind::ConnectionRefused) => CallFailureCause::NotListening,
                Some(ErrorKind::HostUnreachable | ErrorKind::NetworkUnreachable) => {
                    CallFailureCause::NoRoute
                }
                _ => CallFailureCause::Other,
            },
            _ => CallFailureCause::Other,
        }
    }
}

/// Why a call of a contact failed, as far as it is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum CallFailureCause {
    /// The two stations do not have the same secret, or only one of them has one.
    Secret,
    /// The two stations are of different domains.
    Domain,
    /// The two stations have different versions of the protocol.
    Version,
    /// One of the two requires encryption, and the other has turned it off.
    Encryption,
    /// No program listens at the address.
    NotListening,
    /// The network has no route to the address.
    NoRoute,
    /// Another cause, for example no answer in time.
    Other,
}
