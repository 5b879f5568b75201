//! Structures whose members stand at the same offsets wherever they start.

use super::Reader;
use crate::encapsulation::{ByteOrder, Representation};
use crate::encode::Members;
use crate::error::CdrError;
use crate::limits::DEPTH_MAX;

/// How such a structure lies in XCDR1, when it starts at a multiple of its alignment.
#[derive(Debug, Clone, Copy)]
pub struct Layout {
    /// Bytes from its first member to the end of its last.
    pub size: usize,
    /// Size of its first primitive, to which it is aligned.
    pub first: usize,
    /// The largest alignment in it.
    pub align: usize,
    /// Structures and collections inside of it, inside of each other.
    pub depth: u8,
}

impl<'a> Reader<'a> {
    /// Reads all members at once: `members` is handed a reader over their bytes alone, of
    /// which all is known when this is compiled, so that they are looked for at constant
    /// offsets, with nothing to check but values. Also gives where they start. `None`,
    /// and the cursor has not moved, where they lie otherwise or something is wrong: then
    /// they are to be read one by one.
    #[inline(always)]
    pub fn block<T>(
        &mut self,
        layout: Layout,
        members: impl FnOnce(&mut Self) -> Result<T, CdrError>,
    ) -> Option<(T, u32)> {
        let (representation, order) = (Representation::Xcdr1, ByteOrder::Little);
        if self.representation != representation
            || self.order != order
            || self.members != Members::All
            || usize::from(self.depth) + usize::from(layout.depth) > DEPTH_MAX
        {
            return None;
        }
        let start = self.aligned(layout.first);
        if start.wrapping_sub(self.origin) & (layout.align - 1) != 0 {
            return None;
        }
        let end = start.checked_add(layout.size)?;
        let mut block = Reader {
            bytes: self.bytes.get(start..end)?,
            position: 0,
            origin: 0,
            representation,
            order,
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
