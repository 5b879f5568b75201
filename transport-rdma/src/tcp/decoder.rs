//! Applies the records of a stream, in whatever pieces it arrives, to copies of rows.

use super::record::{HEADER_LEN, Header, RecordError};
use crate::fabric::WakeReason;
use crate::fabric::news::NewsBuckets;
use crate::memory::Region;
use crate::station::segment::SegmentKey;

/// Where the bytes of a segment go.
#[derive(Debug)]
pub(super) enum RowTarget {
    /// Into this copy of the peer's row.
    Copy(Region),
    /// Nowhere: the segment was dropped, or the peer is fenced in it.
    Discard,
    /// The segment is not open yet: this record and all that follow wait.
    NotOpenYet,
    /// The peer is not a member of the segment.
    NotAMember,
}

/// The result of decoding some bytes.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Decoded {
    /// Number of bytes that were applied; the rest waits.
    pub(super) taken: usize,
    /// The greatest reason of the wake-ups among them.
    pub(super) wake: Option<WakeReason>,
    /// The buckets of the segments into which they went.
    pub(super) landed: NewsBuckets,
}

/// A segment that the peer has opened. Without a copy, its bytes are discarded.
#[derive(Debug)]
struct Slot {
    key: SegmentKey,
    copy: Option<Region>,
}

/// Decodes and checks records, and writes their whole words into copies.
#[derive(Debug, Default)]
pub(super) struct Decoder {
    slots: Vec<Option<Slot>>,
    /// A segment that the peer has opened and this process has not.
    waiting: Option<(u16, SegmentKey)>,
    /// The beginning of a header or of a word.
    piece: [u8; HEADER_LEN],
    piece_len: usize,
    /// The rest of the current record: slot, offset and number of bytes.
    slot: u16,
    at: usize,
    left: usize,
    /// See [`Decoded::landed`].
    landed: NewsBuckets,
}

impl Decoder {
    /// Whether the next record waits until a segment is opened here.
    pub(super) fn is_waiting(&self) -> bool {
        self.waiting.is_some()
    }

    /// Discards all further bytes of a segment.
    pub(super) fn close_segment(&mut self, key: SegmentKey) {
        let slots = self.slots.iter_mut().flatten();
        slots
            .filter(|slot| slot.key == key)
            .for_each(|slot| slot.copy = None);
    }

