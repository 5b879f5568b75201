//! The cache against a model of the standard's rules that keeps a plain list of entries.

use std::collections::{BTreeMap, BTreeSet};

use spindle_dds_core::MessageKind;
use spindle_dds_qos::{History, HistoryKind, ResourceLimits};

use super::{Fixture, key, limits};
use crate::cache::{Offer, Query, Whose};
use crate::condition::{InstanceStateMask, SampleStateMask, StateMasks, ViewStateMask};
use crate::handle::InstanceHandle;
use crate::status::RejectedReason;
use crate::subscription::{InstanceState, SampleInfo, SampleState, ViewState};

/// What becomes of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Kept,
    State(bool),
    Full(RejectedReason),
    Rejected(RejectedReason),
}

#[derive(Debug, Clone)]
struct Entry {
    instance: u8,
    payload: Option<u32>,
    state: SampleState,
    disposed: i32,
    no_writers: i32,
}

#[derive(Debug)]
struct Instance {
    state: InstanceState,
    view: ViewState,
    disposed: i32,
    no_writers: i32,
    writers: BTreeSet<u32>,
    /// When it was disposed of and had no entries, the last time.
    replaceable_since: Option<u64>,
}

struct Model {
    history: History,
    limits: ResourceLimits,
    ordered: bool,
    holds_back: bool,
    entries: Vec<Entry>,
    instances: BTreeMap<u8, Instance>,
    evicted: Vec<u32>,
    clock: u64,
}

/// What a reader sees of a sample.
#[derive(Debug, PartialEq, Eq)]
struct Seen {
    instance: InstanceHandle,
    payload: Option<u32>,
    states: (SampleState, ViewState, InstanceState),
    generations: [i32; 2],
    /// Sample rank, generation rank, absolute generation rank.
    ranks: [i32; 3],
}

impl Model {
    fn samples(&self, instance: Option<u8>) -> u64 {
        let is_one =
            |it: &&Entry| it.payload.is_some() && instance.is_none_or(|at| at == it.instance);
        self.entries.iter().filter(is_one).count() as u64
    }

    fn is_empty(&self, instance: u8) -> bool {
        self.entries.iter().all(|it| it.instance != instance)
    }

    fn offer(&mut self, kind: MessageKind, at: u8, writer: u32, payload: u32) -> Fate {
        self.clock += 1;
        let fate = match kind {
            MessageKind::Data => self.write(at, writer, payload),
            _ => self.change_state(kind, at, writer),
        };
        self.reclaim();
        fate
    }

    fn refuse(&self, reason: RejectedReason) -> Fate {
        let ends =
            |(at, it): (&u8, &Instance)| it.state != InstanceState::Alive && !self.is_empty(*at);
        let may_come =
            reason != RejectedReason::ByInstancesLimit || self.instances.iter().any(ends);
        if self.holds_back && may_come {
            Fate::Full(reason)
        } else {
            Fate::Rejected(reason)
        }
    }

    fn has_no_room_for_an_instance(&self) -> bool {
        let counts = |it: &&Instance| it.replaceable_since.is_none();
        let counted = self.instances.values().filter(counts).count() as u64;
        !self.limits.max_instances.allows(counted + 1)
    }

    fn begin(&mut self, at: u8) {
        if !self
            .limits
            .max_instances
            .allows(self.instances.len() as u64 + 1)
        {
            let replaceable = self.instances.iter();
            let replaceable = replaceable.filter_map(|(at, it)| Some((it.replaceable_since?, *at)));
            let (_, oldest) = replaceable.min().expect("there is room");
            self.instances.remove(&oldest);
        }
        let instance = Instance {
            state: InstanceState::Alive,
            view: ViewState::New,
            disposed: 0,
            no_writers: 0,
            writers: BTreeSet::new(),
            replaceable_since: None,
        };
        self.instances.insert(at, instance);
    }

