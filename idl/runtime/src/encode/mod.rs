//! Encoding: one traversal of a value, three encoders.
//!
//! Generated code and the shapes traverse a value, generic over [`Encoder`]:
//! [`Writer`] writes bytes to memory, [`Counter`] only counts them, and
//! [`KeyHasher`](crate::KeyHasher) hashes the key. Only this module knows the rules of
//! a representation: alignment, delimiters, parameter headers.

mod counter;
mod parameter;
mod selection;
mod writer;

pub use counter::Counter;
pub(crate) use parameter::{
    EMHEADER_MUST_UNDERSTAND, EXTENDED_MUST_UNDERSTAND, MEMBER_ID_MASK, PID_EXTENDED, PID_IGNORE,
    PID_MASK, PID_MUST_UNDERSTAND, PID_SENTINEL, SHORT_ID_MAX,
};
pub use parameter::{Head, OpenParameter};
pub use selection::{AllMembers, HashMembers, KeyMembers, Members, Selection};
pub use writer::Writer;

use crate::encapsulation::{Extensibility, Representation};
use crate::error::{CdrError, InMember, SamplePosition};
use crate::limits::DEPTH_MAX;
use crate::member::{Borrowed, Member, is_parameter};
use crate::plain::Dense;
use crate::primitive::Primitive;
use crate::shape::Shape as _;

/// An open structure or collection, to be closed by [`Encoder::end`].
#[derive(Debug)]
#[must_use]
pub struct Open(OpenKind);

#[derive(Debug)]
enum OpenKind {
    Nothing,
    /// Offset of a delimiter whose value is still to be filled in.
    Delimiter(usize),
    Sentinel,
}

/// A destination of encoded bytes. Generated code uses only the provided methods.
pub trait Encoder: Sized {
    /// The selection of members to write.
    type Selection: Selection;

    /// Representation.
    fn representation(&self) -> Representation;
    /// Offset of the next byte.
    fn position(&self) -> usize;
    /// Mutable access to the origin of alignment.
    fn origin_mut(&mut self) -> &mut usize;
    /// Mutable access to the number of open structures and collections.
    fn depth_mut(&mut self) -> &mut u8;
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
    /// Overwrites bytes at an offset.
    fn patch<P: Primitive>(&mut self, at: usize, value: P);
    /// Moves the bytes from an offset on by `count` bytes; the caller overwrites the
    /// gap.
    ///
    /// # Errors
    /// [`CdrError::Full`].
    fn insert(&mut self, at: usize, count: usize) -> Result<(), CdrError>;
    /// Appends values by one copy, if their layout in this sample is that in memory; returns
    /// whether it did.
    ///
    /// # Errors
    /// [`CdrError::Full`].
    #[inline]
    fn whole<T: Dense>(&mut self, values: &[T]) -> Result<bool, CdrError> {
        let _ = values;
        Ok(false)
    }
    /// Whether delimiters can be filled in later; if not, sizes are computed first.
    const PATCHES: bool;

    /// Whether this encoder computes a key hash.
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
        // Alignments are powers of two, which the compiler does not know: this avoids a division.
        debug_assert!(alignment.is_power_of_two());
        let padding = relative.wrapping_neg() & (alignment - 1);
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

    /// Counts a structure or collection: values too deep to be read are not written.
    ///
    /// # Errors
    /// [`CdrError::TooDeep`].
    #[inline]
    fn deeper(&mut self) -> Result<(), CdrError> {
        let place = SamplePosition::offset(self.position());
        let depth = self.depth_mut();
        if usize::from(*depth) >= DEPTH_MAX {
            return Err(CdrError::TooDeep {
                limit: DEPTH_MAX,
                place,
            });
        }
        *depth += 1;
        Ok(())
    }

    /// Opens a structure; to be closed by [`end`](Self::end).
    ///
    /// # Errors
    /// [`CdrError::Full`], [`CdrError::TooDeep`].
    #[inline]
    fn begin(&mut self, extensibility: Extensibility) -> Result<Open, CdrError> {
        self.deeper()?;
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
    /// [`CdrError::Full`], [`CdrError::TooDeep`].
    #[inline]
    fn begin_collection(
        &mut self,
        body: impl FnOnce(&mut Counter<Self::Selection>) -> Result<(), CdrError>,
    ) -> Result<Open, CdrError> {
        self.deeper()?;
        if self.representation() == Representation::Xcdr1 {
            return Ok(Open(OpenKind::Nothing));
        }
        if Self::PATCHES {
            self.primitive(0_u32)?;
            return Ok(Open(OpenKind::Delimiter(self.position() - 4)));
        }
        self.align(4)?;
        let start = self.position() + 4;
        let (origin, depth) = (*self.origin_mut(), *self.depth_mut());
        let mut counter = Counter::resume(self.representation(), start, origin, depth);
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
        let depth = self.depth_mut();
        *depth = depth.saturating_sub(1);
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

    /// Writes a member, if it is selected.
    ///
    /// # Errors
    /// Those of writing the value.
    #[inline]
    fn member<M: Member>(&mut self, value: &Borrowed<M>) -> Result<(), CdrError> {
        if !Self::Selection::MEMBERS.includes(M::KEY) {
            return Ok(());
        }
        let present = M::Shape::is_present(value);
        let written = if is_parameter::<M>() && !self.is_key_hash() {
            match present {
                true => parameter::write::<M, Self>(self, value),
                false => Ok(()),
            }
        } else if M::Shape::OPTIONAL {
            self.optional::<M>(value, present)
        } else {
            M::Shape::write(value, self)
        };
        written.in_member(M::PATH)
    }

    /// Writes an optional member of a structure that is not mutable: in XCDR2 after
    /// a flag, in XCDR1 after a header, whose length is 0 if it is absent.
    ///
    /// # Errors
    /// Those of writing the value.
    fn optional<M: Member>(&mut self, value: &Borrowed<M>, present: bool) -> Result<(), CdrError> {
        match self.representation() {
            Representation::Xcdr1 => parameter::write::<M, Self>(self, value),
            Representation::Xcdr2 => {
                self.primitive(present)?;
                M::Shape::write(value, self)
            }
        }
    }

    /// Writes the header of a member whose size will be known later; to be closed by [`parameter_close`](Self::parameter_close).
    ///
    /// # Errors
    /// [`CdrError::Full`].
    fn parameter_open<M: Member>(&mut self) -> Result<OpenParameter, CdrError> {
        parameter::open(self, Head::of::<M>())
    }

    /// As [`parameter_open`](Self::parameter_open), for a dynamic type; to be closed by [`head_close`](Self::head_close).
    ///
    /// # Errors
    /// [`CdrError::Full`].
    fn head_open(&mut self, head: Head) -> Result<OpenParameter, CdrError> {
        parameter::open(self, head)
    }

    /// As [`parameter_close`](Self::parameter_close).
    ///
    /// # Errors
    /// [`CdrError::Full`], [`CdrError::TooLong`].
    fn head_close(&mut self, head: Head, parameter: OpenParameter) -> Result<(), CdrError> {
        parameter::close(self, head, parameter)
    }

    /// Ends a member and fills in its size. A value longer than 65,535 bytes moves to
    /// make room for a longer header in XCDR1.
    ///
    /// # Errors
    /// [`CdrError::Full`], [`CdrError::TooLong`].
    fn parameter_close<M: Member>(&mut self, parameter: OpenParameter) -> Result<(), CdrError> {
        parameter::close(self, Head::of::<M>(), parameter)
    }
}

/// An encoded length.
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
            place: SamplePosition::offset(offset),
        });
    }
    Ok(())
}
