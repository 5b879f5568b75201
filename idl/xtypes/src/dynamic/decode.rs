//! Decoding of dynamic types, equivalent to generated code.

mod union;

pub(super) use union::{DISCRIMINATOR_ID, selected};

use std::cmp::Ordering;

use spindle_dds_idl_runtime::shape::UNBOUNDED;
use spindle_dds_idl_runtime::{CdrError, Reader};

use super::initial::Initial;
use super::leaf::{read_bitmask, read_bitset, read_enum, read_text, read_wide};
use super::number;
use super::plan::{ANY, Declared, Members, Plan};
use super::value::Value;
use crate::graph::{Element, Extensibility, Member, Range, TryConstruct, Type};

/// A use of a type, with the properties from its context.
#[derive(Clone, Copy)]
pub(super) struct Use<'p> {
    pub(super) ty: &'p Type,
    pub(super) range: &'p Range,
    pub(super) try_construct: TryConstruct,
}

impl<'p> Use<'p> {
    pub(super) fn of(ty: &'p Type) -> Self {
        Self {
            ty,
            range: ANY,
            try_construct: TryConstruct::Discard,
        }
    }

    fn member(member: &'p Member) -> Self {
        Self {
            ty: &member.ty,
            range: &member.range,
            try_construct: member.try_construct,
        }
    }

    fn element(element: &'p Element, range: &'p Range) -> Self {
        Self {
            ty: &element.ty,
            range,
            try_construct: element.try_construct,
        }
    }
}

impl Plan {
    /// Reads a value.
    ///
    /// # Errors
    /// The bytes are invalid.
    pub(super) fn read(&self, what: Use<'_>, reader: &mut Reader<'_>) -> Result<Value, CdrError> {
        Decode(self).read(what, reader)
    }
}

/// Decodes values of the types of a plan.
#[derive(Clone, Copy)]
struct Decode<'p>(&'p Plan);

impl<'p> Decode<'p> {
    fn read(self, what: Use<'_>, reader: &mut Reader<'_>) -> Result<Value, CdrError> {
        reader.spend(size_of::<Value>())?;
        let range = self.0.range(what.range, what.ty);
        let trim = what.try_construct == TryConstruct::Trim;
        match self.0.resolve(what.ty) {
            Type::Primitive(primitive) => {
                let value = number::read(*primitive, reader)?;
                let verified = number::verify(&value, range, reader.place().offset);
                reader.tolerate(verified)?;
                Ok(value)
            }
            Type::String8(bound) => read_text(*bound, trim, reader),
            Type::String16(bound) => read_wide(*bound, trim, reader),
            Type::Sequence { element, bound } => {
                let element = Use::element(element, range);
                let delimited = self.0.primitive(element.ty).is_none();
                in_collection(delimited, reader, |reader| {
                    self.sequence(element, *bound, trim, reader)
                })
            }
            Type::Array {
                element,
                dimensions,
            } => {
                let element = Use::element(element, range);
                let delimited = self.0.primitive(element.ty).is_none();
                in_collection(delimited, reader, |reader| {
                    self.rows(element, dimensions, reader)
                })
            }
            Type::Map { key, value, bound } => {
                let delimited = !self.0.plain_entries(&key.ty, &value.ty);
                let entry = (Use::element(key, ANY), Use::element(value, range));
                in_collection(delimited, reader, |reader| {
                    self.map(entry, *bound, trim, reader)
                })
            }
            Type::Declared(index) => match self.0.declared(*index) {
                Some(Declared::Enum(enumeration)) => read_enum(enumeration, reader),
                Some(Declared::Bitmask(mask)) => read_bitmask(mask, reader),
                Some(Declared::Bitset(bitset)) => read_bitset(bitset, reader),
                Some(Declared::Struct(extensibility, members)) => {
                    self.structure(extensibility, members, reader)
                }
                Some(Declared::Union(index, union)) => self.union((index, union), reader),
                None => Ok(Value::Struct(Vec::new())),
            },
        }
    }

    /// Reads a value, or its default if the bytes are not a value of its type.
    fn construct(self, what: Use<'_>, reader: &mut Reader<'_>) -> Result<Option<Value>, CdrError> {
        match what.try_construct {
            TryConstruct::UseDefault => reader.construct(
                |reader| self.read(what, reader),
                |reader| self.read(what, reader).map(drop),
            ),
            TryConstruct::Discard | TryConstruct::Trim => self.read(what, reader).map(Some),
        }
    }

    fn element(self, what: Use<'_>, reader: &mut Reader<'_>) -> Result<Value, CdrError> {
        match self.construct(what, reader)? {
            Some(value) => Ok(value),
            None => self.initial(reader).value(what.ty, what.range),
        }
    }

    fn sequence(
        self,
        element: Use<'_>,
        bound: Option<u32>,
        trim: bool,
        reader: &mut Reader<'_>,
    ) -> Result<Value, CdrError> {
        let size_min = self.0.size_min(element.ty);
        let (count, left_out) = count(size_min, bound, trim, reader)?;
        let mut elements = Vec::new();
        for _ in 0..count {
            elements.push(self.element(element, reader)?);
        }
        self.leave_out(&[element], left_out, reader)?;
        Ok(Value::List(elements))
    }

