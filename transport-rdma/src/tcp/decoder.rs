//! The decoder: takes a stream apart in whatever pieces it comes.

use super::record::{HEADER_LEN, Header, RecordError};
use crate::fabric::Ring;
use crate::mem::Region;

/// Puts whole words of checked records into a copy.
#[derive(Debug)]
pub(super) struct Decoder {
    copy: Region,
    /// The beginning of a header or of a word.
    piece: [u8; HEADER_LEN],
    piece_len: usize,
    /// What is left of the record: where, and how many bytes.
    at: usize,
    left: usize,
}

impl Decoder {
    pub(super) fn new(copy: Region) -> Self {
        Self {
            copy,
            piece: [0; HEADER_LEN],
            piece_len: 0,
            at: 0,
            left: 0,
        }
    }

    /// Whether the stream stands between two records.
    pub(super) fn is_between_records(&self) -> bool {
        self.left == 0 && self.piece_len == 0
    }

    /// Applies the next bytes of the stream; returns the loudest ring among
    /// them. After an error the decoder is of no use.
    pub(super) fn feed(&mut self, mut bytes: &[u8]) -> Result<Option<Ring>, RecordError> {
        let mut rung = None;
        while !bytes.is_empty() {
            if self.left == 0 {
                let Some(header) = self.collect(&mut bytes, HEADER_LEN) else {
                    break;
                };
                match Header::decode(header, self.copy.len())? {
                    Header::Write { at, len } => (self.at, self.left) = (at, len),
                    Header::Ring(ring) => rung = rung.max(Some(ring)),
                }
            } else if self.piece_len > 0 || bytes.len() < 8 {
                let Some(word) = self.collect(&mut bytes, 8) else {
                    break;
                };
                self.apply(&word[..8]);
            } else {
                let whole = self.left.min(bytes.len() & !7);
                self.apply(&bytes[..whole]);
                bytes = &bytes[whole..];
            }
        }
        Ok(rung)
    }

    /// Whole words of the record, which was checked to lie inside.
    fn apply(&mut self, words: &[u8]) {
        self.copy.copy_in(self.at, words);
        self.at += words.len();
        self.left -= words.len();
    }

    /// Takes up to `len` bytes that may come in pieces; all of them at last.
    fn collect(&mut self, bytes: &mut &[u8], len: usize) -> Option<[u8; HEADER_LEN]> {
        let take = bytes.len().min(len - self.piece_len);
        self.piece[self.piece_len..][..take].copy_from_slice(&bytes[..take]);
        self.piece_len += take;
        *bytes = &bytes[take..];
        if self.piece_len < len {
            return None;
        }
        self.piece_len = 0;
        Some(self.piece)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fabric::FABRIC_AREA;
    use crate::sim::Rng;

    const ROW: usize = 4096;

    /// Feeds a stream in random pieces until it ends or errs.
    fn feed(
        decoder: &mut Decoder,
        mut bytes: &[u8],
        rng: &mut Rng,
    ) -> Result<Option<Ring>, RecordError> {
        let mut rung = None;
        while !bytes.is_empty() {
            let most = [1, 7, 30, 300, 5000][rng.below(5)].min(bytes.len());
            let (piece, rest) = bytes.split_at(1 + rng.below(most));
            rung = rung.max(decoder.feed(piece)?);
            bytes = rest;
        }
        Ok(rung)
    }

    fn random_write(rng: &mut Rng) -> (usize, usize) {
        let most = [2, 8, 100][rng.below(3)];
        let words = 1 + rng.below(most);
        let room = (ROW - FABRIC_AREA) / 8 - words;
        (FABRIC_AREA + rng.below(room + 1) * 8, words * 8)
    }

    #[test]
    fn streams_in_any_pieces_arrive_whole() {
        let rng = &mut Rng::new(1);
        let copy = Region::heap(ROW);
        let mut decoder = Decoder::new(copy.clone());
        let mut model = vec![0_u8; ROW];
        for _ in 0..1000 {
            let mut stream = Vec::new();
            let mut loudest = None;
            for _ in 0..100 {
                if rng.chance(0.1) {
                    let ring = [Ring::Acks, Ring::Data][rng.below(2)];
                    loudest = loudest.max(Some(ring));
                    stream.extend(Header::Ring(ring).encode());
                    continue;
                }
                let (at, len) = random_write(rng);
                stream.extend(Header::Write { at, len }.encode());
                model[at..at + len].fill_with(|| rng.below(256) as u8);
                stream.extend(&model[at..at + len]);
            }
            assert_eq!(feed(&mut decoder, &stream, rng), Ok(loudest));
            assert!(decoder.is_between_records());
            let mut seen = vec![0; ROW];
            copy.copy_out(0, &mut seen);
            assert!(seen == model);
        }
    }

    /// What a damaged stream comes to, taken literally: records up to the first
    /// that is none, and of the last whole words.
    fn literally(stream: &[u8], row: &mut [u8]) -> Result<(), RecordError> {
        let mut rest = stream;
        while let Some((header, after)) = rest.split_first_chunk() {
            rest = after;
            if let Header::Write { at, len } = Header::decode(*header, row.len())? {
                let there = len.min(rest.len());
                let whole = there & !7;
                row[at..at + whole].copy_from_slice(&rest[..whole]);
                rest = &rest[there..];
            }
        }
        Ok(())
    }

    /// A hundred thousand records, of which some bytes were changed: no panic,
    /// no half word, nothing outside the columns, the same in any pieces.
    #[test]
    fn damaged_streams_do_no_damage() {
        let rng = &mut Rng::new(2);
        let mut errors = 0;
        for round in 0..20_000 {
            let mut stream = Vec::new();
            for record in 1..=5 {
                let (at, len) = random_write(rng);
                stream.extend(Header::Write { at, len }.encode());
                stream.resize(stream.len() + len, record);
            }
            for _ in 0..1 + rng.below(3) {
                // Headers and bytes alike; the first header more often.
                let among = [HEADER_LEN, stream.len()][rng.below(2)];
                stream[rng.below(among)] = rng.below(256) as u8;
            }
            stream.truncate(stream.len() - rng.below(100).min(stream.len() - 1));
            let copy = Region::heap(ROW);
            let fed = feed(&mut Decoder::new(copy.clone()), &stream, rng);
            let (mut seen, mut model) = (vec![0; ROW], vec![0; ROW]);
            copy.copy_out(0, &mut seen);
            let expected = literally(&stream, &mut model);
            assert_eq!(fed.map(drop), expected, "round {round}");
            assert!(seen == model, "round {round}");
            assert!(seen[..FABRIC_AREA].iter().all(|&byte| byte == 0));
            errors += u32::from(fed.is_err());
        }
        assert!(errors > 5000, "{errors}");
    }
}
