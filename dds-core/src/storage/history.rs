//! What is kept of a topic.

mod instance;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use instance::Instance;

use super::record::{Cursor, HEAD_LEN, Record};
use crate::subgroup::header::MessageKind;

/// What is kept of one writer, or of one topic: by HISTORY the last samples of each instance or all
/// of them, and of an instance that is disposed of or unregistered the message that says so.
///
/// An instance that is disposed of, and that no writer has registered any more, is removed after the
/// cleanup delay (DDS 1.4 §2.2.3.5: `service_cleanup_delay`).
///
/// Records may be put in any order: a record that is older than what is kept has its place before it.
/// So a keeper takes live messages while it still gets the history before them.
#[derive(Debug, Default)]
pub struct SampleHistory {
    instances: BTreeMap<[u8; 16], Instance>,
    /// When instances that have ended are to be removed.
    ended: BTreeSet<(u64, [u8; 16])>,
    /// See [`set_filling`](Self::set_filling).
    is_filling: bool,
    writers: BTreeMap<[u8; 16], KnownWriter>,
    /// The number of the next writer: none is used again.
    next_writer: u32,
    samples: usize,
    states: usize,
    bytes: usize,
    /// All records, while nothing has changed.
    snapshot: Option<Snapshot>,
}

/// How much is kept. `None` is no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct HistoryLimits {
    /// KEEP_LAST: samples of each instance. `None` is KEEP_ALL.
    pub depth: Option<u32>,
    /// Samples in all: `max_samples`.
    pub samples: Option<u64>,
    /// Instances: `max_instances`.
    pub instances: Option<u64>,
    /// Samples of each instance: `max_samples_per_instance`.
    pub samples_per_instance: Option<u64>,
    /// Nanoseconds after which an instance that has ended is removed; `None`: never.
    pub cleanup_delay_ns: Option<u64>,
}

/// A limit of a history.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum HistoryLimit {
    /// [`HistoryLimits::samples`].
    #[error("max_samples")]
    Samples,
    /// [`HistoryLimits::instances`].
    #[error("max_instances")]
    Instances,
    /// [`HistoryLimits::samples_per_instance`].
    #[error("max_samples_per_instance")]
    SamplesPerInstance,
}

/// What became of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Put {
    /// It is kept; KEEP_LAST may have dropped an older one for it.
    Kept,
    /// It changes nothing: newer ones are kept, or it is kept already.
    Superseded,
    /// A limit leaves no room.
    Full(HistoryLimit),
}

/// A writer that is not gone.
#[derive(Debug, Clone, Copy)]
struct KnownWriter {
    number: u32,
    /// Its last sequence number.
    last: u64,
}

/// The records of a history at one moment, oldest first. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct Snapshot {
    records: Arc<[Record]>,
    lasts: Arc<BTreeMap<[u8; 16], u64>>,
}

impl Snapshot {
    /// Several histories as one: by position, and of one writer by sequence.
    pub fn merge(snapshots: &[Self]) -> Self {
        if let [one] = snapshots {
            return one.clone();
        }
        let records = snapshots.iter().flat_map(|it| it.records.iter().cloned());
        let lasts = snapshots.iter().flat_map(|it| it.lasts.iter());
        Self::of(
            records.collect(),
            lasts.map(|(writer, last)| (*writer, *last)).collect(),
        )
    }

    fn of(mut records: Vec<Record>, lasts: BTreeMap<[u8; 16], u64>) -> Self {
        records.sort_by_cached_key(Record::cursor);
        Self {
            records: records.into(),
            lasts: Arc::new(lasts),
        }
    }

    /// Its records, oldest first.
    pub fn records(&self) -> &[Record] {
        &self.records
    }

    /// The last sequence number of each writer that is not gone, whether its record is kept or not.
    pub fn lasts(&self) -> &BTreeMap<[u8; 16], u64> {
        &self.lasts
    }

    /// What it has of one writer.
    pub fn of_writer(&self, writer: [u8; 16]) -> Self {
        let records = self
            .records
            .iter()
            .filter(|it| it.cursor().writer == writer);
        let lasts = self.lasts.get(&writer).map(|last| (writer, *last));
        Self {
            records: records.cloned().collect(),
            lasts: Arc::new(lasts.into_iter().collect()),
        }
    }

    /// What it has before a position. The last sequence numbers are those of these records: what was
    /// removed since cannot be told from what came later.
    pub fn before(&self, position: u64) -> Self {
        let end = self.records.partition_point(|it| it.position() < position);
        let records: Arc<[Record]> = match end == self.records.len() {
            true => self.records.clone(),
            false => self.records[..end].into(),
        };
        let mut lasts = BTreeMap::new();
        for Cursor {
            writer, sequence, ..
        } in records.iter().map(Record::cursor)
        {
            let last = lasts.entry(writer).or_insert(sequence);
            *last = sequence.max(*last);
        }
        Self {
            records,
            lasts: Arc::new(lasts),
        }
    }

    /// The index of the first record after a place.
    pub(super) fn after(&self, cursor: Option<Cursor>) -> usize {
        let Some(cursor) = cursor else { return 0 };
        self.records.partition_point(|it| it.cursor() <= cursor)
    }
}

