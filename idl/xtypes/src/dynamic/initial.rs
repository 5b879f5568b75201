//! Defaults of types, which are the values of absent members.

use spindle_dds_idl_runtime::{CdrError, SamplePosition};

use super::number;
use super::path::fits;
use super::plan::{ANY, Declared, Plan, select};
use super::value::{UnionValue, Value};
use crate::graph::{Branch, Enum, Member, Range, Type, TypeIndex, Union};
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
            false => self.given(member, depth).map(Some),
        }
    }

    /// The default of a member or a branch, or else that of its type.
    fn given(&mut self, member: &Member, depth: usize) -> Result<Value, CdrError> {
        match &member.default {
            Some(value) if fits(self.plan, &member.ty, value) => {
                (self.spend)()?;
                Ok(value.clone())
            }
            _ => self.value_within(&member.ty, &member.range, depth),
        }
    }

    /// The default of a branch.
    pub(super) fn branch(&mut self, member: &Member) -> Result<Value, CdrError> {
        self.given(member, DEPTH_MAX)
    }

    fn value_within(&mut self, ty: &Type, range: &Range, depth: usize) -> Result<Value, CdrError> {
        (self.spend)()?;
        let depth = depth.checked_sub(1).ok_or(CdrError::TooDeep {
            limit: DEPTH_MAX,
            place: SamplePosition::offset(0),
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
                Some(Declared::Union(index, union)) => self.union(index, union, depth)?,
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

    /// The default of the discriminator, and of the branch that it selects; if that would
    /// contain a default of the union again, of the first branch that does not.
    fn union(&mut self, index: TypeIndex, union: &Union, depth: usize) -> Result<Value, CdrError> {
        let discriminator = match &union.discriminator.default {
            Some(value) if fits(self.plan, &union.discriminator.ty, value) => value.clone(),
            _ => self.value_within(&union.discriminator.ty, ANY, depth)?,
        };
        let selected = discriminator
            .to_integer()
            .and_then(|value| select(union, value));
        let Some(at) = selected else {
            return Ok(union_value(discriminator, None));
        };
        let ends = |branch: &Branch| !self.plan.default_is_recursive(index, &branch.member.ty);
        let (discriminator, at) = match union.branches.get(at) {
            Some(branch) if !ends(branch) => {
                let labelled = |branch: &Branch| {
                    relabelled(&discriminator, i128::from(*branch.labels.first()?))
                };
                let other = union.branches.iter().position(ends);
                let other = other.and_then(|at| Some((labelled(union.branches.get(at)?)?, at)));
                other.unwrap_or((discriminator, at))
            }
            _ => (discriminator, at),
        };
        let value = match union.branches.get(at) {
            Some(Branch { member, .. }) => self.given(member, depth)?,
            None => return Ok(union_value(discriminator, None)),
        };
        Ok(union_value(discriminator, Some((at, value))))
    }
}

/// A value with this integer and the type of another value; `None` if it has no such value.
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
