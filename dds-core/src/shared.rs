//! What all threads of a participant share: outboxes, inboxes, counters.
//!
//! Application threads claim, commit and let go through here without meeting
//! the engine's state, which one thread at a time owns (see [`Engine`]).
//!
//! [`Engine`]: crate::Engine

use std::fmt;
use std::sync::Arc;

use spindle_dds_transport::{Fabric, Rank};

use crate::counters::{Counters, LiveCounters, bump};
use crate::header::{Header, Kind, WORDS};
use crate::ids::{Ring, SubgroupId};
use crate::inbox::Inbox;
use crate::layout::{Columns, Layout, RingColumns};
use crate::outbox::{Outbox, Published, ReserveError, Reserved};
use crate::spec::ViewSpec;
use crate::sync::{AtomicU32, AtomicU64, Ordering};

pub(crate) const OPEN: u32 = 0;
pub(crate) const LEAVING: u32 = 1;
pub(crate) const STOPPED: u32 = 2;

pub(crate) struct Shared<F> {
    pub(crate) fabric: F,
    pub(crate) layout: Layout,
    /// By subgroup; boxed, as most may be empty.
    pub(crate) groups: Box<[Option<Box<GroupShared>>]>,
    pub(crate) counters: LiveCounters,
    /// `OPEN`, `LEAVING` or `STOPPED`; only rises.
    pub(crate) status: AtomicU32,
    /// Commits under way; leaving waits until it is 0.
    pub(crate) committing: AtomicU32,
    /// Threads of the driver that wait for acknowledgements.
    pub(crate) ack_waiters: AtomicU32,
}

/// A subgroup that this participant is a member of.
pub(crate) struct GroupShared {
    /// My columns.
    pub(crate) columns: Columns,
    /// My rings, if I send here.
    pub(crate) outboxes: [Option<Outbox>; 2],
    /// By ring and sender.
    pub(crate) inboxes: [Box<[Option<Inbox>]>; 2],
    /// By ring and sender: where the ring stands in its sender's row.
    pub(crate) rings: [Box<[Option<RingColumns>]>; 2],
    /// By sender.
    pub(crate) senders: Box<[Rank]>,
    /// Number of ordered senders, and my place among them.
    pub(crate) ordered: u64,
    pub(crate) my_place: Option<u64>,
    /// Everything below this position has been received by all members.
    pub(crate) stable: AtomicU64,
    /// By ring: my messages below this index have been released by all members.
    pub(crate) released: [AtomicU64; 2],
    /// Steps that brought room, or moved `stable` or `released`.
    pub(crate) changes: AtomicU64,
}

impl<F: Fabric> Shared<F> {
    pub(crate) fn new(fabric: F, layout: Layout, spec: &ViewSpec) -> Self {
        let me = fabric.me();
        let group = |at: usize| GroupShared::new(&layout, spec, at, me).map(Box::new);
        let groups = (0..spec.subgroups.len()).map(group).collect();
        Self {
            fabric,
            groups,
            layout,
            counters: LiveCounters::new(),
            status: AtomicU32::new(OPEN),
            committing: AtomicU32::new(0),
            ack_waiters: AtomicU32::new(0),
        }
    }

    /// A holder lets go of real message `real`: room may come back.
    fn let_go(&self, group: usize, ring: usize, sender: usize, real: u64) {
        let Some(group) = &self.groups[group] else {
            return;
        };
        let Some(inbox) = &group.inboxes[ring][sender] else {
            return;
        };
        if inbox.let_go(real) {
            let word = group.columns.released(ring, sender);
            inbox.release(|value| self.fabric.acknowledge(word, value, group.senders[sender]));
        }
    }
}

