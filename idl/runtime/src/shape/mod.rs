//! Shapes: the layouts of IDL types, as Rust types without values.
//!
//! An IDL type has more information than its Rust type: `string<16>` and `string` are
//! both `String`. Generated code therefore names the shape of each member, such as
//! `Sequence<Text<16>, 4>`, and shapes know how to write, read, check, view, hash and
//! measure values. Primitives and generated structures are their own shapes.

mod array;
mod bits;
mod boxed;
mod bytes;
mod delimited;
mod enumerated;
mod map;
mod optional;
mod ranged;
mod sequence;
mod text;
mod try_construct;
pub mod union;
mod wide_text;

pub use array::{Array, ByteArray, PrimitiveArray};
pub use bits::{BitField, Bitmask, Bitset, Flags, Packed, bitmask_from, debug_flags};
pub use boxed::Boxed;
pub use bytes::{ByteSequence, Bytes};
pub use delimited::Delimited;
pub use enumerated::{Enumerated, Enumeration};
pub use map::{Map, MapKey};
pub use optional::Optional;
pub(crate) use ranged::float_out_of_range;
pub use ranged::{Limited, Ranged, limit_f32, limit_f64, limit_long_double};
pub use sequence::{PrimitiveSequence, Sequence};
pub use text::Text;
pub use try_construct::{OrDefault, Trim, Trimmable};
pub use union::Union;
pub use wide_text::WideText;

use std::borrow::Borrow;

use crate::encapsulation::Extensibility;
use crate::encode::{AllMembers, Encoder};
use crate::error::CdrError;
use crate::long_double::LongDouble;
use crate::measure::Measure;
use crate::member::Member;
use crate::primitive::Primitive;
use crate::reader::Reader;

/// The bound of unbounded strings and sequences.
pub const UNBOUNDED: u32 = u32::MAX;

/// The length code of a member header in XCDR2 (XTypes 1.3 §7.4.3.4.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LengthCode {
    /// Two to this power: 1, 2, 4 or 8 bytes.
    Size(u8),
    /// A separate length word follows.
    Next,
    /// The first word of the member is the length divided by 1, 4 or 8 (codes 5, 6, 7).
    Shared(u8),
}

impl LengthCode {
    /// The three bits.
    pub const fn bits(self) -> u8 {
        match self {
            Self::Size(code) | Self::Shared(code) => code,
            Self::Next => 4,
        }
    }

    /// The code of a value with this fixed size in bytes.
    pub const fn of_size(size: usize) -> Self {
        match size {
            1 => Self::Size(0),
            2 => Self::Size(1),
            4 => Self::Size(2),
            8 => Self::Size(3),
            _ => Self::Next,
        }
    }

    /// The code of a structure or union.
    pub const fn of_aggregate(extensibility: Extensibility) -> Self {
        match extensibility {
            Extensibility::Final => Self::Next,
            Extensibility::Appendable | Extensibility::Mutable => Self::Shared(5),
        }
    }

    /// The code of a sequence of primitives of this many bytes.
    pub const fn of_elements(size: usize) -> Self {
        match size {
            1 => Self::Shared(5),
            4 => Self::Shared(6),
            8 => Self::Shared(7),
            _ => Self::Next,
        }
    }
}

/// [`Shape::SIZE_MIN`] of a structure, from those of its members.
pub const fn size_min(extensibility: Extensibility, members: &[usize]) -> usize {
    let mut sum: usize = 0;
    let mut index = 0;
    while index < members.len() {
        sum = sum.saturating_add(members[index]);
        index += 1;
    }
    match extensibility {
        Extensibility::Final => sum,
        // Either only a delimiter, or only the members.
        Extensibility::Appendable if sum < 4 => sum,
        Extensibility::Appendable | Extensibility::Mutable => 4,
    }
}

/// [`Shape::SIZE_MIN`] of a member.
pub const fn size_min_of<M: Member>() -> usize {
    M::Shape::SIZE_MIN
}

/// [`Shape::INITIAL_HEAP`] of a member.
pub const fn initial_heap_of<M: Member>() -> usize {
    M::Shape::INITIAL_HEAP
}

/// [`Shape::INITIAL_HEAP`] of a structure, from those of its members.
pub const fn initial_heap(members: &[usize]) -> usize {
    size_min(Extensibility::Final, members)
}

