//! What somebody else may announce, read as a view's beginning reads it: for fuzzing.

use spindle_dds_core::membership::{Endpoint as GroupEndpoint, Note};
use spindle_dds_core::{DeliveryClass, RingSpec, SubgroupId, TopicKey};
use spindle_dds_idl_runtime::Representation;
use spindle_dds_qos::{DataReaderQos, DataRepresentationId, DataWriterQos};
use spindle_dds_xtypes::graph::Type;
use spindle_dds_xtypes::{Resolved, TypeError};

use super::announcement::{Endpoint, Entry, ProtocolViolation, ReaderEntry, WriterEntry};
use super::large_types::cut;
use super::matching::{Comparisons, Match};
use super::type_announcement::{AnnouncedType, Types};
use crate::handle::Guid;

const TOPIC: &str = "Topic";

/// What is said of an endpoint, and what its participant has noted.
#[derive(Debug, Clone, Default)]
pub struct Announced {
    /// Of the endpoint.
    pub info: Vec<u8>,
    /// The pieces of type 0, in order.
    pub notes: Vec<Vec<u8>>,
}

/// What a writer or a reader would announce whose topic has this type; `noted` in pieces of so
/// many bytes, if at all.
///
/// # Errors
/// Why the type cannot be announced, or would not be understood.
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
    let told = entry
        .to_group(ring(&entry), noted)
        .map_err(|why| why.to_string())?;
    let notes = notes.into_iter().flatten();
    Ok(Announced {
        info: told.info,
        notes: notes.map(|(_, note)| note.to_vec()).collect(),
    })
}

fn ring(entry: &Entry) -> Option<(DeliveryClass, RingSpec)> {
    match entry {
        Entry::Writer(writer) => Some((writer.ring(), RingSpec::at_least(2, 128))),
        Entry::Reader(_) => None,
    }
}

/// Reads what somebody announced of a writer, or of a reader, and announces it again.
///
/// # Errors
/// Why it makes no sense.
///
/// # Panics
/// When what was understood is said in other words.
fn understand(said: &Announced, writes: bool, types: &mut Types) -> Result<Entry, String> {
    let notes = said.notes.iter().map(|note| Note::from(&note[..]));
    let notes = (0..).zip(notes).collect();
    let told = |info: &[u8]| GroupEndpoint {
        subgroup: SubgroupId(0),
        topic: TopicKey::of_name(TOPIC),
        ring: writes.then(|| (DeliveryClass::Ordered, RingSpec::at_least(2, 128))),
        info: info.to_vec(),
    };
    let entry =
        Entry::from_group(&told(&said.info), &notes, types).map_err(|why| why.to_string())?;
    let again = entry
        .to_group(ring(&entry), None)
        .map_err(|why| why.to_string())?;
    let read = Entry::from_group(&told(&again.info), &notes, types);
    assert_eq!(
        read.ok().as_ref(),
        Some(&entry),
        "it says of itself what it is"
    );
    Ok(entry)
}

/// Reads what somebody announced of a writer and what somebody announced of a reader. If
/// both make sense: why they do not meet for their types, or nothing if they do.
///
/// # Errors
/// Why they make no sense.
///
/// # Panics
/// When the two sides decide differently.
pub fn meet(writer: &Announced, reader: &Announced) -> Result<Option<String>, String> {
    let mut types = Types::default();
    let writer = understand(writer, true, &mut types)?;
    let reader = understand(reader, false, &mut types)?;
    let mut comparisons = Comparisons::default();
    let conflicts = [(&writer, &reader), (&reader, &writer)].map(|(own, other)| {
        let found = comparisons.conflict(own, other, None);
        found.map(|conflict| conflict.to_string())
    });
    let [one, other] = conflicts;
    assert_eq!(one, other, "both sides say the same");
    if let (Entry::Writer(writer), Entry::Reader(reader)) = (&writer, &reader) {
        let is_apart = Match::of(&mut comparisons, writer, reader) == Match::Apart;
        assert!(is_apart || one.is_none(), "{one:?}");
    }
    Ok(one)
}
