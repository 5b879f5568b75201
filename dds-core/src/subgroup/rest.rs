//! How a lane comes to rest, and what wakes it: see [`crate::engine::active_set`].

use spindle_dds_transport::{Fabric, Rank};

use super::{Context, Phase, SubgroupState};
use crate::ids::DeliveryClass;
use crate::subgroup::send_ring::SendRing;

/// Where a lane stands between awake and at rest.
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

/// What a look at a lane at rest finds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Seen {
    News,
    Nothing,
    /// Nothing, as often before: from now on it is looked at less.
    FallsAsleep,
}

/// Passes that move nothing before a lane is laid to rest: who answers at once finds it
/// awake.
const FRUITLESS_MAX: u32 = 8;

impl<F: Fabric> SubgroupState<F> {
    /// A pass has moved something, or nothing. Whether it is time to rest.
    pub(super) fn tires<S>(&mut self, moved: bool, context: &Context<'_, S>) -> bool {
        self.repose.fruitless = if moved {
            0
        } else {
            self.repose.fruitless.saturating_add(1)
        };
        // While it has not begun, the layer above is asked at each step.
        let begun = self.lane.begun.load(crate::sync::Ordering::Relaxed);
        context.config.summary_polling && begun && self.repose.fruitless >= FRUITLESS_MAX
    }

    /// To be followed by one more pass: if that moves nothing, it is at rest.
    pub(super) fn lie_down(&mut self) {
        self.repose.resting = true;
        self.repose.looks = 0;
        self.lane.rest.begin();
        self.note();
    }

    /// DomainState at at each step from now on.
    pub(super) fn rise(&mut self) {
        if std::mem::take(&mut self.repose.resting) {
            self.repose.fruitless = 0;
            self.lane.rest.end();
        }
    }

    /// Whether a thread has left work in it, and said so.
    pub(crate) fn is_stirred(&self) -> bool {
        !self.lane.rest.lasts()
    }

    /// Looks whether a word that it depends on has changed.
    pub(crate) fn look<S>(&mut self, context: &Context<'_, S>) -> Seen {
        let fabric = &self.lane.fabric;
        let differs = |it: &Watched| fabric.row(it.place).load(it.word) != it.value;
        let repose = &mut self.repose;
        if repose.watched.iter().any(differs) {
            return Seen::News;
        }
        // Beyond that, it stays asleep.
        let most = context.config.looks_to_sleep;
        if repose.looks < most {
            repose.looks += 1;
            if repose.looks == most {
                return Seen::FallsAsleep;
            }
        }
        Seen::Nothing
    }

    /// All words of others that its next pass looks at, in the state that it is in.
    fn note(&mut self) {
        let mut watched = std::mem::take(&mut self.repose.watched);
        watched.clear();
        let fabric = &self.lane.fabric;
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
                let streams = sender.streams.iter().flatten();
                streams.for_each(|stream| note(sender.rank, stream.guard()));
            }
        }
        if self.phase == Phase::Open {
            let mine = self.lane.mine;
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
                for ring in DeliveryClass::BOTH.map(DeliveryClass::index) {
                    // Who claims from now on says so by committing, or by giving it up.
                    let outbox = self.lane.outboxes[ring].as_ref();
                    if let Some(mine) = mine
                        && outbox.is_some_and(|outbox: &SendRing| !outbox.is_empty())
                    {
                        note(place, member.columns.released(ring, mine));
                    }
                }
            }
        }
        self.repose.watched = watched;
    }
}
