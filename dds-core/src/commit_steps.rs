//! A commit in steps, for a harness that stops a thread in the middle of it.
//!
//! [`Claim::finish`] takes the same steps at one go. Between two of them a thread may lose
//! its processor, while the engine goes on and a view ends:
//!
//! ```text
//!   enter       counted in at the gate, and has seen whether the subgroup is open
//!   take_index  has the next index of its ring: others know of it by the ring's words
//!   finish      the header is written, so that the message can be published
//! ```

use spindle_dds_transport::Fabric;

use crate::claim::{Claim, ClaimError, CommitMeta, Committed};
use crate::outbox::Place;

/// A commit that is under way; until it is finished, its subgroup cannot be wedged.
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
    place: Place,
}

impl<F: Fabric> CommitSteps<F> {
    /// Enters the gate of the claim's subgroup.
    pub fn enter(claim: Claim<F>, used: u32, meta: CommitMeta) -> Self {
        let (status, inside) = claim.lane().gate.enter();
        // Left by `drop`.
        std::mem::forget(inside);
        Self {
            claim,
            status,
            used,
            meta,
        }
    }

    /// Takes the next index. Refused, with the claim still open, where the subgroup was not
    /// open when the thread entered.
    pub fn take_index(mut self) -> Result<IndexTaken<F>, (ClaimError, Self)> {
        match self.claim.take_place(self.status, self.used) {
            Ok(place) => Ok(IndexTaken { steps: self, place }),
            Err(error) => Err((error, self)),
        }
    }

    /// What is being committed.
    pub fn claim(&mut self) -> &mut Claim<F> {
        &mut self.claim
    }
}

impl<F: Fabric> IndexTaken<F> {
    /// What it will be once it is finished.
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
        self.claim.lane().gate.leave();
    }
}
