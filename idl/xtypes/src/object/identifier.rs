//! `TypeIdentifier`: XTypes 1.3 §7.3.4.2.

use std::fmt;

use md5::{Digest, Md5};
use spindle_dds_idl_runtime::encode::Encoder;
use spindle_dds_idl_runtime::{CdrError, Reader};

use super::flags::MemberFlags;
use crate::graph::Primitive;
use crate::wire::{Wire, put_extended, record, skip_extended};

const STRING8_SMALL: u8 = 0x70;
const STRING8_LARGE: u8 = 0x71;
const STRING16_SMALL: u8 = 0x72;
const STRING16_LARGE: u8 = 0x73;
const SEQUENCE_SMALL: u8 = 0x80;
const SEQUENCE_LARGE: u8 = 0x81;
const ARRAY_SMALL: u8 = 0x90;
const ARRAY_LARGE: u8 = 0x91;
const MAP_SMALL: u8 = 0xa0;
const MAP_LARGE: u8 = 0xa1;
const COMPONENT: u8 = 0xb0;

/// `EquivalenceKind`: the form of type objects that a hash refers to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Equivalence {
    /// `EK_MINIMAL`: what assignability needs.
    Minimal = 0xf1,
    /// `EK_COMPLETE`: everything, with names.
    Complete = 0xf2,
    /// `EK_BOTH`: for types that the identifier describes completely.
    Both = 0xf3,
}

/// The first 14 bytes of the MD5 of a `TypeObject` in little endian XCDR2.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct EquivalenceHash(pub [u8; 14]);

impl EquivalenceHash {
    /// The hash of these bytes.
    pub fn of(bytes: &[u8]) -> Self {
        let digest: [u8; 16] = Md5::digest(bytes).into();
        Self(digest.first_chunk().copied().unwrap_or_default())
    }
}

impl fmt::Display for EquivalenceHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for EquivalenceHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// The first four bytes of the MD5 of a member's name.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct NameHash(pub [u8; 4]);

impl NameHash {
    /// The hash of this name.
    pub fn of(name: &str) -> Self {
        let digest: [u8; 16] = Md5::digest(name.as_bytes()).into();
        Self(digest.first_chunk().copied().unwrap_or_default())
    }
}

impl fmt::Display for NameHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for NameHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// The elements of a collection, in an identifier.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PlainElement {
    /// `@try_construct` and `@external`.
    pub flags: MemberFlags,
    /// Its type.
    pub identifier: TypeIdentifier,
}

/// The identifier of a type, which refers to it or describes it completely.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TypeIdentifier {
    /// `TK_NONE`: no type, such as the missing base of a structure.
    None,
    /// A primitive.
    Primitive(Primitive),
    /// `string<bound>`; 0 is no bound.
    String8 {
        /// Bytes without the NUL.
        bound: u32,
    },
    /// `wstring<bound>`; 0 is no bound.
    String16 {
        /// UTF-16 units.
        bound: u32,
    },
    /// A sequence without annotations; 0 is no bound.
    Sequence {
        /// [`Equivalence::Both`] if the identifier of the element describes it completely.
        equivalence: Equivalence,
        /// Elements.
        bound: u32,
        /// What it consists of.
        element: Box<PlainElement>,
    },
    /// An array without annotations.
    Array {
        /// As of a sequence.
        equivalence: Equivalence,
        /// Dimensions from the outside in.
        bounds: Vec<u32>,
        /// What it consists of.
        element: Box<PlainElement>,
    },
    /// A map without annotations; 0 is no bound.
    Map {
        /// As of a sequence, of key and value.
        equivalence: Equivalence,
        /// Entries.
        bound: u32,
        /// Keys.
        key: Box<PlainElement>,
        /// Values.
        value: Box<PlainElement>,
    },
    /// A type of a strongly connected component, or the component.
    Component(ComponentId),
    /// Any other type.
    Hash(Equivalence, EquivalenceHash),
    /// A kind that is not in version 1.3 of the annex.
    Extended(u8),
}

record! {
    /// `StronglyConnectedComponentId`: names one of several types that contain each other.
    #[derive(Copy, Eq, PartialOrd, Ord, Hash)]
    struct ComponentId (appendable) {
        /// The form that the hash refers to.
        equivalence: Equivalence,
        /// Hash of the sequence of all `TypeObject`s, with a hash of zero in it.
        hash: EquivalenceHash,
        /// Number of types in the component.
        length: i32,
        /// Index in the component by the order of names, from 1; 0 for the whole component.
        index: i32,
    }
}

impl TypeIdentifier {
    /// Whether it describes its type completely.
    pub fn is_fully_descriptive(&self) -> bool {
        match self {
            Self::None | Self::Primitive(_) | Self::String8 { .. } | Self::String16 { .. } => true,
            Self::Sequence { equivalence, .. }
            | Self::Array { equivalence, .. }
            | Self::Map { equivalence, .. } => *equivalence == Equivalence::Both,
            Self::Component(_) | Self::Hash(..) | Self::Extended(_) => false,
        }
    }

