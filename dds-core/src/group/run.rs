//! Messages of one sender that are delivered one after the other.

use std::cell::Cell;
use std::fmt;
use std::ptr::NonNull;
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
    pub(super) source: Source<'a, F>,
    pub(super) stream: &'a mut Stream,
    pub(super) order: Order<'a>,
    /// Messages that it may still have.
    pub(super) left: u64,
    pub(super) handed: Handed,
    /// The place behind the last of these.
    pub(super) behind: u64,
    /// The last one is to be passed.
    pub(super) is_out: bool,
}

/// Where all messages of a run come from.
pub(super) struct Source<'a, F: Fabric> {
    pub(super) lane: &'a Arc<Lane<F>>,
    pub(super) ring: Ring,
    pub(super) sender: Rank,
    pub(super) sender_at: usize,
    /// Where the payload of the ring begins, all of which lies in the sender's row.
    pub(super) payload: NonNull<u8>,
    pub(super) inbox: &'a Inbox,
    pub(super) tickets: &'a Tickets<F>,
}

impl<F: Fabric> Clone for Source<'_, F> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<F: Fabric> Copy for Source<'_, F> {}

impl<'a, F: Fabric> Source<'a, F> {
    /// The message of the ring that is its `real`th, and has this header.
    #[inline]
    fn delivery<'m>(&self, real: u64, position: u64, header: &'m Header) -> Delivery<'m, F>
    where
        'a: 'm,
    {
        // SAFETY: in bounds: `Header::from_words` checked offset and length against the ring
        // when the header was taken.
        let bytes = unsafe { self.payload.add(header.offset as usize) };
        Delivery {
            lane: self.lane,
            ring: self.ring,
            sender: self.sender,
            position,
            header,
            sender_at: self.sender_at as u32,
            real,
            bytes,
            len: header.len,
            inbox: self.inbox,
            tickets: self.tickets,
            is_held: Cell::new(false),
        }
    }
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

/// Messages handed over, and the bytes of their payload.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Handed {
    pub(super) messages: u64,
    pub(super) bytes: u64,
}

impl Handed {
    #[inline]
    fn add(&mut self, header: &Header) {
        self.messages += 1;
        self.bytes += u64::from(header.len);
    }
}

impl Order<'_> {
    #[inline]
    fn place(&self, header: &Header) -> u64 {
        header.index * self.senders + self.at
    }

    /// The digest is one of a message more.
    #[inline]
    fn add(&mut self, place: u64, sender: Rank, header: &Header) {
        if let Some(digest) = &mut self.digest {
            let len = header.len ^ self.wrong;
            digest.add(place, sender.0, header.topic, len);
        }
    }
}

impl<F: Fabric> Run<'_, F> {
    /// Of which lane.
    pub fn lane(&self) -> &Lane<F> {
        self.source.lane
    }

    /// Who sent all of it: its place in the lane.
    pub fn sender(&self) -> Rank {
        self.source.sender
    }

    /// By which ring all of it came.
    pub fn ring(&self) -> Ring {
        self.source.ring
    }

    /// The header of the next message.
    #[inline]
    pub fn peek(&mut self) -> Option<&Header> {
        self.pass();
        let (_, header) = self.stream.front()?;
        (self.left > 0 && self.order.place(header) < self.order.end).then_some(header)
    }

    /// The next message; `None` after the last.
    #[inline]
    #[expect(clippy::should_implement_trait, reason = "it lends what it gives")]
    pub fn next(&mut self) -> Option<Delivery<'_, F>> {
        self.pass();
        let (real, header) = self.stream.front()?;
        let place = self.order.place(header);
        if self.left == 0 || place >= self.order.end {
            return None;
        }
        self.left -= 1;
        self.is_out = true;
        self.handed.add(header);
        self.behind = place + 1;
        self.order.add(place, self.source.sender, header);
        Some(self.source.delivery(real, self.order.base + place, header))
    }

    /// Hands the next messages to `take`, one after the other, for as long as they are
    /// `wanted`, but `max` at most. How many. Cheaper than [`next`](Self::next) for each.
    #[inline]
    pub fn each(
        &mut self,
        max: u64,
        mut wanted: impl FnMut(&Header) -> bool,
        mut take: impl FnMut(&Delivery<'_, F>),
    ) -> u64 {
        self.pass();
        let source = self.source;
        let limit = self.left.min(max);
        let mut handed = Handed::default();
        let mut goes_on = true;
        while goes_on && handed.messages < limit {
            let (headers, delivered) = self.stream.waiting_run();
            let left = usize::try_from(limit - handed.messages).unwrap_or(usize::MAX);
            goes_on = !headers.is_empty();
            for header in &headers[..headers.len().min(left)] {
                let place = self.order.place(header);
                if place >= self.order.end || !wanted(header) {
                    goes_on = false;
                    break;
                }
                self.behind = place + 1;
                self.order.add(place, source.sender, header);
                take(&source.delivery(*delivered, self.order.base + place, header));
                source.inbox.pass_real(*delivered, header);
                *delivered += 1;
                handed.add(header);
            }
        }
        self.left -= handed.messages;
        self.handed.messages += handed.messages;
        self.handed.bytes += handed.bytes;
        handed.messages
    }

    /// The last one has been handed over.
    #[inline]
    pub(super) fn pass(&mut self) {
        if std::mem::take(&mut self.is_out) {
            self.stream.pop(self.source.inbox);
        }
    }
}

impl<F: Fabric> fmt::Debug for Run<'_, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Run")
            .field("lane", &self.source.lane)
            .field("ring", &self.source.ring)
            .field("sender", &self.source.sender)
            .finish_non_exhaustive()
    }
}
