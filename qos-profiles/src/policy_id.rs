//! The identifiers of the policies, as statuses report them.

use std::fmt;

use serde::{Deserialize, Serialize};

macro_rules! policy_ids {
    ( $( $(#[$meta:meta])* $variant:ident = $id:literal, $name:literal, )+ ) => {
        /// Which policy: the standard's `QosPolicyId_t` (DDS 1.4 §2.3.3, XTypes 1.3
        /// annex D), and one identifier of our own for properties.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[derive(Serialize, Deserialize)]
        pub enum PolicyId {
            $( $(#[$meta])* $variant, )+
        }

        impl PolicyId {
            /// Every policy, by ascending identifier.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The number that statuses such as OFFERED_INCOMPATIBLE_QOS carry.
            pub const fn id(self) -> u32 {
                match self {
                    $( Self::$variant => $id, )+
                }
            }

            /// The policy's name in the standard, in capitals.
            pub const fn name(self) -> &'static str {
                match self {
                    $( Self::$variant => $name, )+
                }
            }

            /// The policy with this number, if there is one.
            pub const fn from_id(id: u32) -> Option<Self> {
                match id {
                    $( $id => Some(Self::$variant), )+
                    _ => None,
                }
            }
        }
    };
}

policy_ids! {
    /// Bytes attached to a participant, writer or reader.
    UserData = 1, "USER_DATA",
    /// Whether samples outlive their writing.
    Durability = 2, "DURABILITY",
    /// Scope of coherence and order among changes.
    Presentation = 3, "PRESENTATION",
    /// How often each instance must be updated.
    Deadline = 4, "DEADLINE",
    /// Delay that may be spent on batching.
    LatencyBudget = 5, "LATENCY_BUDGET",
    /// Whether several writers may update one instance.
    Ownership = 6, "OWNERSHIP",
    /// Which of several writers owns an instance.
    OwnershipStrength = 7, "OWNERSHIP_STRENGTH",
    /// How a writer proves that it is alive.
    Liveliness = 8, "LIVELINESS",
    /// How many updates of an instance a reader wants.
    TimeBasedFilter = 9, "TIME_BASED_FILTER",
    /// Named parts of a domain.
    Partition = 10, "PARTITION",
    /// Whether samples may get lost.
    Reliability = 11, "RELIABILITY",
    /// Which time stamp orders the changes of an instance.
    DestinationOrder = 12, "DESTINATION_ORDER",
    /// How many samples of an instance are kept.
    History = 13, "HISTORY",
    /// Bounds on samples and instances.
    ResourceLimits = 14, "RESOURCE_LIMITS",
    /// Whether created entities are enabled at once.
    EntityFactory = 15, "ENTITY_FACTORY",
    /// Whether unregistering disposes.
    WriterDataLifecycle = 16, "WRITER_DATA_LIFECYCLE",
    /// When a reader forgets dead instances.
    ReaderDataLifecycle = 17, "READER_DATA_LIFECYCLE",
    /// Bytes attached to a topic.
    TopicData = 18, "TOPIC_DATA",
    /// Bytes attached to a publisher or subscriber.
    GroupData = 19, "GROUP_DATA",
    /// Priority of the transport underneath.
    TransportPriority = 20, "TRANSPORT_PRIORITY",
    /// When a sample stops being valid.
    Lifespan = 21, "LIFESPAN",
    /// Bounds of what the durability service keeps.
    DurabilityService = 22, "DURABILITY_SERVICE",
    /// Which encodings of samples are written or read (XTypes).
    DataRepresentation = 23, "DATA_REPRESENTATION",
    /// How far reader and writer types may differ (XTypes).
    TypeConsistencyEnforcement = 24, "TYPE_CONSISTENCY_ENFORCEMENT",
    /// Name and value pairs; the number is ours, above the standard's.
    Property = 0x5350_0001, "PROPERTY",
}

impl fmt::Display for PolicyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_lead_back_to_their_policies() {
        for &policy in PolicyId::ALL {
            assert_eq!(PolicyId::from_id(policy.id()), Some(policy));
        }
        assert_eq!(PolicyId::from_id(0), None);
        assert!(PolicyId::ALL.is_sorted_by_key(|policy| policy.id()));
    }
}
