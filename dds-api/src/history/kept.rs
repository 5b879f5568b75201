//! What is kept of a writer, or of a topic.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use spindle_dds_core::storage::{
    Cursor, HistoryLimits, Put, Record, RecordMeta, SampleHistory, Snapshot,
};
use spindle_dds_qos::{
    DataWriterQos, DurabilityKind, DurabilityService, History, HistoryKind, ResourceLimits,
};

use crate::instance_names::InstanceNames;
use crate::keys::KnownKeys;

/// The history of a writer of this participant, which ends with the writer; or of a topic. Both last over
/// a return of the participant.
pub(crate) struct KeptHistory {
    names: InstanceNames,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    history: SampleHistory,
    /// Of each writer, its last message.
    lasts: HashMap<[u8; 16], Cursor>,
    /// TRANSIENT writers: no log has what they have written.
    unlogged: HashSet<[u8; 16]>,
    /// While the history of a topic is got from another keeper.
    getting: Option<Getting>,
    /// How often it was begun to be got.
    attempts: u64,
}

/// The history of a topic that another keeper has. `State::history` has what comes meanwhile.
struct Getting {
    /// What was kept before, in case that no keeper knows it.
    before: SampleHistory,
    /// What has come.
    got: SampleHistory,
    /// The limits of the writers whose messages have come meanwhile.
    limits: HashMap<[u8; 16], HistoryLimits>,
    /// What was kept of TRANSIENT writers stays, as it is got from logs.
    keeps_unlogged: bool,
}

/// A writer whose messages are kept.
#[derive(Debug)]
pub(crate) struct KeptWriter {
    pub(crate) guid: [u8; 16],
    limits: HistoryLimits,
    /// Its instances are disposed of when it leaves.
    autodisposes: bool,
    /// Whether its DURABILITY is PERSISTENT.
    is_logged: bool,
    pub(crate) history: Arc<KeptHistory>,
}

