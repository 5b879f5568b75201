//! The common part of the programs for other middleware: the command line, the loops of the four
//! roles, and the line that each prints.
//!
//! A program implements [`Peer`], [`Outlet`] and [`Inlet`] for its middleware and calls [`run`].
//! Since all programs share the loops, `spindle bench --peers` compares only the middleware.
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
