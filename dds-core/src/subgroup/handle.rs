//! A subgroup in one epoch, as all threads of a participant share it.
//!
//! Application threads claim, commit and release through the handle without taking the engine
//! lock: the engine's state of the epoch belongs to the thread that steps (see [`Engine`]). The
//! members of an epoch never change. When the view changes them, the epoch ends and the next one
//! takes its place.
//!
//! ```text
//!   OPEN --wedge--> WEDGED --freeze, finish--> ENDED      claims go to the next epoch
//!     \--stop----> STOPPED                                no claims any more
//! ```
//!
//! Invariant: claims and held messages keep the epoch's memory mapped, even after its end.
//!
//! [`Engine`]: crate::Engine

use std::fmt;
use std::ops::Range;
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
use crate::subgroup::memory::SharedRings;
use crate::subgroup::persisted::Persisted;
use crate::subgroup::release_tracker::ReleaseTracker;
use crate::subgroup::send_ring::{ReserveError, Reserved, SendRing};
use crate::subgroup::shared::Shared;
use crate::sync::{AtomicBool, AtomicU64, Ordering};

pub(crate) const OPEN: u32 = 0;
pub(crate) const WEDGED: u32 = 1;
pub(crate) const ENDED: u32 = 2;
pub(crate) const STOPPED: u32 = 3;

/// One subgroup in one epoch: a participant claims room here, and asks about the state of its
/// messages. Arrays of two are indexed by delivery class.
pub struct SubgroupHandle<F> {
    id: SubgroupId,
    /// Id of the view that formed the epoch.
    epoch: u64,
    /// Position in the total order at which the epoch begins.
    base: u64,
    /// The segment with the rows of the epoch's members.
    pub(crate) fabric: F,
    /// Counters and flags that all epochs of the participant share.
    pub(crate) shared: Arc<Shared>,
    pub(crate) config: EngineConfig,
    /// Columns of the own row.
    pub(crate) columns: Columns,
    /// Own rings, `None` where this member does not send.
    pub(crate) send_rings: [Option<SendRing>; 2],
    /// By class and index of the sender.
    pub(crate) release_trackers: [Box<[Option<ReleaseTracker>]>; 2],
    /// By class and index of the sender: offsets of the ring in its sender's row.
    pub(crate) rings: [Box<[Option<RingColumns>]>; 2],
    /// Ranks of the senders in the epoch, ascending.
    pub(crate) senders: Box<[Rank]>,
    /// Index of this member in `senders`.
    pub(crate) mine: Option<usize>,
    /// Addresses of what is noted about the messages of all rings.
    pub(crate) bookkeeping: Range<usize>,
    /// Number of ordered senders.
    pub(crate) ordered: u64,
    /// Position of this member among the ordered senders.
    pub(crate) my_order: Option<u64>,
    /// Sequence number below which all members have received every message.
    pub(crate) stable: AtomicU64,
    /// By class: index below which all members have released this member's messages.
    pub(crate) released: [AtomicU64; 2],
    pub(crate) persisted: Persisted,
    /// Rises when room comes back, `stable`, `released` or what a member has persisted rises, or the
    /// status changes.
    pub(crate) changes: AtomicU64,
    /// True once all members are ready for messages: until then the ordered ring takes no claims.
    pub(crate) begun: AtomicBool,
    /// Status (`OPEN`, `WEDGED`, `ENDED` or `STOPPED`) and number of commits under way.
    pub(crate) gate: Gate,
    /// Whether the engine skips this epoch in its steps.
    pub(crate) idle_flag: IdleFlag,
    /// Index in the engine's list at the last look-up; a hint that is checked before use.
    pub(crate) listed_at: AtomicU64,
    /// Tickets in use. While there is any, all tickets together own one count of the `Arc`.
    tickets: CachePadded<TicketCount>,
}

/// Number of tickets in use.
pub(crate) struct TicketCount(AtomicU64);

impl TicketCount {
    pub(crate) fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// Returns whether there was none before: then the taker must leave one count of the `Arc` for
    /// the tickets.
    pub(crate) fn take(&self, tickets: u64) -> bool {
        // Relaxed, as for a count of an `Arc`: the caller keeps the epoch alive.
        self.0.fetch_add(tickets, Ordering::Relaxed) == 0
    }

    /// Returns whether these were the last: then the caller must give up that count of the `Arc`.
    pub(crate) fn give(&self, tickets: u64) -> bool {
        // AcqRel: all uses of the other tickets happen before the last one is given back.
        self.0.fetch_sub(tickets, Ordering::AcqRel) == tickets
    }
}

