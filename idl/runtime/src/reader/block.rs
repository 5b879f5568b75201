//! Runs of members with constant relative offsets.

use super::Reader;
use crate::encapsulation::{ByteOrder, Representation};
use crate::encode::Members;
use crate::error::CdrError;
use crate::limits::DEPTH_MAX;

/// The layout of such members in XCDR1, if the first starts at a multiple of their alignment.
#[derive(Debug, Clone, Copy)]
pub struct BlockLayout {
    /// Bytes from the first member to the end of the last.
    pub size: usize,
    /// Size of the first primitive, to which they are aligned.
    pub first: usize,
    /// The largest alignment among them.
    pub align: usize,
    /// Nesting of structures and collections.
    pub depth: u8,
    /// Whether the offsets are the same in XCDR2: no padding that differs, and no delimiter,
    /// is between them.
    pub both: bool,
}

/// Consecutive members that are read together if they have this layout.
pub trait Together {
    /// The result of reading them.
    type Members;

    /// Their layout.
    const LAYOUT: BlockLayout;

    /// Reads them one after the other. Always inlined, so that the state of the reader stays in
    /// registers. (A function pointer would prevent that.)
    ///
    /// # Errors
    /// The bytes are invalid.
    fn read(reader: &mut Reader<'_>) -> Result<Self::Members, CdrError>;
}

impl Reader<'_> {
    /// Reads members together if they have this layout, and one by one otherwise. Together
    /// means: from a slice of their bytes, whose layout is known at compile time, so that
    /// offsets are constants and only values are checked.
    ///
    /// # Errors
    /// The bytes are invalid.
    #[inline(always)]
    pub fn together<P: Together>(&mut self) -> Result<P::Members, CdrError> {
        match self.block::<P>() {
            Some((value, _)) => Ok(value),
            None => self.one_by_one::<P>(),
        }
    }

    /// As [`together`](Self::together), for checking: returns the offsets of the members.
    ///
    /// # Errors
    /// The bytes are invalid.
    #[inline(always)]
    pub fn located_together<const N: usize, P: Together<Members = [u32; N]>>(
        &mut self,
    ) -> Result<[u32; N], CdrError> {
        match self.block::<P>() {
            Some((at, start)) => Ok(at.map(|at| start + at)),
            None => self.one_by_one::<P>(),
        }
    }

    /// Reads members out of line, with a local cursor, so that this one can stay in registers.
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

    /// Reads members together, and returns their start. Returns `None` without moving the
    /// cursor if their layout is another or a value is invalid: the caller then reads them one
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
