//! Forges words in rows on their way to the others: at random, and with values that may confuse a
//! reader.
//!
//! A value that violates the protocol must be detected. Lies within the protocol are believed, as
//! members trust each other: suspicions, echoes, commits, their own messages. So they are not
//! forged.

use core::ops::Range;
use std::sync::Arc;

use spindle_dds_core::landmarks::{Landmark, of_control, of_subgroup};
use spindle_dds_core::membership::{CONTROL_ROW_LEN, View};
use spindle_dds_core::{SegmentLayout, SubgroupSpec};
use spindle_dds_transport::sim::{Rng, SegmentId, SimNetwork};
use spindle_dds_transport::{FABRIC_AREA, Rank};

/// Forges words in the rows of hostile members.
#[derive(Debug)]
pub(super) struct RowForger {
    rng: Rng,
    /// Words still to be forged.
    pub(super) left: usize,
    pub(super) written: usize,
}

/// What a hostile member can forge.
pub(super) struct Target<'a> {
    pub(super) view: &'a Arc<View>,
    pub(super) me: Rank,
    pub(super) control: SegmentId,
    /// Subgroups that it is in, with their segments.
    pub(super) subgroups: Vec<(&'a SubgroupSpec, SegmentId)>,
}

impl RowForger {
    pub(super) fn new(seed: u64, words: usize) -> Self {
        Self {
            rng: Rng::new(seed ^ 0xbad_bad),
            left: words,
            written: 0,
        }
    }

    /// Forges some words, or none. `preference` is the member's: the words that it prefers.
    pub(super) fn act(&mut self, network: &SimNetwork, target: &Target<'_>, preference: usize) {
        if self.left == 0 || !self.rng.chance(0.1) {
            return;
        }
        for _ in 0..(1 + self.rng.below(96)).min(self.left) {
            let epoch = self.rng.pick(&target.subgroups).copied();
            let (segment, row, spots, len) = match epoch {
                Some((spec, segment)) if preference.is_multiple_of(2) => {
                    let place = spec.members.iter().position(|rank| *rank == target.me);
                    let place = Rank(place.unwrap_or_default() as u16);
                    let spots = of_subgroup(spec, place).unwrap_or_default();
                    let lens = SegmentLayout::new(spec).map(|layout| layout.row_lens());
                    let len = lens.map_or(0, |lens| lens[place.index()]);
                    (segment, place, spots, len)
                }
                _ => (target.control, target.me, of_control(), CONTROL_ROW_LEN),
            };
            if len <= FABRIC_AREA {
                continue;
            }
            let spot = match self.rng.below(8) {
                0 => None,
                1 => self.rng.pick(&spots).cloned(),
                _ => spots.get((preference / 2) % spots.len()).cloned(),
            };
            let (at, value) = match spot {
                None => (self.within(&(FABRIC_AREA..len)), self.rng.next_u64()),
                Some((landmark, range)) => {
                    (self.within(&range), self.choose(landmark, target.view))
                }
            };
            network.forge(segment, row, at, value);
            self.left -= 1;
            self.written += 1;
        }
    }

    fn within(&mut self, range: &Range<usize>) -> usize {
        range.start + self.rng.below(range.len() / 8) * 8
    }

    /// A value that may confuse a reader.
    fn choose(&mut self, landmark: Landmark, view: &View) -> u64 {
        let random = self.rng.next_u64();
        let among = |rng: &mut Rng, values: &[u64]| values[rng.below(values.len())];
        let rng = &mut self.rng;
        match landmark {
            // The word falls, or rises beyond what was sent.
            Landmark::Received => among(rng, &[0, 1 << 40, u64::MAX, random | 1 << 63]),
            Landmark::Released => among(rng, &[0, 1, 1 << 40, u64::MAX, random]),
            Landmark::Digests => among(rng, &[0, 1, 1 << 40, u64::MAX, random]),
            // It falls, or is ahead of the data, by a little or beyond everything.
            Landmark::Guard => among(rng, &[0, 1, 9, 30, 500, 1 << 47, u64::MAX, random]),
            // It falls, or comes before a message that is held.
            Landmark::Restart => among(rng, &[0, 1, 9, 30, 500, 1 << 47, u64::MAX, random]),
            // Offsets past the ring, lengths that overflow, unknown kinds.
            Landmark::Headers => among(rng, &[0, u64::MAX, 0xffff_ffff, 0xffff_fff0 << 32, random]),
            Landmark::Payload | Landmark::Heartbeat => random,
            // Some members of the view and some that do not exist: the whole set must be refused.
            Landmark::Sets => match view.members.len() {
                0..64 => random | 1 << 63,
                _ => 0,
            },
            Landmark::Wedged | Landmark::Committed => among(rng, &[3, 77, u64::MAX, random | 4]),
            // Lengths beyond the text, labels of unknown members.
            Landmark::TextGuards => {
                among(rng, &[0, 2, 64, 1 << 19, (1 << 40) - 1, u64::MAX, random])
            }
            Landmark::Text => among(rng, &[u64::MAX, random, random | 0x8080_8080_8080_8080]),
        }
    }
}
