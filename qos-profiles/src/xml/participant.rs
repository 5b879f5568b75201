//! The building blocks DomainParticipants and Applications (DDS-XML 1.0 §7.3.5, §7.3.6).

use crate::diagnostic::{At, Report, quote};
use crate::xml::domain::{OF_DRAFT, Topics, domain_id, of_draft};
use crate::xml::entity::EntityKind;
use crate::xml::library::{Blocks, Reference, bare, name_of, reference};
use crate::xml::members::{attributes, no_text, unknown};
use crate::xml::tree::Element;

/// A `domain_participant`.
#[derive(Debug, Clone)]
pub(crate) struct Participant {
    /// `Library::Participant`, or `Library::Application::Participant`.
    pub(crate) full_name: String,
    pub(crate) name: String,
    /// What it stands in.
    pub(crate) library: String,
    pub(crate) base: Option<Reference>,
    pub(crate) domain: Option<Reference>,
    pub(crate) domain_id: Option<u32>,
    pub(crate) topics: Topics,
    /// The index of its inline QoS.
    pub(crate) qos: Option<usize>,
    pub(crate) publishers: Vec<Factory>,
    pub(crate) subscribers: Vec<Factory>,
    pub(crate) at: At,
}

/// A `publisher` or `subscriber`.
#[derive(Debug, Clone)]
pub(crate) struct Factory {
    /// Empty for that of writers and readers that stand directly in a participant.
    pub(crate) name: String,
    pub(crate) qos: Option<usize>,
    pub(crate) endpoints: Vec<Endpoint>,
    pub(crate) at: At,
}

/// A `data_writer` or `data_reader`.
#[derive(Debug, Clone)]
pub(crate) struct Endpoint {
    pub(crate) name: String,
    pub(crate) topic: Reference,
    pub(crate) qos: Option<usize>,
    /// An element without which it would be another entity, and that is not supported.
    pub(crate) refused: Option<String>,
    pub(crate) at: At,
}

/// The names of elements on one side of a topic.
struct Side {
    endpoint: &'static str,
    endpoint_qos: &'static str,
    endpoint_kind: EntityKind,
    factory_qos: &'static str,
    factory_kind: EntityKind,
}

const WRITING: Side = Side {
    endpoint: "data_writer",
    endpoint_qos: "datawriter_qos",
    endpoint_kind: EntityKind::Writer,
    factory_qos: "publisher_qos",
    factory_kind: EntityKind::Publisher,
};

const READING: Side = Side {
    endpoint: "data_reader",
    endpoint_qos: "datareader_qos",
    endpoint_kind: EntityKind::Reader,
    factory_qos: "subscriber_qos",
    factory_kind: EntityKind::Subscriber,
};

/// Reads a `domain_participant_library`.
pub(crate) fn read_library(element: Element, blocks: &mut Blocks, report: &mut Report) {
    attributes(&element, &["name"], report);
    if let Some(library) = name_of(&element, report) {
        participants(element, &library, blocks, report);
    }
}

/// Reads an `application_library`.
pub(crate) fn read_applications(element: Element, blocks: &mut Blocks, report: &mut Report) {
    attributes(&element, &["name"], report);
    no_text(&element, report);
    let Some(library) = name_of(&element, report) else {
        return;
    };
    let bare = bare(&element);
    for child in element.children {
        if child.name != "application" {
            unknown(&bare, &child, &["application"], report);
            continue;
        }
        attributes(&child, &["name", "base_name"], report);
        if child.attribute("base_name").is_some() {
            let message = "the 'base_name' of an application is of the draft of DDS-XML 1.1, and \
                           is passed over; its participants may have one";
            report.warning(child.at, message);
        }
        if let Some(name) = name_of(&child, report) {
            participants(child, &format!("{library}::{name}"), blocks, report);
        }
    }
}

fn participants(element: Element, library: &str, blocks: &mut Blocks, report: &mut Report) {
    no_text(&element, report);
    let bare = bare(&element);
    for child in element.children {
        match child.name.as_str() {
            "domain_participant" => {
                let participant = participant(child, library, blocks, report);
                blocks.participants.extend(participant);
            }
            _ => unknown(&bare, &child, &["domain_participant"], report),
        }
    }
}

