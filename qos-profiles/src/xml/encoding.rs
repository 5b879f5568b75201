//! The bytes of a file as text.
//!
//! A byte-order mark says the encoding; without one, the XML declaration does, which UTF-16 is
//! recognised by, too; and without either it is UTF-8 (XML 1.0 §4.3.3, appendix F).

use std::borrow::Cow;

use encoding_rs::{DecoderResult, Encoding, UTF_8, UTF_16BE, UTF_16LE, mem};

use crate::diagnostic::{Report, quote};
use crate::xml::tree::{START, position_in};

/// The text of `bytes` without a byte-order mark. What is wrong goes to `report`.
pub(crate) fn decode<'a>(bytes: &'a [u8], report: &mut Report) -> Option<Cow<'a, str>> {
    if let Some((encoding, mark)) = Encoding::for_bom(bytes) {
        return decode_as(encoding, &bytes[mark..], report);
    }
    let unmarked = [(UTF_16LE, b"<\0?\0"), (UTF_16BE, b"\0<\0?")];
    if let Some((encoding, _)) = unmarked.iter().find(|(_, head)| bytes.starts_with(*head)) {
        return decode_as(encoding, bytes, report);
    }
    let Some(label) = declared(bytes) else {
        return decode_as(UTF_8, bytes, report);
    };
    let is_one_of = |names: &[&str]| names.iter().any(|name| name.eq_ignore_ascii_case(label));
    if is_one_of(&US_ASCII) {
        return ascii(bytes, report);
    }
    if is_one_of(&LATIN_1) {
        return Some(mem::decode_latin1(bytes));
    }
    match Encoding::for_label(label.as_bytes()) {
        // The declaration was read as single bytes.
        Some(encoding) if encoding == UTF_16LE || encoding == UTF_16BE => {
            let message = "encoding 'UTF-16' is declared, but the file has characters of one byte";
            report.error(START, message);
            None
        }
        Some(encoding) => decode_as(encoding, bytes, report),
        None => {
            report.error(START, format!("encoding {} is not known", quote(label)));
            None
        }
    }
}

fn decode_as<'a>(
    encoding: &'static Encoding,
    bytes: &'a [u8],
    report: &mut Report,
) -> Option<Cow<'a, str>> {
    if encoding != UTF_8 {
        return decode_whole(encoding, bytes, report).map(Cow::Owned);
    }
    match std::str::from_utf8(bytes) {
        Ok(text) => Some(Cow::Borrowed(text)),
        Err(error) => {
            let valid = String::from_utf8_lossy(&bytes[..error.valid_up_to()]);
            report.error(position_in(&valid, valid.len()), "not UTF-8 text");
            None
        }
    }
}

/// Decodes all bytes; an error has the place where the text before it ends.
fn decode_whole(encoding: &'static Encoding, bytes: &[u8], report: &mut Report) -> Option<String> {
    let mut decoder = encoding.new_decoder_without_bom_handling();
    let room = decoder.max_utf8_buffer_length_without_replacement(bytes.len());
    let mut text = String::with_capacity(room?);
    let (result, _) = decoder.decode_to_string_without_replacement(bytes, &mut text, true);
    if matches!(result, DecoderResult::InputEmpty) {
        return Some(text);
    }
    let place = position_in(&text, text.len());
    report.error(place, format!("not {} text", encoding.name()));
    None
}

fn ascii<'a>(bytes: &'a [u8], report: &mut Report) -> Option<Cow<'a, str>> {
    let end = bytes.iter().position(|byte| !byte.is_ascii());
    let text = String::from_utf8_lossy(&bytes[..end.unwrap_or(bytes.len())]);
    if end.is_some() {
        report.error(position_in(&text, text.len()), "not US-ASCII text");
        return None;
    }
    Some(text)
}

/// The encoding that the XML declaration names, if its characters are single bytes.
fn declared(bytes: &[u8]) -> Option<&str> {
    let head = &bytes[..bytes.len().min(DECLARATION_BYTES_MAX)];
    let head = match std::str::from_utf8(head) {
        Ok(head) => head,
        Err(error) => std::str::from_utf8(&head[..error.valid_up_to()]).ok()?,
    };
    let declaration = head.strip_prefix("<?xml")?.split_once("?>")?.0;
    let value = declaration.split_once("encoding")?.1.trim_start();
    let value = value.strip_prefix('=')?.trim_start();
    let quote = value.chars().next().filter(|c| matches!(c, '"' | '\''))?;
    value[1..].split_once(quote).map(|(label, _)| label)
}

