//! The engine's state of a subgroup epoch: receive, send, null, delivery and release predicates.
//!
//! ```text
//!   guards of senders --receive--> counts --min--> received_num (own) --push both-->
//!   those of members --min--> stable --deliver--> delivered_num, released --push-->
//! ```
//!
//! Invariants:
//!
//! - Message `k` of ordered sender `i` of `n` has sequence number `k * n + i` in the total order.
//!   With `c[i]` messages received of sender `i`, every message below the least `c[i] * n + i` has
//!   been received: that is `received_num`.
//! - A sender's own guard implies that it has received its own messages, so the word in its row
//!   leaves them out. The only sender of an epoch pushes payload, headers and guard, nothing else.
//! - Next to `received_num`, a row has the count received of each sender. A null that is known here
//!   may be unknown to others. A message is stable when all members have received it and all
//!   messages before it.
//! - Sequence numbers count from the epoch's base position.

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
pub(crate) mod memory;
pub(crate) mod outgoing;
pub(crate) mod persisted;
pub(crate) mod pushes;
mod receive;
pub(crate) mod receive_cursor;
pub(crate) mod release_tracker;
mod run;
pub(crate) mod send_ring;
pub(crate) mod sent;
pub(crate) mod shared;
#[cfg(all(test, not(loom)))]
mod tests;
mod waking;
mod watch;

use std::ops::Range;
use std::sync::Arc;

use spindle_dds_transport::{Fabric, PeerSet, Rank};

pub use figures::{DeliveryWait, EpochPhase, Position, RingFigures, SubgroupFigures};
pub(crate) use idle::PollResult;
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
use crate::subgroup::receive_cursor::{ProtocolViolation, ReceiveCursor, ReceivedHeaders};
use crate::subgroup::watch::Watch;

/// The engine's side of one subgroup epoch. Arrays of two are indexed by delivery class.
pub(crate) struct SubgroupState<F> {
    pub(crate) handle: Arc<SubgroupHandle<F>>,
    /// Keep the epoch alive for messages that the layer above holds.
    tickets: Tickets<F>,
    pub(crate) spec: SubgroupSpec,
    phase: Phase,
    /// The other members that pushes go to, by rank in the epoch; a fenced member is not among
    /// them.
    others: PeerSet,
    /// Number of peers in `others`.
    peers: usize,
    /// Whether all members of the epoch share memory: see `waking`.
    shares_memory: bool,
    /// By rank in the epoch.
    members: Vec<Member>,
    /// By index in `spec.senders`.
    senders: Vec<Sender>,
    /// Indexes into `senders` of the ordered ones, ascending: the position in this list is the
    /// sender's order.
    ordered: Vec<usize>,
    /// Own send rings, `None` where this member does not send.
    outgoing: [Option<Outgoing>; 2],
    /// Sequence number below which every message has been received here.
    received_num: u64,
    /// Sequence number below which every message has been delivered here.
    delivered_num: u64,
    /// Sequence number below which every message has been received by all members.
    stable: u64,
    /// Upper bound of what others can have acknowledged, as last computed.
    ack_reach: u64,
    /// Messages that others can have followed and that are unknown here: the tolerance before a
    /// member is suspected.
    slack: u64,
    /// Messages, nulls included, that this member's ordered ring must have sent so that no message
    /// waits for it.
    null_target: u64,
    digest: Digest,
    /// Whether this member has announced that it is ready for messages.
    is_ready: bool,
    /// By class and sender: the `released` value that was last pushed to the others. Only for
    /// `told_classes`.
    released_told: Vec<u64>,
    /// The classes of which there is any ring.
    told_classes: Range<usize>,
    watch: Watch,
    idle: idle::IdleState,
    /// Real messages delivered, and the bytes of their payload.
    delivered: (u64, u64),
    /// Real messages delivered when the sink last saw the end of a batch.
    reported: u64,
    /// Real messages after which the sink sees the end of a batch even if the next step delivers
    /// more.
    batch_max: u64,
}

/// The epoch's phase, from open to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Phase {
    /// All predicates run.
    Open,
    /// Sends what is committed, and receives. Does not acknowledge deliveries.
    Wedged,
    /// Neither sends, receives nor acknowledges; the counts are final.
    Frozen,
}

#[derive(Debug)]
struct Member {
    columns: Columns,
    /// Its acknowledgement as last read; it only rises.
    received_num: u64,
    /// Number of this member's digest checkpoints already compared.
    compared: u64,
    /// True once its row is no longer read. Nothing above what it acknowledged becomes stable, and
    /// no room comes back, until the epoch ends.
    fenced: bool,
}

