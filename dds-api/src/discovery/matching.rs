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
    DataRepresentationId, PolicyId, TypeConsistencyEnforcement, TypeConsistencyKind, incompatible,
};
use spindle_dds_xtypes::object::TypeIdentifier;
use spindle_dds_xtypes::{Consistency, Mismatch, Resolved, assignable};

use super::announcement::{Entry, ReaderEntry, WriterEntry};
use super::type_announcement::{AnnouncedType, LocalType};

/// The result of matching a writer with a reader.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Match {
    /// The topics, types or partitions differ.
    Apart,
    /// The reader requests QoS that the writer does not offer.
    Incompatible(Vec<PolicyId>),
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
}

/// Maximum number of cached results: beyond that the cache is cleared.
const ANSWERS_MAX: usize = 1024;

impl Match {
    pub(crate) fn of(
        comparisons: &mut Comparisons,
        writer: &WriterEntry,
        reader: &ReaderEntry,
    ) -> Self {
        if !is_same_topic(writer, reader)
            || !writer
                .publisher
                .partition
                .matches(&reader.subscriber.partition)
            || comparisons.check(writer, reader).is_err()
        {
            return Self::Apart;
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
        Self::Incompatible(found.iter().map(|found| found.policy).collect())
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

    /// Why the types of a writer and a reader of one topic do not match, or `None`:
    /// INCONSISTENT_TOPIC (XTypes 1.3 §7.6.3.4.2). `ours` is the type of `own` with its names,
    /// for the message.
    pub(crate) fn conflict(
        &mut self,
        own: &Entry,
        other: &Entry,
        ours: Option<&LocalType>,
    ) -> Option<Conflict> {
        let (writer, reader) = match (own, other) {
            (Entry::Writer(writer), Entry::Reader(reader))
            | (Entry::Reader(reader), Entry::Writer(writer)) => Some((writer, reader)),
            _ => None,
        }?;
        // Different subgroups of one topic are reported elsewhere.
        if writer.endpoint.topic != reader.endpoint.topic {
            return None;
        }
        let conflict = self.check(writer, reader).err()?;
        let Conflict::Mismatch(_) = conflict else {
            return Some(conflict);
        };
        let named = ours.map(|ours| &ours.named);
        let theirs = other
            .endpoint()
            .ty
            .as_ref()
            .and_then(|ty| ty.resolved.as_ref());
        let sides: [Option<&Resolved>; 2] = match own {
            Entry::Reader(_) => [named, theirs],
            Entry::Writer(_) => [theirs, named],
        };
        let consistency = consistency(&reader.qos.type_consistency);
        let again = assignable(sides[0], sides[1], representation(writer), &consistency);
        Some(again.err().map_or(conflict, Conflict::from))
    }
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
