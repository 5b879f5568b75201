//! Values with builders of their own.

use super::elements::Elements;
use super::entries::{Entries, Mapped};
use super::list::{List, Listed};
use super::numbers::{SeqMut, fill_with};
use super::{Build, Composite, FixedComposite, InPlace, Only, Part, Room, Site};
use crate::encode::{Encoder as _, check_bound};
use crate::error::{CdrError, InMember};
use crate::member::{Member, is_parameter};
use crate::primitive::Primitive;
use crate::shape::{PrimitiveSequence, Shape};

/// A sequence of primitives.
pub trait Numbers: Shape {
    /// Its elements.
    type Element: Primitive;
    /// Most elements.
    const BOUND: u32;
}

impl<P: Primitive, const N: u32> Numbers for PrimitiveSequence<P, N> {
    type Element = P;
    const BOUND: u32 = N;
}

impl<R: Room, const N: usize> InPlace<R, N> {
    #[inline]
    fn part(&mut self) -> Part<'_, R::Error> {
        Part::new(self.room.split(&mut self.fault))
    }

    /// Appends a structure that `build` builds.
    ///
    /// # Errors
    /// [`CdrError::Full`], missing members of the structure, and those of `build`.
    #[inline]
    pub fn append_composite<M, S, F>(&mut self, build: F) -> Result<(), R::Error>
    where
        M: Member,
        S: Composite,
        F: for<'p> Build<'p, S, R::Error>,
    {
        let open = self.open::<M>()?;
        let first = S::begin(self.part(), open.site).in_member(M::PATH)?;
        let mut last = build(first)?;
        let end = S::close(&mut last).in_member(M::PATH)?;
        drop(last);
        Ok(self.shut::<M>(open, end)?)
    }

    /// Appends a collection that `build` builds, element by element.
    ///
    /// # Errors
    /// [`CdrError::Full`], [`CdrError::MissingElements`], and those of `build`.
    #[inline]
    pub fn append_list<M: Member, S: Listed>(
        &mut self,
        build: impl FnOnce(&mut List<'_, S::Element, R::Error>) -> Result<(), R::Error>,
    ) -> Result<(), R::Error> {
        let open = self.open::<M>()?;
        let mut list = List::begin::<S>(self.part(), open.site).in_member(M::PATH)?;
        build(&mut list)?;
        let end = list.close().in_member(M::PATH)?;
        Ok(self.shut::<M>(open, end)?)
    }

    /// Appends a map that `build` builds, entry by entry.
    ///
    /// # Errors
    /// [`CdrError::Full`], and those of `build`.
    #[inline]
    pub fn append_entries<M: Member, S: Mapped>(
        &mut self,
        build: impl FnOnce(&mut Entries<'_, S::Key, S::Value, R::Error>) -> Result<(), R::Error>,
    ) -> Result<(), R::Error> {
        let open = self.open::<M>()?;
        let mut entries = Entries::begin::<S>(self.part(), open.site).in_member(M::PATH)?;
        build(&mut entries)?;
        let end = entries.close().in_member(M::PATH)?;
        Ok(self.shut::<M>(open, end)?)
    }

    /// The builder of a member structure of fixed size; inside a mutable one, its defaults
    /// are written first, unless it is already written.
    #[inline]
    pub fn inner<M: Member, S: FixedComposite>(&mut self) -> Only<'_, S, R::Error> {
        let site = self.fixed::<M>();
        S::reopen(self.part(), site)
    }

    /// As [`inner`](Self::inner), for the elements of an array of fixed size.
    #[inline]
    pub fn elements<M: Member, S: Listed>(&mut self) -> Elements<'_, S::Element, R::Error> {
        let site = self.fixed::<M>();
        Elements::reopen::<S>(self.part(), site)
    }

    /// The start of the value of a member of fixed size.
    #[inline]
    fn fixed<M: Member>(&mut self) -> Site {
        if is_parameter::<M>()
            && let Err(error) = self.supply::<M>()
        {
            // Setters then write nowhere, and closing reports the fault.
            self.fault().note(error);
            return Site {
                position: u32::MAX,
                origin: 0,
                ..self.site
            };
        }
        self.value::<M>()
    }

    /// Appends a sequence of `len` primitives that `fill` writes.
    ///
    /// # Errors
    /// [`CdrError::Full`], [`CdrError::BoundExceeded`], [`CdrError::RepeatedMember`].
    #[inline]
    pub fn append_numbers<M: Member, S: Numbers>(
        &mut self,
        len: usize,
        fill: impl FnOnce(SeqMut<'_, S::Element>),
    ) -> Result<(), CdrError> {
        self.append_elements::<M, S>(len, |bytes| fill(SeqMut::zeroed(bytes)))
    }

    /// Appends a sequence of `len` primitives, each computed from its index.
    ///
    /// # Errors
    /// As for [`append_numbers`](Self::append_numbers).
    #[inline]
    pub fn append_from<M: Member, S: Numbers>(
        &mut self,
        len: usize,
        element: impl FnMut(usize) -> S::Element,
    ) -> Result<(), CdrError> {
        self.append_elements::<M, S>(len, |bytes| fill_with(bytes, element))
    }

    #[inline]
    fn append_elements<M: Member, S: Numbers>(
        &mut self,
        len: usize,
        fill: impl FnOnce(&mut [u8]),
    ) -> Result<(), CdrError> {
        check_bound(len, S::BOUND, self.end as usize).in_member(M::PATH)?;
        self.append_with::<M>(|writer| {
            writer.length(len)?;
            if len > 0 {
                writer.align(S::Element::SIZE)?;
                fill(writer.reserve(len.saturating_mul(S::Element::SIZE))?);
            }
            Ok(())
        })
    }
}
