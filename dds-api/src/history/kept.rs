//! What is kept of a writer.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use spindle_dds_core::storage::{
    Cursor, History, HistoryLimits, Put, Record, RecordMeta, Snapshot,
};
use spindle_dds_idl_runtime::Encapsulation;
use spindle_dds_qos::{DataWriterQos, History as HistoryQos, HistoryKind, ResourceLimits};

use crate::keys::KnownKeys;

/// The history of a writer of this participant. It lasts over a return of the participant, and ends
/// with the writer.
pub(crate) struct KeptHistory {
    /// Where key hashes are digests: the names of the keys.
    keys: Option<KnownKeys>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    history: History,
    /// Of each writer, its last message.
    lasts: HashMap<[u8; 16], Cursor>,
    /// Messages for which a limit left no room.
    left_out: u64,
}

/// A writer whose messages are kept.
#[derive(Debug)]
pub(crate) struct KeptWriter {
    pub(crate) guid: [u8; 16],
    limits: HistoryLimits,
    pub(crate) history: Arc<KeptHistory>,
}

/// How much is kept.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct KeptFigures {
    pub(crate) samples: u64,
    pub(crate) bytes: u64,
}

impl std::fmt::Debug for KeptHistory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KeptHistory").finish_non_exhaustive()
    }
}

impl KeptHistory {
    pub(crate) fn new(keys: Option<KnownKeys>) -> Self {
        Self {
            keys,
            state: Mutex::default(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps a record. Its instance goes by the name of its key, where key hashes are digests.
    fn put(&self, record: Record, limits: &HistoryLimits, now_ns: u64) {
        let meta = record.meta();
        let mut state = self.state();
        let instance = self.instance_of(&record, &state.history);
        state.lasts.insert(meta.writer, record.cursor());
        if let Put::Full(_) = state.history.put(instance, record, limits, now_ns) {
            state.left_out += 1;
        }
    }

    fn instance_of(&self, record: &Record, history: &History) -> [u8; 16] {
        let meta = record.meta();
        let Some(keys) = &self.keys else {
            return meta.key;
        };
        if keys.has_many() {
            keys.forget(|name| history.has_instance(&name.0));
        }
        let encapsulation = Encapsulation(meta.encapsulation);
        let named = keys.name(meta.kind, record.payload(), encapsulation);
        named.map_or(meta.key, |name| name.0)
    }

    /// The order of its subgroup goes on at this position, or begins anew there.
    pub(super) fn order_begins(&self, base: u64) {
        let mut state = self.state();
        if state.lasts.values().any(|last| last.position > base) {
            state.history.forget_positions();
            state.lasts.values_mut().for_each(|last| last.position = 0);
        }
    }

    pub(super) fn snapshot(&self) -> Snapshot {
        self.state().history.snapshot()
    }

    pub(crate) fn figures(&self) -> KeptFigures {
        let state = self.state();
        KeptFigures {
            samples: state.history.samples() as u64,
            bytes: state.history.bytes() as u64,
        }
    }
}

impl KeptWriter {
    /// A writer of this participant, with this QoS.
    pub(crate) fn new(guid: [u8; 16], qos: &DataWriterQos, keys: Option<KnownKeys>) -> Self {
        Self {
            guid,
            limits: limits_of(&qos.history, &qos.resource_limits),
            history: Arc::new(KeptHistory::new(keys)),
        }
    }

    /// Keeps a message that was delivered.
    pub(super) fn put(&self, meta: &RecordMeta, payload: &[u8], now_ns: u64) {
        let record = Record::new(meta, payload);
        self.history.put(record, &self.limits, now_ns);
    }

    /// Keeps a message that the group has delivered, but not to this participant, unless it is kept
    /// already: it has its place behind the last one that is.
    pub(super) fn put_missed(&self, meta: &RecordMeta, payload: &[u8], now_ns: u64) {
        let last = self.history.state().lasts.get(&self.guid).copied();
        if last.is_some_and(|last| last.sequence >= meta.sequence) {
            return;
        }
        let position = last.map_or(0, |last| last.position);
        self.put(&RecordMeta { position, ..*meta }, payload, now_ns);
    }
}

/// The limits of a writer's own history. What is disposed of and unregistered is removed at once.
fn limits_of(history: &HistoryQos, resources: &ResourceLimits) -> HistoryLimits {
    HistoryLimits {
        depth: (history.kind == HistoryKind::KeepLast).then_some(history.depth),
        samples: resources.max_samples.limit().map(u64::from),
        instances: resources.max_instances.limit().map(u64::from),
        samples_per_instance: resources.max_samples_per_instance.limit().map(u64::from),
        cleanup_delay_ns: Some(0),
    }
}