/// A topic that this participant keeps beyond its writers (TRANSIENT).
#[derive(Debug)]
pub(crate) struct TopicHistory {
    pub(crate) name: String,
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
            names: InstanceNames::new(keys),
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
        let instance = self.names.of(&record, &state.history);
        state.note_last(&record);
        if let Some(getting) = &mut state.getting {
            getting.limits.insert(meta.writer, *limits);
        }
        if let Put::Full(limit) = state.history.put(instance, record, limits, now_ns) {
            tracing::debug!(%limit, "a sample is not kept for readers that come later");
        }
    }

    /// Keeps a record that another keeper of the topic has.
    pub(super) fn put_got(&self, record: Record, now_ns: u64) {
        let mut state = self.state();
        state.note_last(&record);
        let State {
            history, getting, ..
        } = &mut *state;
        let got = getting.as_mut().map_or(history, |it| &mut it.got);
        let instance = self.names.of(&record, got);
        got.put(instance, record, &UNLIMITED, now_ns);
    }

    /// Keeps a record that the log of the topic has, within these limits. False if the history is got by
    /// another attempt now.
    pub(super) fn put_logged(
        &self,
        attempt: u64,
        record: Record,
        limits: &HistoryLimits,
        now_ns: u64,
    ) -> bool {
        let mut state = self.state();
        if !state.is_attempt(attempt) {
            return false;
        }
        state.note_last(&record);
        if let Some(getting) = &mut state.getting {
            let instance = self.names.of(&record, &getting.got);
            getting.got.put(instance, record, limits, now_ns);
        }
        true
    }

    /// Whether this attempt to get the history goes on.
    pub(super) fn is_attempt(&self, attempt: u64) -> bool {
        self.state().is_attempt(attempt)
    }

    /// The history of the topic is to be got from another keeper, or from its log. `keeps_unlogged`: what was kept
    /// of TRANSIENT writers stays. Returns the number of this attempt.
    pub(super) fn begin_getting(&self, keeps_unlogged: bool) -> u64 {
        let mut state = self.state();
        let before = std::mem::take(&mut state.history);
        // What came of an earlier attempt is in what comes now.
        let before = state.getting.take().map_or(before, |it| it.before);
        state.history.set_filling(true);
        let mut got = SampleHistory::default();
        got.set_filling(true);
        state.getting = Some(Getting {
            before,
            got,
            limits: HashMap::new(),
            keeps_unlogged,
        });
        state.attempts += 1;
        state.attempts
    }

    /// It has come; or no keeper knows it: then what was kept before is all there is, and comes before the
    /// order of its subgroup from `base` on. `lasts`: the last sequence numbers before that position, as far
    /// as they are known. `is_alive`: writers that there are. Returns what was kept at that position.
    pub(super) fn end_getting(
        &self,
        knows_none: bool,
        base: u64,
        lasts: &BTreeMap<[u8; 16], u64>,
        is_alive: impl Fn(&[u8; 16]) -> bool,
        now_ns: u64,
    ) -> Snapshot {
        let mut state = self.state();
        let Some(Getting {
            mut before,
            mut got,
            limits,
            keeps_unlogged,
        }) = state.getting.take()
        else {
            return state.history.snapshot();
        };
        if knows_none {
            let snapshot = before.snapshot();
            if (snapshot.records().last()).is_some_and(|it| it.position() >= base) {
                before.forget_positions();
            }
            for record in before.snapshot().records() {
                let instance = self.names.of(record, &got);
                got.put(instance, record.clone(), &UNLIMITED, now_ns);
            }
        }
        if keeps_unlogged && !knows_none {
            got = self.with_unlogged(got, &mut before, &state.unlogged, now_ns);
        }
        for (writer, last) in lasts {
            got.note_last(*writer, *last);
        }
        let at_base = got.snapshot();
        // What has come meanwhile.
        for record in state.history.snapshot().records() {
            let instance = self.names.of(record, &got);
            let limits = limits.get(&record.meta().writer).unwrap_or(&UNLIMITED);
            got.put(instance, record.clone(), limits, now_ns);
        }
        let gone = state.lasts.keys().filter(|it| !is_alive(it)).copied();
        for writer in gone.collect::<Vec<_>>() {
            got.writer_gone(writer, false, &HistoryLimits::default(), now_ns);
        }
        got.set_filling(false);
        got.purge(now_ns);
        state.history = got;
        at_base
    }

    /// What was got, with what was kept before of TRANSIENT writers.
    fn with_unlogged(
        &self,
        mut got: SampleHistory,
        before: &mut SampleHistory,
        unlogged: &HashSet<[u8; 16]>,
        now_ns: u64,
    ) -> SampleHistory {
        let before = before.snapshot();
        let before = before.records().iter();
        let before = before.filter(|it| unlogged.contains(&it.meta().writer));
        let got = got.snapshot();
        let mut all: Vec<&Record> = got.records().iter().chain(before).collect();
        all.sort_by_key(|it| it.cursor());
        all.dedup_by_key(|it| it.cursor());
        let mut both = SampleHistory::default();
        both.set_filling(true);
        for record in all {
            let instance = self.names.of(record, &both);
            both.put(instance, record.clone(), &UNLIMITED, now_ns);
        }
        both
    }

    /// What this writer of the topic writes is in no log.
    fn note_unlogged(&self, writer: [u8; 16]) {
        self.state().unlogged.insert(writer);
    }

    /// When [`purge`](Self::purge) has something to do.
    pub(super) fn next_purge(&self) -> Option<u64> {
        self.state().history.next_purge()
    }

    /// Removes instances whose cleanup delay is over.
    pub(super) fn purge(&self, now_ns: u64) {
        self.state().history.purge(now_ns);
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

impl State {
    fn is_attempt(&self, attempt: u64) -> bool {
        self.getting.is_some() && self.attempts == attempt
    }

    fn note_last(&mut self, record: &Record) {
        let cursor = record.cursor();
        let last = self.lasts.entry(cursor.writer).or_insert(cursor);
        if last.sequence < cursor.sequence {
            *last = cursor;
        }
    }
}

impl KeptWriter {
    /// A TRANSIENT_LOCAL writer of this participant, with this QoS.
    pub(crate) fn new(guid: [u8; 16], qos: &DataWriterQos, keys: Option<KnownKeys>) -> Self {
        Self {
            guid,
            limits: limits_of(&qos.history, &qos.resource_limits),
            autodisposes: false,
            is_logged: false,
            history: Arc::new(KeptHistory::new(keys)),
        }
    }

    /// A TRANSIENT or PERSISTENT writer of a topic.
    pub(crate) fn of_topic(guid: [u8; 16], qos: &DataWriterQos, topic: &TopicHistory) -> Self {
        let is_logged = qos.durability.kind == DurabilityKind::Persistent;
        if !is_logged {
            topic.history.note_unlogged(guid);
        }
        Self {
            guid,
            limits: service_limits(&qos.durability_service),
            autodisposes: qos.writer_data_lifecycle.autodispose_unregistered_instances,
            is_logged,
            history: topic.history.clone(),
        }
    }

    /// Whether what it writes is logged.
    pub(crate) fn is_logged(&self) -> bool {
        self.is_logged
    }

    /// The writer is gone: it has left in order, or its participant has failed.
    pub(super) fn gone(&self, has_left: bool, now_ns: u64) {
        let disposes = has_left && self.autodisposes;
        let mut state = self.history.state();
        state
            .history
            .writer_gone(self.guid, disposes, &self.limits, now_ns);
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

/// Of records whose limits another keeper has applied. What has ended is removed at once.
const UNLIMITED: HistoryLimits = HistoryLimits {
    depth: None,
    samples: None,
    instances: None,
    samples_per_instance: None,
    cleanup_delay_ns: Some(0),
};

/// What DURABILITY_SERVICE keeps of a topic.
pub(crate) fn service_limits(service: &DurabilityService) -> HistoryLimits {
    let delay = service.service_cleanup_delay.as_std();
    let delay = delay.map(|it| u64::try_from(it.as_nanos()).unwrap_or(u64::MAX));
    HistoryLimits {
        cleanup_delay_ns: delay,
        ..limits_of(&service.history(), &service.resource_limits())
    }
}

/// The limits of a writer's own history. What is disposed of and unregistered is removed at once.
fn limits_of(history: &History, resources: &ResourceLimits) -> HistoryLimits {
    HistoryLimits {
        depth: (history.kind == HistoryKind::KeepLast).then_some(history.depth),
        samples: resources.max_samples.limit().map(u64::from),
        instances: resources.max_instances.limit().map(u64::from),
        samples_per_instance: resources.max_samples_per_instance.limit().map(u64::from),
        cleanup_delay_ns: Some(0),
    }
}
