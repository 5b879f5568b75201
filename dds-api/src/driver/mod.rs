//! The driver: threads, waiting and wake-ups around the engine.
//!
//! ```text
//!   writer thread    Port::claim .. commit -> publish         waits in Room
//!   polling thread   Session::step -> Sink -> Inlet (arrivals) -> cache
//!                    spins shortly, yields, sleeps in the fabric
//!   dispatch thread  statuses of entities -> listeners            woken by Bells
//!   waking thread    data -> streams; who has left -> writers     woken by Bells
//!   reader thread    Inlet::select
//! ```
//!
//! Whoever steps the engine never waits here: the sink pushes onto queues that
//! have room for all that can be in flight, only tries locks, and wakes threads.

mod bell;
mod crew;
mod dispatch;
mod fate;
mod inlet;
mod payload;
mod poll;
mod port;
mod room;
mod session;
mod shelf;
mod sink;
mod streams;
mod wake;

pub(crate) use bell::Bells;
pub(crate) use crew::Crew;
pub(crate) use dispatch::Targets;
pub(crate) use fate::Fate;
pub(crate) use inlet::{Access, Inlet, Link, MatchedWriter};
pub(crate) use payload::Item;
pub(crate) use port::{Claimed, Port};
pub(crate) use session::Session;
pub(crate) use sink::{Routes, Sink};
pub(crate) use streams::Streams;
pub(crate) use wake::Sleepers;
