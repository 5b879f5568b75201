//! Strings, enumerations, bits and collections.

use std::collections::{HashMap, HashSet};

use super::{Comparison, Difference, Outcome, Side, View};
use crate::graph::{
    Bitmask, Bitset, Definition, Element, Enum, Extensibility, Literal, Primitive, Type,
};
use crate::object::NameHash;

impl Comparison {
    /// Types without members.
    pub(super) fn leaf(&mut self, reader: Side<'_>, writer: Side<'_>) -> Outcome {
        match (reader.ty, writer.ty) {
            (Type::Primitive(one), Type::Primitive(other)) if one == other => Ok(()),
            (Type::String8(one), Type::String8(other))
            | (Type::String16(one), Type::String16(other)) => {
                let ignored = self.consistency.ignore_string_bounds;
                bound("string", *one, *other, ignored)
            }
            (
                Type::Sequence { element, bound },
                Type::Sequence {
                    element: other,
                    bound: other_bound,
                },
            ) => {
                let ignored = self.consistency.ignore_sequence_bounds;
                self::bound("sequence", *bound, *other_bound, ignored)?;
                self.elements(reader, element, writer, other)
            }
            (
                Type::Array {
                    element,
                    dimensions,
                },
                Type::Array {
                    element: other,
                    dimensions: others,
                },
            ) => {
                if dimensions != others {
                    return Err(Difference::Dimensions {
                        reader: dimensions.clone(),
                        writer: others.clone(),
                    });
                }
                self.elements(reader, element, writer, other)
            }
            (
                Type::Map { key, value, bound },
                Type::Map {
                    key: other_key,
                    value: other_value,
                    bound: other_bound,
                },
            ) => {
                let ignored = self.consistency.ignore_sequence_bounds;
                self::bound("map", *bound, *other_bound, ignored)?;
                self.elements(reader, key, writer, other_key)?;
                self.elements(reader, value, writer, other_value)
            }
            _ => self.bits(reader, writer),
        }
    }

    fn elements(
        &mut self,
        reader: Side<'_>,
        one: &Element,
        writer: Side<'_>,
        other: &Element,
    ) -> Outcome {
        let sides = (reader.with(&one.ty), writer.with(&other.ty));
        self.within("[]".to_owned(), |this| this.strongly(sides.0, sides.1))
    }

    /// Enumerations, bitmasks, bitsets, and the integers that are assignable to bitmasks.
    fn bits(&mut self, reader: Side<'_>, writer: Side<'_>) -> Outcome {
        match (reader.definition(), writer.definition()) {
            (Some(Definition::Enum(one)), Some(Definition::Enum(other))) => {
                self.enumeration(one, other)
            }
            (Some(Definition::Bitmask(one)), Some(Definition::Bitmask(other))) => {
                match one.bit_bound == other.bit_bound {
                    true => Ok(()),
                    false => Err(Difference::Bits {
                        reader: one.bit_bound,
                        writer: other.bit_bound,
                    }),
                }
            }
            (Some(Definition::Bitset(one)), Some(Definition::Bitset(other))) => {
                self.bitset(one, other)
            }
            (Some(Definition::Bitmask(mask)), None) if integer(mask) == primitive(writer.ty) => {
                Ok(())
            }
            (None, Some(Definition::Bitmask(mask))) if integer(mask) == primitive(reader.ty) => {
                Ok(())
            }
            _ => Err(Difference::Kind {
                reader: kind(reader),
                writer: kind(writer),
            }),
        }
    }

    fn enumeration(&mut self, one: &Enum, other: &Enum) -> Outcome {
        self.spend(one.literals.len() + other.literals.len())?;
        // Some products do not set the flags.
        if let (Some(reader), Some(writer)) = (one.extensibility, other.extensibility)
            && reader != writer
        {
            return Err(Difference::Extensibility { reader, writer });
        }
        if one.bit_bound != other.bit_bound {
            return Err(Difference::Bits {
                reader: one.bit_bound,
                writer: other.bit_bound,
            });
        }
        let is_final = one.extensibility == Some(Extensibility::Final);
        let by_value: HashMap<i32, &Literal> = one
            .literals
            .iter()
            .map(|literal| (literal.value, literal))
            .collect();
        let by_name: HashSet<NameHash> = one
            .literals
            .iter()
            .map(|literal| literal.name.hash())
            .collect();
        for literal in &other.literals {
            let same_value = by_value.get(&literal.value);
            let same_name = by_name.contains(&literal.name.hash());
            let agrees = match (same_value, same_name) {
                (found, _) if by_value_alone(one, other) => found.is_some() || !is_final,
                (Some(found), true) => found.name == literal.name,
                (None, false) => !is_final,
                _ => false,
            };
            if !agrees {
                return Err(Difference::Literal(literal.name.to_string()));
            }
        }
        match is_final && one.literals.len() != other.literals.len() {
            true => Err(Difference::NothingInCommon("set of literals")),
            false => Ok(()),
        }
    }

