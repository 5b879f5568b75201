//! Selection of samples, and the order of their presentation.

use spindle_dds_idl_runtime::KeyHash;

use super::entry::{Entry, EntryId, NONE, Which};
use super::generations::Generations;
use super::{Cache, Instance};
use crate::condition::StateMasks;
use crate::handle::InstanceHandle;
use crate::subscription::{InstanceState, SampleInfo, SampleState, ViewState};

/// The parameters of `read` and `take`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Query {
    /// Maximum number of samples.
    pub(crate) max: usize,
    pub(crate) masks: StateMasks,
    pub(crate) whose: Whose,
}

/// The instances whose samples are selected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Whose {
    /// All instances.
    Any,
    /// This instance.
    Instance(KeyHash),
    /// The first instance after this one, in the order of handles, that has such samples.
    Next(Option<KeyHash>),
}

impl<P> Cache<P> {
    /// The instance of all entries, if they have the same one and the query selects them all.
    /// The order of presentation then is the order of arrival.
    pub(super) fn only_instance(&self, query: &Query) -> Option<u32> {
        if self.order.head == NONE || query.whose != Whose::Any {
            return None;
        }
        let at = self.entries[self.order.head].instance;
        let instance = &self.instances[at];
        let entries = instance.samples + u64::from(instance.state_entry.is_some());
        let masks = &query.masks;
        let wants = masks.sample.allows(SampleState::Read)
            && masks.sample.allows(SampleState::NotRead)
            && masks.view.allows(view_state(instance))
            && masks.instance.allows(instance.state);
        (wants && entries == self.entries.len()).then_some(at)
    }

    /// Puts the entries that match the query into `selected`.
    pub(super) fn select(&mut self, query: &Query) {
        let mut selected = std::mem::take(&mut self.selected);
        selected.clear();
        match query.whose {
            _ if !self.has(&query.masks) => {}
            Whose::Any if self.ordered => self.select_in_order(query, &mut selected),
            Whose::Any => self.select_by_instance(query, &mut selected),
            Whose::Instance(key) => {
                if let Some(at) = self.instances.find(key) {
                    self.select_of(at, query, &mut selected);
                }
            }
            Whose::Next(after) => {
                for at in self.instances.after(after) {
                    self.select_of(at, query, &mut selected);
                    if !selected.is_empty() {
                        break;
                    }
                }
            }
        }
        self.selected = selected;
    }

    /// PRESENTATION TOPIC with ordered access: in the order of arrival.
    fn select_in_order(&self, query: &Query, selected: &mut Vec<EntryId>) {
        let mut id = self.order.head;
        while id != NONE && selected.len() < query.max {
            let entry = &self.entries[id];
            if wants(query, &self.instances[entry.instance], entry) {
                selected.push(id);
            }
            id = entry.next(Which::Order);
        }
    }

    /// PRESENTATION INSTANCE: one instance after the other; the instance with the oldest
    /// sample comes first.
    fn select_by_instance(&mut self, query: &Query, selected: &mut Vec<EntryId>) {
        self.instances.round += 1;
        let round = self.instances.round;
        let mut id = self.order.head;
        while id != NONE && selected.len() < query.max {
            let at = self.entries[id].instance;
            if self.instances[at].marks.visited != round {
                self.instances[at].marks.visited = round;
                self.select_of(at, query, selected);
            }
            id = self.entries[id].next(Which::Order);
        }
    }

    fn select_of(&self, at: u32, query: &Query, selected: &mut Vec<EntryId>) {
        let instance = &self.instances[at];
        let mut id = instance.entries.head;
        while id != NONE && selected.len() < query.max {
            let entry = &self.entries[id];
            if wants(query, instance, entry) {
                selected.push(id);
            }
            id = entry.next(Which::Instance);
        }
    }

    /// Whether a query with these masks selects any entry.
    pub(crate) fn has(&self, masks: &StateMasks) -> bool {
        self.tally.has(masks)
    }

    /// The SampleInfo of an entry, without ranks.
    pub(super) fn info(&self, id: EntryId) -> SampleInfo {
        let entry = &self.entries[id];
        let writer = self.writers.handle(entry.origin.writer);
        InstanceInfo::of(&self.instances[entry.instance]).of_entry(entry, writer, 0)
    }

    /// Computes the ranks within the collection of the `selected` entries.
    pub(super) fn rank(&mut self, collection: &mut [(SampleInfo, Option<P>)]) {
        self.instances.round += 1;
        let round = self.instances.round;
        for (&id, (info, _)) in self.selected.iter().zip(collection).rev() {
            let entry = &self.entries[id];
            let own = entry.generations.total();
            let marks = &mut self.instances[entry.instance].marks;
            if marks.ranked != round {
                marks.ranked = round;
                marks.rank = 0;
                marks.newest = own;
            }
            info.sample_rank = marks.rank;
            info.generation_rank = marks.newest - own;
            marks.rank += 1;
        }
    }
}

/// The part of SampleInfo that all samples of an instance share.
#[derive(Debug, Clone, Copy)]
pub(super) struct InstanceInfo {
    view_state: ViewState,
    instance_state: InstanceState,
    handle: InstanceHandle,
    generations: Generations,
}

impl InstanceInfo {
    pub(super) fn of(instance: &Instance) -> Self {
        Self {
            view_state: view_state(instance),
            instance_state: instance.state,
            handle: InstanceHandle::of_instance(instance.key),
            generations: instance.generations,
        }
    }

    /// The SampleInfo of a sample, without its generation rank.
    #[inline]
    pub(super) fn of_entry<P>(
        &self,
        entry: &Entry<P>,
        publication_handle: InstanceHandle,
        sample_rank: i32,
    ) -> SampleInfo {
        let own = entry.generations;
        SampleInfo {
            sample_state: entry.state,
            view_state: self.view_state,
            instance_state: self.instance_state,
            disposed_generation_count: own.disposed,
            no_writers_generation_count: own.no_writers,
            sample_rank,
            generation_rank: 0,
            absolute_generation_rank: self.generations.since(own),
            source_timestamp: entry.origin.timestamp,
            instance_handle: self.handle,
            publication_handle,
            valid_data: entry.payload.is_some(),
            position: entry.origin.position,
            writer_sequence: entry.origin.writer_sequence,
            encapsulation: entry.origin.encapsulation,
        }
    }
}

/// Computes the generation ranks of samples of one instance, in the order of arrival.
pub(super) fn rank_generations<P>(collection: &mut [(SampleInfo, Option<P>)]) {
    let total = |info: &SampleInfo| {
        let disposed = info.disposed_generation_count;
        disposed.saturating_add(info.no_writers_generation_count)
    };
    let ends = (collection.first(), collection.last());
    let (Some((first, _)), Some((last, _))) = ends else {
        return;
    };
    let newest = total(last);
    // Generation counts never decrease: equal ends mean equal counts.
    if total(first) != newest {
        for (info, _) in collection {
            info.generation_rank = newest - total(info);
        }
    }
}

fn view_state(instance: &Instance) -> ViewState {
    if instance.is_new {
        ViewState::New
    } else {
        ViewState::NotNew
    }
}

fn wants<P>(query: &Query, instance: &Instance, entry: &Entry<P>) -> bool {
    query.masks.sample.allows(entry.state)
        && query.masks.view.allows(view_state(instance))
        && query.masks.instance.allows(instance.state)
}
