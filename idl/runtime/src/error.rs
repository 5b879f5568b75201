//! What can be wrong with a sample, on its way in or out.

use std::fmt;

/// Where in a sample an error was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// Byte offset into the body, the encapsulation header not counted.
    pub offset: usize,
    /// Innermost member on the way there, as `module::Type.member`; empty when
    /// the error does not belong to one.
    pub member: &'static str,
}

impl Place {
    /// A place without a member, which is filled in on the way out.
    pub const fn offset(offset: usize) -> Self {
        Self { offset, member: "" }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.member.is_empty() {
            write!(f, "at byte {}", self.offset)
        } else {
            write!(f, "at byte {}, member {}", self.offset, self.member)
        }
    }
}

/// Why a sample could not be written or read.
///
/// (Told apart by a whole word: what stands in a `Result` with it is moved word by word.)
#[repr(u64)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CdrError {
    /// The bytes end, or an enclosing length says that they do.
    #[error("truncated: {needed} bytes needed, {remaining} remain, {place}")]
    Truncated {
        /// Bytes that the value takes at least.
        needed: usize,
        /// Bytes that are left.
        remaining: usize,
        /// Where.
        place: Place,
    },
    /// A string, sequence or map is longer than its IDL bound.
    #[error("length {length} exceeds the bound {bound}, {place}")]
    BoundExceeded {
        /// Bytes of a string without its NUL, units of a wide string, or elements.
        length: usize,
        /// The bound.
        bound: usize,
        /// Where.
        place: Place,
    },
    /// A boolean is neither 0 nor 1.
    #[error("{value} is not a boolean, {place}")]
    InvalidBool {
        /// The byte.
        value: u8,
        /// Where.
        place: Place,
    },
    /// A string is not UTF-8.
    #[error("string is not UTF-8, {place}")]
    InvalidUtf8 {
        /// Where.
        place: Place,
    },
    /// A wide string is not UTF-16: an odd number of bytes, or half of a pair.
    #[error("wide string is not UTF-16, {place}")]
    InvalidUtf16 {
        /// Where.
        place: Place,
    },
    /// A `fixed` has a digit that is none, or no sign.
    #[error("not a fixed point number, {place}")]
    InvalidFixed {
        /// Where.
        place: Place,
    },
    /// A number is outside of its `@range`, `@min` or `@max`.
    #[error("number is out of its range, {place}")]
    OutOfRange {
        /// Where.
        place: Place,
    },
    /// A map has the same key twice.
    #[error("map has a key twice, {place}")]
    DuplicateKey {
        /// Where.
        place: Place,
    },
    /// Where an optional member should be, there is another one.
    #[error("member id {id:#x} where {expected:#x} is due, {place}")]
    UnexpectedMember {
        /// Member id that is there.
        id: u32,
        /// Member id of the optional member.
        expected: u32,
        /// Where.
        place: Place,
    },
    /// A string does not end in NUL, or its length leaves no room for one.
    #[error("string does not end in NUL, {place}")]
    InvalidStringTerminator {
        /// Where.
        place: Place,
    },
    /// A string has a NUL before its end, which IDL forbids.
    #[error("string contains NUL, {place}")]
    EmbeddedNul {
        /// Where.
        place: Place,
    },
    /// A value is not a literal of a `@final` enumeration.
    #[error("{value} is not a literal of the enumeration, {place}")]
    UnknownEnumerator {
        /// The value.
        value: i32,
        /// Where.
        place: Place,
    },
    /// The discriminator that a value of a union was given selects another branch, or
    /// none, or one where there is to be none.
    #[error("the discriminator does not select the branch that the union has, {place}")]
    WrongDiscriminator {
        /// Where; the member is the union.
        place: Place,
    },
    /// A bitmask has bits that are no flags, see [`Bitmask::VALID`](crate::shape::Bitmask::VALID).
    #[error("{bits:#x} has bits that the bitmask has not, {place}")]
    UnknownBits {
        /// All bits.
        bits: u64,
        /// Where.
        place: Place,
    },
    /// The value of a bit field takes more bits than the field has.
    #[error("value takes more than {bits} bits, {place}")]
    BitFieldExceeded {
        /// Bits of the field.
        bits: u8,
        /// Where; the member is the field.
        place: Place,
    },
    /// A member that this version of the type does not know must be understood.
    #[error("member id {id:#x} must be understood and is unknown, {place}")]
    MustUnderstand {
        /// Member id.
        id: u32,
        /// Where.
        place: Place,
    },
    /// The encapsulation id is none of those of RTPS 2.5 that carry CDR.
    #[error("encapsulation id {id:#06x} is unknown")]
    UnknownEncapsulation {
        /// The id.
        id: u16,
    },
    /// The encapsulation id does not go with the extensibility of the type.
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
        place: Place,
    },
    /// A sample would take far more memory than it has bytes, see
    /// [`limits::MEMORY_PER_BYTE_MAX`](crate::limits::MEMORY_PER_BYTE_MAX).
    #[error("elements would take more than {limit} bytes of memory, {place}")]
    TooLarge {
        /// The limit for a sample of this length.
        limit: usize,
        /// Where.
        place: Place,
    },
    /// A sample exceeds [`limits::SAMPLE_BYTES_MAX`](crate::limits::SAMPLE_BYTES_MAX).
    #[error("sample of {length} bytes is longer than {limit}")]
    TooLong {
        /// Bytes.
        length: usize,
        /// The limit.
        limit: usize,
    },
    /// A builder was given no value for a member that has neither a default nor the
    /// right to be absent.
    #[error("the member has not been written, {place}")]
    MissingMember {
        /// Where the structure ends; the member.
        place: Place,
    },
    /// A builder was given a member of varying size once more.
    #[error("the member has been written before, {place}")]
    RepeatedMember {
        /// Where it would have gone.
        place: Place,
    },
    /// A builder was given fewer elements than an array has.
    #[error("{count} elements of an array of {expected}, {place}")]
    MissingElements {
        /// Elements written.
        count: usize,
        /// Elements of the array.
        expected: usize,
        /// Where the elements end.
        place: Place,
    },
    /// The memory handed out does not hold the value.
    #[error("{needed} bytes needed, the memory has {capacity}, {place}")]
    Full {
        /// Bytes handed out.
        capacity: usize,
        /// Bytes that it takes at least up to and including this value.
        needed: usize,
        /// Where.
        place: Place,
    },
}

impl CdrError {
    /// The place, where there is one.
    pub fn place(&self) -> Option<Place> {
        let mut copy = *self;
        copy.place_mut().copied()
    }

    /// Names the member, unless one further in has been named already.
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

    /// Whether the bytes are well-formed and only the value is none of the type:
    /// what `@try_construct` is about (XTypes 1.3 §7.2.4.5).
    pub const fn is_unfit(&self) -> bool {
        matches!(
            self,
            Self::BoundExceeded { .. }
                | Self::UnknownEnumerator { .. }
                | Self::UnknownBits { .. }
                | Self::OutOfRange { .. }
        )
    }

    /// Says where, for what was found without knowing it.
    pub(crate) fn at(mut self, offset: usize) -> Self {
        if let Some(place) = self.place_mut() {
            place.offset = offset;
        }
        self
    }

    #[inline]
    fn place_mut(&mut self) -> Option<&mut Place> {
        match self {
            Self::Truncated { place, .. }
            | Self::BoundExceeded { place, .. }
            | Self::InvalidBool { place, .. }
            | Self::InvalidUtf8 { place }
            | Self::InvalidUtf16 { place }
            | Self::InvalidFixed { place }
            | Self::OutOfRange { place }
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

/// Names the member in an error that passes by.
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
