//! Where things stand in rows, by name: for tests that overwrite them.

use core::ops::Range;

use spindle_dds_transport::Rank;

use crate::limits::HEADER_LEN;
use crate::membership::control_landmarks;
use crate::spec::{SpecError, SubgroupSpec};
use crate::subgroup::layout::SegmentLayout;

/// What stands somewhere in a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Landmark {
    /// What has been received.
    Received,
    /// What has been delivered and released.
    Released,
    /// How many checkpoints of the digest there are, and those.
    Digests,
    /// The guard of a ring.
    Guard,
    /// Its headers.
    Headers,
    /// Its payload.
    Payload,
    /// In a control row: whom the member suspects, or knows to be dead.
    Sets,
    /// Its heartbeat.
    Heartbeat,
    /// How far it is wedged.
    Wedged,
    /// Whether it has committed.
    Committed,
    /// The guards of its texts.
    TextGuards,
    /// What it asks for, intends, reports or proposes.
    Text,
}

/// Byte ranges of the row of a member of an epoch, by its place.
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
            block(columns.delivered_num, columns.delivered_len()),
        ),
        (Landmark::Digests, block(columns.digest_count, 8 + 16)),
    ];
    for ring in columns.rings.iter().flatten() {
        let headers = ring.spec.messages as usize * HEADER_LEN;
        all.push((Landmark::Guard, block(ring.guard, 8)));
        all.push((Landmark::Headers, block(ring.headers, headers)));
        all.push((
            Landmark::Payload,
            block(ring.payload, ring.spec.memory() as usize),
        ));
    }
    Ok(all)
}

/// Byte ranges of a row of the control segment.
pub fn of_control() -> Vec<(Landmark, Range<usize>)> {
    control_landmarks()
}
