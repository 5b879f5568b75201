//! An epoch: one subgroup in one epoch, as all threads of a participant share it.
//!
//! Application threads claim, commit and let go through here without meeting
//! the engine's state, which one thread at a time owns (see [`Engine`]). An epoch
//! never changes its members: when they change, it ends and another one takes
//! its place.
//!
//! ```text
//!   OPEN --wedge--> WEDGED --freeze, finish--> ENDED      claims go to the next epoch
//!     \--stop----> STOPPED                                no claims any more
//! ```
//!
//! Claims and held messages keep their epoch's memory alive, whatever becomes of it.
//!
//! [`Engine`]: crate::Engine

use std::fmt;
use std::ptr::NonNull;
use std::sync::Arc;

use crossbeam_utils::CachePadded;
use spindle_dds_transport::{Fabric, Rank};

use crate::config::EngineConfig;
use crate::ids::{DeliveryClass, SubgroupId};
use crate::spec::{SpecError, SubgroupSpec};
use crate::subgroup::claim::{Claim, ClaimError, Committed};
use crate::subgroup::gate::Gate;
use crate::subgroup::idle_flag::IdleFlag;
use crate::subgroup::layout::{Columns, RingColumns, SegmentLayout};
use crate::subgroup::release_tracker::ReleaseTracker;
use crate::subgroup::send_ring::{ReserveError, Reserved, SendRing};
use crate::subgroup::shared::Shared;
use crate::sync::{AtomicBool, AtomicU64, Ordering};

pub(crate) const OPEN: u32 = 0;
pub(crate) const WEDGED: u32 = 1;
pub(crate) const ENDED: u32 = 2;
pub(crate) const STOPPED: u32 = 3;

/// One subgroup in one epoch: where a participant claims, and asks what has
/// become of its messages.
pub struct SubgroupHandle<F> {
    id: SubgroupId,
    epoch: u64,
    base: u64,
    pub(crate) fabric: F,
    pub(crate) common: Arc<Shared>,
    pub(crate) config: EngineConfig,
    /// My columns.
    pub(crate) columns: Columns,
    /// My rings, if I send here.
    pub(crate) send_rings: [Option<SendRing>; 2],
    /// By ring and sender.
    pub(crate) release_trackers: [Box<[Option<ReleaseTracker>]>; 2],
    /// By ring and sender: where the ring stands in its sender's row.
    pub(crate) rings: [Box<[Option<RingColumns>]>; 2],
    /// By sender: its place.
    pub(crate) senders: Box<[Rank]>,
    /// Where I am among them.
    pub(crate) mine: Option<usize>,
    /// Number of ordered senders, and where I am among them.
    pub(crate) ordered: u64,
    pub(crate) my_order: Option<u64>,
    /// Everything below this place in the order has been received by all members.
    pub(crate) stable: AtomicU64,
    /// By ring: my messages below this index have been released by all members.
    pub(crate) released: [AtomicU64; 2],
    /// How often there was room, or `stable` or `released` moved, or the status changed.
    pub(crate) changes: AtomicU64,
    /// All members are ready for messages: until then the ordered ring has no room.
    pub(crate) begun: AtomicBool,
    /// `OPEN`, `WEDGED`, `ENDED` or `STOPPED`, and commits under way.
    pub(crate) gate: Gate,
    /// Whether the engine looks into it at each step.
    pub(crate) rest: IdleFlag,
    /// Where it stands in the engine's list, if that has not changed since it was looked up.
    pub(crate) listed_at: AtomicU64,
    /// Tickets that are out: while there is any, they have one count of the `Arc` together.
    tickets: CachePadded<TicketCount>,
}

/// How many tickets are out.
pub(crate) struct TicketCount(AtomicU64);

impl TicketCount {
    pub(crate) fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// Whether there was none: then the taker of these leaves a count of the `Arc` for them.
    pub(crate) fn take(&self, tickets: u64) -> bool {
        // Relaxed, as for a count of an `Arc`: the caller keeps the epoch alive.
        self.0.fetch_add(tickets, Ordering::Relaxed) == 0
    }

    /// Whether these were the last: then the giver gives up such a count.
    pub(crate) fn give(&self, tickets: u64) -> bool {
        // AcqRel: giving the last one back comes after all uses of the others.
        self.0.fetch_sub(tickets, Ordering::AcqRel) == tickets
    }
}

