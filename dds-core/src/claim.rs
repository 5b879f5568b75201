//! A claim: room in one's own ring, to build one message in.

use std::fmt;
use std::sync::Arc;

use spindle_dds_transport::Fabric;

use crate::config::PlantedBug;
use crate::header::{Header, Kind};
use crate::ids::{Ring, SubgroupId};
use crate::lane::{ENDED, LEAVING, Lane, OPEN, WEDGED};
use crate::layout::RingColumns;
use crate::outbox::{Outbox, Place, Reserved};

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
    /// The subgroup changes its members: the next lane takes claims.
    #[error("the subgroup is changing its members")]
    Wedged,
    /// This participant is leaving.
    #[error("leaving the group")]
    Leaving,
    /// The group has stopped.
    #[error("the group has stopped")]
    Stopped,
}

impl ClaimError {
    /// Whether a lane of this status takes claims and commits.
    pub(crate) fn of_status(status: u32) -> Result<(), Self> {
        match status {
            OPEN => Ok(()),
            LEAVING => Err(Self::Leaving),
            WEDGED | ENDED => Err(Self::Wedged),
            _ => Err(Self::Stopped),
        }
    }
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
    /// In which of the subgroup's lanes.
    pub epoch: u64,
    /// By which ring.
    pub ring: Ring,
    /// Which message of this sender in the lane, nulls counted.
    pub index: u64,
}

/// A commit that was refused, and the claim with what was built in it.
pub struct Refused<F: Fabric> {
    /// Why.
    pub error: ClaimError,
    /// To be copied from: into a claim of the subgroup's next lane when this one
    /// is wedged. Dropped, it leaves no trace.
    pub claim: Claim<F>,
}

impl<F: Fabric> fmt::Debug for Refused<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Refused")
            .field("error", &self.error)
            .finish_non_exhaustive()
    }
}

/// Room in this participant's ring, to build one message in.
///
/// Ended by [`Claim::commit`]; dropped, it is withdrawn and leaves no trace.
pub struct Claim<F: Fabric> {
    lane: Arc<Lane<F>>,
    reserved: Reserved,
    ring: Ring,
    /// Neither committed nor withdrawn.
    is_open: bool,
}

impl<F: Fabric> Claim<F> {
    pub(crate) fn new(lane: Arc<Lane<F>>, ring: Ring, reserved: Reserved) -> Self {
        Self {
            lane,
            reserved,
            ring,
            is_open: true,
        }
    }

    /// Where the room is.
    pub fn lane(&self) -> &Arc<Lane<F>> {
        &self.lane
    }

    /// By which ring it will be sent.
    pub fn ring(&self) -> Ring {
        self.ring
    }

    #[inline]
    fn parts(&self) -> Option<(&Outbox, &RingColumns)> {
        let ring = self.ring.index();
        Some((
            self.lane.outboxes[ring].as_ref()?,
            self.lane.columns.rings[ring].as_ref()?,
        ))
    }

    /// The bytes to build in, aligned to 16. They hold whatever this
    /// participant's ring held before.
    #[inline]
    pub fn bytes(&mut self) -> &mut [u8] {
        let Some((_, columns)) = self.parts().filter(|_| self.is_open) else {
            return &mut [];
        };
        let at = columns.payload + self.reserved.offset() as usize;
        let row = self.lane.fabric.row(self.lane.fabric.me());
        // SAFETY: the extent lies in my own row's payload ring (the layout and
        // `reserve` see to it), it is mine alone until it is ended (invariant
        // of `Outbox`), and `&mut self` makes this the only reference to it.
        unsafe { row.bytes_mut(at, self.reserved.len as usize) }
    }

    /// Takes the next place in the order of this participant's messages for the
    /// first `used` bytes. The message is on its way once this returns; it is
    /// visible to others when the engine has published it. Lock-free.
    ///
    /// A lane that is wedged gives the claim back, see [`Refused`].
    pub fn commit(mut self, used: u32, meta: &Meta) -> Result<Committed, Refused<F>> {
        let result = self.finish(used, meta);
        result.map_err(|error| Refused { error, claim: self })
    }

    /// As [`commit`](Self::commit), for those who have a use for its lane afterwards. Once
    /// it has succeeded, the claim is of no more use.
    pub fn finish(&mut self, used: u32, meta: &Meta) -> Result<Committed, ClaimError> {
        let (status, inside) = self.lane.gate.enter();
        let place = self.place(status, used)?;
        if let Some(place) = place {
            self.write(place, &self.header(place, used, meta));
        }
        drop(inside);
        self.is_open = false;
        let place = place.ok_or(ClaimError::Stopped)?;
        Ok(self.committed(place))
    }

    /// The first part of the same, by whoever owns the engine: nobody closes the lane and
    /// takes what is committed for complete meanwhile. To be followed by what
    /// [`header`](Self::header) gives, written or published.
    #[inline]
    pub(crate) fn finish_owned(&mut self, used: u32) -> Result<Place, ClaimError> {
        let place = self.place(self.lane.gate.status(), used)?;
        self.is_open = false;
        place.ok_or(ClaimError::Stopped)
    }

    /// Takes the next place in the order, at this status of the lane. `None` when the lane's
    /// message indexes are used up; the claim is withdrawn then.
    #[inline]
    fn place(&self, status: u32, used: u32) -> Result<Option<Place>, ClaimError> {
        if !self.lane.config.plants(PlantedBug::CommitAfterWedge) {
            ClaimError::of_status(status)?;
        }
        let Some((outbox, _)) = self.parts().filter(|_| self.is_open) else {
            return Err(ClaimError::NotASender);
        };
        Ok(outbox.commit(self.reserved, used.min(self.reserved.len)))
    }

    #[inline]
    pub(crate) fn header(&self, place: Place, used: u32, meta: &Meta) -> Header {
        Header {
            index: place.index,
            offset: self.reserved.offset(),
            len: used.min(self.reserved.len),
            kind: meta.kind,
            flags: meta.flags,
            encapsulation: meta.encapsulation,
            writer: meta.writer,
            // Whoever publishes, in order, makes the number of it.
            writer_seq: meta.skipped.into(),
            timestamp: meta.timestamp,
            topic: meta.topic,
            key_hash: meta.key_hash,
        }
    }

    /// The header of a place that was taken: the message can be published.
    pub(crate) fn write(&self, place: Place, header: &Header) {
        if let Some((outbox, columns)) = self.parts() {
            let at = columns.header(place.real.into());
            self.lane.fabric.store_words(at, &header.to_words());
            outbox.written(place);
        }
    }

    #[inline]
    pub(crate) fn committed(&self, place: Place) -> Committed {
        Committed {
            subgroup: self.lane.subgroup(),
            epoch: self.lane.epoch(),
            ring: self.ring,
            index: place.index,
        }
    }
}

impl<F: Fabric> Drop for Claim<F> {
    fn drop(&mut self) {
        if let Some((outbox, _)) = self.parts().filter(|_| self.is_open) {
            outbox.withdraw(self.reserved);
            // Somebody may wait for this room. (The nudge fences before it looks.)
            self.lane.nudge();
        }
    }
}

impl<F: Fabric> fmt::Debug for Claim<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Claim")
            .field("lane", &self.lane)
            .field("ring", &self.ring)
            .field("reserved", &self.reserved)
            .field("is_open", &self.is_open)
            .finish()
    }
}