fn participant(
    element: Element,
    library: &str,
    blocks: &mut Blocks,
    report: &mut Report,
) -> Option<Participant> {
    let known = ["name", "base_name", "domain_ref", "domain_id"];
    attributes(&element, &known, report);
    no_text(&element, report);
    let name = name_of(&element, report)?;
    let mut participant = Participant {
        full_name: format!("{library}::{name}"),
        name,
        library: library.to_owned(),
        base: reference(&element, "base_name", report),
        domain: reference(&element, "domain_ref", report),
        domain_id: domain_id(&element, report),
        topics: Topics::new(report),
        qos: None,
        publishers: Vec::new(),
        subscribers: Vec::new(),
        at: element.at,
    };
    let bare = bare(&element);
    for child in element.children {
        let at = child.at;
        match child.name.as_str() {
            "register_type" | "topic" => participant.topics.add(child, blocks, report),
            "publisher" => {
                let publisher = factory(child, &WRITING, blocks, report);
                participant.publishers.extend(publisher);
            }
            "subscriber" => {
                let subscriber = factory(child, &READING, blocks, report);
                participant.subscribers.extend(subscriber);
            }
            "data_writer" => {
                let writer = endpoint(child, &WRITING, blocks, report);
                add_directly(&mut participant.publishers, writer, at);
            }
            "data_reader" => {
                let reader = endpoint(child, &READING, blocks, report);
                add_directly(&mut participant.subscribers, reader, at);
            }
            name if EntityKind::from_element(name) == Some(EntityKind::Participant) => {
                let kind = EntityKind::Participant;
                participant.qos = Some(blocks.add_inline(child, kind, None, report));
            }
            name if OF_DRAFT.contains(&name) => of_draft(&child, report),
            _ => unknown(&bare, &child, IN_PARTICIPANT, report),
        }
    }
    Some(participant)
}

/// Adds an endpoint that stands in no publisher or subscriber to one without a name.
fn add_directly(factories: &mut Vec<Factory>, endpoint: Option<Endpoint>, at: At) {
    let Some(endpoint) = endpoint else { return };
    match factories.iter_mut().find(|it| it.name.is_empty()) {
        Some(factory) => factory.endpoints.push(endpoint),
        None => factories.push(Factory {
            name: String::new(),
            qos: None,
            endpoints: vec![endpoint],
            at,
        }),
    }
}

fn factory(
    element: Element,
    side: &Side,
    blocks: &mut Blocks,
    report: &mut Report,
) -> Option<Factory> {
    attributes(&element, &["name"], report);
    no_text(&element, report);
    let mut factory = Factory {
        name: name_of(&element, report)?,
        qos: None,
        endpoints: Vec::new(),
        at: element.at,
    };
    let bare = bare(&element);
    for child in element.children {
        match child.name.as_str() {
            name if name == side.endpoint => {
                let endpoint = endpoint(child, side, blocks, report);
                factory.endpoints.extend(endpoint);
            }
            name if name == side.factory_qos => {
                let qos = blocks.add_inline(child, side.factory_kind, None, report);
                factory.qos = Some(qos);
            }
            "data_writer" | "data_reader" => {
                let message = "a 'data_writer' stands in a 'publisher', a 'data_reader' in a \
                               'subscriber'";
                report.error(child.at, message);
            }
            _ => unknown(&bare, &child, &[side.endpoint, side.factory_qos], report),
        }
    }
    Some(factory)
}

fn endpoint(
    element: Element,
    side: &Side,
    blocks: &mut Blocks,
    report: &mut Report,
) -> Option<Endpoint> {
    attributes(&element, &["name", "topic_ref"], report);
    no_text(&element, report);
    let name = name_of(&element, report)?;
    let Some(topic) = reference(&element, "topic_ref", report) else {
        let message = format!("{} has no attribute 'topic_ref'", quote(&element.name));
        report.error(element.at, message);
        return None;
    };
    let mut endpoint = Endpoint {
        name,
        topic,
        qos: None,
        refused: None,
        at: element.at,
    };
    let is_reader = side.endpoint_kind == EntityKind::Reader;
    let bare = bare(&element);
    for child in element.children {
        match child.name.as_str() {
            name if name == side.endpoint_qos => {
                let topic = Some(endpoint.topic.name.as_str());
                let qos = blocks.add_inline(child, side.endpoint_kind, topic, report);
                endpoint.qos = Some(qos);
            }
            "content_filter" | "filter" if is_reader => {
                let message = "a filter of a reader in XML is not supported: creating the \
                               participant is refused";
                report.warning(child.at, message);
                endpoint.refused = Some(child.name);
            }
            name if is_reader && CONDITIONS.contains(&name) => {
                let name = quote(name);
                let message = format!("{name} is passed over; conditions are made by the program");
                report.warning(child.at, message);
            }
            _ => unknown(&bare, &child, &[side.endpoint_qos], report),
        }
    }
    Some(endpoint)
}

const IN_PARTICIPANT: &[&str] = &[
    "register_type",
    "topic",
    "publisher",
    "subscriber",
    "data_writer",
    "data_reader",
    "domain_participant_qos",
];

const CONDITIONS: &[&str] = &["read_condition", "query_condition", "status_condition"];
