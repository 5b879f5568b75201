//! The announcement of the type of a topic (XTypes 1.3 §7.6.3.2).
//!
//! ```text
//!   flags | length | TypeInformation | minimal TypeObjects of the type and its dependencies
//! ```
//!
//! There is no type lookup service: each endpoint announces all that is needed to compare its
//! type with another. If that is longer than [`INLINE_LEN_MAX`], it stands in the notes of the
//! participant ([`large_types`](super::large_types)), and the endpoint refers to them. If it is
//! longer than [`TYPE_LEN_MAX`], the objects are omitted and only the identifiers are announced.

use std::sync::Arc;

use spindle_dds_idl_runtime::TypeDescription;
use spindle_dds_xtypes::graph::Type;
use spindle_dds_xtypes::object::{
    Equivalence, TypeIdentifier, TypeInformation, TypeObjects, WithDependencies,
};
use spindle_dds_xtypes::{
    Descriptions, DynamicType, Registry, Resolved, TypeError, TypeGraph, TypeIndex, describe,
};

use super::large_type_ref::LargeTypeRef;
use super::protocol_violation::{INLINE_LEN_MAX, ProtocolViolation, TYPE_LEN_MAX};

/// Flag: the key hash is a digest of the key.
const DIGESTS_KEY: u8 = 1;
/// Flag: only a [`LargeTypeRef`] follows.
pub(super) const NOTED: u8 = 2;

/// A type as an endpoint announces it.
#[derive(Debug)]
pub(crate) struct AnnouncedType {
    information: TypeInformation,
    /// The type itself; `None` if it is too large for its objects to be announced.
    pub(crate) resolved: Option<Resolved>,
    /// Whether its key hashes are digests of the keys; otherwise they are the keys.
    pub(crate) digests_key: bool,
    /// The announcement with all objects.
    bytes: Box<[u8]>,
    /// Index in `bytes` at which the objects begin.
    objects_at: usize,
}

impl PartialEq for AnnouncedType {
    fn eq(&self, other: &Self) -> bool {
        self.bytes == other.bytes
    }
}

impl Eq for AnnouncedType {}

/// The type of a topic of this participant.
#[derive(Debug)]
pub(crate) struct LocalType {
    pub(crate) announced: Arc<AnnouncedType>,
    /// The same type with names, for error messages.
    pub(crate) named: Resolved,
}

impl LocalType {
    /// From the description in the generated type.
    ///
    /// # Errors
    /// The description is invalid: the IDL compiler did not generate it.
    pub(crate) fn of(description: &TypeDescription) -> Result<Self, ProtocolViolation> {
        let information =
            TypeInformation::from_bytes(description.information).map_err(TypeError::from)?;
        let mut registry = Registry::new();
        registry.insert_bytes(description.objects)?;
        let own = Self::of_resolved(registry.resolve(&information.complete.sized.identifier)?)?;
        let agrees = own.announced.minimal() == &information.minimal.sized.identifier;
        agrees.then_some(own).ok_or(ProtocolViolation::Contradicts)
    }

    /// From a type with names.
    pub(crate) fn of_resolved(named: Resolved) -> Result<Self, ProtocolViolation> {
        let Type::Declared(index) = named.ty else {
            return Err(ProtocolViolation::NoTopicType);
        };
        let described = describe(&named.graph).map_err(TypeError::from)?;
        let digests_key = DynamicType::from(named.clone()).digests_key();
        let announced = AnnouncedType::of(&described, &named.graph, index, digests_key)?;
        Ok(Self {
            announced: Arc::new(announced),
            named,
        })
    }

    /// What a log of the topic keeps of the type: the announcement with the complete objects, which have
    /// names, in place of the minimal ones; with no objects if it would be longer than
    /// [`TYPE_LEN_MAX`]. [`log::type_in_head`](crate::log::type_in_head) reads it.
    ///
    /// # Errors
    /// Never for a type that was announced.
    pub(crate) fn logged(&self) -> Result<Vec<u8>, ProtocolViolation> {
        let Type::Declared(index) = self.named.ty else {
            return Err(ProtocolViolation::NoTopicType);
        };
        let described = describe(&self.named.graph).map_err(TypeError::from)?;
        let objects = described.objects(&self.named.graph, index);
        let objects = objects.to_bytes().map_err(TypeError::from)?;
        let mut bytes = self.announced.bytes_without_objects().to_vec();
        if bytes.len() + objects.len() <= TYPE_LEN_MAX {
            bytes.extend(objects);
        }
        Ok(bytes)
    }
}

/// A type as [`LocalType::logged`] has written it, and whether its key hashes are digests. `None`: without
/// objects.
///
/// # Errors
/// The bytes are something else.
pub(crate) fn read_logged(bytes: &[u8]) -> Result<Option<(DynamicType, bool)>, ProtocolViolation> {
    let (digests_key, information, objects) = split(bytes)?;
    if objects.is_empty() {
        return Ok(None);
    }
    let identifier = information.complete.sized.identifier;
    let resolved = resolve(&identifier, objects, Equivalence::Complete)?;
    Ok(Some((resolved.into(), digests_key)))
}

