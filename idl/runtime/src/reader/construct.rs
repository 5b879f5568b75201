//! Well-formed values that are not values of their type: too long, unknown, out of range.
//! `@try_construct` decides how they are treated (XTypes 1.3 §7.2.4.5); without it the
//! enclosing value is discarded.

use super::Reader;
use crate::error::CdrError;
use crate::shape::Shape;

impl Reader<'_> {
    /// Reads a value with `read`; if it is not one of its type, skips it and returns `None`.
    ///
    /// # Errors
    /// The bytes are invalid.
    pub(crate) fn fits_or_skip<S: Shape, T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, CdrError>,
    ) -> Result<Option<T>, CdrError> {
        self.construct(read, S::check)
    }

    /// Reads a value with `read`; if it is not one of its type, skips it with `skip`, which must
    /// [`tolerate`](Self::tolerate) such values, and returns `None`.
    ///
    /// # Errors
    /// The bytes are invalid.
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

    /// Skips `count` well-formed values, which need not be values of their type.
    ///
    /// # Errors
    /// The bytes are invalid.
    pub(crate) fn skip<S: Shape>(&mut self, count: usize) -> Result<(), CdrError> {
        let skipping = std::mem::replace(&mut self.skipping, true);
        for _ in 0..count {
            S::check(self)?;
        }
        self.skipping = skipping;
        Ok(())
    }

    /// Whether the value is only skipped.
    pub fn is_skipping(&self) -> bool {
        self.skipping
    }

    /// The result of checking a value: while skipping, a well-formed value that is not one of
    /// its type is no error.
    ///
    /// # Errors
    /// The value is invalid.
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
