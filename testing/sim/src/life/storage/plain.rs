//! What a history must be, computed from all that was put into it, again and again, from a plain
//! list: independent of [`SampleHistory`](spindle_dds_core::storage::SampleHistory).

use std::collections::{BTreeMap, BTreeSet};

use spindle_dds_core::MessageKind;
use spindle_dds_core::storage::{HistoryLimits, RecordMeta};

use super::announcement::Guid;

/// All that was put into a history, each with its time.
#[derive(Debug, Default)]
pub(crate) struct PlainHistory(Vec<(u64, Change)>);

#[derive(Debug, Clone, Copy)]
enum Change {
    Put(RecordMeta),
    WriterGone(Guid),
    /// Time passes.
    Nothing,
}

#[derive(Debug, Default)]
struct Instance {
    samples: Vec<RecordMeta>,
    disposal: Option<RecordMeta>,
    unregistrations: BTreeMap<Guid, RecordMeta>,
    writers: BTreeSet<Guid>,
    ends_at: Option<u64>,
}

impl PlainHistory {
    pub(crate) fn put(&mut self, record: RecordMeta, now: u64) {
        self.0.push((now, Change::Put(record)));
    }

    pub(crate) fn writer_gone(&mut self, writer: Guid, now: u64) {
        self.0.push((now, Change::WriterGone(writer)));
    }

    /// What is left now.
    pub(crate) fn at(&self, now: u64, limits: &HistoryLimits) -> Vec<RecordMeta> {
        let mut instances: BTreeMap<[u8; 16], Instance> = BTreeMap::new();
        for (time, change) in self.0.iter().copied().chain([(now, Change::Nothing)]) {
            instances.retain(|_, it| it.ends_at.is_none_or(|end| end > time));
            let changed = |instances: &mut BTreeMap<_, Instance>, key| {
                if let Some(instance) = instances.get_mut(&key) {
                    instance.note_end(time, limits);
                    if instance.ends_at == Some(time) {
                        instances.remove(&key);
                    }
                }
            };
            match change {
                Change::Put(record) => {
                    let is_new = !instances.contains_key(&record.key);
                    if !(is_new && record.kind == MessageKind::Unregister) {
                        instances.entry(record.key).or_default().put(record, limits);
                        changed(&mut instances, record.key);
                    }
                }
                Change::WriterGone(writer) => {
                    let of_writer = |it: &mut Instance| it.writers.remove(&writer);
                    let all = instances.iter_mut();
                    let left = all.filter_map(|(key, it)| of_writer(it).then_some(*key));
                    for key in left.collect::<Vec<_>>() {
                        changed(&mut instances, key);
                    }
                }
                Change::Nothing => {}
            }
        }
        instances
            .into_values()
            .flat_map(Instance::records)
            .collect()
    }
}

impl Instance {
    fn put(&mut self, record: RecordMeta, limits: &HistoryLimits) {
        self.unregistrations.remove(&record.writer);
        match record.kind {
            MessageKind::Unregister | MessageKind::DisposeUnregister => {
                self.writers.remove(&record.writer);
            }
            _ => drop(self.writers.insert(record.writer)),
        }
        match record.kind {
            MessageKind::Unregister => {
                self.unregistrations.insert(record.writer, record);
            }
            MessageKind::Dispose | MessageKind::DisposeUnregister => self.disposal = Some(record),
            _ => {
                self.disposal = None;
                self.samples.push(record);
            }
        }
        let depth = limits.depth.map_or(usize::MAX, |depth| depth as usize);
        let excess = self.samples.len().saturating_sub(depth);
        self.samples.drain(..excess);
    }

    fn note_end(&mut self, now: u64, limits: &HistoryLimits) {
        let has_ended = self.disposal.is_some() && self.writers.is_empty();
        let delay = limits.cleanup_delay_ns.filter(|_| has_ended);
        self.ends_at = delay.map(|delay| now + delay);
    }

    fn records(self) -> impl Iterator<Item = RecordMeta> {
        let states = self
            .disposal
            .into_iter()
            .chain(self.unregistrations.into_values());
        self.samples.into_iter().chain(states)
    }
}
