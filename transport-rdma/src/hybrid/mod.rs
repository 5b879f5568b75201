//! Stations across hosts: peers on my host over shared memory, the others over
//! RDMA or streams; and segments over all of them.
//!
//! My row is the one that my host's members map; streams and queue pairs send from it.
//! Who is elsewhere writes into a copy of its own row here.
//!
//! ```text
//!          my host                               elsewhere
//!   +--------------------+               +-----------------------+
//!   | my row   <---------|--- fetched ---|---> copy of it        |
//!   | rows, mapped       |               |                       |
//!   | copies  <----------|--- streams ---|---- rows              |
//!   +--------------------+               +-----------------------+
//!             ^ park: in the bed of the shared memory's station
//! ```
//!
//! One bed is enough: the threads that receive from elsewhere take the part of
//! a waker of this host (the handshake of [`crate::sleep`] over my own epoch)
//! and rings my own bell.
//!
//! The parts know nothing of each other: each takes the peers that are its own. A
//! station without a network has the first part alone, and nothing between it and its
//! segments' shared memory.
//!
//! # In the network
//!
//! Who is elsewhere, and who is on my host, addresses tell: there is a host in each
//! ([`shm::host_id`](crate::shm::host_id)). One thread listens, and leads the
//! handshakes of both who calls and who is called; whoever has passed is handed to
//! [`tcp`](crate::tcp), and never comes back.
//!
//! A stranger has two seconds in all, bytes for one frame, and 63 others beside it;
//! one more, and the oldest goes. What it says is checked for domain, version and, if
//! there is one, the domain's secret, which both prove to have and neither tells. What
//! goes over a connection afterwards is neither encrypted nor signed: who can change
//! the network's packets can change that. Without a secret, whoever can reach the port
//! can be a peer.
//!
//! Who has proved itself is asked for a queue pair, if there is RDMA here (`way`, over
//! `rdma`): if both find that it works, what the two push goes over it until they are
//! parted, and messages go by stream as ever.
//!
//! - Set-up: [`Station`] (`station`, with `options` and `error`), [`HybridSegment`]
//!   (`segment`).
//! - The network: `network` is a station's part in it; `address` where a station is,
//!   `interfaces` what this host is called, `secret` the domain's; `listening` where it is
//!   called; `door` is what those who call and the thread (`keeper`) share, `calling` the
//!   one side of it; `handshake` what is said.

mod address;
mod calling;
mod door;
mod error;
mod handshake;
mod interfaces;
mod keeper;
mod listening;
mod network;
mod options;
mod rdma;
mod secret;
mod segment;
mod station;
mod way;

pub use address::{host_of, sockets_of};
pub use error::HybridError;
pub use options::{NetworkOptions, RdmaUse, StationOptions};
pub use secret::{SecretError, read_secret};
pub use segment::HybridSegment;
pub use station::{PeerPath, Station};
