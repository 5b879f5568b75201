//! Options of a station.

use core::fmt;
use std::net::{Ipv4Addr, SocketAddr};

use super::secret::Secret;
use crate::rdma::RdmaOptions;
use crate::{shm, tcp};

/// How to open a [`Station`](super::Station).
#[derive(Debug, Clone)]
pub struct StationOptions {
    /// Its part on its host.
    pub host: shm::HostOptions,
    /// Its part in a network. Without one it reaches only members on its host.
    pub network: Option<NetworkOptions>,
}

/// Options of a station's part in a network.
#[derive(Clone)]
pub struct NetworkOptions {
    /// The address on which it listens. Port 0 is any port; if the port is taken, it listens
    /// on any other one, and on this one, too, once it is free. The unspecified address
    /// stands for all addresses of the host.
    pub listen: SocketAddr,
    /// The domain's secret, if there is one: both sides of a connection prove that they have
    /// it.
    pub secret: Option<Secret>,
    /// A secret that callers may have instead, while the domain changes from one to another.
    pub accepted_secret: Option<Secret>,
    /// Whether connections are encrypted.
    pub encryption: EncryptionUse,
    /// How long it waits for its peers.
    pub streams: tcp::StreamOptions,
    /// Whether pushes to other hosts go by RDMA.
    pub rdma: RdmaUse,
}

/// Whether pushes to other hosts go by RDMA. Messages always go over streams.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum RdmaUse {
    /// Never.
    #[default]
    Off,
    /// Where both hosts have a device, and it works.
    Auto(RdmaOptions),
    /// Always: without a device the station does not open, and a station on another host that
    /// cannot be reached by RDMA does not become a peer.
    Required(RdmaOptions),
}

/// Whether what goes over a station's connections is encrypted and authenticated. Shared memory
/// and RDMA are not encrypted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum EncryptionUse {
    /// If there is a secret, and the other side does not turn it off.
    #[default]
    Auto,
    /// Not. If there is a secret, both sides prove that they have it, and no more.
    Off,
    /// Always: the station does not open without a secret, does not use RDMA, and refuses
    /// stations that have turned it off.
    Required,
}

impl Default for NetworkOptions {
    /// Any port of all addresses, no secret, no RDMA.
    fn default() -> Self {
        Self {
            listen: (Ipv4Addr::UNSPECIFIED, 0).into(),
            secret: None,
            accepted_secret: None,
            encryption: EncryptionUse::Auto,
            streams: tcp::StreamOptions::default(),
            rdma: RdmaUse::Off,
        }
    }
}

/// Omits the secrets.
impl fmt::Debug for NetworkOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NetworkOptions")
            .field("listen", &self.listen)
            .field("has_secret", &self.secret.is_some())
            .field("has_accepted_secret", &self.accepted_secret.is_some())
            .field("encryption", &self.encryption)
            .field("streams", &self.streams)
            .field("rdma", &self.rdma)
            .finish()
    }
}
