//! A claim: room in the own send ring, in which one message is built.

use std::fmt;
use std::ptr::NonNull;
use std::sync::Arc;

use spindle_dds_transport::Fabric;

use crate::ids::{DeliveryClass, SubgroupId};
use crate::limits::HEADER_LEN;
use crate::subgroup::handle::{ENDED, OPEN, SubgroupHandle, WEDGED};
use crate::subgroup::header::{Header, MessageKind};
use crate::subgroup::layout::RingColumns;
use crate::subgroup::send_ring::{Reserved, RingPosition, SendRing};

/// Why a claim was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ClaimError {
    /// All room is taken for now, by messages that some member has not released.
    #[error("no room in the ring now")]
    NoRoom,
    /// The epoch takes no messages yet: not all members are known to be ready for them.
    #[error("not all members of the subgroup are ready for its messages")]
    NotBegun,
    /// The message never fits: it may take at most half of its ring's memory.
    #[error("{len} bytes do not fit: the ring takes messages of up to {max} bytes")]
    TooLarge {
        /// Bytes asked for.
        len: u64,
        /// Bytes of the largest message.
        max: u64,
    },
    /// This participant has no ring of this class in the subgroup.
    #[error("not a sender of this subgroup")]
    NotASender,
    /// The epoch is ending because the members change: the next epoch takes claims.
    #[error("the subgroup is changing its members")]
    Wedged,
    /// The group has stopped.
    #[error("the group has stopped")]
    Stopped,
}

impl ClaimError {
    /// Whether an epoch with this status takes claims and commits.
    pub(crate) fn of_status(status: u32) -> Result<(), Self> {
        match status {
            OPEN => Ok(()),
            WEDGED | ENDED => Err(Self::Wedged),
            _ => Err(Self::Stopped),
        }
    }
}

/// The metadata of a message, given at its commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CommitMeta {
    /// What the message means to its instance.
    pub kind: MessageKind,
    /// For the layer above; the engine does not read it.
    pub flags: u8,
    /// RTPS encapsulation identifier of the payload.
    pub encapsulation: u16,
    /// The writer's number, unique within the participant.
    pub writer: u32,
    /// Source timestamp, nanoseconds since 1970.
    pub timestamp: i64,
    /// Low half of the topic's key.
    pub topic: u64,
    /// Key hash of the instance.
    pub key_hash: [u8; 16],
    /// Messages that the writer dropped before this one. That many writer sequence numbers are left
    /// out, so that readers can count what they lost.
    pub skipped: u32,
}

/// Identifies a committed message, to ask later whether it is acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Committed {
    /// The subgroup it was sent in.
    pub subgroup: SubgroupId,
    /// The epoch it was sent in: id of the view that formed it.
    pub epoch: u64,
    /// The class it was sent by.
    pub class: DeliveryClass,
    /// Index among this sender's messages of the class in the epoch, nulls included.
    pub index: u64,
}

/// Room in this participant's ring, in which one message is built.
///
/// [`Claim::commit`] ends it. If dropped, it is withdrawn and leaves no trace.
pub struct Claim<F: Fabric> {
    subgroup: Arc<SubgroupHandle<F>>,
    /// Start of the ring's payload in the own row; dangling where this member does not send.
    payload: NonNull<u8>,
    /// Start of the claimed room in it.
    begin: NonNull<u8>,
    /// The extent; meaningful while `is_open`, and for the header afterwards.
    reserved: Reserved,
    class: DeliveryClass,
    /// True until the claim is committed or withdrawn.
    is_open: bool,
}

// SAFETY: both pointers point into a row that `subgroup` keeps mapped. Only the reserved bytes are
// accessed through them, and these belong to this claim alone while it is open, on any thread.
unsafe impl<F: Fabric> Send for Claim<F> {}
// SAFETY: the bytes are accessed through `&mut self` only.
unsafe impl<F: Fabric> Sync for Claim<F> {}

impl<F: Fabric> Claim<F> {
    pub(crate) fn new(
        subgroup: Arc<SubgroupHandle<F>>,
        class: DeliveryClass,
        reserved: Reserved,
    ) -> Self {
        let row = subgroup.fabric.row(subgroup.fabric.me());
        let payload = subgroup.columns.rings[class.index()]
            .map_or(NonNull::dangling(), |columns| {
                row.place(columns.payload, columns.spec.memory() as usize)
            });
        Self {
            payload,
            begin: begin(payload, &reserved),
            subgroup,
            reserved,
            class,
            is_open: true,
        }
    }

    /// Whether [`Engine::reclaim`](crate::Engine::reclaim) should be called before the next
    /// [`renew`](Self::renew).
    #[inline]
    pub fn is_reclaim_due(&self) -> bool {
        self.reserved.is_look_due()
    }

    /// Claims again in the same epoch and class, like [`SubgroupHandle::claim`], but reuses the
    /// claim's count of the epoch. An open claim is withdrawn first.
    #[inline(always)]
    pub fn renew(&mut self, len: u32) -> Result<(), ClaimError> {
        self.withdraw();
        self.reserved = self.subgroup.reserve(self.class, len)?;
        self.begin = begin(self.payload, &self.reserved);
        self.is_open = true;
        Ok(())
    }

    /// Withdraws the claim if it is open; it leaves no trace.
    #[inline]
    pub fn withdraw(&mut self) {
        if self.is_open {
            self.withdraw_open();
        }
    }

    #[cold]
    fn withdraw_open(&mut self) {
        self.is_open = false;
        if let Some((send_ring, _)) = self.parts() {
            send_ring.withdraw(&self.reserved);
            // A thread may wait for this room. The nudge fences before it looks for sleepers.
            self.subgroup.nudge();
        }
    }

