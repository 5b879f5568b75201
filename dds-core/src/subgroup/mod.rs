//! An epoch as the engine keeps it: receive, null, send and delivery predicates.
//!
//! ```text
//!   guards of senders --receive--> counts --min--> received_num (mine) --push both-->
//!   those of members --min--> stable --deliver--> delivered_num, released --push-->
//! ```
//!
//! Message `k` of ordered sender `i` of `n` stands at place `k * n + i` of the
//! order. With `c[i]` messages received of sender `i`, everything below the least
//! `c[i] * n + i` is here: that is `received_num`. Its word in a sender's row leaves the
//! sender's own messages out, for it has what its guard says; so who alone sends in an epoch
//! pushes payload, headers and guard, and nothing else. What a member has received of each
//! sender stands beside it: nulls that are known here, others may lack, for a message is
//! stable when all have it and all messages before it.
//! Positions are places counted from the epoch's base.

mod begin;
pub(crate) mod claim;
mod deliver;
pub(crate) mod digest;
mod end;
mod figures;
pub(crate) mod gate;
pub(crate) mod handle;
pub(crate) mod header;
pub(crate) mod held;
mod idle;
pub(crate) mod idle_flag;
pub(crate) mod layout;
pub(crate) mod outgoing;
pub(crate) mod pushes;
mod receive;
pub(crate) mod receive_cursor;
pub(crate) mod release_tracker;
mod run;
pub(crate) mod send_ring;
pub(crate) mod shared;
#[cfg(all(test, not(loom)))]
mod tests;

use std::sync::Arc;

use spindle_dds_transport::{Fabric, PeerSet, Rank};

pub use figures::{DeliveryWait, EpochPhase, Position, RingFigures, SubgroupFigures};
pub(crate) use idle::Seen;
pub use run::{MessageRun, RunTotals};

use crate::config::EngineConfig;
use crate::ids::{DeliveryClass, SubgroupId};
use crate::sink::Sink;
use crate::spec::{SenderSpec, SubgroupSpec};
use crate::subgroup::claim::{Claim, ClaimError, CommitMeta};
use crate::subgroup::digest::Digest;
use crate::subgroup::handle::SubgroupHandle;
use crate::subgroup::held::Tickets;
use crate::subgroup::layout::{Columns, SegmentLayout};
use crate::subgroup::outgoing::{Outgoing, WriterSeqs};
use crate::subgroup::pushes::Pushes;
use crate::subgroup::receive_cursor::{ProtocolViolation, ReceiveCursor};

/// The engine's state of one epoch.
pub(crate) struct SubgroupState<F> {
    pub(crate) handle: Arc<SubgroupHandle<F>>,
    /// For messages that are held.
    tickets: Tickets<F>,
    pub(crate) spec: SubgroupSpec,
    phase: Phase,
    others: PeerSet,
    /// How many these are.
    peers: usize,
    /// By place.
    members: Vec<Member>,
    senders: Vec<Sender>,
    /// Indexes into `senders` of the ordered ones.
    ordered: Vec<usize>,
    outgoing: [Option<Outgoing>; 2],
    received_num: u64,
    delivered_num: u64,
    stable: u64,
    /// What others can have acknowledged at most, when this was computed last.
    ack_reach: u64,
    /// What others can have followed that is unknown here.
    slack: u64,
    null_target: u64,
    digest: Digest,
    /// This member has said that it is ready for messages.
    is_ready: bool,
    /// By ring and sender: what had been passed when this was accounted for last.
    accounted: [Vec<u64>; 2],
    /// What the rows of others have been told of `released`, by ring and sender.
    released_told: [Vec<u64>; 2],
    idle: idle::IdleState,
    /// Messages delivered, and the bytes of their payload.
    delivered: (u64, u64),
    /// Messages that had been delivered when the sink was told last.
    told: u64,
    /// So many more, and it is told though the next step delivers others.
    batch_max: u64,
}

