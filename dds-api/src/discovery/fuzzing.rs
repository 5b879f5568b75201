//! For fuzzing: untrusted announcements, read as at the beginning of a view.

use spindle_dds_core::membership::{Endpoint as GroupEndpoint, Note};
use spindle_dds_core::{DeliveryClass, RingSpec, SubgroupId, TopicKey};
use spindle_dds_idl_runtime::Representation;
use spindle_dds_qos::{DataReaderQos, DataRepresentationId, DataWriterQos};
use spindle_dds_xtypes::graph::Type;
use spindle_dds_xtypes::{Resolved, TypeError};

use super::announcement::{Endpoint, Entry, ReaderEntry, WriterEntry};
use super::large_types::cut;
use super::matching::{Comparisons, Match};
use super::protocol_violation::ProtocolViolation;
use super::type_announcement::AnnouncedType;
use super::types::Types;
use crate::handle::Guid;

const TOPIC: &str = "Topic";

/// The announcement of an endpoint, and the notes of its participant.
#[derive(Debug, Clone, Default)]
pub struct Announced {
    /// The info of the endpoint.
    pub info: Vec<u8>,
    /// The pieces of type 0, in order.
    pub notes: Vec<Vec<u8>>,
}

/// The announcement of a writer, with this representation, or of a reader, of a topic of this
/// type. `noted` is the length of the pieces in bytes if the type is to stand in notes.
///
/// # Errors
/// Why the type cannot be announced, or its announcement cannot be read.
pub fn announce(
    writes: Option<Representation>,
    ty: &Resolved,
    digests_key: bool,
    noted: Option<usize>,
) -> Result<Announced, String> {
    let announced = || {
        let Type::Declared(index) = ty.ty else {
            return Err(ProtocolViolation::NoTopicType);
        };
        let described = spindle_dds_xtypes::describe(&ty.graph).map_err(TypeError::from)?;
        AnnouncedType::of(&described, &ty.graph, index, digests_key)
    };
    let endpoint = Endpoint {
        guid: Guid([7; 16]),
        topic: TOPIC.to_owned(),
        type_name: "m::T".to_owned(),
        has_key: digests_key,
        subgroup: 0,
        ty: Some(announced().map_err(|why| why.to_string())?.into()),
    };
    let entry = match writes {
        Some(representation) => Entry::Writer(WriterEntry {
            endpoint,
            number: 1,
            is_ordered: true,
            returns: 0,
            qos: DataWriterQos {
                representation: match representation {
                    Representation::Xcdr1 => DataRepresentationId::Xcdr1.into(),
                    Representation::Xcdr2 => DataRepresentationId::Xcdr2.into(),
                },
                ..DataWriterQos::default()
            },
            publisher: Default::default(),
        }),
        None => Entry::Reader(ReaderEntry {
            endpoint,
            qos: DataReaderQos::default(),
            subscriber: Default::default(),
        }),
    };
    let ty = entry.endpoint().ty.as_ref();
    let cut = noted.zip(ty).map(|(len, ty)| cut(0, ty, len.max(1)));
    let (noted, notes) = cut.unzip();
    let announced = entry
        .to_group(ring(&entry), noted)
        .map_err(|why| why.to_string())?;
    let notes = notes.into_iter().flatten();
    Ok(Announced {
        info: announced.info,
        notes: notes.map(|(_, note)| note.to_vec()).collect(),
    })
}

fn ring(entry: &Entry) -> Option<(DeliveryClass, RingSpec)> {
    match entry {
        Entry::Writer(writer) => Some((writer.class(), RingSpec::at_least(2, 128))),
        Entry::Reader(_) => None,
    }
}

/// Reads the announcement of a writer or a reader, and announces the result again.
///
/// # Errors
/// Why it is invalid.
///
/// # Panics
/// When the second announcement reads differently.
fn read(announced: &Announced, writes: bool, types: &mut Types) -> Result<Entry, String> {
    let notes = announced.notes.iter().map(|note| Note::from(&note[..]));
    let notes = (0..).zip(notes).collect();
    let endpoint = |info: &[u8]| GroupEndpoint {
        subgroup: SubgroupId(0),
        topic: TopicKey::of_name(TOPIC),
        ring: writes.then(|| (DeliveryClass::Ordered, RingSpec::at_least(2, 128))),
        info: info.to_vec(),
        log: None,
    };
    let entry = Entry::from_group(&endpoint(&announced.info), &notes, types)
        .map_err(|why| why.to_string())?;
    let again = entry
        .to_group(ring(&entry), None)
        .map_err(|why| why.to_string())?;
    let read = Entry::from_group(&endpoint(&again.info), &notes, types);
    assert_eq!(
        read.ok().as_ref(),
        Some(&entry),
        "the second announcement equals the first"
    );
    Ok(entry)
}

/// Reads the announcements of a writer and of a reader. If both are valid, returns why their
/// types do not match, or `None` if they do.
///
/// # Errors
/// Why an announcement is invalid.
///
/// # Panics
/// When the two sides decide differently.
pub fn meet(writer: &Announced, reader: &Announced) -> Result<Option<String>, String> {
    let mut types = Types::default();
    let writer = read(writer, true, &mut types)?;
    let reader = read(reader, false, &mut types)?;
    let mut comparisons = Comparisons::default();
    let conflicts = [(&writer, &reader), (&reader, &writer)].map(|(own, other)| {
        let found = comparisons.conflict(own, other, None);
        found.map(|conflict| conflict.to_string())
    });
    let [one, other] = conflicts;
    assert_eq!(one, other, "both sides decide the same");
    if let (Entry::Writer(writer), Entry::Reader(reader)) = (&writer, &reader) {
        let conflict = match Match::of(&mut comparisons, writer, reader) {
            // Types are not compared.
            Match::Apart | Match::NoCommonPartition(_) => return Ok(one),
            Match::Inconsistent(conflict) => Some(conflict.to_string()),
            Match::Incompatible(_) | Match::Matched => None,
        };
        assert_eq!(conflict, one, "a match is decided as conflicts are");
    }
    Ok(one)
}