    /// The form that the hash in it refers to, if it has one.
    pub fn equivalence(&self) -> Option<Equivalence> {
        match self {
            Self::Hash(equivalence, _) => Some(*equivalence),
            Self::Component(id) => Some(id.equivalence),
            _ => None,
        }
    }

    /// Bytes in little endian XCDR2.
    ///
    /// # Errors
    /// Never for a value that this crate has made.
    pub fn to_bytes(&self) -> Result<Vec<u8>, CdrError> {
        crate::wire::to_bytes(self)
    }

    /// From untrusted bytes.
    ///
    /// # Errors
    /// The bytes are invalid.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, CdrError> {
        crate::wire::from_bytes(bytes)
    }

    fn discriminator(&self) -> u8 {
        let small = |bound: u32, small: u8, large: u8| match bound {
            0..=255 => small,
            _ => large,
        };
        match self {
            Self::None => 0,
            Self::Primitive(primitive) => primitive.kind(),
            Self::String8 { bound } => small(*bound, STRING8_SMALL, STRING8_LARGE),
            Self::String16 { bound } => small(*bound, STRING16_SMALL, STRING16_LARGE),
            Self::Sequence { bound, .. } => small(*bound, SEQUENCE_SMALL, SEQUENCE_LARGE),
            Self::Array { bounds, .. } => {
                let most = bounds.iter().max().copied().unwrap_or(0);
                small(most, ARRAY_SMALL, ARRAY_LARGE)
            }
            Self::Map { bound, .. } => small(*bound, MAP_SMALL, MAP_LARGE),
            Self::Component(_) => COMPONENT,
            Self::Hash(equivalence, _) => *equivalence as u8,
            Self::Extended(kind) => *kind,
        }
    }
}

impl fmt::Display for TypeIdentifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bounded = |f: &mut fmt::Formatter<'_>, name: &str, bound: &u32| match bound {
            0 => f.write_str(name),
            bound => write!(f, "{name}<{bound}>"),
        };
        match self {
            Self::None => f.write_str("none"),
            Self::Primitive(primitive) => write!(f, "{primitive}"),
            Self::String8 { bound } => bounded(f, "string", bound),
            Self::String16 { bound } => bounded(f, "wstring", bound),
            Self::Sequence {
                bound: 0, element, ..
            } => {
                write!(f, "sequence<{}>", element.identifier)
            }
            Self::Sequence { bound, element, .. } => {
                write!(f, "sequence<{}, {bound}>", element.identifier)
            }
            Self::Array {
                bounds, element, ..
            } => {
                write!(f, "{}", element.identifier)?;
                bounds.iter().try_for_each(|bound| write!(f, "[{bound}]"))
            }
            Self::Map {
                bound: 0,
                key,
                value,
                ..
            } => {
                write!(f, "map<{}, {}>", key.identifier, value.identifier)
            }
            Self::Map {
                bound, key, value, ..
            } => {
                write!(f, "map<{}, {}, {bound}>", key.identifier, value.identifier)
            }
            Self::Component(id) => write!(f, "{}#{}/{}", id.hash, id.index, id.length),
            Self::Hash(_, hash) => write!(f, "{hash}"),
            Self::Extended(kind) => write!(f, "kind {kind:#04x}"),
        }
    }
}

impl Wire for EquivalenceHash {
    fn put<E: Encoder>(&self, encoder: &mut E) -> Result<(), CdrError> {
        self.0.put(encoder)
    }

    fn get(reader: &mut Reader<'_>) -> Result<Self, CdrError> {
        Wire::get(reader).map(Self)
    }
}

impl Wire for NameHash {
    fn put<E: Encoder>(&self, encoder: &mut E) -> Result<(), CdrError> {
        self.0.put(encoder)
    }

    fn get(reader: &mut Reader<'_>) -> Result<Self, CdrError> {
        Wire::get(reader).map(Self)
    }
}

impl Wire for Equivalence {
    const PRIMITIVE: bool = true;

    fn put<E: Encoder>(&self, encoder: &mut E) -> Result<(), CdrError> {
        (*self as u8).put(encoder)
    }

    fn get(reader: &mut Reader<'_>) -> Result<Self, CdrError> {
        let place = reader.place();
        match u8::get(reader)? {
            0xf1 => Ok(Self::Minimal),
            0xf2 => Ok(Self::Complete),
            0xf3 => Ok(Self::Both),
            value => Err(CdrError::UnknownEnumerator {
                value: value.into(),
                place,
            }),
        }
    }
}

/// A bound that takes one byte or four.
fn put_bound<E: Encoder>(bound: u32, encoder: &mut E) -> Result<(), CdrError> {
    match u8::try_from(bound) {
        Ok(small) => small.put(encoder),
        Err(_) => bound.put(encoder),
    }
}

fn get_bound(reader: &mut Reader<'_>, small: bool) -> Result<u32, CdrError> {
    match small {
        true => u8::get(reader).map(u32::from),
        false => u32::get(reader),
    }
}

