//! Members of structures, as types without values.
//!
//! Generated code has one such type per member, with all properties of the member in one
//! place for encoding, decoding, viewing and measuring.

use crate::encapsulation::Extensibility;
use crate::encode::{AllMembers, Encoder};
use crate::error::CdrError;
use crate::shape::Shape;

/// A member of a generated structure.
pub trait Member: 'static {
    /// Its type.
    type Shape: Shape;
    /// Extensibility of its structure.
    const EXTENSIBILITY: Extensibility;
    /// Position among the members of the structure, from 0.
    const INDEX: usize;
    /// Member id.
    const ID: u32;
    /// Whether it is part of the key: annotated, or in a structure without annotated members.
    const KEY: bool = false;
    /// Whether readers that do not know it must refuse the sample; true for key members.
    const MUST_UNDERSTAND: bool = false;
    /// Whether its default replaces a value that is not one of the type:
    /// `@try_construct(USE_DEFAULT)`.
    const USE_DEFAULT: bool = false;
    /// `module::Type.member`, for errors.
    const PATH: &'static str;

    /// Its default value.
    fn initial() -> Owned<Self> {
        Self::Shape::initial()
    }

    /// Writes the default value, as [`Shape::write_initial`].
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

    /// The value of an absent member in a view.
    fn absent<'a>() -> Shown<'a, Self> {
        Self::Shape::absent()
    }
}

/// The owned type of a member.
pub type Owned<M> = <<M as Member>::Shape as Shape>::Owned;
/// The borrowed type from which a member is written.
pub type Borrowed<M> = <<M as Member>::Shape as Shape>::Borrowed;
/// The type of a member in a view.
pub type Shown<'a, M> = <<M as Member>::Shape as Shape>::Shown<'a>;

/// Whether the member has a header.
pub(crate) const fn is_parameter<M: Member>() -> bool {
    matches!(M::EXTENSIBILITY, Extensibility::Mutable)
}

/// Whether the member is optional with an encoded mark of presence; absent members of
/// mutable structures are left out instead.
pub(crate) const fn is_flagged<M: Member>() -> bool {
    M::Shape::OPTIONAL && !is_parameter::<M>()
}
