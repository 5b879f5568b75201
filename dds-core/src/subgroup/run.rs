//! Consecutive messages of one sender, delivered together.

use std::cell::Cell;
use std::fmt;
use std::ptr::NonNull;
use std::sync::Arc;

use spindle_dds_transport::{Fabric, Rank};

use crate::ids::DeliveryClass;
use crate::subgroup::digest::Digest;
use crate::subgroup::handle::SubgroupHandle;
use crate::subgroup::header::Header;
use crate::subgroup::held::{Delivery, Tickets};
use crate::subgroup::receive_cursor::ReceiveCursor;
use crate::subgroup::release_tracker::{ReleaseSlot, ReleaseTracker};

/// The next messages in the order, all of one sender and class: a sink that takes them one by one
/// looks up what depends on the sender once.
pub struct MessageRun<'a, F: Fabric> {
    pub(super) source: Source<'a, F>,
    pub(super) cursor: &'a mut ReceiveCursor,
    pub(super) span: SequenceSpan,
    pub(super) order: Order<'a>,
    /// Messages that the sink may still take in this step.
    pub(super) left: u64,
    /// Whether messages skipped as unread leave `left` unchanged.
    pub(super) skips: bool,
    /// Messages and bytes handed over.
    pub(super) handed: RunTotals,
    /// Sequence number after the last message handed over.
    pub(super) behind: u64,
    /// Whether the message returned last is still to be passed.
    pub(super) is_out: bool,
}

/// What all messages of a run have in common.
pub(super) struct Source<'a, F: Fabric> {
    pub(super) subgroup: &'a Arc<SubgroupHandle<F>>,
    pub(super) class: DeliveryClass,
    /// Rank in the epoch.
    pub(super) sender: Rank,
    /// Index in the epoch's `senders`.
    pub(super) sender_at: usize,
    /// Start of the payload of the ring, all of which lies in the sender's row.
    pub(super) payload: NonNull<u8>,
    pub(super) tracker: &'a ReleaseTracker,
    pub(super) tickets: &'a Tickets<F>,
}

impl<F: Fabric> Clone for Source<'_, F> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<F: Fabric> Copy for Source<'_, F> {}

impl<'a, F: Fabric> Source<'a, F> {
    /// The real message of this number, with this header and this slot in the release tracker.
    #[inline]
    fn delivery<'m>(
        &self,
        (real, place): (u64, ReleaseSlot<'m>),
        position: u64,
        header: &'m Header,
    ) -> Delivery<'m, F>
    where
        'a: 'm,
    {
        // SAFETY: `Header::from_words` checked offset and length against the ring's size when the
        // header was received, and the ring lies in the sender's row as a whole, so the result is
        // in bounds.
        let bytes = unsafe { self.payload.add(header.offset as usize) };
        Delivery {
            subgroup: self.subgroup,
            class: self.class,
            sender: self.sender,
            position,
            header,
            sender_at: self.sender_at as u32,
            real,
            bytes,
            len: header.len,
            place,
            tickets: self.tickets,
            is_held: Cell::new(false),
        }
    }
}

/// The sequence numbers of a run's messages: message `k` has `k * senders + at`.
#[derive(Debug, Clone, Copy)]
pub(super) struct SequenceSpan {
    pub(super) senders: u64,
    pub(super) at: u64,
    /// Position of sequence number 0.
    pub(super) base: u64,
    /// Exclusive end of the run's sequence numbers.
    pub(super) end: u64,
}

/// What the run's messages are added to.
pub(super) struct Order<'a> {
    pub(super) digest: Option<&'a mut Digest>,
}

/// Messages handed over.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RunTotals {
    /// Number of messages.
    pub messages: u64,
    /// Bytes of their payload.
    pub bytes: u64,
}

impl RunTotals {
    #[inline]
    fn add(&mut self, header: &Header) {
        self.messages += 1;
        self.bytes += u64::from(header.len);
    }
}

impl SequenceSpan {
    /// The message's sequence number, if it is below the end.
    #[inline]
    fn place(&self, header: &Header) -> Option<u64> {
        let place = header.index * self.senders + self.at;
        (place < self.end).then_some(place)
    }
}