impl<F: Fabric> SubgroupHandle<F> {
    pub(crate) fn new(
        fabric: F,
        spec: &SubgroupSpec,
        layout: &SegmentLayout,
        common: Arc<Shared>,
        config: EngineConfig,
    ) -> Result<Self, SpecError> {
        let lens = layout.row_lens();
        let fits = fabric.members() == lens.len()
            && (0..)
                .zip(&lens)
                .all(|(place, len)| fabric.row(Rank(place)).len() >= *len);
        if !fits {
            return Err(SpecError::Segment(spec.subgroup));
        }
        let me = fabric.me();
        let columns = layout.columns(me).clone();
        let rings = DeliveryClass::BOTH.map(|class| {
            let senders = spec.senders.iter();
            senders
                .map(|sender| layout.columns(sender.rank).rings[class.index()])
                .collect::<Box<[_]>>()
        });
        Ok(Self {
            id: spec.subgroup,
            epoch: spec.epoch,
            base: spec.base,
            send_rings: columns.rings.map(|ring| Some(SendRing::new(&ring?.spec))),
            release_trackers: DeliveryClass::BOTH.map(|class| {
                rings[class.index()]
                    .iter()
                    .map(|ring| ring.map(|ring| ReleaseTracker::new(ring.spec.messages)))
                    .collect()
            }),
            rings,
            senders: spec.senders.iter().map(|sender| sender.rank).collect(),
            mine: spec.senders.iter().position(|sender| sender.rank == me),
            ordered: spec.ordered().count() as u64,
            my_order: (0..)
                .zip(spec.ordered())
                .find(|(_, sender)| sender.rank == me)
                .map(|(at, _)| at),
            stable: AtomicU64::new(0),
            released: [AtomicU64::new(0), AtomicU64::new(0)],
            changes: AtomicU64::new(0),
            begun: AtomicBool::new(false),
            gate: Gate::new(),
            rest: IdleFlag::new(),
            listed_at: AtomicU64::new(0),
            tickets: CachePadded::new(TicketCount::new()),
            columns,
            fabric,
            common,
            config,
        })
    }

    /// Reserves `len` bytes to build a message in. Never blocks, takes no lock,
    /// allocates nothing. The claim costs room in this participant's own ring
    /// until it is committed and released, or dropped.
    #[inline]
    pub fn claim(self: &Arc<Self>, class: DeliveryClass, len: u32) -> Result<Claim<F>, ClaimError> {
        let reserved = self.reserve(class, len)?;
        Ok(Claim::new(self.clone(), class, reserved))
    }

    /// The room of a claim.
    #[inline]
    pub(crate) fn reserve(&self, class: DeliveryClass, len: u32) -> Result<Reserved, ClaimError> {
        ClaimError::of_status(self.gate.status())?;
        let Some(send_ring) = &self.send_rings[class.index()] else {
            return Err(ClaimError::NotASender);
        };
        let reserved = match class {
            DeliveryClass::Ordered if !self.begun.load(Ordering::Relaxed) => {
                Err(ReserveError::Full)
            }
            _ => send_ring.reserve(len),
        };
        reserved.map_err(|error| self.no_claim(send_ring, len, error))
    }

    #[cold]
    fn no_claim(&self, send_ring: &SendRing, len: u32, error: ReserveError) -> ClaimError {
        match error {
            ReserveError::Full => {
                let counter = &self.common.counters.claims_without_room;
                counter.fetch_add(1, Ordering::Relaxed);
                ClaimError::NoRoom
            }
            ReserveError::TooLarge => ClaimError::TooLarge {
                len: len.into(),
                max: send_ring.len_max(),
            },
        }
    }

    /// Bytes of the largest message of a ring; `None` where this participant does not send.
    pub fn message_len_max(&self, class: DeliveryClass) -> Option<u64> {
        Some(self.send_rings[class.index()].as_ref()?.len_max())
    }

    /// Whether every member of the subgroup has received the message (ordered
    /// ring), or released it (unordered ring, which knows no stability). What
    /// was committed in an epoch has been received by all who go on when that epoch
    /// ends, so messages of earlier epochs of the subgroup are acknowledged.
    pub fn is_acknowledged(&self, message: &Committed) -> bool {
        if message.subgroup != self.id || message.epoch > self.epoch {
            return false;
        }
        let status = self.gate.status();
        if message.epoch < self.epoch || status == ENDED {
            return true;
        }
        match (message.class, self.my_order) {
            (DeliveryClass::Ordered, Some(at)) => {
                let seq = message
                    .index
                    .saturating_mul(self.ordered)
                    .saturating_add(at);
                self.stable.load(Ordering::Acquire) > seq
            }
            (DeliveryClass::Ordered, None) => false,
            (DeliveryClass::Unordered, _) => {
                self.released[1].load(Ordering::Acquire) > message.index
            }
        }
    }

    /// The message that this participant has committed last in this ring, or a null
    /// after it; `None` where nothing was.
    pub fn last_committed(&self, class: DeliveryClass) -> Option<Committed> {
        let (end, _) = self.send_rings[class.index()].as_ref()?.taken();
        Some(Committed {
            subgroup: self.id,
            epoch: self.epoch,
            class,
            index: end.checked_sub(1)?,
        })
    }

