//! Segments across hosts: my host's members over shared memory, the others over
//! streams.
//!
//! My row is the one that my host's members map; my streams fetch from it. Who
//! is elsewhere writes into a copy of its own row here.
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
//! One bed is enough: the thread that receives from streams takes the part of
//! a ringer of this host (the handshake of [`crate::sleep`] over my own epoch)
//! and rings my own bell.
//!
//! The parts know nothing of each other: each takes the peers that are its own.

mod address;
mod calling;
mod door;
mod error;
mod handshake;
mod interfaces;
mod keeper;
mod network;
mod options;
mod segment;
mod station;

pub use address::{host_of, sockets_of};
pub use error::MixedError;
pub use options::{NetworkOptions, StationOptions};
pub use segment::MixedSegment;
pub use station::Station;
