//! Diagnostics of the profiles after inheritance.

use crate::diagnostic::{At, Diagnostic, Severity};
use crate::entity::{
    DataReaderQos, DataWriterQos, DomainParticipantQos, PublisherQos, SubscriberQos, TopicQos,
};
use crate::location::Location;
use crate::provider::Model;
use crate::provider::profile::Layers;
use crate::xml::entity::{AnyQos, EntityKind, EntityQos};
use crate::xml::library::{Group, GroupKind};

/// One `..._qos` element of a file with all that it inherits, or what a profile without such an
/// element inherits.
#[derive(Debug, Clone)]
pub struct DeclaredQos {
    /// The QoS.
    pub qos: AnyQos,
    /// What a participant of the same profile gets.
    pub participant: DomainParticipantQos,
    /// Where the element or the profile stands.
    pub location: Location,
}

impl DeclaredQos {
    /// Policies that contradict each other (errors), and policies whose behaviour is not built
    /// (warnings). A policy that no file has set is placed at the element.
    pub fn check(&self) -> Vec<Diagnostic> {
        let place = &self.location;
        match &self.qos {
            AnyQos::Participant(qos) => remarks_of(qos, place),
            AnyQos::Topic(qos) => remarks_of(qos, place),
            AnyQos::Publisher(qos) => remarks_of(qos, place),
            AnyQos::Subscriber(qos) => remarks_of(qos, place),
            AnyQos::Writer(qos) => remarks_of(qos, place),
            AnyQos::Reader(qos) => remarks_of(qos, place),
        }
    }
}

/// The diagnostics of loading, and those on each entity QoS of the profiles with all
/// that it inherits. Snippets count where they are applied.
pub(super) fn check(model: &Model) -> Vec<Diagnostic> {
    let declared = declared(model);
    let remarks = declared.iter().flat_map(DeclaredQos::check);
    Diagnostic::sorted(model.remarks.iter().cloned().chain(remarks))
}

pub(super) fn declared(model: &Model) -> Vec<DeclaredQos> {
    let mut declared = Vec::new();
    for (group, content) in model.groups.iter().enumerate() {
        if content.kind == GroupKind::Snippet || content.is_built_in {
            continue;
        }
        let participant = match content.kind {
            GroupKind::Loose | GroupKind::Inline => DomainParticipantQos::default(),
            _ => {
                let mut layers = Layers::new(model, EntityKind::Participant, "");
                layers.of_group(group);
                layers.apply()
            }
        };
        for (at, entity) in content.entities.iter().enumerate() {
            // Where no topic is at hand, what is inherited is what a topic named like the
            // filter would get.
            let topic_name = entity.topic.as_ref().or(entity.topic_filter.as_ref());
            let topic_name = topic_name.map_or("", String::as_str);
            let mut layers = Layers::new(model, entity.kind, topic_name);
            layers.of_entity(group, at);
            declared.push(DeclaredQos {
                qos: qos_of(&layers, entity.kind),
                participant: participant.clone(),
                location: location(content, entity.element.at),
            });
        }
        let has_own = |kind| content.entities.iter().any(|entity| entity.kind == kind);
        for kind in EntityKind::ALL.into_iter().filter(|kind| !has_own(*kind)) {
            let mut layers = Layers::new(model, kind, "");
            layers.of_group(group);
            if !layers.is_empty() {
                declared.push(DeclaredQos {
                    qos: qos_of(&layers, kind),
                    participant: participant.clone(),
                    location: location(content, content.at),
                });
            }
        }
    }
    declared
}

fn location(group: &Group, at: At) -> Location {
    Location {
        file: group.file.clone(),
        line: at.line,
        column: at.column,
    }
}

fn qos_of(layers: &Layers<'_>, kind: EntityKind) -> AnyQos {
    match kind {
        EntityKind::Participant => layers.apply::<DomainParticipantQos>().into_any(),
        EntityKind::Topic => layers.apply::<TopicQos>().into_any(),
        EntityKind::Publisher => layers.apply::<PublisherQos>().into_any(),
        EntityKind::Subscriber => layers.apply::<SubscriberQos>().into_any(),
        EntityKind::Writer => layers.apply::<DataWriterQos>().into_any(),
        EntityKind::Reader => layers.apply::<DataReaderQos>().into_any(),
    }
}

fn remarks_of<Q: EntityQos>(qos: &Q, place: &Location) -> Vec<Diagnostic> {
    let mut remarks = Vec::new();
    for found in qos.contradictions() {
        let message = format!("{} is inconsistent: {}", found.policy, found.what);
        remarks.push(remark(Severity::Error, message, found.location, place));
    }
    for found in qos.refusals() {
        let message = format!("{} is not supported yet: {}", found.policy, found.what);
        remarks.push(Diagnostic {
            unsupported: Some(found.policy),
            ..remark(Severity::Warning, message, found.location, place)
        });
    }
    remarks
}

/// A remark where a policy was set; at `place`, where the file names a built-in profile that has
/// set it.
fn remark(
    severity: Severity,
    message: String,
    set_at: Option<Location>,
    place: &Location,
) -> Diagnostic {
    let (location, message) = match set_at {
        Some(location) if location.line > 0 => (location, message),
        Some(built_in) => (place.clone(), format!("{message} (by {built_in})")),
        None => (place.clone(), message),
    };
    Diagnostic {
        location,
        severity,
        message,
        unsupported: None,
    }
}