/// The operations on values of one IDL type.
pub trait Shape: 'static {
    /// The Rust type of a value.
    type Owned: Borrow<Self::Borrowed>;
    /// The borrowed type from which a value is written.
    type Borrowed: ?Sized;
    /// The type of a value in a view.
    type Shown<'a>: Copy;

    /// Fewest bytes in any representation, without padding.
    const SIZE_MIN: usize;
    /// Its length code in member headers of XCDR2.
    const LENGTH_CODE: LengthCode;
    /// Whether it is an [`Optional`].
    const OPTIONAL: bool = false;
    /// Heap memory in bytes of the value of [`initial`](Self::initial).
    const INITIAL_HEAP: usize = 0;

    /// The default of the IDL type.
    fn initial() -> Self::Owned;

    /// Whether there is a value: only optional ones may be absent.
    #[inline]
    fn is_present(value: &Self::Borrowed) -> bool {
        let _ = value;
        true
    }

    /// Writes a value with the padding before it.
    ///
    /// # Errors
    /// [`CdrError::Full`], or the value is invalid.
    fn write<E: Encoder>(value: &Self::Borrowed, encoder: &mut E) -> Result<(), CdrError>;

    /// Writes the default of the IDL type, without allocation if the type has a fixed size.
    ///
    /// # Errors
    /// [`CdrError::Full`].
    #[inline]
    fn write_initial<E>(encoder: &mut E) -> Result<(), CdrError>
    where
        E: Encoder<Selection = AllMembers>,
    {
        Self::write(Self::initial().borrow(), encoder)
    }

    /// Reads a value.
    ///
    /// # Errors
    /// The bytes are invalid.
    fn read(reader: &mut Reader<'_>) -> Result<Self::Owned, CdrError>;

    /// Writes values one after the other.
    ///
    /// # Errors
    /// As for [`write`](Self::write).
    #[inline]
    fn write_all<E: Encoder>(values: &[Self::Owned], encoder: &mut E) -> Result<(), CdrError> {
        let mut values = values.iter();
        values.try_for_each(|value| Self::write(value.borrow(), encoder))
    }

    /// Reads this many values by one copy, if possible; for most shapes it is not.
    #[inline]
    fn read_whole(reader: &mut Reader<'_>, count: usize) -> Option<Vec<Self::Owned>> {
        let _ = (reader, count);
        None
    }

    /// Skips this many values at once, if possible.
    #[inline]
    fn pass_whole(reader: &mut Reader<'_>, count: usize) -> bool {
        let _ = (reader, count);
        false
    }

    /// Checks a value and advances past it, without allocation.
    ///
    /// # Errors
    /// The bytes are invalid.
    fn check(reader: &mut Reader<'_>) -> Result<(), CdrError>;

    /// Shows a checked value and advances past it. Bytes altered since the check give some
    /// value, never a panic.
    fn show<'a>(reader: &mut Reader<'a>) -> Self::Shown<'a>;

    /// As [`show`](Self::show), but need not advance past the value.
    #[inline]
    fn show_at(mut reader: Reader<'_>) -> Self::Shown<'_> {
        Self::show(&mut reader)
    }

    /// The view of an absent value.
    fn absent<'a>() -> Self::Shown<'a>;

    /// Writes the value at the reader to a key hash, without building it; of structures, only
    /// the key members.
    ///
    /// # Errors
    /// The bytes are invalid.
    fn transcribe_key<E: Encoder>(reader: &mut Reader<'_>, encoder: &mut E)
    -> Result<(), CdrError>;

    /// Adds the largest size of a value.
    fn measure(measure: &mut Measure);
}

macro_rules! primitive_shape {
    ($($ty:ty),*) => {$(
        impl Shape for $ty {
            type Owned = Self;
            type Borrowed = Self;
            type Shown<'a> = Self;
            const SIZE_MIN: usize = <Self as Primitive>::SIZE;
            const LENGTH_CODE: LengthCode = LengthCode::of_size(<Self as Primitive>::SIZE);

            #[inline]
            fn initial() -> Self {
                Self::default()
            }

            #[inline]
            fn write<E: Encoder>(value: &Self, encoder: &mut E) -> Result<(), CdrError> {
                encoder.primitive(*value)
            }

            #[inline]
            fn read(reader: &mut Reader<'_>) -> Result<Self, CdrError> {
                reader.primitive()
            }

            #[inline]
            fn check(reader: &mut Reader<'_>) -> Result<(), CdrError> {
                reader.one::<Self>().map(|_| ())
            }

            #[inline]
            fn show<'a>(reader: &mut Reader<'a>) -> Self {
                reader.primitive().unwrap_or_default()
            }

            #[inline]
            fn absent<'a>() -> Self::Shown<'a> {
                Self::default()
            }

            #[inline]
            fn transcribe_key<E: Encoder>(
                reader: &mut Reader<'_>,
                encoder: &mut E,
            ) -> Result<(), CdrError> {
                encoder.primitive(reader.primitive::<Self>()?)
            }

            fn measure(measure: &mut Measure) {
                measure.primitives(<Self as Primitive>::SIZE, 1);
            }
        }
    )*};
}

primitive_shape!(
    bool, u8, i8, u16, i16, u32, i32, u64, i64, f32, f64, LongDouble
);