    fn write(&mut self, at: u8, writer: u32, payload: u32) -> Fate {
        let is_known = self.instances.contains_key(&at);
        if !is_known && self.has_no_room_for_an_instance() {
            return self.refuse(RejectedReason::ByInstancesLimit);
        }
        let of_instance = self.samples(Some(at));
        let replaces = self.history.kind == HistoryKind::KeepLast
            && of_instance >= u64::from(self.history.depth);
        if replaces {
            let is_oldest = |it: &Entry| it.instance == at && it.payload.is_some();
            let oldest = self.entries.iter().position(is_oldest).expect("one");
            self.evicted.extend(self.entries.remove(oldest).payload);
        } else if !self.limits.max_samples.allows(self.samples(None) + 1) {
            return self.refuse(RejectedReason::BySamplesLimit);
        } else if !self.limits.max_samples_per_instance.allows(of_instance + 1) {
            return self.refuse(RejectedReason::BySamplesPerInstanceLimit);
        }
        if !is_known {
            self.begin(at);
        }
        let instance = self.instances.get_mut(&at).expect("known");
        match instance.state {
            InstanceState::Alive => {}
            InstanceState::NotAliveDisposed => instance.disposed += 1,
            InstanceState::NotAliveNoWriters => instance.no_writers += 1,
        }
        if instance.state != InstanceState::Alive {
            instance.view = ViewState::New;
        }
        instance.state = InstanceState::Alive;
        instance.replaceable_since = None;
        instance.writers.insert(writer);
        self.push(at, Some(payload));
        Fate::Kept
    }

    fn push(&mut self, at: u8, payload: Option<u32>) {
        let instance = &self.instances[&at];
        self.entries.push(Entry {
            instance: at,
            payload,
            state: SampleState::NotRead,
            disposed: instance.disposed,
            no_writers: instance.no_writers,
        });
    }

    fn change_state(&mut self, kind: MessageKind, at: u8, writer: u32) -> Fate {
        let disposes = kind != MessageKind::Unregister;
        if !self.instances.contains_key(&at) {
            if !disposes {
                return Fate::State(false);
            }
            if self.has_no_room_for_an_instance() {
                return self.refuse(RejectedReason::ByInstancesLimit);
            }
            self.begin(at);
        }
        let instance = self.instances.get_mut(&at).expect("known");
        let before = instance.state;
        if disposes {
            instance.writers.insert(writer);
            instance.state = InstanceState::NotAliveDisposed;
        }
        if kind != MessageKind::Dispose {
            self.lose(at, writer);
        }
        Fate::State(self.announce(at, before))
    }

    fn lose(&mut self, at: u8, writer: u32) {
        let instance = self.instances.get_mut(&at).expect("known");
        let had = instance.writers.remove(&writer);
        if had && instance.writers.is_empty() && instance.state == InstanceState::Alive {
            instance.state = InstanceState::NotAliveNoWriters;
        }
    }

    /// Whether the state has changed; it has an entry then.
    fn announce(&mut self, at: u8, before: InstanceState) -> bool {
        let changed = self.instances[&at].state != before;
        if changed {
            self.entries
                .retain(|it| it.instance != at || it.payload.is_some());
            self.push(at, None);
        }
        changed
    }

    fn writer_gone(&mut self, writer: u32, disposes: bool) -> bool {
        self.clock += 1;
        let mut any = false;
        for at in self.instances.keys().copied().collect::<Vec<_>>() {
            let instance = self.instances.get_mut(&at).expect("known");
            if instance.writers.contains(&writer) {
                let before = instance.state;
                if disposes {
                    instance.state = InstanceState::NotAliveDisposed;
                }
                self.lose(at, writer);
                any |= self.announce(at, before);
            }
        }
        self.reclaim();
        any
    }

    /// Forgets instances; those that become replaceable at once do so in the order of `first`.
    fn reclaim_in_order(&mut self, first: &[u8]) {
        let entries = &self.entries;
        let is_empty = |at: u8| entries.iter().all(|it| it.instance != at);
        let is_over = |at: u8, it: &Instance| {
            it.state != InstanceState::Alive && it.writers.is_empty() && is_empty(at)
        };
        self.instances.retain(|at, it| !is_over(*at, it));
        let all: Vec<u8> = self.instances.keys().copied().collect();
        for at in first.iter().copied().chain(all) {
            let Some(instance) = self.instances.get_mut(&at) else {
                continue;
            };
            let is_disposed = instance.state == InstanceState::NotAliveDisposed;
            if is_disposed && is_empty(at) && instance.replaceable_since.is_none() {
                self.clock += 1;
                instance.replaceable_since = Some(self.clock);
            }
        }
    }

    fn reclaim(&mut self) {
        self.reclaim_in_order(&[]);
    }

    fn states(&self, entry: &Entry) -> (SampleState, ViewState, InstanceState) {
        let instance = &self.instances[&entry.instance];
        (entry.state, instance.view, instance.state)
    }

    fn selects(&self, masks: &StateMasks, entry: &Entry) -> bool {
        let (sample, view, instance) = self.states(entry);
        let allowed = masks.sample.allows(sample) && masks.view.allows(view);
        allowed && masks.instance.allows(instance)
    }

