//! What is announced of the entities of a domain: the data types of the standard's built-in
//! topics (DDS 1.4 §2.2.5, XTypes 1.3 §7.6.3.2). The topics themselves are not implemented.

use spindle_dds_qos::{
    DataRepresentation, Deadline, DestinationOrder, Durability, DurabilityService, GroupData,
    LatencyBudget, Lifespan, Liveliness, Ownership, OwnershipStrength, Partition, Presentation,
    Reliability, TimeBasedFilter, TopicData, TypeConsistencyEnforcement, UserData,
};
use spindle_dds_xtypes::object::TypeInformation;

use crate::discovery::{Endpoint, ReaderEntry, WriterEntry};
use crate::handle::Guid;

/// A participant (`ParticipantBuiltinTopicData`).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ParticipantBuiltinTopicData {
    /// Its identity.
    pub key: Guid,
    /// Its name, for people: an extension, as ENTITY_NAME of RTPS.
    pub participant_name: String,
    /// Empty: USER_DATA is not announced yet, and refused.
    pub user_data: UserData,
}

macro_rules! endpoint_data {
    ($(#[$doc:meta])* $name:ident of $entry:ident in $group:ident: $($member:ident: $policy:ty),*) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Default)]
        pub struct $name {
            /// Its identity.
            pub key: Guid,
            /// Its participant.
            pub participant_key: Guid,
            /// Name of its topic.
            pub topic_name: String,
            /// Name of its topic's type.
            pub type_name: String,
            $(
                #[doc = concat!("Its ", stringify!($policy), " policy.")]
                pub $member: $policy,
            )*
            /// PRESENTATION of its publisher or subscriber.
            pub presentation: Presentation,
            /// PARTITION of its publisher or subscriber.
            pub partition: Partition,
            /// Empty: TOPIC_DATA is not announced yet, and refused.
            pub topic_data: TopicData,
            /// GROUP_DATA of its publisher or subscriber.
            pub group_data: GroupData,
            /// The identifiers of its type (XTypes 1.3 §7.6.3.2), without its dependencies;
            /// `None` for a type that XTypes cannot describe.
            pub type_information: Option<TypeInformation>,
        }

        impl From<&$entry> for $name {
            fn from(entry: &$entry) -> Self {
                let Endpoint { guid, topic, type_name, ty, .. } = &entry.endpoint;
                Self {
                    key: *guid,
                    participant_key: guid.participant(),
                    topic_name: topic.clone(),
                    type_name: type_name.clone(),
                    $( $member: entry.qos.$member.clone(), )*
                    presentation: entry.$group.presentation.clone(),
                    partition: entry.$group.partition.clone(),
                    topic_data: TopicData::default(),
                    group_data: entry.$group.group_data.clone(),
                    type_information: ty.as_ref().map(|ty| ty.information().clone()),
                }
            }
        }
    };
}

endpoint_data! {
    /// A writer (`PublicationBuiltinTopicData`).
    PublicationBuiltinTopicData of WriterEntry in publisher:
    durability: Durability,
    durability_service: DurabilityService,
    deadline: Deadline,
    latency_budget: LatencyBudget,
    liveliness: Liveliness,
    reliability: Reliability,
    lifespan: Lifespan,
    user_data: UserData,
    ownership: Ownership,
    ownership_strength: OwnershipStrength,
    destination_order: DestinationOrder,
    representation: DataRepresentation
}

endpoint_data! {
    /// A reader (`SubscriptionBuiltinTopicData`).
    SubscriptionBuiltinTopicData of ReaderEntry in subscriber:
    durability: Durability,
    deadline: Deadline,
    latency_budget: LatencyBudget,
    liveliness: Liveliness,
    reliability: Reliability,
    ownership: Ownership,
    destination_order: DestinationOrder,
    user_data: UserData,
    time_based_filter: TimeBasedFilter,
    representation: DataRepresentation,
    type_consistency: TypeConsistencyEnforcement
}