fn put_bounds<E: Encoder>(bounds: &[u32], encoder: &mut E) -> Result<(), CdrError> {
    encoder.length(bounds.len())?;
    let small = bounds.iter().all(|bound| *bound < 256);
    bounds.iter().try_for_each(|bound| match small {
        true => put_bound(*bound, encoder),
        false => bound.put(encoder),
    })
}

fn get_bounds(reader: &mut Reader<'_>, small: bool) -> Result<Vec<u32>, CdrError> {
    if !small {
        return Wire::get(reader);
    }
    let bounds: Vec<u8> = Wire::get(reader)?;
    Ok(bounds.into_iter().map(u32::from).collect())
}

impl Wire for TypeIdentifier {
    fn put<E: Encoder>(&self, encoder: &mut E) -> Result<(), CdrError> {
        self.discriminator().put(encoder)?;
        match self {
            Self::None | Self::Primitive(_) => Ok(()),
            Self::String8 { bound } | Self::String16 { bound } => put_bound(*bound, encoder),
            Self::Sequence {
                equivalence,
                bound,
                element,
            } => {
                equivalence.put(encoder)?;
                element.flags.put(encoder)?;
                put_bound(*bound, encoder)?;
                element.identifier.put(encoder)
            }
            Self::Array {
                equivalence,
                bounds,
                element,
            } => {
                equivalence.put(encoder)?;
                element.flags.put(encoder)?;
                put_bounds(bounds, encoder)?;
                element.identifier.put(encoder)
            }
            Self::Map {
                equivalence,
                bound,
                key,
                value,
            } => {
                equivalence.put(encoder)?;
                value.flags.put(encoder)?;
                put_bound(*bound, encoder)?;
                value.identifier.put(encoder)?;
                key.flags.put(encoder)?;
                key.identifier.put(encoder)
            }
            Self::Component(id) => id.put(encoder),
            Self::Hash(_, hash) => hash.put(encoder),
            Self::Extended(_) => put_extended(encoder),
        }
    }

    fn get(reader: &mut Reader<'_>) -> Result<Self, CdrError> {
        // Identifiers nest without delimiters, so their depth is counted here.
        let scope = reader.begin(spindle_dds_idl_runtime::Extensibility::Final)?;
        let kind = u8::get(reader)?;
        let identifier = Self::get_kind(kind, reader)?;
        reader.end(scope);
        Ok(identifier)
    }
}

impl TypeIdentifier {
    fn get_kind(kind: u8, reader: &mut Reader<'_>) -> Result<Self, CdrError> {
        let small = matches!(
            kind,
            STRING8_SMALL | STRING16_SMALL | SEQUENCE_SMALL | ARRAY_SMALL | MAP_SMALL
        );
        Ok(match kind {
            0 => Self::None,
            STRING8_SMALL | STRING8_LARGE => Self::String8 {
                bound: get_bound(reader, small)?,
            },
            STRING16_SMALL | STRING16_LARGE => Self::String16 {
                bound: get_bound(reader, small)?,
            },
            SEQUENCE_SMALL | SEQUENCE_LARGE => {
                let (equivalence, flags) = (Wire::get(reader)?, Wire::get(reader)?);
                let bound = get_bound(reader, small)?;
                let element = Box::new(PlainElement {
                    flags,
                    identifier: Wire::get(reader)?,
                });
                Self::Sequence {
                    equivalence,
                    bound,
                    element,
                }
            }
            ARRAY_SMALL | ARRAY_LARGE => {
                let (equivalence, flags) = (Wire::get(reader)?, Wire::get(reader)?);
                let bounds = get_bounds(reader, small)?;
                let element = Box::new(PlainElement {
                    flags,
                    identifier: Wire::get(reader)?,
                });
                Self::Array {
                    equivalence,
                    bounds,
                    element,
                }
            }
            MAP_SMALL | MAP_LARGE => Self::get_map(reader, small)?,
            COMPONENT => Self::Component(Wire::get(reader)?),
            0xf1 => Self::Hash(Equivalence::Minimal, Wire::get(reader)?),
            0xf2 => Self::Hash(Equivalence::Complete, Wire::get(reader)?),
            kind => match Primitive::of_kind(kind) {
                Some(primitive) => Self::Primitive(primitive),
                None => {
                    skip_extended(reader)?;
                    Self::Extended(kind)
                }
            },
        })
    }

    fn get_map(reader: &mut Reader<'_>, small: bool) -> Result<Self, CdrError> {
        let (equivalence, flags) = (Wire::get(reader)?, Wire::get(reader)?);
        let bound = get_bound(reader, small)?;
        let value = Box::new(PlainElement {
            flags,
            identifier: Wire::get(reader)?,
        });
        let key = Box::new(PlainElement {
            flags: Wire::get(reader)?,
            identifier: Wire::get(reader)?,
        });
        Ok(Self::Map {
            equivalence,
            bound,
            key,
            value,
        })
    }
}
