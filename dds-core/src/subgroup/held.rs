//! Received messages on their way to the layer above, and those it holds.

use std::cell::Cell;
use std::fmt;
use std::mem::ManuallyDrop;
use std::ptr::NonNull;
use std::sync::Arc;

use spindle_dds_transport::memory::expect_read;
use spindle_dds_transport::{Fabric, Rank};

use crate::ids::DeliveryClass;
use crate::subgroup::handle::SubgroupHandle;
use crate::subgroup::header::Header;
use crate::subgroup::release_tracker::{ReleaseSlot, ReleaseTracker};

/// A received message that stays in its sender's ring until this is dropped.
///
/// A ticket keeps the epoch alive (`SubgroupHandle::take_tickets`): a thread that takes or gives
/// back many messages at once touches the shared count once.
pub struct Held<F: Fabric> {
    subgroup: NonNull<SubgroupHandle<F>>,
    /// Start of the payload in the sender's row.
    bytes: NonNull<u8>,
    len: u32,
    /// Index of the sender in the epoch's `senders`.
    sender: u32,
    /// Its number among the real messages of the sender's ring.
    real: u64,
    class: DeliveryClass,
}

// SAFETY: the ticket shares the epoch as the `Arc` that it stands for would; the bytes are only
// read.
unsafe impl<F: Fabric> Send for Held<F> where Arc<SubgroupHandle<F>>: Send {}
// SAFETY: as above.
unsafe impl<F: Fabric> Sync for Held<F> where Arc<SubgroupHandle<F>>: Sync {}

impl<F: Fabric> Held<F> {
    /// The epoch whose memory holds the message.
    pub fn subgroup(&self) -> &SubgroupHandle<F> {
        // SAFETY: this message's ticket keeps the epoch alive at this address.
        unsafe { self.subgroup.as_ref() }
    }

    /// The class it was sent by.
    pub fn class(&self) -> DeliveryClass {
        self.class
    }

    /// The sender's rank in the epoch.
    pub fn sender(&self) -> Rank {
        self.subgroup().senders[self.sender as usize]
    }

    /// The payload, in place, aligned to 16.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: `Delivery::hold` took these bytes from a row of the epoch's segment. This
        // message's ticket keeps the epoch alive, and the epoch keeps its rows mapped at their
        // addresses. The guard that covers the header was loaded with acquire before, so the bytes
        // are complete. They do not change while this lives:
        // - Only the sender writes to them, and it reuses the extent in this epoch only: the
        //   subgroup's next epoch has another segment (`Engine::install`).
        // - The sender reuses the extent once `released` of every member of the epoch is above this
        //   message (`SubgroupState::reclaim`). The members of an epoch are fixed: a member that
        //   leaves, crashes or is expelled ends the epoch, and its `released` is required until
        //   then.
        // - `released` in this member's row stays at or below this message until it is released
        //   here (`ReleaseTracker`), even if this member is no longer in the view. Nothing else
        //   writes that word, and other participants of the user keep to the protocol.
        // - A sender that suspects this member fences its row first, and reclaims nothing while a
        //   member is fenced, nor in an epoch that is wedged or has ended.
        unsafe { std::slice::from_raw_parts(self.bytes.as_ptr(), self.len as usize) }
    }

    /// Releases many messages. For a run of messages of one sender, the sender gets one
    /// acknowledgement.
    pub fn release_all(many: impl IntoIterator<Item = Self>) {
        let mut many = many.into_iter().map(ManuallyDrop::new);
        let Some(first) = many.next() else { return };
        let mut run = Run::of(&first);
        run.leave(first.real);
        for held in many {
            if !run.goes_on_with(&held) {
                run = Run::of(&held);
            }
            run.leave(held.real);
        }
    }
}

impl<F: Fabric> Drop for Held<F> {
    fn drop(&mut self) {
        Run::of(self).leave(self.real);
    }
}

/// Messages of one sender and class that are released together. Its drop acknowledges them and
/// gives the tickets back.
struct Run<F: Fabric> {
    subgroup: NonNull<SubgroupHandle<F>>,
    /// The sender's tracker in `subgroup`; valid while this has a ticket.
    tracker: Option<NonNull<ReleaseTracker>>,
    class: DeliveryClass,
    /// Index of the sender in the epoch's `senders`.
    sender: u32,
    /// Real messages passed, as read some time before: a lower bound.
    passed: u64,
    /// Whether the oldest held message may have been released, so that room may come back.
    due: bool,
    /// Tickets taken over, given back on drop.
    tickets: u64,
}

impl<F: Fabric> Run<F> {
    /// Starts a run with no message yet; the caller then calls [`leave`](Self::leave).
    fn of(held: &Held<F>) -> Self {
        let release_trackers = &held.subgroup().release_trackers[held.class.index()];
        Self {
            subgroup: held.subgroup,
            tracker: release_trackers[held.sender as usize]
                .as_ref()
                .map(NonNull::from),
            class: held.class,
            sender: held.sender,
            passed: 0,
            due: false,
            tickets: 0,
        }
    }

