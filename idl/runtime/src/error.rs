//! Errors of encoding and decoding.

use std::fmt;

/// The position of an error in a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SamplePosition {
    /// Byte offset into the body, without the encapsulation header.
    pub offset: usize,
    /// Innermost member that contains it, as `module::Type.member`; empty if the error
    /// belongs to none.
    pub member: &'static str,
}

impl SamplePosition {
    /// A position without a member, which a caller fills in.
    pub const fn offset(offset: usize) -> Self {
        Self { offset, member: "" }
    }
}

impl fmt::Display for SamplePosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.member.is_empty() {
            write!(f, "at byte {}", self.offset)
        } else {
            write!(f, "at byte {}, member {}", self.offset, self.member)
        }
    }
}

/// A number that is out of its range, as text says it: with its limits, if the type is compiled in,
/// and its value unless that is NaN or of more than 64 bits.
#[derive(Clone, Copy)]
pub struct NumberOutOfRange {
    /// The rank of the number, if `limits` says that it is known.
    pub(crate) rank: i64,
    pub(crate) limits: &'static RangeLimits,
}

/// The limits of numbers of one type. Errors refer to it, so that they stay small.
pub(crate) struct RangeLimits {
    /// Ranks; the least and the greatest of all mean no limit.
    pub(crate) least: i128,
    pub(crate) most: i128,
    pub(crate) has_value: bool,
    /// Writes the number of that rank.
    pub(crate) show: fn(i128, &mut fmt::Formatter<'_>) -> fmt::Result,
}

impl fmt::Display for NumberOutOfRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let limits = self.limits;
        if limits.has_value {
            (limits.show)(self.rank.into(), f)?;
            f.write_str(" ")?;
        }
        f.write_str("is out of its range")?;
        match (limits.least, limits.most) {
            (i128::MIN, i128::MAX) => Ok(()),
            (i128::MIN, most) => {
                f.write_str(": at most ")?;
                (limits.show)(most, f)
            }
            (least, i128::MAX) => {
                f.write_str(": at least ")?;
                (limits.show)(least, f)
            }
            (least, most) => {
                f.write_str(": ")?;
                (limits.show)(least, f)?;
                f.write_str(" to ")?;
                (limits.show)(most, f)
            }
        }
    }
}

impl fmt::Debug for NumberOutOfRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{self}\"")
    }
}

impl PartialEq for NumberOutOfRange {
    fn eq(&self, other: &Self) -> bool {
        let key = |it: &Self| {
            (
                it.rank,
                it.limits.least,
                it.limits.most,
                it.limits.has_value,
            )
        };
        key(self) == key(other)
    }
}

impl Eq for NumberOutOfRange {}

