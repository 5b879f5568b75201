//! Serialization of values by serde, readable without their type: structures with the names
//! of their members, enumerations with those of their literals, and so on, as for generated
//! types. Values without a form in JSON, such as map keys that are not strings, are text.

use serde::ser::{SerializeMap as _, SerializeSeq as _};
use serde::{Serialize, Serializer};

use super::DynamicData;
use super::plan::{Declared, Plan};
use super::show::{field_values, flag_names, is_list, literal_name};
use super::value::{UnionValue, Value};
use crate::graph::{Type, Union};

impl Serialize for DynamicData {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        AsJson {
            plan: &self.ty.plan,
            ty: &self.ty.ty,
            value: &self.value,
        }
        .serialize(serializer)
    }
}

/// A value with its type, to be serialized.
#[derive(Debug)]
pub struct AsJson<'v> {
    plan: &'v Plan,
    ty: &'v Type,
    value: &'v Value,
}

/// Rows of an array, or elements.
struct Rows<'v> {
    plan: &'v Plan,
    ty: &'v Type,
    values: &'v [Value],
}

impl Serialize for Rows<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { plan, ty, values } = self;
        let mut out = serializer.serialize_seq(Some(values.len()))?;
        for value in *values {
            match value {
                Value::List(values) if !is_list(plan, ty) => {
                    out.serialize_element(&Rows { plan, ty, values })?;
                }
                value => out.serialize_element(&AsJson { plan, ty, value })?,
            }
        }
        out.end()
    }
}

impl Serialize for AsJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { plan, value, .. } = self;
        match (plan.resolve(self.ty), value) {
            (Type::Sequence { element, .. } | Type::Array { element, .. }, Value::List(values)) => {
                let ty = &element.ty;
                Rows { plan, ty, values }.serialize(serializer)
            }
            (Type::Map { key, value: ty, .. }, Value::Map(entries)) => {
                let mut out = serializer.serialize_map(Some(entries.len()))?;
                for (name, value) in entries {
                    let ty = &ty.ty;
                    let name = self.key(&key.ty, name);
                    out.serialize_entry(&name, &AsJson { plan, ty, value })?;
                }
                out.end()
            }
            (Type::Declared(index), value) => match (plan.declared(*index), value) {
                (Some(declared), value) => self.declared(&declared, value, serializer),
                (None, _) => serializer.serialize_unit(),
            },
            (_, value) => plain(value, serializer),
        }
    }
}

impl AsJson<'_> {
    /// A key of a map as text.
    fn key(&self, ty: &Type, value: &Value) -> String {
        match (self.plan.resolve(ty), value) {
            (_, Value::Text(text)) => text.clone(),
            (Type::Declared(index), Value::Enum(value)) => {
                let name = match self.plan.declared(*index) {
                    Some(Declared::Enum(enumeration)) => literal_name(enumeration, *value),
                    _ => None,
                };
                name.unwrap_or_else(|| value.to_string())
            }
            (_, Value::Boolean(value)) => value.to_string(),
            (_, value) => value.to_integer().unwrap_or_default().to_string(),
        }
    }

    fn declared<S: Serializer>(
        &self,
        declared: &Declared<'_>,
        value: &Value,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let plan = self.plan;
        match (declared, value) {
            (Declared::Enum(enumeration), Value::Enum(value)) => {
                match literal_name(enumeration, *value) {
                    Some(name) => serializer.serialize_str(&name),
                    None => serializer.serialize_i32(*value),
                }
            }
            (Declared::Bitmask(mask), Value::Bits(word)) => {
                let (mut names, rest) = flag_names(mask, *word);
                if rest != 0 {
                    names.push(format!("{rest:#x}"));
                }
                names.serialize(serializer)
            }
            (Declared::Bitset(bitset), Value::Bits(word)) => {
                let mut out = serializer.serialize_map(Some(bitset.fields.len()))?;
                for (name, value) in field_values(bitset, *word) {
                    // Fields have at most 64 bits.
                    match i64::try_from(value) {
                        Ok(value) => out.serialize_entry(&name, &value)?,
                        Err(_) => out.serialize_entry(&name, &(value as u64))?,
                    }
                }
                out.end()
            }
            (Declared::Struct(_, members), Value::Struct(values)) => {
                let mut out = serializer.serialize_map(Some(values.len()))?;
                for (member, value) in members.iter().zip(values) {
                    let ty = &member.ty;
                    let value = value.as_ref().map(|value| AsJson { plan, ty, value });
                    out.serialize_entry(&member.name.to_string(), &value)?;
                }
                out.end()
            }
            (Declared::Union(_, union), Value::Union(value)) => {
                self.union(union, value, serializer)
            }
            (_, value) => plain(value, serializer),
        }
    }

    fn union<S: Serializer>(
        &self,
        union: &Union,
        value: &UnionValue,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let plan = self.plan;
        let branch = value.branch.as_ref();
        let branch = branch.and_then(|(index, value)| Some((union.branches.get(*index)?, value)));
        let mut out = serializer.serialize_map(Some(1 + usize::from(branch.is_some())))?;
        let (ty, discriminator) = (&union.discriminator.ty, &value.discriminator);
        out.serialize_entry(
            "discriminator",
            &AsJson {
                plan,
                ty,
                value: discriminator,
            },
        )?;
        if let Some((branch, value)) = branch {
            let ty = &branch.member.ty;
            out.serialize_entry(&branch.member.name.to_string(), &AsJson { plan, ty, value })?;
        }
        out.end()
    }
}

fn plain<S: Serializer>(value: &Value, serializer: S) -> Result<S::Ok, S::Error> {
    match value {
        Value::Boolean(value) => serializer.serialize_bool(*value),
        Value::Byte(value) | Value::UInt8(value) | Value::Char8(value) => {
            serializer.serialize_u8(*value)
        }
        Value::Int8(value) => serializer.serialize_i8(*value),
        Value::Int16(value) => serializer.serialize_i16(*value),
        Value::UInt16(value) | Value::Char16(value) => serializer.serialize_u16(*value),
        Value::Int32(value) | Value::Enum(value) => serializer.serialize_i32(*value),
        Value::UInt32(value) => serializer.serialize_u32(*value),
        Value::Int64(value) => serializer.serialize_i64(*value),
        Value::UInt64(value) | Value::Bits(value) => serializer.serialize_u64(*value),
        Value::Float32(value) => serializer.serialize_f32(*value),
        Value::Float64(value) => serializer.serialize_f64(*value),
        // As the runtime does with its feature `serde`.
        Value::Float128(value) if serializer.is_human_readable() => serializer.collect_str(value),
        Value::Float128(value) => serializer.serialize_u128(value.to_bits()),
        Value::Text(text) => serializer.serialize_str(text),
        Value::List(_) | Value::Map(_) | Value::Struct(_) | Value::Union(_) => {
            serializer.serialize_unit()
        }
    }
}
