//! A view across hosts: my host's members over shared memory, the others over
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
//!             ^ park: on shared memory's doorbell alone
//! ```
//!
//! One bed is enough: the thread that receives from streams takes the part of
//! a ringer of this host (the handshake of [`crate::sleep`] over my own epoch)
//! and rings the doorbell on which shared memory sleeps. The epoch in my row is
//! read by my host's members and by that thread; those elsewhere need it not.
//!
//! The parts know nothing of each other: each takes the peers that are its own.

mod fabric;
mod setup;

pub use fabric::MixedFabric;
pub use setup::{MixedError, local_group};
