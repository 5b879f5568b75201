//! Members of structures, as types without values.
//!
//! Generated code has one such type a member. It says all there is to say about
//! the member, once; writing, reading, showing and measuring take it from there.

use crate::encapsulation::Extensibility;
use crate::encode::{AllMembers, Encoder};
use crate::error::CdrError;
use crate::shape::Shape;

/// A member of a generated structure.
pub trait Member: 'static {
    /// Its type.
    type Shape: Shape;
    /// How the structure around it may evolve.
    const EXTENSIBILITY: Extensibility;
    /// Position among the members of the structure, from 0.
    const INDEX: usize;
    /// Member id.
    const ID: u32;
    /// Whether it takes part in the key, be it marked so or be it that no member is.
    const KEY: bool = false;
    /// Whether readers that do not know it must refuse the sample: so for keys.
    const MUST_UNDERSTAND: bool = false;
    /// Whether its default takes the place of a value that is none of the type:
    /// `@try_construct(USE_DEFAULT)`.
    const USE_DEFAULT: bool = false;
    /// `module::Type.member`, for errors.
    const PATH: &'static str;

    /// Its value where none is given.
    fn initial() -> Owned<Self> {
        Self::Shape::initial()
    }

    /// Writes that value, as [`Shape::write_initial`].
    ///
    /// # Errors
    /// [`CdrError::Full`].
    #[inline]
    fn write_initial<E>(encoder: &mut E) -> Result<(), CdrError>
    where
        E: Encoder<Selection = AllMembers>,
    {
        Self::Shape::write_initial(encoder)
    }

    /// What a view shows where there is none.
    fn absent<'a>() -> Shown<'a, Self> {
        Self::Shape::absent()
    }
}

/// What owns the value of a member.
pub type Owned<M> = <<M as Member>::Shape as Shape>::Owned;
/// What is enough to write the value of a member.
pub type Borrowed<M> = <<M as Member>::Shape as Shape>::Borrowed;
/// What a view shows of a member.
pub type Shown<'a, M> = <<M as Member>::Shape as Shape>::Shown<'a>;

/// Whether the member has a header of its own.
pub(crate) const fn is_parameter<M: Member>() -> bool {
    matches!(M::EXTENSIBILITY, Extensibility::Mutable)
}

/// Whether the member is optional and says so where it stands, other than those of
/// mutable structures, which just are not there.
pub(crate) const fn is_flagged<M: Member>() -> bool {
    M::Shape::OPTIONAL && !is_parameter::<M>()
}
