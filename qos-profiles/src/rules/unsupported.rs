//! Which values ask for behaviour that is not built yet.
//!
//! Every policy is read, defaulted, checked and announced; a value whose behaviour
//! is missing is refused when an entity is created, never accepted and ignored.
//! The impls of `NotBuilt` below are the whole list of what is missing: building a
//! behaviour ends with deleting its lines here. Policies without an impl are built.

use serde::Serialize;
use thiserror::Error;

use crate::entity::{
    DataReaderQos, DataWriterQos, DomainParticipantFactoryQos, DomainParticipantQos, PublisherQos,
    SubscriberQos, TopicQos,
};
use crate::location::{Location, Origins};
use crate::policy::{
    DataRepresentation, DataRepresentationId, Deadline, DestinationOrder, DestinationOrderKind,
    EntityFactory, GroupData, Lifespan, Liveliness, LivelinessKind, Ownership, OwnershipKind,
    OwnershipStrength, Partition, Presentation, PresentationAccessScope, ReaderDataLifecycle,
    TimeBasedFilter, TopicData, TransportPriority, UserData,
};
use crate::policy_id::PolicyId;
use crate::rules::in_file;

/// A value that asks for behaviour that is not built: the standard's UNSUPPORTED.
#[derive(Debug, Clone, PartialEq, Eq, Error, Serialize)]
#[error("{policy} is not supported yet: {what}{}", in_file(.location))]
pub struct UnsupportedPolicy {
    /// Which policy.
    pub policy: PolicyId,
    /// Which value of it, in the words of the standard.
    pub what: String,
    /// Where the policy was set, if a file set it.
    pub location: Option<Location>,
}

/// A policy with values whose behaviour is not built.
trait NotBuilt {
    /// What this value asks for, unless it is built.
    fn not_built(&self) -> Option<String>;
}

impl NotBuilt for Presentation {
    fn not_built(&self) -> Option<String> {
        if self.access_scope == PresentationAccessScope::Group {
            return Some(self.access_scope.to_string());
        }
        self.coherent_access
            .then(|| "coherent_access true".to_owned())
    }
}

impl NotBuilt for Deadline {
    fn not_built(&self) -> Option<String> {
        (!self.period.is_infinite()).then(|| format!("period {}", self.period))
    }
}

impl NotBuilt for Ownership {
    fn not_built(&self) -> Option<String> {
        (self.kind != OwnershipKind::Shared).then(|| self.kind.to_string())
    }
}

impl NotBuilt for OwnershipStrength {
    fn not_built(&self) -> Option<String> {
        (self.value != 0).then(|| format!("value {}", self.value))
    }
}

impl NotBuilt for Liveliness {
    fn not_built(&self) -> Option<String> {
        (self.kind != LivelinessKind::Automatic).then(|| self.kind.to_string())
    }
}

impl NotBuilt for TransportPriority {
    fn not_built(&self) -> Option<String> {
        (self.value != 0).then(|| format!("value {}, which no transport reads yet", self.value))
    }
}

impl NotBuilt for TimeBasedFilter {
    fn not_built(&self) -> Option<String> {
        (!self.minimum_separation.is_zero())
            .then(|| format!("minimum_separation {}", self.minimum_separation))
    }
}

impl NotBuilt for Partition {
    fn not_built(&self) -> Option<String> {
        (!self.is_default()).then(|| format!("name {:?}", self.name))
    }
}

impl NotBuilt for Lifespan {
    fn not_built(&self) -> Option<String> {
        (!self.duration.is_infinite()).then(|| format!("duration {}", self.duration))
    }
}

impl NotBuilt for DestinationOrder {
    fn not_built(&self) -> Option<String> {
        (self.kind != DestinationOrderKind::ByReceptionTimestamp).then(|| self.kind.to_string())
    }
}

impl NotBuilt for ReaderDataLifecycle {
    fn not_built(&self) -> Option<String> {
        let delays = [
            (
                "autopurge_nowriter_samples_delay",
                self.autopurge_nowriter_samples_delay,
            ),
            (
                "autopurge_disposed_samples_delay",
                self.autopurge_disposed_samples_delay,
            ),
        ];
        let (name, delay) = delays.iter().find(|(_, delay)| !delay.is_infinite())?;
        Some(format!("{name} {delay}"))
    }
}

impl NotBuilt for DataRepresentation {
    fn not_built(&self) -> Option<String> {
        self.value
            .contains(&DataRepresentationId::Xml)
            .then(|| DataRepresentationId::Xml.to_string())
    }
}

/// Data that built-in topics would show, which are not built.
fn unseen(value: &[u8]) -> Option<String> {
    (!value.is_empty()).then(|| format!("{} bytes that no built-in topic shows yet", value.len()))
}

impl NotBuilt for UserData {
    fn not_built(&self) -> Option<String> {
        unseen(&self.value)
    }
}

impl NotBuilt for TopicData {
    fn not_built(&self) -> Option<String> {
        unseen(&self.value)
    }
}

impl NotBuilt for GroupData {
    fn not_built(&self) -> Option<String> {
        unseen(&self.value)
    }
}

impl NotBuilt for EntityFactory {
    fn not_built(&self) -> Option<String> {
        (!self.autoenable_created_entities).then(|| "autoenable_created_entities false".to_owned())
    }
}

macro_rules! unsupported {
    ($entity:ty: $($member:ident = $policy:ident),* $(,)?) => {
        impl $entity {
            /// The policies whose behaviour is not built, by which creation is to
            /// be refused (UNSUPPORTED); empty when all of it is built.
            pub fn unsupported(&self) -> Vec<UnsupportedPolicy> {
                let members: &[(PolicyId, Option<String>)] =
                    &[$((PolicyId::$policy, self.$member.not_built())),*];
                list(members, &self.origins)
            }
        }
    };
}

unsupported!(DomainParticipantFactoryQos:);
unsupported!(DomainParticipantQos: user_data = UserData, entity_factory = EntityFactory);
unsupported!(PublisherQos:
    presentation = Presentation,
    partition = Partition,
    group_data = GroupData,
    entity_factory = EntityFactory,
);
unsupported!(SubscriberQos:
    presentation = Presentation,
    partition = Partition,
    group_data = GroupData,
    entity_factory = EntityFactory,
);
unsupported!(TopicQos:
    topic_data = TopicData,
    deadline = Deadline,
    liveliness = Liveliness,
    destination_order = DestinationOrder,
    transport_priority = TransportPriority,
    lifespan = Lifespan,
    ownership = Ownership,
    representation = DataRepresentation,
);
unsupported!(DataWriterQos:
    user_data = UserData,
    deadline = Deadline,
    liveliness = Liveliness,
    destination_order = DestinationOrder,
    transport_priority = TransportPriority,
    lifespan = Lifespan,
    ownership = Ownership,
    ownership_strength = OwnershipStrength,
    representation = DataRepresentation,
);
unsupported!(DataReaderQos:
    user_data = UserData,
    deadline = Deadline,
    liveliness = Liveliness,
    destination_order = DestinationOrder,
    ownership = Ownership,
    time_based_filter = TimeBasedFilter,
    reader_data_lifecycle = ReaderDataLifecycle,
    representation = DataRepresentation,
);

fn list(members: &[(PolicyId, Option<String>)], origins: &Origins) -> Vec<UnsupportedPolicy> {
    let values = members.iter().filter_map(|(policy, what)| {
        let location = origins.get(*policy).cloned();
        what.clone().map(|what| UnsupportedPolicy {
            policy: *policy,
            what,
            location,
        })
    });
    values.chain(origins.refused().iter().cloned()).collect()
}
