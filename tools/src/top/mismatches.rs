//! Writers and readers of one topic that do not match.

use std::collections::BTreeMap;

use serde::Serialize;
use spindle_dds::monitor::ParticipantFigures;
use spindle_dds::qos::Incompatibility;

use super::scene::Names;

/// Writers of one participant and readers of one participant, on one topic, that do not match.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(super) struct Mismatch {
    pub(super) topic: String,
    /// The participant of the writers.
    pub(super) writer: String,
    pub(super) reader: String,
    pub(super) pairs: u64,
    /// The policies by which they do not.
    pub(super) policies: Vec<Incompatibility>,
    /// Why the types do not match, if that is the reason.
    pub(super) types: Option<String>,
}

/// The mismatches, as the participants of the writers or the readers tell of them: mostly both do, and
/// of types in other words.
pub(super) fn mismatches(all: &[&ParticipantFigures], names: &Names) -> Vec<Mismatch> {
    let mut found = BTreeMap::new();
    for told in all.iter().flat_map(|it| &it.mismatches) {
        let policies = told.policies.iter();
        let policies: Vec<_> = policies
            .map(|it| (it.policy.id(), &it.offered, &it.requested))
            .collect();
        let pair = (&told.topic, &told.writer, &told.reader);
        let known = found
            .entry((pair, policies, told.types.is_some()))
            .or_insert_with(|| Mismatch {
                topic: told.topic.clone(),
                writer: names.of(&told.writer),
                reader: names.of(&told.reader),
                pairs: 0,
                policies: told.policies.clone(),
                types: told.types.clone(),
            });
        known.pairs = known.pairs.max(told.pairs);
    }
    found.into_values().collect()
}
