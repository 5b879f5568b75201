//! How an epoch goes idle, and what makes it active again.
//!
//! Invariant: while `is_idle`, `watched` has every word of other members that the next pass would
//! read, with its value before the last pass. See [`crate::engine::active_set`].

use spindle_dds_transport::{Fabric, Rank};

use super::{Context, Phase, SubgroupState};
use crate::ids::DeliveryClass;
use crate::subgroup::send_ring::SendRing;

/// Where an epoch stands between active and idle.
#[derive(Debug, Default)]
pub(super) struct IdleState {
    /// Consecutive passes that changed nothing.
    unchanged_passes: u32,
    is_idle: bool,
    /// Polls without a change since the epoch went idle.
    unchanged_polls: u32,
    /// The words of others that the next pass depends on. Kept, so that it allocates only while it
    /// grows.
    watched: Vec<Watched>,
    /// Whether these include words by which others release messages of this member.
    awaits_release: bool,
}

/// A word of another member's row, with the value it had when it was noted.
#[derive(Debug)]
struct Watched {
    place: Rank,
    word: usize,
    value: u64,
}

/// What a poll of an idle epoch finds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PollResult {
    Changed,
    Unchanged,
    /// Nothing, for the last of many polls: from now on it is polled less.
    BecomesCold,
}

/// Consecutive passes without a change before an epoch goes idle. A peer that answers at once finds
/// the epoch active.
const UNCHANGED_PASSES_MAX: u32 = 8;

impl<F: Fabric> SubgroupState<F> {
    /// Counts a pass and returns whether the epoch should go idle.
    pub(super) fn should_idle<S>(&mut self, moved: bool, context: &Context<'_, S>) -> bool {
        self.idle.unchanged_passes = if moved {
            0
        } else {
            self.idle.unchanged_passes.saturating_add(1)
        };
        // Before the epoch has begun, `begin` asks the sink at each step.
        let begun = self.handle.begun.load(crate::sync::Ordering::Relaxed);
        context.config.summary_polling
            && begun
            && self.idle.unchanged_passes >= UNCHANGED_PASSES_MAX
    }

    /// Marks the epoch idle. One more pass must follow: it is idle if that changes nothing.
    pub(super) fn enter_idle(&mut self) {
        self.idle.is_idle = true;
        self.idle.unchanged_polls = 0;
        self.handle.idle_flag.begin();
        self.note();
    }

    /// Makes the epoch active: it is evaluated at each step from now on.
    pub(super) fn leave_idle(&mut self) {
        if std::mem::take(&mut self.idle.is_idle) {
            self.idle.unchanged_passes = 0;
            self.handle.idle_flag.end();
        }
    }

    /// Whether a thread has left work in the epoch since it went idle.
    pub(crate) fn has_new_work(&self) -> bool {
        !self.handle.idle_flag.lasts()
    }

    /// Whether the idle epoch has own messages that others have not released.
    pub(crate) fn awaits_release(&self) -> bool {
        self.idle.awaits_release
    }

    /// Polls the watched words.
    #[inline]
    pub(crate) fn poll<S>(&mut self, context: &Context<'_, S>) -> PollResult {
        let fabric = &self.handle.fabric;
        let differs = |it: &Watched| fabric.row(it.place).load(it.word) != it.value;
        let idle = &mut self.idle;
        if idle.watched.iter().any(differs) {
            return PollResult::Changed;
        }
        // After that many polls, it stays at the lower rate.
        let most = context.config.polls_until_cold;
        if idle.unchanged_polls < most {
            idle.unchanged_polls += 1;
            if idle.unchanged_polls == most {
                return PollResult::BecomesCold;
            }
        }
        PollResult::Unchanged
    }

    /// Notes all words of others that the next pass reads, given the current state.
    fn note(&mut self) {
        let mut watched = std::mem::take(&mut self.idle.watched);
        watched.clear();
        let fabric = &self.handle.fabric;
        let me = fabric.me();
        let mut note = |place: Rank, word: usize| {
            let value = fabric.row(place).load(word);
            watched.push(Watched { place, word, value });
        };
        let mut awaits_release = false;
        if self.phase < Phase::Frozen {
            for sender in &self.senders {
                if sender.rank == me || self.members[sender.rank.index()].fenced {
                    continue;
                }
                let receive_cursors = sender.receive_cursors.iter().flatten();
                receive_cursors.for_each(|cursor| note(sender.rank, cursor.guard()));
            }
        }
        if self.phase == Phase::Open {
            let mine = self.handle.mine;
            let waits = self.stable < self.received_num;
            let taken = self.digest.taken();
            for (place, member) in (0..).map(Rank).zip(&self.members) {
                if place == me || member.fenced {
                    continue;
                }
                if waits {
                    note(place, member.columns.received_num);
                    for &at in &self.ordered {
                        note(place, member.columns.received(at));
                    }
                }
                if let Some(persisted) = member.columns.persisted {
                    note(place, persisted);
                }
                if member.compared != taken {
                    note(place, member.columns.digest_count);
                }
                for class in DeliveryClass::BOTH.map(DeliveryClass::index) {
                    // Claims from now on interrupt the idle state when they are committed or
                    // withdrawn.
                    let send_ring = self.handle.send_rings[class].as_ref();
                    if let Some(mine) = mine
                        && send_ring.is_some_and(|send_ring: &SendRing| !send_ring.is_empty())
                    {
                        note(place, member.columns.released(class, mine));
                        awaits_release = true;
                    }
                }
            }
        }
        self.idle.watched = watched;
        self.idle.awaits_release = awaits_release;
    }
}
