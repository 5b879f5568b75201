//! Sequences and arrays whose elements are no primitives, element by element.

use std::borrow::Borrow;
use std::fmt;
use std::marker::PhantomData;

use super::composite::{Build, Composite, FixedComposite, Only};
use super::room::{Part, Site};
use crate::encapsulation::Representation;
use crate::encode::{AllMembers, Encoder as _, Writer, check_bound, length_u32};
use crate::error::{CdrError, Place};
use crate::shape::{Array, Delimited, Sequence, Shape};

/// A collection that can be built element by element.
pub trait Listed: Shape {
    /// Shape of the elements.
    type Element: Shape;
    /// Most elements; of arrays, exactly as many.
    const COUNT_MAX: u32;
    /// Whether it is an array: there is no count before the elements.
    const IS_ARRAY: bool;
    /// Whether XCDR2 puts a delimiter before it.
    const DELIMITED: bool;
}

impl<T: Shape, const N: u32> Listed for Sequence<T, N> {
    type Element = T;
    const COUNT_MAX: u32 = N;
    const IS_ARRAY: bool = false;
    const DELIMITED: bool = false;
}

impl<T: Shape, const N: usize> Listed for Array<T, N> {
    type Element = T;
    const COUNT_MAX: u32 = N as u32;
    const IS_ARRAY: bool = true;
    const DELIMITED: bool = false;
}

impl<S: Listed> Listed for Delimited<S> {
    type Element = S::Element;
    const COUNT_MAX: u32 = S::COUNT_MAX;
    const IS_ARRAY: bool = S::IS_ARRAY;
    const DELIMITED: bool = true;
}

/// A sequence or array of `T` that grows where it will lie. It borrows the builder
/// around it. Room for its count and its length was left on entry, both are written
/// on leaving; an element that could not be written leaves no trace.
pub struct List<'p, T, E> {
    part: Part<'p, E>,
    site: Site,
    end: usize,
    count: usize,
    count_max: u32,
    /// Where the delimiter stands.
    delimiter: Option<usize>,
    /// Where the count stands: not before the elements of arrays.
    count_at: Option<usize>,
    element: PhantomData<fn() -> T>,
}

impl<'p, T: Shape, E: From<CdrError>> List<'p, T, E> {
    pub(super) fn begin<S: Listed<Element = T>>(
        mut part: Part<'p, E>,
        site: Site,
    ) -> Result<Self, CdrError> {
        let mut writer = site.writer(part.bytes());
        // What could not be read is not written.
        if S::DELIMITED {
            writer.deeper()?;
        }
        let depth = *writer.depth_mut();
        let mut word = |wanted: bool| match wanted {
            true => {
                writer.primitive(0_u32)?;
                Ok(Some(writer.position() - 4))
            }
            false => Ok(None),
        };
        let delimiter = word(S::DELIMITED && site.representation == Representation::Xcdr2)?;
        let count_at = word(!S::IS_ARRAY)?;
        let end = writer.position();
        let site = Site { depth, ..site };
        Ok(Self {
            part,
            site,
            end,
            count: 0,
            count_max: S::COUNT_MAX,
            delimiter,
            count_at,
            element: PhantomData,
        })
    }

    /// Writes count and length, and returns the offset behind the last element.
    pub(super) fn close(&mut self) -> Result<usize, CdrError> {
        self.part.fault().report()?;
        let count = length_u32(self.count)?;
        if self.count_at.is_none() && count != self.count_max {
            return Err(CdrError::MissingElements {
                count: self.count,
                expected: self.count_max as usize,
                place: Place::offset(self.end),
            });
        }
        let end = self.end;
        let length = self
            .delimiter
            .map(|at| length_u32(end - at - 4))
            .transpose()?;
        let words = [self.delimiter.zip(length), self.count_at.zip(Some(count))];
        let mut writer = self.writer();
        for (at, word) in words.into_iter().flatten() {
            writer.patch(at, word);
        }
        Ok(end)
    }

    #[inline]
    fn here(&self) -> Site {
        Site {
            position: self.end,
            ..self.site
        }
    }

