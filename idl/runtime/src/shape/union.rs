//! `union`: a discriminator, and the branch that it selects.
//!
//! XTypes 1.3 §7.4.3.5 encodes a union like a structure of two members, where the first
//! selects the second: without a frame if final, after a delimiter if appendable (XCDR2),
//! and as a list of members if mutable. The key of a union is its discriminator.

use std::borrow::Borrow;
use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;

use crate::codec;
use crate::encapsulation::Extensibility;
use crate::encode::Encoder;
use crate::error::{CdrError, SamplePosition};
use crate::key::KeyHash;
use crate::measure::Measure;
use crate::member::{Member, Owned, Shown};
use crate::reader::{ABSENT, Reader, Span};
use crate::shape::Shape;
use crate::topic::TopicType;

/// A generated union. Branches are counted from 0 in the order of their declaration.
pub trait Union: Sized + 'static {
    /// The type of the discriminator.
    type Discriminator: Member<Shape: Shape<Owned: Copy>>;
    /// The type in views: the same variants, with the types of their members in views.
    type View<'a>: Copy;
    /// Its extensibility.
    const EXTENSIBILITY: Extensibility;
    /// Member ids of the branches.
    const IDS: &'static [u32];
    /// `module::Type`, for errors.
    const PATH: &'static str;
    /// As for [`Shape`].
    const INITIAL_HEAP: usize = 0;

    /// The branch that a discriminator selects, `None` when it selects none.
    fn select(discriminator: Owned<Self::Discriminator>) -> Option<usize>;

    /// The discriminator of this value.
    fn discriminator(&self) -> Owned<Self::Discriminator>;

    /// The branch of this value.
    fn branch(&self) -> Option<usize>;

    /// Writes the member of this value's branch.
    ///
    /// # Errors
    /// Those of writing the member.
    fn write_branch<E: Encoder>(&self, encoder: &mut E) -> Result<(), CdrError>;

    /// Reads the member of a branch, by [`read_branch`].
    ///
    /// # Errors
    /// The bytes are invalid.
    fn read_branch(
        discriminator: Owned<Self::Discriminator>,
        reader: Option<&mut Reader<'_>>,
    ) -> Result<Self, CdrError>;

    /// Checks the member of a branch, by [`check_branch`].
    ///
    /// # Errors
    /// The bytes are invalid.
    fn check_branch(
        discriminator: Owned<Self::Discriminator>,
        reader: Option<&mut Reader<'_>>,
    ) -> Result<(), CdrError>;

    /// Shows the member of a branch, by [`show_branch`].
    fn show_branch(
        discriminator: Owned<Self::Discriminator>,
        reader: Option<Reader<'_>>,
    ) -> Self::View<'_>;

    /// Adds the largest size of any branch, by [`Measure::choice`].
    fn measure_branches(measure: &mut Measure);
}

/// Reads the member of a branch, or its default if the sample has none.
///
/// # Errors
/// The bytes are invalid.
pub fn read_branch<M: Member>(reader: Option<&mut Reader<'_>>) -> Result<Owned<M>, CdrError> {
    match reader {
        Some(reader) if is_mutable(M::EXTENSIBILITY) => reader.value::<M>(),
        Some(reader) => reader.member::<M>(),
        None => Ok(M::initial()),
    }
}

/// Checks the member of a branch, which the sample may not have.
///
/// # Errors
/// The bytes are invalid.
pub fn check_branch<M: Member>(reader: Option<&mut Reader<'_>>) -> Result<(), CdrError> {
    match reader {
        Some(reader) if is_mutable(M::EXTENSIBILITY) => reader.check_value::<M>().map(|_| ()),
        Some(reader) => reader.check_member::<M>().map(|_| ()),
        None => Ok(()),
    }
}

/// Shows the member of a branch, or its default if the sample has none or an invalid value.
pub fn show_branch<M: Member>(reader: Option<Reader<'_>>) -> Shown<'_, M> {
    let shows = |reader: &Reader<'_>| match (is_mutable(M::EXTENSIBILITY), M::USE_DEFAULT) {
        (true, false) => true,
        (true, true) => reader
            .clone()
            .check_value::<M>()
            .is_ok_and(|at| at != Span::ABSENT),
        (false, false) => reader.has_member::<M>(),
        (false, true) => reader
            .clone()
            .check_member::<M>()
            .is_ok_and(|at| at != ABSENT),
    };
    reader
        .filter(shows)
        .map_or_else(M::absent, M::Shape::show_at)
}

