//! A reader's cache as a pure state machine: instances, their states, samples.
//!
//! It knows no threads, rings or types: a payload is a value of type `P`, and a payload that
//! leaves without being taken is passed to a callback. Its state depends on the order of
//! `offer`s alone, so equal QoS and equal order give equal caches.
//!
//! ```text
//!   order of arrival   e0 -> e3 -> e1 -> e4 ...       every entry
//!   instance A         e0 -> e1                       entries of A
//!   instance B         e3 -> e4
//! ```
//!
//! Entries and instances live in slabs; nothing is allocated for a new sample
//! once the slabs have grown, only for an instance never seen before.

mod entry;
mod filling;
mod generations;
mod instance;
mod query;
mod room;
mod tally;
#[cfg(test)]
mod tests;
mod writers;

use spindle_dds_core::MessageKind;
use spindle_dds_idl_runtime::KeyHash;
use spindle_dds_qos::{History, ResourceLimits};

use crate::handle::InstanceHandle;
use crate::status::RejectedReason;
use crate::subscription::{InstanceState, SampleInfo, SampleState};
use entry::{EntryId, List, NONE, Slab, Which};
pub(crate) use entry::{EntryRef, Origin};
use instance::{Instance, Instances};
use query::{InstanceInfo, rank_generations};
pub(crate) use query::{Query, Whose};
use tally::{Class, Tally};
use writers::Writers;

/// What arrives.
#[derive(Debug)]
pub(crate) struct Arrived<P> {
    pub(crate) kind: MessageKind,
    pub(crate) key: KeyHash,
    /// Kept with the sample, for its `SampleInfo`.
    pub(crate) origin: Origin,
    pub(crate) payload: P,
}

/// The result of an offer. A payload that is not kept is returned.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Offer<P> {
    /// The sample is in the cache, at this entry.
    Kept(EntryRef),
    /// A message without data.
    State {
        /// Whether the state of an instance has changed.
        changed: bool,
        /// The payload of the message.
        payload: P,
    },
    /// RESOURCE_LIMITS leave no room, and a take makes some: to be offered again after one.
    Full {
        /// The limit.
        reason: RejectedReason,
        /// The payload of the message.
        payload: P,
    },
    /// RESOURCE_LIMITS leave no room, and it is dropped.
    Rejected {
        /// The limit.
        reason: RejectedReason,
        /// The rejected payload.
        payload: P,
    },
}

/// The samples of one reader.
#[derive(Debug)]
pub(crate) struct Cache<P> {
    history: History,
    limits: ResourceLimits,
    /// Whether samples are presented in stream order across instances.
    ordered: bool,
    writers: Writers,
    entries: Slab<P>,
    order: List,
    instances: Instances,
    /// Entries with data.
    samples: u64,
    tally: Tally,
    selected: Vec<EntryId>,
    /// See [`Self::set_holds_back`].
    holds_back: bool,
}

impl<P> Cache<P> {
    pub(crate) fn new(history: History, limits: ResourceLimits, ordered: bool) -> Self {
        Self {
            history,
            limits,
            ordered,
            writers: Writers::default(),
            entries: Slab::default(),
            order: List::EMPTY,
            instances: Instances::default(),
            samples: 0,
            tally: Tally::default(),
            selected: Vec::new(),
            holds_back: true,
        }
    }

    /// Whether messages wait for room within RESOURCE_LIMITS, as those of RELIABLE readers do. A
    /// BEST_EFFORT reader rejects them.
    pub(crate) fn set_holds_back(&mut self, holds_back: bool) {
        self.holds_back = holds_back;
    }

    /// See [`set_holds_back`](Self::set_holds_back).
    pub(crate) fn holds_back(&self) -> bool {
        self.holds_back
    }

    /// The index under which samples of a writer are offered until it is gone, and whether the
    /// writer is new. The index of a writer that is gone is reused once the cache has no
    /// entries of it.
    pub(crate) fn admit(&mut self, writer: InstanceHandle) -> (u32, bool) {
        self.writers.admit(writer)
    }

    /// The index of a writer that was admitted, and is not gone.
    pub(crate) fn index_of(&self, writer: InstanceHandle) -> Option<u32> {
        self.writers.find(writer)
    }

