//! What is announced of the type of a topic (XTypes 1.3 §7.6.3.2).
//!
//! ```text
//!   flags | length | TypeInformation | TypeObjects, minimal, of all that it is made of
//! ```
//!
//! There is no service that types are asked of: each endpoint brings along what it takes to
//! compare its type with another. Where that is longer than [`INLINE_LEN_MAX`], it stands in
//! its participant's notes ([`large_types`](super::large_types)), and the endpoint says where. What
//! is longer than [`TYPE_LEN_MAX`] is announced without the objects: by its identifier alone.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Weak};

use spindle_dds_core::membership::Note;
use spindle_dds_idl_runtime::TypeDescription;
use spindle_dds_xtypes::graph::Type;
use spindle_dds_xtypes::object::{
    Equivalence, TypeIdentifier, TypeInformation, TypeObjects, WithDependencies,
};
use spindle_dds_xtypes::{
    Descriptions, DynamicType, Registry, Resolved, TypeError, TypeGraph, TypeIndex, describe,
};

use super::announcement::ProtocolViolation;
use super::large_types::{LargeTypeCache, LargeTypeRef};

/// The key hash is a digest of the key.
const DIGESTS_KEY: u8 = 1;
/// Nothing follows but where the type is noted.
const NOTED: u8 = 2;

/// Most bytes of a type that are announced with each endpoint.
pub(crate) const INLINE_LEN_MAX: usize = 16 << 10;
/// Most bytes of a type that are announced at all.
pub(crate) const TYPE_LEN_MAX: usize = 1 << 20;

/// A type as an endpoint announces it.
#[derive(Debug)]
pub(crate) struct AnnouncedType {
    information: TypeInformation,
    /// What it is; `None` of a type that is too large for that to be announced.
    pub(crate) resolved: Option<Resolved>,
    /// Whether its key hashes are digests of keys, or keys.
    pub(crate) digests_key: bool,
    bytes: Box<[u8]>,
    /// Where the objects begin.
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
    /// The same with names, for messages.
    pub(crate) named: Resolved,
}

impl LocalType {
    /// Of what the generated type carries.
    ///
    /// # Errors
    /// That it makes no sense: of types that no compiler has made.
    pub(crate) fn of(description: &TypeDescription) -> Result<Self, ProtocolViolation> {
        let said = TypeInformation::from_bytes(description.information).map_err(TypeError::from)?;
        let mut registry = Registry::new();
        registry.insert_bytes(description.objects)?;
        let own = Self::of_resolved(registry.resolve(&said.complete.sized.identifier)?)?;
        let is_cancelled = own.announced.minimal() == &said.minimal.sized.identifier;
        is_cancelled
            .then_some(own)
            .ok_or(ProtocolViolation::Contradicts)
    }

    /// Of a type with names.
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
}

/// Without the list of what it is made of: the objects say that.
fn alone(whole: WithDependencies) -> WithDependencies {
    WithDependencies {
        dependents: Vec::new(),
        ..whole
    }
}

impl AnnouncedType {
    /// Of a type of a graph that is described.
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
            minimal: alone(minimal),
            complete: alone(complete),
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

    /// From bytes that nobody has vouched for: every object has the hash by which it is
    /// named, and all that the type is made of is there, or no object at all.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Result<Self, ProtocolViolation> {
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
        let resolved = match objects.is_empty() {
            true => None,
            false => Some(resolve(&information.minimal.sized.identifier, objects)?),
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

    /// As it is announced.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// As it is announced where that is too long.
    pub(crate) fn bytes_without_objects(&self) -> &[u8] {
        &self.bytes[..self.objects_at]
    }

    /// Whether it is announced by notes.
    pub(crate) fn is_noted(&self) -> bool {
        (INLINE_LEN_MAX + 1..=TYPE_LEN_MAX).contains(&self.bytes.len())
    }

    /// What an endpoint says of it, and where it is noted if it is.
    pub(crate) fn announced(&self, noted: Option<LargeTypeRef>) -> Vec<u8> {
        match noted {
            Some(noted) => [&[NOTED][..], &noted.to_bytes()].concat(),
            None if self.bytes.len() <= INLINE_LEN_MAX => self.bytes.to_vec(),
            None => self.bytes_without_objects().to_vec(),
        }
    }
}

/// Puts a type together from minimal objects. A registry of its own: nobody else's objects
/// have a say.
fn resolve(identifier: &TypeIdentifier, objects: &[u8]) -> Result<Resolved, ProtocolViolation> {
    let objects = TypeObjects::from_bytes(objects).map_err(TypeError::from)?;
    let is_minimal = |it: &TypeIdentifier| it.equivalence() == Some(Equivalence::Minimal);
    if !objects.0.iter().all(|one| is_minimal(&one.identifier)) {
        return Err(ProtocolViolation::Contradicts);
    }
    let mut registry = Registry::new();
    registry.insert_objects(objects)?;
    Ok(registry.resolve(identifier)?)
}

/// Announced types that somebody has: one, however many endpoints announce it.
#[derive(Debug, Default)]
pub(crate) struct Types {
    inline: HashMap<Box<[u8]>, Weak<AnnouncedType>>,
    noted: LargeTypeCache,
}

impl Types {
    /// The type of which an endpoint says this, of a participant with these notes.
    pub(crate) fn read(
        &mut self,
        bytes: &[u8],
        notes: &BTreeMap<u64, Note>,
    ) -> Result<Arc<AnnouncedType>, ProtocolViolation> {
        if let Some((&NOTED, noted)) = bytes.split_first() {
            return self.noted.read(LargeTypeRef::from_bytes(noted)?, notes);
        }
        if let Some(known) = self.inline.get(bytes).and_then(Weak::upgrade) {
            return Ok(known);
        }
        let read = Arc::new(AnnouncedType::from_bytes(bytes)?);
        self.inline.insert(bytes.into(), Arc::downgrade(&read));
        Ok(read)
    }

    /// Forgets those that nobody has.
    pub(crate) fn tidy(&mut self) {
        self.inline.retain(|_, ty| ty.strong_count() != 0);
        self.noted.tidy();
    }

    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.inline.is_empty() && self.noted.is_empty()
    }
}
