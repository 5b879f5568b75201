//! Messages of one sender that are delivered one after the other.

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
use crate::subgroup::release_tracker::{Place, ReleaseTracker};

/// What is next in the order, all of one ring of one sender: a sink that takes it one by one
/// keeps what it needs for all of it.
pub struct MessageRun<'a, F: Fabric> {
    pub(super) source: Source<'a, F>,
    pub(super) cursor: &'a mut ReceiveCursor,
    pub(super) course: Course,
    pub(super) order: Order<'a>,
    /// Messages that it may still have.
    pub(super) left: u64,
    /// Those that are not read do not count among them.
    pub(super) skips: bool,
    pub(super) handed: RunTotals,
    /// The place behind the last of these.
    pub(super) behind: u64,
    /// The last one is to be passed.
    pub(super) is_out: bool,
}

/// Where all messages of a run come from.
pub(super) struct Source<'a, F: Fabric> {
    pub(super) subgroup: &'a Arc<SubgroupHandle<F>>,
    pub(super) class: DeliveryClass,
    pub(super) sender: Rank,
    pub(super) sender_at: usize,
    /// Where the payload of the ring begins, all of which lies in the sender's row.
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
    /// The message of the ring that is its `real`th, has this header, and is accounted for
    /// at that place.
    #[inline]
    fn delivery<'m>(
        &self,
        (real, place): (u64, Place<'m>),
        position: u64,
        header: &'m Header,
    ) -> Delivery<'m, F>
    where
        'a: 'm,
    {
        // SAFETY: in bounds: `Header::from_words` checked offset and length against the ring
        // when the header was taken.
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

/// Where the messages of a run stand: message `k` at `k * senders + at`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Course {
    pub(super) senders: u64,
    pub(super) at: u64,
    /// Position of place 0.
    pub(super) base: u64,
    /// It has nothing from this place on.
    pub(super) end: u64,
}

/// What is made of their order.
pub(super) struct Order<'a> {
    pub(super) digest: Option<&'a mut Digest>,
}

/// What was handed over.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RunTotals {
    /// Messages.
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

impl Course {
    /// Where a message stands, unless that is at the end or behind it.
    #[inline]
    fn place(&self, header: &Header) -> Option<u64> {
        let place = header.index * self.senders + self.at;
        (place < self.end).then_some(place)
    }
}

impl Order<'_> {
    /// The digest is one of a message more.
    #[inline]
    fn add(&mut self, place: u64, sender: Rank, header: &Header) {
        if let Some(digest) = &mut self.digest {
            let len = header.len;
            digest.add(place, sender.0, header.topic, len);
        }
    }
}

impl<F: Fabric> MessageRun<'_, F> {
    /// Of which epoch.
    pub fn subgroup(&self) -> &SubgroupHandle<F> {
        self.source.subgroup
    }

    /// Who sent all of it: its place in the epoch.
    pub fn sender(&self) -> Rank {
        self.source.sender
    }

    /// By which ring all of it came.
    pub fn class(&self) -> DeliveryClass {
        self.source.class
    }

    /// The header of the next message.
    #[inline]
    pub fn peek(&mut self) -> Option<&Header> {
        self.pass();
        let (_, header) = self.cursor.front()?;
        let is_there = self.left > 0 && self.course.place(header).is_some();
        is_there.then_some(header)
    }

    /// The next message; `None` after the last.
    #[inline]
    #[expect(clippy::should_implement_trait, reason = "it lends what it gives")]
    pub fn next(&mut self) -> Option<Delivery<'_, F>> {
        self.pass();
        let (real, header) = self.cursor.front()?;
        let place = self.course.place(header).filter(|_| self.left > 0)?;
        self.left -= 1;
        self.is_out = true;
        self.handed.add(header);
        self.behind = place + 1;
        self.order.add(place, self.source.sender, header);
        let at = (real, self.source.tracker.place(real));
        let position = self.course.base + place;
        Some(self.source.delivery(at, position, header))
    }

    /// Hands the next messages to `take`, one after the other, for as long as they are
    /// `wanted`, but `max` at most. How much that was. Cheaper than [`next`](Self::next) for each.
    #[inline]
    pub fn each(
        &mut self,
        max: u64,
        mut wanted: impl FnMut(&Header) -> bool,
        mut take: impl FnMut(&Delivery<'_, F>),
    ) -> RunTotals {
        self.pass();
        let (source, course) = (self.source, self.course);
        let limit = self.left.min(max);
        let mut handed = RunTotals::default();
        let (mut behind, mut goes_on) = (self.behind, true);
        while goes_on && handed.messages < limit {
            let (headers, delivered) = self.cursor.waiting_run();
            let left = usize::try_from(limit - handed.messages).unwrap_or(usize::MAX);
            goes_on = !headers.is_empty();
            let places = source.tracker.places(*delivered);
            for (header, at) in headers[..headers.len().min(left)].iter().zip(places) {
                let Some(place) = course.place(header).filter(|_| wanted(header)) else {
                    goes_on = false;
                    break;
                };
                behind = place + 1;
                self.order.add(place, source.sender, header);
                let real = *delivered;
                take(&source.delivery((real, at), course.base + place, header));
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

    /// Passes the next messages by, for as long as they are `unread` here. How
    /// much that was. Other work does not wait for it, so a step passes by as many as there are.
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

    /// The last one has been handed over.
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
            .field("ring", &self.source.class)
            .field("sender", &self.source.sender)
            .finish_non_exhaustive()
    }
}
