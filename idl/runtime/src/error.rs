//! Errors of encoding and decoding.

use std::cmp::Ordering;
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

/// A floating point number in an error: equal if its bits are, so that errors can be compared.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct FloatBits(u64);

impl FloatBits {
    /// Of a number.
    pub const fn new(value: f64) -> Self {
        Self(value.to_bits())
    }

    /// The number.
    pub const fn get(self) -> f64 {
        f64::from_bits(self.0)
    }
}

impl fmt::Display for FloatBits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.get().fmt(f)
    }
}

impl fmt::Debug for FloatBits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.get(), f)
    }
}

/// What a limit is for a number that is beyond it.
const fn side(order: Option<Ordering>) -> &'static str {
    match order {
        Some(Ordering::Less) => "below the minimum",
        Some(_) => "above the maximum",
        None => "not in the range with the limit",
    }
}

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
    /// An integer is outside its `@range`, `@min` or `@max`.
    #[error("{value} is {} {limit}, {place}", side(value.partial_cmp(limit)))]
    OutOfRange {
        /// The number.
        value: i64,
        /// The minimum if the number is less, or else the maximum.
        limit: i64,
        /// Where.
        place: SamplePosition,
    },
    /// As [`Self::OutOfRange`], for `unsigned long long`.
    #[error("{value} is {} {limit}, {place}", side(value.partial_cmp(limit)))]
    UnsignedOutOfRange {
        /// The number.
        value: u64,
        /// The minimum if the number is less, or else the maximum.
        limit: u64,
        /// Where.
        place: SamplePosition,
    },
    /// As [`Self::OutOfRange`], for numbers with fractions.
    #[error("{value} is {} {limit}, {place}", side(value.get().partial_cmp(&limit.get())))]
    FloatOutOfRange {
        /// The number, of a `long double` or `fixed` the nearest `double`.
        value: FloatBits,
        /// The minimum if the number is less, or else the maximum; of NaN one of them.
        limit: FloatBits,
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
    /// A value is not one of a literal of the enumeration.
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
                | Self::UnsignedOutOfRange { .. }
                | Self::FloatOutOfRange { .. }
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
            | Self::UnsignedOutOfRange { place, .. }
            | Self::FloatOutOfRange { place, .. }
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
