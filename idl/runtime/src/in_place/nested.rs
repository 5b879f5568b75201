//! Values that have builders of their own.

use super::list::{List, Listed};
use super::numbers::{SeqMut, fill_with};
use super::{Build, Composite, FixedComposite, InPlace, Only, Part, Room, Site};
use crate::encode::{AllMembers, Encoder as _, Writer, check_bound};
use crate::error::{CdrError, InMember};
use crate::member::Member;
use crate::primitive::Primitive;
use crate::shape::PrimitiveSequence;

/// A sequence of primitives.
pub trait Numbers: crate::shape::Shape {
    /// Its elements.
    type Element: Primitive;
    /// Most elements.
    const BOUND: u32;
}

impl<P: Primitive, const N: u32> Numbers for PrimitiveSequence<P, N> {
    type Element = P;
    const BOUND: u32 = N;
}

/// The elements of a member that is a sequence of primitives.
type ElementOf<M> = <<M as Member>::Shape as Numbers>::Element;

impl<R: Room, const N: usize> InPlace<R, N> {
    #[inline]
    fn part(&mut self) -> Part<'_, R::Error> {
        Part::new(self.room.split(&mut self.fault))
    }

    /// Appends a structure that `build` builds.
    ///
    /// # Errors
    /// [`CdrError::Full`], what the structure lacks, and those of `build`.
    #[inline]
    pub fn append_composite<M, F>(&mut self, build: F) -> Result<(), R::Error>
    where
        M: Member<Shape: Composite>,
        F: for<'p> Build<'p, M::Shape, R::Error>,
    {
        let open = self.open::<M>()?;
        let first = M::Shape::begin(self.part(), open.site).in_member(M::PATH)?;
        let mut last = build(first)?;
        let end = M::Shape::close(&mut last).in_member(M::PATH)?;
        drop(last);
        Ok(self.shut::<M>(&open, end)?)
    }

    /// Appends a collection that `build` builds, element by element.
    ///
    /// # Errors
    /// [`CdrError::Full`], [`CdrError::MissingElements`], and those of `build`.
    #[inline]
    pub fn append_list<M: Member<Shape: Listed>>(
        &mut self,
        build: impl FnOnce(
            &mut List<'_, <M::Shape as Listed>::Element, R::Error>,
        ) -> Result<(), R::Error>,
    ) -> Result<(), R::Error> {
        let open = self.open::<M>()?;
        let mut list = List::begin::<M::Shape>(self.part(), open.site).in_member(M::PATH)?;
        build(&mut list)?;
        let end = list.close().in_member(M::PATH)?;
        Ok(self.shut::<M>(&open, end)?)
    }

    /// The builder of a structure of fixed size where it stands; in a mutable one it
    /// is written with its defaults before, if it has not been yet.
    #[inline]
    pub fn inner<M: Member<Shape: FixedComposite>>(&mut self) -> Only<'_, M::Shape, R::Error> {
        if crate::member::is_parameter::<M>()
            && let Err(error) = self.supply::<M>()
        {
            // Its setters write nowhere, and the fault is reported in the end.
            self.fault().note(error);
            let site = Site {
                position: u32::MAX as usize,
                origin: 0,
                ..self.site
            };
            return M::Shape::reopen(self.part(), site);
        }
        let position = self.at[M::INDEX] as usize;
        let site = Site {
            representation: self.site.representation,
            position,
            origin: self.origin(position),
        };
        M::Shape::reopen(self.part(), site)
    }

    /// Appends a sequence of `len` primitives that `fill` writes.
    ///
    /// # Errors
    /// [`CdrError::Full`], [`CdrError::BoundExceeded`], [`CdrError::RepeatedMember`].
    #[inline]
    pub fn append_numbers<M: Member<Shape: Numbers>>(
        &mut self,
        len: usize,
        fill: impl FnOnce(SeqMut<'_, ElementOf<M>>),
    ) -> Result<(), CdrError> {
        self.append_elements::<M>(len, |bytes| fill(SeqMut::zeroed(bytes)))
    }

    /// Appends a sequence of `len` primitives, each made of its index.
    ///
    /// # Errors
    /// As for [`append_numbers`](Self::append_numbers).
    #[inline]
    pub fn append_from<M: Member<Shape: Numbers>>(
        &mut self,
        len: usize,
        element: impl FnMut(usize) -> ElementOf<M>,
    ) -> Result<(), CdrError> {
        self.append_elements::<M>(len, |bytes| fill_with(bytes, element))
    }

    #[inline]
    fn append_elements<M: Member<Shape: Numbers>>(
        &mut self,
        len: usize,
        fill: impl FnOnce(&mut [u8]),
    ) -> Result<(), CdrError> {
        check_bound(len, M::Shape::BOUND, self.end).in_member(M::PATH)?;
        let open = self.open::<M>()?;
        let Site {
            representation,
            position,
            origin,
        } = open.site;
        let mut writer: Writer<'_, AllMembers> =
            Writer::resume(representation, self.bytes(), position, origin);
        writer.length(len).in_member(M::PATH)?;
        if len > 0 {
            writer.align(ElementOf::<M>::SIZE).in_member(M::PATH)?;
            let bytes = len.saturating_mul(ElementOf::<M>::SIZE);
            fill(writer.reserve(bytes).in_member(M::PATH)?);
        }
        let end = writer.position();
        self.shut::<M>(&open, end)
    }
}
