//! What comes out of an epoch: messages on their way up, and those that are held.

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
use crate::subgroup::release_tracker::{Place, ReleaseTracker};

/// A received message that stays in its sender's ring until this is dropped.
///
/// It keeps its epoch alive by a ticket of it (`SubgroupHandle::take_tickets`): a thread that takes, or
/// gives back, many of them at once touches the word that threads share once.
pub struct Held<F: Fabric> {
    subgroup: NonNull<SubgroupHandle<F>>,
    bytes: NonNull<u8>,
    len: u32,
    sender: u32,
    real: u64,
    class: DeliveryClass,
}

// SAFETY: it shares the epoch as the `Arc` would that it stands for; the bytes are only read.
unsafe impl<F: Fabric> Send for Held<F> where Arc<SubgroupHandle<F>>: Send {}
// SAFETY: as above.
unsafe impl<F: Fabric> Sync for Held<F> where Arc<SubgroupHandle<F>>: Sync {}

impl<F: Fabric> Held<F> {
    /// Whose memory it is in.
    pub fn subgroup(&self) -> &SubgroupHandle<F> {
        // SAFETY: the ticket that this has keeps the epoch where it is.
        unsafe { self.subgroup.as_ref() }
    }

    /// By which ring it came.
    pub fn class(&self) -> DeliveryClass {
        self.class
    }

    /// Who sent it: its place in the epoch.
    pub fn sender(&self) -> Rank {
        self.subgroup().senders[self.sender as usize]
    }

    /// The payload, in place, aligned to 16.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: `Delivery::hold` found these bytes in a row of the epoch's segment, and the
        // ticket of this keeps the epoch, which keeps its rows mapped where they are. The guard
        // that covered their header was loaded with acquire before, so they are whole. They do
        // not change while this lives:
        // - Only their sender writes to them, and it reuses the extent in this epoch alone: the
        //   next epoch of the subgroup has another segment (`Engine::install`).
        // - It reuses it once `released` of every member of the epoch is above this message
        //   (`SubgroupState::reclaim`). A member's list of members is that of the epoch: who
        //   leaves, crashes or is expelled ends the epoch, and is waited for until then.
        // - `released` in this member's row stays at or below this message until it is let go
        //   (`ReleaseTracker`), whether this member is in the view still or not: nothing else
        //   writes it, and other participants of the user keep to the protocol.
        // - A sender that suspects this member fences its row first, and reclaims nothing
        //   while a member is fenced; nor does it in an epoch that is wedged or has ended.
        unsafe { std::slice::from_raw_parts(self.bytes.as_ptr(), self.len as usize) }
    }

    /// Lets go of many at once: of messages of one sender in a row, that sender is told
    /// once.
    pub fn let_go(many: impl IntoIterator<Item = Self>) {
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

/// Messages of one ring of one sender that are let go together. Dropped, it tells that
/// sender, and gives their tickets back.
struct Run<F: Fabric> {
    subgroup: NonNull<SubgroupHandle<F>>,
    tracker: Option<NonNull<ReleaseTracker>>,
    class: DeliveryClass,
    sender: u32,
    /// How many messages had been passed, some time before.
    passed: u64,
    /// Room may come back.
    due: bool,
    tickets: u64,
}

impl<F: Fabric> Run<F> {
    /// Of none yet: to be followed by [`leave`](Self::leave) of that one.
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

    /// Takes over the ticket of a message that is let go.
    fn leave(&mut self, real: u64) {
        self.tickets += 1;
        let Some(tracker) = self.tracker else { return };
        // SAFETY: it is part of the epoch, which the ticket of that message, and those taken
        // over before, keep where it is.
        let tracker = unsafe { tracker.as_ref() };
        if real >= self.passed {
            self.passed = tracker.passed_real();
        }
        self.due |= tracker.let_go(real, self.passed);
    }
}

impl<F: Fabric> Drop for Run<F> {
    fn drop(&mut self) {
        if self.due {
            // SAFETY: there is one ticket at least, which keeps the epoch.
            let subgroup = unsafe { self.subgroup.as_ref() };
            subgroup.account(self.class, self.sender as usize);
        }
        // SAFETY: these were taken over in `leave`, and no other call gives them back.
        unsafe { SubgroupHandle::give_tickets(self.subgroup, self.tickets) };
    }
}

/// Tickets of an epoch that were taken together, for messages to come.
pub(crate) struct Tickets<F> {
    subgroup: Arc<SubgroupHandle<F>>,
    spare: Cell<u64>,
}

/// How many tickets are taken at once.
const TICKETS: u64 = 64;

impl<F> Tickets<F> {
    pub(crate) fn new(subgroup: Arc<SubgroupHandle<F>>) -> Self {
        Self {
            subgroup,
            spare: Cell::new(0),
        }
    }

    /// The epoch, with one ticket, which the caller has to give back.
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
        // SAFETY: these were taken in `take`, and none of them was handed on.
        unsafe { SubgroupHandle::give_tickets(pointer(&self.subgroup), self.spare.get()) };
    }
}

/// Where an epoch is: good for giving up one of its counts, as no reference is.
fn pointer<F>(subgroup: &Arc<SubgroupHandle<F>>) -> NonNull<SubgroupHandle<F>> {
    // SAFETY: an `Arc` does not point to null.
    unsafe { NonNull::new_unchecked(Arc::as_ptr(subgroup).cast_mut()) }
}

impl<F: Fabric> fmt::Debug for Held<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Held")
            .field("subgroup", self.subgroup())
            .field("ring", &self.class)
            .field("sender", &self.sender)
            .field("len", &self.len)
            .finish_non_exhaustive()
    }
}

/// A message on its way to the layer above: in order, once, not a null.
pub struct Delivery<'a, F: Fabric> {
    /// Where.
    pub subgroup: &'a Arc<SubgroupHandle<F>>,
    /// By which ring it came.
    pub class: DeliveryClass,
    /// Who sent it: its place in the epoch.
    pub sender: Rank,
    /// Position in the total order, which rises from epoch to epoch (ordered
    /// ring), or index of the message among its sender's in this epoch
    /// (unordered ring).
    pub position: u64,
    /// Its header, checked.
    pub header: &'a Header,
    pub(crate) sender_at: u32,
    pub(crate) real: u64,
    /// Its payload, which lies in the sender's row.
    pub(crate) bytes: NonNull<u8>,
    pub(crate) len: u32,
    /// Where it is accounted for.
    pub(crate) place: Place<'a>,
    pub(crate) tickets: &'a Tickets<F>,
    /// It is held.
    pub(crate) is_held: Cell<bool>,
}

impl<F: Fabric> Delivery<'_, F> {
    /// Keeps the message in its sender's ring until the result is dropped: no
    /// copy, but its sender's room. Without it the bytes may be reused as soon
    /// as the upcall returns. Who holds it reads it: its first line and its last are on their way
    /// from now on.
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
            .field("ring", &self.class)
            .field("sender", &self.sender)
            .field("position", &self.position)
            .field("header", &self.header)
            .finish_non_exhaustive()
    }
}
