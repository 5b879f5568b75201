//! Why a station refuses a connection: a code and a text, sent to the other side.

use super::error::CallFailureCause;

/// Longest reason, in bytes.
pub(super) const REASON_LEN_MAX: usize = 500;

/// The kind of a refusal. The code is its first byte, in all versions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum RefusalKind {
    /// For good, for another reason than those below; also a code that is not known here.
    Other = 0,
    /// The two are connected or about to be, a queue pair was tried in vain, or the station lacks
    /// something: another call may succeed.
    Already = 1,
    /// The two do not have the same secret.
    Secret = 2,
    /// The two are of different domains.
    Domain = 3,
    /// The two have different versions of the protocol.
    Version = 4,
    /// One of the two requires encryption, and the other has turned it off.
    Encryption = 5,
}

/// A connection is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct HandshakeRefusal {
    pub(super) kind: RefusalKind,
    pub(super) reason: String,
}

impl HandshakeRefusal {
    pub(super) fn new(kind: RefusalKind, reason: impl Into<String>) -> Self {
        let reason = reason.into();
        Self { kind, reason }
    }

    /// The refusal of a frame that is not allowed at its place.
    pub(super) fn out_of_place() -> Self {
        Self::new(RefusalKind::Other, "it sent what does not belong here")
    }

    /// The bytes that are sent.
    pub(super) fn write(&self) -> Vec<u8> {
        [&[self.kind as u8], cut(&self.reason)].concat()
    }

    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        let (code, reason) = bytes.split_first()?;
        let kinds = [
            RefusalKind::Already,
            RefusalKind::Secret,
            RefusalKind::Domain,
            RefusalKind::Version,
            RefusalKind::Encryption,
        ];
        let kind = kinds.into_iter().find(|kind| *kind as u8 == *code);
        let reason = readable(reason);
        Some(Self::new(kind.unwrap_or(RefusalKind::Other), reason))
    }

    /// For users, who see no refusal that another call may turn into success.
    pub(super) fn cause(&self) -> CallFailureCause {
        match self.kind {
            RefusalKind::Other | RefusalKind::Already => CallFailureCause::Other,
            RefusalKind::Secret => CallFailureCause::Secret,
            RefusalKind::Domain => CallFailureCause::Domain,
            RefusalKind::Version => CallFailureCause::Version,
            RefusalKind::Encryption => CallFailureCause::Encryption,
        }
    }
}

/// What another station says, for logs and terminals: a stranger may have written it.
pub(super) fn readable(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    let replaced = |char: char| match char.is_control() {
        true => char::REPLACEMENT_CHARACTER,
        false => char,
    };
    text.chars().map(replaced).collect()
}

/// The part of a reason that is sent, cut between characters.
pub(super) fn cut(reason: &str) -> &[u8] {
    let mut end = reason.len().min(REASON_LEN_MAX);
    while !reason.is_char_boundary(end) {
        end -= 1;
    }
    &reason.as_bytes()[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_read_as_it_was_written_and_an_unknown_code_is_for_good() {
        for code in 0..=u8::MAX {
            let bytes = [&[code][..], b"why"].concat();
            let read = HandshakeRefusal::read(&bytes).expect("a refusal");
            assert_eq!(read.reason, "why");
            match code {
                0..=5 => assert_eq!(read.write(), bytes),
                _ => assert_eq!(read.kind, RefusalKind::Other),
            }
        }
        assert_eq!(HandshakeRefusal::read(&[]), None);
    }

    /// A line feed would begin another line of a log, and an escape would command a terminal.
    #[test]
    fn a_reason_is_one_line_of_text() {
        let bytes = b"\0no\r\n12:00 ERROR \x1b[2J\xff";
        let read = HandshakeRefusal::read(bytes).expect("a refusal");
        assert_eq!(
            read.reason,
            "no\u{fffd}\u{fffd}12:00 ERROR \u{fffd}[2J\u{fffd}"
        );
    }

    #[test]
    fn long_reasons_are_cut_between_characters() {
        let long = HandshakeRefusal::new(RefusalKind::Other, "ü".repeat(REASON_LEN_MAX));
        let read = HandshakeRefusal::read(&long.write()).expect("a refusal");
        assert_eq!(read.reason, "ü".repeat(REASON_LEN_MAX / 2));
    }
}