/// Omits the list of dependencies: the objects contain it.
fn without_dependents(whole: WithDependencies) -> WithDependencies {
    WithDependencies {
        dependents: Vec::new(),
        ..whole
    }
}

impl AnnouncedType {
    /// The announcement of a type of a graph.
    pub(crate) fn of(
        described: &Descriptions,
        graph: &TypeGraph,
        index: TypeIndex,
        digests_key: bool,
    ) -> Result<Self, ProtocolViolation> {
        let information = described.information(graph, index);
        let TypeInformation { minimal, complete } =
            information.ok_or(ProtocolViolation::NoTopicType)?;
        let information = TypeInformation {
            minimal: without_dependents(minimal),
            complete: without_dependents(complete),
        };
        let information = information.to_bytes().map_err(TypeError::from)?;
        let objects = described.minimal_objects(graph, index);
        let objects = objects.to_bytes().map_err(TypeError::from)?;
        let mut bytes = vec![if digests_key { DIGESTS_KEY } else { 0 }];
        bytes.extend((information.len() as u32).to_le_bytes());
        bytes.extend(information);
        bytes.extend(objects);
        Self::from_bytes(&bytes)
    }

    /// Reads untrusted bytes. Checks that every object has the hash by which it is named, and
    /// that either all dependencies of the type are present or no object at all.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Result<Self, ProtocolViolation> {
        let (digests_key, information, objects) = split(bytes)?;
        let minimal = &information.minimal.sized.identifier;
        let resolved = match objects.is_empty() {
            true => None,
            false => Some(resolve(minimal, objects, Equivalence::Minimal)?),
        };
        let named = [
            (&information.minimal, Equivalence::Minimal),
            (&information.complete, Equivalence::Complete),
        ];
        for (named, equivalence) in named {
            if named.sized.identifier.equivalence() != Some(equivalence) {
                return Err(ProtocolViolation::NoTopicType);
            }
        }
        Ok(Self {
            information,
            resolved,
            digests_key,
            bytes: bytes.into(),
            objects_at: bytes.len() - objects.len(),
        })
    }

    /// The identifier of its minimal form.
    pub(crate) fn minimal(&self) -> &TypeIdentifier {
        &self.information.minimal.sized.identifier
    }

    /// Its identifiers.
    pub(crate) fn information(&self) -> &TypeInformation {
        &self.information
    }

    /// The announcement with all objects.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The announcement if `bytes` are too long.
    pub(crate) fn bytes_without_objects(&self) -> &[u8] {
        &self.bytes[..self.objects_at]
    }

    /// Whether it has to stand in notes.
    pub(crate) fn is_noted(&self) -> bool {
        (INLINE_LEN_MAX + 1..=TYPE_LEN_MAX).contains(&self.bytes.len())
    }

    /// The type in the announcement of an endpoint; `noted` refers to its notes, if it has any.
    pub(crate) fn announced(&self, noted: Option<LargeTypeRef>) -> Vec<u8> {
        match noted {
            Some(noted) => [&[NOTED][..], &noted.to_bytes()].concat(),
            None if self.bytes.len() <= INLINE_LEN_MAX => self.bytes.to_vec(),
            None => self.bytes_without_objects().to_vec(),
        }
    }
}

/// The parts of an announcement: whether key hashes are digests, the identifiers, the objects.
fn split(bytes: &[u8]) -> Result<(bool, TypeInformation, &[u8]), ProtocolViolation> {
    let (flags, rest) = bytes.split_first().ok_or(ProtocolViolation::Truncated)?;
    let digests_key = match *flags {
        0 => false,
        DIGESTS_KEY => true,
        _ => return Err(ProtocolViolation::Contradicts),
    };
    let (len, rest) = rest
        .split_first_chunk()
        .ok_or(ProtocolViolation::Truncated)?;
    let len = u32::from_le_bytes(*len) as usize;
    let (information, objects) = rest
        .split_at_checked(len)
        .ok_or(ProtocolViolation::Truncated)?;
    let information = TypeInformation::from_bytes(information).map_err(TypeError::from)?;
    Ok((digests_key, information, objects))
}

/// Resolves a type from its objects of one form. It uses a registry of its own, so that objects of
/// other types have no influence.
fn resolve(
    identifier: &TypeIdentifier,
    objects: &[u8],
    form: Equivalence,
) -> Result<Resolved, ProtocolViolation> {
    let objects = TypeObjects::from_bytes(objects).map_err(TypeError::from)?;
    let is_of_form = |it: &TypeIdentifier| it.equivalence() == Some(form);
    if !objects.0.iter().all(|one| is_of_form(&one.identifier)) {
        return Err(ProtocolViolation::Contradicts);
    }
    let mut registry = Registry::new();
    registry.insert_objects(objects)?;
    Ok(registry.resolve(identifier)?)
}
