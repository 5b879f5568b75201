//! The common part of the programs for other middleware: the command line, the loops of the four
//! roles, and the line that each prints.
//!
//! A program implements [`Outlet`] and [`Inlet`] for its middleware and calls [`run`]. So
//! all of them send, count and measure in the same way, and `spindle bench --peers` compares the
//! middleware and not the loops around it.
#![forbid(unsafe_code)]

mod arguments;
mod clock;
mod meter;
mod report;
mod roles;
mod schedule;

pub use arguments::{Arguments, Read, Role, Wait};
pub use clock::monotonic_ns;
pub use roles::{Inlet, Outlet, Peer, run};
pub use schedule::Stamp;

/// An error of the middleware.
pub type Failure = Box<dyn std::error::Error>;