/// How far the epoch is on its way to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Phase {
    /// All predicates.
    Open,
    /// Sends what is committed, and receives; says nothing of deliveries.
    Wedged,
    /// Sends, receives and says nothing.
    Frozen,
}

struct Member {
    columns: Columns,
    received_num: u64,
    /// Checkpoints compared with this member's.
    compared: u64,
    /// Its row is not read any more. It is waited for, in vain: nothing above
    /// what it acknowledged becomes stable, no room comes back.
    fenced: bool,
}

struct Sender {
    /// Its place.
    rank: Rank,
    /// Which of the ordered ones it is, if it is one.
    order: u64,
    receive_cursors: [Option<ReceiveCursor>; 2],
}

/// Twice the events that all rings together hold: those that a member knows, and those
/// that it must expect.
fn slack(spec: &SubgroupSpec) -> u64 {
    let rings = spec.ordered().filter_map(|sender| sender.rings[0]);
    rings.map(|ring| 2 * u64::from(ring.messages)).sum()
}

/// What a pass over the predicates did.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Progress {
    pub(crate) any: bool,
    pub(crate) room: bool,
    pub(crate) stable: bool,
}

impl Progress {
    /// Whether there was any: else nothing is left to do.
    pub(crate) fn is_any(self) -> bool {
        self.any || self.room || self.stable
    }

    pub(crate) fn add(&mut self, more: Self) {
        self.any |= more.any;
        self.room |= more.room;
        self.stable |= more.stable;
    }
}

/// What was found in the row of a member, named by its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Trouble {
    pub(crate) place: Rank,
    pub(crate) what: Found,
}

/// What is wrong with a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Found {
    ProtocolViolation(ProtocolViolation),
    /// Its order is another one, up to this position.
    Disagreement {
        position: u64,
        mine: u64,
        theirs: u64,
    },
}

/// What an epoch needs from its engine during a step.
pub(crate) struct Context<'a, S> {
    pub(crate) config: &'a EngineConfig,
    pub(crate) pushes: &'a mut Pushes,
    pub(crate) seqs: &'a mut WriterSeqs,
    pub(crate) sink: &'a mut S,
}

impl<F: Fabric> SubgroupState<F> {
    pub(crate) fn new(
        handle: Arc<SubgroupHandle<F>>,
        spec: SubgroupSpec,
        layout: &SegmentLayout,
    ) -> Self {
        let me = handle.fabric.me();
        let places = || (0..spec.members.len() as u16).map(Rank);
        let cursor = |class: DeliveryClass, sender: usize| {
            let columns = handle.rings[class.index()][sender]?;
            let row = handle.fabric.row(spec.senders[sender].rank);
            Some(ReceiveCursor::new(columns, row.clone()))
        };
        let mut ordered = 0;
        let mut order = |sender: &SenderSpec| {
            ordered += u64::from(sender.rings[0].is_some());
            ordered.saturating_sub(1)
        };
        let senders: Vec<Sender> = spec
            .senders
            .iter()
            .enumerate()
            .map(|(at, sender)| Sender {
                rank: sender.rank,
                order: order(sender),
                receive_cursors: DeliveryClass::BOTH.map(|class| cursor(class, at)),
            })
            .collect();
        let member = |place| Member {
            columns: layout.columns(place).clone(),
            received_num: 0,
            compared: 0,
            fenced: false,
        };
        Self {
            phase: Phase::Open,
            others: places().filter(|place| *place != me).collect(),
            peers: spec.members.len() - 1,
            members: places().map(member).collect(),
            ordered: (0..senders.len())
                .filter(|&at| senders[at].receive_cursors[0].is_some())
                .collect(),
            outgoing: handle.columns.rings.map(|ring| Some(Outgoing::new(ring?))),
            received_num: 0,
            delivered_num: 0,
            stable: 0,
            ack_reach: 0,
            slack: slack(&spec),
            null_target: 0,
            digest: Digest::new(spec.epoch, spec.subgroup.0),
            is_ready: false,
            accounted: [vec![0; senders.len()], vec![0; senders.len()]],
            released_told: [vec![0; senders.len()], vec![0; senders.len()]],
            idle: idle::IdleState::default(),
            delivered: (0, 0),
            told: 0,
            batch_max: deliver::batch_max(&handle.config, &spec),
            tickets: Tickets::new(handle.clone()),
            senders,
            spec,
            handle,
        }
    }