impl GroupShared {
    fn new(layout: &Layout, spec: &ViewSpec, at: usize, me: Rank) -> Option<Self> {
        let columns = layout.columns(me, at)?.clone();
        let senders = &spec.subgroups[at].senders;
        let rings = Ring::BOTH.map(|ring| {
            senders
                .iter()
                .map(|sender| layout.columns(sender.rank, at)?.rings[ring.index()])
                .collect::<Box<[_]>>()
        });
        let ordered = senders.iter().filter(|sender| sender.rings[0].is_some());
        Some(Self {
            outboxes: Ring::BOTH.map(|ring| {
                columns.rings[ring.index()]
                    .as_ref()
                    .map(|ring| Outbox::new(&ring.spec))
            }),
            inboxes: Ring::BOTH.map(|ring| {
                rings[ring.index()]
                    .iter()
                    .map(|ring| ring.map(|ring| Inbox::new(ring.spec.messages)))
                    .collect()
            }),
            rings,
            senders: senders.iter().map(|sender| sender.rank).collect(),
            ordered: ordered.clone().count() as u64,
            my_place: ordered
                .clone()
                .position(|sender| sender.rank == me)
                .map(|at| at as u64),
            stable: AtomicU64::new(0),
            released: [AtomicU64::new(0), AtomicU64::new(0)],
            changes: AtomicU64::new(0),
            columns,
        })
    }
}

/// Access to an engine for the threads of its participant: claims, progress,
/// counters. Cheap to clone; keeps the view's memory.
pub struct Handle<F>(pub(crate) Arc<Shared<F>>);

impl<F> Clone for Handle<F> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<F> fmt::Debug for Handle<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handle")
            .field("groups", &self.0.groups.len())
            .finish_non_exhaustive()
    }
}

/// Why a claim was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ClaimError {
    /// Not now: all room is taken by messages that somebody has not released.
    #[error("no room in the ring now")]
    NoRoom,
    /// Never: a message takes at most half of its ring.
    #[error("{len} bytes do not fit: the ring takes messages of up to {max} bytes")]
    TooLarge {
        /// Bytes asked for.
        len: u64,
        /// Bytes of the largest message.
        max: u64,
    },
    /// This participant has no such ring in the subgroup.
    #[error("not a sender of this subgroup")]
    NotASender,
    /// This participant is leaving.
    #[error("leaving the group")]
    Leaving,
    /// The group has stopped.
    #[error("the group has stopped")]
    Stopped,
}

/// What a commit says of its message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Meta {
    /// What the message means to its instance.
    pub kind: Kind,
    /// For the layer above.
    pub flags: u8,
    /// RTPS encapsulation identifier of the payload.
    pub encapsulation: u16,
    /// The writer, unique within the participant.
    pub writer: u32,
    /// Source timestamp, nanoseconds since 1970.
    pub timestamp: i64,
    /// Low half of the topic's key.
    pub topic: u64,
    /// Key hash of the instance.
    pub key_hash: [u8; 16],
    /// Messages that the writer dropped before this one: as many writer sequence
    /// numbers are left out, by which readers count what they lost.
    pub skipped: u32,
}

/// A committed message: a receipt to ask about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Committed {
    /// Where it was sent.
    pub subgroup: SubgroupId,
    /// By which ring.
    pub ring: Ring,
    /// Which message of this sender, nulls counted.
    pub index: u64,
}

impl<F: Fabric> Handle<F> {
    /// Reserves `len` bytes to build a message in. Never blocks, takes no lock,
    /// allocates nothing. The claim costs room in this participant's own ring
    /// until it is committed and released, or dropped.
    pub fn claim(
        &self,
        subgroup: SubgroupId,
        ring: Ring,
        len: u32,
    ) -> Result<Claim<F>, ClaimError> {
        match self.0.status.load(Ordering::Acquire) {
            OPEN => {}
            LEAVING => return Err(ClaimError::Leaving),
            _ => return Err(ClaimError::Stopped),
        }
        let group = self.0.groups.get(subgroup.index()).and_then(Option::as_ref);
        let outbox = group.and_then(|group| group.outboxes[ring.index()].as_ref());
        let outbox = outbox.ok_or(ClaimError::NotASender)?;
        match outbox.reserve(len) {
            Ok(reserved) => Ok(Claim {
                shared: self.0.clone(),
                subgroup,
                ring,
                reserved: Some(reserved),
            }),
            Err(ReserveError::Full) => {
                self.0
                    .counters
                    .claims_without_room
                    .fetch_add(1, Ordering::Relaxed);
                Err(ClaimError::NoRoom)
            }
            Err(ReserveError::TooLarge) => Err(ClaimError::TooLarge {
                len: len.into(),
                max: outbox.len_max(),
            }),
        }
    }

