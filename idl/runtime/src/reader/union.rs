//! Unions: the discriminator first, for it says what the rest is.

use super::Reader;
use crate::encapsulation::Extensibility;
use crate::error::CdrError;
use crate::member::{Member, Owned};
use crate::shape::Union;

impl<'a> Reader<'a> {
    /// Whether a member of a final or appendable type is there, so that
    /// [`member`](Self::member) would read it.
    pub(crate) fn has_member<M: Member>(&self) -> bool {
        !self.is_absent(M::EXTENSIBILITY, M::KEY)
    }

    /// Goes over a union. `branch` is handed the discriminator, and the reader at the
    /// member that it selects; none where a list of members does not have it.
    ///
    /// # Errors
    /// What is wrong with the bytes.
    pub(crate) fn union<U: Union, T>(
        &mut self,
        branch: impl FnOnce(Owned<U::Discriminator>, Option<&mut Self>) -> Result<T, CdrError>,
    ) -> Result<T, CdrError> {
        let scope = self.begin(U::EXTENSIBILITY)?;
        let value = match U::EXTENSIBILITY {
            Extensibility::Final | Extensibility::Appendable => {
                let discriminator = self.member::<U::Discriminator>()?;
                branch(discriminator, Some(self))?
            }
            Extensibility::Mutable => self.mutable_union::<U, T>(branch)?,
        };
        self.end(scope);
        Ok(value)
    }

    fn mutable_union<U: Union, T>(
        &mut self,
        branch: impl FnOnce(Owned<U::Discriminator>, Option<&mut Self>) -> Result<T, CdrError>,
    ) -> Result<T, CdrError> {
        let discriminator = self.discriminator_ahead::<U>()?;
        let id = branch_id::<U>(discriminator);
        // The branch, once it has been come by.
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

    /// Finds the discriminator of a mutable union, wherever it stands in the list.
    fn discriminator_ahead<U: Union>(&self) -> Result<Owned<U::Discriminator>, CdrError> {
        let mut ahead = *self;
        while let Some(parameter) = ahead.next_parameter()? {
            if parameter.id == U::Discriminator::ID {
                return ahead.value::<U::Discriminator>();
            }
            ahead.end_parameter(parameter);
        }
        Ok(U::Discriminator::initial())
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
            let discriminator = self.member::<U::Discriminator>()?;
            return Ok((discriminator, Some(self)));
        }
        let discriminator = self.discriminator_ahead::<U>()?;
        let id = branch_id::<U>(discriminator);
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
