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

impl Reader<'_> {
    /// Reads members together if they lie so, and one by one otherwise: `members` is handed
    /// a reader over their bytes alone first, of which all is known when this is compiled,
    /// so that they are looked for at constant offsets, with nothing to check but values.
    ///
    /// # Errors
    /// What is wrong with the bytes.
    #[inline(always)]
    pub fn together<T>(
        &mut self,
        layout: Layout,
        members: impl Fn(&mut Self) -> Result<T, CdrError> + Copy,
    ) -> Result<T, CdrError> {
        match self.block(layout, members) {
            Some((value, _)) => Ok(value),
            None => self.one_by_one(members),
        }
    }

    /// As [`together`](Self::together) of members that are checked: where they are.
    ///
    /// # Errors
    /// What is wrong with the bytes.
    #[inline(always)]
    pub fn located_together<const N: usize>(
        &mut self,
        layout: Layout,
        members: impl Fn(&mut Self) -> Result<[u32; N], CdrError> + Copy,
    ) -> Result<[u32; N], CdrError> {
        match self.block(layout, members) {
            Some((at, start)) => Ok(at.map(|at| start + at)),
            None => self.one_by_one(members),
        }
    }

    /// Reads members out of line, with a cursor of its own, so that this one may live in
    /// registers.
    #[inline(always)]
    fn one_by_one<T>(
        &mut self,
        members: impl Fn(&mut Self) -> Result<T, CdrError>,
    ) -> Result<T, CdrError> {
        #[inline(never)]
        fn out_of_line<R, T>(
            cursor: &mut R,
            members: impl Fn(&mut R) -> Result<T, CdrError>,
        ) -> Result<T, CdrError> {
            members(cursor)
        }
        let mut cursor = *self;
        let value = out_of_line(&mut cursor, members);
        self.follow(&cursor);
        value
    }

    /// Reads members together, and gives where they start. `None`, and the cursor has not
    /// moved, where they lie otherwise or something is wrong: then they are to be read one
    /// by one.
    #[inline(always)]
    pub(super) fn block<T>(
        &mut self,
        layout: Layout,
        members: impl FnOnce(&mut Self) -> Result<T, CdrError>,
    ) -> Option<(T, u32)> {
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
        let value = members(&mut block).ok()?;
        self.position = end;
        Some((value, start as u32))
    }
}
