//! The building block Domains (DDS-XML 1.0 §7.3.4): registered types and topics.

use std::sync::Arc;

use crate::diagnostic::{At, Report, quote};
use crate::xml::entity::EntityKind;
use crate::xml::library::{Blocks, Reference, bare, name_of, reference};
use crate::xml::members::{attributes, no_text, unknown};
use crate::xml::tree::Element;
use crate::xml::value::{number_of, text};

/// A `domain`.
#[derive(Debug, Clone)]
pub(crate) struct Domain {
    /// `Library::Domain`.
    pub(crate) name: String,
    pub(crate) library: String,
    pub(crate) base: Option<Reference>,
    pub(crate) id: Option<u32>,
    pub(crate) topics: Topics,
    pub(crate) at: At,
}

/// The types and topics in the element of a domain or a participant.
#[derive(Debug, Clone)]
pub(crate) struct Topics {
    pub(crate) types: Vec<RegisteredType>,
    pub(crate) topics: Vec<Topic>,
    pub(crate) file: Arc<str>,
    /// The file, counted from 0; set when all files are read.
    pub(crate) source: usize,
}

/// A `register_type`.
#[derive(Debug, Clone)]
pub(crate) struct RegisteredType {
    /// By which topics refer to it.
    pub(crate) name: String,
    /// By which the type is known to others, where it is not its own name.
    pub(crate) registered_name: Option<String>,
    pub(crate) type_ref: Reference,
}

/// A `topic`.
#[derive(Debug, Clone)]
pub(crate) struct Topic {
    /// By which writers and readers refer to it.
    pub(crate) name: String,
    /// Its name in the domain, where that is another one.
    pub(crate) topic_name: Option<String>,
    pub(crate) registered_type: Option<Reference>,
    /// Indices of inline QoS: of the topic, and of its writers and readers.
    pub(crate) qos: Option<usize>,
    pub(crate) writer_qos: Option<usize>,
    pub(crate) reader_qos: Option<usize>,
    pub(crate) at: At,
}

impl Topics {
    pub(crate) fn new(report: &Report) -> Self {
        Self {
            types: Vec::new(),
            topics: Vec::new(),
            file: report.file().clone(),
            source: 0,
        }
    }

    /// Takes in a `register_type` or `topic`.
    pub(crate) fn add(&mut self, element: Element, blocks: &mut Blocks, report: &mut Report) {
        match element.name.as_str() {
            "register_type" => self.types.extend(registered_type(&element, report)),
            _ => self.topics.extend(topic(element, blocks, report)),
        }
    }
}

/// Reads a `domain_library`.
pub(crate) fn read_library(element: Element, blocks: &mut Blocks, report: &mut Report) {
    attributes(&element, &["name"], report);
    no_text(&element, report);
    let Some(library) = name_of(&element, report) else {
        return;
    };
    let bare = bare(&element);
    for child in element.children {
        match child.name.as_str() {
            "domain" => {
                let domain = domain(child, &library, blocks, report);
                blocks.domains.extend(domain);
            }
            _ => unknown(&bare, &child, &["domain"], report),
        }
    }
}

fn domain(
    element: Element,
    library: &str,
    blocks: &mut Blocks,
    report: &mut Report,
) -> Option<Domain> {
    attributes(
        &element,
        &["name", "base_name", "domain_id", "domain_tag"],
        report,
    );
    no_text(&element, report);
    if element.attribute("domain_tag").is_some() {
        let message = "'domain_tag' is not supported: the domain is that of the domain_id alone";
        report.error(element.at, message);
    }
    let name = name_of(&element, report)?;
    let mut domain = Domain {
        name: format!("{library}::{name}"),
        library: library.to_owned(),
        base: reference(&element, "base_name", report),
        id: domain_id(&element, report),
        topics: Topics::new(report),
        at: element.at,
    };
    let bare = bare(&element);
    for child in element.children {
        match child.name.as_str() {
            "register_type" | "topic" => domain.topics.add(child, blocks, report),
            name if OF_DRAFT.contains(&name) => of_draft(&child, report),
            _ => unknown(&bare, &child, &["register_type", "topic"], report),
        }
    }
    Some(domain)
}

