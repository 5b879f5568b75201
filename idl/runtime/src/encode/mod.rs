//! Writing: one traversal of a value, three things to do with it.
//!
//! Generated code and the shapes walk a value once, generic over [`Encoder`]:
//! [`Writer`] puts bytes into memory, [`Counter`] only counts them, and
//! [`KeyHasher`](crate::KeyHasher) feeds the key to the hash. What belongs to a
//! representation (alignment, delimiters, parameter headers) is here and nowhere
//! else.

mod counter;
mod writer;

pub use counter::Counter;
pub use writer::Writer;

use crate::encapsulation::{Extensibility, Representation};
use crate::error::{CdrError, InMember, Place};
use crate::member::{Borrowed, Member, is_parameter};
use crate::primitive::Primitive;
use crate::shape::{LengthCode, Shape as _};

/// Which members of a structure take part.
#[derive(Hash, Debug, Clone, Copy, PartialEq, Eq)]
pub enum Members {
    /// All of them.
    All,
    /// The key members, laid out as if there were no others.
    Key,
    /// The key members by ascending id, as if every structure were final.
    KeyHash,
}

impl Members {
    /// Whether a member takes part.
    #[inline]
    pub const fn includes(self, key: bool) -> bool {
        key || matches!(self, Self::All)
    }
}

/// Largest member id of the short parameter header of XCDR1.
pub(crate) const SHORT_ID_MAX: u32 = 0x3f00;
/// XCDR1: an extended header follows.
pub(crate) const PID_EXTENDED: u16 = 0x3f01;
/// XCDR1: end of the parameter list.
pub(crate) const PID_SENTINEL: u16 = 0x3f02;
/// XCDR1: skip this one.
pub(crate) const PID_IGNORE: u16 = 0x3f03;
/// XCDR1: must be understood.
pub(crate) const PID_MUST_UNDERSTAND: u16 = 0x4000;
/// XCDR1: the bits of a parameter id that are not flags.
pub(crate) const PID_MASK: u16 = 0x3fff;
/// XCDR2: must be understood.
pub(crate) const EMHEADER_MUST_UNDERSTAND: u32 = 1 << 31;
/// XCDR2: the member id.
pub(crate) const MEMBER_ID_MASK: u32 = 0x0fff_ffff;

/// An open structure or collection, to be closed by [`Encoder::end`].
#[derive(Debug)]
#[must_use]
pub struct Open(OpenKind);

#[derive(Debug)]
enum OpenKind {
    Nothing,
    /// A delimiter stands at this offset and waits for its value.
    Delimiter(usize),
    Sentinel,
}

/// Where bytes go. Only the provided methods are meant for generated code.
pub trait Encoder: Sized {
    /// Which members are written.
    type Selection: Selection;

    /// Representation.
    fn representation(&self) -> Representation;
    /// Offset of the next byte.
    fn position(&self) -> usize;
    /// Offset that alignment counts from, and its exchange.
    fn origin_mut(&mut self) -> &mut usize;
    /// Appends bytes.
    ///
    /// # Errors
    /// [`CdrError::Full`].
    fn bytes(&mut self, bytes: &[u8]) -> Result<(), CdrError>;
    /// Appends zeros.
    ///
    /// # Errors
    /// [`CdrError::Full`].
    fn zeros(&mut self, count: usize) -> Result<(), CdrError>;
    /// Appends primitives, already aligned.
    ///
    /// # Errors
    /// [`CdrError::Full`].
    fn primitives<P: Primitive>(&mut self, values: &[P]) -> Result<(), CdrError>;
    /// Replaces the four bytes at an offset that was written before.
    fn patch(&mut self, at: usize, value: u32);
    /// Whether delimiters can be filled in later; if not, sizes are found first.
    const PATCHES: bool;

    /// Whether a key hash is being made.
    #[inline]
    fn is_key_hash(&self) -> bool {
        Self::Selection::MEMBERS == Members::KeyHash
    }

    /// Pads with zeros.
    ///
    /// # Errors
    /// [`CdrError::Full`].
    #[inline]
    fn align(&mut self, alignment: usize) -> Result<(), CdrError> {
        let alignment = alignment.min(self.representation().align_max());
        let relative = self.position() - *self.origin_mut();
        let padding = relative.next_multiple_of(alignment) - relative;
        if padding == 0 {
            Ok(())
        } else {
            self.zeros(padding)
        }
    }