impl Order<'_> {
    /// Adds a message to the digest, if there is one.
    #[inline]
    fn add(&mut self, place: u64, sender: Rank, header: &Header) {
        if let Some(digest) = &mut self.digest {
            let len = header.len;
            digest.add(place, sender.0, header.topic, len);
        }
    }
}

impl<F: Fabric> MessageRun<'_, F> {
    /// The epoch.
    pub fn subgroup(&self) -> &SubgroupHandle<F> {
        self.source.subgroup
    }

    /// The sender's rank in the epoch.
    pub fn sender(&self) -> Rank {
        self.source.sender
    }

    /// The class all messages were sent by.
    pub fn class(&self) -> DeliveryClass {
        self.source.class
    }

    /// The header of the next message.
    #[inline]
    pub fn peek(&mut self) -> Option<&Header> {
        self.pass();
        let (_, header) = self.cursor.front()?;
        let is_there = self.left > 0 && self.span.place(header).is_some();
        is_there.then_some(header)
    }

    /// The next message; `None` after the last.
    #[inline]
    #[expect(clippy::should_implement_trait, reason = "it lends what it gives")]
    pub fn next(&mut self) -> Option<Delivery<'_, F>> {
        self.pass();
        let (real, header) = self.cursor.front()?;
        let place = self.span.place(header).filter(|_| self.left > 0)?;
        self.left -= 1;
        self.is_out = true;
        self.handed.add(header);
        self.behind = place + 1;
        self.order.add(place, self.source.sender, header);
        let at = (real, self.source.tracker.place(real));
        let position = self.span.base + place;
        Some(self.source.delivery(at, position, header))
    }

    /// Hands the next messages to `take`, while they are `wanted`, at most `max`. Returns how many.
    /// Cheaper than [`next`](Self::next) for each.
    #[inline]
    pub fn each(
        &mut self,
        max: u64,
        mut wanted: impl FnMut(&Header) -> bool,
        mut take: impl FnMut(&Delivery<'_, F>),
    ) -> RunTotals {
        self.pass();
        let (source, span) = (self.source, self.span);
        let limit = self.left.min(max);
        let mut handed = RunTotals::default();
        let (mut behind, mut goes_on) = (self.behind, true);
        while goes_on && handed.messages < limit {
            let (headers, delivered) = self.cursor.waiting_run();
            let left = usize::try_from(limit - handed.messages).unwrap_or(usize::MAX);
            goes_on = !headers.is_empty();
            let places = source.tracker.places(*delivered);
            for (entry, at) in headers[..headers.len().min(left)].iter().zip(places) {
                let Some(header) = entry.header() else {
                    goes_on = false;
                    break;
                };
                let Some(place) = span.place(header).filter(|_| wanted(header)) else {
                    goes_on = false;
                    break;
                };
                behind = place + 1;
                self.order.add(place, source.sender, header);
                let real = *delivered;
                take(&source.delivery((real, at), span.base + place, header));
                source.tracker.pass_real(real, at, header);
                *delivered += 1;
                handed.add(header);
            }
        }
        self.behind = behind;
        self.left -= handed.messages;
        self.handed.messages += handed.messages;
        self.handed.bytes += handed.bytes;
        handed
    }

    /// Skips the next messages while they are `unread` here. Returns how many. A step may skip any
    /// number, because no other work waits for it.
    #[inline]
    pub fn skip(&mut self, unread: impl FnMut(&Header) -> bool) -> RunTotals {
        let left = self.left;
        if self.skips {
            self.left = u64::MAX;
        }
        let skipped = self.each(u64::MAX, unread, |_| ());
        if self.skips {
            self.left = left;
        }
        skipped
    }

    /// Passes the message that was returned last.
    #[inline]
    pub(super) fn pass(&mut self) {
        if std::mem::take(&mut self.is_out) {
            self.cursor.pop(self.source.tracker);
        }
    }
}

impl<F: Fabric> fmt::Debug for MessageRun<'_, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MessageRun")
            .field("subgroup", &self.source.subgroup)
            .field("class", &self.source.class)
            .field("sender", &self.source.sender)
            .finish_non_exhaustive()
    }
}
