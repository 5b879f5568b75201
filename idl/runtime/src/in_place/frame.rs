//! The frame of a collection: its length in bytes and its count of elements.

use super::room::{Site, offset};
use crate::encapsulation::Representation;
use crate::encode::{AllMembers, Encoder as _, Writer, check_bound, length_u32};
use crate::error::{CdrError, SamplePosition};

/// The parts before the elements.
pub(super) struct Head {
    /// Whether XCDR2 puts a length in bytes before it.
    pub(super) delimited: bool,
    /// Whether there is a count: not of arrays.
    pub(super) counted: bool,
    /// Most elements; of arrays, exactly as many.
    pub(super) count_max: u32,
}

/// A collection that grows. Room for its length and its count is reserved at the start;
/// both are written at the end.
pub(super) struct Frame {
    site: Site,
    pub(super) end: usize,
    pub(super) count: usize,
    pub(super) count_max: u32,
    /// Offset of the length.
    delimiter: Option<usize>,
    /// Offset of the count.
    count_at: Option<usize>,
}

impl Frame {
    pub(super) fn begin(bytes: &mut [u8], site: Site, head: &Head) -> Result<Self, CdrError> {
        let mut writer = site.writer(bytes);
        // Values too deep to be read are not written.
        if head.delimited {
            writer.deeper()?;
        }
        let depth = *writer.depth_mut();
        let mut word = |wanted: bool| match wanted {
            true => {
                writer.primitive(0_u32)?;
                Ok(Some(writer.position() - 4))
            }
            false => Ok(None),
        };
        let delimiter = word(head.delimited && site.representation() == Representation::Xcdr2)?;
        let count_at = word(head.counted)?;
        Ok(Self {
            end: writer.position(),
            site: site.at_depth(depth),
            count: 0,
            count_max: head.count_max,
            delimiter,
            count_at,
        })
    }

    /// Writes length and count, and returns the offset after the last element.
    pub(super) fn close(&self, bytes: &mut [u8]) -> Result<usize, CdrError> {
        let count = length_u32(self.count)?;
        if self.count_at.is_none() && count != self.count_max {
            return Err(CdrError::MissingElements {
                count: self.count,
                expected: self.count_max as usize,
                place: SamplePosition::offset(self.end),
            });
        }
        let length = |at: usize| length_u32(self.end - at - 4);
        let length = self.delimiter.map(length).transpose()?;
        let words = [self.delimiter.zip(length), self.count_at.zip(Some(count))];
        let mut writer = self.here().writer(bytes);
        for (at, word) in words.into_iter().flatten() {
            writer.patch(at, word);
        }
        Ok(self.end)
    }

    /// Offset after the last element.
    #[inline]
    pub(super) fn here(&self) -> Site {
        Site {
            position: offset(self.end),
            ..self.site
        }
    }

    #[inline]
    pub(super) fn writer<'b>(&self, bytes: &'b mut [u8]) -> Writer<'b, AllMembers> {
        self.here().writer(bytes)
    }

    /// The offset for `count` more elements, if the type allows them.
    #[inline]
    pub(super) fn next(&self, count: usize) -> Result<Site, CdrError> {
        check_bound(self.count.saturating_add(count), self.count_max, self.end)?;
        Ok(self.here())
    }

    /// Counts `count` elements, the last of which ends at `end`.
    #[inline]
    pub(super) fn grow(&mut self, count: usize, end: usize) {
        self.end = end;
        self.count += count;
    }
}
