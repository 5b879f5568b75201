//! QoS of topics.

use serde::{Deserialize, Serialize};

use crate::location::Origins;
use crate::policy::{
    DataRepresentation, Deadline, DestinationOrder, Durability, DurabilityService, History,
    LatencyBudget, Lifespan, Liveliness, Ownership, Properties, Reliability, ResourceLimits,
    TopicData, TransportPriority,
};

/// QoS of a topic (DDS 1.4 §2.2.2.3.2). It binds no endpoint: writers and readers
/// take it over with `copy_from_topic_qos`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct TopicQos {
    /// Bytes shown in DCPSTopic.
    pub topic_data: TopicData,
    /// Whether samples outlive their writing.
    pub durability: Durability,
    /// Bounds of what outlives its writer.
    pub durability_service: DurabilityService,
    /// How often instances are updated.
    pub deadline: Deadline,
    /// Delay acceptable for batching.
    pub latency_budget: LatencyBudget,
    /// How writers prove that they are alive.
    pub liveliness: Liveliness,
    /// Whether samples may get lost.
    pub reliability: Reliability,
    /// Which time stamp orders changes.
    pub destination_order: DestinationOrder,
    /// How many samples are kept.
    pub history: History,
    /// Bounds on samples and instances.
    pub resource_limits: ResourceLimits,
    /// Priority in the transport.
    pub transport_priority: TransportPriority,
    /// How long a sample is valid.
    pub lifespan: Lifespan,
    /// Whether instances are shared among writers.
    pub ownership: Ownership,
    /// Encodings of samples.
    pub representation: DataRepresentation,
    /// Properties of the topic.
    pub property: Properties,
    /// Where the policies were set.
    #[serde(skip)]
    pub origins: Origins,
}
