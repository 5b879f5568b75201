//! Libraries, profiles and snippets of a file, before their names are linked, and what else a file
//! has.

use std::sync::Arc;

use crate::diagnostic::{At, Report, quote};
use crate::xml::domain::{self, Domain};
use crate::xml::entity::EntityKind;
use crate::xml::members::{attributes, flag, for_each, no_text, unknown};
use crate::xml::participant::{self, Participant};
use crate::xml::tree::Element;
use crate::xml::value::{sequence, text};
use crate::xml::{variables, vendor};

/// What holds QoS of several entities.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum GroupKind {
    /// A `qos_profile`.
    Profile,
    /// A `qos_snippet`.
    Snippet,
    /// The entity QoS that stand in a library by themselves.
    Loose,
    /// The QoS of topics, participants and what they contain, in their own elements.
    Inline,
}

/// What a document has.
#[derive(Debug, Default)]
pub(crate) struct Blocks {
    pub(crate) groups: Vec<Group>,
    /// The `types` elements.
    pub(crate) types: Vec<Element>,
    pub(crate) domains: Vec<Domain>,
    pub(crate) participants: Vec<Participant>,
    /// QoS in the elements of entities, which those name by index.
    pub(crate) inline: Vec<Entity>,
}

impl Blocks {
    /// Takes in the QoS in the element of an entity, which is of a topic if it has one.
    pub(crate) fn add_inline(
        &mut self,
        element: Element,
        kind: EntityKind,
        topic: Option<&str>,
        report: &mut Report,
    ) -> usize {
        let entity = entity(element, kind, report);
        self.inline.push(Entity {
            topic: topic.map(str::to_owned),
            ..entity
        });
        self.inline.len() - 1
    }
}

/// A profile or snippet, or the loose entity QoS of a library.
#[derive(Debug, Clone)]
pub(crate) struct Group {
    pub(crate) kind: GroupKind,
    /// The library's name; empty for a profile outside of one.
    pub(crate) library: String,
    /// The name within the library; empty for loose entities.
    pub(crate) name: String,
    pub(crate) base: Option<Reference>,
    /// What is applied on top of the base.
    pub(crate) snippets: Vec<Reference>,
    pub(crate) entities: Vec<Entity>,
    pub(crate) file: Arc<str>,
    pub(crate) at: At,
    /// Whether it has the QoS of entities that are created without any.
    pub(crate) is_default: bool,
    /// Whether it stands in no file.
    pub(crate) is_built_in: bool,
    /// What a built-in profile of another product has beyond the policies here.
    pub(crate) left_out: Option<&'static str>,
}

impl Group {
    /// The name by which other libraries refer to it.
    pub(crate) fn full_name(&self) -> String {
        qualified(&self.library, &self.name)
    }
}

/// One `<…_qos>` element.
#[derive(Debug, Clone)]
pub(crate) struct Entity {
    pub(crate) kind: EntityKind,
    pub(crate) name: Option<String>,
    pub(crate) base: Option<Reference>,
    pub(crate) topic_filter: Option<String>,
    /// The topic of the entity in whose element it stands.
    pub(crate) topic: Option<String>,
    pub(crate) snippets: Vec<Reference>,
    pub(crate) element: Element,
}

/// A name that stands for something elsewhere.
#[derive(Debug, Clone)]
pub(crate) struct Reference {
    pub(crate) name: String,
    pub(crate) at: At,
    /// Whether it stands in a list of bases, which may name profiles, snippets and QoS of
    /// entities. A `snippet_ref` names a snippet, and a `base_name` no snippet.
    pub(crate) is_listed: bool,
}

/// `name` as seen from outside of `library`.
pub(crate) fn qualified(library: &str, name: &str) -> String {
    if library.is_empty() {
        name.to_owned()
    } else {
        format!("{library}::{name}")
    }
}

/// Reads what a document has.
pub(crate) fn read(root: Element, report: &mut Report) -> Blocks {
    let mut blocks = Blocks::default();
    match root.name.as_str() {
        "dds" => document(root, &mut blocks, report),
        name if IN_DOCUMENT.contains(&name) && name != "qos_profile" => {
            block(root, &mut blocks, report);
        }
        name if vendor::of_service(name).is_some() => service(&root, report),
        name => {
            let name = quote(name);
            let right = "'dds', 'qos_library' or another library of it, or 'types'";
            let message = match vendor::of_root(&root.name) {
                Some(product) => format!(
                    "{name} is configuration of {product}, not DDS-XML; \
                     a file of DDS-XML begins with {right}"
                ),
                None => format!("{name} is no root of DDS-XML; it must be {right}"),
            };
            report.error(root.at, message);
        }
    }
    blocks
}

