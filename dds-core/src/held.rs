//! What comes out of a lane: messages on their way up, and those that are held.

use std::cell::Cell;
use std::fmt;
use std::sync::Arc;

use spindle_dds_transport::{Fabric, Rank};

use crate::header::Header;
use crate::ids::Ring;
use crate::lane::Lane;

/// A received message that stays in its sender's ring until this is dropped.
pub struct Held<F: Fabric> {
    lane: Arc<Lane<F>>,
    ring: Ring,
    sender: u32,
    real: u64,
    at: usize,
    len: u32,
    /// Its sender's ring has been told already that it is let go.
    is_left: bool,
}

impl<F: Fabric> Held<F> {
    /// Whose memory it is in.
    pub fn lane(&self) -> &Arc<Lane<F>> {
        &self.lane
    }

    /// By which ring it came.
    pub fn ring(&self) -> Ring {
        self.ring
    }

    /// Who sent it: its place in the lane.
    pub fn sender(&self) -> Rank {
        self.lane.senders[self.sender as usize]
    }

    /// The payload, in place, aligned to 16.
    pub fn bytes(&self) -> &[u8] {
        let row = self
            .lane
            .fabric
            .row(self.lane.senders[self.sender as usize]);
        // SAFETY: in bounds: `Header::from_words` checked offset and length
        // against the ring when the header was taken. Vouched for by the guard
        // that covered the header, loaded with acquire. Not changed while this
        // lives: `released` stays at or below this message, its owner reuses
        // the extent only above it (members of the same user keep to the
        // protocol), and this member does not leave while it holds a message
        // (`Engine::leave`): nobody would wait for its `released` any more.
        // Who takes another member for failed wedges its lanes, and takes no
        // room back in a wedged lane.
        unsafe { row.bytes(self.at, self.len as usize) }
    }

    /// Lets go of many at once: of messages of one sender in a row, that sender is told
    /// once.
    pub fn let_go(many: impl IntoIterator<Item = Self>) {
        let mut last: Option<Self> = None;
        let (mut passed, mut due) = (0, false);
        for mut held in many {
            if let Some(before) = last.take()
                && !before.is_beside(&held)
            {
                before.account(due);
                (passed, due) = (0, false);
            }
            due |= held.leave(&mut passed);
            last = Some(held);
        }
        if let Some(last) = last {
            last.account(due);
        }
    }

    /// Whether both are of one ring of one sender.
    fn is_beside(&self, other: &Self) -> bool {
        let place = |held: &Self| (held.ring, held.sender);
        place(self) == place(other) && Arc::ptr_eq(&self.lane, &other.lane)
    }

    /// Lets go, and leaves the accounting to be done; whether it is to be done.
    fn leave(&mut self, passed: &mut u64) -> bool {
        self.is_left = true;
        let (ring, sender) = (self.ring, self.sender as usize);
        self.lane.let_go(ring, sender, self.real, passed)
    }

    fn account(&self, due: bool) {
        if due {
            self.lane.account(self.ring, self.sender as usize);
        }
    }
}

impl<F: Fabric> Drop for Held<F> {
    fn drop(&mut self) {
        if !self.is_left {
            let due = self.leave(&mut 0);
            self.account(due);
        }
    }
}

impl<F: Fabric> fmt::Debug for Held<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Held")
            .field("lane", &self.lane)
            .field("ring", &self.ring)
            .field("sender", &self.sender)
            .field("len", &self.len)
            .finish_non_exhaustive()
    }
}

/// A message on its way to the layer above: in order, once, not a null.
pub struct Delivery<'a, F: Fabric> {
    /// Where.
    pub lane: &'a Arc<Lane<F>>,
    /// By which ring it came.
    pub ring: Ring,
    /// Who sent it: its place in the lane.
    pub sender: Rank,
    /// Position in the total order, which rises from lane to lane (ordered
    /// ring), or index of the message among its sender's in this lane
    /// (unordered ring).
    pub position: u64,
    /// Its header, checked.
    pub header: &'a Header,
    pub(crate) sender_at: usize,
    pub(crate) real: u64,
    /// Somebody holds it.
    pub(crate) is_held: Cell<bool>,
}

impl<F: Fabric> Delivery<'_, F> {
    /// Keeps the message in its sender's ring until the result is dropped: no
    /// copy, but its sender's room. Without it the bytes may be reused as soon
    /// as the upcall returns.
    pub fn hold(&self) -> Option<Held<F>> {
        let columns = self.lane.rings[self.ring.index()][self.sender_at].as_ref()?;
        let inbox = self.lane.inboxes[self.ring.index()][self.sender_at].as_ref()?;
        if self.is_held.replace(true) {
            inbox.hold(self.real);
        } else {
            inbox.hold_first(self.real);
        }
        Some(Held {
            lane: self.lane.clone(),
            ring: self.ring,
            sender: self.sender_at as u32,
            real: self.real,
            at: columns.payload + self.header.offset as usize,
            len: self.header.len,
            is_left: false,
        })
    }
}

impl<F: Fabric> fmt::Debug for Delivery<'_, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Delivery")
            .field("lane", &self.lane)
            .field("ring", &self.ring)
            .field("sender", &self.sender)
            .field("position", &self.position)
            .field("header", &self.header)
            .finish_non_exhaustive()
    }
}