impl<F: Fabric> SubgroupHandle<F> {
    pub(crate) fn new(
        fabric: F,
        spec: &SubgroupSpec,
        layout: &SegmentLayout,
        shared_rings: SharedRings,
        shared: Arc<Shared>,
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
            send_rings: shared_rings.send_rings,
            release_trackers: shared_rings.release_trackers,
            bookkeeping: shared_rings.addresses,
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
            persisted: Persisted::new(columns.persisted.map_or(0, |_| lens.len())),
            changes: AtomicU64::new(0),
            begun: AtomicBool::new(false),
            gate: Gate::new(),
            idle_flag: IdleFlag::new(),
            listed_at: AtomicU64::new(0),
            tickets: CachePadded::new(TicketCount::new()),
            columns,
            fabric,
            shared,
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

    /// Reserves the room of a claim. On the path of each sample.
    #[inline(always)]
    pub(crate) fn reserve(&self, class: DeliveryClass, len: u32) -> Result<Reserved, ClaimError> {
        ClaimError::of_status(self.gate.status())?;
        let Some(send_ring) = &self.send_rings[class.index()] else {
            return Err(ClaimError::NotASender);
        };
        if class == DeliveryClass::Ordered && !self.begun.load(Ordering::Relaxed) {
            return Err(self.not_begun(send_ring, len));
        }
        let reserved = send_ring.reserve(len);
        reserved.map_err(|error| self.no_claim(send_ring, len, error))
    }

    #[cold]
    fn not_begun(&self, send_ring: &SendRing, len: u32) -> ClaimError {
        let counter = &self.shared.counters.claims_without_room;
        counter.fetch_add(1, Ordering::Relaxed);
        match u64::from(len) > send_ring.len_max() {
            true => self.no_claim(send_ring, len, ReserveError::TooLarge),
            false => ClaimError::NotBegun,
        }
    }

    #[cold]
    fn no_claim(&self, send_ring: &SendRing, len: u32, error: ReserveError) -> ClaimError {
        match error {
            ReserveError::Full => {
                let counter = &self.shared.counters.claims_without_room;
                counter.fetch_add(1, Ordering::Relaxed);
                ClaimError::NoRoom
            }
            ReserveError::TooLarge => ClaimError::TooLarge {
                len: len.into(),
                max: send_ring.len_max(),
            },
        }
    }

    /// Bytes of the largest message of a class; `None` where this participant does not send.
    pub fn message_len_max(&self, class: DeliveryClass) -> Option<u64> {
        Some(self.send_rings[class.index()].as_ref()?.len_max())
    }

    /// Whether every member of the subgroup has received the message (ordered class), or released
    /// it (unordered class, which has no stability). When an epoch ends, every member that goes on
    /// has received what was committed in it, so messages of earlier epochs are acknowledged.
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

    /// Position in the total order below which all members have received every message. All that
    /// this participant has delivered is below it.
    pub fn stable_position(&self) -> u64 {
        self.base + self.stable.load(Ordering::Acquire)
    }

    /// The position in the total order of an ordered message of this participant in this epoch; `None`
    /// of another one.
    pub fn position_of(&self, message: &Committed) -> Option<u64> {
        let is_here = (message.subgroup, message.epoch) == (self.id, self.epoch)
            && message.class == DeliveryClass::Ordered;
        let at = self.my_order.filter(|_| is_here)?;
        let place = message.index.checked_mul(self.ordered)?.checked_add(at)?;
        self.base.checked_add(place)
    }

    /// Exclusive end of the indexes, nulls included, of this participant's messages that all
    /// members have released: their room is free again. It only rises. 0 where this participant
    /// does not send; `u64::MAX` once the epoch has ended, where no room is needed.
    pub fn released(&self, class: DeliveryClass) -> u64 {
        if self.gate.status() == ENDED {
            return u64::MAX;
        }
        self.released[class.index()].load(Ordering::Acquire)
    }

    /// Whether one member has released a message of this participant, as far as is known here: it has
    /// delivered it, and holds it in the ring no more. When an epoch ends, what its members hold is
    /// not known any more: messages of earlier epochs count as released.
    pub fn is_released_by(&self, message: &Committed, member: Rank) -> bool {
        if message.subgroup != self.id || message.epoch > self.epoch {
            return false;
        }
        if message.epoch < self.epoch || self.gate.status() == ENDED {
            return true;
        }
        let released = self.mine.filter(|_| member.index() < self.fabric.members());
        released.is_some_and(|mine| self.released_by(message.class, mine, member) > message.index)
    }

    /// Exclusive end of the indexes of the own messages that a member has released.
    fn released_by(&self, class: DeliveryClass, mine: usize, member: Rank) -> u64 {
        // The block stands at the same offset in each row.
        let word = self.columns.released(class.index(), mine);
        self.fabric.row(member).load(word)
    }

    /// A number that is another one whenever a member has released more of this participant's messages of
    /// a class.
    pub fn releases(&self, class: DeliveryClass) -> u64 {
        let Some(mine) = self.mine else {
            return 0;
        };
        let members = (0..self.fabric.members() as u16).map(Rank);
        let released = members.map(|member| self.released_by(class, mine, member));
        released.fold(0, u64::wrapping_add)
    }

    /// Counts returns of room, releases, acknowledgements, rises of what members have persisted, and
    /// changes of status. While it stays the same, a claim that was refused is refused again.
    pub fn changes(&self) -> u64 {
        self.changes.load(Ordering::Acquire)
    }

    pub(crate) fn has_changed(&self) {
        // Pairs with the acquire in `changes`.
        self.changes.fetch_add(1, Ordering::Release);
    }

    /// The part of a sender's ring that is taken by messages received and not released here, in
    /// 1/256 of its headers or of its payload, whichever is more. A reader that holds samples in
    /// rings uses it to decide when to copy them out. `sender` is a rank in the epoch.
    pub fn held_parts(&self, class: DeliveryClass, sender: Rank) -> u32 {
        let held = || {
            let at = self.senders.binary_search(&sender).ok()?;
            let columns = self.rings[class.index()][at].as_ref()?;
            let tracker = self.release_trackers[class.index()][at].as_ref()?;
            Some(tracker.held_parts(columns))
        };
        held().unwrap_or(0)
    }

    /// Whether claims are refused because the epoch is ending: the next epoch takes them.
    pub fn is_wedged(&self) -> bool {
        matches!(self.gate.status(), WEDGED | ENDED)
    }

    /// Makes the next step process work that a thread has left here, for example a commit that it
    /// does not publish itself. A system call only when the engine sleeps.
    pub fn nudge(&self) {
        self.fabric.nudge();
        self.wake_if_idle();
    }

    /// Like [`nudge`](Self::nudge), after a nudge or doorbell of the fabric: both fence.
    fn wake_if_idle(&self) {
        if self.idle_flag.interrupt(&self.shared.left_work) {
            // A thread that was nudged before may have polled or slept without seeing the work.
            self.fabric.nudge();
        }
    }

    /// The segment of the epoch's rows.
    pub fn fabric(&self) -> &F {
        &self.fabric
    }

    /// Takes claims again if the epoch is wedged.
    pub(crate) fn reopen(&self) {
        if self.gate.reopen(WEDGED) {
            self.has_changed();
        }
    }

    /// Raises the status; a lower status than the current one has no effect.
    pub(crate) fn close(&self, status: u32) {
        if self.gate.close(status) {
            self.has_changed();
        }
    }

    /// Recomputes `released` for one sender and acknowledges it.
    pub(crate) fn account(&self, class: DeliveryClass, sender: usize) {
        let Some(tracker) = &self.release_trackers[class.index()][sender] else {
            return;
        };
        let word = self.columns.released(class.index(), sender);
        tracker.release(|value| {
            // After the end, senders need no room. A wedged epoch may reopen.
            if self.gate.status() < ENDED {
                self.fabric.acknowledge(word, value, self.senders[sender]);
                self.wake_if_idle();
            }
        });
    }
}

impl<F> SubgroupHandle<F> {
    /// Takes tickets, each of which keeps the epoch alive until it is given back. A ticket is
    /// cheaper than a count of the `Arc` for each message.
    pub(crate) fn take_tickets(self: &Arc<Self>, tickets: u64) {
        if self.tickets.take(tickets) {
            std::mem::forget(self.clone());
        }
    }

    /// Gives tickets back.
    ///
    /// # Safety
    /// The caller owns that many tickets of the epoch and does not give them back again. `subgroup`
    /// is the address of the `Arc`'s content; without tickets (0), it may dangle.
    pub(crate) unsafe fn give_tickets(subgroup: NonNull<Self>, tickets: u64) {
        if tickets == 0 {
            return;
        }
        // SAFETY: `tickets` is not 0, so by the contract above the `Arc`'s content is alive.
        let count = &unsafe { subgroup.as_ref() }.tickets;
        if count.give(tickets) {
            // SAFETY: these were the last tickets, so the count that `take_tickets` left for them
            // is still there and belongs to this call. If another thread has taken tickets since,
            // it has left a count of its own.
            unsafe { Arc::decrement_strong_count(subgroup.as_ptr()) };
        }
    }

    /// The subgroup's id.
    pub fn id(&self) -> SubgroupId {
        self.id
    }

    /// Id of the view that formed the epoch.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Position in the total order at which the epoch begins.
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
