//! The layout of a row of an epoch's segment.
//!
//! ```text
//!   an epoch's row:  fabric area
//!                  acks     received_num, received[n], delivered_num,
//!                           released[n], released_unordered[n], ready,
//!                           persisted, if any topic has logs
//!                  digests  count, 8 x (position, digest)
//!                  for each own ring, in the row of a sender:
//!                           guard | headers | payload
//! ```
//!
//! Invariants: blocks are aligned to [`ROW_ALIGN`]. All words count up from 0 as exclusive ends,
//! so a zeroed row claims nothing. A member that does not send has no ring. The layout is a pure
//! function of the epoch's specification, so every member computes the layout of every row.

use spindle_dds_transport::memory::ROW_ALIGN;
use spindle_dds_transport::{FABRIC_AREA, Rank};

use crate::limits::{DIGESTS_KEPT, HEADER_LEN};
use crate::spec::{RingSpec, SpecError, SubgroupSpec};

/// The layout of every row of an epoch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SegmentLayout {
    /// By rank in the epoch.
    rows: Vec<RowLayout>,
}

/// The layout of one row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RowLayout {
    /// Bytes of the row.
    pub(crate) len: usize,
    pub(crate) columns: Columns,
}

/// Byte offsets of a member's columns in its row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Columns {
    /// Offset of `received_num`; the counts received of each sender follow it.
    pub(crate) received_num: usize,
    /// Offset of `delivered_num`; `released` of both classes, `ready` and `persisted` follow it.
    pub(crate) delivered_num: usize,
    /// Bytes of the block that acknowledges delivery and release.
    pub(crate) delivered_len: usize,
    /// Offset of the position below which everything is durable at the member; `None` where no topic
    /// has logs.
    pub(crate) persisted: Option<usize>,
    /// Number of senders: length of the columns with one word for each sender.
    pub(crate) senders: usize,
    /// Offset of the number of checkpoints taken; the last eight checkpoints follow it.
    pub(crate) digest_count: usize,
    /// By class; `None` where the member has no such ring.
    pub(crate) rings: [Option<RingColumns>; 2],
}

impl Columns {
    pub(crate) const fn received(&self, sender: usize) -> usize {
        self.received_num + 8 + sender * 8
    }

    /// Bytes of the block that acknowledges receipt.
    pub(crate) const fn received_len(&self) -> usize {
        8 + self.senders * 8
    }

    pub(crate) const fn released(&self, ring: usize, sender: usize) -> usize {
        self.delivered_num + 8 + (ring * self.senders + sender) * 8
    }

    /// Offset of the word that says whether the member is ready for the epoch's messages: 0 or 1.
    pub(crate) const fn ready(&self) -> usize {
        self.released(2, 0)
    }

    pub(crate) const fn digest_slot(&self, checkpoint: u64) -> usize {
        self.digest_count + 8 + (checkpoint % DIGESTS_KEPT) as usize * 16
    }
}

/// Byte offsets of a ring in its sender's row, and its sizes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RingColumns {
    /// Offset of the guard: the number of messages sent, nulls included. The index of the message
    /// before which the ring was restarted last follows it.
    pub(crate) guard: usize,
    /// Offset of the header slots.
    pub(crate) headers: usize,
    /// Offset of the payload ring.
    pub(crate) payload: usize,
    pub(crate) spec: RingSpec,
}

impl RingColumns {
    /// Offset of the index of the message before which the ring was restarted last.
    pub(crate) const fn restart(&self) -> usize {
        self.guard + 8
    }

    /// Offset of the header of the real message with this number.
    pub(crate) const fn header(&self, real: u64) -> usize {
        self.headers + self.slot(real) * HEADER_LEN
    }

    /// Number of header slots from this message's slot to the end of the ring.
    pub(crate) const fn stretch(&self, real: u64) -> u64 {
        self.spec.messages as u64 - self.slot(real) as u64
    }

    pub(crate) const fn slot(&self, real: u64) -> usize {
        (real & (self.spec.messages as u64 - 1)) as usize
    }
}

