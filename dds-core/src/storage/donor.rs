//! The side that gives history.

use std::collections::BTreeMap;

use super::history::Snapshot;
use super::record::{Cursor, PART_LEN_MAX, Record};

/// Parts that a joiner grants at first: one is read while the other is on its way.
pub const PARTS_GRANTED: u32 = 2;

/// What is to be sent to a joiner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DonorReply {
    /// The next records, one behind the other: at most [`PART_LEN_MAX`] bytes, or a single record.
    Part(Vec<u8>),
    /// All was sent.
    End {
        /// The last sequence number of each writer before the boundary, whether its record is kept or not.
        lasts: Vec<([u8; 16], u64)>,
    },
    /// Nothing is pinned under this name: never was, or it was not asked for in time.
    Unknown,
}

/// Snapshots that are pinned for joiners, each under the name of a transfer, and how far they are
/// sent. What is pinned is history as it was at the boundary, whatever is written meanwhile.
#[derive(Debug)]
pub struct Donor<J> {
    pinned: BTreeMap<J, Pinned>,
    part_len_max: usize,
}

#[derive(Debug)]
struct Pinned {
    snapshot: Snapshot,
    /// What the joiner has of each writer already.
    after: BTreeMap<[u8; 16], u64>,
    /// Index of the next record.
    next: usize,
    /// Parts that may be sent.
    granted: u32,
    /// When the joiner has last asked for anything.
    asked_at_ns: u64,
}

impl<J> Default for Donor<J> {
    fn default() -> Self {
        Self::with_parts_of(PART_LEN_MAX)
    }
}

impl<J> Donor<J> {
    /// Its parts have at most so many bytes, or are a single record.
    pub fn with_parts_of(part_len_max: usize) -> Self {
        Self {
            pinned: BTreeMap::new(),
            part_len_max,
        }
    }
}

impl<J: Ord + Clone> Donor<J> {
    /// Keeps a snapshot for a transfer until all of it is sent, or it is dropped.
    pub fn pin(&mut self, transfer: J, snapshot: Snapshot, now_ns: u64) {
        let pinned = Pinned {
            snapshot,
            after: BTreeMap::new(),
            next: 0,
            granted: 0,
            asked_at_ns: now_ns,
        };
        self.pinned.insert(transfer, pinned);
    }

    /// Whether anything is pinned for a transfer.
    pub fn has(&self, transfer: &J) -> bool {
        self.pinned.contains_key(transfer)
    }

    /// The joiner of a transfer asks for the records from a place on, if it has got some from
    /// another donor, but for those that it has: up to and with a sequence number of each writer. It
    /// grants so many parts. A joiner that asks again begins again at that place.
    pub fn ask(
        &mut self,
        transfer: &J,
        after: BTreeMap<[u8; 16], u64>,
        from: Option<Cursor>,
        parts: u32,
        now_ns: u64,
    ) -> Vec<DonorReply> {
        let Some(pinned) = self.pinned.get_mut(transfer) else {
            return vec![DonorReply::Unknown];
        };
        pinned.next = pinned.snapshot.after(from);
        pinned.after = after;
        pinned.granted = parts.min(PARTS_GRANTED);
        self.send(transfer, now_ns)
    }

    /// The joiner has read a part, and grants another one. It grants the parts after the last one, too:
    /// it ignores that these are unknown, as it knows the end.
    pub fn more(&mut self, transfer: &J, now_ns: u64) -> Vec<DonorReply> {
        let Some(pinned) = self.pinned.get_mut(transfer) else {
            return vec![DonorReply::Unknown];
        };
        pinned.granted = (pinned.granted + 1).min(PARTS_GRANTED);
        self.send(transfer, now_ns)
    }

    /// The joiner of a transfer says that it goes on, and grants nothing. False if nothing is pinned for
    /// it.
    pub fn touch(&mut self, transfer: &J, now_ns: u64) -> bool {
        let pinned = self.pinned.get_mut(transfer);
        pinned.map(|it| it.asked_at_ns = now_ns).is_some()
    }

    fn send(&mut self, transfer: &J, now_ns: u64) -> Vec<DonorReply> {
        let Some(pinned) = self.pinned.get_mut(transfer) else {
            return Vec::new();
        };
        pinned.asked_at_ns = now_ns;
        let mut replies = Vec::new();
        while pinned.granted > 0
            && let Some(part) = pinned.next_part(self.part_len_max)
        {
            pinned.granted -= 1;
            replies.push(DonorReply::Part(part));
        }
        if pinned.is_sent() {
            let lasts = pinned.snapshot.lasts();
            let lasts = lasts.iter().map(|(writer, last)| (*writer, *last));
            replies.push(DonorReply::End {
                lasts: lasts.collect(),
            });
            self.pinned.remove(transfer);
        }
        replies
    }

    /// Drops what is pinned for some transfers: their readers are gone.
    pub fn drop_if(&mut self, mut is_gone: impl FnMut(&J) -> bool) {
        self.pinned.retain(|transfer, _| !is_gone(transfer));
    }

