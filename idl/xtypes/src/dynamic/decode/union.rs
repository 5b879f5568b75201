//! Decoding of unions of dynamic types.

use spindle_dds_idl_runtime::{CdrError, Reader};

use super::{Decode, Use};
use crate::dynamic::leaf::check_enum;
use crate::dynamic::plan::{ANY, Declared, select};
use crate::dynamic::value::{UnionValue, Value};
use crate::graph::{Extensibility, Member, TryConstruct, Type, TypeIndex, Union};

/// Id of the discriminator in the list of members of a mutable union.
pub(in crate::dynamic) const DISCRIMINATOR_ID: u32 = 0;

/// The branch that a discriminator selects.
pub(in crate::dynamic) fn selected<'u>(
    union: &'u Union,
    discriminator: &Value,
) -> Option<(usize, &'u Member)> {
    let index = select(union, discriminator.to_integer()?)?;
    union
        .branches
        .get(index)
        .map(|branch| (index, &branch.member))
}

impl Decode<'_> {
    pub(super) fn union(
        self,
        union: (TypeIndex, &Union),
        reader: &mut Reader<'_>,
    ) -> Result<Value, CdrError> {
        let mut start = *reader;
        match self.union_value(union, reader) {
            // While skipping, an unknown discriminator is no error if the end is known.
            Err(error) if reader.is_skipping() && error.is_unfit() => {
                start.skip_aggregate(union.1.extensibility, error)?;
                *reader = start;
                Ok(Value::Struct(Vec::new()))
            }
            read => read,
        }
    }

    fn union_value(
        self,
        (index, union): (TypeIndex, &Union),
        reader: &mut Reader<'_>,
    ) -> Result<Value, CdrError> {
        let scope = reader.begin(union.extensibility)?;
        let (discriminator, branch) = match union.extensibility {
            Extensibility::Mutable => self.union_list(index, union, reader)?,
            extensibility => {
                let end_is_known = reader.is_delimited(extensibility);
                let found = match reader.is_absent(extensibility, true) {
                    true => None,
                    false => self.discriminator(union, end_is_known, reader)?,
                };
                match found {
                    // The member is absent, or belongs to an unknown branch.
                    None => self.default_union(index, reader)?,
                    Some(discriminator) => {
                        let branch = self.branch_in_order(union, &discriminator, reader)?;
                        (discriminator, branch)
                    }
                }
            }
        };
        reader.end(scope);
        Ok(Value::Union(Box::new(UnionValue {
            discriminator,
            branch,
        })))
    }

    fn branch_in_order(
        self,
        union: &Union,
        discriminator: &Value,
        reader: &mut Reader<'_>,
    ) -> Result<Option<(usize, Value)>, CdrError> {
        let Some((index, member)) = selected(union, discriminator) else {
            return Ok(None);
        };
        let value = match reader.is_absent(union.extensibility, false) {
            true => self.initial(reader).branch(member)?,
            false => self.branch(member, reader)?,
        };
        Ok(Some((index, value)))
    }

    /// The default of a union.
    fn default_union(
        self,
        index: TypeIndex,
        reader: &mut Reader<'_>,
    ) -> Result<(Value, Option<(usize, Value)>), CdrError> {
        match self.initial(reader).value(&Type::Declared(index), ANY)? {
            Value::Union(value) => Ok((value.discriminator, value.branch)),
            other => Ok((other, None)),
        }
    }

    /// Reads a discriminator; `None` means that its default replaces the value, and so the
    /// default of the union replaces the rest. That requires a known end of the union.
    fn discriminator(
        self,
        union: &Union,
        end_is_known: bool,
        reader: &mut Reader<'_>,
    ) -> Result<Option<Value>, CdrError> {
        let what = Use::of(&union.discriminator.ty);
        // A discriminator without a known branch must not be tolerated, even when skipping.
        let strictly = |reader: &mut Reader<'_>| {
            let place = reader.place();
            let value = self.read(what, reader)?;
            if let (Type::Declared(index), Value::Enum(literal)) = (self.0.resolve(what.ty), &value)
                && let Some(Declared::Enum(enumeration)) = self.0.declared(*index)
            {
                check_enum(enumeration, *literal, place)?;
            }
            Ok(value)
        };
        if union.discriminator.try_construct != TryConstruct::UseDefault || !end_is_known {
            return strictly(reader).map(Some);
        }
        reader.construct(strictly, |reader| self.read(what, reader).map(drop))
    }

    fn branch(self, member: &Member, reader: &mut Reader<'_>) -> Result<Value, CdrError> {
        match self.construct(Use::member(member), reader)? {
            Some(value) => Ok(value),
            None => self.initial(reader).branch(member),
        }
    }

    /// The members of a mutable union, with the discriminator at any position.
    fn union_list(
        self,
        index: TypeIndex,
        union: &Union,
        reader: &mut Reader<'_>,
    ) -> Result<(Value, Option<(usize, Value)>), CdrError> {
        let mut ahead = *reader;
        let mut found = None;
        while found.is_none()
            && let Some(parameter) = ahead.next_parameter()?
        {
            if parameter.id == DISCRIMINATOR_ID {
                found = Some(self.discriminator(union, true, &mut ahead)?);
            }
            ahead.end_parameter(parameter);
        }
        let replaced = found == Some(None);
        let discriminator = match found.flatten() {
            Some(found) => found,
            None => self.default_union(index, reader)?.0,
        };
        let selected = selected(union, &discriminator);
        let mut value = None;
        while let Some(parameter) = reader.next_parameter()? {
            let is_known = |id: u32| {
                id == DISCRIMINATOR_ID || union.branches.iter().any(|one| one.member.id == id)
            };
            match selected {
                Some((_, member)) if member.id == parameter.id && value.is_none() && !replaced => {
                    value = Some(self.branch(member, reader)?);
                }
                _ if is_known(parameter.id) => {}
                _ => reader.unknown(&parameter)?,
            }
            reader.end_parameter(parameter);
        }
        let branch = match (selected, value) {
            (None, _) => None,
            (Some((index, _)), Some(value)) => Some((index, value)),
            (Some((index, member)), None) => {
                let initial = self.initial(reader).branch(member)?;
                Some((index, initial))
            }
        };
        Ok((discriminator, branch))
    }
}