impl SampleHistory {
    /// Keeps a record, as far as the limits say. `instance` is the key of its instance here: the key hash
    /// of the record where that is the key itself or cannot be confused with that of another key.
    pub fn put(
        &mut self,
        instance: [u8; 16],
        record: Record,
        limits: &HistoryLimits,
        now_ns: u64,
    ) -> Put {
        let meta = record.meta();
        if meta.kind == MessageKind::Control {
            return Put::Superseded;
        }
        let writer = self.admit(meta.writer);
        let put = match meta.kind {
            MessageKind::Data => self.put_sample(instance, record, writer, limits),
            _ => self.put_state(instance, record, writer, limits),
        };
        if !matches!(put, Put::Full(_)) {
            self.snapshot = None;
            if let Some(known) = self.writers.get_mut(&meta.writer) {
                known.last = known.last.max(meta.sequence);
            }
        }
        if put == Put::Kept {
            self.note_end(instance, limits, now_ns);
        }
        put
    }

    /// A writer has come to this sequence number, whether its messages are kept or not.
    pub fn note_last(&mut self, writer: [u8; 16], sequence: u64) {
        self.admit(writer);
        if let Some(known) = self.writers.get_mut(&writer) {
            known.last = known.last.max(sequence);
        }
        self.snapshot = None;
    }

    /// The number of a writer.
    fn admit(&mut self, writer: [u8; 16]) -> u32 {
        let known = self.writers.entry(writer).or_insert_with(|| {
            let number = self.next_writer;
            self.next_writer += 1;
            KnownWriter { number, last: 0 }
        });
        known.number
    }

    fn put_sample(
        &mut self,
        key: [u8; 16],
        record: Record,
        writer: u32,
        limits: &HistoryLimits,
    ) -> Put {
        let known = self.instances.get(&key);
        let of_instance = known.map_or(0, |it| it.samples.len());
        let cursor = record.cursor();
        let place = known.map_or(0, |it| {
            it.samples.partition_point(|it| it.cursor() < cursor)
        });
        let is_there = |it: &Instance| it.samples.get(place).map(Record::cursor) == Some(cursor);
        if known.is_some_and(is_there) {
            return Put::Superseded;
        }
        let replaces = limits
            .depth
            .is_some_and(|depth| of_instance >= depth as usize);
        if replaces && place == 0 {
            return Put::Superseded;
        }
        if !replaces && let Some(limit) = self.limit(known, of_instance, limits) {
            return Put::Full(limit);
        }
        let instance = self.instances.entry(key).or_default();
        self.samples += 1;
        self.bytes += record.bytes().len();
        instance.insert(place, record, limits.depth);
        let excess = limits.depth.map_or(0, |depth| {
            instance.samples.len().saturating_sub(depth as usize)
        });
        for old in instance.samples.drain(..excess) {
            self.samples -= 1;
            self.bytes -= old.bytes().len();
        }
        let forgotten = instance.revive(&cursor, writer);
        self.forget_states(&forgotten);
        Put::Kept
    }

    fn put_state(
        &mut self,
        key: [u8; 16],
        record: Record,
        writer: u32,
        limits: &HistoryLimits,
    ) -> Put {
        let meta = record.meta();
        let cursor = record.cursor();
        let disposes = meta.kind != MessageKind::Unregister;
        let unregisters = meta.kind != MessageKind::Dispose;
        match self.instances.get(&key) {
            None if !disposes => return Put::Superseded,
            None => {
                let instances = self.instances.len() as u64;
                if limits.instances.is_some_and(|most| instances >= most) {
                    return Put::Full(HistoryLimit::Instances);
                }
            }
            Some(instance) if instance.is_superseded(&cursor, disposes) => return Put::Superseded,
            Some(_) => {}
        }
        let instance = self.instances.entry(key).or_default();
        self.states += 1;
        self.bytes += record.bytes().len();
        if unregisters {
            instance.writers.remove(writer);
        } else {
            instance.writers.add(writer);
        }
        let states = instance.states.get_or_insert_default();
        let forgotten = states.put(record, disposes);
        self.forget_states(&forgotten);
        Put::Kept
    }

    fn forget_states(&mut self, forgotten: &[Record]) {
        for old in forgotten {
            self.states -= 1;
            self.bytes -= old.bytes().len();
        }
    }

    fn limit(
        &self,
        known: Option<&Instance>,
        of_instance: usize,
        limits: &HistoryLimits,
    ) -> Option<HistoryLimit> {
        let reaches =
            |count: usize, most: Option<u64>| most.is_some_and(|most| count as u64 >= most);
        if known.is_none() && reaches(self.instances.len(), limits.instances) {
            Some(HistoryLimit::Instances)
        } else if reaches(self.samples, limits.samples) {
            Some(HistoryLimit::Samples)
        } else if reaches(of_instance, limits.samples_per_instance) {
            Some(HistoryLimit::SamplesPerInstance)
        } else {
            None
        }
    }