    /// Skips the part beyond a bound.
    fn leave_out(
        self,
        parts: &[Use<'_>],
        count: usize,
        reader: &mut Reader<'_>,
    ) -> Result<(), CdrError> {
        for _ in 0..count {
            for part in parts {
                // Values that are not values of their type are no error here.
                let skip = |reader: &mut Reader<'_>| self.read(*part, reader).map(drop);
                let _fits = reader.construct(skip, skip)?;
            }
        }
        Ok(())
    }

    fn rows(
        self,
        element: Use<'_>,
        dimensions: &[u32],
        reader: &mut Reader<'_>,
    ) -> Result<Value, CdrError> {
        let Some((first, inner)) = dimensions.split_first() else {
            return self.element(element, reader);
        };
        let mut rows = Vec::new();
        for _ in 0..*first {
            rows.push(self.rows(element, inner, reader)?);
        }
        Ok(Value::List(rows))
    }

    fn map(
        self,
        (key, value): (Use<'_>, Use<'_>),
        bound: Option<u32>,
        trim: bool,
        reader: &mut Reader<'_>,
    ) -> Result<Value, CdrError> {
        let size_min = self
            .0
            .size_min(key.ty)
            .saturating_add(self.0.size_min(value.ty));
        let (count, left_out) = count(size_min, bound, trim, reader)?;
        let mut entries = Vec::new();
        let place = reader.place();
        for _ in 0..count {
            entries.push((self.element(key, reader)?, self.element(value, reader)?));
        }
        entries.sort_by(|one, other| one.0.order(&other.0));
        let twice = entries.windows(2).any(|pair| match pair {
            [one, other] => one.0.order(&other.0) == Ordering::Equal,
            _ => false,
        });
        if twice && !reader.is_skipping() {
            return Err(CdrError::DuplicateKey { place });
        }
        self.leave_out(&[key, value], left_out, reader)?;
        Ok(Value::Map(entries))
    }

    /// The default of an absent member.
    fn absent(self, member: &Member, reader: &mut Reader<'_>) -> Result<Option<Value>, CdrError> {
        self.initial(reader).member(member)
    }

    fn member(self, member: &Member, reader: &mut Reader<'_>) -> Result<Option<Value>, CdrError> {
        match self.construct(Use::member(member), reader)? {
            Some(value) => Ok(Some(value)),
            None => self.absent(member, reader),
        }
    }

    fn structure(
        self,
        extensibility: Extensibility,
        members: &Members,
        reader: &mut Reader<'_>,
    ) -> Result<Value, CdrError> {
        let scope = reader.begin(extensibility)?;
        let values = match extensibility {
            Extensibility::Mutable => self.member_list(members, reader)?,
            _ => {
                let one = |member| self.member_in_order(extensibility, members, member, reader);
                members.iter().map(one).collect::<Result<_, _>>()?
            }
        };
        reader.end(scope);
        Ok(Value::Struct(values))
    }

    fn member_in_order(
        self,
        extensibility: Extensibility,
        members: &Members,
        member: &Member,
        reader: &mut Reader<'_>,
    ) -> Result<Option<Value>, CdrError> {
        if reader.is_absent(extensibility, members.is_key(member)) {
            return self.absent(member, reader);
        }
        if !member.optional {
            return self.member(member, reader);
        }
        let Some(present) = reader.begin_optional(member.id)? else {
            return Ok(None);
        };
        let value = self.member(member, reader)?;
        reader.end_optional(present);
        Ok(value)
    }

    fn member_list(
        self,
        members: &Members,
        reader: &mut Reader<'_>,
    ) -> Result<Vec<Option<Value>>, CdrError> {
        let mut found: Vec<Option<Option<Value>>> = vec![None; members.len()];
        while let Some(parameter) = reader.next_parameter()? {
            let known = members.position(parameter.id);
            let known = known.and_then(|at| Some((members.get(at)?, found.get_mut(at)?)));
            match known {
                Some((member, value)) => *value = Some(self.member(member, reader)?),
                None => reader.unknown(&parameter)?,
            }
            reader.end_parameter(parameter);
        }
        let values = members
            .iter()
            .zip(found)
            .map(|(member, value)| match value {
                Some(value) => Ok(value),
                None => self.absent(member, reader),
            });
        values.collect()
    }

    /// Makes defaults whose memory counts against a reader's limit.
    fn initial(
        self,
        reader: &mut Reader<'_>,
    ) -> Defaults<'p, impl FnMut() -> Result<(), CdrError>> {
        Defaults {
            plan: self.0,
            spend: || reader.spend(size_of::<Value>()),
        }
    }
}

/// Defaults of absent members.
struct Defaults<'p, S> {
    plan: &'p Plan,
    spend: S,
}

impl<S: FnMut() -> Result<(), CdrError>> Defaults<'_, S> {
    fn value(mut self, ty: &Type, range: &Range) -> Result<Value, CdrError> {
        let mut initial = Initial {
            plan: self.plan,
            spend: &mut self.spend,
        };
        initial.value(ty, range)
    }

    fn branch(mut self, member: &Member) -> Result<Value, CdrError> {
        let mut initial = Initial {
            plan: self.plan,
            spend: &mut self.spend,
        };
        initial.branch(member)
    }

    fn member(mut self, member: &Member) -> Result<Option<Value>, CdrError> {
        let mut initial = Initial {
            plan: self.plan,
            spend: &mut self.spend,
        };
        initial.member(member)
    }
}

fn in_collection<'r, T>(
    delimited: bool,
    reader: &mut Reader<'r>,
    read: impl FnOnce(&mut Reader<'r>) -> Result<T, CdrError>,
) -> Result<T, CdrError> {
    if !delimited {
        return read(reader);
    }
    let scope = reader.begin_collection()?;
    let value = read(reader)?;
    reader.end(scope);
    Ok(value)
}

/// How many elements are kept, and how many after them are dropped.
fn count(
    size_min: usize,
    bound: Option<u32>,
    trim: bool,
    reader: &mut Reader<'_>,
) -> Result<(usize, usize), CdrError> {
    let bound = bound.unwrap_or(UNBOUNDED);
    match trim {
        true => reader.count_trimmed(size_min, bound),
        false => reader.count(size_min, bound).map(|count| (count, 0)),
    }
}