#[derive(Debug)]
struct Sender {
    /// Its rank in the epoch.
    rank: Rank,
    /// Its position among the ordered senders; unused for others.
    order: u64,
    /// By class; `None` where the sender has no such ring.
    receive_cursors: [Option<ReceiveCursor>; 2],
}

/// Twice the messages that all ordered rings hold: those that a member knows, and those that it
/// must expect.
fn slack(spec: &SubgroupSpec) -> u64 {
    let rings = spec.ordered().filter_map(|sender| sender.rings[0]);
    rings.map(|ring| 2 * u64::from(ring.messages)).sum()
}

/// What a pass over the predicates changed.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Progress {
    /// Something was received, sent or delivered.
    pub(crate) any: bool,
    /// A claim may find room now.
    pub(crate) room: bool,
    /// `stable` rose.
    pub(crate) stable: bool,
    /// What some member has persisted rose.
    pub(crate) persisted: bool,
}

impl Progress {
    /// Whether anything changed. If not, no work is left.
    pub(crate) fn is_any(self) -> bool {
        self.any || self.room || self.stable || self.persisted
    }

    pub(crate) fn add(&mut self, more: Self) {
        self.any |= more.any;
        self.room |= more.room;
        self.stable |= more.stable;
        self.persisted |= more.persisted;
    }
}

/// A fault found in the row of a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MemberFault {
    /// The member's rank in the epoch.
    pub(crate) place: Rank,
    pub(crate) what: Fault,
}

/// What is wrong with the member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    ProtocolViolation(ProtocolViolation),
    /// Its order differs from the one here, at or before this position. `mine` and `theirs` are the
    /// digests.
    Disagreement {
        position: u64,
        mine: u64,
        theirs: u64,
    },
}