    /// The writer that has this index.
    pub(crate) fn writer(&self, index: u32) -> InstanceHandle {
        self.writers.handle(index)
    }

    /// Bytes that it has allocated; `of_payload` says what a payload has.
    pub(crate) fn bytes(&self, of_payload: impl Fn(&P) -> usize) -> usize {
        let selected = self.selected.capacity() * size_of::<EntryId>();
        self.entries.bytes(of_payload) + self.instances.bytes() + selected
    }

    /// The number of entries.
    pub(crate) fn len(&self) -> u64 {
        self.entries.len()
    }

    /// Whether there is nothing in it.
    pub(crate) fn is_empty(&self) -> bool {
        self.order.head == NONE
    }

    /// Offers a message to the cache; `evicted` gets the payload that a newer sample replaces.
    pub(crate) fn offer(&mut self, arrived: Arrived<P>, evicted: &mut impl FnMut(P)) -> Offer<P> {
        match arrived.kind {
            MessageKind::Data => self.offer_data(arrived, evicted),
            _ => match self.change_state(&arrived) {
                Ok(changed) => Offer::State {
                    changed,
                    payload: arrived.payload,
                },
                Err(reason) => self.refuse(reason, arrived.payload),
            },
        }
    }

    fn offer_data(&mut self, arrived: Arrived<P>, evicted: &mut impl FnMut(P)) -> Offer<P> {
        let Arrived {
            key,
            origin,
            payload,
            ..
        } = arrived;
        let known = self.instances.find_next(key);
        let of_instance = known.map_or(0, |at| self.instances[at].samples);
        let replaces = self.replaces(of_instance);
        let limit = match known {
            Some(_) if replaces => None,
            Some(_) => self.samples_limit(of_instance),
            None => self.instances_limit().or_else(|| self.samples_limit(0)),
        };
        if let Some(reason) = limit {
            return self.refuse(reason, payload);
        }
        let at = known.unwrap_or_else(|| self.insert_instance(key));
        if replaces {
            self.evict_oldest(at, evicted);
        }
        if self.instances[at].state != InstanceState::Alive {
            self.revive(at);
        }
        self.instances[at].register(origin.writer);
        Offer::Kept(self.push(at, origin, Some(payload)))
    }

    #[inline(never)]
    fn push_state(&mut self, at: u32, origin: Origin) -> EntryRef {
        self.push(at, origin, None)
    }

    /// An instance becomes alive again: a sample of it arrives.
    #[cold]
    fn revive(&mut self, at: u32) {
        self.instances.keep(at);
        self.change(at, Instance::become_alive);
    }

    /// Changes the states of an instance.
    #[inline]
    fn change<R>(&mut self, at: u32, change: impl FnOnce(&mut Instance) -> R) -> R {
        let instance = &mut self.instances[at];
        let before = Class::of(instance);
        let result = change(instance);
        let classes = [before, Class::of(instance)];
        self.tally.moved(classes, instance.len(), instance.read);
        result
    }

    /// Disposes of or unregisters an instance. Whether its state has changed; unregistering an
    /// unknown instance changes nothing.
    fn change_state(&mut self, arrived: &Arrived<P>) -> Result<bool, RejectedReason> {
        let disposes = matches!(
            arrived.kind,
            MessageKind::Dispose | MessageKind::DisposeUnregister
        );
        let unregisters = matches!(
            arrived.kind,
            MessageKind::Unregister | MessageKind::DisposeUnregister
        );
        let at = match self.instances.find(arrived.key) {
            Some(at) => at,
            None if disposes => match self.instances_limit() {
                Some(reason) => return Err(reason),
                None => self.insert_instance(arrived.key),
            },
            None => return Ok(false),
        };
        let writer = arrived.origin.writer;
        if disposes {
            // By disposing, too, a writer registers an instance.
            self.instances[at].register(writer);
        }
        let changed = self.change(at, |instance| {
            let disposed = disposes && instance.dispose();
            disposed | (unregisters && instance.lose_writer(writer))
        });
        if changed {
            self.announce_state(at, arrived.origin);
        }
        self.reclaim(at);
        Ok(changed)
    }