    /// How far the messages of this participant's ring have been released by all
    /// members: their room is this participant's again. The exclusive end of their
    /// indexes, nulls counted; it only rises. 0 where this participant does not
    /// send; without end once the epoch has ended, where no room is needed.
    pub fn released(&self, class: DeliveryClass) -> u64 {
        if self.gate.status() == ENDED {
            return u64::MAX;
        }
        self.released[class.index()].load(Ordering::Acquire)
    }

    /// How often there was room, a release or an acknowledgement, or the epoch was closed:
    /// while it stays the same, trying again is of no use.
    pub fn changes(&self) -> u64 {
        self.changes.load(Ordering::Acquire)
    }

    pub(crate) fn has_changed(&self) {
        // Pairs with the acquire in `changes`.
        self.changes.fetch_add(1, Ordering::Release);
    }

    /// How much of a sender's ring is taken by messages that have arrived here
    /// and are not released here, as parts of 256 of its headers or of its
    /// payload, whichever is more. Who holds samples in rings looks at it to
    /// know when to copy them out. Senders are named by their places.
    pub fn held_parts(&self, class: DeliveryClass, sender: Rank) -> u32 {
        let held = || {
            let at = self.senders.binary_search(&sender).ok()?;
            let columns = self.rings[class.index()][at].as_ref()?;
            let tracker = self.release_trackers[class.index()][at].as_ref()?;
            Some(tracker.held_parts(columns))
        };
        held().unwrap_or(0)
    }

    /// Whether no claim is taken any more because the epoch ends: go to the next.
    pub fn is_wedged(&self) -> bool {
        matches!(self.gate.status(), WEDGED | ENDED)
    }

    /// For a thread that has left work for the engine here (a commit that it does not
    /// publish by itself, say): makes sure that the next step does it. A system
    /// call only when the engine sleeps.
    pub fn nudge(&self) {
        self.fabric.nudge();
        self.wake_if_idle();
    }

    /// The same, where the fabric was nudged or rung after the work was left: both fence.
    fn wake_if_idle(&self) {
        if self.rest.interrupt(&self.common.left_work) {
            // What was nudged before may have slept on, or looked, without seeing it.
            self.fabric.nudge();
        }
    }

    /// The segment below.
    pub fn fabric(&self) -> &F {
        &self.fabric
    }

    /// Takes claims again, if it is wedged.
    pub(crate) fn reopen(&self) {
        if self.gate.reopen(WEDGED) {
            self.has_changed();
        }
    }

    /// The status rises, or stays.
    pub(crate) fn close(&self, status: u32) {
        if self.gate.close(status) {
            self.has_changed();
        }
    }

    /// Tells a sender what it may use again.
    pub(crate) fn account(&self, class: DeliveryClass, sender: usize) {
        let Some(tracker) = &self.release_trackers[class.index()][sender] else {
            return;
        };
        let word = self.columns.released(class.index(), sender);
        tracker.release(|value| {
            // Once it has ended, its senders find no room any more. One that is wedged may
            // be opened again.
            if self.gate.status() < ENDED {
                self.fabric.acknowledge(word, value, self.senders[sender]);
                self.wake_if_idle();
            }
        });
    }
}

impl<F> SubgroupHandle<F> {
    /// Takes tickets, each of which keeps the epoch alive until it is given back: for those
    /// who keep it for many messages, and would count each.
    pub(crate) fn take_tickets(self: &Arc<Self>, tickets: u64) {
        if self.tickets.take(tickets) {
            std::mem::forget(self.clone());
        }
    }

    /// Gives tickets back.
    ///
    /// # Safety
    /// That many were taken of the epoch, and no other call gives them back. `epoch` is where an
    /// `Arc` of it points; without tickets, it may point nowhere.
    pub(crate) unsafe fn give_tickets(subgroup: NonNull<Self>, tickets: u64) {
        if tickets == 0 {
            return;
        }
        // SAFETY: the tickets keep it alive so far.
        let count = &unsafe { subgroup.as_ref() }.tickets;
        if count.give(tickets) {
            // SAFETY: the count that the taker of the first one left here. If a thread takes
            // others meanwhile, there is one more count for these.
            unsafe { Arc::decrement_strong_count(subgroup.as_ptr()) };
        }
    }

    /// Of which subgroup.
    pub fn id(&self) -> SubgroupId {
        self.id
    }

    /// The view that made it.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Position at which its order begins.
    pub fn base(&self) -> u64 {
        self.base
    }
}

impl<F> fmt::Debug for SubgroupHandle<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SubgroupHandle")
            .field("id", &self.id)
            .field("epoch", &self.epoch)
            .field("base", &self.base)
            .field("status", &self.gate.status())
            .finish_non_exhaustive()
    }
}