/// What the epoch needs from its engine during a step.
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
        mut headers: [Vec<Option<ReceivedHeaders>>; 2],
    ) -> Self {
        let me = handle.fabric.me();
        let places = || (0..spec.members.len() as u16).map(Rank);
        let mut cursor = |class: DeliveryClass, sender: usize| {
            let columns = handle.rings[class.index()][sender]?;
            let row = handle.fabric.row(spec.senders[sender].rank);
            let headers = headers[class.index()].get_mut(sender)?.take()?;
            Some(ReceiveCursor::new(columns, row.clone(), headers))
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
        let members: Vec<Member> = places().map(member).collect();
        let has = |class: usize| senders.iter().any(|it| it.receive_cursors[class].is_some());
        let told_classes = usize::from(!has(0))..1 + usize::from(has(1));
        Self {
            phase: Phase::Open,
            others: places().filter(|place| *place != me).collect(),
            peers: spec.members.len() - 1,
            shares_memory: handle.fabric.shares_memory(),
            watch: Watch::new(&handle.fabric, &members, &senders),
            members,
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
            released_told: vec![0; told_classes.len() * senders.len()],
            told_classes,
            idle: idle::IdleState::default(),
            delivered: (0, 0),
            reported: 0,
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

    /// Releases, receives, sends, delivers. Events go to the sink. Returns whether the epoch is
    /// idle now. `progress` also has what a failing step did.
    pub(crate) fn step<S: Sink<F>>(
        &mut self,
        context: &mut Context<'_, S>,
        progress: &mut Progress,
    ) -> Result<bool, MemberFault> {
        self.leave_idle();
        let moved = self.pass(context, progress)?;
        if !self.should_idle(moved, context) {
            return Ok(false);
        }
        self.enter_idle();
        self.pass(context, progress).map(|moved| !moved)
    }

    fn evaluate<S: Sink<F>>(
        &mut self,
        handle: &Arc<SubgroupHandle<F>>,
        context: &mut Context<'_, S>,
        progress: &mut Progress,
    ) -> Result<(), MemberFault> {
        if self.phase != Phase::Open {
            // No delivery happens until the epoch ends or reopens.
            self.end_batch(context);
        }
        if self.phase == Phase::Frozen {
            return Ok(());
        }
        // Release comes first, so that little work stands between the receipt of a message and a
        // reader that steps for it.
        if self.phase == Phase::Open {
            self.release(handle, context);
            progress.room = self.begin(handle, context);
            progress.room |= self.reclaim(handle, context)?;
        }
        // A sender's own receipt is implied by its guard. It goes before the receipt of others,
        // because the own messages bound how far others can have sent.
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
        progress.persisted = self.exchange_persisted(handle, context);
        #[cfg(debug_assertions)]
        self.check_watch(handle);
        self.compare_digests(handle)
    }

    /// Frees room that all members have released, for a thread that claims. Returns whether any came.
    pub(crate) fn reclaim_early<S>(
        &mut self,
        handle: &SubgroupHandle<F>,
        context: &mut Context<'_, S>,
    ) -> Result<bool, MemberFault> {
        if self.phase != Phase::Open {
            return Ok(false);
        }
        context.pushes.address(&self.others, self.peers);
        let reclaimed = self.reclaim(handle, context);
        context.pushes.flush(&handle.fabric);
        if let Ok(true) = reclaimed {
            handle.has_changed();
        }
        reclaimed
    }

    /// Does what a committing thread needs: publishes the committed messages. Own receipt and
    /// delivery wait for the next step.
    pub(crate) fn publish<S>(&mut self, handle: &SubgroupHandle<F>, context: &mut Context<'_, S>) {
        if self.phase < Phase::Frozen {
            context.pushes.address(&self.others, self.peers);
            self.send_rings(handle, context, true);
            context.pushes.flush(&handle.fabric);
        }
    }

    /// Commits and publishes a claim, and messages that were committed before it. Returns the
    /// message's index.
    #[inline]
    pub(crate) fn send_claim<S>(
        &mut self,
        claim: &mut Claim<F>,
        (used, meta): (u32, &CommitMeta),
        context: &mut Context<'_, S>,
    ) -> Result<u64, ClaimError> {
        // The gate need not be entered: no other thread can wedge the epoch before the header is
        // published or written.
        let status = claim.subgroup().gate.status();
        let place = claim.begin_commit(status, used)?;
        let (handle, class) = (claim.subgroup(), claim.class().index());
        match &mut self.outgoing[class] {
            // A receiver that waits for nulls behind this message gets them in the same flush.
            Some(outgoing) if outgoing.is_next(place) => {
                context.pushes.address(&self.others, self.peers);
                let header = claim.header(place, used, meta);
                let len = header.len.into();
                outgoing.send_next(&handle.fabric, header, context.seqs, context.pushes);
                receive::count_one(&handle.shared.counters, len);
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

    /// Whether acknowledgements of others would allow a delivery that is waited for, or tell what they
    /// have persisted.
    pub(crate) fn wants_acks<S: Sink<F>>(&self, sink: &S) -> bool {
        let [ordered, unordered] = self.watch.waiting;
        let mut waiting = ordered.union(unordered).iter();
        let mine = self.handle.mine;
        self.phase == Phase::Open
            && (self.handle.is_logged() && sink.awaits_persisted(self.id())
                || waiting.any(|at| Some(at) != mine || self.wants_own_messages(sink)))
    }

    /// Like [`wants_acks`](Self::wants_acks), for one class of own messages, from their publication
    /// on: some of them may not have been received here yet.
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
            && self.wants_own_messages(sink)
    }

    /// Whether this member must deliver its own messages as soon as others have received them.
    fn wants_own_messages<S: Sink<F>>(&self, sink: &S) -> bool {
        sink.is_reading(self.id()) || self.lacks_nulls()
    }

    /// Whether other ordered senders exist and send no nulls. Then no message of theirs wakes this
    /// member when they have received its own. (Where members share memory, nulls do not either: the
    /// own messages wait for this member's next step.)
    fn lacks_nulls(&self) -> bool {
        self.ordered.len() > 1 && !self.handle.config.null_sends
    }

    pub(crate) fn id(&self) -> SubgroupId {
        self.spec.subgroup
    }

    /// The rank in this epoch of a member of the view.
    pub(crate) fn place(&self, member: Rank) -> Option<Rank> {
        let place = self.spec.members.iter().position(|rank| *rank == member)?;
        Some(Rank(place as u16))
    }

    /// This member's progress in the order.
    pub(crate) fn position(&self) -> Position {
        let base = self.spec.base;
        Position {
            stable: base + self.stable,
            delivered_num: base + self.delivered_num,
            digest: self.digest.value(),
        }
    }

    /// Whether the message or null at this position has been received here. Positions below the
    /// epoch have been.
    pub(crate) fn has_received(&self, position: u64) -> bool {
        let Some(place) = position.checked_sub(self.spec.base) else {
            return true;
        };
        let n = self.ordered.len() as u64;
        let sender = self.ordered.get((place % n.max(1)) as usize);
        sender.is_some_and(|&at| self.count(&self.senders[at]) > Some(place / n))
    }

    /// Whether every committed message has been published.
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