    /// A writer is gone, at this position of the order: its instances lose it, and are disposed
    /// of if it `disposes` (WRITER_DATA_LIFECYCLE, DDS 1.4 §2.2.3.21). Whether the state of an
    /// instance has changed.
    pub(crate) fn writer_gone(&mut self, origin: Origin, disposes: bool) -> bool {
        let mut any = false;
        for at in self.instances.ids() {
            if !self.instances[at].is_written_by(origin.writer) {
                continue;
            }
            let changed = self.change(at, |instance| {
                let disposed = disposes && instance.dispose();
                disposed | instance.lose_writer(origin.writer)
            });
            if changed {
                self.announce_state(at, origin);
                any = true;
            }
            self.reclaim(at);
        }
        self.writers.dismiss(origin.writer);
        any
    }

    /// Adds an entry without data, and removes the older one of the instance.
    fn announce_state(&mut self, at: u32, origin: Origin) {
        if let Some(old) = self.instances[at].state_entry.take() {
            self.remove(old);
        }
        let entry = self.push_state(at, origin);
        self.instances[at].state_entry = Some(entry.id);
    }

    #[inline(always)]
    fn push(&mut self, at: u32, origin: Origin, payload: Option<P>) -> EntryRef {
        let instance = &mut self.instances[at];
        let has_data = payload.is_some();
        self.samples += u64::from(has_data);
        instance.samples += u64::from(has_data);
        self.writers.entries_came(origin.writer, 1);
        *self.tally.all_mut(Class::of(instance)) += 1;
        let lists = [&mut self.order, &mut instance.entries];
        let what = (at, instance.generations);
        self.entries.append(what, origin, payload, lists)
    }

    fn evict_oldest(&mut self, at: u32, evicted: &mut impl FnMut(P)) {
        let mut id = self.instances[at].entries.head;
        while id != NONE && self.entries[id].payload.is_none() {
            id = self.entries[id].next(Which::Instance);
        }
        if id != NONE
            && let Some(payload) = self.remove(id)
        {
            evicted(payload);
        }
    }

    /// Takes an entry out of all lists.
    fn remove(&mut self, id: EntryId) -> Option<P> {
        let entry = &self.entries[id];
        let at = entry.instance;
        let read = u64::from(entry.state == SampleState::Read);
        self.writers.entries_left(entry.origin.writer, 1);
        self.order.unlink(&mut self.entries, Which::Order, id);
        let instance = &mut self.instances[at];
        instance
            .entries
            .unlink(&mut self.entries, Which::Instance, id);
        if instance.state_entry == Some(id) {
            instance.state_entry = None;
        }
        instance.read -= read;
        self.tally.left(Class::of(instance), 1, read);
        let payload = self.entries.remove(id);
        self.samples -= u64::from(payload.is_some());
        self.instances[at].samples -= u64::from(payload.is_some());
        payload
    }

    /// The payload of an entry, if it is still in the cache.
    pub(crate) fn payload_mut(&mut self, entry: EntryRef) -> Option<&mut P> {
        self.entries.get_mut(entry)?.payload.as_mut()
    }

    /// State of an instance, if it is known.
    pub(crate) fn instance(&self, key: KeyHash) -> Option<InstanceState> {
        Some(self.instances[self.instances.find(key)?].state)
    }

    /// Takes the selected samples out of the cache, in order of presentation.
    pub(crate) fn take(&mut self, query: &Query, out: &mut Vec<(SampleInfo, Option<P>)>) {
        if let Some(instance) = self.only_instance(query) {
            return self.take_oldest(instance, query.max, out);
        }
        self.select(query);
        let from = out.len();
        for at in 0..self.selected.len() {
            let id = self.selected[at];
            let info = self.info(id);
            out.push((info, None));
        }
        self.rank(&mut out[from..]);
        for at in 0..self.selected.len() {
            let id = self.selected[at];
            let instance = self.entries[id].instance;
            self.change(instance, |it| it.is_new = false);
            out[from + at].1 = self.remove(id);
            self.reclaim(instance);
        }
    }