    /// The positions of the selected entries, in the order of presentation.
    fn select(&self, query: &Query) -> Vec<usize> {
        let wanted = |at: &usize| self.selects(&query.masks, &self.entries[*at]);
        let of = |instance: u8| {
            let is_of = move |at: &usize| self.entries[*at].instance == instance;
            (0..self.entries.len()).filter(is_of).filter(wanted)
        };
        let mut selected: Vec<usize> = match query.whose {
            Whose::Any if self.ordered => (0..self.entries.len()).filter(wanted).collect(),
            Whose::Any => {
                let mut order = Vec::new();
                for entry in &self.entries {
                    if !order.contains(&entry.instance) {
                        order.push(entry.instance);
                    }
                }
                order.into_iter().flat_map(of).collect()
            }
            Whose::Instance(wanted) => of(wanted.0[0]).collect(),
            Whose::Next(after) => {
                let is_after = |at: &&u8| after.is_none_or(|after| **at > after.0[0]);
                let later = self.instances.keys().filter(is_after);
                let mut found = later.map(|at| of(*at).collect::<Vec<_>>());
                found.find(|it| !it.is_empty()).unwrap_or_default()
            }
        };
        selected.truncate(query.max);
        selected
    }

    fn select_and_see(&mut self, query: &Query, takes: bool) -> Vec<Seen> {
        self.clock += 1;
        let selected = self.select(query);
        let total = |it: &Entry| it.disposed + it.no_writers;
        let mut seen = Vec::new();
        for (rank, &at) in selected.iter().enumerate() {
            let entry = &self.entries[at];
            let instance = &self.instances[&entry.instance];
            let behind = selected[rank + 1..].iter().map(|at| &self.entries[*at]);
            let behind = behind.filter(|it| it.instance == entry.instance);
            let newest = behind
                .clone()
                .next_back()
                .map_or_else(|| total(entry), total);
            let now = instance.disposed + instance.no_writers;
            seen.push(Seen {
                instance: InstanceHandle::of_instance(key(entry.instance)),
                payload: entry.payload,
                states: self.states(entry),
                generations: [entry.disposed, entry.no_writers],
                ranks: [
                    behind.count() as i32,
                    newest - total(entry),
                    now - total(entry),
                ],
            });
        }
        let mut order = Vec::new();
        for &at in &selected {
            let entry = &mut self.entries[at];
            entry.state = SampleState::Read;
            let instance = self.instances.get_mut(&entry.instance).expect("known");
            instance.view = ViewState::NotNew;
            // That of its last sample counts.
            order.retain(|it| *it != entry.instance);
            order.push(entry.instance);
        }
        if takes {
            let mut at = 0;
            self.entries.retain(|_| {
                at += 1;
                !selected.contains(&(at - 1))
            });
            self.reclaim_in_order(&order);
        }
        seen
    }
}

fn seen((info, payload): &(SampleInfo, Option<u32>)) -> Seen {
    assert_eq!(info.valid_data, payload.is_some());
    Seen {
        instance: info.instance_handle,
        payload: *payload,
        states: (info.sample_state, info.view_state, info.instance_state),
        generations: [
            info.disposed_generation_count,
            info.no_writers_generation_count,
        ],
        ranks: [
            info.sample_rank,
            info.generation_rank,
            info.absolute_generation_rank,
        ],
    }
}

fn fate(offer: &Offer<u32>) -> Fate {
    match offer {
        Offer::Kept(_) => Fate::Kept,
        Offer::State { changed, .. } => Fate::State(*changed),
        Offer::Full { reason, .. } => Fate::Full(*reason),
        Offer::Rejected { reason, .. } => Fate::Rejected(*reason),
    }
}

fn all_masks() -> Vec<StateMasks> {
    let samples = [
        SampleStateMask::READ,
        SampleStateMask::NOT_READ,
        SampleStateMask::ANY,
    ];
    let views = [
        ViewStateMask::NEW,
        ViewStateMask::NOT_NEW,
        ViewStateMask::ANY,
    ];
    let instances = [
        InstanceState::Alive.into(),
        InstanceState::NotAliveDisposed.into(),
        InstanceState::NotAliveNoWriters.into(),
        InstanceStateMask::NOT_ALIVE,
        InstanceStateMask::ANY,
    ];
    let mut all = Vec::new();
    for sample in samples {
        for view in views {
            all.extend(instances.map(|instance| StateMasks {
                sample,
                view,
                instance,
            }));
        }
    }
    all
}

