//! Byte ranges of rows, by name: for tests that overwrite them, or look into them.

use core::ops::Range;

use spindle_dds_transport::Rank;
use spindle_dds_transport::memory::Region;

use crate::limits::HEADER_LEN;
use crate::membership::{control_landmarks, steps_of_end};
use crate::spec::{SpecError, SubgroupSpec};
use crate::subgroup::layout::SegmentLayout;

/// A part of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Landmark {
    /// Received counts.
    Received,
    /// Delivered and released counts.
    Released,
    /// Count of digest checkpoints, and the checkpoints.
    Digests,
    /// The guard of a ring.
    Guard,
    /// The word that says where a ring was restarted.
    Restart,
    /// The message headers of a ring.
    Headers,
    /// The payload bytes of a ring.
    Payload,
    /// In a control row: the sets of suspected and failed members.
    Sets,
    /// In a control row: the heartbeat.
    Heartbeat,
    /// In a control row: the wedge state.
    Wedged,
    /// In a control row: the committed proposal.
    Committed,
    /// In a control row: the guards of its texts.
    TextGuards,
    /// In a control row: requests, intent, report and proposal.
    Text,
}

/// Byte ranges of a member's row of a subgroup epoch. `place` is the member's place.
pub fn of_subgroup(
    spec: &SubgroupSpec,
    place: Rank,
) -> Result<Vec<(Landmark, Range<usize>)>, SpecError> {
    let layout = SegmentLayout::new(spec)?;
    let columns = layout.columns(place);
    let block = |at: usize, len: usize| at..at + len;
    let mut all = vec![
        (
            Landmark::Received,
            block(columns.received_num, columns.received_len()),
        ),
        (
            Landmark::Released,
            block(columns.delivered_num, columns.delivered_len),
        ),
        (Landmark::Digests, block(columns.digest_count, 8 + 16)),
    ];
    for ring in columns.rings.iter().flatten() {
        let headers = ring.spec.messages as usize * HEADER_LEN;
        all.push((Landmark::Guard, block(ring.guard, 8)));
        all.push((Landmark::Restart, block(ring.restart(), 8)));
        all.push((Landmark::Headers, block(ring.headers, headers)));
        all.push((
            Landmark::Payload,
            block(ring.payload, ring.spec.memory() as usize),
        ));
    }
    Ok(all)
}

/// Byte ranges of a row of a control segment.
pub fn of_control() -> Vec<(Landmark, Range<usize>)> {
    control_landmarks()
}

/// How many of the steps that end a view a member has taken, as its control row says: it has
/// wedged, reported its counts, proposed or echoed, committed. A suspicion takes it back to the
/// first, as it ends more of the view.
pub fn view_end_steps(row: &Region) -> usize {
    steps_of_end(row)
}