/// Why a sample could not be written or read.
///
/// (The discriminant is a whole word, so that a `Result` with it is moved word by word.)
#[repr(u64)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CdrError {
    /// The bytes end early, or an enclosing length ends early.
    #[error("truncated: {needed} bytes needed, {remaining} remain, {place}")]
    Truncated {
        /// Least number of bytes of the value.
        needed: usize,
        /// Bytes that remain.
        remaining: usize,
        /// Where.
        place: SamplePosition,
    },
    /// A string, sequence or map is longer than its IDL bound.
    #[error("length {length} exceeds the bound {bound}, {place}")]
    BoundExceeded {
        /// Bytes of a string without its NUL, units of a wide string, or elements.
        length: usize,
        /// The bound.
        bound: usize,
        /// Where.
        place: SamplePosition,
    },
    /// A boolean is neither 0 nor 1.
    #[error("{value} is not a boolean, {place}")]
    InvalidBool {
        /// The byte.
        value: u8,
        /// Where.
        place: SamplePosition,
    },
    /// A string is not UTF-8.
    #[error("string is not UTF-8, {place}")]
    InvalidUtf8 {
        /// Where.
        place: SamplePosition,
    },
    /// A wide string is not UTF-16: an odd number of bytes, or half of a pair.
    #[error("wide string is not UTF-16, {place}")]
    InvalidUtf16 {
        /// Where.
        place: SamplePosition,
    },
    /// A `fixed` has an invalid digit, or no sign.
    #[error("not a fixed point number, {place}")]
    InvalidFixed {
        /// Where.
        place: SamplePosition,
    },
    /// A number is outside its `@range`, `@min` or `@max`.
    #[error("number {number}, {place}")]
    OutOfRange {
        /// The number and its limits.
        number: NumberOutOfRange,
        /// Where.
        place: SamplePosition,
    },
    /// A map has the same key twice.
    #[error("map has a key twice, {place}")]
    DuplicateKey {
        /// Where.
        place: SamplePosition,
    },
    /// Another member is in the place of an optional one.
    #[error("member id {id:#x} where {expected:#x} is due, {place}")]
    UnexpectedMember {
        /// Member id that was found.
        id: u32,
        /// Member id of the optional member.
        expected: u32,
        /// Where.
        place: SamplePosition,
    },
    /// A string does not end with NUL, or its length leaves no room for it.
    #[error("string does not end in NUL, {place}")]
    InvalidStringTerminator {
        /// Where.
        place: SamplePosition,
    },
    /// A string has a NUL before its end, which IDL forbids.
    #[error("string contains NUL, {place}")]
    EmbeddedNul {
        /// Where.
        place: SamplePosition,
    },
    /// A value is not a literal of a `@final` enumeration.
    #[error("{value} is not a literal of the enumeration, {place}")]
    UnknownEnumerator {
        /// The value.
        value: i32,
        /// Where.
        place: SamplePosition,
    },
    /// The discriminator in a value of a union does not select the branch of the value.
    #[error("the discriminator does not select the branch that the union has, {place}")]
    WrongDiscriminator {
        /// Where; the member is the union.
        place: SamplePosition,
    },
    /// A bitmask has bits that are not flags, see [`Bitmask::VALID`](crate::shape::Bitmask::VALID).
    #[error("{bits:#x} has bits that the bitmask has not, {place}")]
    UnknownBits {
        /// All bits.
        bits: u64,
        /// Where.
        place: SamplePosition,
    },
    /// The value of a bit field takes more bits than the field has.
    #[error("value takes more than {bits} bits, {place}")]
    BitFieldExceeded {
        /// Bits of the field.
        bits: u8,
        /// Where; the member is the field.
        place: SamplePosition,
    },
    /// A member that this version of the type does not know must be understood.
    #[error("member id {id:#x} must be understood and is unknown, {place}")]
    MustUnderstand {
        /// Member id.
        id: u32,
        /// Where.
        place: SamplePosition,
    },
    /// The encapsulation id is not one of those of RTPS 2.5 for CDR.
    #[error("encapsulation id {id:#06x} is unknown")]
    UnknownEncapsulation {
        /// The id.
        id: u16,
    },
    /// The encapsulation id does not match the extensibility of the type.
    #[error("encapsulation id {id:#06x} does not fit the extensibility of the type")]
    EncapsulationMismatch {
        /// The id.
        id: u16,
    },
    /// Values nest deeper than [`limits::DEPTH_MAX`](crate::limits::DEPTH_MAX).
    #[error("nested deeper than {limit}, {place}")]
    TooDeep {
        /// The limit.
        limit: usize,
        /// Where.
        place: SamplePosition,
    },
    /// A sample would take far more memory than its length justifies, see
    /// [`limits::MEMORY_PER_BYTE_MAX`](crate::limits::MEMORY_PER_BYTE_MAX).
    #[error("elements would take more than {limit} bytes of memory, {place}")]
    TooLarge {
        /// The limit for a sample of this length.
        limit: usize,
        /// Where.
        place: SamplePosition,
    },
    /// A sample exceeds [`limits::SAMPLE_BYTES_MAX`](crate::limits::SAMPLE_BYTES_MAX).
    #[error("sample of {length} bytes is longer than {limit}")]
    TooLong {
        /// Bytes.
        length: usize,
        /// The limit.
        limit: usize,
    },
    /// A builder got no value for a member that has no default and is not optional.
    #[error("the member has not been written, {place}")]
    MissingMember {
        /// The end of the structure, with the member.
        place: SamplePosition,
    },
    /// A builder got a member of varying size twice.
    #[error("the member has been written before, {place}")]
    RepeatedMember {
        /// The position for the second value.
        place: SamplePosition,
    },
    /// A builder got fewer elements than an array has.
    #[error("{count} elements of an array of {expected}, {place}")]
    MissingElements {
        /// Elements written.
        count: usize,
        /// Elements of the array.
        expected: usize,
        /// The end of the elements.
        place: SamplePosition,
    },
    /// The value does not fit into the memory of the slot.
    #[error("{needed} bytes needed, the memory has {capacity}, {place}")]
    Full {
        /// Bytes of the slot.
        capacity: usize,
        /// Least number of bytes up to and including this value.
        needed: usize,
        /// Where.
        place: SamplePosition,
    },
}