    /// Bytes of the largest message of a ring; `None` where this participant does not send.
    pub fn message_len_max(&self, subgroup: SubgroupId, ring: Ring) -> Option<u64> {
        let group = self.0.groups.get(subgroup.index())?.as_ref()?;
        Some(group.outboxes[ring.index()].as_ref()?.len_max())
    }

    /// Whether every member of the subgroup has received the message (ordered
    /// ring), or released it (unordered ring, which knows no stability).
    pub fn is_acknowledged(&self, message: &Committed) -> bool {
        let Some(Some(group)) = self.0.groups.get(message.subgroup.index()) else {
            return false;
        };
        match (message.ring, group.my_place) {
            (Ring::Ordered, Some(place)) => {
                let seq = message
                    .index
                    .saturating_mul(group.ordered)
                    .saturating_add(place);
                group.stable.load(Ordering::Acquire) > seq
            }
            (Ring::Ordered, None) => false,
            (Ring::Unordered, _) => group.released[1].load(Ordering::Acquire) > message.index,
        }
    }

    /// How far the messages of this participant's ring have been released by all
    /// members: their room is this participant's again. The exclusive end of their
    /// indexes, nulls counted; it only rises. 0 where this participant does not send.
    pub fn released(&self, subgroup: SubgroupId, ring: Ring) -> u64 {
        let group = self.0.groups.get(subgroup.index()).and_then(Option::as_ref);
        group.map_or(0, |group| {
            group.released[ring.index()].load(Ordering::Acquire)
        })
    }

    /// While the guard lives, a sleeping engine wants to be woken by
    /// acknowledgements: for threads that wait for room or for a receipt.
    pub fn waiting_for_acks(&self) -> AckWait<F> {
        self.0.ack_waiters.fetch_add(1, Ordering::SeqCst);
        // The sleeper may have announced that it wants data only.
        self.0.fabric.nudge();
        AckWait(self.0.clone())
    }

    /// The subgroups that this participant is a member of.
    pub fn subgroups(&self) -> impl Iterator<Item = SubgroupId> {
        let groups = self.0.groups.iter().zip(0..);
        groups.filter_map(|(group, at)| group.as_ref().map(|_| SubgroupId(at)))
    }

    /// How many steps have brought room, releases or acknowledgements of a subgroup: while
    /// it stays the same, trying again is of no use.
    pub fn changes(&self, subgroup: SubgroupId) -> u64 {
        let group = self.0.groups.get(subgroup.index()).and_then(Option::as_ref);
        group.map_or(0, |group| group.changes.load(Ordering::Acquire))
    }

    /// The fabric below.
    pub fn fabric(&self) -> &F {
        &self.0.fabric
    }

    /// What has been done so far.
    pub fn counters(&self) -> Counters {
        self.0.counters.snapshot()
    }

    /// How much of a sender's ring is taken by messages that have arrived here
    /// and are not released here, as parts of 256 of its headers or of its
    /// payload, whichever is more. Who holds samples in rings looks at it to
    /// know when to copy them out.
    pub fn held_parts(&self, subgroup: SubgroupId, ring: Ring, sender: Rank) -> u32 {
        let held = || {
            let group = self.0.groups.get(subgroup.index())?.as_ref()?;
            let at = group.senders.binary_search(&sender).ok()?;
            let columns = group.rings[ring.index()][at].as_ref()?;
            Some(
                group.inboxes[ring.index()][at]
                    .as_ref()?
                    .held_parts(columns),
            )
        };
        held().unwrap_or(0)
    }
}