/// The attribute `domain_id`.
pub(crate) fn domain_id(element: &Element, report: &mut Report) -> Option<u32> {
    let text = element.attribute("domain_id")?;
    let id = number_of(text).filter(|id| *id <= DOMAIN_ID_MAX);
    if id.is_none() {
        let text = quote(text);
        let message = format!("domain_id is {text}; it must be a number from 0 to {DOMAIN_ID_MAX}");
        report.error(element.at, message);
    }
    id
}

fn registered_type(element: &Element, report: &mut Report) -> Option<RegisteredType> {
    attributes(element, &["name", "type_ref", "kind"], report);
    no_text(element, report);
    if element.attribute("kind").is_some() {
        let message = "attribute 'kind' is of RTI Connext, not of DDS-XML; a type that the program \
                       registers comes before the description";
        report.warning(element.at, message);
    }
    let name = name_of(element, report)?;
    let mut registered_name = None;
    for child in &element.children {
        match child.name.as_str() {
            "registered_name" => registered_name = text(child, report).map(str::to_owned),
            _ => unknown(element, child, &["registered_name"], report),
        }
    }
    let type_ref = reference(element, "type_ref", report);
    Some(RegisteredType {
        type_ref: type_ref.unwrap_or_else(|| Reference {
            name: name.clone(),
            at: element.at,
            is_listed: false,
        }),
        registered_name,
        name,
    })
}

fn topic(element: Element, blocks: &mut Blocks, report: &mut Report) -> Option<Topic> {
    attributes(&element, &["name", "register_type_ref"], report);
    no_text(&element, report);
    let name = name_of(&element, report)?;
    let registered_type = reference(&element, "register_type_ref", report);
    if registered_type.is_none() {
        report.error(element.at, "a 'topic' has no attribute 'register_type_ref'");
    }
    let mut topic = Topic {
        name,
        topic_name: None,
        registered_type,
        qos: None,
        writer_qos: None,
        reader_qos: None,
        at: element.at,
    };
    let bare = bare(&element);
    let known = [
        "topic_name",
        "topic_qos",
        "datawriter_qos",
        "datareader_qos",
    ];
    for child in element.children {
        let own_name = topic.topic_name.as_ref().unwrap_or(&topic.name).clone();
        let mut add = |child, kind, report: &mut Report| {
            Some(blocks.add_inline(child, kind, Some(&own_name), report))
        };
        match child.name.as_str() {
            // `registered_name` is the word of RTI Connext.
            "topic_name" | "registered_name" => {
                topic.topic_name = text(&child, report).map(str::to_owned);
            }
            "topic_qos" => topic.qos = add(child, EntityKind::Topic, report),
            "datawriter_qos" => topic.writer_qos = add(child, EntityKind::Writer, report),
            "datareader_qos" => topic.reader_qos = add(child, EntityKind::Reader, report),
            _ => unknown(&bare, &child, &known, report),
        }
    }
    Some(topic)
}

/// Warns of an element of the draft of the next version of the standard.
pub(crate) fn of_draft(element: &Element, report: &mut Report) {
    let name = quote(&element.name);
    let message = format!("{name} is of the draft of DDS-XML 1.1, for DDS-RPC; it is passed over");
    report.warning(element.at, message);
}

pub(crate) const OF_DRAFT: &[&str] = &[
    "register_interface",
    "rpc_service",
    "request_reply_service",
    "requester",
    "replier",
    "client",
    "server",
];

/// As DDSI-RTPS 2.5 §9.6.1.1 has it.
const DOMAIN_ID_MAX: u32 = 232;