    pub(super) fn push_no_more_to(&mut self, place: Rank) {
        self.others.remove(place);
        self.peers = self.others.len();
    }

    /// Releases, receives, sends, delivers. Events go to the sink. Whether the epoch is at
    /// rest now. What a step has done that fails is in `progress`, too.
    pub(crate) fn step<S: Sink<F>>(
        &mut self,
        context: &mut Context<'_, S>,
        progress: &mut Progress,
    ) -> Result<bool, Trouble> {
        self.leave_idle();
        let moved = self.pass(context, progress)?;
        if !self.should_idle(moved, context) {
            return Ok(false);
        }
        self.enter_idle();
        self.pass(context, progress).map(|moved| !moved)
    }

    /// One pass over the predicates. Whether it changed anything, or said so.
    fn pass<S: Sink<F>>(
        &mut self,
        context: &mut Context<'_, S>,
        progress: &mut Progress,
    ) -> Result<bool, Trouble> {
        let handle = &self.handle.clone();
        let mut own = Progress::default();
        context.pushes.address(&self.others, self.peers);
        let evaluated = self.evaluate(handle, context, &mut own);
        let pushed = context.pushes.flush(&handle.fabric);
        if own.room || own.stable {
            handle.has_changed();
        }
        progress.add(own);
        evaluated.map(|()| own.is_any() || pushed)
    }

    fn evaluate<S: Sink<F>>(
        &mut self,
        handle: &Arc<SubgroupHandle<F>>,
        context: &mut Context<'_, S>,
        progress: &mut Progress,
    ) -> Result<(), Trouble> {
        if self.phase != Phase::Open {
            // Nothing is delivered until the epoch ends, or opens again.
            self.end_batch(context);
        }
        if self.phase == Phase::Frozen {
            return Ok(());
        }
        // Room first: between a message that comes and its reader, who may be stepping for it,
        // there is to be as little as can be.
        if self.phase == Phase::Open {
            self.release(handle, context);
            progress.room = self.begin(handle, context);
            progress.room |= self.reclaim(handle);
        }
        // A sender's own receipt is implied by its guard. Before that of others: how far they
        // can have come, my own messages say.
        self.receive_own(handle)?;
        progress.any |= self.receive(handle, context)?;
        if self.send(handle, context) {
            progress.any = true;
            self.receive_own(handle)?;
        }
        self.acknowledge(handle, context);
        if self.phase != Phase::Open {
            return Ok(());
        }
        progress.stable = self.find_stable(handle)?;
        progress.any |= self.deliver_ordered(handle, context);
        progress.any |= self.deliver_unordered(handle, context);
        self.compare_digests(handle)
    }

    /// Only what a committing thread needs: publishes what is in its epoch. That waits for its
    /// receipt here, and its delivery, until the next step.
    pub(crate) fn publish<S>(&mut self, handle: &SubgroupHandle<F>, context: &mut Context<'_, S>) {
        if self.phase < Phase::Frozen {
            context.pushes.address(&self.others, self.peers);
            self.send_rings(handle, context, true);
            context.pushes.flush(&handle.fabric);
        }
    }