/// See [`Handle::waiting_for_acks`].
pub struct AckWait<F>(Arc<Shared<F>>);

impl<F> fmt::Debug for AckWait<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AckWait")
    }
}

impl<F> Drop for AckWait<F> {
    fn drop(&mut self) {
        self.0.ack_waiters.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Room in this participant's ring, to build one message in.
///
/// Ended by [`Claim::commit`]; dropped, it is withdrawn and leaves no trace.
pub struct Claim<F: Fabric> {
    shared: Arc<Shared<F>>,
    subgroup: SubgroupId,
    ring: Ring,
    reserved: Option<Reserved>,
}

impl<F: Fabric> Claim<F> {
    fn parts(&self) -> Option<(&Outbox, &RingColumns, Reserved)> {
        let group = self.shared.groups[self.subgroup.index()].as_ref()?;
        let ring = self.ring.index();
        Some((
            group.outboxes[ring].as_ref()?,
            group.columns.rings[ring].as_ref()?,
            self.reserved?,
        ))
    }

    /// The bytes to build in, aligned to 16. They hold whatever this
    /// participant's ring held before.
    pub fn bytes(&mut self) -> &mut [u8] {
        let Some((_, columns, reserved)) = self.parts() else {
            return &mut [];
        };
        let at = columns.payload + reserved.offset as usize;
        let row = self.shared.fabric.row(self.shared.fabric.me());
        // SAFETY: the extent lies in my own row's payload ring (the layout and
        // `reserve` see to it), it is mine alone until it is ended (invariant
        // of `Outbox`), and `&mut self` makes this the only reference to it.
        unsafe { row.bytes_mut(at, reserved.len as usize) }
    }

    /// Takes the next place in the order of this participant's messages for the
    /// first `used` bytes. The message is on its way once this returns; it is
    /// visible to others when the engine has published it. Lock-free.
    pub fn commit(mut self, used: u32, meta: &Meta) -> Result<Committed, ClaimError> {
        self.shared.committing.fetch_add(1, Ordering::SeqCst);
        let result = self.commit_counted(used, meta);
        self.shared.committing.fetch_sub(1, Ordering::SeqCst);
        result
    }

    fn commit_counted(&mut self, used: u32, meta: &Meta) -> Result<Committed, ClaimError> {
        // SeqCst, after the count: leaving sets the status, then reads the count.
        match self.shared.status.load(Ordering::SeqCst) {
            OPEN => {}
            LEAVING => return Err(ClaimError::Leaving),
            _ => return Err(ClaimError::Stopped),
        }
        let Some((outbox, columns, reserved)) = self.parts() else {
            return Err(ClaimError::NotASender);
        };
        let used = used.min(reserved.len);
        let Some(place) = outbox.commit(reserved, used) else {
            self.reserved = None;
            return Err(ClaimError::Stopped);
        };
        let header = Header {
            index: place.index,
            offset: reserved.offset,
            len: used,
            kind: meta.kind,
            flags: meta.flags,
            encapsulation: meta.encapsulation,
            writer: meta.writer,
            // Whoever publishes, in order, makes the number of it.
            writer_seq: meta.skipped.into(),
            timestamp: meta.timestamp,
            topic: meta.topic,
            key_hash: meta.key_hash,
        };
        let at = columns.header(place.real.into());
        for (i, word) in header.to_words().into_iter().enumerate().take(WORDS) {
            self.shared.fabric.store(at + i * 8, word);
        }
        outbox.written(place);
        self.reserved = None;
        Ok(Committed {
            subgroup: self.subgroup,
            ring: self.ring,
            index: place.index,
        })
    }
}

impl<F: Fabric> Drop for Claim<F> {
    fn drop(&mut self) {
        if let Some((outbox, _, reserved)) = self.parts() {
            outbox.withdraw(reserved);
            // Somebody may wait for this room. (The nudge fences before it looks.)
            self.shared.fabric.nudge();
        }
    }
}

impl<F: Fabric> fmt::Debug for Claim<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Claim")
            .field("subgroup", &self.subgroup)
            .field("ring", &self.ring)
            .field("reserved", &self.reserved)
            .finish_non_exhaustive()
    }
}

