//! `TypeInformation`, which discovery announces, and sets of `TypeObject`s.

use spindle_dds_idl_runtime::encode::{Counter, Encoder};
use spindle_dds_idl_runtime::{CdrError, Extensibility, Reader, Representation};

use super::identifier::TypeIdentifier;
use super::types::TypeObject;
use crate::wire::{Wire, record};

/// Member ids of `TypeInformation`.
const MINIMAL: u32 = 0x1001;
const COMPLETE: u32 = 0x1002;
/// XCDR2: a member header whose length is the member's delimiter.
const LENGTH_CODE_NEXT: u32 = 4 << 28;

record! {
    /// An identifier and the size of its object.
    struct SizedIdentifier (appendable) {
        /// The type.
        identifier: TypeIdentifier,
        /// Bytes of its `TypeObject`.
        object_size: u32,
    }

    /// A type and its dependencies.
    struct WithDependencies (appendable) {
        /// The type.
        sized: SizedIdentifier,
        /// Number of its direct and indirect dependencies; -1 if not known.
        dependent_count: i32,
        /// The dependencies, or some of them.
        dependents: Vec<SizedIdentifier>,
    }

    /// The identifier and the object of a type.
    struct IdentifiedObject (final) {
        /// The identifier.
        identifier: TypeIdentifier,
        /// The object.
        object: TypeObject,
    }
}

/// The announcement of a topic type in discovery: XTypes 1.3 §7.6.3.2.2.
#[derive(Debug, Clone, PartialEq)]
pub struct TypeInformation {
    /// The minimal form.
    pub minimal: WithDependencies,
    /// The complete form.
    pub complete: WithDependencies,
}

impl TypeInformation {
    /// Bytes in little endian XCDR2, without an encapsulation header.
    ///
    /// # Errors
    /// Never for a value that this crate has made.
    pub fn to_bytes(&self) -> Result<Vec<u8>, CdrError> {
        crate::wire::to_bytes(self)
    }

    /// From untrusted bytes.
    ///
    /// # Errors
    /// What is wrong with them; both forms must be there.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, CdrError> {
        crate::wire::from_bytes(bytes)
    }
}

/// A member that was present, or the error that it is missing.
fn present<T>(member: Option<T>, reader: &Reader<'_>) -> Result<T, CdrError> {
    member.ok_or_else(|| CdrError::Truncated {
        needed: 1,
        remaining: 0,
        place: reader.place(),
    })
}

impl Wire for TypeInformation {
    fn put<E: Encoder>(&self, encoder: &mut E) -> Result<(), CdrError> {
        let open = encoder.begin(Extensibility::Mutable)?;
        for (id, member) in [(MINIMAL, &self.minimal), (COMPLETE, &self.complete)] {
            let mut counter: Counter = Counter::new(Representation::Xcdr2);
            member.put(&mut counter)?;
            encoder.primitive(LENGTH_CODE_NEXT | id)?;
            encoder.length(counter.position())?;
            member.put(encoder)?;
        }
        encoder.end(open)
    }

    fn get(reader: &mut Reader<'_>) -> Result<Self, CdrError> {
        let scope = reader.begin(Extensibility::Mutable)?;
        let (mut minimal, mut complete) = (None, None);
        while let Some(parameter) = reader.next_parameter()? {
            match parameter.id {
                MINIMAL => minimal = Some(Wire::get(reader)?),
                COMPLETE => complete = Some(Wire::get(reader)?),
                _ => reader.unknown(&parameter)?,
            }
            reader.end_parameter(parameter);
        }
        let information = Self {
            minimal: present(minimal, reader)?,
            complete: present(complete, reader)?,
        };
        reader.end(scope);
        Ok(information)
    }
}

/// `TypeObject`s with their identifiers, as the type lookup service sends them.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TypeObjects(pub Vec<IdentifiedObject>);

impl TypeObjects {
    /// Bytes in little endian XCDR2, without an encapsulation header.
    ///
    /// # Errors
    /// A name of more than 256 bytes or with a NUL.
    pub fn to_bytes(&self) -> Result<Vec<u8>, CdrError> {
        crate::wire::to_bytes(&self.0)
    }

    /// From untrusted bytes. Does not check that the identifiers match
    /// the objects: see [`Registry`](crate::Registry).
    ///
    /// # Errors
    /// The bytes are invalid.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, CdrError> {
        crate::wire::from_bytes(bytes).map(Self)
    }
}