const fn is_mutable(extensibility: Extensibility) -> bool {
    matches!(extensibility, Extensibility::Mutable)
}

/// Checks that a discriminator selects a branch, or none.
///
/// # Errors
/// [`CdrError::WrongDiscriminator`].
pub fn check_selects<U: Union>(
    discriminator: Owned<U::Discriminator>,
    branch: Option<usize>,
) -> Result<(), CdrError> {
    if U::select(discriminator) == branch {
        return Ok(());
    }
    let place = SamplePosition {
        offset: 0,
        member: U::PATH,
    };
    Err(CdrError::WrongDiscriminator { place })
}

/// For [`Shape::write`] of a union.
///
/// # Errors
/// [`CdrError::WrongDiscriminator`], [`CdrError::Full`], or the value is invalid.
pub fn write<U: Union, E: Encoder>(value: &U, encoder: &mut E) -> Result<(), CdrError> {
    let discriminator = value.discriminator();
    check_selects::<U>(discriminator, value.branch())
        .map_err(|error| error.at(encoder.position()))?;
    let open = encoder.begin(U::EXTENSIBILITY)?;
    encoder.member::<U::Discriminator>(discriminator.borrow())?;
    value.write_branch(encoder)?;
    encoder.end(open)
}

/// For [`Shape::read`] of a union.
///
/// # Errors
/// The bytes are invalid.
pub fn read<U: Union>(reader: &mut Reader<'_>) -> Result<U, CdrError> {
    reader.union::<U, _>(U::read_branch)
}

/// For [`Shape::check`] of a union.
///
/// # Errors
/// The bytes are invalid.
pub fn check<U: Union>(reader: &mut Reader<'_>) -> Result<(), CdrError> {
    let mut start = *reader;
    match reader.union::<U, _>(U::check_branch) {
        // While skipping, an unknown discriminator is no error if the end is known.
        Err(error) if reader.is_skipping() && error.is_unfit() => {
            start.skip_aggregate(U::EXTENSIBILITY, error)?;
            *reader = start;
            Ok(())
        }
        checked => checked,
    }
}

/// For [`Shape::show_at`] of a union.
pub fn show_at<U: Union>(reader: Reader<'_>) -> <U as Union>::View<'_> {
    match reader.into_union::<U>() {
        Ok((discriminator, branch)) => U::show_branch(discriminator, branch),
        Err(_) => absent::<U>(),
    }
}

/// For [`Shape::absent`] of a union.
pub fn absent<'a, U: Union>() -> <U as Union>::View<'a> {
    U::show_branch(U::Discriminator::initial(), None)
}

/// For [`Shape::transcribe_key`] of a union.
///
/// # Errors
/// The bytes are invalid.
pub fn transcribe_key<U: Union, E: Encoder>(
    reader: &mut Reader<'_>,
    encoder: &mut E,
) -> Result<(), CdrError> {
    let discriminator = reader.union::<U, _>(|discriminator, branch| {
        U::check_branch(discriminator, branch)?;
        Ok(discriminator)
    })?;
    encoder.member::<U::Discriminator>(discriminator.borrow())
}

/// For [`Shape::measure`] of a union.
pub fn measure<U: Union>(measure: &mut Measure) {
    measure.begin(U::EXTENSIBILITY);
    measure.member::<U::Discriminator>();
    U::measure_branches(measure);
    measure.end(U::EXTENSIBILITY);
}

/// A member of a view of a union through which the union contains itself; it is read on
/// request.
pub struct Later<'a, M> {
    reader: Option<Reader<'a>>,
    member: PhantomData<fn() -> M>,
}

impl<'a, M: Member> Later<'a, M> {
    /// For the branch at the reader, or its default if the sample has none.
    pub fn new(reader: Option<Reader<'a>>) -> Self {
        Self {
            reader,
            member: PhantomData,
        }
    }

    /// The member.
    pub fn get(&self) -> Shown<'a, M> {
        show_branch::<M>(self.reader)
    }
}

impl<M> Clone for Later<'_, M> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<M> Copy for Later<'_, M> {}

impl<'a, M: Member> fmt::Debug for Later<'a, M>
where
    Shown<'a, M>: fmt::Debug,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.get().fmt(f)
    }
}

