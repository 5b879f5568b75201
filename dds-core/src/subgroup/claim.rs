//! A claim: room in one's own ring, to build one message in.

use std::fmt;
use std::ptr::NonNull;
use std::sync::Arc;

use spindle_dds_transport::Fabric;

use crate::ids::{DeliveryClass, SubgroupId};
use crate::limits::HEADER_LEN;
use crate::subgroup::handle::{ENDED, OPEN, SubgroupHandle, WEDGED};
use crate::subgroup::header::{Header, MessageKind};
use crate::subgroup::layout::RingColumns;
use crate::subgroup::send_ring::{Place, Reserved, SendRing};

/// Why a claim was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ClaimError {
    /// Not now: all room is taken by messages that some member has not released.
    #[error("no room in the ring now")]
    NoRoom,
    /// Never: a message takes at most half of its ring's memory.
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
    /// The subgroup changes its members: the next epoch takes claims.
    #[error("the subgroup is changing its members")]
    Wedged,
    /// The group has stopped.
    #[error("the group has stopped")]
    Stopped,
}

impl ClaimError {
    /// Whether an epoch of this status takes claims and commits.
    pub(crate) fn of_status(status: u32) -> Result<(), Self> {
        match status {
            OPEN => Ok(()),
            WEDGED | ENDED => Err(Self::Wedged),
            _ => Err(Self::Stopped),
        }
    }
}

/// What a commit says of its message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CommitMeta {
    /// What the message means to its instance.
    pub kind: MessageKind,
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
    /// In which of the subgroup's epochs.
    pub epoch: u64,
    /// By which ring.
    pub class: DeliveryClass,
    /// Which message of this sender in the epoch, nulls counted.
    pub index: u64,
}

/// A commit that was refused, and the claim with what was built in it.
pub struct RefusedCommit<F: Fabric> {
    /// Why.
    pub error: ClaimError,
    /// To be copied from: into a claim of the subgroup's next epoch when this one
    /// is wedged. Dropped, it leaves no trace.
    pub claim: Claim<F>,
}

impl<F: Fabric> fmt::Debug for RefusedCommit<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RefusedCommit")
            .field("error", &self.error)
            .finish_non_exhaustive()
    }
}

/// Room in this participant's ring, to build one message in.
///
/// Ended by [`Claim::commit`]; dropped, it is withdrawn and leaves no trace.
pub struct Claim<F: Fabric> {
    subgroup: Arc<SubgroupHandle<F>>,
    /// Where the ring's payload begins, in my own row.
    payload: NonNull<u8>,
    /// Where the room of this claim begins in it.
    begin: NonNull<u8>,
    reserved: Reserved,
    class: DeliveryClass,
    /// Neither committed nor withdrawn.
    is_open: bool,
}

