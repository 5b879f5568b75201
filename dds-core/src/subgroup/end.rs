//! The end of an epoch: wedge, freeze, ragged trim, delivery up to the trim.
//!
//! ```text
//!   wedge   commits are refused; the guards are final
//!   freeze  after all members that go on have wedged: receives what their guards
//!           cover; the counts are final
//!   finish  after all members that go on have agreed on the ragged trim (the least
//!           of their counts): delivers what is below it, in order, and nothing else
//! ```
//!
//! Invariants: a message delivered as stable had been received by all members, so it is below
//! every trim. What remains below the trim has been received by all members that go on. So these
//! members end with the same order, and every other member has delivered a prefix of it. Holes
//! left by failed members are skipped: those messages are lost.

use spindle_dds_transport::{Fabric, Rank};

use super::{Context, MemberFault, Phase, Sender, SubgroupState};
use crate::ids::DeliveryClass;
use crate::sink::{EngineEvent, Sink};
use crate::subgroup::handle::{ENDED, WEDGED};
use crate::subgroup::receive_cursor::ReceiveCursor;

impl<F: Fabric> SubgroupState<F> {
    /// Refuses claims and commits from now on. Returns true once all committed messages are
    /// published, so that the guards are final; until then it must be called again.
    pub(crate) fn wedge<S>(&mut self, context: &mut Context<'_, S>) -> bool {
        if self.phase == Phase::Frozen {
            return true;
        }
        self.phase = Phase::Wedged;
        self.handle.close(WEDGED);
        // After the status is set: a commit that begins now sees the status.
        if self.handle.gate.is_busy() {
            return false;
        }
        self.publish(&self.handle.clone(), context);
        self.is_published()
    }

    /// Receives what the guards cover; the counts are final afterwards. Returns the number of
    /// messages received of each ordered ring, nulls included, in the order of
    /// [`SubgroupSpec::senders`](crate::SubgroupSpec::senders). Must be called when all members
    /// that go on are known to be wedged. Fails on a violation of the protocol, and may be called
    /// again. `None` unless this member is wedged.
    pub(crate) fn freeze<S>(
        &mut self,
        context: &mut Context<'_, S>,
    ) -> Result<Option<Vec<u64>>, MemberFault> {
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

    /// Takes messages again: the view ended without replacing the epoch. (A member was suspected
    /// that then left by the view change under way.)
    pub(crate) fn reopen(&mut self) {
        self.phase = Phase::Open;
        self.handle.reopen();
    }

    /// Stops reading the member's row, after receiving what has arrived of it. The member does not
    /// take part in the epoch's end.
    pub(crate) fn fence(&mut self, place: Rank) {
        let handle = &self.handle.clone();
        let me = handle.fabric.me();
        if place == me || self.members[place.index()].fenced {
            return;
        }
        handle.fabric.fence(place);
        if self.phase != Phase::Frozen {
            // The own messages bound how far that member can have sent. A fault of the own row
            // would be found by the next step.
            let _ = self.receive_own(handle);
        }
        if self.phase != Phase::Frozen
            && let Ok(at) = self
                .senders
                .binary_search_by_key(&place, |sender| sender.rank)
        {
            for class in DeliveryClass::BOTH {
                // A violation ends what can be received of it.
                let _ = self.receive_ring(handle, (at, class), u64::MAX, &mut 0);
            }
        }
        let _ = self.note_acknowledgement(handle, place);
        self.members[place.index()].fenced = true;
        self.watch.fence(place);
        self.push_no_more_to(place);
    }

    /// Delivers what is below the ragged trim, one count for each sender in their order, and ends
    /// the epoch. Returns false, without any effect, unless the epoch is frozen and everything
    /// below the trim has been received.
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

/// Number of messages of a sender's ordered ring that have been received.
fn received(sender: &Sender) -> Option<u64> {
    sender.receive_cursors[0].as_ref().map(ReceiveCursor::count)
}