    #[inline]
    fn writer(&mut self) -> Writer<'_, AllMembers> {
        self.here().writer(self.part.bytes())
    }

    /// Number of elements so far.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether there are no elements yet.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Most elements that the type allows.
    pub fn len_max(&self) -> usize {
        self.count_max as usize
    }

    /// Room for one more element.
    #[inline]
    fn next(&mut self) -> Result<Site, CdrError> {
        check_bound(self.count + 1, self.count_max, self.end)?;
        Ok(self.here())
    }

    /// Counts an element that ends at `end`.
    #[inline]
    fn grow(&mut self, end: usize) {
        self.end = end;
        self.count += 1;
    }

    /// Appends a copy of a value.
    ///
    /// # Errors
    /// [`CdrError::BoundExceeded`] when there are as many as the type allows;
    /// [`CdrError::Full`], or what is wrong with the value.
    #[inline]
    pub fn push(&mut self, value: &T::Borrowed) -> Result<(), E> {
        self.next()?;
        let mut writer = self.writer();
        T::write(value, &mut writer)?;
        let end = writer.position();
        self.grow(end);
        Ok(())
    }

    /// Appends copies of values, up to the first that cannot be.
    ///
    /// # Errors
    /// As for [`push`](Self::push).
    pub fn extend<'v, V>(&mut self, values: impl IntoIterator<Item = &'v V>) -> Result<(), E>
    where
        V: Borrow<T::Borrowed> + ?Sized + 'v,
    {
        let mut values = values.into_iter();
        values.try_for_each(|value| self.push(value.borrow()))
    }

    /// Appends copies of values; of structures that lie here as in memory, as a whole.
    ///
    /// # Errors
    /// As for [`push`](Self::push). None of the values is appended then.
    #[inline]
    pub fn push_all(&mut self, values: &[T::Owned]) -> Result<(), E> {
        let count = self.count.saturating_add(values.len());
        check_bound(count, self.count_max, self.end)?;
        let mut writer = self.writer();
        T::write_all(values, &mut writer)?;
        (self.end, self.count) = (writer.position(), count);
        Ok(())
    }

    /// Appends a structure of varying size: `build` is handed its builder and hands it
    /// back in its last stage.
    ///
    /// # Errors
    /// As for [`push`](Self::push), and those of `build`.
    #[inline]
    pub fn push_with<F>(&mut self, build: F) -> Result<(), E>
    where
        T: Composite,
        F: for<'e> Build<'e, T, E>,
    {
        let site = self.next()?;
        let mut last = build(T::begin(self.part.reborrow(), site)?)?;
        let end = T::close(&mut last)?;
        drop(last);
        self.grow(end);
        Ok(())
    }

    /// Appends a structure of fixed size with its defaults, and hands out its builder
    /// to change them.
    ///
    /// # Errors
    /// [`CdrError::BoundExceeded`], [`CdrError::Full`].
    #[inline]
    pub fn add(&mut self) -> Result<Only<'_, T, E>, E>
    where
        T: FixedComposite,
    {
        let site = self.next()?;
        let (builder, end) = T::add(self.part.reborrow(), site)?;
        self.end = end;
        self.count += 1;
        Ok(builder)
    }

    /// Appends a collection, element by element.
    ///
    /// # Errors
    /// As for [`push`](Self::push), and those of `build`;
    /// [`CdrError::MissingElements`] of an array.
    pub fn push_list(
        &mut self,
        build: impl FnOnce(&mut List<'_, T::Element, E>) -> Result<(), E>,
    ) -> Result<(), E>
    where
        T: Listed,
    {
        let site = self.next()?;
        let mut list = List::begin::<T>(self.part.reborrow(), site)?;
        build(&mut list)?;
        let end = list.close()?;
        self.grow(end);
        Ok(())
    }
}

impl<T, E> fmt::Debug for List<'_, T, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("List")
            .field("count", &self.count)
            .field("end", &self.end)
            .finish_non_exhaustive()
    }
}
