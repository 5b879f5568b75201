//! Which records of a log a reader that comes later gets.

use std::collections::BTreeSet;
use std::sync::Arc;

use spindle_dds_core::storage::log::LoggedRecord;
use spindle_dds_core::storage::{HistoryLimits, Record, SampleHistory};
use spindle_dds_idl_runtime::Encapsulation;
use spindle_dds_xtypes::DynamicType;

use crate::keys::{KeyTable, KnownKeys};

/// Puts the records of a log, in order, into a history with the limits of its head, as a participant does
/// that keeps the topic. Payloads are not kept.
pub(super) struct Replay {
    history: SampleHistory,
    limits: HistoryLimits,
    keys: Option<KnownKeys>,
    now_ns: u64,
}

impl Replay {
    /// Without the type of the samples, instances go by their key hashes, be they digests or not.
    pub(super) fn new(limits: HistoryLimits, ty: Option<&DynamicType>, now_ns: u64) -> Self {
        let table = Arc::new(KeyTable::default());
        Self {
            history: SampleHistory::default(),
            limits,
            keys: ty.and_then(|ty| KnownKeys::of_dynamic(ty, &table)),
            now_ns,
        }
    }

    pub(super) fn put(&mut self, logged: &LoggedRecord) {
        let record = &logged.record;
        let meta = record.meta();
        let encapsulation = Encapsulation(meta.encapsulation);
        let keys = self.keys.as_ref();
        let named = keys.and_then(|it| it.name(meta.kind, record.payload(), encapsulation).ok());
        let instance = named.map_or(meta.key, |name| name.0);
        // The cleanup delay of an instance counts from then on.
        let at_ns = u64::try_from(meta.timestamp).map_or(0, |at| at.min(self.now_ns));
        self.history
            .put(instance, Record::new(&meta, &[]), &self.limits, at_ns);
    }

    /// The positions of the records that are kept.
    pub(super) fn kept(mut self) -> BTreeSet<u64> {
        self.history.purge(self.now_ns);
        let kept = self.history.snapshot();
        kept.records().iter().map(Record::position).collect()
    }
}