    /// Commits a claim in this epoch, and publishes it, and what was committed before. Which
    /// message it is.
    #[inline]
    pub(crate) fn send_claim<S>(
        &mut self,
        claim: &mut Claim<F>,
        (used, meta): (u32, &CommitMeta),
        context: &mut Context<'_, S>,
    ) -> Result<u64, ClaimError> {
        let place = claim.finish_owned(used)?;
        let (handle, class) = (claim.subgroup(), claim.class().index());
        match &mut self.outgoing[class] {
            // Who waits for nulls behind it is not kept waiting by this.
            Some(outgoing) if outgoing.is_next(place) => {
                context.pushes.address(&self.others, self.peers);
                let header = claim.header(place, used, meta);
                let len = header.len.into();
                outgoing.send_next(&handle.fabric, header, context.seqs, context.pushes);
                receive::count_one(&handle.common.counters, len);
                if class == DeliveryClass::Ordered.index() && self.null_target > place.index + 1 {
                    self.send_rings(handle, context, true);
                }
                context.pushes.flush(&handle.fabric);
                claim.expect_another();
            }
            _ => {
                claim.write(place, &claim.header(place, used, meta));
                self.publish(handle, context);
            }
        }
        Ok(place.index)
    }

    /// Whether acknowledgements of others would let this member go on with
    /// something that is waited for.
    pub(crate) fn wants_acks<S: Sink<F>>(&self, sink: &S) -> bool {
        let me = self.handle.fabric.me();
        self.phase == Phase::Open
            && self.senders.iter().any(|sender| {
                let is_urgent = sender.rank != me || self.is_in_a_hurry(sink);
                let mut receive_cursors = sender.receive_cursors.iter().flatten();
                is_urgent && receive_cursors.any(|cursor| cursor.waiting() > 0)
            })
    }

    /// The same of what this member has sent by one ring alone, as far as it is published: some
    /// of it may not have been received here yet.
    pub(crate) fn wants_acks_of_class<S: Sink<F>>(&self, class: DeliveryClass, sink: &S) -> bool {
        let Some(mine) = self.handle.mine else {
            return false;
        };
        let cursor = &self.senders[mine].receive_cursors[class.index()];
        let (Some(cursor), Some(outgoing)) = (cursor, &self.outgoing[class.index()]) else {
            return false;
        };
        self.phase == Phase::Open
            && cursor.waiting_below(outgoing.published.real) > 0
            && self.is_in_a_hurry(sink)
    }

    /// Whether this member has to go on with what it sends itself as soon as others have it.
    fn is_in_a_hurry<S: Sink<F>>(&self, sink: &S) -> bool {
        sink.is_reading(self.id()) || self.is_unanswered()
    }

    /// Whether there are other ordered senders, and they send no nulls: then nothing of theirs
    /// wakes this member to say that it has received its own.
    fn is_unanswered(&self) -> bool {
        self.ordered.len() > 1 && !self.handle.config.null_sends
    }

    pub(crate) fn id(&self) -> SubgroupId {
        self.spec.subgroup
    }

    /// The place of a member of the control segment.
    pub(crate) fn place(&self, member: Rank) -> Option<Rank> {
        let place = self.spec.members.iter().position(|rank| *rank == member)?;
        Some(Rank(place as u16))
    }

    /// How far this member is.
    pub(crate) fn position(&self) -> Position {
        let base = self.spec.base;
        Position {
            stable: base + self.stable,
            delivered_num: base + self.delivered_num,
            digest: self.digest.value(),
        }
    }

    /// Whether the message at this position, or the null, has been received here. All that is
    /// below the epoch has.
    pub(crate) fn has_received(&self, position: u64) -> bool {
        let Some(place) = position.checked_sub(self.spec.base) else {
            return true;
        };
        let n = self.ordered.len() as u64;
        let sender = self.ordered.get((place % n.max(1)) as usize);
        sender.is_some_and(|&at| self.count(&self.senders[at]) > Some(place / n))
    }

    /// Whether everything committed has been published.
    pub(crate) fn is_published(&self) -> bool {
        let rings = self.outgoing.iter().zip(&self.handle.send_rings);
        rings
            .filter_map(|(outgoing, send_ring)| Some((outgoing.as_ref()?, send_ring.as_ref()?)))
            .all(|(outgoing, send_ring)| {
                let (index, real) = send_ring.taken();
                index == outgoing.published.index && real == outgoing.published.real as u16
            })
    }
}
