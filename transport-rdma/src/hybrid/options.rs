//! How a station is opened.

use core::fmt;
use std::net::{Ipv4Addr, SocketAddr};

use crate::rdma::RdmaOptions;
use crate::{shm, tcp};

/// How to open a [`Station`](super::Station).
#[derive(Debug, Clone)]
pub struct StationOptions {
    /// Its place on its host.
    pub host: shm::HostOptions,
    /// Its place in a network. Without one it reaches its host's members only.
    pub network: Option<NetworkOptions>,
}

/// A station's place in a network.
#[derive(Clone)]
pub struct NetworkOptions {
    /// Where it listens. Port 0 is any; if the port is taken, it is any, too, and this one
    /// besides once it is free. The unspecified address is all of its host's.
    pub listen: SocketAddr,
    /// The domain's secret, if it has one: both sides of a connection prove that they
    /// have it. What goes over connections afterwards is not protected by it.
    pub secret: Option<Vec<u8>>,
    /// How patient it is with its peers.
    pub streams: tcp::StreamOptions,
    /// Whether pushes to other hosts go by RDMA.
    pub rdma: RdmaUse,
}

/// Whether pushes to other hosts go by RDMA. Messages go by streams in any case.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum RdmaUse {
    /// Never.
    #[default]
    Off,
    /// Where both have a device, and it works.
    Auto(RdmaOptions),
    /// Always: without a device no station is opened, and who cannot be reached by RDMA
    /// from another host is no peer.
    Required(RdmaOptions),
}

impl Default for NetworkOptions {
    /// Any port of all addresses, no secret, no RDMA.
    fn default() -> Self {
        Self {
            listen: (Ipv4Addr::UNSPECIFIED, 0).into(),
            secret: None,
            streams: tcp::StreamOptions::default(),
            rdma: RdmaUse::Off,
        }
    }
}

/// Without the secret.
impl fmt::Debug for NetworkOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NetworkOptions")
            .field("listen", &self.listen)
            .field("has_secret", &self.secret.is_some())
            .field("streams", &self.streams)
            .field("rdma", &self.rdma)
            .finish()
    }
}
