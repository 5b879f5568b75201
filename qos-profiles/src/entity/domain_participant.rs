//! QoS of the participant factory and of participants.

use serde::{Deserialize, Serialize};

use crate::location::Origins;
use crate::policy::{EntityFactory, Properties, UserData};

/// QoS of the factory of participants (DDS 1.4 §2.2.2.2.2).
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct DomainParticipantFactoryQos {
    /// Whether participants are enabled at once.
    pub entity_factory: EntityFactory,
    /// Where the policies were set.
    #[serde(skip)]
    pub origins: Origins,
}

/// QoS of a participant (DDS 1.4 §2.2.2.2.1).
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct DomainParticipantQos {
    /// Bytes shown in DCPSParticipant.
    pub user_data: UserData,
    /// Whether publishers, subscribers and topics are enabled at once.
    pub entity_factory: EntityFactory,
    /// Properties of the participant.
    pub property: Properties,
    /// Where the policies were set.
    #[serde(skip)]
    pub origins: Origins,
}
