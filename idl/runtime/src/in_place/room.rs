//! The memory of a structure: a slot, or a part of the enclosing sample.

use std::fmt;
use std::marker::PhantomData;

use crate::encapsulation::{Extensibility, Representation};
use crate::encode::{AllMembers, Counter, Encoder as _, Writer};
use crate::error::CdrError;
use crate::reader::Reader;
use crate::topic::Slot;

/// The first error of methods that cannot return one, kept until one can. (Boxed, because
/// builders are moved from stage to stage and errors are rare.)
#[derive(Debug, Default)]
pub struct Fault(Option<Box<CdrError>>);

impl Fault {
    /// (By value: a builder whose address is never taken stays in registers.)
    #[inline(always)]
    pub(super) fn note(&mut self, error: CdrError) {
        self.0 = first(self.0.take(), &error);
    }

    /// Returns the error and keeps it.
    #[inline]
    pub(super) fn report(&self) -> Result<(), CdrError> {
        match &self.0 {
            None => Ok(()),
            Some(error) => Err(**error),
        }
    }
}

/// The existing fault, or this one. (A C function, which cannot unwind: otherwise the
/// builder would be dropped on unwinding, and its address be taken for that.)
#[cold]
extern "C" fn first(fault: Option<Box<CdrError>>, error: &CdrError) -> Option<Box<CdrError>> {
    Some(fault.unwrap_or_else(|| Box::new(*error)))
}

/// The start of a value: offset, alignment, representation and depth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Site {
    /// Offset in the sample of the first byte, including padding. (32 bits as in samples,
    /// because builders are moved.)
    pub(super) position: u32,
    /// Offset of the origin of alignment.
    pub(super) origin: u32,
    /// Bit 0: whether it is XCDR2; other bits: the number of enclosing structures and
    /// collections. (A word without a niche: a `Result` with a builder is then moved as a
    /// whole, and not around a tag.)
    pub(super) manner: u32,
}

impl Site {
    /// The start of a sample.
    pub const fn top(representation: Representation) -> Self {
        Self {
            position: 0,
            origin: 0,
            manner: matches!(representation, Representation::Xcdr2) as u32,
        }
    }

    #[inline]
    pub(super) const fn representation(self) -> Representation {
        match self.manner & 1 {
            0 => Representation::Xcdr1,
            _ => Representation::Xcdr2,
        }
    }

    /// Enclosing structures and collections.
    #[inline]
    pub(super) const fn depth(self) -> u8 {
        (self.manner >> 1) as u8
    }

    /// The same start with this many enclosing structures and collections.
    #[inline]
    pub(super) const fn at_depth(self, depth: u8) -> Self {
        Self {
            manner: self.manner & 1 | (depth as u32) << 1,
            ..self
        }
    }

    /// Whether a structure has its length before it.
    #[inline]
    pub(super) fn is_delimited(self, extensibility: Extensibility) -> bool {
        self.representation() == Representation::Xcdr2 && extensibility != Extensibility::Final
    }

    /// A writer at this start.
    #[inline]
    pub(super) fn writer(self, bytes: &mut [u8]) -> Writer<'_, AllMembers> {
        let (position, origin) = (self.position as usize, self.origin as usize);
        let mut writer = Writer::resume(self.representation(), bytes, position, origin);
        *writer.depth_mut() = self.depth();
        writer
    }

    /// A counter at this start.
    #[inline]
    pub(super) fn counter(self) -> Counter {
        let (position, origin) = (self.position as usize, self.origin as usize);
        Counter::resume(self.representation(), position, origin, self.depth())
    }

    /// A reader of the bytes written from this start on.
    #[inline]
    pub(super) fn reader(self, bytes: &[u8]) -> Reader<'_> {
        let (position, origin) = (self.position as usize, self.origin as usize);
        Reader::own(bytes, self.representation(), position, origin)
    }
}

/// An offset in a sample. An offset that exceeds 32 bits saturates: it is beyond any slot,
/// so writing there fails.
#[inline]
pub(super) fn offset(position: usize) -> u32 {
    u32::try_from(position).unwrap_or(u32::MAX)
}

/// Memory that a structure is built in: any [`Slot`], or a [`Part`] of a sample.
pub trait Room {
    /// The error type of building in this memory.
    type Error: From<CdrError>;

    /// The memory of the whole sample, and the place for faults: `own`, unless an enclosing
    /// builder keeps them.
    #[doc(hidden)]
    fn split<'r>(&'r mut self, own: &'r mut Fault) -> (&'r mut [u8], &'r mut Fault);
}

impl<S: Slot> Room for S {
    type Error = S::Error;

    #[inline]
    fn split<'r>(&'r mut self, own: &'r mut Fault) -> (&'r mut [u8], &'r mut Fault) {
        (self.bytes(), own)
    }
}

/// Room inside a sample under construction. It borrows the enclosing builder. `E` is the
/// error type of the slot.
pub struct Part<'p, E> {
    bytes: &'p mut [u8],
    fault: &'p mut Fault,
    error: PhantomData<fn() -> E>,
}

impl<'p, E> Part<'p, E> {
    #[inline]
    pub(super) fn new((bytes, fault): (&'p mut [u8], &'p mut Fault)) -> Self {
        Self {
            bytes,
            fault,
            error: PhantomData,
        }
    }

    /// The same room for a shorter time.
    #[inline]
    pub(super) fn reborrow(&mut self) -> Part<'_, E> {
        Part::new((self.bytes, self.fault))
    }

    #[inline]
    pub(super) fn bytes(&mut self) -> &mut [u8] {
        self.bytes
    }

    #[inline]
    pub(super) fn fault(&self) -> &Fault {
        self.fault
    }
}

impl<E: From<CdrError>> Room for Part<'_, E> {
    type Error = E;

    #[inline]
    fn split<'r>(&'r mut self, _own: &'r mut Fault) -> (&'r mut [u8], &'r mut Fault) {
        (self.bytes, self.fault)
    }
}

impl<E> fmt::Debug for Part<'_, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Part")
            .field("len", &self.bytes.len())
            .field("fault", &self.fault)
            .finish()
    }
}
