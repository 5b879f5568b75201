//! Values as readable text: `{id: 7, position: {lat: 0.5}, colour: RED}`.

use std::fmt;

use super::DynamicData;
use super::plan::{Declared, Plan};
use super::value::{UnionValue, Value};
use crate::graph::{Bitmask, Bitset, Enum, Type, Union};

impl fmt::Display for DynamicData {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Shown {
            plan: &self.ty.plan,
            ty: &self.ty.ty,
            value: &self.value,
        }
        .fmt(f)
    }
}

/// A value with its type.
struct Shown<'v> {
    plan: &'v Plan,
    ty: &'v Type,
    value: &'v Value,
}

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { plan, value, .. } = self;
        let of = |ty, value| Shown { plan, ty, value };
        match (plan.resolve(self.ty), value) {
            (Type::Sequence { element, .. } | Type::Array { element, .. }, Value::List(values)) => {
                rows(plan, &element.ty, values, f)
            }
            (Type::Map { key, value: ty, .. }, Value::Map(entries)) => {
                f.write_str("{")?;
                for (index, entry) in entries.iter().enumerate() {
                    separator(index, f)?;
                    write!(f, "{}: {}", of(&key.ty, &entry.0), of(&ty.ty, &entry.1))?;
                }
                f.write_str("}")
            }
            (Type::Declared(index), value) => match (plan.declared(*index), value) {
                (Some(Declared::Enum(enumeration)), Value::Enum(value)) => {
                    literal(enumeration, *value, f)
                }
                (Some(Declared::Bitmask(mask)), Value::Bits(word)) => flags(mask, *word, f),
                (Some(Declared::Bitset(bitset)), Value::Bits(word)) => fields(bitset, *word, f),
                (Some(Declared::Struct(_, members)), Value::Struct(values)) => {
                    f.write_str("{")?;
                    let present = members.iter().zip(values);
                    let present = present.filter_map(|(one, value)| Some((one, value.as_ref()?)));
                    for (index, (member, value)) in present.enumerate() {
                        separator(index, f)?;
                        write!(f, "{}: {}", member.name, of(&member.ty, value))?;
                    }
                    f.write_str("}")
                }
                (Some(Declared::Union(_, union)), Value::Union(value)) => {
                    self::union(plan, union, value, f)
                }
                _ => plain(value, f),
            },
            (_, value) => plain(value, f),
        }
    }
}

fn separator(index: usize, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match index {
        0 => Ok(()),
        _ => f.write_str(", "),
    }
}

fn rows(plan: &Plan, ty: &Type, values: &[Value], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    f.write_str("[")?;
    for (index, value) in values.iter().enumerate() {
        separator(index, f)?;
        match value {
            // A row of an array, unless the elements are lists themselves.
            Value::List(inner) if !is_list(plan, ty) => rows(plan, ty, inner, f)?,
            value => write!(f, "{}", Shown { plan, ty, value })?,
        }
    }
    f.write_str("]")
}

pub(super) fn is_list(plan: &Plan, ty: &Type) -> bool {
    matches!(plan.resolve(ty), Type::Sequence { .. } | Type::Array { .. })
}

fn union(
    plan: &Plan,
    union: &Union,
    value: &UnionValue,
    f: &mut fmt::Formatter<'_>,
) -> fmt::Result {
    let discriminator = Shown {
        plan,
        ty: &union.discriminator.ty,
        value: &value.discriminator,
    };
    let branch = value.branch.as_ref();
    let branch = branch.and_then(|(index, value)| Some((union.branches.get(*index)?, value)));
    match branch {
        None => write!(f, "({discriminator})"),
        Some((branch, value)) => {
            let ty = &branch.member.ty;
            let shown = Shown { plan, ty, value };
            write!(f, "({discriminator}) {}: {shown}", branch.member.name)
        }
    }
}

/// The name of a literal, or its number.
pub(super) fn literal_name(enumeration: &Enum, value: i32) -> Option<String> {
    let found = enumeration.literals.iter().find(|one| one.value == value);
    found.map(|one| one.name.to_string())
}

fn literal(enumeration: &Enum, value: i32, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match literal_name(enumeration, value) {
        Some(name) => f.write_str(&name),
        None => write!(f, "{value}"),
    }
}

/// The flags that are set, and the bits that have no name.
pub(super) fn flag_names(mask: &Bitmask, word: u64) -> (Vec<String>, u64) {
    let (mut names, mut rest) = (Vec::new(), word);
    for flag in &mask.flags {
        let bit = 1_u64.checked_shl(u32::from(flag.position)).unwrap_or(0);
        if word & bit != 0 {
            names.push(flag.name.to_string());
            rest &= !bit;
        }
    }
    (names, rest)
}

fn flags(mask: &Bitmask, word: u64, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let (mut names, rest) = flag_names(mask, word);
    if rest != 0 || names.is_empty() {
        names.push(format!("{rest:#x}"));
    }
    f.write_str(&names.join(" | "))
}

/// Names and values of the fields of a bitset.
pub(super) fn field_values(bitset: &Bitset, word: u64) -> impl Iterator<Item = (String, i128)> {
    bitset.fields.iter().map(move |field| {
        let unused = u32::from(64_u8.saturating_sub(field.bits));
        let bits = word.checked_shr(u32::from(field.position)).unwrap_or(0);
        let bits = bits.checked_shl(unused).unwrap_or(0);
        let value = match field.holder.is_signed() {
            true => i128::from((bits as i64).checked_shr(unused).unwrap_or(0)),
            false => i128::from(bits.checked_shr(unused).unwrap_or(0)),
        };
        (field.name.to_string(), value)
    })
}

fn fields(bitset: &Bitset, word: u64, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    f.write_str("{")?;
    for (index, (name, value)) in field_values(bitset, word).enumerate() {
        separator(index, f)?;
        write!(f, "{name}: {value}")?;
    }
    f.write_str("}")
}

fn plain(value: &Value, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match value {
        Value::Boolean(value) => write!(f, "{value}"),
        Value::Float32(value) => write!(f, "{value:?}"),
        Value::Float64(value) => write!(f, "{value:?}"),
        Value::Float128(value) => write!(f, "{value}"),
        Value::Text(text) => write!(f, "{text:?}"),
        Value::Char8(byte) => write!(f, "'{}'", byte.escape_ascii()),
        Value::Char16(unit) => match char::from_u32(u32::from(*unit)) {
            Some(unit) => write!(f, "{unit:?}"),
            None => write!(f, "{unit:#06x}"),
        },
        value => match value.to_integer() {
            Some(integer) => write!(f, "{integer}"),
            None => f.write_str("?"),
        },
    }
}
