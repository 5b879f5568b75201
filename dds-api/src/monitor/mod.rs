//! Looking at the participants of a domain from outside, as `spindle top` does.
//!
//! ```text
//!   Monitor                                a participant
//!   the domain's record on this host:
//!   who lives here
//!   connect to its station, StatusRequest --------> control thread: gathers what was counted
//!   ParticipantFigures <------------------ Told
//! ```
//!
//! A monitor is no member of anything: it changes nothing, and is waited for by nobody.
//! Participants count as they go, each counter with one writer, and publish nothing: who is
//! not asked does nothing for it. Who is asked answers on its control thread, takes the
//! engine's lock for some microseconds, and looks at the clock for each delivery
//! during the next ten seconds. Only processes of the same user get an answer.

mod figures;
mod visitor;

pub use figures::{
    Latencies, MemberFigures, ParticipantFigures, TopicFigures, VERSION, WaitFigures,
};
/// How an engine stands.
pub use spindle_dds_core::{
    BatchHistogram, Counters, DeliveryClass, DeliveryWait, EpochPhase, Figures, RingFigures,
    SubgroupFigures, Traffic, WriterFigures,
};
/// What a fabric has done.
pub use spindle_dds_transport::FabricCounters;
pub use visitor::{Monitor, Seen};