impl CdrError {
    /// The position, if there is one.
    pub fn place(&self) -> Option<SamplePosition> {
        let mut copy = *self;
        copy.place_mut().copied()
    }

    /// Sets the member, unless an inner one is already set.
    #[must_use]
    #[cold]
    #[inline]
    pub fn in_member(mut self, member: &'static str) -> Self {
        if let Some(place) = self.place_mut()
            && place.member.is_empty()
        {
            place.member = member;
        }
        self
    }

    /// Whether the bytes are well-formed, but not a value of the type: the case for
    /// `@try_construct` (XTypes 1.3 §7.2.4.5).
    pub const fn is_unfit(&self) -> bool {
        matches!(
            self,
            Self::BoundExceeded { .. }
                | Self::UnknownEnumerator { .. }
                | Self::UnknownBits { .. }
                | Self::OutOfRange { .. }
        )
    }

    /// Sets the offset of an error that was found without it.
    pub(crate) fn at(mut self, offset: usize) -> Self {
        if let Some(place) = self.place_mut() {
            place.offset = offset;
        }
        self
    }

    #[inline]
    fn place_mut(&mut self) -> Option<&mut SamplePosition> {
        match self {
            Self::Truncated { place, .. }
            | Self::BoundExceeded { place, .. }
            | Self::InvalidBool { place, .. }
            | Self::InvalidUtf8 { place }
            | Self::InvalidUtf16 { place }
            | Self::InvalidFixed { place }
            | Self::OutOfRange { place, .. }
            | Self::DuplicateKey { place }
            | Self::UnexpectedMember { place, .. }
            | Self::InvalidStringTerminator { place }
            | Self::EmbeddedNul { place }
            | Self::UnknownEnumerator { place, .. }
            | Self::WrongDiscriminator { place }
            | Self::UnknownBits { place, .. }
            | Self::BitFieldExceeded { place, .. }
            | Self::MustUnderstand { place, .. }
            | Self::TooDeep { place, .. }
            | Self::TooLarge { place, .. }
            | Self::MissingMember { place }
            | Self::RepeatedMember { place }
            | Self::MissingElements { place, .. }
            | Self::Full { place, .. } => Some(place),
            Self::UnknownEncapsulation { .. }
            | Self::EncapsulationMismatch { .. }
            | Self::TooLong { .. } => None,
        }
    }
}

/// Sets the member in the error of a result.
pub(crate) trait InMember {
    /// See [`CdrError::in_member`].
    fn in_member(self, member: &'static str) -> Self;
}

impl<T> InMember for Result<T, CdrError> {
    #[inline]
    fn in_member(self, member: &'static str) -> Self {
        self.map_err(|error| error.in_member(member))
    }
}