    /// Takes the oldest entries, when the cache has this instance only: from the front of both
    /// lists.
    fn take_oldest(&mut self, at: u32, max: usize, out: &mut Vec<(SampleInfo, Option<P>)>) {
        let Self {
            instances,
            entries,
            writers,
            order,
            tally,
            ..
        } = self;
        let instance = &mut instances[at];
        let of_instance = InstanceInfo::of(instance);
        let count = max.min(entries.len() as usize);
        let from = out.len();
        let mut id = order.head;
        let (mut samples, mut of_writer) = (0, 0);
        let mut writer = entries[id].origin.writer;
        let mut publication_handle = writers.handle(writer);
        let infos = (0..count).rev().map(|left| {
            let entry = &entries[id];
            if entry.origin.writer != writer {
                let before = std::mem::replace(&mut writer, entry.origin.writer);
                writers.entries_left(before, std::mem::take(&mut of_writer));
                publication_handle = writers.handle(writer);
            }
            of_writer += 1;
            samples += u64::from(entry.payload.is_some());
            id = entry.next(Which::Order);
            (
                of_instance.of_entry(entry, publication_handle, left as i32),
                None,
            )
        });
        out.extend(infos);
        // A loop of its own: a payload that is moved together with its `SampleInfo` is copied
        // once more.
        let mut id = order.head;
        for (_, payload) in &mut out[from..] {
            let entry = entries.free(id);
            id = entry.next(Which::Order);
            *payload = entry.payload.take();
        }
        writers.entries_left(writer, of_writer);
        order.begin_with(entries, Which::Order, id);
        instance.entries.begin_with(entries, Which::Instance, id);
        instance.samples -= samples;
        self.samples -= samples;
        if samples < count as u64 {
            // One entry had no data: an instance has at most one such entry.
            instance.state_entry = None;
        }
        let before = Class::of(instance);
        let mut read = 0;
        if instance.read > 0 {
            let is_read = |info: &SampleInfo| info.sample_state == SampleState::Read;
            read = out[from..].iter().filter(|it| is_read(&it.0)).count() as u64;
            instance.read -= read;
        }
        tally.left(before, count as u64, read);
        instance.is_new = false;
        let classes = [before, Class::of(instance)];
        tally.moved(classes, instance.len(), instance.read);
        self.reclaim(at);
        rank_generations(&mut out[from..]);
    }

    /// Removes the sample of a writer at a position of the order, because its bytes are
    /// invalid. `None` if it was removed or taken meanwhile.
    pub(crate) fn remove_sample(&mut self, writer: InstanceHandle, position: u64) -> Option<P> {
        let mut id = self.order.head;
        while id != NONE {
            let entry = &self.entries[id];
            let origin = &entry.origin;
            let theirs = self.writers.handle(origin.writer) == writer;
            if theirs && origin.position == position && entry.payload.is_some() {
                let instance = entry.instance;
                let payload = self.remove(id);
                self.reclaim(instance);
                return payload;
            }
            id = self.entries[id].next(Which::Order);
        }
        None
    }

    /// Copies the selected samples, in order of presentation, and marks them as read.
    pub(crate) fn read(
        &mut self,
        query: &Query,
        out: &mut Vec<(SampleInfo, Option<P>)>,
        copy: &mut impl FnMut(&P) -> P,
    ) {
        self.select(query);
        let from = out.len();
        for at in 0..self.selected.len() {
            let id = self.selected[at];
            let info = self.info(id);
            out.push((info, self.entries[id].payload.as_ref().map(&mut *copy)));
        }
        self.rank(&mut out[from..]);
        for at in 0..self.selected.len() {
            let id = self.selected[at];
            let instance = self.entries[id].instance;
            self.change(instance, |it| it.is_new = false);
            self.mark_read(id);
        }
    }

    fn mark_read(&mut self, id: EntryId) {
        let entry = &mut self.entries[id];
        if entry.state == SampleState::NotRead {
            entry.state = SampleState::Read;
            let instance = &mut self.instances[entry.instance];
            instance.read += 1;
            self.tally.was_read(Class::of(instance));
        }
    }
}
