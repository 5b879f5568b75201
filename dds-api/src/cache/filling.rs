//! Appends several samples of one writer and one instance.

use spindle_dds_idl_runtime::KeyHash;
use spindle_dds_qos::HistoryKind;

use super::Cache;
use super::entry::{EntryRef, List, Origin, Slab};
use super::generations::Generations;
use super::instance::Instance;
use super::tally::Class;
use super::writers::Writers;
use crate::subscription::InstanceState;

/// Appends samples of one writer to an instance that is alive, within its limits: no sample is
/// rejected or replaces another. The samples are counted when this is dropped.
pub(crate) struct Filling<'c, P> {
    instance: &'c mut Instance,
    what: (u32, Generations),
    writer: u32,
    left: u64,
    taken: u64,
    entries: &'c mut Slab<P>,
    order: &'c mut List,
    /// Those of the cache, and all entries whose instances have the states of this one.
    samples: &'c mut u64,
    in_class: &'c mut u64,
    writers: &'c mut Writers,
}

impl<P> Cache<P> {
    /// The instance of this key, if the cache can append samples of this writer to it.
    #[inline]
    pub(crate) fn fill(&mut self, key: KeyHash, writer: u32) -> Option<Filling<'_, P>> {
        let at = self.instances.find_next(key)?;
        let instance = &mut self.instances[at];
        if instance.state != InstanceState::Alive {
            return None;
        }
        let of_instance = instance.samples;
        let keeps = match self.history.kind {
            HistoryKind::KeepAll => u64::MAX,
            HistoryKind::KeepLast => u64::from(self.history.depth).saturating_sub(of_instance),
        };
        let left = keeps
            .min(self.limits.max_samples.left(self.samples))
            .min(self.limits.max_samples_per_instance.left(of_instance));
        if left == 0 {
            return None;
        }
        instance.register(writer);
        Some(Filling {
            what: (at, instance.generations),
            in_class: self.tally.all_mut(Class::of(instance)),
            instance,
            writer,
            left,
            taken: 0,
            entries: &mut self.entries,
            order: &mut self.order,
            samples: &mut self.samples,
            writers: &mut self.writers,
        })
    }
}

impl<P> Filling<'_, P> {
    /// How many samples can be appended: at least one.
    pub(crate) fn left(&self) -> u64 {
        self.left
    }

    /// Appends a sample of that writer and instance.
    #[inline(always)]
    pub(crate) fn take_in(&mut self, origin: Origin, payload: P) -> EntryRef {
        debug_assert!(self.taken < self.left && origin.writer == self.writer);
        self.taken += 1;
        let lists = [&mut *self.order, &mut self.instance.entries];
        let payload = Some(payload);
        self.entries.append(self.what, origin, payload, lists)
    }
}

impl<P> Drop for Filling<'_, P> {
    fn drop(&mut self) {
        *self.samples += self.taken;
        *self.in_class += self.taken;
        self.instance.samples += self.taken;
        self.writers.entries_came(self.writer, self.taken);
    }
}