fn document(root: Element, blocks: &mut Blocks, report: &mut Report) {
    attributes(&root, &[], report);
    no_text(&root, report);
    let bare = bare(&root);
    for child in root.children {
        match child.name.as_str() {
            // Read before all else.
            variables::DEFAULTS => {}
            name if IN_DOCUMENT.contains(&name) => block(child, blocks, report),
            name if vendor::of_service(name).is_some() => service(&child, report),
            _ => unknown(&bare, &child, IN_DOCUMENT, report),
        }
    }
}

/// One of the parts of a document.
fn block(element: Element, blocks: &mut Blocks, report: &mut Report) {
    match element.name.as_str() {
        "qos_library" => library(element, &mut blocks.groups, report),
        "qos_profile" => {
            let message = "a 'qos_profile' outside of a 'qos_library' is the form of earlier \
                           schemas; it is read under its bare name";
            report.warning(element.at, message);
            let profile = group(element, GroupKind::Profile, "", report);
            blocks.groups.extend(profile);
        }
        "types" => {
            attributes(&element, &[], report);
            blocks.types.push(element);
        }
        "domain_library" => domain::read_library(element, blocks, report),
        "domain_participant_library" | "participant_library" => {
            participant::read_library(element, blocks, report);
        }
        "application_library" => participant::read_applications(element, blocks, report),
        _ => not_read(&element, report),
    }
}

fn library(element: Element, groups: &mut Vec<Group>, report: &mut Report) {
    attributes(&element, &["name"], report);
    no_text(&element, report);
    let Some(name) = name_of(&element, report) else {
        return;
    };
    let bare = bare(&element);
    let mut loose = new_group(GroupKind::Loose, &name, String::new(), element.at, report);
    for child in element.children {
        match child.name.as_str() {
            "qos_profile" => groups.extend(group(child, GroupKind::Profile, &name, report)),
            "qos_snippet" => groups.extend(group(child, GroupKind::Snippet, &name, report)),
            other => match EntityKind::from_element(other) {
                Some(kind) => {
                    if child.attribute("name").is_none() {
                        let message = "QoS that stands in a library by itself needs a name";
                        report.error(child.at, message);
                    }
                    loose.entities.push(entity(child, kind, report));
                }
                None => unknown(&bare, &child, IN_LIBRARY, report),
            },
        }
    }
    groups.push(loose);
}

fn group(element: Element, kind: GroupKind, library: &str, report: &mut Report) -> Option<Group> {
    let known: &[&str] = if kind == GroupKind::Profile {
        &["name", "base_name", "is_default_qos"]
    } else {
        &["name"]
    };
    attributes(&element, known, report);
    no_text(&element, report);
    let name = name_of(&element, report)?;
    let bare = bare(&element);
    let mut group = new_group(kind, library, name, element.at, report);
    group.base = reference(&element, "base_name", report);
    group.is_default = flag(&element, "is_default_qos", false, report);
    for child in element.children {
        match EntityKind::from_element(&child.name) {
            Some(kind) => group.entities.push(entity(child, kind, report)),
            None if child.name == "qos_snippets" => {
                group.snippets.extend(snippet_references(&child, report));
            }
            None if child.name == "base_name" => {
                group.snippets.extend(listed_bases(&child, report));
            }
            None => unknown(&bare, &child, IN_PROFILE, report),
        }
    }
    unreachable_entities(&group, report);
    Some(group)
}

fn entity(element: Element, kind: EntityKind, report: &mut Report) -> Entity {
    // An entity of another kind is of no topic.
    let known: &[&str] = match kind.is_of_topic() {
        true => &["name", "base_name", "topic_filter"],
        false => &["name", "base_name"],
    };
    attributes(&element, known, report);
    kind.check(&element, report);
    let mut snippets = Vec::new();
    for child in &element.children {
        match child.name.as_str() {
            "qos_snippets" => snippets.extend(snippet_references(child, report)),
            "base_name" => snippets.extend(listed_bases(child, report)),
            _ => {}
        }
    }
    Entity {
        kind,
        name: element.attribute("name").map(str::to_owned),
        base: reference(&element, "base_name", report),
        topic_filter: match kind.is_of_topic() {
            true => element.attribute("topic_filter").map(str::to_owned),
            false => None,
        },
        topic: None,
        snippets,
        element,
    }
}