    /// Aligns and appends one primitive.
    ///
    /// # Errors
    /// [`CdrError::Full`].
    #[inline]
    fn primitive<P: Primitive>(&mut self, value: P) -> Result<(), CdrError> {
        self.align(P::SIZE)?;
        self.primitives(&[value])
    }

    /// Appends a number of bytes or elements.
    ///
    /// # Errors
    /// [`CdrError::Full`]; [`CdrError::TooLong`].
    #[inline]
    fn length(&mut self, length: usize) -> Result<(), CdrError> {
        self.primitive(length_u32(length)?)
    }

    /// Opens a structure; to be closed by [`end`](Self::end).
    ///
    /// # Errors
    /// [`CdrError::Full`].
    #[inline]
    fn begin(&mut self, extensibility: Extensibility) -> Result<Open, CdrError> {
        let hash = Self::Selection::MEMBERS == Members::KeyHash;
        Ok(Open(match (self.representation(), extensibility) {
            (_, Extensibility::Final) => OpenKind::Nothing,
            _ if hash => OpenKind::Nothing,
            (Representation::Xcdr1, Extensibility::Appendable) => OpenKind::Nothing,
            (Representation::Xcdr1, Extensibility::Mutable) => OpenKind::Sentinel,
            (Representation::Xcdr2, _) => {
                self.primitive(0_u32)?;
                OpenKind::Delimiter(self.position() - 4)
            }
        }))
    }

    /// Opens a collection whose elements are not primitive; to be closed by
    /// [`end`](Self::end). `body` writes it once more, for its length, when the
    /// delimiter cannot be filled in later.
    ///
    /// # Errors
    /// [`CdrError::Full`].
    #[inline]
    fn begin_collection(
        &mut self,
        body: impl FnOnce(&mut Counter<Self::Selection>) -> Result<(), CdrError>,
    ) -> Result<Open, CdrError> {
        if self.representation() == Representation::Xcdr1 {
            return Ok(Open(OpenKind::Nothing));
        }
        if Self::PATCHES {
            self.primitive(0_u32)?;
            return Ok(Open(OpenKind::Delimiter(self.position() - 4)));
        }
        self.align(4)?;
        let start = self.position() + 4;
        let mut counter = Counter::resume(self.representation(), start, *self.origin_mut());
        body(&mut counter)?;
        self.length(counter.position() - start)?;
        Ok(Open(OpenKind::Nothing))
    }

    /// Closes a structure or collection.
    ///
    /// # Errors
    /// [`CdrError::Full`].
    #[inline]
    fn end(&mut self, open: Open) -> Result<(), CdrError> {
        match open.0 {
            OpenKind::Nothing => Ok(()),
            OpenKind::Delimiter(at) => {
                let length = length_u32(self.position() - at - 4)?;
                self.patch(at, length);
                Ok(())
            }
            OpenKind::Sentinel => self.sentinel(),
        }
    }

    /// Ends the parameter list of a mutable structure in XCDR1.
    ///
    /// # Errors
    /// [`CdrError::Full`].
    fn sentinel(&mut self) -> Result<(), CdrError> {
        self.align(4)?;
        self.primitives(&[PID_SENTINEL, 0])
    }

    /// Writes a member, if it takes part.
    ///
    /// # Errors
    /// What writing the value gives.
    #[inline]
    fn member<M: Member>(&mut self, value: &Borrowed<M>) -> Result<(), CdrError> {
        if !Self::Selection::MEMBERS.includes(M::KEY) {
            return Ok(());
        }
        let written = match is_parameter::<M>() && !self.is_key_hash() {
            true => self.parameter::<M>(value),
            false => M::Shape::write(value, self),
        };
        written.in_member(M::PATH)
    }

    /// Writes a member of a mutable structure with its header.
    ///
    /// # Errors
    /// What writing the value gives.
    fn parameter<M: Member>(&mut self, value: &Borrowed<M>) -> Result<(), CdrError> {
        let header = self.parameter_begin::<M>(value)?;
        M::Shape::write(value, self)?;
        self.parameter_end(header)
    }

