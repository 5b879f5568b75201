//! One `<…_qos>` element applied to the QoS of its kind of entity.

use crate::diagnostic::{Report, quote};
use crate::entity::{
    DataReaderQos, DataWriterQos, DomainParticipantQos, PublisherQos, SubscriberQos, TopicQos,
};
use crate::location::{Location, Origins};
use crate::policy::{Partition, Properties};
use crate::policy_id::PolicyId;
use crate::rules::{Inconsistent, UnsupportedPolicy};
use crate::xml::members::for_each;
use crate::xml::policy::ReadPolicy;
use crate::xml::property::{read_properties, read_property};
use crate::xml::tree::Element;

/// The kinds of entity that a profile has QoS for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum EntityKind {
    Participant,
    Topic,
    Publisher,
    Subscriber,
    Writer,
    Reader,
}

impl EntityKind {
    pub(crate) const ALL: [Self; 6] = [
        Self::Participant,
        Self::Topic,
        Self::Publisher,
        Self::Subscriber,
        Self::Writer,
        Self::Reader,
    ];

    /// The kind that an element of this name describes. Participants have two
    /// names more, of earlier schemas.
    pub(crate) fn from_element(name: &str) -> Option<Self> {
        match name {
            "domain_participant_qos" | "domainparticipant_qos" | "participant_qos" => {
                Some(Self::Participant)
            }
            "topic_qos" => Some(Self::Topic),
            "publisher_qos" => Some(Self::Publisher),
            "subscriber_qos" => Some(Self::Subscriber),
            "datawriter_qos" => Some(Self::Writer),
            "datareader_qos" => Some(Self::Reader),
            _ => None,
        }
    }

    /// Whether QoS of the kind may be for some topics only, by a `topic_filter`.
    pub(crate) fn is_of_topic(self) -> bool {
        matches!(self, Self::Topic | Self::Writer | Self::Reader)
    }

    /// Applies `element` to a default QoS, only to hear what is wrong with it.
    pub(crate) fn check(self, element: &Element, report: &mut Report) {
        match self {
            Self::Participant => DomainParticipantQos::default().apply(element, report),
            Self::Topic => TopicQos::default().apply(element, report),
            Self::Publisher => PublisherQos::default().apply(element, report),
            Self::Subscriber => SubscriberQos::default().apply(element, report),
            Self::Writer => DataWriterQos::default().apply(element, report),
            Self::Reader => DataReaderQos::default().apply(element, report),
        }
    }
}

/// The QoS of a kind of entity, as something that elements are applied to.
pub(crate) trait EntityQos: Default {
    const KIND: EntityKind;

    /// Sets what `element` mentions, leaves the rest, and notes where.
    fn apply(&mut self, element: &Element, report: &mut Report);

    /// The contradictions in it.
    fn contradictions(&self) -> Vec<Inconsistent>;

    /// What it asks for that is not built.
    fn refusals(&self) -> Vec<UnsupportedPolicy>;

    /// The enumeration of the kinds.
    fn into_any(self) -> AnyQos;
}

macro_rules! entity {
    (
        $entity:ty, $kind:ident: $($member:ident = $policy:ident),+;
        $(with $extra:ident: $($extra_name:literal),+)?
    ) => {
        impl EntityQos for $entity {
            const KIND: EntityKind = EntityKind::$kind;

            fn apply(&mut self, element: &Element, report: &mut Report) {
                let known = &["base_name", "qos_snippets", $(stringify!($member),)+ $($($extra_name),+)?];
                for_each(element, known, false, report, |member, report| {
                    $(
                        if member.name == stringify!($member) {
                            self.$member.read(member, report);
                            record(&mut self.origins, PolicyId::$policy, member, report);
                        }
                    )+
                    $( $extra(&mut self.property, &mut self.origins, member, report); )?
                });
            }

            fn contradictions(&self) -> Vec<Inconsistent> {
                self.inconsistencies()
            }

            fn refusals(&self) -> Vec<UnsupportedPolicy> {
                self.unsupported()
            }

            fn into_any(self) -> AnyQos {
                AnyQos::$kind(self)
            }
        }

        impl $entity {
            /// All values, each with the line that has set it.
            pub fn values(&self) -> Vec<QosValue> {
                let mut values = Vec::new();
                $(
                    add_values(
                        &mut values,
                        &self.origins,
                        (PolicyId::$policy, stringify!($member)),
                        self.$member.members(),
                    );
                )+
                $(
                    // Entities with these elements have properties.
                    let _ = [$($extra_name),+];
                    let properties = self.property.iter();
                    let properties = properties.map(|it| (it.name.clone(), it.value.clone()));
                    add_values(
                        &mut values,
                        &self.origins,
                        (PolicyId::Property, "property"),
                        properties.collect(),
                    );
                )?
                values
            }
        }
    };
}