/// The names in `<base_name>`, one in each `element`: several bases, each applied on top of those
/// before it. They are on top of the one base that the attribute names.
fn listed_bases(element: &Element, report: &mut Report) -> Vec<Reference> {
    attributes(element, &[], report);
    let mut references = Vec::new();
    sequence(element, report, |item, report| {
        let Some(name) = text(item, report) else {
            return;
        };
        match name {
            "" => report.error(
                item.at,
                "'element' is empty; it must name a profile or snippet",
            ),
            name => references.push(Reference {
                name: name.strip_prefix("::").unwrap_or(name).to_owned(),
                at: item.at,
                is_listed: true,
            }),
        }
    });
    references
}

fn snippet_references(element: &Element, report: &mut Report) -> Vec<Reference> {
    attributes(element, &[], report);
    let mut references = Vec::new();
    for_each(element, &["snippet"], true, report, |snippet, report| {
        attributes(snippet, &["snippet_ref"], report);
        no_text(snippet, report);
        match reference(snippet, "snippet_ref", report) {
            Some(reference) => references.push(reference),
            None => report.error(snippet.at, "a 'snippet' without 'snippet_ref'"),
        }
    });
    references
}

/// What an attribute refers to, if the element has it.
pub(crate) fn reference(
    element: &Element,
    attribute: &str,
    report: &mut Report,
) -> Option<Reference> {
    let name = element.attribute(attribute)?;
    if name.is_empty() {
        report.error(
            element.at,
            format!("{attribute} is empty; leave it out or name something"),
        );
        return None;
    }
    let name = name.strip_prefix("::").unwrap_or(name).to_owned();
    Some(Reference {
        name,
        at: element.at,
        is_listed: false,
    })
}

/// The name of an element that has to have one.
pub(crate) fn name_of(element: &Element, report: &mut Report) -> Option<String> {
    let kind = quote(&element.name);
    match element.attribute("name") {
        Some("") => report.error(element.at, format!("{kind} has no name")),
        Some(name) if name.contains("::") => {
            let name = quote(name);
            report.error(
                element.at,
                format!("{kind} is named {name}; '::' is only for references"),
            );
        }
        Some(name) => return Some(name.to_owned()),
        None => report.error(element.at, format!("{kind} has no attribute 'name'")),
    }
    None
}

/// Warns of entity QoS that a lookup by topic never gets to.
fn unreachable_entities(group: &Group, report: &mut Report) {
    let mut catches_all = Vec::new();
    for entity in &group.entities {
        if catches_all.contains(&entity.kind) && entity.name.is_none() {
            let message = format!(
                "this {} is never used: an earlier one in {} is for all topics",
                quote(&entity.element.name),
                quote(&group.name)
            );
            report.warning(entity.element.at, message);
        }
        let filter = entity.topic_filter.as_deref();
        if filter.is_none_or(|filter| filter == "*") && !catches_all.contains(&entity.kind) {
            catches_all.push(entity.kind);
        }
    }
}

fn not_read(element: &Element, report: &mut Report) {
    let name = quote(&element.name);
    report.warning(
        element.at,
        format!("{name} says where applications run; it has no effect on them"),
    );
}

fn service(element: &Element, report: &mut Report) {
    let product = vendor::of_service(&element.name).unwrap_or_default();
    let name = quote(&element.name);
    report.warning(
        element.at,
        format!("{name} configures a service or tool of {product}; it is ignored"),
    );
}

/// The element without what is in it, for messages about it.
pub(crate) fn bare(element: &Element) -> Element {
    Element {
        name: element.name.clone(),
        attributes: Vec::new(),
        children: Vec::new(),
        text: String::new(),
        text_at: element.at,
        at: element.at,
        dialect: element.dialect,
        unset: Vec::new(),
    }
}

fn new_group(kind: GroupKind, library: &str, name: String, at: At, report: &Report) -> Group {
    Group {
        kind,
        library: library.to_owned(),
        name,
        base: None,
        snippets: Vec::new(),
        entities: Vec::new(),
        file: report.file().clone(),
        at,
        is_default: false,
        is_built_in: false,
        left_out: None,
    }
}

const IN_DOCUMENT: &[&str] = &[
    "qos_library",
    "qos_profile",
    "types",
    "domain_library",
    "domain_participant_library",
    // The name in earlier files of RTI Connext.
    "participant_library",
    "application_library",
    // Of the draft of DDS-XML 1.1.
    "node_library",
    "deployment_library",
];

const IN_PROFILE: &[&str] = &[
    "base_name",
    "qos_snippets",
    "domain_participant_qos",
    "topic_qos",
    "publisher_qos",
    "subscriber_qos",
    "datawriter_qos",
    "datareader_qos",
];

const IN_LIBRARY: &[&str] = &[
    "qos_profile",
    "qos_snippet",
    "domain_participant_qos",
    "topic_qos",
    "publisher_qos",
    "subscriber_qos",
    "datawriter_qos",
    "datareader_qos",
];
