//! Stations across hosts: peers on my host over shared memory, all others over RDMA or
//! streams; and segments over all of them.
//!
//! My row is the one that the members on my host map; streams and queue pairs send from it.
//! Members on other hosts write to copies of their rows here.
//!
//! ```text
//!          my host                               another host
//!   +--------------------+               +-----------------------+
//!   | my row   <---------|--- fetched ---|---> copy of my row    |
//!   | rows, mapped       |               |                       |
//!   | copies  <----------|--- streams ---|---- rows              |
//!   +--------------------+               +-----------------------+
//!             ^ park: in the sleep state of the shared-memory station
//! ```
//!
//! One sleep state is enough: a thread that receives from another host wakes this process on
//! the peer's behalf. It runs the waking side of [`crate::sleep`] over my own epoch, and
//! signals my own doorbell.
//!
//! The parts are independent: each handles the peers that are its own. A station without a
//! network consists of the shared-memory station only, and its segments add nothing to those
//! of shared memory.
//!
//! # The network
//!
//! Addresses contain a host id ([`shm::host_id`](crate::shm::host_id)), which tells peers on
//! this host from all others. One thread listens, and drives the handshakes of incoming
//! connections and of calls; authenticated connections are passed to [`tcp`](crate::tcp).
//!
//! An incoming connection that is not authenticated has two seconds in all and buffer space
//! for one frame; there are at most 64 of them, and beyond that the oldest is closed. The lines of the log
//! that they cause are bounded (`log_limit`). A hello
//! is checked for domain and version, and for the domain's secret, if there is one: both
//! sides prove that they have it without sending it. Unless one of them has turned that off, the
//! proof gives them keys ([`EncryptionUse`]), and everything behind it is encrypted and
//! authenticated. Without a secret, any process that reaches the port can become a peer.
//!
//! An authenticated peer is asked for a queue pair if this station has RDMA
//! (`path_selection`, over `rdma`). If both find that it works, their pushes go over it until
//! they are disconnected; messages always go over streams.
//!
//! - Set-up: [`Station`] (`station`, with `options` and `error`), [`HybridSegment`]
//!   (`segment`).
//! - The network: `network` is a station's part in it; `address`, `interfaces` and `secret`
//!   are what it says of itself; `listeners` its sockets; `pending` the connections that
//!   are not peers' yet; `acceptor` with its `handshake_thread` serves them, `connecting`
//!   adds calls; `handshake` is the protocol, over `handshake_frame`, with `noise` (the keys) and `refusal`;
//!   `path_selection` (over `path_state`) is its last part.

mod acceptor;
mod address;
mod connecting;
mod error;
mod handshake;
mod handshake_frame;
mod handshake_thread;
mod interfaces;
mod listeners;
mod log_limit;
mod network;
mod noise;
mod options;
mod path_selection;
mod path_state;
mod pending;
mod rdma;
mod refusal;
mod secret;
mod segment;
mod station;
#[doc(hidden)]
pub mod testing;

pub use address::{host_of, sockets_of};
pub use error::{CallFailureCause, HybridError};
pub use options::{EncryptionUse, NetworkOptions, RdmaUse, StationOptions};
pub use secret::{Secret, SecretError, read_secret};
pub use segment::HybridSegment;
pub use station::{PeerPath, Station};
