//! Counts of entries by the states that masks select by, so that a condition on states needs no
//! look at the entries.

use super::instance::Instance;
use crate::condition::StateMasks;
use crate::subscription::{InstanceState, SampleState, ViewState};

/// How many entries there are of each view state, instance state and sample state.
#[derive(Debug, Default)]
pub(super) struct Tally {
    counts: [Counts; CLASSES.len()],
}

/// Entries of one class.
#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    all: u64,
    /// Those that were read.
    read: u64,
}

/// The states that all entries of an instance share, as an index into [`CLASSES`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Class(u8);

const CLASSES: [(InstanceState, ViewState); 6] = [
    (InstanceState::Alive, ViewState::NotNew),
    (InstanceState::Alive, ViewState::New),
    (InstanceState::NotAliveDisposed, ViewState::NotNew),
    (InstanceState::NotAliveDisposed, ViewState::New),
    (InstanceState::NotAliveNoWriters, ViewState::NotNew),
    (InstanceState::NotAliveNoWriters, ViewState::New),
];

impl Class {
    #[inline]
    pub(super) fn of(instance: &Instance) -> Self {
        // The standard's bits of the instance states are 1, 2 and 4.
        Self((instance.state as u8 & !1) + u8::from(instance.is_new))
    }
}

impl Tally {
    /// The number of entries of a class, to be raised by those that come.
    #[inline]
    pub(super) fn all_mut(&mut self, class: Class) -> &mut u64 {
        &mut self.counts[usize::from(class.0)].all
    }

    /// Entries go, some of which were read.
    #[inline]
    pub(super) fn left(&mut self, class: Class, all: u64, read: u64) {
        let counts = &mut self.counts[usize::from(class.0)];
        counts.all -= all;
        counts.read -= read;
    }

    /// An entry of this class is read for the first time.
    pub(super) fn was_read(&mut self, class: Class) {
        self.counts[usize::from(class.0)].read += 1;
    }

    /// The states of an instance change, which has so many entries.
    #[inline]
    pub(super) fn moved(&mut self, [from, to]: [Class; 2], all: u64, read: u64) {
        if from != to {
            self.left(from, all, read);
            let counts = &mut self.counts[usize::from(to.0)];
            counts.all += all;
            counts.read += read;
        }
    }

    /// Whether there is an entry that these masks select.
    pub(super) fn has(&self, masks: &StateMasks) -> bool {
        let read = masks.sample.allows(SampleState::Read);
        let not_read = masks.sample.allows(SampleState::NotRead);
        CLASSES.iter().zip(&self.counts).any(|(class, counts)| {
            let (instance, view) = *class;
            let any = read && counts.read > 0 || not_read && counts.all > counts.read;
            any && masks.instance.allows(instance) && masks.view.allows(view)
        })
    }
}
