//! A claim of a writer, and the session whose engine takes it.

use std::sync::Arc;

use spindle_dds_core::{Claim, ClaimError, CommitMeta, Committed};

use super::writer_port::SendPosition;
use crate::driver::session::Session;
use crate::wire::Wire;

/// Room in the ring of one session. It keeps that session, and its subgroup epoch.
#[derive(Debug)]
pub(crate) struct WriterClaim {
    claim: Claim<Wire>,
    session: Arc<Session>,
    /// How often the writer's participant had come back to its group when it was made.
    returns: u32,
}

impl WriterClaim {
    pub(super) fn new(claim: Claim<Wire>, session: Arc<Session>, returns: u32) -> Self {
        Self {
            claim,
            session,
            returns,
        }
    }

    /// Claims again in the same epoch.
    #[inline]
    pub(super) fn renew(&mut self, len: u32) -> Result<(), ClaimError> {
        if self.claim.is_reclaim_due() {
            self.session.engine().reclaim(self.claim.subgroup());
        }
        self.claim.renew(len)
    }

    /// The memory to build in.
    #[inline]
    pub(crate) fn bytes(&mut self) -> &mut [u8] {
        self.claim.bytes()
    }

    /// Withdraws it, unless it is committed.
    #[inline]
    pub(crate) fn withdraw(&mut self) {
        self.claim.withdraw();
    }

    #[inline]
    pub(super) fn send(&mut self, used: u32, meta: &CommitMeta) -> Result<u64, ClaimError> {
        self.session.engine().send(&mut self.claim, used, meta)
    }

    /// What identifies the message that was committed with this index.
    #[inline]
    pub(crate) fn committed(&self, index: u64) -> Committed {
        self.claim.committed(index)
    }

    /// Its session is over: waits until it is told why.
    #[cold]
    pub(crate) fn wait_for_reason(&self) {
        self.session.wait_for_reason();
    }

    /// How often the writer's participant had come back to its group when it was made.
    pub(crate) fn returns(&self) -> u32 {
        self.returns
    }

    /// The position of a message that was committed by this claim.
    pub(crate) fn position(&self, committed: &Committed) -> SendPosition {
        SendPosition {
            returns: self.returns,
            epoch: committed.epoch,
            index: committed.index,
        }
    }
}
