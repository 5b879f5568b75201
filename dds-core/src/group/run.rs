//! Messages of one sender that are delivered one after the other.

use std::cell::Cell;
use std::fmt;
use std::sync::Arc;

use spindle_dds_transport::{Fabric, Rank};

use crate::digest::Digest;
use crate::header::Header;
use crate::held::{Delivery, Tickets};
use crate::ids::Ring;
use crate::inbox::Inbox;
use crate::lane::Lane;
use crate::stream::Stream;

/// What is next in the order, all of one ring of one sender: whoever takes it one by one
/// keeps what it needs for all of it.
pub struct Run<'a, F: Fabric> {
    pub(super) lane: &'a Arc<Lane<F>>,
    pub(super) ring: Ring,
    pub(super) sender: Rank,
    pub(super) sender_at: usize,
    pub(super) stream: &'a mut Stream,
    pub(super) inbox: &'a Inbox,
    pub(super) tickets: &'a Tickets<F>,
    pub(super) order: Order<'a>,
    /// Messages that it may still have.
    pub(super) left: u64,
    /// Messages handed over, and the bytes of their payload.
    pub(super) handed: (u64, u64),
    /// The place behind the last of these.
    pub(super) behind: u64,
    /// The last one is to be passed.
    pub(super) is_out: bool,
}

/// Where the messages of a run stand: message `k` at `k * senders + at`.
pub(super) struct Order<'a> {
    pub(super) senders: u64,
    pub(super) at: u64,
    /// Position of place 0.
    pub(super) base: u64,
    /// It has nothing from this place on.
    pub(super) end: u64,
    pub(super) digest: Option<&'a mut Digest>,
    /// Planted: what is added to the digest is wrong by this.
    pub(super) wrong: u32,
}

impl<F: Fabric> Run<'_, F> {
    /// Of which lane.
    pub fn lane(&self) -> &Lane<F> {
        self.lane
    }

    /// Who sent all of it: its place in the lane.
    pub fn sender(&self) -> Rank {
        self.sender
    }

    /// By which ring all of it came.
    pub fn ring(&self) -> Ring {
        self.ring
    }

    /// The header of the next message.
    #[inline]
    pub fn peek(&mut self) -> Option<&Header> {
        self.pass();
        let (_, header) = self.stream.front()?;
        let place = header.index * self.order.senders + self.order.at;
        (self.left > 0 && place < self.order.end).then_some(header)
    }

    /// The next message; `None` after the last.
    #[inline]
    #[expect(clippy::should_implement_trait, reason = "it lends what it gives")]
    pub fn next(&mut self) -> Option<Delivery<'_, F>> {
        self.next_if(|_| true)
    }

    /// The next message, if it is `wanted`: else it stays the next.
    #[inline]
    pub fn next_if(&mut self, wanted: impl FnOnce(&Header) -> bool) -> Option<Delivery<'_, F>> {
        self.pass();
        let (real, header) = self.stream.front()?;
        let place = header.index * self.order.senders + self.order.at;
        if self.left == 0 || place >= self.order.end || !wanted(header) {
            return None;
        }
        self.left -= 1;
        self.is_out = true;
        self.handed.0 += 1;
        self.handed.1 += u64::from(header.len);
        self.behind = place + 1;
        if let Some(digest) = &mut self.order.digest {
            let len = header.len ^ self.order.wrong;
            digest.add(place, self.sender.0, header.topic, len);
        }
        Some(Delivery {
            lane: self.lane,
            ring: self.ring,
            sender: self.sender,
            position: self.order.base + place,
            header,
            sender_at: self.sender_at,
            real,
            payload: self.stream.payload(),
            inbox: self.inbox,
            tickets: self.tickets,
            is_held: Cell::new(false),
        })
    }

    /// The last one has been handed over.
    #[inline]
    pub(super) fn pass(&mut self) {
        if std::mem::take(&mut self.is_out) {
            self.stream.pop(self.inbox);
        }
    }
}

impl<F: Fabric> fmt::Debug for Run<'_, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Run")
            .field("lane", &self.lane)
            .field("ring", &self.ring)
            .field("sender", &self.sender)
            .finish_non_exhaustive()
    }
}
