//! Values that are well-formed and yet none of their type: too long, unknown, out of
//! range. `@try_construct` says what becomes of them (XTypes 1.3 §7.2.4.5); without it
//! whatever contains them is lost.

use super::Reader;
use crate::error::CdrError;
use crate::shape::Shape;

impl Reader<'_> {
    /// Reads what stands here with `read`; if it is none of its type, goes behind it
    /// and gives `None`.
    ///
    /// # Errors
    /// What is wrong with the bytes.
    pub(crate) fn fits_or_skip<S: Shape, T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, CdrError>,
    ) -> Result<Option<T>, CdrError> {
        self.construct(read, S::check)
    }

    /// Reads what stands here with `read`; if it is none of its type, goes behind it
    /// with `skip`, which must [`tolerate`](Self::tolerate) that, and gives `None`.
    ///
    /// # Errors
    /// What is wrong with the bytes.
    pub fn construct<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, CdrError>,
        skip: impl FnOnce(&mut Self) -> Result<(), CdrError>,
    ) -> Result<Option<T>, CdrError> {
        let start = *self;
        match read(self) {
            Ok(value) => Ok(Some(value)),
            Err(error) if error.is_unfit() => {
                let spent = self.spent;
                *self = Self {
                    spent,
                    skipping: true,
                    ..start
                };
                skip(self)?;
                self.skipping = start.skipping;
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Goes behind `count` values, which need be none of their type.
    ///
    /// # Errors
    /// What is wrong with the bytes.
    pub(crate) fn skip<S: Shape>(&mut self, count: usize) -> Result<(), CdrError> {
        let skipping = std::mem::replace(&mut self.skipping, true);
        for _ in 0..count {
            S::check(self)?;
        }
        self.skipping = skipping;
        Ok(())
    }

    /// Whether what stands here is only gone behind.
    pub fn is_skipping(&self) -> bool {
        self.skipping
    }

    /// The outcome of checking a value that has been read: whoever only goes behind it
    /// does not mind if it is none of its type.
    ///
    /// # Errors
    /// What is wrong with the value.
    #[inline]
    pub fn tolerate(&self, checked: Result<(), CdrError>) -> Result<(), CdrError> {
        match checked {
            Err(error) if self.skipping && error.is_unfit() => Ok(()),
            checked => checked,
        }
    }

    /// Checks a length against its IDL bound.
    ///
    /// # Errors
    /// [`CdrError::BoundExceeded`].
    #[inline]
    pub fn check_bound(&self, length: usize, bound: u32, offset: usize) -> Result<(), CdrError> {
        self.tolerate(crate::encode::check_bound(length, bound, offset))
    }
}
