//! Which writers and readers match (DDS 1.4 §2.2.3).
//!
//! Types are compared by XTypes 1.3 §7.6.3.4.2. If both endpoints announce their types, the
//! writer's has to be assignable to the reader's under the reader's
//! TYPE_CONSISTENCY_ENFORCEMENT, whatever the names are. Otherwise the names have to be equal,
//! and there is no match if validation is forced. Both sides use only what was announced, so
//! they decide the same.

use std::collections::HashMap;

use spindle_dds_idl_runtime::Representation;
use spindle_dds_qos::{
    DataRepresentationId, Incompatibility, Partition, PolicyId, TypeConsistencyEnforcement,
    TypeConsistencyKind, incompatible,
};
use spindle_dds_xtypes::object::TypeIdentifier;
use spindle_dds_xtypes::{Consistency, Mismatch, Resolved, assignable};

use super::announcement::{Entry, ReaderEntry, WriterEntry};
use super::type_announcement::{AnnouncedType, LocalType};

/// The result of matching a writer with a reader.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Match {
    /// The topics, or their subgroups, differ.
    Apart,
    /// They have no partition in common: no QoS incompatibility by DDS 1.4 §2.2.3.13.
    NoCommonPartition(Box<Incompatibility>),
    /// The reader cannot read the writer's type.
    Inconsistent(Conflict),
    /// The reader requests QoS that the writer does not offer.
    Incompatible(Vec<Incompatibility>),
    /// The reader receives the writer's samples.
    Matched,
}

/// Why the types of a writer and a reader of one topic do not match.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Conflict {
    #[error("one of the types has a key, the other has not")]
    HasKey,
    #[error("the types have different names, and not both of them are announced")]
    Names,
    #[error("the reader forces validation, and not both of the types are announced")]
    NotAnnounced,
    #[error(
        "the types differ, and one of them is too large for more than its hash to be announced"
    )]
    TooLarge,
    #[error(transparent)]
    Mismatch(#[from] Mismatch),
}

/// The input of a comparison: two types, the reader's first, and the rules.
type Question = (TypeIdentifier, TypeIdentifier, Representation, Consistency);

/// Compares types, and caches the results.
#[derive(Debug, Default)]
pub(crate) struct Comparisons {
    answers: HashMap<Question, Result<(), Mismatch>>,
    /// The same with names of members, by the name of the own type; true: it is the reader's.
    named: HashMap<(Question, String, bool), Result<(), Mismatch>>,
}

/// Maximum number of cached results: beyond that the cache is cleared.
const ANSWERS_MAX: usize = 1024;

impl Match {
    pub(crate) fn of(
        comparisons: &mut Comparisons,
        writer: &WriterEntry,
        reader: &ReaderEntry,
    ) -> Self {
        if !is_same_topic(writer, reader) {
            return Self::Apart;
        }
        let (ours, theirs) = (&writer.publisher.partition, &reader.subscriber.partition);
        if !ours.matches(theirs) {
            return Self::NoCommonPartition(Box::new(Incompatibility {
                policy: PolicyId::Partition,
                offered: names(ours),
                requested: names(theirs),
            }));
        }
        if let Err(conflict) = comparisons.check(writer, reader) {
            return Self::Inconsistent(conflict);
        }
        let found = incompatible(
            &writer.qos,
            &writer.publisher,
            &reader.qos,
            &reader.subscriber,
        );
        if found.is_empty() {
            return Self::Matched;
        }
        Self::Incompatible(found)
    }

    /// Whether they are on one topic, and the reader does not receive the writer's samples.
    pub(crate) fn is_mismatch(&self) -> bool {
        !matches!(self, Self::Apart | Self::Matched)
    }
}

/// Names of partitions as text.
fn names(partition: &Partition) -> String {
    let names = partition.name.iter().map(|name| format!("{name:?}"));
    match partition.name.is_empty() {
        true => "\"\"".to_owned(),
        false => names.collect::<Vec<_>>().join(", "),
    }
}

fn is_same_topic(writer: &WriterEntry, reader: &ReaderEntry) -> bool {
    let (one, other) = (&writer.endpoint, &reader.endpoint);
    one.topic == other.topic && one.subgroup == other.subgroup
}

impl Comparisons {
    /// Checks whether a reader can read the samples of a writer of its topic.
    fn check(&mut self, writer: &WriterEntry, reader: &ReaderEntry) -> Result<(), Conflict> {
        let policy = &reader.qos.type_consistency;
        let (one, other) = (&reader.endpoint, &writer.endpoint);
        if one.has_key != other.has_key {
            return Err(Conflict::HasKey);
        }
        let (Some(mine), Some(theirs)) = (&one.ty, &other.ty) else {
            return match (
                policy.force_type_validation,
                one.type_name == other.type_name,
            ) {
                (true, _) => Err(Conflict::NotAnnounced),
                (false, true) => Ok(()),
                (false, false) => Err(Conflict::Names),
            };
        };
        if mine.minimal() == theirs.minimal() {
            return Ok(());
        }
        self.assignable(mine, theirs, representation(writer), consistency(policy))
    }

