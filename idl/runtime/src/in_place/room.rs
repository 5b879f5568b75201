//! Where a structure is built: a slot, or a part of the sample around it.

use std::fmt;
use std::marker::PhantomData;

use crate::encapsulation::{Extensibility, Representation};
use crate::encode::{AllMembers, Counter, Encoder as _, Writer};
use crate::error::CdrError;
use crate::reader::Reader;
use crate::topic::Slot;

/// The first error of what cannot report one, until something can. (Builders are
/// moved from stage to stage: what is rare lies elsewhere.)
#[derive(Debug, Default)]
pub struct Fault(Option<Box<CdrError>>);

impl Fault {
    /// (By value, so that no address of a builder is given away for it: one whose address is
    /// known nowhere is kept in registers.)
    #[inline(always)]
    pub(super) fn note(&mut self, error: CdrError) {
        self.0 = first(self.0.take(), &error);
    }

    /// Reports it; it stays.
    #[inline]
    pub(super) fn report(&self) -> Result<(), CdrError> {
        match &self.0 {
            None => Ok(()),
            Some(error) => Err(**error),
        }
    }
}

/// The fault that there is, or this. (A C function, which nobody unwinds from: else the builder
/// would have to be dropped there, and its address be given away for that.)
#[cold]
extern "C" fn first(fault: Option<Box<CdrError>>, error: &CdrError) -> Option<Box<CdrError>> {
    Some(fault.unwrap_or_else(|| Box::new(*error)))
}

/// Where and how something starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Site {
    /// Offset in the sample of the first byte, padding included. (Builders are moved:
    /// offsets are no longer than those in samples.)
    pub(super) position: u32,
    /// Offset that alignment counts from.
    pub(super) origin: u32,
    /// Whether it is XCDR2, and how many structures and collections are around it: twice that.
    /// (One word like the others, without values that cannot be: where a builder stands in a
    /// `Result`, it is moved as a whole, and not around a tag.)
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

    /// Structures and collections around it.
    #[inline]
    pub(super) const fn depth(self) -> u8 {
        (self.manner >> 1) as u8
    }

    /// The same with so many structures and collections around it.
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

    /// A writer at the start of it.
    #[inline]
    pub(super) fn writer(self, bytes: &mut [u8]) -> Writer<'_, AllMembers> {
        let (position, origin) = (self.position as usize, self.origin as usize);
        let mut writer = Writer::resume(self.representation(), bytes, position, origin);
        *writer.depth_mut() = self.depth();
        writer
    }

    /// A counter at the start of it.
    #[inline]
    pub(super) fn counter(self) -> Counter {
        let (position, origin) = (self.position as usize, self.origin as usize);
        Counter::resume(self.representation(), position, origin, self.depth())
    }

    /// A reader of what has been written there.
    #[inline]
    pub(super) fn reader(self, bytes: &[u8]) -> Reader<'_> {
        let (position, origin) = (self.position as usize, self.origin as usize);
        Reader::own(bytes, self.representation(), position, origin)
    }
}

/// An offset in a sample. One that is too long for it is where no memory is, and whoever
/// counts in what was written there finds that.
#[inline]
pub(super) fn offset(position: usize) -> u32 {
    u32::try_from(position).unwrap_or(u32::MAX)
}

/// Memory that a structure is built in: any [`Slot`], or a [`Part`] of a sample.
pub trait Room {
    /// Why building here fails.
    type Error: From<CdrError>;

    /// The memory of the whole sample, and where faults go: to `own`, unless
    /// somebody around keeps them.
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

/// Room inside a sample that is being built; the builder around it is borrowed, so
/// out of reach for as long. `E` is the error of the slot around it all.
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
