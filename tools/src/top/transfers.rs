//! History that participants are getting.

use serde::Serialize;
use spindle_dds::monitor::ParticipantFigures;

use super::names::columns;
use super::scene::Names;

/// Columns that the names of donors take, unless one name takes more.
const DONORS_WIDTH: usize = 40;

/// History of a topic that a participant is getting.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(super) struct Transfer {
    pub(super) topic: String,
    /// The participant that gets it: for a reader, or to keep it.
    pub(super) participant: String,
    /// The participants that are asked for it now. Empty if it asks only itself, or if all has come and
    /// the reader has not accepted it yet.
    pub(super) donors: Vec<String>,
    /// Samples and changes of instance states that have come.
    pub(super) samples: u64,
    /// Their bytes: 64 for each beside its payload.
    pub(super) bytes: u64,
}

impl Transfer {
    /// The donors: so many as have room, and how many there are beside these.
    pub(super) fn donors_text(&self) -> String {
        let mut used = 0;
        let widths = self.donors.iter().map(|donor| columns(donor) + ", ".len());
        let fits = |width: &usize| {
            used += width;
            used <= DONORS_WIDTH
        };
        let shown = widths.take_while(fits).count().max(1);
        match self.donors.split_at_checked(shown) {
            None => "-".to_owned(),
            Some((shown, [])) => shown.join(", "),
            Some((shown, more)) => format!("{} and {} more", shown.join(", "), more.len()),
        }
    }
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
