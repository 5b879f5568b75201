//! Observes the participants of a domain from outside, as `spindle top` does.
//!
//! ```text
//!   Monitor                                a participant
//!   reads the domain's record of this host
//!   connects to its station, StatusRequest --------> control thread: collects the counters
//!   ParticipantFigures <------------------ Status
//! ```
//!
//! A monitor is not a member: it changes nothing, and no participant waits for it. Each counter
//! of a participant has one writer, and counters are not published, so a participant that is not
//! asked has no cost. One that is asked answers on its control thread, holds the engine's lock
//! for some microseconds, and reads the clock for each delivery during the next ten seconds.
//! Only processes of the same user get an answer.

mod client;
mod figures;
mod logs;
mod memory;

pub use client::{Monitor, ObservedMember};
pub use figures::{
    Latencies, MemberFigures, MismatchFigures, ParticipantFigures, TopicFigures, TransferFigures,
    VERSION, WaitFigures,
};
pub use logs::{LogCondition, TopicLogFigures};
pub use memory::{MemoryFigures, MemoryKind};
/// What a participant knows of the heartbeats of the others.
pub use spindle_dds_core::membership::{DetectorFigures, HeartbeatFigures};
/// The state and the counters of an engine.
pub use spindle_dds_core::{
    BatchHistogram, Counters, DeliveryClass, DeliveryWait, EpochPhase, Figures, RingFigures,
    SubgroupFigures, Traffic, WriterFigures,
};
/// The counters of a fabric.
pub use spindle_dds_transport::FabricCounters;