/// A received message that stays in its sender's ring until this is dropped.
pub struct Held<F: Fabric> {
    shared: Arc<Shared<F>>,
    subgroup: SubgroupId,
    ring: Ring,
    sender: u32,
    real: u64,
    at: usize,
    len: u32,
}

impl<F: Fabric> Held<F> {
    /// The payload, in place, aligned to 16.
    pub fn bytes(&self) -> &[u8] {
        let Some(group) = &self.shared.groups[self.subgroup.index()] else {
            return &[];
        };
        let row = self.shared.fabric.row(group.senders[self.sender as usize]);
        // SAFETY: in bounds: `Header::from_words` checked offset and length
        // against the ring when the header was taken. Vouched for by the guard
        // that covered the header, loaded with acquire. Not changed while this
        // lives: `released` stays at or below this message, its owner reuses
        // the extent only above it (members of the same user keep to the
        // protocol), and this member does not leave while it holds a message
        // (`Engine::leave`): nobody would wait for its `released` any more.
        unsafe { row.bytes(self.at, self.len as usize) }
    }
}

impl<F: Fabric> Drop for Held<F> {
    fn drop(&mut self) {
        self.shared.let_go(
            self.subgroup.index(),
            self.ring.index(),
            self.sender as usize,
            self.real,
        );
    }
}

impl<F: Fabric> fmt::Debug for Held<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Held")
            .field("subgroup", &self.subgroup)
            .field("ring", &self.ring)
            .field("sender", &self.sender)
            .field("len", &self.len)
            .finish_non_exhaustive()
    }
}

/// A message on its way to the layer above: in order, once, not a null.
pub struct Delivery<'a, F: Fabric> {
    /// Where.
    pub subgroup: SubgroupId,
    /// By which ring it came.
    pub ring: Ring,
    /// Who sent it.
    pub sender: Rank,
    /// Position in the total order (ordered ring), or index of the message
    /// among its sender's (unordered ring).
    pub position: u64,
    /// Its header, checked.
    pub header: &'a Header,
    pub(crate) shared: &'a Arc<Shared<F>>,
    pub(crate) sender_at: usize,
    pub(crate) real: u64,
}

impl<F: Fabric> Delivery<'_, F> {
    /// Keeps the message in its sender's ring until the result is dropped: no
    /// copy, but its sender's room. Without it the bytes may be reused as soon
    /// as the upcall returns.
    pub fn hold(&self) -> Option<Held<F>> {
        let group = self.shared.groups[self.subgroup.index()].as_ref()?;
        let columns = group.rings[self.ring.index()][self.sender_at].as_ref()?;
        group.inboxes[self.ring.index()][self.sender_at]
            .as_ref()?
            .hold(self.real);
        Some(Held {
            shared: self.shared.clone(),
            subgroup: self.subgroup,
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
            .field("subgroup", &self.subgroup)
            .field("ring", &self.ring)
            .field("sender", &self.sender)
            .field("position", &self.position)
            .field("header", &self.header)
            .finish_non_exhaustive()
    }
}

/// Bookkeeping of a publication, by whoever publishes.
pub(crate) fn count_publication(counters: &LiveCounters, before: &Published, after: &Published) {
    let real = after.real - before.real;
    let nulls = after.index - before.index - real;
    bump(&counters.sent, real);
    bump(&counters.nulls, nulls);
    if real > 0 {
        counters.send_batches.record(real);
    }
}