const DECLARATION_BYTES_MAX: usize = 256;

/// `Encoding::for_label` takes these for windows-1252, as browsers do.
const US_ASCII: [&str; 3] = ["us-ascii", "ascii", "ansi_x3.4-1968"];
/// So it does with these, whose bytes are the code points.
const LATIN_1: [&str; 4] = ["iso-8859-1", "iso_8859-1", "latin1", "l1"];

#[cfg(test)]
mod tests {
    use super::*;

    fn check(bytes: &[u8], expected: Result<&str, &str>) {
        let mut report = Report::new("t.xml".into());
        let text = decode(bytes, &mut report);
        let remarks = report.into_diagnostics();
        let said = remarks.first().map(ToString::to_string);
        match expected {
            Ok(expected) => {
                assert_eq!(said, None);
                assert_eq!(text.as_deref(), Some(expected));
            }
            Err(expected) => assert_eq!(said.as_deref(), Some(expected)),
        }
    }

    fn utf_16(text: &str, bytes_of: fn(u16) -> [u8; 2]) -> Vec<u8> {
        let units = std::iter::once(0xfeff).chain(text.encode_utf16());
        units.flat_map(bytes_of).collect()
    }

    #[test]
    fn a_byte_order_mark_says_the_encoding() {
        let text = "<?xml version='1.0' encoding='UTF-16'?><a>é€😀</a>";
        check(&utf_16(text, u16::to_le_bytes), Ok(text));
        check(&utf_16(text, u16::to_be_bytes), Ok(text));
        check("\u{feff}<a/>".as_bytes(), Ok("<a/>"));
        let mut odd = utf_16("<a/>", u16::to_le_bytes);
        odd.push(0);
        check(&odd, Err("t.xml:1:5: error: not UTF-16LE text"));
        // The first half of a surrogate pair, alone.
        let mut broken = utf_16("<a>\n é", u16::to_be_bytes);
        broken.extend([0xd8, 0x3d, 0, b'<']);
        check(&broken, Err("t.xml:2:3: error: not UTF-16BE text"));
        // Without a mark the first characters of the declaration say it.
        check(&utf_16(text, u16::to_le_bytes)[2..], Ok(text));
        check(&utf_16(text, u16::to_be_bytes)[2..], Ok(text));
    }

    #[test]
    fn the_declaration_says_the_encoding() {
        let text = |label: &str| format!("<?xml version=\"1.0\" encoding = \"{label}\"?><a/>");
        for label in [
            "us-ascii",
            "US-ASCII",
            "utf-8",
            "ISO-8859-1",
            "windows-1250",
        ] {
            check(text(label).as_bytes(), Ok(&text(label)));
        }
        let latin = b"<?xml version='1.0' encoding='ISO-8859-1'?><a>\xe9</a>";
        check(
            latin,
            Ok("<?xml version='1.0' encoding='ISO-8859-1'?><a>é</a>"),
        );
        // Not the dash of windows-1252.
        let control = b"<?xml version='1.0' encoding='ISO-8859-1'?><a>\x97</a>";
        check(
            control,
            Ok("<?xml version='1.0' encoding='ISO-8859-1'?><a>\u{97}</a>"),
        );
        let unknown = text("x-ours");
        check(
            unknown.as_bytes(),
            Err("t.xml:1:1: error: encoding 'x-ours' is not known"),
        );
        let unmarked = text("UTF-16");
        check(
            unmarked.as_bytes(),
            Err(
                "t.xml:1:1: error: encoding 'UTF-16' is declared, but the file has characters of \
                 one byte",
            ),
        );
        let not_ascii = "<?xml version='1.0' encoding='us-ascii'?>\n<a>é</a>";
        check(
            not_ascii.as_bytes(),
            Err("t.xml:2:4: error: not US-ASCII text"),
        );
        check(b"<a>\n\xff", Err("t.xml:2:1: error: not UTF-8 text"));
    }
}