    /// Drops what no joiner has asked for within `limit_ns`. Returns those transfers.
    pub fn expire(&mut self, now_ns: u64, limit_ns: u64) -> Vec<J> {
        let is_late = |pinned: &Pinned| now_ns.saturating_sub(pinned.asked_at_ns) > limit_ns;
        let late = self.pinned.iter().filter(|(_, pinned)| is_late(pinned));
        let late: Vec<J> = late.map(|(transfer, _)| transfer.clone()).collect();
        for transfer in &late {
            self.pinned.remove(transfer);
        }
        late
    }

    /// Transfers for which a snapshot is pinned: their names, and the records that are left.
    pub fn transfers(&self) -> impl Iterator<Item = (&J, usize)> {
        let left = |it: &Pinned| it.snapshot.records().len() - it.next;
        self.pinned.iter().map(move |(name, it)| (name, left(it)))
    }
}

impl Pinned {
    /// Goes on to the next record that the joiner does not have.
    fn peek(&mut self) -> Option<&Record> {
        loop {
            let record = self.snapshot.records().get(self.next)?;
            let Cursor {
                writer, sequence, ..
            } = record.cursor();
            if self.after.get(&writer).is_none_or(|had| sequence > *had) {
                return self.snapshot.records().get(self.next);
            }
            self.next += 1;
        }
    }

    fn is_sent(&mut self) -> bool {
        self.peek().is_none()
    }

    fn next_part(&mut self, len_max: usize) -> Option<Vec<u8>> {
        let mut part = Vec::new();
        while let Some(record) = self.peek() {
            let bytes = record.bytes();
            if !part.is_empty() && part.len() + bytes.len() > len_max {
                break;
            }
            part.extend_from_slice(bytes);
            self.next += 1;
        }
        (!part.is_empty()).then_some(part)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::storage::{HistoryLimits, SampleHistory};

    fn snapshot(of: impl IntoIterator<Item = Record>) -> Snapshot {
        let mut history = SampleHistory::default();
        for record in of {
            history.put([1; 16], record, &HistoryLimits::default(), 0);
        }
        history.snapshot()
    }

    fn sequences(part: &DonorReply) -> Vec<u64> {
        let DonorReply::Part(bytes) = part else {
            return Vec::new();
        };
        let mut rest = &bytes[..];
        let read = core::iter::from_fn(|| Record::read(&mut rest));
        read.map(|it| it.meta().sequence).collect()
    }

    fn large(sequence: u64) -> Record {
        let meta = Record::test(1, sequence, 1, sequence).meta();
        Record::new(&meta, &vec![7; 300 << 10])
    }

    #[test]
    fn a_joiner_gets_the_parts_that_it_grants() {
        let mut donor = Donor::default();
        donor.pin(1, snapshot((1..=4).map(large)), 0);
        let replies = donor.ask(&1, BTreeMap::new(), None, 9, 1);
        assert_eq!(
            replies.iter().map(sequences).collect::<Vec<_>>(),
            [[1], [2]]
        );
        assert_eq!(sequences(&donor.more(&1, 2)[0]), [3]);
        let last = donor.more(&1, 3);
        assert_eq!(sequences(&last[0]), [4]);
        let lasts = vec![([1; 16], 4)];
        assert_eq!(last[1..], [DonorReply::End { lasts }]);
        assert!(!donor.has(&1));
        assert_eq!(donor.more(&1, 4), [DonorReply::Unknown]);
        let again = donor.ask(&1, BTreeMap::new(), None, 2, 5);
        assert_eq!(again, [DonorReply::Unknown]);
    }

    #[test]
    fn what_a_joiner_has_is_left_out() {
        let mut donor = Donor::default();
        let all = || (1..=9).map(|at| Record::test(1, at, 1, 10 * at));
        donor.pin("from the middle", snapshot(all()), 0);
        donor.pin("it has all", snapshot(all()), 0);
        let from = Record::test(1, 4, 1, 40).cursor();
        let replies = donor.ask(&"from the middle", [([1; 16], 6)].into(), Some(from), 2, 0);
        assert_eq!(sequences(&replies[0]), [7, 8, 9]);
        let replies = donor.ask(&"it has all", [([1; 16], 9)].into(), None, 2, 0);
        assert!(
            matches!(&replies[..], [DonorReply::End { .. }]),
            "{replies:?}"
        );
    }

    #[test]
    fn what_is_not_asked_for_is_dropped() {
        let mut donor = Donor::default();
        for transfer in 1..=3 {
            donor.pin(transfer, snapshot((1..=9).map(large)), 0);
        }
        donor.ask(&2, BTreeMap::new(), None, 2, 80);
        donor.drop_if(|transfer| *transfer == 3);
        assert_eq!(donor.expire(150, 100), [1]);
        assert_eq!(donor.transfers().collect::<Vec<_>>(), [(&2, 7)]);
        assert_eq!(donor.expire(300, 100), [2]);
        assert_eq!(donor.more(&2, 301), [DonorReply::Unknown]);
    }
}
