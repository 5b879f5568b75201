//! QoS of readers.

use serde::{Deserialize, Serialize};

use crate::entity::TopicQos;
use crate::location::Origins;
use crate::policy::{
    DataRepresentation, Deadline, DestinationOrder, Durability, History, LatencyBudget, Liveliness,
    Ownership, Properties, ReaderDataLifecycle, Reliability, ResourceLimits, TimeBasedFilter,
    TypeConsistencyEnforcement, UserData,
};
use crate::policy_id::PolicyId;

/// QoS of a reader (DDS 1.4 §2.2.2.5.3). By default it is best effort.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct DataReaderQos {
    /// Whether earlier samples are wanted.
    pub durability: Durability,
    /// How often instances must be updated.
    pub deadline: Deadline,
    /// Delay acceptable for batching.
    pub latency_budget: LatencyBudget,
    /// How writers must prove that they are alive.
    pub liveliness: Liveliness,
    /// Whether samples may get lost.
    pub reliability: Reliability,
    /// Which time stamp orders changes.
    pub destination_order: DestinationOrder,
    /// How many samples are kept.
    pub history: History,
    /// Bounds on samples and instances.
    pub resource_limits: ResourceLimits,
    /// Bytes shown in DCPSSubscription.
    pub user_data: UserData,
    /// Whether instances are shared among writers.
    pub ownership: Ownership,
    /// How many updates of an instance are wanted.
    pub time_based_filter: TimeBasedFilter,
    /// When dead instances are forgotten.
    pub reader_data_lifecycle: ReaderDataLifecycle,
    /// Encodings that are taken.
    pub representation: DataRepresentation,
    /// How far types may differ.
    pub type_consistency: TypeConsistencyEnforcement,
    /// Properties of the reader.
    pub property: Properties,
    /// Where the policies were set.
    #[serde(skip)]
    pub origins: Origins,
}

impl DataReaderQos {
    /// Takes over the policies that a topic shares with a reader (DDS 1.4
    /// §2.2.2.5.2.15, `copy_from_topic_qos`). Properties are not among them.
    pub fn copy_from_topic_qos(&mut self, topic: &TopicQos) {
        self.durability = topic.durability;
        self.deadline = topic.deadline;
        self.latency_budget = topic.latency_budget;
        self.liveliness = topic.liveliness;
        self.reliability = topic.reliability;
        self.destination_order = topic.destination_order;
        self.history = topic.history;
        self.resource_limits = topic.resource_limits;
        self.ownership = topic.ownership;
        self.representation = topic.representation.clone();
        self.origins.copy(&topic.origins, SHARED_WITH_TOPIC);
    }
}

const SHARED_WITH_TOPIC: &[PolicyId] = &[
    PolicyId::Durability,
    PolicyId::Deadline,
    PolicyId::LatencyBudget,
    PolicyId::Liveliness,
    PolicyId::Reliability,
    PolicyId::DestinationOrder,
    PolicyId::History,
    PolicyId::ResourceLimits,
    PolicyId::Ownership,
    PolicyId::DataRepresentation,
];
