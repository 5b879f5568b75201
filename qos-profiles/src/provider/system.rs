//! Domains and participants of all files: the targets of their names, and what they inherit.
//!
//! A name is looked for in the library of the element that has it, then as it stands, then, if
//! only one library has it, in that. What a domain or a participant inherits comes first; what it
//! has itself replaces what has the same name.

use spindle_dds_xtypes::DynamicType;

use super::declared::{
    DeclaredParticipant, DeclaredPublisher, DeclaredReader, DeclaredSubscriber, DeclaredTopic,
    DeclaredWriter,
};
use super::profile::Layers;
use super::twice::twice;
use super::{Model, UnknownParticipant};
use crate::diagnostic::{At, Diagnostic, Report, did_you_mean, quote};
use crate::location::Location;
use crate::xml::domain::{Domain, RegisteredType, Topic, Topics};
use crate::xml::entity::EntityQos;
use crate::xml::library::{Reference, qualified};
use crate::xml::participant::{Endpoint, Factory, Participant};
use crate::xml::types::TypeLibrary;

/// Domains, participants and types of all files, in their order.
#[derive(Debug, Default)]
pub(super) struct System {
    pub(super) domains: Vec<Domain>,
    pub(super) participants: Vec<Participant>,
    pub(super) types: TypeLibrary,
    /// By file: the group that has the inline QoS of its elements.
    pub(super) inline_groups: Vec<usize>,
}

/// Something with a name in a library.
pub(super) trait Named {
    fn full_name(&self) -> &str;
    fn library(&self) -> &str;
    fn base(&self) -> Option<&Reference>;
    fn topics(&self) -> &Topics;
    const KIND: &'static str;
}

impl Named for Domain {
    fn full_name(&self) -> &str {
        &self.name
    }

    fn library(&self) -> &str {
        &self.library
    }

    fn base(&self) -> Option<&Reference> {
        self.base.as_ref()
    }

    fn topics(&self) -> &Topics {
        &self.topics
    }

    const KIND: &'static str = "domain";
}

impl Named for Participant {
    fn full_name(&self) -> &str {
        &self.full_name
    }

    fn library(&self) -> &str {
        &self.library
    }

    fn base(&self) -> Option<&Reference> {
        self.base.as_ref()
    }

    fn topics(&self) -> &Topics {
        &self.topics
    }

    const KIND: &'static str = "participant";
}

/// What the name `name`, which stands in an element of `library`, means.
fn find<'a, N: Named>(all: &'a [N], library: &str, name: &str) -> Option<&'a N> {
    let by = |name: &str| all.iter().find(|it| it.full_name() == name);
    let alone = || {
        let is_it = |it: &&N| {
            let rest = it.full_name().strip_prefix(it.library());
            rest.and_then(|rest| rest.strip_prefix("::")) == Some(name)
        };
        let mut found = all.iter().filter(is_it);
        found.next().filter(|_| found.next().is_none())
    };
    by(&qualified(library, name))
        .or_else(|| by(name))
        .or_else(alone)
}

/// As [`find`]; an unknown name is reported.
fn required<'a, N: Named>(
    all: &'a [N],
    library: &str,
    reference: &Reference,
    attribute: &str,
    report: &mut Report,
) -> Option<&'a N> {
    let found = find(all, library, &reference.name);
    if found.is_none() {
        let known = all.iter().take(HINTED_NAMES_MAX).map(N::full_name);
        let hint = did_you_mean(&reference.name, known);
        let (name, kind) = (quote(&reference.name), N::KIND);
        let message = format!("{attribute} {name} is no known {kind}{hint}");
        report.error(reference.at, message);
    }
    found
}

/// An element and what it inherits from, the furthest first.
fn chain<'a, N: Named>(all: &'a [N], last: &'a N, remarks: &mut Vec<Diagnostic>) -> Vec<&'a N> {
    let mut chain = vec![last];
    let mut next = last;
    while let Some(base) = next.base() {
        let mut report = Report::new(next.topics().file.clone());
        let found = required(all, next.library(), base, "base_name", &mut report);
        let Some(found) = found else {
            remarks.extend(report.into_diagnostics());
            break;
        };
        let is_circle = chain.iter().any(|known| std::ptr::eq(*known, found));
        if is_circle || chain.len() == CHAIN_MAX {
            let message = match is_circle {
                true => format!("inheritance goes in a circle: {}", found.full_name()),
                false => format!("inheritance goes over more than {CHAIN_MAX} steps"),
            };
            report.error(base.at, message);
            remarks.extend(report.into_diagnostics());
            break;
        }
        chain.push(found);
        next = found;
    }
    chain.reverse();
    chain
}

