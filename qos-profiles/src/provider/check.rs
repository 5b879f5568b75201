//! Diagnostics of the profiles after inheritance.

use crate::diagnostic::{Diagnostic, Severity};
use crate::entity::{
    DataReaderQos, DataWriterQos, DomainParticipantQos, PublisherQos, SubscriberQos, TopicQos,
};
use crate::location::Location;
use crate::provider::Model;
use crate::provider::profile::Layers;
use crate::xml::entity::{EntityKind, EntityQos};
use crate::xml::library::{Entity, GroupKind};

/// The diagnostics of loading, and those on each entity QoS of the profiles with all
/// that it inherits. Snippets count where they are applied.
pub(super) fn check(model: &Model) -> Vec<Diagnostic> {
    let mut remarks = model.remarks.clone();
    for (group, content) in model.groups.iter().enumerate() {
        if content.kind == GroupKind::Snippet {
            continue;
        }
        for (at, entity) in content.entities.iter().enumerate() {
            let location = Location {
                file: content.file.clone(),
                line: entity.element.at.line,
                column: entity.element.at.column,
            };
            remarks.extend(remarks_on(model, group, at, entity, &location));
        }
    }
    remarks.sort_by(|a, b| a.location.cmp(&b.location));
    let mut seen = std::collections::HashSet::new();
    remarks.retain(|remark| seen.insert((remark.location.clone(), remark.message.clone())));
    remarks
}

fn remarks_on(
    model: &Model,
    group: usize,
    at: usize,
    entity: &Entity,
    location: &Location,
) -> Vec<Diagnostic> {
    // No topic is at hand, so what is inherited is what a topic named like the
    // filter would get.
    let topic_name = entity.topic_filter.as_deref().unwrap_or_default();
    let mut layers = Layers::new(model, entity.kind, topic_name);
    layers.of_entity(group, at);
    match entity.kind {
        EntityKind::Participant => remarks_of(&layers.apply::<DomainParticipantQos>(), location),
        EntityKind::Topic => remarks_of(&layers.apply::<TopicQos>(), location),
        EntityKind::Publisher => remarks_of(&layers.apply::<PublisherQos>(), location),
        EntityKind::Subscriber => remarks_of(&layers.apply::<SubscriberQos>(), location),
        EntityKind::Writer => remarks_of(&layers.apply::<DataWriterQos>(), location),
        EntityKind::Reader => remarks_of(&layers.apply::<DataReaderQos>(), location),
    }
}

fn remarks_of<Q: EntityQos>(qos: &Q, location: &Location) -> Vec<Diagnostic> {
    let contradictions = qos.contradictions().into_iter().map(|found| Diagnostic {
        location: found.location.unwrap_or_else(|| location.clone()),
        severity: Severity::Error,
        message: format!("{} is inconsistent: {}", found.policy, found.what),
    });
    let refusals = qos.refusals().into_iter().map(|found| Diagnostic {
        location: found.location.unwrap_or_else(|| location.clone()),
        severity: Severity::Warning,
        message: format!("{} is not supported yet: {}", found.policy, found.what),
    });
    contradictions.chain(refusals).collect()
}
