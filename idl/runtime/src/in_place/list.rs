//! Sequences and arrays whose elements are not primitive, element by element.

use std::borrow::Borrow;
use std::fmt;
use std::marker::PhantomData;

use super::composite::{Build, Composite, FixedComposite, Only};
use super::frame::{Frame, Head};
use super::room::{Part, Site};
use crate::encode::Encoder as _;
use crate::error::CdrError;
use crate::shape::{Array, Delimited, OrDefault, Sequence, Shape, Trim, Trimmable};

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

impl<S: Listed> Listed for OrDefault<S> {
    type Element = S::Element;
    const COUNT_MAX: u32 = S::COUNT_MAX;
    const IS_ARRAY: bool = S::IS_ARRAY;
    const DELIMITED: bool = S::DELIMITED;
}

impl<S: Listed + Trimmable> Listed for Trim<S> {
    type Element = S::Element;
    const COUNT_MAX: u32 = S::COUNT_MAX;
    const IS_ARRAY: bool = S::IS_ARRAY;
    const DELIMITED: bool = S::DELIMITED;
}

/// A sequence or array of `T` that grows in place. It borrows the enclosing builder. An
/// element that could not be written leaves no trace.
pub struct List<'p, T, E> {
    part: Part<'p, E>,
    frame: Frame,
    element: PhantomData<fn() -> T>,
}

impl<'p, T: Shape, E: From<CdrError>> List<'p, T, E> {
    pub(super) fn begin<S: Listed<Element = T>>(
        mut part: Part<'p, E>,
        site: Site,
    ) -> Result<Self, CdrError> {
        let head = Head {
            delimited: S::DELIMITED,
            counted: !S::IS_ARRAY,
            count_max: S::COUNT_MAX,
        };
        Ok(Self {
            frame: Frame::begin(part.bytes(), site, &head)?,
            part,
            element: PhantomData,
        })
    }

    pub(super) fn close(&mut self) -> Result<usize, CdrError> {
        self.part.fault().report()?;
        self.frame.close(self.part.bytes())
    }

    /// Number of elements so far.
    pub fn len(&self) -> usize {
        self.frame.count
    }

    /// Whether there are no elements yet.
    pub fn is_empty(&self) -> bool {
        self.frame.count == 0
    }

    /// Most elements that the type allows.
    pub fn len_max(&self) -> usize {
        self.frame.count_max as usize
    }

    /// Appends a copy of a value.
    ///
    /// # Errors
    /// [`CdrError::BoundExceeded`] when there are as many as the type allows;
    /// [`CdrError::Full`], or the value is invalid.
    #[inline]
    pub fn push(&mut self, value: &T::Borrowed) -> Result<(), E> {
        self.frame.next(1)?;
        let mut writer = self.frame.writer(self.part.bytes());
        T::write(value, &mut writer)?;
        let end = writer.position();
        self.frame.grow(1, end);
        Ok(())
    }

    /// Appends copies of values, up to the first that fails.
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

    /// Appends copies of values; plain structures by one copy.
    ///
    /// # Errors
    /// As for [`push`](Self::push). None of the values is appended then.
    #[inline]
    pub fn push_all(&mut self, values: &[T::Owned]) -> Result<(), E> {
        self.frame.next(values.len())?;
        let mut writer = self.frame.writer(self.part.bytes());
        T::write_all(values, &mut writer)?;
        let end = writer.position();
        self.frame.grow(values.len(), end);
        Ok(())
    }

    /// Appends a structure of varying size: `build` gets its builder and returns it in its
    /// last stage.
    ///
    /// # Errors
    /// As for [`push`](Self::push), and those of `build`.
    #[inline]
    pub fn push_with<F>(&mut self, build: F) -> Result<(), E>
    where
        T: Composite,
        F: for<'e> Build<'e, T, E>,
    {
        let site = self.frame.next(1)?;
        let mut last = build(T::begin(self.part.reborrow(), site)?)?;
        let end = T::close(&mut last)?;
        drop(last);
        self.frame.grow(1, end);
        Ok(())
    }

    /// Appends a structure of fixed size with its defaults, and returns its builder
    /// to change them.
    ///
    /// # Errors
    /// [`CdrError::BoundExceeded`], [`CdrError::Full`].
    #[inline]
    pub fn add(&mut self) -> Result<Only<'_, T, E>, E>
    where
        T: FixedComposite,
    {
        let site = self.frame.next(1)?;
        let (builder, end) = T::add(self.part.reborrow(), site)?;
        self.frame.grow(1, end);
        Ok(builder)
    }

    /// Appends a collection, element by element.
    ///
    /// # Errors
    /// As for [`push`](Self::push), and those of `build`;
    /// [`CdrError::MissingElements`] for an array.
    pub fn push_list(
        &mut self,
        build: impl FnOnce(&mut List<'_, T::Element, E>) -> Result<(), E>,
    ) -> Result<(), E>
    where
        T: Listed,
    {
        let site = self.frame.next(1)?;
        let mut list = List::begin::<T>(self.part.reborrow(), site)?;
        build(&mut list)?;
        let end = list.close()?;
        self.frame.grow(1, end);
        Ok(())
    }
}

impl<T, E> fmt::Debug for List<'_, T, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("List")
            .field("count", &self.frame.count)
            .field("end", &self.frame.end)
            .finish_non_exhaustive()
    }
}
