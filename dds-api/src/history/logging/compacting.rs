//! Removes records from the log of a topic while it is written, a step at a time.

use std::cell::OnceCell;
use std::sync::Arc;

use spindle_dds_core::storage::CompactionTime;

use super::topic::LoggedTopic;
use crate::instance_names::InstanceNames;

/// Bytes of a log that are read in a step. Logs of other topics wait no longer than that takes.
const STEP_LEN: u64 = 1 << 20;

/// The compaction of one log.
#[derive(Debug, Default)]
pub(super) struct Compacting {
    /// Since the first record of a pass.
    names: OnceCell<InstanceNames>,
    has_warned: bool,
}

impl Compacting {
    /// Does a step, if there is anything to do. All logs have what is below `settled`. Returns whether there is
    /// more to do.
    pub(super) fn go_on(&mut self, logged: &LoggedTopic, settled: u64, now_ns: u64) -> bool {
        let time = CompactionTime {
            now_ns,
            wall_ns: crate::log::now_ns(),
        };
        let known = || logged.sample_type.known_keys(&Arc::default());
        let new = || InstanceNames::new(known());
        let names = &self.names;
        let mut keeper = logged.keeper();
        let has_more = keeper.compact_on(
            settled,
            &|record, history| names.get_or_init(new).of(record, history),
            time,
            STEP_LEN,
        );
        if !keeper.is_compacting() {
            self.names = OnceCell::new();
        }
        if let Some(why) = keeper.compaction_failure()
            && !self.has_warned
        {
            self.has_warned = true;
            let topic = &logged.name;
            tracing::warn!(topic, why, "the log of a topic is not compacted any more");
        }
        has_more
    }
}
