//! Untrusted `TypeObject`s by their identifiers.
//!
//! An added object is checked against its identifier, which must be its hash. Types that
//! contain each other share a hash, which can be checked only once all of them are present:
//! when they are resolved.

mod convert;
mod resolve;

use std::collections::HashMap;

use spindle_dds_idl_runtime::CdrError;

use crate::describe::Descriptions;
use crate::graph::{Type, TypeGraph};
use crate::object::{
    ComponentId, EquivalenceHash, IdentifiedObject, TypeIdentifier, TypeObject, TypeObjects,
};
use crate::wire::to_bytes;

/// The reason why a type cannot be added or resolved.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TypeError {
    /// There is no object for an identifier.
    #[error("type {identifier} is not known")]
    Unknown {
        /// The identifier.
        identifier: TypeIdentifier,
    },
    /// The identifier does not match the object.
    #[error("the type object is not that of {identifier}")]
    HashMismatch {
        /// The identifier.
        identifier: TypeIdentifier,
    },
    /// The object is not a valid type.
    #[error("type {name}: {reason}")]
    Malformed {
        /// The name of the type, or its identifier.
        name: String,
        /// The fault.
        reason: &'static str,
    },
    /// There are more than [`limits::TYPES_MAX`](crate::limits::TYPES_MAX), or they
    /// nest deeper than [`limits::DEPTH_MAX`](crate::limits::DEPTH_MAX).
    #[error("the type is made of too many others, or too deeply")]
    TooLarge,
    /// The bytes are not type objects.
    #[error(transparent)]
    Cdr(#[from] CdrError),
}

/// Type objects by their identifiers, in either form.
#[derive(Debug, Clone, Default)]
pub struct Registry {
    objects: HashMap<TypeIdentifier, TypeObject>,
}

/// A resolved type: its use, and the graph of its declared types.
#[derive(Debug, Clone, PartialEq)]
pub struct Resolved {
    /// The declared types.
    pub graph: TypeGraph,
    /// The type.
    pub ty: Type,
}

impl Registry {
    /// An empty registry.
    pub fn new() -> Self {
        Self::default()
    }

    /// Number of objects.
    pub fn len(&self) -> usize {
        self.objects.len()
    }

    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.objects.is_empty()
    }

    /// The object of an identifier.
    pub fn object(&self, identifier: &TypeIdentifier) -> Option<&TypeObject> {
        self.objects.get(identifier)
    }

    /// Adds an object. The object of a recursive type is checked against its identifier when it
    /// is resolved, any other now.
    ///
    /// # Errors
    /// [`TypeError::HashMismatch`].
    pub fn insert(
        &mut self,
        identifier: TypeIdentifier,
        object: TypeObject,
    ) -> Result<(), TypeError> {
        let fits = match &identifier {
            TypeIdentifier::Hash(..) => object.identifier()? == identifier,
            TypeIdentifier::Component(id) => id.equivalence == object.equivalence(),
            _ => false,
        };
        if !fits {
            return Err(TypeError::HashMismatch { identifier });
        }
        self.objects.insert(identifier, object);
        Ok(())
    }

    /// Adds objects from untrusted bytes.
    ///
    /// # Errors
    /// The bytes are invalid, or [`TypeError::HashMismatch`].
    pub fn insert_bytes(&mut self, bytes: &[u8]) -> Result<(), TypeError> {
        self.insert_objects(TypeObjects::from_bytes(bytes)?)
    }

    /// Adds objects.
    ///
    /// # Errors
    /// [`TypeError::HashMismatch`].
    pub fn insert_objects(&mut self, objects: TypeObjects) -> Result<(), TypeError> {
        for IdentifiedObject { identifier, object } in objects.0 {
            self.insert(identifier, object)?;
        }
        Ok(())
    }

    /// Adds both forms of all types of a graph.
    ///
    /// # Errors
    /// Never for descriptions that this crate has made.
    pub fn insert_graph(
        &mut self,
        graph: &TypeGraph,
        descriptions: &Descriptions,
    ) -> Result<(), TypeError> {
        for index in graph.indices() {
            for one in [descriptions.minimal(index), descriptions.complete(index)] {
                let Some(described) = one else { continue };
                self.insert(described.identifier.clone(), described.object.clone())?;
            }
        }
        Ok(())
    }

    /// Resolves a type and its dependencies.
    ///
    /// # Errors
    /// [`TypeError::Unknown`] names the first missing object; other errors are faults of
    /// present ones.
    pub fn resolve(&self, identifier: &TypeIdentifier) -> Result<Resolved, TypeError> {
        resolve::resolve(self, identifier)
    }

    /// Checks the types of a component against the hash that they share.
    fn check_component(&self, id: ComponentId) -> Result<(), TypeError> {
        let mismatch = || TypeError::HashMismatch {
            identifier: TypeIdentifier::Component(id),
        };
        if !(1..=crate::limits::COMPONENT_TYPES_MAX).contains(&id.length)
            || !(1..=id.length).contains(&id.index)
        {
            return Err(mismatch());
        }
        let object = |index: i32| {
            let identifier = TypeIdentifier::Component(ComponentId { index, ..id });
            let object = self.objects.get(&identifier).cloned();
            object.ok_or(TypeError::Unknown { identifier })
        };
        let objects: Vec<TypeObject> = (1..=id.length).map(object).collect::<Result<_, _>>()?;
        let mut bytes = to_bytes(&objects)?;
        clear(&mut bytes, &id.hash);
        // Cyclone DDS's compiler omits the delimiter of the sequence.
        let without_delimiter = bytes.get(4..).unwrap_or_default();
        let hashes = [&bytes, without_delimiter].map(EquivalenceHash::of);
        match hashes.contains(&id.hash) {
            true => Ok(()),
            false => Err(mismatch()),
        }
    }
}

/// Replaces the hash by zeros, as in the hashed objects.
fn clear(bytes: &mut [u8], hash: &EquivalenceHash) {
    let mut at = 0;
    while let Some(place) = bytes.get_mut(at..at + hash.0.len()) {
        if place == hash.0 {
            place.fill(0);
            at += hash.0.len();
        } else {
            at += 1;
        }
    }
}