#[test]
fn the_cache_does_what_the_model_does() {
    let masks = all_masks();
    let histories = [
        History::keep_all(),
        History::keep_last(2),
        History::keep_last(1),
    ];
    let all = [
        ResourceLimits::default(),
        limits(5, 2, 4),
        limits(3, 3, 2),
        limits(2, 1, 2),
    ];
    let mut counts = [0_u32; 5];
    for seed in 0..500_u64 {
        let pick = |of: u64, by: u64| (seed / by % of) as usize;
        let (history, limits) = (histories[pick(3, 1)], all[pick(4, 3)]);
        let instances = [1, 3, 5][pick(3, 12)];
        let ordered = seed % 5 == 0;
        let mut fixture = Fixture::new(history, limits, ordered);
        let mut model = Model {
            history,
            limits,
            ordered,
            holds_back: seed % 7 != 0,
            entries: Vec::new(),
            instances: BTreeMap::new(),
            evicted: Vec::new(),
            clock: 0,
        };
        fixture.cache.set_holds_back(model.holds_back);
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) + 1;
        let mut next = |below: u64| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state % below
        };
        for step in 0..60 {
            let context = format!("seed {seed}, step {step}");
            let (at, writer) = (next(instances) as u8, next(2) as u32);
            let action = next(10);
            match action {
                0..=6 => {
                    let kind = match action {
                        0 => MessageKind::Dispose,
                        1 => MessageKind::Unregister,
                        2 if next(2) == 0 => MessageKind::DisposeUnregister,
                        _ => MessageKind::Data,
                    };
                    let origin = fixture.origin(writer);
                    let filled = match kind {
                        MessageKind::Data => fixture.cache.fill(key(at), writer),
                        _ => None,
                    };
                    let filled = filled.map(|mut filling| filling.take_in(origin, step));
                    let offered = match filled {
                        Some(entry) => Offer::Kept(entry),
                        None => fixture.offer(kind, at, writer, step),
                    };
                    let expected = model.offer(kind, at, writer, step);
                    assert_eq!(fate(&offered), expected, "{context}");
                    match expected {
                        Fate::Full(RejectedReason::ByInstancesLimit) => counts[0] += 1,
                        Fate::Full(_) => counts[1] += 1,
                        Fate::Rejected(_) => counts[2] += 1,
                        _ => {}
                    }
                }
                7 if next(8) == 0 => {
                    let disposes = next(2) == 0;
                    let origin = fixture.origin(writer);
                    let gone = fixture.cache.writer_gone(origin, disposes);
                    assert_eq!(gone, model.writer_gone(writer, disposes), "{context}");
                    // Another one of this handle, whose index may be another.
                    let (index, is_new) = fixture.cache.admit(super::writer(writer));
                    assert!(is_new, "{context}");
                    if index != writer {
                        break;
                    }
                }
                _ => {
                    let whose = match next(5) {
                        0 => Whose::Instance(key(at)),
                        1 => Whose::Next(Some(key(at))),
                        _ => Whose::Any,
                    };
                    let masks = match next(2) {
                        0 => StateMasks::ANY,
                        _ => masks[next(masks.len() as u64) as usize],
                    };
                    let max = [1, 2, usize::MAX][next(3) as usize];
                    let query = Query { max, masks, whose };
                    let takes = action != 7;
                    let mut out = Vec::new();
                    if takes {
                        fixture.cache.take(&query, &mut out);
                    } else {
                        fixture
                            .cache
                            .read(&query, &mut out, &mut |payload| *payload);
                    }
                    let out: Vec<_> = out.iter().map(seen).collect();
                    assert_eq!(out, model.select_and_see(&query, takes), "{context}");
                    counts[3] += u32::from(!out.is_empty());
                }
            }
            for masks in &masks {
                let has = model.entries.iter().any(|it| model.selects(masks, it));
                assert_eq!(fixture.cache.has(masks), has, "{context}: {masks:?}");
            }
            for at in 0..5 {
                let known = model.instances.get(&at).map(|it| it.state);
                assert_eq!(fixture.cache.instance(key(at)), known, "{context}: {at}");
            }
            let replaceable = model.instances.values();
            let replaceable = replaceable
                .filter(|it| it.replaceable_since.is_some())
                .count();
            assert_eq!(fixture.cache.instances.replaceable(), replaceable as u64);
            counts[4] += u32::from(replaceable > 1);
        }
        assert_eq!(fixture.evicted, model.evicted, "seed {seed}");
    }
    assert!(counts.iter().all(|count| *count > 100), "{counts:?}");
}
