//! How an epoch ends: wedged, frozen, cut, and delivered up to the cut.
//!
//! ```text
//!   wedge   commits are refused; the guards are final
//!   freeze  once all who go on are wedged: what their guards vouch for is
//!           received; the counts do not change any more
//!   finish  once all who go on have agreed on the least of their counts: what
//!           is below is delivered, in order, and nothing else by anybody
//! ```
//!
//! What was delivered before as stable had been received by all, so it is below
//! every cut; and what remains below the cut has all been received by everybody
//! who goes on. So all end with the same order, of which everybody who does not
//! go on has delivered a beginning. Holes, left by those who failed, are
//! skipped: what would have stood there is lost.

use spindle_dds_transport::{Fabric, Rank};

use super::{Context, Phase, Sender, SubgroupState, Trouble};
use crate::ids::DeliveryClass;
use crate::sink::{EngineEvent, Sink};
use crate::subgroup::handle::{ENDED, WEDGED};
use crate::subgroup::receive_cursor::ReceiveCursor;

impl<F: Fabric> SubgroupState<F> {
    /// From now on claims and commits are refused. True once what was committed
    /// has been published, so that the guards are final; to be called again
    /// until then.
    pub(crate) fn wedge<S>(&mut self, context: &mut Context<'_, S>) -> bool {
        if self.phase == Phase::Frozen {
            return true;
        }
        self.phase = Phase::Wedged;
        self.handle.close(WEDGED);
        // After the status: a commit that begins now sees it.
        if self.handle.gate.is_busy() {
            return false;
        }
        self.publish(&self.handle.clone(), context);
        self.is_published()
    }

    /// Receives what can be seen; from now on the counts do not change: how many messages of
    /// each sender's ordered ring have been received, nulls counted, in the order of
    /// [`SubgroupSpec::senders`](crate::SubgroupSpec::senders). To be
    /// called when all who go on are wedged, and can be seen to be. Fails, and
    /// may be called again, when the row of a member makes no sense. `None`
    /// unless this member is wedged itself.
    pub(crate) fn freeze<S>(
        &mut self,
        context: &mut Context<'_, S>,
    ) -> Result<Option<Vec<u64>>, Trouble> {
        if self.phase == Phase::Open || !self.is_published() {
            return Ok(None);
        }
        if self.phase == Phase::Wedged {
            let handle = &self.handle.clone();
            self.receive_own(handle)?;
            self.receive(handle, context)?;
            self.phase = Phase::Frozen;
        }
        let counts = self
            .senders
            .iter()
            .map(|sender| received(sender).unwrap_or(0));
        Ok(Some(counts.collect()))
    }

    /// Goes on after all: the view ended without replacing the epoch. (Somebody was
    /// suspected who then left by the change that was under way.)
    pub(crate) fn reopen(&mut self) {
        self.phase = Phase::Open;
        self.handle.reopen();
    }

    /// Nothing more is read of the member's row: what had come of it is received
    /// now. It does not take part in the epoch's end.
    pub(crate) fn fence(&mut self, place: Rank) {
        let handle = &self.handle.clone();
        let me = handle.fabric.me();
        if place == me || self.members[place.index()].fenced {
            return;
        }
        handle.fabric.fence(place);
        if self.phase != Phase::Frozen {
            // How far that member can have come, my own messages say. Nothing is wrong with
            // my own row; if it were, the next step tells.
            let _ = self.receive_own(handle);
        }
        if self.phase != Phase::Frozen
            && let Ok(at) = self
                .senders
                .binary_search_by_key(&place, |sender| sender.rank)
        {
            for class in DeliveryClass::BOTH {
                // Where it makes no sense, it ends.
                let _ = self.receive_ring(handle, (at, class), u64::MAX, &mut 0);
            }
        }
        let _ = self.heed_ack(handle, place);
        self.members[place.index()].fenced = true;
        self.push_no_more_to(place);
    }

    /// Delivers what is below the cut, which has a count for each sender in
    /// their order, and ends the epoch. False, and nothing is done, unless the
    /// epoch is frozen and everything below the cut is here.
    pub(crate) fn finish<S: Sink<F>>(
        &mut self,
        trim: &[u64],
        context: &mut Context<'_, S>,
    ) -> bool {
        let here = |(sender, trim): (&Sender, &u64)| *trim <= received(sender).unwrap_or(0);
        if self.phase != Phase::Frozen
            || trim.len() != self.senders.len()
            || !self.senders.iter().zip(trim).all(here)
        {
            return false;
        }
        let handle = self.handle.clone();
        self.deliver_trimmed(&handle, trim, context);
        self.deliver_unordered(&handle, context);
        handle.close(ENDED);
        let end = self.spec.end(trim);
        context.sink.event(EngineEvent::EpochEnded {
            subgroup: self.id(),
            epoch: self.spec.epoch,
            end,
            digest: self.digest.value(),
        });
        true
    }
}

/// How many messages of a sender's ordered ring have been received.
fn received(sender: &Sender) -> Option<u64> {
    sender.receive_cursors[0].as_ref().map(ReceiveCursor::count)
}
