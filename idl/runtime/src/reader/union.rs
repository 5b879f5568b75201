//! Unions: the discriminator is read first, because it selects the member.

use super::Reader;
use crate::encapsulation::{Extensibility, Representation};
use crate::error::{CdrError, InMember};
use crate::member::{Member, Owned};
use crate::shape::{Shape as _, Union};

impl<'a> Reader<'a> {
    /// Whether a member of a final or appendable type is present, so that
    /// [`member`](Self::member) would read it.
    pub(crate) fn has_member<M: Member>(&self) -> bool {
        !self.is_absent(M::EXTENSIBILITY, M::KEY)
    }

    /// As [`has_member`](Self::has_member), for an open member of a mutable type.
    fn is_here<M: Member>(&self) -> bool {
        M::EXTENSIBILITY == Extensibility::Mutable || self.has_member::<M>()
    }

    /// Traverses a union. `branch` gets the discriminator, and the reader at the selected
    /// member, or none if a list of members lacks it.
    ///
    /// # Errors
    /// The bytes are invalid.
    pub(crate) fn union<U: Union, T>(
        &mut self,
        branch: impl FnOnce(Owned<U::Discriminator>, Option<&mut Self>) -> Result<T, CdrError>,
    ) -> Result<T, CdrError> {
        let scope = self.begin(U::EXTENSIBILITY)?;
        let value = match U::EXTENSIBILITY {
            Extensibility::Final | Extensibility::Appendable => {
                match self.discriminator::<U>(self.is_delimited(U::EXTENSIBILITY))? {
                    Some(discriminator) => branch(discriminator, Some(self))?,
                    None => branch(U::Discriminator::initial(), None)?,
                }
            }
            // Its key is its discriminator.
            Extensibility::Mutable if self.is_key_hash() => {
                branch(self.value::<U::Discriminator>()?, None)?
            }
            Extensibility::Mutable => self.mutable_union::<U, T>(branch)?,
        };
        self.end(scope);
        Ok(value)
    }

    /// Reads the discriminator; `None` means that its default replaces the value, and so the
    /// default of the union replaces the rest. That requires a known end of the union.
    fn discriminator<U: Union>(
        &mut self,
        end_is_known: bool,
    ) -> Result<Option<Owned<U::Discriminator>>, CdrError> {
        if !U::Discriminator::USE_DEFAULT || !self.is_here::<U::Discriminator>() {
            return match U::EXTENSIBILITY {
                Extensibility::Mutable => self.value::<U::Discriminator>(),
                _ => self.member::<U::Discriminator>(),
            }
            .map(Some);
        }
        let read = <U::Discriminator as Member>::Shape::read;
        let read = match end_is_known {
            true => self.fits_or_skip::<<U::Discriminator as Member>::Shape, _>(read),
            false => read(self).map(Some),
        };
        read.in_member(U::Discriminator::PATH)
    }

    /// Whether the end of the rest of a structure or union is known.
    pub fn is_delimited(&self, extensibility: Extensibility) -> bool {
        self.representation == Representation::Xcdr2
            && extensibility != Extensibility::Final
            && !self.is_key_hash()
    }

    /// Skips a structure or union without checking its members.
    ///
    /// # Errors
    /// What is wrong with the bytes; `error` if its end is unknown.
    pub fn skip_aggregate(
        &mut self,
        extensibility: Extensibility,
        error: CdrError,
    ) -> Result<(), CdrError> {
        let scope = self.begin(extensibility)?;
        if extensibility == Extensibility::Mutable {
            while let Some(parameter) = self.next_parameter()? {
                self.end_parameter(parameter);
            }
        } else if !self.is_delimited(extensibility) {
            return Err(error);
        }
        self.end(scope);
        Ok(())
    }

    fn mutable_union<U: Union, T>(
        &mut self,
        branch: impl FnOnce(Owned<U::Discriminator>, Option<&mut Self>) -> Result<T, CdrError>,
    ) -> Result<T, CdrError> {
        let (discriminator, id) = self.discriminator_ahead::<U>()?;
        // The branch, once it has been passed.
        let mut found = Err(branch);
        while let Some(parameter) = self.next_parameter()? {
            found = match found {
                Err(branch) if id == Some(parameter.id) => Ok(branch(discriminator, Some(self))?),
                other => {
                    if !is_known::<U>(parameter.id) {
                        self.unknown(&parameter)?;
                    }
                    other
                }
            };
            self.end_parameter(parameter);
        }
        found.or_else(|branch| branch(discriminator, None))
    }

    /// Finds the discriminator of a mutable union at any position in the list, and the id of
    /// the member that it selects.
    fn discriminator_ahead<U: Union>(
        &self,
    ) -> Result<(Owned<U::Discriminator>, Option<u32>), CdrError> {
        let mut ahead = *self;
        while let Some(parameter) = ahead.next_parameter()? {
            if parameter.id == U::Discriminator::ID {
                return Ok(match ahead.discriminator::<U>(true)? {
                    Some(discriminator) => (discriminator, branch_id::<U>(discriminator)),
                    None => (U::Discriminator::initial(), None),
                });
            }
            ahead.end_parameter(parameter);
        }
        let discriminator = U::Discriminator::initial();
        Ok((discriminator, branch_id::<U>(discriminator)))
    }

    /// The discriminator, and a reader at the member that it selects.
    ///
    /// # Errors
    /// What is wrong with the bytes; not all of them are looked at.
    pub(crate) fn into_union<U: Union>(
        mut self,
    ) -> Result<(Owned<U::Discriminator>, Option<Self>), CdrError> {
        let _scope = self.begin(U::EXTENSIBILITY)?;
        if U::EXTENSIBILITY != Extensibility::Mutable {
            let end_is_known = self.is_delimited(U::EXTENSIBILITY);
            return Ok(match self.discriminator::<U>(end_is_known)? {
                Some(discriminator) => (discriminator, Some(self)),
                None => (U::Discriminator::initial(), None),
            });
        }
        let (discriminator, id) = self.discriminator_ahead::<U>()?;
        while let Some(parameter) = self.next_parameter()? {
            if id == Some(parameter.id) {
                return Ok((discriminator, Some(self)));
            }
            self.end_parameter(parameter);
        }
        Ok((discriminator, None))
    }
}

fn branch_id<U: Union>(discriminator: Owned<U::Discriminator>) -> Option<u32> {
    U::IDS.get(U::select(discriminator)?).copied()
}

fn is_known<U: Union>(id: u32) -> bool {
    id == U::Discriminator::ID || U::IDS.contains(&id)
}