/// The view of a sample whose type is a union, over checked bytes. It yields the view with
/// one variant per branch.
pub struct WholeUnion<'a, U: Union> {
    reader: Reader<'a>,
    view: <U as Union>::View<'a>,
}

impl<'a, U: Union + TopicType> WholeUnion<'a, U> {
    /// Checks the bytes at the reader.
    ///
    /// # Errors
    /// The bytes are invalid.
    #[doc(hidden)]
    pub fn parse_(reader: &mut Reader<'a>) -> Result<Self, CdrError> {
        let at = *reader;
        check::<U>(reader)?;
        Ok(Self {
            reader: at,
            view: show_at::<U>(at),
        })
    }

    /// The view with one variant per branch.
    pub fn view(&self) -> <U as Union>::View<'a> {
        self.view
    }

    /// The owned form.
    ///
    /// # Errors
    /// Only if the bytes have been altered since they were checked.
    pub fn to_owned(&self) -> Result<U, CdrError> {
        read(&mut self.reader.clone())
    }

    /// Key hash; all zero for a type without a key.
    pub fn key_hash(&self) -> KeyHash {
        codec::hash::<U>(|hasher| transcribe_key::<U, _>(&mut self.reader.clone(), hasher))
            .unwrap_or(KeyHash::NONE)
    }
}

impl<U: Union> Clone for WholeUnion<'_, U> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<U: Union> Copy for WholeUnion<'_, U> {}

impl<'a, U: Union> Deref for WholeUnion<'a, U> {
    type Target = <U as Union>::View<'a>;

    fn deref(&self) -> &<U as Union>::View<'a> {
        &self.view
    }
}

impl<'a, U: Union> fmt::Debug for WholeUnion<'a, U>
where
    <U as Union>::View<'a>: fmt::Debug,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.view.fmt(f)
    }
}

/// Implements [`Shape`] for generated unions.
#[doc(hidden)]
#[macro_export]
macro_rules! union_shape {
    ($($ty:ty,)*) => {$(
        impl $crate::shape::Shape for $ty {
            type Owned = Self;
            type Borrowed = Self;
            type Shown<'a> = <Self as $crate::shape::Union>::View<'a>;
            const SIZE_MIN: ::core::primitive::usize = $crate::shape::size_min(
                <Self as $crate::shape::Union>::EXTENSIBILITY,
                &[$crate::shape::size_min_of::<<Self as $crate::shape::Union>::Discriminator>()],
            );
            const LENGTH_CODE: $crate::shape::LengthCode =
                $crate::shape::LengthCode::of_aggregate(
                    <Self as $crate::shape::Union>::EXTENSIBILITY,
                );

            const INITIAL_HEAP: ::core::primitive::usize =
                <Self as $crate::shape::Union>::INITIAL_HEAP;

            fn initial() -> Self {
                ::core::default::Default::default()
            }

            fn write<E: $crate::encode::Encoder>(
                value: &Self,
                encoder: &mut E,
            ) -> $crate::Result<()> {
                $crate::shape::union::write(value, encoder)
            }

            fn read(reader: &mut $crate::Reader<'_>) -> $crate::Result<Self> {
                $crate::shape::union::read(reader)
            }

            fn check(reader: &mut $crate::Reader<'_>) -> $crate::Result<()> {
                $crate::shape::union::check::<Self>(reader)
            }

            fn show<'a>(reader: &mut $crate::Reader<'a>) -> <Self as $crate::shape::Shape>::Shown<'a> {
                let view = $crate::shape::union::show_at::<Self>(*reader);
                // Stops at the first error; the error also ends the enclosing read.
                let _ = $crate::shape::union::check::<Self>(reader);
                view
            }

            fn show_at(reader: $crate::Reader<'_>) -> <Self as $crate::shape::Shape>::Shown<'_> {
                $crate::shape::union::show_at::<Self>(reader)
            }

            fn absent<'a>() -> <Self as $crate::shape::Shape>::Shown<'a> {
                $crate::shape::union::absent::<Self>()
            }

            fn transcribe_key<E: $crate::encode::Encoder>(
                reader: &mut $crate::Reader<'_>,
                encoder: &mut E,
            ) -> $crate::Result<()> {
                $crate::shape::union::transcribe_key::<Self, E>(reader, encoder)
            }

            fn measure(measure: &mut $crate::Measure) {
                $crate::shape::union::measure::<Self>(measure);
            }
        }
    )*};
}
