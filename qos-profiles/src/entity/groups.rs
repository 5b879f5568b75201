//! QoS of publishers and subscribers.

use serde::{Deserialize, Serialize};

use crate::location::Origins;
use crate::policy::{EntityFactory, GroupData, Partition, Presentation};

/// QoS of a publisher (DDS 1.4 §2.2.2.4.1).
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct PublisherQos {
    /// Coherence and order that are offered.
    pub presentation: Presentation,
    /// The partitions that are written to.
    pub partition: Partition,
    /// Bytes shown in DCPSPublication.
    pub group_data: GroupData,
    /// Whether writers are enabled at once.
    pub entity_factory: EntityFactory,
    /// Where the policies were set.
    #[serde(skip)]
    pub origins: Origins,
}

/// QoS of a subscriber (DDS 1.4 §2.2.2.5.2).
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct SubscriberQos {
    /// Coherence and order that are requested.
    pub presentation: Presentation,
    /// The partitions that are read from.
    pub partition: Partition,
    /// Bytes shown in DCPSSubscription.
    pub group_data: GroupData,
    /// Whether readers are enabled at once.
    pub entity_factory: EntityFactory,
    /// Where the policies were set.
    #[serde(skip)]
    pub origins: Origins,
}
