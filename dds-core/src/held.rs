//! What comes out of a lane: messages on their way up, and those that are held.

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
}

impl<F: Fabric> Held<F> {
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
}

impl<F: Fabric> Drop for Held<F> {
    fn drop(&mut self) {
        self.lane.let_go(self.ring, self.sender as usize, self.real);
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
}

impl<F: Fabric> Delivery<'_, F> {
    /// Keeps the message in its sender's ring until the result is dropped: no
    /// copy, but its sender's room. Without it the bytes may be reused as soon
    /// as the upcall returns.
    pub fn hold(&self) -> Option<Held<F>> {
        let columns = self.lane.rings[self.ring.index()][self.sender_at].as_ref()?;
        self.lane.inboxes[self.ring.index()][self.sender_at]
            .as_ref()?
            .hold(self.real);
        Some(Held {
            lane: self.lane.clone(),
            ring: self.ring,
            sender: self.sender_at as u32,
            real: self.real,
            at: columns.payload + self.header.offset as usize,
            len: self.header.len,
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
