//! The driver: threads, waiting and wake-ups around the engine.
//!
//! ```text
//!   writer thread    Port::claim .. commit -> publish         waits in Room
//!   polling thread   Session::step -> Sink -> Link (arrivals) -> cache
//!                    spins shortly, yields, sleeps in the fabric
//!   control thread   from view to view; lets newcomers in         called by Desk
//!   dispatch thread  statuses of entities -> listeners            woken by Bells; where they wait
//!   waking thread    data -> streams                              for data, as readers do
//!   reader thread    Inlet::select; in a WaitSet it steps, and sleeps in the fabric, as
//!                    the guest of the polling thread (Seat); if it polls, it steps (Glances)
//! ```
//!
//! Whoever steps the engine never waits here: the sink pushes onto queues that
//! have room for all that can be in flight, only tries locks, and wakes threads.

mod arrival;
mod bell;
mod clock;
mod control;
mod course;
mod crew;
mod desk;
mod dispatch;
mod fate;
mod figures;
mod glance;
mod hold;
mod in_ring;
mod inlet;
mod link;
mod payload;
mod poll;
mod port;
mod reach;
mod rekey;
mod room;
mod seat;
mod session;
mod shelf;
mod sink;
mod stopwatch;
mod streams;
mod wake;

pub(crate) use arrival::Batch;
pub(crate) use bell::Bells;
pub(crate) use control::Control;
pub(crate) use crew::Crew;
pub(crate) use desk::Desk;
pub(crate) use dispatch::Targets;
pub(crate) use fate::{CallOff, Fate};
pub(crate) use inlet::{Access, Inlet};
pub(crate) use link::{Farewell, Link, MatchedWriter};
pub(crate) use payload::Item;
pub(crate) use port::{Mark, Port};
pub(crate) use rekey::rekey;
pub(crate) use session::{Session, Start};
pub(crate) use shelf::ReaderStatuses;
pub(crate) use streams::Streams;
pub(crate) use wake::Sleepers;