impl SegmentLayout {
    /// Computes the layout of an epoch.
    pub fn new(spec: &SubgroupSpec) -> Result<Self, SpecError> {
        spec.check()?;
        let rows = (0..spec.members.len())
            .map(|place| row(spec, Rank(place as u16)))
            .collect();
        Ok(Self { rows })
    }

    /// Bytes of each member's row, by rank in the epoch: the minimum that the segment must provide.
    pub fn row_lens(&self) -> Vec<usize> {
        self.rows.iter().map(|row| row.len).collect()
    }

    pub(crate) fn columns(&self, place: Rank) -> &Columns {
        &self.rows[place.index()].columns
    }
}

fn row(spec: &SubgroupSpec, place: Rank) -> RowLayout {
    let mut len = FABRIC_AREA;
    let mut block = |bytes: usize| {
        let at = len;
        len += bytes.next_multiple_of(ROW_ALIGN);
        at
    };
    let senders = spec.senders.len();
    let received_num = block(8 + senders * 8);
    let behind_ready = 8 + 2 * senders * 8 + 8;
    let delivered_len = behind_ready + 8 * usize::from(spec.is_logged);
    let delivered_num = block(delivered_len);
    let digest_count = block(8 + DIGESTS_KEPT as usize * 16);
    let mine = spec.senders.iter().find(|sender| sender.rank == place);
    let rings = [0, 1].map(|ring| {
        let spec = mine?.rings[ring]?;
        Some(RingColumns {
            guard: block(16),
            headers: block(spec.messages as usize * HEADER_LEN),
            payload: block(spec.memory() as usize),
            spec,
        })
    });
    RowLayout {
        columns: Columns {
            received_num,
            delivered_num,
            delivered_len,
            persisted: spec.is_logged.then_some(delivered_num + behind_ready),
            senders,
            digest_count,
            rings,
        },
        len,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{SubgroupId, TopicKey};
    use crate::spec::SenderSpec;

    fn subgroup() -> SubgroupSpec {
        let ring = Some(RingSpec {
            messages: 4,
            bytes: 256,
        });
        let sender = |place, rings| SenderSpec {
            rank: Rank(place),
            rings,
        };
        SubgroupSpec {
            subgroup: SubgroupId(3),
            epoch: 1,
            base: 0,
            members: vec![Rank(0), Rank(4), Rank(2)],
            senders: vec![sender(0, [ring, ring]), sender(1, [None, ring])],
            topics: vec![],
            is_logged: false,
        }
    }

    #[test]
    fn the_layout_is_fixed() {
        let layout = SegmentLayout::new(&subgroup()).unwrap();
        insta::assert_debug_snapshot!(layout);
    }

    #[test]
    fn invalid_specifications_are_refused() {
        let check = |change: &dyn Fn(&mut SubgroupSpec)| {
            let mut spec = subgroup();
            change(&mut spec);
            SegmentLayout::new(&spec).unwrap_err().to_string()
        };
        let ring = |messages, bytes| Some(RingSpec { messages, bytes });
        let errors = [
            check(&|subgroup| subgroup.members.clear()),
            check(&|subgroup| subgroup.members = (0..257).map(Rank).collect()),
            check(&|subgroup| subgroup.members[1] = Rank(2)),
            check(&|subgroup| subgroup.senders.reverse()),
            check(&|subgroup| subgroup.senders[1].rank = Rank(3)),
            check(&|subgroup| subgroup.senders[0].rings[0] = ring(3, 256)),
            check(&|subgroup| subgroup.senders[0].rings[0] = ring(4, 64)),
            check(&|subgroup| subgroup.senders[0].rings[0] = ring(4, 136)),
            check(&|subgroup| subgroup.topics = vec![TopicKey(7), TopicKey(7)]),
        ];
        insta::assert_debug_snapshot!(errors);
    }

    #[test]
    fn the_order_ends_after_every_delivered_message() {
        let mut subgroup = subgroup();
        subgroup.base = 100;
        subgroup.senders[1].rings[0] = subgroup.senders[0].rings[0];
        let ends = [[0, 0], [1, 0], [0, 1], [2, 1], [2, 3]].map(|counts| subgroup.end(&counts));
        assert_eq!(ends, [100, 101, 102, 103, 106]);
    }
}
