//! Members that stand at the same offsets from each other wherever the first one is.

use super::Reader;
use crate::encapsulation::{ByteOrder, Representation};
use crate::encode::Members;
use crate::error::CdrError;
use crate::limits::DEPTH_MAX;

/// How such members lie in XCDR1, when the first starts at a multiple of their alignment.
#[derive(Debug, Clone, Copy)]
pub struct Layout {
    /// Bytes from the first member to the end of the last.
    pub size: usize,
    /// Size of the first primitive, to which they are aligned.
    pub first: usize,
    /// The largest alignment among them.
    pub align: usize,
    /// Structures and collections inside of each other.
    pub depth: u8,
    /// Whether XCDR2 has them at the same offsets: nothing is between them that could be
    /// another there, neither padding nor delimiters.
    pub both: bool,
}

/// Members that follow each other, and are read together where they lie so.
pub trait Together {
    /// What they are read to.
    type Members;

    /// How they lie.
    const LAYOUT: Layout;

    /// Reads them one after the other. To be a part of its caller, always: what it needs of the
    /// reader lives in registers then. (Handed over as a function it would be called.)
    ///
    /// # Errors
    /// What is wrong with the bytes.
    fn read(reader: &mut Reader<'_>) -> Result<Self::Members, CdrError>;
}

impl Reader<'_> {
    /// Reads members together if they lie so, and one by one otherwise: they are read from
    /// their bytes alone first, of which all is known when this is compiled, so that they are
    /// looked for at constant offsets, with nothing to check but values.
    ///
    /// # Errors
    /// What is wrong with the bytes.
    #[inline(always)]
    pub fn together<P: Together>(&mut self) -> Result<P::Members, CdrError> {
        match self.block::<P>() {
            Some((value, _)) => Ok(value),
            None => self.one_by_one::<P>(),
        }
    }

    /// As [`together`](Self::together) of members that are checked: where they are.
    ///
    /// # Errors
    /// What is wrong with the bytes.
    #[inline(always)]
    pub fn located_together<const N: usize, P: Together<Members = [u32; N]>>(
        &mut self,
    ) -> Result<[u32; N], CdrError> {
        match self.block::<P>() {
            Some((at, start)) => Ok(at.map(|at| start + at)),
            None => self.one_by_one::<P>(),
        }
    }

    /// Reads members out of line, with a cursor of its own, so that this one may live in
    /// registers.
    #[inline(always)]
    fn one_by_one<P: Together>(&mut self) -> Result<P::Members, CdrError> {
        #[inline(never)]
        fn out_of_line<P: Together>(cursor: &mut Reader<'_>) -> Result<P::Members, CdrError> {
            P::read(cursor)
        }
        let mut cursor = *self;
        let value = out_of_line::<P>(&mut cursor);
        self.follow(&cursor);
        value
    }

    /// Reads members together, and gives where they start. `None`, and the cursor has not
    /// moved, where they lie otherwise or something is wrong: then they are to be read one
    /// by one.
    #[inline(always)]
    pub(super) fn block<P: Together>(&mut self) -> Option<(P::Members, u32)> {
        let layout = P::LAYOUT;
        let is_so = match self.representation {
            Representation::Xcdr1 => true,
            Representation::Xcdr2 => layout.both,
        };
        if !is_so
            || self.order != ByteOrder::Little
            || self.members != Members::All
            || usize::from(self.depth) + usize::from(layout.depth) > DEPTH_MAX
        {
            return None;
        }
        let start = self.aligned(layout.first);
        let align = layout.align.min(self.representation.align_max());
        if layout.first < layout.align && start.wrapping_sub(self.origin) & (align - 1) != 0 {
            return None;
        }
        let end = start.checked_add(layout.size)?;
        let mut block = Self {
            bytes: self.bytes.get(start..end)?,
            position: 0,
            origin: 0,
            representation: Representation::Xcdr1,
            order: ByteOrder::Little,
            members: Members::All,
            depth: 1,
            limit_depth: 0,
            ..*self
        };
        let value = P::read(&mut block).ok()?;
        self.position = end;
        Some((value, start as u32))
    }
}