    fn assignable(
        &mut self,
        reader: &AnnouncedType,
        writer: &AnnouncedType,
        representation: Representation,
        consistency: Consistency,
    ) -> Result<(), Conflict> {
        let (Some(mine), Some(theirs)) = (&reader.resolved, &writer.resolved) else {
            return Err(Conflict::TooLarge);
        };
        let identifiers = [reader, writer].map(|it| it.minimal().clone());
        let [one, other] = identifiers;
        if self.answers.len() >= ANSWERS_MAX {
            self.answers.clear();
        }
        let question = (one, other, representation, consistency);
        let answer = self
            .answers
            .entry(question)
            .or_insert_with(|| assignable(Some(mine), Some(theirs), representation, &consistency));
        answer.clone().map_err(Conflict::from)
    }

    /// Whether the types of a writer and a reader of one topic do not match: INCONSISTENT_TOPIC
    /// (XTypes 1.3 §7.6.3.4.2).
    pub(crate) fn are_inconsistent(&mut self, own: &Entry, other: &Entry) -> bool {
        let pair = pair(own, other);
        pair.is_some_and(|(writer, reader)| self.check(writer, reader).is_err())
    }

    /// Why they do not match. `ours` is the type of `own` with its names, for the message.
    pub(crate) fn conflict(
        &mut self,
        own: &Entry,
        other: &Entry,
        ours: Option<&LocalType>,
    ) -> Option<Conflict> {
        let (writer, reader) = pair(own, other)?;
        let conflict = self.check(writer, reader).err()?;
        let Conflict::Mismatch(_) = conflict else {
            return Some(conflict);
        };
        let (Some(ours), Some(of_own), Some(of_other)) =
            (ours, &own.endpoint().ty, &other.endpoint().ty)
        else {
            return Some(conflict);
        };
        let is_reader = matches!(own, Entry::Reader(_));
        let (mine, theirs) = (of_own.minimal().clone(), of_other.minimal().clone());
        let [read, written] = match is_reader {
            true => [mine, theirs],
            false => [theirs, mine],
        };
        let consistency = consistency(&reader.qos.type_consistency);
        let question = (read, written, representation(writer), consistency);
        if self.named.len() >= ANSWERS_MAX {
            self.named.clear();
        }
        let name = own.endpoint().type_name.clone();
        let again = self
            .named
            .entry((question, name, is_reader))
            .or_insert_with(|| {
                let sides: [Option<&Resolved>; 2] = match is_reader {
                    true => [Some(&ours.named), of_other.resolved.as_ref()],
                    false => [of_other.resolved.as_ref(), Some(&ours.named)],
                };
                assignable(sides[0], sides[1], representation(writer), &consistency)
            });
        Some(again.clone().err().map_or(conflict, Conflict::from))
    }
}

/// The writer and the reader of these, if they are on one topic. (Different subgroups of one topic
/// are reported elsewhere.)
fn pair<'e>(own: &'e Entry, other: &'e Entry) -> Option<(&'e WriterEntry, &'e ReaderEntry)> {
    let (writer, reader) = match (own, other) {
        (Entry::Writer(writer), Entry::Reader(reader))
        | (Entry::Reader(reader), Entry::Writer(writer)) => Some((writer, reader)),
        _ => None,
    }?;
    let (one, other) = (&writer.endpoint.topic, &reader.endpoint.topic);
    (one == other).then_some((writer, reader))
}

/// The representation that a writer writes. (Writers of XML are refused at creation.)
fn representation(writer: &WriterEntry) -> Representation {
    match writer.qos.representation.written() {
        DataRepresentationId::Xcdr2 => Representation::Xcdr2,
        DataRepresentationId::Xcdr1 | DataRepresentationId::Xml => Representation::Xcdr1,
    }
}

fn consistency(policy: &TypeConsistencyEnforcement) -> Consistency {
    Consistency {
        allow_coercion: policy.kind == TypeConsistencyKind::AllowTypeCoercion,
        ignore_sequence_bounds: policy.ignore_sequence_bounds,
        ignore_string_bounds: policy.ignore_string_bounds,
        ignore_member_names: policy.ignore_member_names,
        prevent_type_widening: policy.prevent_type_widening,
        force_type_validation: policy.force_type_validation,
    }
}