    /// The epoch the claim is in.
    pub fn subgroup(&self) -> &Arc<SubgroupHandle<F>> {
        &self.subgroup
    }

    /// The class the message will be sent by.
    pub fn class(&self) -> DeliveryClass {
        self.class
    }

    fn parts(&self) -> Option<(&SendRing, &RingColumns)> {
        let class = self.class.index();
        Some((
            self.subgroup.send_rings[class].as_ref()?,
            self.subgroup.columns.rings[class].as_ref()?,
        ))
    }

    /// The bytes to build the message in, aligned to 16. Their initial content is unspecified: what
    /// the ring held before.
    #[inline]
    pub fn bytes(&mut self) -> &mut [u8] {
        let len = match self.is_open {
            true => self.reserved.len as usize,
            false => 0,
        };
        // SAFETY: the row is mapped while `subgroup` lives, and `begin..begin + len` lies in it
        // (`begin`). The extent belongs to this claim alone until the claim is ended
        // (invariant of `SendRing`), and `&mut self` makes this the only reference to it.
        unsafe { std::slice::from_raw_parts_mut(self.begin.as_ptr(), len) }
    }

    /// Takes the next position in the order of this participant's messages for the first `used`
    /// bytes, and writes the header. After this returns, the message will be sent; others see it
    /// once the engine has published it. Lock-free. Returns the message's index, for
    /// [`committed`](Self::committed).
    ///
    /// # Errors
    /// The claim of a wedged epoch stays open, so that the message can be copied into a claim of the
    /// subgroup's next epoch.
    pub fn commit(&mut self, used: u32, meta: &CommitMeta) -> Result<u64, ClaimError> {
        let (status, inside) = self.subgroup.gate.enter();
        let place = self.place(status, used)?;
        if let Some(place) = place {
            self.write(place, &self.header(place, used, meta));
        }
        drop(inside);
        self.is_open = false;
        Ok(place.ok_or(ClaimError::Stopped)?.index)
    }

    /// The first half of a [`commit`](Self::commit), for the owner of the engine lock, which
    /// publishes the [`header`](Self::header) or [writes](Self::write) it, and for a thread that
    /// has entered the gate before. Until then the epoch must not be wedged: the thread that wedges
    /// it takes the committed messages for complete.
    #[inline(always)]
    pub(crate) fn begin_commit(
        &mut self,
        status: u32,
        used: u32,
    ) -> Result<RingPosition, ClaimError> {
        let place = self.place(status, used)?;
        self.is_open = false;
        place.ok_or(ClaimError::Stopped)
    }

    /// Takes the next position in the order if this status allows it. `None` when the epoch's
    /// message indexes are used up; the claim is withdrawn then.
    #[inline(always)]
    fn place(&self, status: u32, used: u32) -> Result<Option<RingPosition>, ClaimError> {
        ClaimError::of_status(status)?;
        match &self.subgroup.send_rings[self.class.index()] {
            Some(send_ring) if self.is_open => {
                Ok(send_ring.commit(&self.reserved, used.min(self.reserved.len)))
            }
            _ => Err(ClaimError::NotASender),
        }
    }

    /// The header of the message at a position that was taken.
    #[inline]
    pub(crate) fn header(&self, place: RingPosition, used: u32, meta: &CommitMeta) -> Header {
        Header {
            index: place.index,
            offset: self.reserved.offset(),
            len: used.min(self.reserved.len),
            kind: meta.kind,
            flags: meta.flags,
            encapsulation: meta.encapsulation,
            writer: meta.writer,
            // The publishing thread, which goes in order, replaces it by the sequence number.
            writer_seq: meta.skipped.into(),
            timestamp: meta.timestamp,
            topic: meta.topic,
            key_hash: meta.key_hash,
        }
    }

    /// Writes the header to the row: from now on the message can be published.
    pub(crate) fn write(&self, place: RingPosition, header: &Header) {
        if let Some((send_ring, columns)) = self.parts() {
            let at = columns.header(place.real.into());
            self.subgroup.fabric.store_words(at, &header.to_words());
            send_ring.written(place);
        }
    }

    /// After a send: prefetches for the next message, which is probably similar.
    #[inline]
    pub(crate) fn expect_another(&self) {
        if let Some((send_ring, columns)) = self.parts() {
            let row = self.subgroup.fabric.row(self.subgroup.fabric.me());
            let len = self.reserved.len;
            let (offset, real) = send_ring.expected(len);
            row.expect_write(columns.payload + offset, len as usize);
            row.expect_write(columns.header(real), HEADER_LEN);
        }
    }

    /// Identifies the message that was committed; `index` is what that returned.
    #[inline]
    pub fn committed(&self, index: u64) -> Committed {
        Committed {
            subgroup: self.subgroup.id(),
            epoch: self.subgroup.epoch(),
            class: self.class,
            index,
        }
    }
}

/// Start of the reserved extent, in a ring whose payload starts at `payload`.
#[inline]
fn begin(payload: NonNull<u8>, reserved: &Reserved) -> NonNull<u8> {
    // SAFETY: `SendRing::reserve` gives extents inside of the payload ring of `reserved`, and
    // `Region::place` has checked that this ring lies in the own row as a whole.
    unsafe { payload.add(reserved.offset() as usize) }
}

impl<F: Fabric> Drop for Claim<F> {
    #[inline]
    fn drop(&mut self) {
        self.withdraw();
    }
}

impl<F: Fabric> fmt::Debug for Claim<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Claim")
            .field("subgroup", &self.subgroup)
            .field("class", &self.class)
            .field("reserved", &self.reserved)
            .field("is_open", &self.is_open)
            .finish()
    }
}
