//! The policies: one structure each, with the standard's member names and defaults.
//!
//! `Default` is the standard's default. Where that differs by entity, as for
//! RELIABILITY, it is the one of topics and readers, and the entity QoS sets its own.

mod attached_data;
mod data_representation;
mod destination_order;
mod durability;
mod entity_factory;
mod history;
mod lifecycle;
mod liveliness;
mod ownership;
mod partition;
mod presentation;
mod property;
mod reliability;
mod timing;
mod transport_priority;
mod type_consistency;

pub use attached_data::{GroupData, TopicData, UserData};
pub use data_representation::{DataRepresentation, DataRepresentationId};
pub use destination_order::{DestinationOrder, DestinationOrderKind};
pub use durability::{Durability, DurabilityKind, DurabilityService};
pub use entity_factory::EntityFactory;
pub use history::{History, HistoryKind, ResourceLimits};
pub use lifecycle::{ReaderDataLifecycle, WriterDataLifecycle};
pub use liveliness::{Liveliness, LivelinessKind};
pub use ownership::{Ownership, OwnershipKind, OwnershipStrength};
pub use partition::Partition;
pub use presentation::{Presentation, PresentationAccessScope};
pub use property::{Properties, Property};
pub use reliability::{Reliability, ReliabilityKind};
pub use timing::{Deadline, LatencyBudget, Lifespan, TimeBasedFilter};
pub use transport_priority::TransportPriority;
pub use type_consistency::{TypeConsistencyEnforcement, TypeConsistencyKind};