// SAFETY: both pointers are into a row that `epoch` keeps mapped. Nothing is reached through them
// but the reserved bytes, which are this claim's alone while it is open, on any thread.
unsafe impl<F: Fabric> Send for Claim<F> {}
// SAFETY: nothing is reached through them but by `&mut self`.
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

    /// Claims anew, in the same epoch and by the same ring, as [`SubgroupHandle::claim`] does: for who
    /// has finished this claim and keeps it, rather than take hold of the epoch for each
    /// message. What is claimed still is withdrawn.
    #[inline]
    pub fn renew(&mut self, len: u32) -> Result<(), ClaimError> {
        self.withdraw();
        self.reserved = self.subgroup.reserve(self.class, len)?;
        self.begin = begin(self.payload, &self.reserved);
        self.is_open = true;
        Ok(())
    }

    /// Gives up what is claimed, if it is neither committed nor withdrawn; it leaves no trace.
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
            // A thread may wait for this room. (The nudge fences before it looks.)
            self.subgroup.nudge();
        }
    }

    /// Where the room is.
    pub fn subgroup(&self) -> &Arc<SubgroupHandle<F>> {
        &self.subgroup
    }

    /// By which ring it will be sent.
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

    /// The bytes to build in, aligned to 16. They hold whatever this
    /// participant's ring held before.
    #[inline]
    pub fn bytes(&mut self) -> &mut [u8] {
        let len = match self.is_open {
            true => self.reserved.len as usize,
            false => 0,
        };
        // SAFETY: mapped for as long as the epoch lives. The extent is this claim's alone
        // until it is ended (invariant of `SendRing`), and `&mut self` makes this the only
        // reference to it.
        unsafe { std::slice::from_raw_parts_mut(self.begin.as_ptr(), len) }
    }

    /// Takes the next place in the order of this participant's messages for the
    /// first `used` bytes. The message is on its way once this returns; it is
    /// visible to others when the engine has published it. Lock-free.
    ///
    /// An epoch that is wedged gives the claim back, see [`RefusedCommit`].
    pub fn commit(mut self, used: u32, meta: &CommitMeta) -> Result<Committed, RefusedCommit<F>> {
        match self.finish(used, meta) {
            Ok(index) => Ok(self.committed(index)),
            Err(error) => Err(RefusedCommit { error, claim: self }),
        }
    }

    /// As [`commit`](Self::commit), for those who have a use for its epoch afterwards. Once
    /// it has succeeded, the claim is of no more use, but for its [`committed`](Self::committed).
    pub fn finish(&mut self, used: u32, meta: &CommitMeta) -> Result<u64, ClaimError> {
        let (status, inside) = self.subgroup.gate.enter();
        let place = self.place(status, used)?;
        if let Some(place) = place {
            self.write(place, &self.header(place, used, meta));
        }
        drop(inside);
        self.is_open = false;
        Ok(place.ok_or(ClaimError::Stopped)?.index)
    }

    /// The first part of the same, by the owner of the engine: no thread closes the subgroup and
    /// takes what is committed for complete meanwhile. To be followed by what
    /// [`header`](Self::header) gives, written or published.
    #[inline]
    pub(crate) fn finish_owned(&mut self, used: u32) -> Result<Place, ClaimError> {
        self.take_place(self.subgroup.gate.status(), used)
    }

    /// Takes the next place in the order, at this status of the epoch; the claim is no more open.
    #[inline(always)]
    pub(crate) fn take_place(&mut self, status: u32, used: u32) -> Result<Place, ClaimError> {
        let place = self.place(status, used)?;
        self.is_open = false;
        place.ok_or(ClaimError::Stopped)
    }

    /// Takes the next place in the order, at this status of the epoch. `None` when the epoch's
    /// message indexes are used up; the claim is withdrawn then.
    #[inline(always)]
    fn place(&self, status: u32, used: u32) -> Result<Option<Place>, ClaimError> {
        ClaimError::of_status(status)?;
        match &self.subgroup.send_rings[self.class.index()] {
            Some(send_ring) if self.is_open => {
                Ok(send_ring.commit(&self.reserved, used.min(self.reserved.len)))
            }
            _ => Err(ClaimError::NotASender),
        }
    }

    /// The header of a place that was taken.
    #[inline]
    pub(crate) fn header(&self, place: Place, used: u32, meta: &CommitMeta) -> Header {
        Header {
            index: place.index,
            offset: self.reserved.offset(),
            len: used.min(self.reserved.len),
            kind: meta.kind,
            flags: meta.flags,
            encapsulation: meta.encapsulation,
            writer: meta.writer,
            // The publishing thread, which goes in order, makes the number of it.
            writer_seq: meta.skipped.into(),
            timestamp: meta.timestamp,
            topic: meta.topic,
            key_hash: meta.key_hash,
        }
    }

    /// Writes the header: the message can be published.
    pub(crate) fn write(&self, place: Place, header: &Header) {
        if let Some((send_ring, columns)) = self.parts() {
            let at = columns.header(place.real.into());
            self.subgroup.fabric.store_words(at, &header.to_words());
            send_ring.written(place);
        }
    }

    /// It is sent; another one like it is probably built next.
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

    /// The receipt of what it was finished with, which is this message of its ring.
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

/// Where what is reserved begins, in a ring whose payload begins there.
#[inline]
fn begin(payload: NonNull<u8>, reserved: &Reserved) -> NonNull<u8> {
    // SAFETY: the extent lies in the payload of my own ring (`SendRing::reserve` sees to it), all
    // of which lies in my row (`Region::place` has checked it).
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
            .field("ring", &self.class)
            .field("reserved", &self.reserved)
            .field("is_open", &self.is_open)
            .finish()
    }
}
