//! Separates the messages of a stream from the records of rows.
//!
//! Records of rows may have to wait for a segment to be opened; messages never do. So they
//! are separated before anything of a row's record is examined except its length.

use super::record::{HEADER_LEN, Header, RecordError, body_len, is_of_rows};
use crate::station::event::MESSAGE_LEN_MAX;

/// The next piece of a stream.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Piece<'a> {
    /// Records of rows, whole or in part.
    Rows(&'a [u8]),
    /// A header of such a record that arrived in pieces.
    Header([u8; HEADER_LEN]),
    Message(Vec<u8>),
    Bye,
}

/// What the next bytes belong to.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Inside {
    #[default]
    Rows,
    Message {
        last: bool,
    },
}

/// The state between two pieces.
#[derive(Debug, Default)]
pub(super) struct Splitter {
    /// The beginning of a header.
    piece: [u8; HEADER_LEN],
    piece_len: usize,
    /// Bytes that are left of the current record.
    left: usize,
    inside: Inside,
    /// The bytes of an incomplete message.
    message: Vec<u8>,
}

impl Splitter {
    /// Whether the stream stands between two records.
    pub(super) fn is_between_records(&self) -> bool {
        self.left == 0 && self.piece_len == 0
    }

    /// Takes the next piece from the front of `bytes`; `None` if they are used up. After an
    /// error the splitter must not be used again.
    pub(super) fn next<'a>(
        &mut self,
        bytes: &mut &'a [u8],
    ) -> Result<Option<Piece<'a>>, RecordError> {
        while !bytes.is_empty() {
            if self.left > 0 && self.inside != Inside::Rows {
                if let Some(message) = self.extend(bytes) {
                    return Ok(Some(Piece::Message(message)));
                }
                continue;
            }
            let run = self.run(bytes);
            if !run.is_empty() {
                return Ok(Some(Piece::Rows(run)));
            }
            let Some(header) = self.collect(bytes) else {
                break;
            };
            if is_of_rows(&header) {
                (self.left, self.inside) = (body_len(&header), Inside::Rows);
                return Ok(Some(Piece::Header(header)));
            }
            match Header::decode(header)? {
                Header::Bye => return Ok(Some(Piece::Bye)),
                Header::Part { len, last } => {
                    if self.message.len() + len > MESSAGE_LEN_MAX {
                        return Err(RecordError::LongMessage);
                    }
                    (self.left, self.inside) = (len, Inside::Message { last });
                    if len == 0 && last {
                        return Ok(Some(Piece::Message(core::mem::take(&mut self.message))));
                    }
                }
                _ => debug_assert!(false, "{header:?} is of rows"),
            }
        }
        Ok(None)
    }

    /// Records of rows at the front, as far as they go.
    fn run<'a>(&mut self, bytes: &mut &'a [u8]) -> &'a [u8] {
        let mut end = 0;
        if self.piece_len == 0 {
            end = self.left.min(bytes.len());
            self.left -= end;
            while self.left == 0
                && let Some(header) = bytes[end..].first_chunk()
                && is_of_rows(header)
            {
                let len = HEADER_LEN + body_len(header);
                let there = len.min(bytes.len() - end);
                end += there;
                (self.left, self.inside) = (len - there, Inside::Rows);
            }
        }
        let (run, rest) = bytes.split_at(end);
        *bytes = rest;
        run
    }

    /// Appends to the message; returns it once it is complete.
    fn extend(&mut self, bytes: &mut &[u8]) -> Option<Vec<u8>> {
        let (taken, rest) = bytes.split_at(self.left.min(bytes.len()));
        self.message.extend_from_slice(taken);
        self.left -= taken.len();
        *bytes = rest;
        let whole = self.left == 0 && self.inside == Inside::Message { last: true };
        whole.then(|| core::mem::take(&mut self.message))
    }

    fn collect(&mut self, bytes: &mut &[u8]) -> Option<[u8; HEADER_LEN]> {
        let (taken, rest) = bytes.split_at(bytes.len().min(HEADER_LEN - self.piece_len));
        self.piece[self.piece_len..][..taken.len()].copy_from_slice(taken);
        self.piece_len += taken.len();
        *bytes = rest;
        if self.piece_len < HEADER_LEN {
            return None;
        }
        self.piece_len = 0;
        Some(self.piece)
    }
}

#[cfg(test)]
mod tests {
    use super::super::record::PART_LEN_MAX;
    use super::*;
    use crate::fabric::{FABRIC_AREA, WakeReason};
    use crate::sim::Rng;
    use crate::station::segment::SegmentKey;

    /// All rows and all messages of a stream in random pieces.
    fn split(mut bytes: &[u8], rng: &mut Rng) -> Result<(Vec<u8>, Vec<Vec<u8>>), RecordError> {
        let (mut splitter, mut rows, mut messages) = (Splitter::default(), vec![], vec![]);
        while !bytes.is_empty() {
            let most = [1, 7, 30, 300, 5000][rng.below(5)].min(bytes.len());
            let (mut piece, rest) = bytes.split_at(1 + rng.below(most));
            while let Some(next) = splitter.next(&mut piece)? {
                match next {
                    Piece::Rows(run) => rows.extend(run),
                    Piece::Header(header) => rows.extend(header),
                    Piece::Message(message) => messages.push(message),
                    Piece::Bye => return Ok((rows, messages)),
                }
            }
            assert_eq!(piece, b"");
            bytes = rest;
        }
        assert!(splitter.is_between_records());
        Ok((rows, messages))
    }

    #[test]
    fn rows_and_messages_are_separated_however_a_stream_is_cut() {
        for seed in 0..300 {
            let rng = &mut Rng::new(seed);
            let (mut stream, mut rows, mut messages) = (vec![], vec![], vec![]);
            let mut message = Vec::new();
            for _ in 0..100 {
                let mut record = Vec::new();
                match rng.below(5) {
                    0 => {
                        let len = 8 * (1 + rng.below(100));
                        let (slot, at) = (3, FABRIC_AREA);
                        record.extend(Header::Write { slot, at, len }.encode());
                        record.resize(HEADER_LEN + len, b'm');
                    }
                    1 => record.extend(Header::Wake(WakeReason::Data).encode()),
                    2 => {
                        let (epoch, index) = (u64::MAX, u32::MAX);
                        let key = SegmentKey { epoch, index };
                        record.extend(Header::Open { slot: 9, key }.encode());
                    }
                    _ => {
                        let len = rng.below(3) * rng.below(200);
                        let last = rng.chance(0.5);
                        stream.extend(Header::Part { len, last }.encode());
                        stream.resize(stream.len() + len, b'r');
                        message.resize(message.len() + len, b'r');
                        if last {
                            messages.push(core::mem::take(&mut message));
                        }
                    }
                }
                rows.extend(&record);
                stream.extend(&record);
            }
            let bye = [&stream[..], &Header::Bye.encode(), &[0xff; 99]].concat();
            assert_eq!(split(&stream, rng), Ok((rows.clone(), messages.clone())));
            assert_eq!(split(&bye, rng), Ok((rows, messages)), "seed {seed}");
        }
    }

    #[test]
    fn endless_messages_are_refused() {
        let (len, last) = (PART_LEN_MAX, false);
        let mut part = Header::Part { len, last }.encode().to_vec();
        part.resize(HEADER_LEN + len, 0);
        let parts = part.repeat(MESSAGE_LEN_MAX / PART_LEN_MAX + 1);
        let refused = split(&parts, &mut Rng::new(1));
        assert_eq!(refused, Err(RecordError::LongMessage));
    }
}
