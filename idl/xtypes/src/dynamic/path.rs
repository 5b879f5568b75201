//! Values by paths of names.

use std::sync::Arc;

use super::DataError;
use super::decode::selected;
use super::initial::relabelled;
use super::number::primitive_of;
use super::plan::{Declared, Plan};
use super::value::{UnionValue, Value};
use crate::graph::{Member, Type, Union};

/// A step of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step<'p> {
    Name(&'p str),
    Index(usize),
}

/// The steps of `a.b[2].c`; the error has the path up to the invalid step.
fn steps(path: &str) -> Result<Vec<Step<'_>>, DataError> {
    let no_such = || DataError::NoSuchPath {
        path: path.to_owned(),
    };
    let mut steps = Vec::new();
    for part in path.split('.').filter(|_| !path.is_empty()) {
        let (name, indices) = match part.find('[') {
            Some(at) => part.split_at(at),
            None => (part, ""),
        };
        if !name.is_empty() {
            steps.push(Step::Name(name));
        } else if indices.is_empty() {
            return Err(no_such());
        }
        for index in indices.split_inclusive(']') {
            let digits = index
                .strip_prefix('[')
                .and_then(|index| index.strip_suffix(']'));
            let number = digits.and_then(|digits| digits.parse().ok());
            steps.push(Step::Index(number.ok_or_else(no_such)?));
        }
    }
    Ok(steps)
}

/// The target of a path: an existing value, or one that can be set.
enum Target<'v> {
    /// An existing value.
    Value(&'v mut Value),
    /// An optional member.
    Optional(&'v mut Option<Value>),
    /// A branch of a union, by its index.
    Branch(&'v mut UnionValue, usize),
    /// The discriminator of a union.
    Discriminator(&'v mut UnionValue),
}

/// Members and values of a structure.
pub(super) fn members<'v>(
    plan: &'v Plan,
    ty: &Type,
    value: &'v Value,
) -> Option<(&'v [Member], &'v [Option<Value>])> {
    let (Type::Declared(index), Value::Struct(values)) = (plan.resolve(ty), value) else {
        return None;
    };
    Some((plan.members(*index)?, values))
}

/// The value at a path.
pub(super) fn get<'v>(
    plan: &Plan,
    ty: &Type,
    value: &'v Value,
    path: &str,
) -> Result<&'v Value, DataError> {
    let mut at = (ty.clone(), value);
    for step in steps(path)? {
        let inner = inner(plan, &at.0, at.1, step);
        at = inner.ok_or_else(|| DataError::NoSuchPath {
            path: path.to_owned(),
        })?;
    }
    Ok(at.1)
}

/// One step further in.
fn inner<'v>(
    plan: &Plan,
    ty: &Type,
    value: &'v Value,
    step: Step<'_>,
) -> Option<(Type, &'v Value)> {
    match (plan.resolve(ty), value, step) {
        (Type::Sequence { element, .. }, Value::List(values), Step::Index(index)) => {
            Some((element.ty.clone(), values.get(index)?))
        }
        (Type::Array { .. }, Value::List(values), Step::Index(index)) => {
            Some((row(plan, ty)?, values.get(index)?))
        }
        (Type::Map { value: ty, .. }, Value::Map(entries), Step::Name(name)) => {
            let found = entries.iter().find(|(key, _)| is_named(key, name));
            Some((ty.ty.clone(), &found?.1))
        }
        (Type::Map { value: ty, .. }, Value::Map(entries), Step::Index(index)) => {
            let found = entries
                .iter()
                .find(|(key, _)| key.to_integer() == Some(index as i128));
            Some((ty.ty.clone(), &found?.1))
        }
        (Type::Declared(index), value, Step::Name(name)) => match (plan.declared(*index)?, value) {
            (Declared::Struct(_, members), Value::Struct(values)) => {
                let at = members.iter().position(|member| member.name.is(name))?;
                Some((members.get(at)?.ty.clone(), values.get(at)?.as_ref()?))
            }
            (Declared::Union(_, union), Value::Union(value)) => {
                if name == "discriminator" {
                    return Some((union.discriminator.ty.clone(), &value.discriminator));
                }
                let (index, inner) = value.branch.as_ref()?;
                let member = &union.branches.get(*index)?.member;
                let found = name == "branch" || member.name.is(name);
                found.then(|| (member.ty.clone(), inner))
            }
            _ => None,
        },
        _ => None,
    }
}

fn is_named(key: &Value, name: &str) -> bool {
    match key {
        Value::Text(text) => text == name,
        _ => false,
    }
}

/// The type of the rows of an array, or of its elements.
fn row(plan: &Plan, ty: &Type) -> Option<Type> {
    let Type::Array {
        element,
        dimensions,
    } = plan.resolve(ty)
    else {
        return None;
    };
    let inner = dimensions.get(1..)?;
    Some(match inner {
        [] => element.ty.clone(),
        inner => Type::Array {
            element: element.clone(),
            dimensions: inner.to_vec(),
        },
    })
}

