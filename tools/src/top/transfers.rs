//! History that readers are getting.

use serde::Serialize;
use spindle_dds::monitor::ParticipantFigures;

use super::scene::Names;

/// History that readers of one participant are getting, on one topic.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(super) struct Transfer {
    pub(super) topic: String,
    /// The participant of the reader.
    pub(super) participant: String,
    /// The participants that are asked for it now. Empty if only its own is, or if all has come and the
    /// reader has not accepted it yet.
    pub(super) donors: Vec<String>,
    /// Samples and changes of instance states that have come.
    pub(super) samples: u64,
    /// Their bytes: 64 for each beside its payload.
    pub(super) bytes: u64,
}

/// The transfers that are under way, by topic and participant.
pub(super) fn transfers(all: &[&ParticipantFigures], names: &Names) -> Vec<Transfer> {
    let of_one = |one: &ParticipantFigures| {
        let participant = names.of(&one.member);
        let transfers = one.transfers.iter().map(|told| Transfer {
            topic: told.topic.clone(),
            participant: participant.clone(),
            donors: told.donors.iter().map(|donor| names.of(donor)).collect(),
            samples: told.samples,
            bytes: told.bytes,
        });
        transfers.collect::<Vec<_>>()
    };
    let mut transfers: Vec<Transfer> = all.iter().flat_map(|one| of_one(one)).collect();
    transfers.sort();
    transfers
}