    fn bitset(&mut self, one: &Bitset, other: &Bitset) -> Outcome {
        self.spend(one.fields.len() + other.fields.len())?;
        if one.fields.len() != other.fields.len() {
            return Err(Difference::NothingInCommon("set of bit fields"));
        }
        for (field, found) in one.fields.iter().zip(&other.fields) {
            let same_place = field.position == found.position
                && field.bits == found.bits
                && field.holder == found.holder;
            let same_name = self.consistency.ignore_member_names || field.name == found.name;
            if !same_place || !same_name {
                return Err(Difference::Literal(field.name.to_string()));
            }
        }
        Ok(())
    }

    /// A key of the writer must have no value that the reader's key cannot have, even if bounds
    /// of other members are ignored: a longer string, sequence or map, or a literal that the
    /// reader does not know (§7.2.4.4.8).
    pub(super) fn key_values(&mut self, reader: Side<'_>, writer: Side<'_>) -> Outcome {
        if !self.is_new(reader, writer, View::KeyValues) {
            return Ok(());
        }
        match (reader.ty, writer.ty) {
            (Type::String8(one), Type::String8(other))
            | (Type::String16(one), Type::String16(other)) => {
                bound("string key", *one, *other, false)
            }
            (Type::Sequence { bound: one, .. }, Type::Sequence { bound: other, .. }) => {
                bound("sequence key", *one, *other, false)
            }
            (Type::Map { bound: one, .. }, Type::Map { bound: other, .. }) => {
                bound("map key", *one, *other, false)
            }
            _ => match (reader.definition(), writer.definition()) {
                (Some(Definition::Enum(one)), Some(Definition::Enum(other))) => {
                    self.key_literals(one, other)
                }
                _ => Ok(()),
            },
        }
    }

    fn key_literals(&mut self, one: &Enum, other: &Enum) -> Outcome {
        self.spend(one.literals.len() + other.literals.len())?;
        let names: HashSet<NameHash> = one
            .literals
            .iter()
            .map(|literal| literal.name.hash())
            .collect();
        let values: HashSet<i32> = one.literals.iter().map(|literal| literal.value).collect();
        let knows = |literal: &&Literal| match by_value_alone(one, other) {
            true => values.contains(&literal.value),
            false => names.contains(&literal.name.hash()),
        };
        let unknown = other.literals.iter().find(|literal| !knows(literal));
        match unknown {
            Some(literal) => Err(Difference::KeyLiteral(literal.name.to_string())),
            None => Ok(()),
        }
    }
}

/// `@ignore_literal_names` of either type: XTypes 1.3 §7.2.4.4.7.
const fn by_value_alone(one: &Enum, other: &Enum) -> bool {
    one.ignore_literal_names || other.ignore_literal_names
}

fn bound(what: &'static str, reader: Option<u32>, writer: Option<u32>, ignored: bool) -> Outcome {
    let (Some(reader), false) = (reader, ignored) else {
        return Ok(());
    };
    let writer = match writer {
        Some(writer) if writer <= reader => return Ok(()),
        Some(writer) => writer.to_string(),
        None => "unbounded".to_owned(),
    };
    Err(Difference::Bound {
        what,
        reader,
        writer,
    })
}

/// The integer type of the encoding of a bitmask.
fn integer(mask: &Bitmask) -> Option<Primitive> {
    Some(match mask.bit_bound {
        0..=8 => Primitive::UInt8,
        9..=16 => Primitive::UInt16,
        17..=32 => Primitive::UInt32,
        _ => Primitive::UInt64,
    })
}

fn primitive(ty: &Type) -> Option<Primitive> {
    match ty {
        Type::Primitive(primitive) => Some(*primitive),
        _ => None,
    }
}

/// The kind of a type in words.
fn kind(side: Side<'_>) -> String {
    let kind = match side.ty {
        Type::Primitive(primitive) => return primitive.to_string(),
        Type::String8(_) => "string",
        Type::String16(_) => "wstring",
        Type::Sequence { .. } => "sequence",
        Type::Array { .. } => "array",
        Type::Map { .. } => "map",
        Type::Declared(index) => {
            let declaration = side.graph.declaration(*index);
            let kind = match &declaration.definition {
                Definition::Alias(_) => "typedef",
                Definition::Enum(_) => "enum",
                Definition::Bitmask(_) => "bitmask",
                Definition::Bitset(_) => "bitset",
                Definition::Struct(_) => "struct",
                Definition::Union(_) => "union",
                Definition::Annotation(_) => "annotation",
            };
            return match &declaration.name {
                Some(name) => format!("{kind} {name}"),
                None => kind.to_owned(),
            };
        }
    };
    kind.to_owned()
}
