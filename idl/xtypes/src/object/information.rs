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
    /// An identifier and the size of what it stands for.
    struct SizedIdentifier (appendable) {
        /// The type.
        identifier: TypeIdentifier,
        /// Bytes of its `TypeObject`.
        object_size: u32,
    }

    /// A type and all that it is made of.
    struct WithDependencies (appendable) {
        /// The type.
        sized: SizedIdentifier,
        /// How many types it is made of, directly and indirectly; -1 if not known.
        dependent_count: i32,
        /// Those types, or some of them.
        dependents: Vec<SizedIdentifier>,
    }

    /// A type's name and its description.
    struct IdentifiedObject (final) {
        /// The identifier.
        identifier: TypeIdentifier,
        /// The description.
        object: TypeObject,
    }
}

/// What discovery announces of the type of a topic: XTypes 1.3 §7.6.3.2.2.
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
    /// None of a value that comes from here.
    pub fn to_bytes(&self) -> Result<Vec<u8>, CdrError> {
        crate::wire::to_bytes(self)
    }

    /// From bytes that nobody has vouched for.
    ///
    /// # Errors
    /// What is wrong with them; both forms must be there.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, CdrError> {
        crate::wire::from_bytes(bytes)
    }
}

/// A member that was there, or what is missing.
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

    /// From bytes that nobody has vouched for. Nothing is said about whether the
    /// identifiers are those of the objects: see [`Registry`](crate::Registry).
    ///
    /// # Errors
    /// What is wrong with them.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, CdrError> {
        crate::wire::from_bytes(bytes).map(Self)
    }
}