    /// Notes when an instance is to be removed, if it has ended.
    fn note_end(&mut self, key: [u8; 16], limits: &HistoryLimits, now_ns: u64) {
        let Some(instance) = self.instances.get_mut(&key) else {
            return;
        };
        let Some(states) = &mut instance.states else {
            return;
        };
        if states.disposal.is_none() || !instance.writers.is_empty() {
            states.removed_at = None;
        } else if let Some(delay) = limits.cleanup_delay_ns {
            let at = now_ns.saturating_add(delay);
            states.removed_at = Some(at);
            self.note_removal(at, key, now_ns);
        }
    }

    /// A writer has left that disposes of its instances, of which this is one: without another writer it
    /// has ended.
    fn note_end_if_left(&mut self, key: [u8; 16], limits: &HistoryLimits, now_ns: u64) {
        if let Some(instance) = self.instances.get_mut(&key)
            && instance.writers.is_empty()
            && let Some(delay) = limits.cleanup_delay_ns
        {
            let at = now_ns.saturating_add(delay);
            instance.states.get_or_insert_default().removed_at = Some(at);
            self.note_removal(at, key, now_ns);
        }
    }

    fn note_removal(&mut self, at: u64, key: [u8; 16], now_ns: u64) {
        self.ended.insert((at, key));
        if at <= now_ns {
            self.purge(now_ns);
        }
    }

    /// Whether older records are still to come from another keeper. While they are, no instance is
    /// removed: the messages that ended it would be forgotten, and an older sample bring it back.
    pub fn set_filling(&mut self, is_filling: bool) {
        self.is_filling = is_filling;
    }

    /// Removes the instances that have ended long enough ago.
    pub fn purge(&mut self, now_ns: u64) {
        while let Some((at, key)) = self.ended.first().copied()
            && at <= now_ns
            && !self.is_filling
        {
            self.ended.pop_first();
            let instance = self.instances.get(&key);
            let states = instance.and_then(|it| it.states.as_ref());
            if states.is_some_and(|it| it.removed_at == Some(at)) {
                self.remove_instance(&key);
            }
        }
    }

    /// When [`purge`](Self::purge) has something to do.
    pub fn next_purge(&self) -> Option<u64> {
        let next = self.ended.first().filter(|_| !self.is_filling);
        next.map(|(at, _)| *at)
    }

    fn remove_instance(&mut self, key: &[u8; 16]) {
        let Some(instance) = self.instances.remove(key) else {
            return;
        };
        self.snapshot = None;
        self.samples -= instance.samples.len();
        for record in &instance.samples {
            self.bytes -= record.bytes().len();
        }
        let states: Vec<Record> = instance.states().cloned().collect();
        self.forget_states(&states);
    }

    /// A writer is gone: it has no instance registered any more. What it has written is kept; but where
    /// it `disposes` of its instances, those that no other writer has registered have ended.
    pub fn writer_gone(
        &mut self,
        writer: [u8; 16],
        disposes: bool,
        limits: &HistoryLimits,
        now_ns: u64,
    ) {
        let Some(known) = self.writers.remove(&writer) else {
            return;
        };
        self.snapshot = None;
        let instances = self.instances.iter_mut();
        let left =
            instances.filter_map(|(key, it)| it.writers.remove(known.number).then_some(*key));
        for key in left.collect::<Vec<_>>() {
            if disposes {
                self.note_end_if_left(key, limits, now_ns);
            } else {
                self.note_end(key, limits, now_ns);
            }
        }
    }

    /// The order of its subgroup begins anew: what is kept comes before all of it.
    pub fn forget_positions(&mut self) {
        self.snapshot = None;
        for instance in self.instances.values_mut() {
            let samples = instance.samples.iter_mut();
            let states = instance.states.iter_mut().flat_map(|it| it.all_mut());
            for record in samples.chain(states) {
                *record = record.at_position(0);
            }
            // Those of several writers have lost their order among each other.
            let samples = instance.samples.make_contiguous();
            samples.sort_by_cached_key(Record::cursor);
        }
    }

    /// All records, oldest first.
    pub fn snapshot(&mut self) -> Snapshot {
        if let Some(snapshot) = &self.snapshot {
            return snapshot.clone();
        }
        let mut records = Vec::with_capacity(self.samples + self.states);
        for instance in self.instances.values() {
            records.extend(instance.samples.iter().chain(instance.states()).cloned());
        }
        let lasts = self.writers.iter().map(|(writer, it)| (*writer, it.last));
        let snapshot = Snapshot::of(records, lasts.collect());
        self.snapshot = Some(snapshot.clone());
        snapshot
    }

    /// Whether an instance is kept.
    pub fn has_instance(&self, instance: &[u8; 16]) -> bool {
        self.instances.contains_key(instance)
    }

    /// Samples that are kept.
    pub fn samples(&self) -> usize {
        self.samples
    }

    /// Instances of which anything is kept.
    pub fn instances(&self) -> usize {
        self.instances.len()
    }

    /// Bytes of the records, 64 each beside their payload.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Bytes of payload that are kept.
    pub fn payload_bytes(&self) -> usize {
        self.bytes - (self.samples + self.states) * HEAD_LEN
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