entity!(DomainParticipantQos, Participant:
    user_data = UserData,
    entity_factory = EntityFactory;
    with extras: "property", "properties", "partition", "binary_properties");
entity!(PublisherQos, Publisher:
    presentation = Presentation,
    partition = Partition,
    group_data = GroupData,
    entity_factory = EntityFactory;);
entity!(SubscriberQos, Subscriber:
    presentation = Presentation,
    partition = Partition,
    group_data = GroupData,
    entity_factory = EntityFactory;);
entity!(TopicQos, Topic:
    topic_data = TopicData,
    durability = Durability,
    durability_service = DurabilityService,
    deadline = Deadline,
    latency_budget = LatencyBudget,
    liveliness = Liveliness,
    reliability = Reliability,
    destination_order = DestinationOrder,
    history = History,
    resource_limits = ResourceLimits,
    transport_priority = TransportPriority,
    lifespan = Lifespan,
    ownership = Ownership,
    representation = DataRepresentation;
    with extras: "property", "properties", "partition");
entity!(DataWriterQos, Writer:
    durability = Durability,
    durability_service = DurabilityService,
    deadline = Deadline,
    latency_budget = LatencyBudget,
    liveliness = Liveliness,
    reliability = Reliability,
    destination_order = DestinationOrder,
    history = History,
    resource_limits = ResourceLimits,
    transport_priority = TransportPriority,
    lifespan = Lifespan,
    user_data = UserData,
    ownership = Ownership,
    ownership_strength = OwnershipStrength,
    writer_data_lifecycle = WriterDataLifecycle,
    representation = DataRepresentation;
    with extras: "property", "properties", "partition");
entity!(DataReaderQos, Reader:
    durability = Durability,
    deadline = Deadline,
    latency_budget = LatencyBudget,
    liveliness = Liveliness,
    reliability = Reliability,
    destination_order = DestinationOrder,
    history = History,
    resource_limits = ResourceLimits,
    user_data = UserData,
    ownership = Ownership,
    time_based_filter = TimeBasedFilter,
    reader_data_lifecycle = ReaderDataLifecycle,
    representation = DataRepresentation,
    type_consistency = TypeConsistencyEnforcement;
    with extras: "property", "properties", "partition");

/// The QoS of an entity of any kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AnyQos {
    /// Of a participant.
    Participant(DomainParticipantQos),
    /// Of a topic.
    Topic(TopicQos),
    /// Of a publisher.
    Publisher(PublisherQos),
    /// Of a subscriber.
    Subscriber(SubscriberQos),
    /// Of a writer.
    Writer(DataWriterQos),
    /// Of a reader.
    Reader(DataReaderQos),
}

/// One value of a QoS.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QosValue {
    /// The policy.
    pub policy: PolicyId,
    /// The name of the policy's element in DDS-XML.
    pub element: &'static str,
    /// The member of the policy; the name of a property.
    pub member: String,
    /// The value as it is written in a file; durations with their unit.
    pub value: String,
    /// The line that has set it; `None` where it is the default.
    pub location: Option<Location>,
}

fn add_values(
    values: &mut Vec<QosValue>,
    origins: &Origins,
    (policy, element): (PolicyId, &'static str),
    members: Vec<(String, String)>,
) {
    for (member, value) in members {
        let location = origins.of_value(policy, &member).cloned();
        values.push(QosValue {
            policy,
            element,
            member,
            value,
            location,
        });
    }
}

/// Notes where a policy and its members were set.
fn record(origins: &mut Origins, policy: PolicyId, element: &Element, report: &Report) {
    origins.record(policy, report.location(element.at));
    for member in &element.children {
        if !member.text.is_empty() || !member.children.is_empty() {
            origins.record_value(policy, &member.name, report.location(member.at));
        }
    }
}

/// The elements that are no policy of DDS 1.4: properties, and what the draft of
/// DDS-XML 1.1 adds.
fn extras(
    properties: &mut Properties,
    origins: &mut Origins,
    element: &Element,
    report: &mut Report,
) {
    match element.name.as_str() {
        "property" => read_property(properties, origins, element, report),
        "properties" => read_properties(properties, origins, element, report),
        "partition" => return draft_partition(origins, element, report),
        "binary_properties" => {
            let message = format!("{} are not read yet", quote(&element.name));
            return report.warning(element.at, message);
        }
        _ => return,
    }
    origins.record(PolicyId::Property, report.location(element.at));
}

/// PARTITION of an entity other than publisher and subscriber: read to be refused.
fn draft_partition(origins: &mut Origins, element: &Element, report: &mut Report) {
    let mut partition = Partition::default();
    partition.read(element, report);
    if !partition.is_default() {
        origins.refuse(UnsupportedPolicy {
            policy: PolicyId::Partition,
            what: "on other entities than publishers and subscribers".to_owned(),
            location: Some(report.location(element.at)),
        });
    }
}
