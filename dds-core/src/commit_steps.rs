//! A commit in steps, for a harness that stops a thread in the middle of it.
//!
//! [`Claim::commit`] takes the same steps in one call. Between two steps a thread may be
//! preempted, while the engine goes on and a view ends:
//!
//! ```text
//!   enter       enters the gate, and reads whether the subgroup is open
//!   take_index  takes the next index of its ring, which the ring's words show to other threads
//!   finish      writes the header, so that the message can be published
//! ```

use spindle_dds_transport::Fabric;

use crate::subgroup::claim::{Claim, ClaimError, CommitMeta, Committed};
use crate::subgroup::send_ring::RingPosition;

/// A commit in progress. Until it is finished, its subgroup cannot be wedged.
#[derive(Debug)]
pub struct CommitSteps<F: Fabric> {
    claim: Claim<F>,
    /// Status of the subgroup when the thread entered.
    status: u32,
    /// Bytes of payload.
    used: u32,
    meta: CommitMeta,
}

/// A commit that has taken its index.
#[derive(Debug)]
pub struct IndexTaken<F: Fabric> {
    steps: CommitSteps<F>,
    place: RingPosition,
}

impl<F: Fabric> CommitSteps<F> {
    /// Enters the gate of the claim's subgroup.
    pub fn enter(claim: Claim<F>, used: u32, meta: CommitMeta) -> Self {
        let (status, inside) = claim.subgroup().gate.enter();
        // `drop` leaves the gate.
        std::mem::forget(inside);
        Self {
            claim,
            status,
            used,
            meta,
        }
    }

    /// Takes the next index. Refused if the subgroup was not open when the thread entered the
    /// gate; the error gives back the commit, with the claim still open.
    pub fn take_index(mut self) -> Result<IndexTaken<F>, Box<(ClaimError, Self)>> {
        match self.claim.begin_commit(self.status, self.used) {
            Ok(place) => Ok(IndexTaken { steps: self, place }),
            Err(error) => Err(Box::new((error, self))),
        }
    }

    /// The claim that is being committed.
    pub fn claim(&mut self) -> &mut Claim<F> {
        &mut self.claim
    }
}

impl<F: Fabric> IndexTaken<F> {
    /// The receipt that the commit has once it is finished.
    pub fn committed(&self) -> Committed {
        self.steps.claim.committed(self.place.index)
    }

    /// Writes the header, and leaves the gate.
    pub fn finish(self) {
        let Self { steps, place } = &self;
        let header = steps.claim.header(*place, steps.used, &steps.meta);
        steps.claim.write(*place, &header);
    }
}

impl<F: Fabric> Drop for CommitSteps<F> {
    fn drop(&mut self) {
        self.claim.subgroup().gate.leave();
    }
}
