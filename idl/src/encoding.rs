//! The encodings of source files.
//!
//! IDL 4.2 §7.2 takes files and literals for ISO 8859-1. Files of today are in UTF-8, which has
//! the same letters of ASCII and makes text in ISO 8859-1 invalid almost always. So the encoding
//! need not be said: a file that is not UTF-8 is in ISO 8859-1.

use std::fmt;
use std::str::FromStr;

/// The encoding of source files.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Encoding {
    /// A file that is not valid UTF-8 and does not begin with the mark of it is read as ISO
    /// 8859-1, with a warning: the default.
    #[default]
    Auto,
    /// All files are in UTF-8. Other bytes are errors, except in comments.
    Utf8,
    /// All files are in ISO 8859-1, as IDL 4.2 has it, except those that begin with the mark of
    /// UTF-8.
    Latin1,
}

impl Encoding {
    /// All encodings with their names.
    const NAMES: [(Self, &str); 3] = [
        (Self::Auto, "auto"),
        (Self::Utf8, "utf-8"),
        (Self::Latin1, "iso-8859-1"),
    ];
}

impl fmt::Display for Encoding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = Self::NAMES.iter().find(|(one, _)| one == self);
        f.write_str(name.map_or("", |(_, name)| name))
    }
}

impl FromStr for Encoding {
    type Err = UnknownEncoding;

    fn from_str(name: &str) -> Result<Self, UnknownEncoding> {
        let found = Self::NAMES
            .iter()
            .find(|(_, one)| one.eq_ignore_ascii_case(name));
        found.map(|(one, _)| *one).ok_or(UnknownEncoding)
    }
}

/// The name of an encoding is not one of those known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the encoding is one of auto, utf-8 and iso-8859-1")]
pub struct UnknownEncoding;

/// What there is to say about the bytes of a file, with an offset in its text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Remark {
    /// It is in UTF-16, and was not read.
    Utf16,
    /// By its first byte that is not UTF-8 it was taken for ISO 8859-1.
    TakenForLatin1(usize),
    /// The first byte that is not UTF-8.
    NotUtf8(usize),
}

/// The text of a file.
#[derive(Debug)]
pub(crate) struct Decoded {
    pub(crate) text: String,
    pub(crate) remark: Option<Remark>,
    /// Offsets in the text of those U+FFFD that replace bytes that are not UTF-8.
    pub(crate) replaced: Vec<usize>,
}

const UTF8_MARK: &[u8] = b"\xEF\xBB\xBF";
const UTF16_MARKS: [&[u8]; 2] = [b"\xFF\xFE", b"\xFE\xFF"];

pub(crate) fn decode(bytes: &[u8], encoding: Encoding) -> Decoded {
    let decoded = |text, remark| Decoded {
        text,
        remark,
        replaced: Vec::new(),
    };
    if UTF16_MARKS.iter().any(|mark| bytes.starts_with(mark)) {
        return decoded(String::new(), Some(Remark::Utf16));
    }
    let marked = bytes.starts_with(UTF8_MARK);
    if encoding == Encoding::Latin1 && !marked {
        return decoded(latin1(bytes), None);
    }
    match std::str::from_utf8(bytes) {
        Ok(text) => decoded(text.to_owned(), None),
        Err(error) if encoding == Encoding::Auto && !marked => {
            let before = bytes.get(..error.valid_up_to()).unwrap_or_default();
            let at = latin1(before).len();
            decoded(latin1(bytes), Some(Remark::TakenForLatin1(at)))
        }
        Err(_) => replacing(bytes),
    }
}

/// Every byte is the character of that number.
fn latin1(bytes: &[u8]) -> String {
    bytes.iter().copied().map(char::from).collect()
}

fn replacing(bytes: &[u8]) -> Decoded {
    let mut text = String::with_capacity(bytes.len());
    let mut replaced = Vec::new();
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        if !chunk.invalid().is_empty() {
            replaced.push(text.len());
            text.push(char::REPLACEMENT_CHARACTER);
        }
    }
    Decoded {
        text,
        remark: replaced.first().copied().map(Remark::NotUtf8),
        replaced,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        for (encoding, name) in Encoding::NAMES {
            assert_eq!(name.parse(), Ok(encoding));
            assert_eq!(encoding.to_string(), name);
        }
        assert_eq!("UTF-8".parse(), Ok(Encoding::Utf8));
        assert_eq!("ascii".parse::<Encoding>(), Err(UnknownEncoding));
    }

    #[test]
    fn offsets_are_those_of_the_text() {
        let found = decode(b"\xC3\xA9 \xFF\xB0", Encoding::Auto);
        assert_eq!(found.text, "Ã© ÿ°");
        assert_eq!(found.remark, Some(Remark::TakenForLatin1("Ã© ".len())));
        let found = decode(b"\xC3\xA9 \xFF\xEF\xBF\xBD\xB0", Encoding::Utf8);
        assert_eq!(found.text, "é \u{FFFD}\u{FFFD}\u{FFFD}");
        assert_eq!(
            (found.remark, found.replaced),
            (Some(Remark::NotUtf8(3)), vec![3, 9])
        );
    }
}
