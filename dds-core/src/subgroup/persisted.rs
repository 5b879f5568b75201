//! How far members have persisted an epoch whose topics have logs: one word in each row.
//!
//! ```text
//!   thread of the log --set_persisted--> asked --step--> own row, pushed --> rows at the others
//!                                                   \                            | step
//!                                                    +--> seen, Sink::persisted <-+
//! ```
//!
//! Words are absolute positions, and rise; one that falls is ignored. Rows of epochs without logs have
//! no such word, so nothing is looked at there.
//!
//! No rise is missed. A thread raises `asked`, then nudges as a commit does, so it is found by the step that
//! follows, in an idle epoch too. The pushed block wakes those that sleep for stability or room, and a pass
//! that pushes it leaves waking to no other member. An idle epoch watches the words of the others.

use spindle_dds_transport::{Fabric, Rank};

use super::{Context, SubgroupState};
use crate::sink::Sink;
use crate::subgroup::handle::{ENDED, SubgroupHandle};
use crate::sync::{AtomicU64, Ordering};

/// What the threads of a participant share of it.
#[derive(Debug)]
pub(crate) struct Persisted {
    /// What this member is to tell.
    asked: AtomicU64,
    /// By rank in the epoch: the highest word that was seen. Empty without logs.
    seen: Box<[AtomicU64]>,
}

impl Persisted {
    /// Of an epoch with so many members, 0 where it has no logs.
    pub(crate) fn new(members: usize) -> Self {
        Self {
            asked: AtomicU64::new(0),
            seen: (0..members).map(|_| AtomicU64::new(0)).collect(),
        }
    }

    /// Raises what this member is to tell. Returns whether it rose: then the caller nudges.
    pub(crate) fn ask(&self, position: u64) -> bool {
        // Release: what the caller has done before, it has done before a step finds the position.
        self.asked.fetch_max(position, Ordering::Release) < position
    }

    /// What this member is to tell.
    pub(crate) fn asked(&self) -> u64 {
        self.asked.load(Ordering::Acquire)
    }

    fn seen(&self, place: Rank) -> u64 {
        let word = self.seen.get(place.index());
        word.map_or(0, |word| word.load(Ordering::Acquire))
    }

    /// Notes the word of a member. Returns whether it rose. Called by the thread that steps.
    fn note(&self, place: Rank, value: u64) -> bool {
        let risen = value > self.seen(place);
        if risen && let Some(word) = self.seen.get(place.index()) {
            word.store(value, Ordering::Release);
        }
        risen
    }
}

impl<F: Fabric> SubgroupHandle<F> {
    /// Whether any topic of the epoch has logs: only then members tell what they have persisted.
    pub fn is_logged(&self) -> bool {
        self.columns.persisted.is_some()
    }

    /// Tells all members that everything below this position is durable here. Any thread. A position
    /// that is not above the last one has no effect, nor has one of an epoch without logs or that has ended.
    pub fn set_persisted(&self, position: u64) {
        if self.is_logged() && self.gate.status() < ENDED && self.persisted.ask(position) {
            self.shared.left_commits.store(true, Ordering::Relaxed);
            self.nudge();
        }
    }

    /// The position below which everything is durable at a member, as far as steps here have found;
    /// 0 before it has told any. It only rises. `place` is the rank in the epoch.
    pub fn persisted(&self, place: Rank) -> u64 {
        self.persisted.seen(place)
    }
}

impl<F: Fabric> SubgroupState<F> {
    /// Tells what this member has persisted, and notes what others have. Returns whether any of it rose.
    #[inline]
    pub(super) fn exchange_persisted<S: Sink<F>>(
        &mut self,
        handle: &SubgroupHandle<F>,
        context: &mut Context<'_, S>,
    ) -> bool {
        match handle.columns.persisted {
            Some(word) => self.exchange_persisted_words(word, handle, context),
            None => false,
        }
    }

    #[inline(never)]
    fn exchange_persisted_words<S: Sink<F>>(
        &mut self,
        word: usize,
        handle: &SubgroupHandle<F>,
        context: &mut Context<'_, S>,
    ) -> bool {
        let own = handle.persisted.asked();
        let mut risen = handle.persisted.note(handle.fabric.me(), own);
        if risen {
            handle.fabric.store(word, own);
            let (at, len) = (handle.columns.delivered_num, handle.columns.delivered_len);
            context.pushes.persisted(at, len);
        }
        for seen in &mut self.watch.persisted {
            if let Some(value) = seen.look() {
                risen |= handle.persisted.note(seen.place, value);
            }
        }
        handle.fabric.looked(self.watch.persisted.len());
        if risen {
            context.sink.persisted(self.id());
        }
        risen
    }
}