    /// Writes the header of a member of a mutable structure.
    ///
    /// # Errors
    /// [`CdrError::Full`], or what sizing the value gives.
    fn parameter_begin<M: Member>(&mut self, value: &Borrowed<M>) -> Result<Parameter, CdrError> {
        let size = match (self.representation(), M::Shape::LENGTH_CODE) {
            (Representation::Xcdr2, LengthCode::Size(_) | LengthCode::Shared(_)) => 0,
            _ => {
                let mut counter = Counter::<Self::Selection>::new(self.representation());
                M::Shape::write(value, &mut counter)?;
                counter.position()
            }
        };
        self.parameter_header::<M>(size)
    }

    /// As [`parameter_begin`](Self::parameter_begin) with the size of the value known.
    ///
    /// # Errors
    /// [`CdrError::Full`].
    fn parameter_header<M: Member>(&mut self, size: usize) -> Result<Parameter, CdrError> {
        let (id, code) = (M::ID, M::Shape::LENGTH_CODE);
        self.align(4)?;
        match self.representation() {
            Representation::Xcdr1 => {
                let flags = if M::MUST_UNDERSTAND {
                    PID_MUST_UNDERSTAND
                } else {
                    0
                };
                match (u16::try_from(id), u16::try_from(size)) {
                    (Ok(short), Ok(size)) if id <= SHORT_ID_MAX => {
                        self.primitives(&[short | flags, size])?;
                    }
                    _ => {
                        self.primitives(&[PID_EXTENDED | flags, 8])?;
                        self.primitives(&[id & MEMBER_ID_MASK, length_u32(size)?])?;
                    }
                }
                let restored = *self.origin_mut();
                *self.origin_mut() = self.position();
                Ok(Parameter { origin: restored })
            }
            Representation::Xcdr2 => {
                let flag = if M::MUST_UNDERSTAND {
                    EMHEADER_MUST_UNDERSTAND
                } else {
                    0
                };
                let code_bits = u32::from(code.bits()) << 28;
                self.primitive(flag | code_bits | (id & MEMBER_ID_MASK))?;
                if code == LengthCode::Next {
                    self.length(size)?;
                }
                Ok(Parameter {
                    origin: *self.origin_mut(),
                })
            }
        }
    }

    /// Ends a member of a mutable structure.
    ///
    /// # Errors
    /// None today.
    #[inline]
    fn parameter_end(&mut self, parameter: Parameter) -> Result<(), CdrError> {
        *self.origin_mut() = parameter.origin;
        Ok(())
    }
}

/// An open member of a mutable structure.
#[derive(Debug)]
#[must_use]
pub struct Parameter {
    origin: usize,
}

/// Tells a [`Counter`] which members to count.
pub trait Selection: Copy + std::fmt::Debug {
    /// Which.
    const MEMBERS: Members;
}

/// [`Members::All`].
#[derive(Debug, Clone, Copy)]
pub struct AllMembers;
/// [`Members::Key`].
#[derive(Debug, Clone, Copy)]
pub struct KeyMembers;
/// [`Members::KeyHash`].
#[derive(Debug, Clone, Copy)]
pub struct HashMembers;

impl Selection for AllMembers {
    const MEMBERS: Members = Members::All;
}
impl Selection for KeyMembers {
    const MEMBERS: Members = Members::Key;
}
impl Selection for HashMembers {
    const MEMBERS: Members = Members::KeyHash;
}

/// A length on the wire.
#[inline]
pub(crate) fn length_u32(length: usize) -> Result<u32, CdrError> {
    u32::try_from(length).map_err(|_| CdrError::TooLong {
        length,
        limit: crate::limits::SAMPLE_BYTES_MAX,
    })
}

/// Checks a length against its IDL bound.
#[inline]
pub(crate) fn check_bound(length: usize, bound: u32, offset: usize) -> Result<(), CdrError> {
    if length > bound as usize {
        return Err(CdrError::BoundExceeded {
            length,
            bound: bound as usize,
            place: Place::offset(offset),
        });
    }
    Ok(())
}