/// The topics and registered types that are known somewhere, later ones in place of earlier ones
/// of the same name.
#[derive(Default)]
struct Scope<'a> {
    types: Vec<(&'a RegisteredType, &'a Topics)>,
    topics: Vec<(&'a Topic, &'a Topics)>,
}

impl<'a> Scope<'a> {
    fn add(&mut self, from: &'a Topics) {
        for ty in &from.types {
            self.types.retain(|(known, _)| known.name != ty.name);
            self.types.push((ty, from));
        }
        for topic in &from.topics {
            self.topics.retain(|(known, _)| known.name != topic.name);
            self.topics.push((topic, from));
        }
    }
}

impl Model {
    /// What is wrong with the names in domains and participants.
    pub(super) fn check_system(&self) -> Vec<Diagnostic> {
        let mut remarks = twice(&self.system.domains);
        remarks.extend(twice(&self.system.participants));
        let mut steps = 0;
        for domain in &self.system.domains {
            let scope = self.scope_of(&[domain], &mut remarks);
            steps += scope.topics.len() + scope.types.len();
            self.check_scope(&scope, &mut remarks);
            if steps > STEPS_MAX {
                break;
            }
        }
        for participant in &self.system.participants {
            let declared = self.declared_participant(participant, &mut remarks);
            steps += declared.topics.len();
            if steps > STEPS_MAX || remarks.len() > REMARKS_MAX {
                break;
            }
        }
        if steps > STEPS_MAX {
            let file = self.system.participants.first().map(|it| &it.topics.file);
            let file = file.or_else(|| self.system.domains.first().map(|it| &it.topics.file));
            if let Some(file) = file {
                let mut report = Report::new(file.clone());
                let message = format!("the files repeat more than {STEPS_MAX} topics");
                report.error(crate::xml::tree::START, message);
                remarks.extend(report.into_diagnostics());
            }
        }
        Diagnostic::sorted(remarks)
    }

    /// The participant of this name.
    pub(super) fn participant(
        &self,
        name: &str,
    ) -> Result<DeclaredParticipant, UnknownParticipant> {
        match find(&self.system.participants, "", name) {
            Some(found) => Ok(self.declared_participant(found, &mut Vec::new())),
            None => Err(UnknownParticipant {
                name: name.to_owned(),
                known: self.participant_names(),
            }),
        }
    }

    pub(super) fn participant_names(&self) -> Vec<String> {
        let all = self.system.participants.iter();
        all.map(|it| it.full_name.clone()).collect()
    }

