//! Which policies may change while an entity is enabled.

use thiserror::Error;

use crate::entity::{
    DataReaderQos, DataWriterQos, DomainParticipantFactoryQos, DomainParticipantQos, PublisherQos,
    SubscriberQos, TopicQos,
};
use crate::policy_id::PolicyId;

/// A policy was to change that cannot once its entity is enabled: the standard's
/// IMMUTABLE_POLICY.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("{policy} cannot change once the entity is enabled")]
pub struct ImmutablePolicy {
    /// Which policy.
    pub policy: PolicyId,
}

macro_rules! immutable {
    ($entity:ty: $($member:ident = $policy:ident),* $(,)?) => {
        impl $entity {
            /// Checks that an enabled entity may go from this QoS to `new`; the
            /// first policy that may not is the error (column "Changeable" of DDS
            /// 1.4 §2.2.3; properties are fixed too).
            pub fn check_mutable(&self, new: &Self) -> Result<(), ImmutablePolicy> {
                $(
                    if self.$member != new.$member {
                        return Err(ImmutablePolicy { policy: PolicyId::$policy });
                    }
                )*
                let _ = new;
                Ok(())
            }
        }
    };
}

immutable!(DomainParticipantFactoryQos:);
immutable!(DomainParticipantQos: property = Property);
immutable!(PublisherQos: presentation = Presentation);
immutable!(SubscriberQos: presentation = Presentation);
immutable!(TopicQos:
    durability = Durability,
    durability_service = DurabilityService,
    liveliness = Liveliness,
    reliability = Reliability,
    destination_order = DestinationOrder,
    history = History,
    resource_limits = ResourceLimits,
    ownership = Ownership,
    representation = DataRepresentation,
    property = Property,
);
immutable!(DataWriterQos:
    durability = Durability,
    durability_service = DurabilityService,
    liveliness = Liveliness,
    reliability = Reliability,
    destination_order = DestinationOrder,
    history = History,
    resource_limits = ResourceLimits,
    ownership = Ownership,
    representation = DataRepresentation,
    property = Property,
);
immutable!(DataReaderQos:
    durability = Durability,
    liveliness = Liveliness,
    reliability = Reliability,
    destination_order = DestinationOrder,
    history = History,
    resource_limits = ResourceLimits,
    ownership = Ownership,
    representation = DataRepresentation,
    type_consistency = TypeConsistencyEnforcement,
    property = Property,
);
