//! What is kept of an instance.

use std::collections::{BTreeSet, VecDeque};

use super::super::record::{Cursor, Record};
use crate::subgroup::header::MessageKind;

/// One instance. Small, as a topic may have many, each with a single sample.
#[derive(Debug, Default)]
pub(super) struct Instance {
    /// Ascending.
    pub(super) samples: VecDeque<Record>,
    /// Writers that have it registered.
    pub(super) writers: Writers,
    /// Once it was disposed of or unregistered.
    pub(super) states: Option<Box<States>>,
}

/// What has changed an instance's state.
#[derive(Debug, Default)]
pub(super) struct States {
    /// The last disposal, while no newer sample is there.
    pub(super) disposal: Option<Record>,
    /// The last unregistration of each writer that has not registered it again, ascending.
    pub(super) unregistrations: Vec<Record>,
    /// When the instance is to be removed.
    pub(super) removed_at: Option<u64>,
}

/// Writers of an instance, by their numbers in the history.
#[derive(Debug, Default)]
pub(super) enum Writers {
    #[default]
    None,
    One(u32),
    Many(BTreeSet<u32>),
}

impl Writers {
    pub(super) fn is_empty(&self) -> bool {
        match self {
            Self::None => true,
            Self::One(_) => false,
            Self::Many(many) => many.is_empty(),
        }
    }

    pub(super) fn add(&mut self, writer: u32) {
        match self {
            Self::None => *self = Self::One(writer),
            Self::One(one) if *one == writer => {}
            Self::One(one) => *self = Self::Many([*one, writer].into()),
            Self::Many(many) => drop(many.insert(writer)),
        }
    }

    /// Whether it was there.
    pub(super) fn remove(&mut self, writer: u32) -> bool {
        match self {
            Self::One(one) if *one == writer => *self = Self::None,
            Self::Many(many) => return many.remove(&writer),
            Self::None | Self::One(_) => return false,
        }
        true
    }
}

impl Instance {
    pub(super) fn states(&self) -> impl Iterator<Item = &Record> {
        self.states.iter().flat_map(|it| it.all())
    }

    /// Inserts a sample. Takes memory for as many as are kept, where that is known.
    pub(super) fn insert(&mut self, place: usize, record: Record, depth: Option<u32>) {
        let len = self.samples.len();
        if len == self.samples.capacity() {
            let more = match depth {
                Some(depth) if len < depth as usize => len.clamp(1, depth as usize - len),
                Some(_) => 1,
                None => (len / 2).max(1),
            };
            self.samples.reserve_exact(more);
        }
        self.samples.insert(place, record);
    }

    /// A sample has come: its writer has the instance registered, which is alive, unless newer
    /// messages say otherwise. Returns the states that are not true any more.
    pub(super) fn revive(&mut self, cursor: &Cursor, writer: u32) -> Vec<Record> {
        let Some(states) = &mut self.states else {
            self.writers.add(writer);
            return Vec::new();
        };
        let (forgotten, is_unregistered) = states.revive(cursor);
        if !is_unregistered {
            self.writers.add(writer);
        }
        if states.all().next().is_none() {
            self.states = None;
        }
        forgotten
    }

    /// Whether a message that changes its state is older than what is known.
    pub(super) fn is_superseded(&self, cursor: &Cursor, disposes: bool) -> bool {
        let is_newer = |it: &Record| it.cursor() >= *cursor;
        let of_writer = |it: &&Record| it.cursor().writer == cursor.writer;
        if disposes {
            let states = self.states.as_ref();
            let disposal = states.and_then(|it| it.disposal.as_ref());
            disposal.is_some_and(is_newer) || self.samples.back().is_some_and(is_newer)
        } else {
            let last = self.samples.iter().rev().find(of_writer);
            self.states().filter(of_writer).any(is_newer) || last.is_some_and(is_newer)
        }
    }
}

impl States {
    pub(super) fn all(&self) -> impl Iterator<Item = &Record> {
        self.disposal.iter().chain(&self.unregistrations)
    }

    pub(super) fn all_mut(&mut self) -> impl Iterator<Item = &mut Record> {
        self.disposal.iter_mut().chain(&mut self.unregistrations)
    }

    /// Puts the newest message of its writer. Returns what it replaces.
    pub(super) fn put(&mut self, record: Record, disposes: bool) -> Vec<Record> {
        let writer = record.cursor().writer;
        let of_writer = |it: &mut Record| it.cursor().writer == writer;
        let mut forgotten: Vec<_> = self.unregistrations.extract_if(.., of_writer).collect();
        if disposes {
            forgotten.extend(self.disposal.replace(record));
        } else {
            self.unregistrations.push(record);
            self.unregistrations.sort_by_key(Record::cursor);
        }
        forgotten
    }

    /// A sample has come. Returns the states that it ends, and whether its writer has unregistered
    /// the instance since.
    pub(super) fn revive(&mut self, cursor: &Cursor) -> (Vec<Record>, bool) {
        let is_older = |it: &Record| it.cursor() < *cursor;
        let of_writer = |it: &Record| it.cursor().writer == cursor.writer;
        let ended = |it: &mut Record| of_writer(it) && is_older(it);
        let mut forgotten: Vec<_> = self.unregistrations.extract_if(.., ended).collect();
        forgotten.extend(self.disposal.take_if(|it| is_older(it)));
        let unregisters = |it: &Record| it.meta().kind != MessageKind::Dispose && of_writer(it);
        let is_unregistered = self.all().any(unregisters);
        (forgotten, is_unregistered)
    }
}
