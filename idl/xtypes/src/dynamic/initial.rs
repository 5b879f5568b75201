//! Defaults of types: what members read as that are not there.

use spindle_dds_idl_runtime::{CdrError, Place};

use super::number;
use super::plan::{ANY, Declared, Plan, select};
use super::value::{UnionValue, Value};
use crate::graph::{Enum, Member, Range, Type, Union};
use crate::limits::DEPTH_MAX;

/// Makes defaults, and counts the values in them.
pub(super) struct Initial<'p, 's> {
    pub(super) plan: &'p Plan,
    /// Called for each value before it is made.
    pub(super) spend: &'s mut dyn FnMut() -> Result<(), CdrError>,
}

impl Initial<'_, '_> {
    /// The default of a type.
    pub(super) fn value(&mut self, ty: &Type, range: &Range) -> Result<Value, CdrError> {
        self.value_within(ty, range, DEPTH_MAX)
    }

    /// The default of a member.
    pub(super) fn member(&mut self, member: &Member) -> Result<Option<Value>, CdrError> {
        self.member_within(member, DEPTH_MAX)
    }

    fn member_within(&mut self, member: &Member, depth: usize) -> Result<Option<Value>, CdrError> {
        match member.optional {
            true => Ok(None),
            false => self
                .value_within(&member.ty, &member.range, depth)
                .map(Some),
        }
    }

    fn value_within(&mut self, ty: &Type, range: &Range, depth: usize) -> Result<Value, CdrError> {
        (self.spend)()?;
        let depth = depth.checked_sub(1).ok_or(CdrError::TooDeep {
            limit: DEPTH_MAX,
            place: Place::offset(0),
        })?;
        let range = self.plan.range(range, ty);
        Ok(match self.plan.resolve(ty) {
            Type::Primitive(primitive) => number::initial(*primitive, range),
            Type::String8(_) | Type::String16(_) => Value::Text(String::new()),
            Type::Sequence { .. } => Value::List(Vec::new()),
            Type::Map { .. } => Value::Map(Vec::new()),
            Type::Array {
                element,
                dimensions,
            } => self.rows(&element.ty, dimensions, range, depth)?,
            Type::Declared(index) => match self.plan.declared(*index) {
                Some(Declared::Enum(enumeration)) => Value::Enum(default_literal(enumeration)),
                Some(Declared::Bitmask(_) | Declared::Bitset(_)) => Value::Bits(0),
                Some(Declared::Struct(_, members)) => {
                    let values = members.iter().map(|one| self.member_within(one, depth));
                    Value::Struct(values.collect::<Result<_, _>>()?)
                }
                Some(Declared::Union(union)) => self.union(union, depth)?,
                None => Value::Struct(Vec::new()),
            },
        })
    }

    fn rows(
        &mut self,
        element: &Type,
        dimensions: &[u32],
        range: &Range,
        depth: usize,
    ) -> Result<Value, CdrError> {
        let Some((first, inner)) = dimensions.split_first() else {
            return self.value_within(element, range, depth);
        };
        let mut rows = Vec::new();
        for _ in 0..*first {
            rows.push(self.rows(element, inner, range, depth)?);
        }
        Ok(Value::List(rows))
    }

    /// The default of the discriminator, and of the branch that it selects; where that
    /// has no end, of the first branch that has one.
    fn union(&mut self, union: &Union, depth: usize) -> Result<Value, CdrError> {
        let discriminator = self.value_within(&union.discriminator.ty, ANY, depth)?;
        let selected = discriminator
            .to_integer()
            .and_then(|value| select(union, value));
        let Some(index) = selected else {
            return Ok(union_value(discriminator, None));
        };
        let mut made = self.branch(union, index, depth);
        let mut chosen = (discriminator, index);
        if matches!(made, Err(CdrError::TooDeep { .. })) {
            for (index, branch) in union.branches.iter().enumerate() {
                let Some(label) = branch.labels.first() else {
                    continue;
                };
                let ends = self.branch(union, index, depth);
                if ends.is_ok() {
                    chosen = (self.labelled(&chosen.0, *label), index);
                    made = ends;
                    break;
                }
            }
        }
        let (discriminator, index) = chosen;
        Ok(union_value(discriminator, Some((index, made?))))
    }

    fn branch(&mut self, union: &Union, index: usize, depth: usize) -> Result<Value, CdrError> {
        match union.branches.get(index) {
            Some(branch) => self.value_within(&branch.member.ty, &branch.member.range, depth),
            None => Ok(Value::Boolean(false)),
        }
    }

    /// A discriminator like another, with this label.
    fn labelled(&self, like: &Value, label: i32) -> Value {
        relabelled(like, i128::from(label)).unwrap_or_else(|| like.clone())
    }
}

/// A value of the type of another, being this integer; `None` if that is none of it.
pub(super) fn relabelled(like: &Value, integer: i128) -> Option<Value> {
    Some(match like {
        Value::Boolean(_) => Value::Boolean(u8::try_from(integer).ok()? != 0),
        Value::Byte(_) => Value::Byte(u8::try_from(integer).ok()?),
        Value::Int8(_) => Value::Int8(i8::try_from(integer).ok()?),
        Value::UInt8(_) => Value::UInt8(u8::try_from(integer).ok()?),
        Value::Int16(_) => Value::Int16(i16::try_from(integer).ok()?),
        Value::UInt16(_) => Value::UInt16(u16::try_from(integer).ok()?),
        Value::Int32(_) => Value::Int32(i32::try_from(integer).ok()?),
        Value::UInt32(_) => Value::UInt32(u32::try_from(integer).ok()?),
        Value::Int64(_) => Value::Int64(i64::try_from(integer).ok()?),
        Value::UInt64(_) => Value::UInt64(u64::try_from(integer).ok()?),
        Value::Char8(_) => Value::Char8(u8::try_from(integer).ok()?),
        Value::Char16(_) => Value::Char16(u16::try_from(integer).ok()?),
        Value::Enum(_) => Value::Enum(i32::try_from(integer).ok()?),
        _ => return None,
    })
}

fn union_value(discriminator: Value, branch: Option<(usize, Value)>) -> Value {
    Value::Union(Box::new(UnionValue {
        discriminator,
        branch,
    }))
}

fn default_literal(enumeration: &Enum) -> i32 {
    let marked = enumeration.literals.iter().find(|literal| literal.default);
    let literal = marked.or_else(|| enumeration.literals.first());
    literal.map_or(0, |literal| literal.value)
}
