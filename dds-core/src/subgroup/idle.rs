//! How an epoch comes to rest, and what wakes it: see [`crate::engine::active_set`].

use spindle_dds_transport::{Fabric, Rank};

use super::{Context, Phase, SubgroupState};
use crate::ids::DeliveryClass;
use crate::subgroup::send_ring::SendRing;

/// Where an epoch stands between awake and at rest.
#[derive(Debug, Default)]
pub(super) struct IdleState {
    /// Passes that moved nothing, since one did.
    fruitless: u32,
    resting: bool,
    /// Looks in vain since it was laid to rest.
    looks: u32,
    /// What others may change that it depends on. Kept, so that it allocates only while
    /// it grows.
    watched: Vec<Watched>,
}

/// A word of another member's row, as it was when it was noted.
#[derive(Debug)]
struct Watched {
    place: Rank,
    word: usize,
    value: u64,
}

/// What a look at an epoch at rest finds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Seen {
    News,
    Nothing,
    /// Nothing, as often before: from now on it is looked at less.
    FallsAsleep,
}

/// Passes that move nothing before an epoch is laid to rest: who answers at once finds it
/// awake.
const FRUITLESS_MAX: u32 = 8;

impl<F: Fabric> SubgroupState<F> {
    /// A pass has moved something, or nothing. Whether it is time to rest.
    pub(super) fn should_idle<S>(&mut self, moved: bool, context: &Context<'_, S>) -> bool {
        self.idle.fruitless = if moved {
            0
        } else {
            self.idle.fruitless.saturating_add(1)
        };
        // While it has not begun, the layer above is asked at each step.
        let begun = self.handle.begun.load(crate::sync::Ordering::Relaxed);
        context.config.summary_polling && begun && self.idle.fruitless >= FRUITLESS_MAX
    }

    /// To be followed by one more pass: if that moves nothing, it is at rest.
    pub(super) fn enter_idle(&mut self) {
        self.idle.resting = true;
        self.idle.looks = 0;
        self.handle.rest.begin();
        self.note();
    }

    /// DomainState at at each step from now on.
    pub(super) fn leave_idle(&mut self) {
        if std::mem::take(&mut self.idle.resting) {
            self.idle.fruitless = 0;
            self.handle.rest.end();
        }
    }

    /// Whether a thread has left work in it, and said so.
    pub(crate) fn has_new_work(&self) -> bool {
        !self.handle.rest.lasts()
    }

    /// Looks whether a word that it depends on has changed.
    pub(crate) fn look<S>(&mut self, context: &Context<'_, S>) -> Seen {
        let fabric = &self.handle.fabric;
        let differs = |it: &Watched| fabric.row(it.place).load(it.word) != it.value;
        let idle = &mut self.idle;
        if idle.watched.iter().any(differs) {
            return Seen::News;
        }
        // Beyond that, it stays asleep.
        let most = context.config.polls_until_cold;
        if idle.looks < most {
            idle.looks += 1;
            if idle.looks == most {
                return Seen::FallsAsleep;
            }
        }
        Seen::Nothing
    }

    /// All words of others that its next pass looks at, in the state that it is in.
    fn note(&mut self) {
        let mut watched = std::mem::take(&mut self.idle.watched);
        watched.clear();
        let fabric = &self.handle.fabric;
        let me = fabric.me();
        let mut note = |place: Rank, word: usize| {
            let value = fabric.row(place).load(word);
            watched.push(Watched { place, word, value });
        };
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
                if member.compared != taken {
                    note(place, member.columns.digest_count);
                }
                for class in DeliveryClass::BOTH.map(DeliveryClass::index) {
                    // Who claims from now on says so by committing, or by giving it up.
                    let send_ring = self.handle.send_rings[class].as_ref();
                    if let Some(mine) = mine
                        && send_ring.is_some_and(|send_ring: &SendRing| !send_ring.is_empty())
                    {
                        note(place, member.columns.released(class, mine));
                    }
                }
            }
        }
        self.idle.watched = watched;
    }
}
