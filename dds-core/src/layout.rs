//! Where everything stands in a row.
//!
//! ```text
//!   fabric area | left | subgroup 0 of mine | subgroup 1 of mine | ...
//!
//!   a subgroup:  acks     received_num, received[n], delivered_num,
//!                         released[n], released_unordered[n]
//!                digests  count, 8 x (position, digest)
//!                if I send there, for each of my rings:
//!                         guard | headers | payload
//! ```
//!
//! Blocks are aligned to [`ROW_ALIGN`]. All words count up from 0, as
//! exclusive ends: a zeroed row promises nothing. A member that does not send
//! has no ring; who is not in a subgroup has no columns of it. The layout is a
//! pure function of the view, so every member computes every row's.

use spindle_dds_transport::mem::ROW_ALIGN;
use spindle_dds_transport::{FABRIC_AREA, Rank};

use crate::limits::{DIGESTS_KEPT, HEADER_LEN};
use crate::spec::{RingSpec, SpecError, SubgroupSpec, ViewSpec};

/// Byte offset of the word by which a member says that it has left for good:
/// its guards are final. 0 or 1.
pub(crate) const LEFT_WORD: usize = FABRIC_AREA;

/// The layout of every row of a view.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    rows: Vec<RowLayout>,
}

/// The layout of one row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RowLayout {
    pub(crate) len: usize,
    /// By subgroup; most may be empty, and then take no more than a pointer.
    pub(crate) subgroups: Vec<Option<Box<Columns>>>,
}

/// A subgroup's columns in one member's row: byte offsets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Columns {
    /// `received_num`; the counts for each sender follow it.
    pub(crate) received_num: usize,
    /// `delivered_num`; `released` of both rings follow it.
    pub(crate) delivered_num: usize,
    pub(crate) senders: usize,
    /// Number of checkpoints taken; the last eight follow it.
    pub(crate) digest_count: usize,
    pub(crate) rings: [Option<RingColumns>; 2],
}

impl Columns {
    pub(crate) const fn received(&self, sender: usize) -> usize {
        self.received_num + 8 + sender * 8
    }

    /// Bytes of the received block: what a receive batch pushes.
    pub(crate) const fn received_len(&self) -> usize {
        8 + self.senders * 8
    }

    pub(crate) const fn released(&self, ring: usize, sender: usize) -> usize {
        self.delivered_num + 8 + (ring * self.senders + sender) * 8
    }

    /// Bytes of the delivered block: what a delivery batch pushes.
    pub(crate) const fn delivered_len(&self) -> usize {
        8 + 2 * self.senders * 8
    }

    pub(crate) const fn digest_slot(&self, checkpoint: u64) -> usize {
        self.digest_count + 8 + (checkpoint % DIGESTS_KEPT) as usize * 16
    }
}

/// A ring in its sender's row: byte offsets and sizes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RingColumns {
    pub(crate) guard: usize,
    pub(crate) headers: usize,
    pub(crate) payload: usize,
    pub(crate) spec: RingSpec,
}

impl RingColumns {
    /// Offset of the header of the `real`th real message of the ring.
    pub(crate) const fn header(&self, real: u64) -> usize {
        self.headers + self.slot(real) * HEADER_LEN
    }

    pub(crate) const fn slot(&self, real: u64) -> usize {
        (real & (self.spec.messages as u64 - 1)) as usize
    }
}

impl Layout {
    /// Computes the layout of a view.
    pub fn new(spec: &ViewSpec) -> Result<Self, SpecError> {
        spec.check()?;
        let rows = (0..spec.members)
            .map(|rank| row(spec, Rank(rank as u16)))
            .collect();
        Ok(Self { rows })
    }

    /// Bytes of each member's row, by rank: what the fabric has to provide.
    pub fn row_lens(&self) -> Vec<usize> {
        self.rows.iter().map(|row| row.len).collect()
    }

    pub(crate) fn columns(&self, rank: Rank, subgroup: usize) -> Option<&Columns> {
        self.rows[rank.index()].subgroups[subgroup].as_deref()
    }
}

fn row(spec: &ViewSpec, rank: Rank) -> RowLayout {
    let mut len = LEFT_WORD + ROW_ALIGN;
    let subgroups = spec
        .subgroups
        .iter()
        .map(|group| columns(group, rank, &mut len).map(Box::new))
        .collect();
    RowLayout { len, subgroups }
}

fn columns(group: &SubgroupSpec, rank: Rank, len: &mut usize) -> Option<Columns> {
    group.members.binary_search(&rank).ok()?;
    let mut block = |bytes: usize| {
        let at = *len;
        *len += bytes.next_multiple_of(ROW_ALIGN);
        at
    };
    let senders = group.senders.len();
    let received_num = block(8 + senders * 8);
    let delivered_num = block(8 + 2 * senders * 8);
    let digest_count = block(8 + DIGESTS_KEPT as usize * 16);
    let mine = group.senders.iter().find(|sender| sender.rank == rank);
    let rings = [0, 1].map(|ring| {
        let spec = mine?.rings[ring]?;
        Some(RingColumns {
            guard: block(8),
            headers: block(spec.messages as usize * HEADER_LEN),
            payload: block(spec.bytes as usize),
            spec,
        })
    });
    Some(Columns {
        received_num,
        delivered_num,
        senders,
        digest_count,
        rings,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::SenderSpec;

    fn view() -> ViewSpec {
        let ring = Some(RingSpec {
            messages: 4,
            bytes: 256,
        });
        ViewSpec {
            view_id: 1,
            members: 3,
            subgroups: vec![
                SubgroupSpec {
                    members: vec![Rank(0), Rank(2)],
                    senders: vec![SenderSpec {
                        rank: Rank(2),
                        rings: [ring, None],
                    }],
                    topics: vec![],
                },
                SubgroupSpec {
                    members: vec![Rank(0), Rank(1), Rank(2)],
                    senders: vec![
                        SenderSpec {
                            rank: Rank(0),
                            rings: [ring, ring],
                        },
                        SenderSpec {
                            rank: Rank(1),
                            rings: [None, ring],
                        },
                    ],
                    topics: vec![],
                },
            ],
        }
    }

    #[test]
    fn the_layout_is_this_one() {
        let layout = Layout::new(&view()).unwrap();
        insta::assert_debug_snapshot!(layout);
    }

    #[test]
    fn views_that_cannot_be_are_refused() {
        let check = |change: &dyn Fn(&mut ViewSpec)| {
            let mut spec = view();
            change(&mut spec);
            Layout::new(&spec).unwrap_err().to_string()
        };
        let errors = [
            check(&|v| v.members = 0),
            check(&|v| v.members = 257),
            check(&|v| v.members = 2),
            check(&|v| v.subgroups[1].members.reverse()),
            check(&|v| v.subgroups[0].senders[0].rank = Rank(1)),
            check(&|v| {
                v.subgroups[0].senders[0].rings[0] = Some(RingSpec {
                    messages: 3,
                    bytes: 256,
                })
            }),
            check(&|v| {
                v.subgroups[0].senders[0].rings[0] = Some(RingSpec {
                    messages: 4,
                    bytes: 64,
                })
            }),
            check(&|v| v.subgroups[0].topics = vec![crate::TopicKey(7), crate::TopicKey(7)]),
        ];
        insta::assert_debug_snapshot!(errors);
    }
}