/// One step further in, to a value that need not exist yet.
fn place<'v>(
    plan: &Plan,
    ty: &Type,
    value: &'v mut Value,
    step: Step<'_>,
) -> Option<(Type, Target<'v>)> {
    match (plan.resolve(ty), value, step) {
        (Type::Sequence { element, .. }, Value::List(values), Step::Index(index)) => {
            Some((element.ty.clone(), Target::Value(values.get_mut(index)?)))
        }
        (Type::Array { .. }, Value::List(values), Step::Index(index)) => {
            Some((row(plan, ty)?, Target::Value(values.get_mut(index)?)))
        }
        (Type::Map { value: ty, .. }, Value::Map(entries), step) => {
            let found = entries.iter_mut().find(|(key, _)| match step {
                Step::Name(name) => is_named(key, name),
                Step::Index(index) => key.to_integer() == Some(index as i128),
            });
            Some((ty.ty.clone(), Target::Value(&mut found?.1)))
        }
        (Type::Declared(index), value, Step::Name(name)) => match (plan.declared(*index)?, value) {
            (Declared::Struct(_, members), Value::Struct(values)) => {
                let at = members.iter().position(|member| member.name.is(name))?;
                let (member, value) = (members.get(at)?, values.get_mut(at)?);
                let place = match (member.optional, value) {
                    (true, value) => Target::Optional(value),
                    (false, value) => Target::Value(value.as_mut()?),
                };
                Some((member.ty.clone(), place))
            }
            (Declared::Union(_, union), Value::Union(value)) => branch_place(union, value, name),
            _ => None,
        },
        _ => None,
    }
}

fn branch_place<'v>(
    union: &Union,
    value: &'v mut UnionValue,
    name: &str,
) -> Option<(Type, Target<'v>)> {
    if name == "discriminator" {
        let ty = union.discriminator.ty.clone();
        return Some((ty, Target::Discriminator(value)));
    }
    let index = match name {
        "branch" => value.branch.as_ref().map(|(index, _)| *index)?,
        name => union
            .branches
            .iter()
            .position(|branch| branch.member.name.is(name))?,
    };
    let ty = union.branches.get(index)?.member.ty.clone();
    Some((ty, Target::Branch(value, index)))
}

/// Sets the value at a path.
pub(super) fn set(
    plan: &Arc<Plan>,
    ty: &Type,
    root: &mut Value,
    path: &str,
    value: Value,
) -> Result<(), DataError> {
    let steps = steps(path)?;
    let Some((last, way)) = steps.split_last() else {
        check(plan, ty, &value, path)?;
        *root = value;
        return Ok(());
    };
    let (outer, at) = walk(plan, ty, root, way, path)?;
    let (inner, place) = place(plan, &outer, at, *last).ok_or_else(|| no_such(path))?;
    check(plan, &inner, &value, path)?;
    match place {
        Target::Value(at) => *at = value,
        Target::Optional(at) => *at = Some(value),
        Target::Branch(at, index) => set_branch(plan, &outer, at, index, value, path)?,
        Target::Discriminator(at) => set_discriminator(plan, &outer, at, value, path)?,
    }
    Ok(())
}

/// Makes an optional member absent.
pub(super) fn clear(plan: &Plan, ty: &Type, root: &mut Value, path: &str) -> Result<(), DataError> {
    let steps = steps(path)?;
    let (last, way) = steps.split_last().ok_or_else(|| no_such(path))?;
    let (outer, at) = walk(plan, ty, root, way, path)?;
    match place(plan, &outer, at, *last)
        .ok_or_else(|| no_such(path))?
        .1
    {
        Target::Optional(at) => {
            *at = None;
            Ok(())
        }
        _ => Err(wrong(path)),
    }
}

fn no_such(path: &str) -> DataError {
    DataError::NoSuchPath {
        path: path.to_owned(),
    }
}

fn wrong(path: &str) -> DataError {
    DataError::WrongType {
        path: path.to_owned(),
    }
}

/// Follows a path through existing values.
fn walk<'v>(
    plan: &Plan,
    ty: &Type,
    root: &'v mut Value,
    way: &[Step<'_>],
    path: &str,
) -> Result<(Type, &'v mut Value), DataError> {
    let mut at = (ty.clone(), root);
    for step in way {
        let (ty, place) = place(plan, &at.0, at.1, *step).ok_or_else(|| no_such(path))?;
        let value = match place {
            Target::Value(value) => Some(value),
            Target::Optional(value) => value.as_mut(),
            Target::Branch(union, index) => match &mut union.branch {
                Some((selected, value)) if *selected == index => Some(value),
                _ => None,
            },
            Target::Discriminator(_) => None,
        };
        at = (ty, value.ok_or_else(|| no_such(path))?);
    }
    Ok(at)
}

fn union_of<'p>(plan: &'p Plan, ty: &'p Type) -> Option<&'p Union> {
    match plan.resolve(ty) {
        Type::Declared(index) => match plan.declared(*index)? {
            Declared::Union(_, union) => Some(union),
            _ => None,
        },
        _ => None,
    }
}

