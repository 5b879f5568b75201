//! A wide string inside a view.

use std::cmp::Ordering;
use std::fmt::{self, Write as _};

use crate::encapsulation::ByteOrder;

/// A `wstring` in place, in UTF-16 of either byte order. It compares like the `String` of
/// the same characters.
#[derive(Clone, Copy)]
pub struct WideView<'a>(Source<'a>);

#[derive(Clone, Copy)]
enum Source<'a> {
    /// Units in a sample.
    Units { bytes: &'a [u8], order: ByteOrder },
    /// A default.
    Text(&'static str),
}

impl<'a> WideView<'a> {
    pub(crate) fn new(bytes: &'a [u8], order: ByteOrder) -> Self {
        Self(Source::Units { bytes, order })
    }

    /// The view of an absent member, from its `@default`.
    pub const fn from_static(text: &'static str) -> Self {
        Self(Source::Text(text))
    }

    /// The characters.
    pub fn chars(&self) -> impl Iterator<Item = char> + use<'a> {
        // Bytes altered since the check give some character.
        char::decode_utf16(self.units()).map(|unit| unit.unwrap_or(char::REPLACEMENT_CHARACTER))
    }

    /// The UTF-16 units.
    pub fn units(&self) -> impl Iterator<Item = u16> + use<'a> {
        let (bytes, order, text) = match self.0 {
            Source::Units { bytes, order } => (bytes, order, ""),
            Source::Text(text) => (&[][..], ByteOrder::Little, text),
        };
        let unit = move |bytes: &[u8; 2]| match order {
            ByteOrder::Little => u16::from_le_bytes(*bytes),
            ByteOrder::Big => u16::from_be_bytes(*bytes),
        };
        let units = bytes.chunks_exact(2).filter_map(<[u8]>::first_chunk);
        units.map(unit).chain(text.encode_utf16())
    }

    /// Number of UTF-16 units.
    pub fn units_len(&self) -> usize {
        match self.0 {
            Source::Units { bytes, .. } => bytes.len() / 2,
            Source::Text(text) => text.encode_utf16().count(),
        }
    }

    /// Whether there are no characters.
    pub fn is_empty(&self) -> bool {
        self.units_len() == 0
    }

    /// At most the first `count` units, without splitting a surrogate pair.
    pub(crate) fn cut(self, count: usize) -> Self {
        let Source::Units { bytes, order } = self.0 else {
            return self;
        };
        if count >= self.units_len() {
            return self;
        }
        let breaks_pair = count
            .checked_sub(1)
            .and_then(|last| self.units().nth(last))
            .is_some_and(|unit| (0xd800..0xdc00).contains(&unit));
        let count = if breaks_pair { count - 1 } else { count };
        Self::new(bytes.get(..count * 2).unwrap_or_default(), order)
    }
}

impl Default for WideView<'_> {
    fn default() -> Self {
        Self::from_static("")
    }
}

impl fmt::Display for WideView<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.chars().try_for_each(|char| f.write_char(char))
    }
}

impl fmt::Debug for WideView<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.to_string(), f)
    }
}

impl PartialEq<str> for WideView<'_> {
    fn eq(&self, other: &str) -> bool {
        self.chars().eq(other.chars())
    }
}

impl PartialEq<&str> for WideView<'_> {
    fn eq(&self, other: &&str) -> bool {
        *self == **other
    }
}

impl PartialEq for WideView<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.chars().eq(other.chars())
    }
}

impl Eq for WideView<'_> {}

impl PartialOrd for WideView<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for WideView<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.chars().cmp(other.chars())
    }
}