    /// What the topics of these domains, which inherit, refer to.
    fn scope_of<'a>(&'a self, domains: &[&'a Domain], remarks: &mut Vec<Diagnostic>) -> Scope<'a> {
        let mut scope = Scope::default();
        for domain in domains {
            for level in chain(&self.system.domains, domain, remarks) {
                scope.add(&level.topics);
            }
        }
        scope
    }

    /// Reports names in topics and registered types that are not known.
    fn check_scope(&self, scope: &Scope<'_>, remarks: &mut Vec<Diagnostic>) {
        for (topic, from) in &scope.topics {
            self.topic(topic, from, scope, remarks);
        }
        for (ty, from) in &scope.types {
            self.ty(ty, from, remarks);
        }
    }

    fn ty(
        &self,
        registered: &RegisteredType,
        from: &Topics,
        remarks: &mut Vec<Diagnostic>,
    ) -> Option<DynamicType> {
        let name = &registered.type_ref.name;
        let types = &self.system.types;
        let found = types.topic_type(name);
        if found.is_none() {
            let mut report = Report::new(from.file.clone());
            let (text, at) = (quote(name), registered.type_ref.at);
            if types.declares(name) {
                let message = format!("type_ref {text} is no structure or union");
                report.error(at, message);
            } else {
                let hint = did_you_mean(name, types.names().take(HINTED_NAMES_MAX));
                let message = format!(
                    "no file describes the type {text}: the program has to register a compiled \
                     type for it{hint}"
                );
                report.warning(at, message);
            }
            remarks.extend(report.into_diagnostics());
        }
        found
    }

    fn topic(
        &self,
        topic: &Topic,
        from: &Topics,
        scope: &Scope<'_>,
        remarks: &mut Vec<Diagnostic>,
    ) -> Option<DeclaredTopic> {
        // A topic without one has been reported.
        let reference = topic.registered_type.as_ref()?;
        let mut types = scope.types.iter();
        let Some((ty, of_type)) = types.find(|(ty, _)| ty.name == reference.name) else {
            let known = scope.types.iter().take(HINTED_NAMES_MAX);
            let hint = did_you_mean(&reference.name, known.map(|(ty, _)| ty.name.as_str()));
            let name = quote(&reference.name);
            let message = format!("register_type_ref {name} is no registered type{hint}");
            let mut report = Report::new(from.file.clone());
            report.error(reference.at, message);
            remarks.extend(report.into_diagnostics());
            return None;
        };
        let topic_name = topic.topic_name.as_ref().unwrap_or(&topic.name);
        Some(DeclaredTopic {
            name: topic.name.clone(),
            topic_name: topic_name.clone(),
            registered_type: ty.registered_name.as_ref().unwrap_or(&ty.name).clone(),
            type_name: ty.type_ref.name.clone(),
            ty: self.ty(ty, of_type, remarks),
            qos: self.inline_qos(&[(from, topic.qos)], topic_name),
            location: location(from, topic.at),
        })
    }

    /// The QoS that these inline elements make, one applied on top of the other; `None` without.
    fn inline_qos<Q: EntityQos>(
        &self,
        elements: &[(&Topics, Option<usize>)],
        topic_name: &str,
    ) -> Option<Q> {
        let mut layers = Layers::new(self, Q::KIND, topic_name);
        for (from, element) in elements {
            let group = self.system.inline_groups.get(from.source);
            if let (Some(group), Some(element)) = (group, element) {
                layers.of_entity(*group, *element);
            }
        }
        (!layers.is_empty()).then(|| layers.apply())
    }

    fn declared_participant(
        &self,
        participant: &Participant,
        remarks: &mut Vec<Diagnostic>,
    ) -> DeclaredParticipant {
        let before = remarks.len();
        let levels = chain(&self.system.participants, participant, remarks);
        let mut domains = Vec::new();
        let mut domain_id = None;
        for level in &levels {
            let mut report = Report::new(level.topics.file.clone());
            if let Some(reference) = &level.domain {
                let all = &self.system.domains;
                let found = required(all, &level.library, reference, "domain_ref", &mut report);
                if let Some(found) = found {
                    domains = vec![found];
                    let of_domain = chain(all, found, &mut Vec::new());
                    domain_id = of_domain.iter().rev().find_map(|domain| domain.id);
                }
            }
            domain_id = level.domain_id.or(domain_id);
            remarks.extend(report.into_diagnostics());
        }
        // Where the domain or the base is not known, neither is what they would have.
        let mut unheard = Vec::new();
        let remarks = match remarks.len() > before {
            true => &mut unheard,
            false => remarks,
        };
        let mut scope = self.scope_of(&domains, remarks);
        levels.iter().for_each(|level| scope.add(&level.topics));
        let topics = scope.topics.iter();
        let topics = topics.filter_map(|(topic, from)| self.topic(topic, from, &scope, remarks));
        let topics: Vec<DeclaredTopic> = topics.collect();
        let qos: Vec<_> = levels.iter().map(|it| (&it.topics, it.qos)).collect();
        let publishers = factories(&levels, |level| &level.publishers);
        let subscribers = factories(&levels, |level| &level.subscribers);
        DeclaredParticipant {
            name: participant.name.clone(),
            domain_id: domain_id.unwrap_or(0),
            qos: self.inline_qos(&qos, ""),
            publishers: publishers
                .iter()
                .map(|it| self.publisher(it, &scope, remarks))
                .collect(),
            subscribers: subscribers
                .iter()
                .map(|it| self.subscriber(it, &scope, remarks))
                .collect(),
            topics,
            location: location(&participant.topics, participant.at),
        }
    }

    fn publisher(
        &self,
        merged: &Merged<'_>,
        scope: &Scope<'_>,
        remarks: &mut Vec<Diagnostic>,
    ) -> DeclaredPublisher {
        let writers = merged.endpoints.iter().filter_map(|(writer, from)| {
            let (topic, of_topic) = endpoint_topic(writer, from, scope, remarks)?;
            let elements = [(of_topic, topic.writer_qos), (*from, writer.qos)];
            Some(DeclaredWriter {
                name: writer.name.clone(),
                topic: topic.name.clone(),
                qos: self.inline_qos(&elements, name_of(topic)),
                location: location(from, writer.at),
            })
        });
        DeclaredPublisher {
            name: merged.name.to_owned(),
            qos: self.inline_qos(&merged.qos, ""),
            writers: writers.collect(),
            location: location(merged.from, merged.at),
        }
    }

    fn subscriber(
        &self,
        merged: &Merged<'_>,
        scope: &Scope<'_>,
        remarks: &mut Vec<Diagnostic>,
    ) -> DeclaredSubscriber {
        let readers = merged.endpoints.iter().filter_map(|(reader, from)| {
            let (topic, of_topic) = endpoint_topic(reader, from, scope, remarks)?;
            let elements = [(of_topic, topic.reader_qos), (*from, reader.qos)];
            Some(DeclaredReader {
                name: reader.name.clone(),
                topic: topic.name.clone(),
                qos: self.inline_qos(&elements, name_of(topic)),
                refused: reader.refused.clone(),
                location: location(from, reader.at),
            })
        });
        DeclaredSubscriber {
            name: merged.name.to_owned(),
            qos: self.inline_qos(&merged.qos, ""),
            readers: readers.collect(),
            location: location(merged.from, merged.at),
        }
    }
}

fn name_of(topic: &Topic) -> &str {
    topic.topic_name.as_ref().unwrap_or(&topic.name)
}

/// The topic of a writer or reader; an unknown one is reported.
fn endpoint_topic<'a>(
    endpoint: &Endpoint,
    from: &Topics,
    scope: &Scope<'a>,
    remarks: &mut Vec<Diagnostic>,
) -> Option<(&'a Topic, &'a Topics)> {
    let reference = &endpoint.topic;
    let mut topics = scope.topics.iter();
    let found = topics.find(|(topic, _)| topic.name == reference.name);
    if found.is_none() {
        let known = scope.topics.iter().take(HINTED_NAMES_MAX);
        let hint = did_you_mean(&reference.name, known.map(|(it, _)| it.name.as_str()));
        let name = quote(&reference.name);
        let message = format!("topic_ref {name} is no topic of the participant or domain{hint}");
        let mut report = Report::new(from.file.clone());
        report.error(reference.at, message);
        remarks.extend(report.into_diagnostics());
    }
    found.copied()
}