    /// Applies the next bytes of the stream, up to the first record of a segment that is
    /// not open yet. After an error the decoder must not be used again.
    pub(super) fn feed(
        &mut self,
        mut bytes: &[u8],
        target: impl Fn(SegmentKey) -> RowTarget,
    ) -> Result<Decoded, RecordError> {
        let (len, mut wake) = (bytes.len(), None);
        self.landed = NewsBuckets::default();
        while self.open_waiting(&target)? && !bytes.is_empty() {
            if self.left == 0 {
                let Some(header) = self.collect(&mut bytes, HEADER_LEN) else {
                    break;
                };
                match Header::decode(header)? {
                    Header::Write { slot, at, len } => self.begin(slot, at, len)?,
                    Header::Wake(reason) => wake = wake.max(Some(reason)),
                    Header::Open { slot, key } => self.waiting = Some((slot, key)),
                    Header::Shut { slot } => drop(self.slot(slot)?.take()),
                    Header::Part { .. } | Header::Bye => {
                        debug_assert!(false, "taken out before");
                    }
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
        let taken = len - bytes.len();
        let landed = self.landed;
        Ok(Decoded {
            taken,
            wake,
            landed,
        })
    }

    /// Opens the slot that waits, if its segment can be resolved. False if it still waits.
    fn open_waiting(
        &mut self,
        target: impl Fn(SegmentKey) -> RowTarget,
    ) -> Result<bool, RecordError> {
        let Some((slot, key)) = self.waiting else {
            return Ok(true);
        };
        let SegmentKey { epoch, index } = key;
        let copy = match target(key) {
            RowTarget::Copy(copy) => Some(copy),
            RowTarget::Discard => None,
            RowTarget::NotOpenYet => return Ok(false),
            RowTarget::NotAMember => return Err(RecordError::NoMember { epoch, index }),
        };
        self.waiting = None;
        let at = usize::from(slot);
        if self.slots.len() <= at {
            self.slots.resize_with(at + 1, || None);
        }
        if self.slots[at].replace(Slot { key, copy }).is_some() {
            return Err(RecordError::OpenTwice { slot });
        }
        Ok(true)
    }

    /// An open slot.
    fn slot(&mut self, slot: u16) -> Result<&mut Option<Slot>, RecordError> {
        let open = self.slots.get_mut(usize::from(slot));
        open.filter(|open| open.is_some())
            .ok_or(RecordError::NotOpen { slot })
    }

    fn begin(&mut self, slot: u16, at: usize, len: usize) -> Result<(), RecordError> {
        if let Some(Slot {
            copy: Some(copy), ..
        }) = self.slot(slot)?
            && !copy.contains(at, len)
        {
            let row = copy.len();
            return Err(RecordError::Outside { at, len, row });
        }
        (self.slot, self.at, self.left) = (slot, at, len);
        Ok(())
    }

    /// Writes whole words of the current record, which was checked to lie inside the row.
    fn apply(&mut self, words: &[u8]) {
        if let Some(Slot {
            key,
            copy: Some(copy),
        }) = &self.slots[usize::from(self.slot)]
        {
            copy.copy_in(self.at, words);
            self.landed.insert(key.news_bucket());
        }
        self.at += words.len();
        self.left -= words.len();
    }

    /// Collects `len` bytes that may arrive in pieces; returns them when complete.
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

    const KEY: SegmentKey = SegmentKey { epoch: 3, index: 9 };

    /// Feeds a stream in random pieces until it ends or fails.
    fn feed(
        decoder: &mut Decoder,
        copy: &Region,
        mut bytes: &[u8],
        rng: &mut Rng,
    ) -> Result<Option<WakeReason>, RecordError> {
        let mut wake = None;
        while !bytes.is_empty() {
            let most = [1, 7, 30, 300, 5000][rng.below(5)].min(bytes.len());
            let (piece, rest) = bytes.split_at(1 + rng.below(most));
            let fed = decoder.feed(piece, |_| RowTarget::Copy(copy.clone()))?;
            assert_eq!(fed.taken, piece.len());
            wake = wake.max(fed.wake);
            bytes = rest;
        }
        Ok(wake)
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
        let mut decoder = Decoder::default();
        let open = Header::Open { slot: 5, key: KEY }.encode();
        assert_eq!(feed(&mut decoder, &copy, &open, rng), Ok(None));
        let mut model = vec![0_u8; ROW];
        for _ in 0..1000 {
            let mut stream = Vec::new();
            let mut loudest = None;
            for _ in 0..100 {
                if rng.chance(0.1) {
                    let ring =
                        [WakeReason::Room, WakeReason::Stability, WakeReason::Data][rng.below(3)];
                    loudest = loudest.max(Some(ring));
                    stream.extend(Header::Wake(ring).encode());
                    continue;
                }
                let (at, len) = random_write(rng);
                stream.extend(Header::Write { slot: 5, at, len }.encode());
                model[at..at + len].fill_with(|| rng.below(256) as u8);
                stream.extend(&model[at..at + len]);
            }
            assert_eq!(feed(&mut decoder, &copy, &stream, rng), Ok(loudest));
            assert_eq!((decoder.left, decoder.piece_len), (0, 0));
            let mut seen = vec![0; ROW];
            copy.copy_out(0, &mut seen);
            assert!(seen == model);
        }
    }

    /// Expected result of a damaged stream: records up to the first invalid one, and of the
    /// last one its whole words.
    fn literally(stream: &[u8], row: &mut [u8]) -> Result<(), RecordError> {
        let (mut rest, mut open) = (stream, vec![]);
        while let Some((header, after)) = rest.split_first_chunk() {
            rest = after;
            let header = Header::decode(*header)?;
            if let Header::Open { slot, .. } = header {
                if open.contains(&slot) {
                    return Err(RecordError::OpenTwice { slot });
                }
                open.push(slot);
            }
            if let Header::Write { slot, .. } | Header::Shut { slot } = header
                && !open.contains(&slot)
            {
                return Err(RecordError::NotOpen { slot });
            }
            if let Header::Shut { slot } = header {
                open.retain(|&open| open != slot);
            }
            if let Header::Write { at, len, .. } = header {
                if at + len > row.len() {
                    let row = row.len();
                    return Err(RecordError::Outside { at, len, row });
                }
                let there = len.min(rest.len());
                let whole = there & !7;
                row[at..at + whole].copy_from_slice(&rest[..whole]);
                rest = &rest[there..];
            }
        }
        Ok(())
    }

    /// A hundred thousand records with some bytes changed: no panic, no torn word, no write
    /// outside the columns, and the same result for all pieces.
    #[test]
    fn damaged_streams_write_nothing_outside_their_records() {
        let rng = &mut Rng::new(2);
        let mut errors = 0;
        for round in 0..20_000 {
            let mut stream = Header::Open { slot: 5, key: KEY }.encode().to_vec();
            for record in 1..=5 {
                let (at, len) = random_write(rng);
                stream.extend(Header::Write { slot: 5, at, len }.encode());
                stream.resize(stream.len() + len, record);
            }
            for _ in 0..1 + rng.below(3) {
                // Headers and bodies alike; the first header more often.
                let among = [HEADER_LEN, stream.len()][rng.below(2)];
                stream[rng.below(among)] = rng.below(256) as u8;
            }
            stream.truncate(stream.len() - rng.below(100).min(stream.len() - 1));
            let copy = Region::heap(ROW);
            let fed = feed(&mut Decoder::default(), &copy, &stream, rng);
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

    #[test]
    fn records_of_a_segment_wait_until_it_is_open() {
        let copy = Region::heap(ROW);
        let word = |value: u64| {
            let at = FABRIC_AREA;
            let header = Header::Write {
                slot: 0,
                at,
                len: 8,
            }
            .encode();
            [&header[..], &value.to_le_bytes()].concat()
        };
        let open = Header::Open { slot: 0, key: KEY }.encode();
        let ring = Header::Wake(WakeReason::Data).encode();
        let stream = [&open[..], &word(7), &ring].concat();
        let mut decoder = Decoder::default();
        let early = decoder.feed(&stream, |_| RowTarget::NotOpenYet);
        assert_eq!(
            early.map(|fed| (fed.taken, fed.wake)),
            Ok((HEADER_LEN, None))
        );
        assert!(decoder.is_waiting());
        let rest = &stream[HEADER_LEN..];
        assert_eq!(
            decoder.feed(rest, |_| RowTarget::NotOpenYet),
            Ok(Decoded::default())
        );
        let fed = decoder.feed(rest, |key| {
            assert_eq!(key, KEY);
            RowTarget::Copy(copy.clone())
        });
        let (taken, wake) = (rest.len(), Some(WakeReason::Data));
        assert_eq!(fed.map(|it| (it.taken, it.wake)), Ok((taken, wake)));
        assert_eq!(copy.load(FABRIC_AREA), 7);
        // Fenced in the middle of a record.
        let (one, other) = (word(8), word(9));
        let feed =
            |decoder: &mut Decoder, bytes: &[u8]| decoder.feed(bytes, |_| RowTarget::NotOpenYet);
        feed(&mut decoder, &one[..20]).expect("a part");
        decoder.close_segment(KEY);
        feed(&mut decoder, &[&one[20..], &other].concat()).expect("the rest");
        assert_eq!(copy.load(FABRIC_AREA), 7);
        let shut = Header::Shut { slot: 0 }.encode();
        feed(&mut decoder, &shut).expect("a record");
        let error = feed(&mut decoder, &other);
        assert_eq!(error, Err(RecordError::NotOpen { slot: 0 }));
        let stranger = Decoder::default().feed(&open, |_| RowTarget::NotAMember);
        assert!(stranger.is_err());
    }
}