/// Selects a branch and sets its value. For a branch without a label, the default, the
/// discriminator must have been set before.
fn set_branch(
    plan: &Plan,
    ty: &Type,
    at: &mut UnionValue,
    index: usize,
    value: Value,
    path: &str,
) -> Result<(), DataError> {
    let union = union_of(plan, ty).ok_or_else(|| wrong(path))?;
    let now = selected(union, &at.discriminator).map(|(index, _)| index);
    if now != Some(index) {
        let label = union
            .branches
            .get(index)
            .and_then(|branch| branch.labels.first());
        let label = label.ok_or_else(|| wrong(path))?;
        at.discriminator =
            relabelled(&at.discriminator, i128::from(*label)).ok_or_else(|| wrong(path))?;
    }
    at.branch = Some((index, value));
    Ok(())
}

/// Sets a discriminator; a newly selected branch gets its default.
fn set_discriminator(
    plan: &Arc<Plan>,
    ty: &Type,
    at: &mut UnionValue,
    value: Value,
    path: &str,
) -> Result<(), DataError> {
    let union = union_of(plan, ty).ok_or_else(|| wrong(path))?;
    let selected = selected(union, &value);
    let now = at.branch.as_ref().map(|(index, _)| *index);
    if selected.map(|(index, _)| index) != now {
        at.branch = match selected {
            None => None,
            Some((index, member)) => {
                let ty = super::DynamicType {
                    plan: Arc::clone(plan),
                    ty: member.ty.clone(),
                };
                Some((index, ty.default_data()?.into_value()))
            }
        };
    }
    at.discriminator = value;
    Ok(())
}

/// Checks that a value is of a type. Bounds and ranges are checked on writing.
pub(super) fn check(plan: &Plan, ty: &Type, value: &Value, path: &str) -> Result<(), DataError> {
    match fits(plan, ty, value) {
        true => Ok(()),
        false => Err(wrong(path)),
    }
}

/// Whether a value is of a type.
pub(super) fn fits(plan: &Plan, ty: &Type, value: &Value) -> bool {
    match (plan.resolve(ty), value) {
        (Type::Primitive(primitive), value) => primitive_of(value) == Some(*primitive),
        (Type::String8(_) | Type::String16(_), Value::Text(_)) => true,
        (Type::Sequence { element, .. }, Value::List(values)) => {
            values.iter().all(|value| fits(plan, &element.ty, value))
        }
        (
            Type::Array {
                element,
                dimensions,
            },
            value,
        ) => rows_fit(plan, &element.ty, dimensions, value),
        (Type::Map { key, value: ty, .. }, Value::Map(entries)) => {
            let ascend = entries.windows(2).all(|pair| match pair {
                [one, other] => one.0.order(&other.0).is_lt(),
                _ => true,
            });
            let fit = |entry: &(Value, Value)| {
                fits(plan, &key.ty, &entry.0) && fits(plan, &ty.ty, &entry.1)
            };
            ascend && entries.iter().all(fit)
        }
        (Type::Declared(index), value) => match (plan.declared(*index), value) {
            (Some(Declared::Enum(_)), Value::Enum(_)) => true,
            (Some(Declared::Bitmask(_) | Declared::Bitset(_)), Value::Bits(_)) => true,
            (Some(Declared::Struct(_, members)), Value::Struct(values)) => {
                let fit = |(member, value): (&Member, &Option<Value>)| match value {
                    Some(value) => fits(plan, &member.ty, value),
                    None => member.optional,
                };
                members.len() == values.len() && members.iter().zip(values).all(fit)
            }
            (Some(Declared::Union(_, union)), Value::Union(value)) => {
                union_fits(plan, union, value)
            }
            _ => false,
        },
        _ => false,
    }
}

fn union_fits(plan: &Plan, union: &Union, value: &UnionValue) -> bool {
    fits(plan, &union.discriminator.ty, &value.discriminator)
        && match (selected(union, &value.discriminator), &value.branch) {
            (None, None) => true,
            (Some((index, member)), Some((at, value))) => {
                index == *at && fits(plan, &member.ty, value)
            }
            _ => false,
        }
}

fn rows_fit(plan: &Plan, element: &Type, dimensions: &[u32], value: &Value) -> bool {
    let Some((first, inner)) = dimensions.split_first() else {
        return fits(plan, element, value);
    };
    match value {
        Value::List(rows) => {
            rows.len() == *first as usize
                && rows.iter().all(|row| rows_fit(plan, element, inner, row))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_taken_apart() {
        let found = steps("a.b[2][3].c").expect("is a path");
        let expected = [
            Step::Name("a"),
            Step::Name("b"),
            Step::Index(2),
            Step::Index(3),
            Step::Name("c"),
        ];
        assert_eq!(found, expected);
        assert_eq!(steps("[1]"), Ok(vec![Step::Index(1)]));
        assert_eq!(steps(""), Ok(Vec::new()));
        for wrong in ["a..b", "a[", "a[x]", "a[1", "a]", ".", "a[1]b"] {
            let outcome = steps(wrong);
            let names = matches!(&outcome, Ok(steps) if steps.iter().all(|step| matches!(step, Step::Name(_))));
            assert!(outcome.is_err() || names, "{wrong}: {outcome:?}");
        }
    }
}