/// A publisher or subscriber with what participants inherit of it.
struct Merged<'a> {
    name: &'a str,
    qos: Vec<(&'a Topics, Option<usize>)>,
    endpoints: Vec<(&'a Endpoint, &'a Topics)>,
    from: &'a Topics,
    at: At,
}

fn factories<'a>(
    levels: &[&'a Participant],
    of: impl Fn(&'a Participant) -> &'a Vec<Factory>,
) -> Vec<Merged<'a>> {
    let mut all: Vec<Merged<'a>> = Vec::new();
    for level in levels {
        for factory in of(level) {
            let known = all.iter().position(|it| it.name == factory.name);
            let at = known.unwrap_or_else(|| {
                all.push(Merged {
                    name: &factory.name,
                    qos: Vec::new(),
                    endpoints: Vec::new(),
                    from: &level.topics,
                    at: factory.at,
                });
                all.len() - 1
            });
            let merged = &mut all[at];
            merged.qos.push((&level.topics, factory.qos));
            for endpoint in &factory.endpoints {
                let endpoints = &mut merged.endpoints;
                endpoints.retain(|(known, _)| known.name != endpoint.name);
                endpoints.push((endpoint, &level.topics));
            }
        }
    }
    all
}

fn location(from: &Topics, at: At) -> Location {
    Location {
        file: from.file.clone(),
        line: at.line,
        column: at.column,
    }
}

const CHAIN_MAX: usize = 64;
const HINTED_NAMES_MAX: usize = 256;
const REMARKS_MAX: usize = 200;
/// Topics with all that participants inherit, over all files.
const STEPS_MAX: usize = 1 << 20;
