//! QoS of writers.

use serde::{Deserialize, Serialize};

use crate::entity::TopicQos;
use crate::location::Origins;
use crate::policy::{
    DataRepresentation, Deadline, DestinationOrder, Durability, DurabilityService, History,
    LatencyBudget, Lifespan, Liveliness, Ownership, OwnershipStrength, Properties, Reliability,
    ResourceLimits, TransportPriority, UserData, WriterDataLifecycle,
};
use crate::policy_id::PolicyId;

/// QoS of a writer (DDS 1.4 §2.2.2.4.2). By default it is reliable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DataWriterQos {
    /// Whether samples outlive their writing.
    pub durability: Durability,
    /// Bounds of what outlives the writer.
    pub durability_service: DurabilityService,
    /// How often instances are updated.
    pub deadline: Deadline,
    /// Delay acceptable for batching.
    pub latency_budget: LatencyBudget,
    /// How the writer proves that it is alive.
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
    /// Bytes shown in DCPSPublication.
    pub user_data: UserData,
    /// Whether instances are shared among writers.
    pub ownership: Ownership,
    /// The writer's strength where they are not.
    pub ownership_strength: OwnershipStrength,
    /// Whether unregistering disposes.
    pub writer_data_lifecycle: WriterDataLifecycle,
    /// Encodings of samples; the first is written.
    pub representation: DataRepresentation,
    /// Properties of the writer.
    pub property: Properties,
    /// Where the policies were set.
    #[serde(skip)]
    pub origins: Origins,
}

impl DataWriterQos {
    /// Takes over the policies that a topic shares with a writer (DDS 1.4
    /// §2.2.2.4.1.13, `copy_from_topic_qos`). Properties are not among them.
    pub fn copy_from_topic_qos(&mut self, topic: &TopicQos) {
        self.durability = topic.durability;
        self.durability_service = topic.durability_service;
        self.deadline = topic.deadline;
        self.latency_budget = topic.latency_budget;
        self.liveliness = topic.liveliness;
        self.reliability = topic.reliability;
        self.destination_order = topic.destination_order;
        self.history = topic.history;
        self.resource_limits = topic.resource_limits;
        self.transport_priority = topic.transport_priority;
        self.lifespan = topic.lifespan;
        self.ownership = topic.ownership;
        self.representation = topic.representation.clone();
        self.origins.copy(&topic.origins, SHARED_WITH_TOPIC);
    }
}

impl Default for DataWriterQos {
    fn default() -> Self {
        Self {
            reliability: Reliability::WRITER_DEFAULT,
            durability: Durability::default(),
            durability_service: DurabilityService::default(),
            deadline: Deadline::default(),
            latency_budget: LatencyBudget::default(),
            liveliness: Liveliness::default(),
            destination_order: DestinationOrder::default(),
            history: History::default(),
            resource_limits: ResourceLimits::default(),
            transport_priority: TransportPriority::default(),
            lifespan: Lifespan::default(),
            user_data: UserData::default(),
            ownership: Ownership::default(),
            ownership_strength: OwnershipStrength::default(),
            writer_data_lifecycle: WriterDataLifecycle::default(),
            representation: DataRepresentation::default(),
            property: Properties::default(),
            origins: Origins::default(),
        }
    }
}

const SHARED_WITH_TOPIC: &[PolicyId] = &[
    PolicyId::Durability,
    PolicyId::DurabilityService,
    PolicyId::Deadline,
    PolicyId::LatencyBudget,
    PolicyId::Liveliness,
    PolicyId::Reliability,
    PolicyId::DestinationOrder,
    PolicyId::History,
    PolicyId::ResourceLimits,
    PolicyId::TransportPriority,
    PolicyId::Lifespan,
    PolicyId::Ownership,
    PolicyId::DataRepresentation,
];