    fn goes_on_with(&self, held: &Held<F>) -> bool {
        self.subgroup == held.subgroup && self.sender == held.sender && self.class == held.class
    }

    /// Takes over the ticket of a released message.
    fn leave(&mut self, real: u64) {
        self.tickets += 1;
        let Some(tracker) = self.tracker else { return };
        // SAFETY: the tracker is part of the epoch, and this message's ticket and those taken over
        // before keep the epoch alive.
        let tracker = unsafe { tracker.as_ref() };
        if real >= self.passed {
            self.passed = tracker.passed_real();
        }
        self.due |= tracker.end_hold(real, self.passed);
    }
}

impl<F: Fabric> Drop for Run<F> {
    fn drop(&mut self) {
        if self.due {
            // SAFETY: `due` was set by `leave`, so this has a ticket, which keeps the epoch alive.
            let subgroup = unsafe { self.subgroup.as_ref() };
            subgroup.account(self.class, self.sender as usize);
        }
        // SAFETY: `leave` took these tickets over, and nothing else gives them back.
        unsafe { SubgroupHandle::give_tickets(self.subgroup, self.tickets) };
    }
}

/// Tickets of an epoch taken in advance, for the next messages.
pub(crate) struct Tickets<F> {
    subgroup: Arc<SubgroupHandle<F>>,
    /// Tickets owned and not handed out.
    spare: Cell<u64>,
}

/// Tickets taken at once.
const TICKETS: u64 = 64;

impl<F> Tickets<F> {
    pub(crate) fn new(subgroup: Arc<SubgroupHandle<F>>) -> Self {
        Self {
            subgroup,
            spare: Cell::new(0),
        }
    }

    /// The epoch, with one ticket, which the caller must give back.
    #[inline]
    fn take(&self) -> NonNull<SubgroupHandle<F>> {
        let spare = match self.spare.get() {
            0 => self.take_many(),
            spare => spare,
        };
        self.spare.set(spare - 1);
        pointer(&self.subgroup)
    }

    #[cold]
    fn take_many(&self) -> u64 {
        self.subgroup.take_tickets(TICKETS);
        TICKETS
    }
}

impl<F> Drop for Tickets<F> {
    fn drop(&mut self) {
        // SAFETY: `take_many` took these tickets and `take` handed none of them out.
        unsafe { SubgroupHandle::give_tickets(pointer(&self.subgroup), self.spare.get()) };
    }
}

/// Address of the epoch. Unlike a reference, it may be used to give up a count of the `Arc`.
fn pointer<F>(subgroup: &Arc<SubgroupHandle<F>>) -> NonNull<SubgroupHandle<F>> {
    // SAFETY: the pointer of an `Arc` is never null.
    unsafe { NonNull::new_unchecked(Arc::as_ptr(subgroup).cast_mut()) }
}

impl<F: Fabric> fmt::Debug for Held<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Held")
            .field("subgroup", self.subgroup())
            .field("class", &self.class)
            .field("sender", &self.sender)
            .field("len", &self.len)
            .finish_non_exhaustive()
    }
}

/// A message on its way to the layer above: in order, exactly once, never a null.
pub struct Delivery<'a, F: Fabric> {
    /// Its epoch.
    pub subgroup: &'a Arc<SubgroupHandle<F>>,
    /// The class it was sent by.
    pub class: DeliveryClass,
    /// The sender's rank in the epoch.
    pub sender: Rank,
    /// Ordered class: position in the total order, which goes on from epoch to epoch. Unordered
    /// class: index among the sender's messages of this epoch.
    pub position: u64,
    /// Its header, checked.
    pub header: &'a Header,
    /// Index of the sender in the epoch's `senders`.
    pub(crate) sender_at: u32,
    /// Its number among the real messages of the sender's ring.
    pub(crate) real: u64,
    /// Start of the payload in the sender's row.
    pub(crate) bytes: NonNull<u8>,
    pub(crate) len: u32,
    /// Its slot in the release tracker.
    pub(crate) place: ReleaseSlot<'a>,
    pub(crate) tickets: &'a Tickets<F>,
    /// Whether `hold` was called.
    pub(crate) is_held: Cell<bool>,
}

impl<F: Fabric> Delivery<'_, F> {
    /// Keeps the message in its sender's ring until the result is dropped: no copy, but it takes up
    /// the sender's room. Without `hold`, the bytes may be reused as soon as the upcall returns.
    /// Prefetches the first and the last cache line for the reader.
    #[inline(always)]
    pub fn hold(&self) -> Held<F> {
        expect_read(self.bytes, self.len as usize);
        if self.is_held.replace(true) {
            self.place.hold();
        } else {
            self.place.hold_first();
        }
        Held {
            subgroup: self.tickets.take(),
            bytes: self.bytes,
            len: self.len,
            sender: self.sender_at,
            real: self.real,
            class: self.class,
        }
    }
}

impl<F: Fabric> fmt::Debug for Delivery<'_, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Delivery")
            .field("subgroup", &self.subgroup)
            .field("class", &self.class)
            .field("sender", &self.sender)
            .field("position", &self.position)
            .field("header", &self.header)
            .finish_non_exhaustive()
    }
}
