//! Which members have to accept what a writer sends, and whether they have.
//!
//! A sample is *acknowledged* (DDS 1.4 §2.2.2.4.2.15) once each member that has RELIABLE readers that match
//! its writer has *accepted* it: a reader there has it in its cache, or will have it whatever happens but
//! the end of its participant. Two columns say so, which members push anyway:
//!
//! - `received`: the message is stable. All members have received it and all before it; its place in the
//!   order is fixed, and the member needs nothing of any other to deliver it. A reader without
//!   RESOURCE_LIMITS takes what is delivered: this is enough.
//! - `released`: the member has delivered it, and holds it in the ring no more. A reader with
//!   RESOURCE_LIMITS that is full leaves samples in their ring, so only a release says that it has taken
//!   one. Samples in its cache may lie in the ring, too: a writer that waits for such a reader sends a
//!   control message (`ASKS_FOR_RELEASE`) behind its last sample, at which readers copy what they have
//!   accepted out of the ring.
//!
//! So nothing is pushed, stored or counted for a message that would not be otherwise, and only a wait for a
//! reader with RESOURCE_LIMITS sends a message. A member without such readers may hold what it likes.
//! `released` goes by the order of a participant's ring: what a full reader holds back of one writer holds up
//! what another writer of that participant sent later in the same subgroup, at that member. Where an epoch of the subgroup has ended, all that go on have received
//! what was sent in it, and what they hold of it is not known any more: it counts as accepted.

use spindle_dds_core::membership::MemberId;
use spindle_dds_core::{Committed, SubgroupHandle};
use spindle_dds_transport::Rank;

use super::writer_port::WriterPort;
use crate::wire::Wire;

/// In the `flags` of a control message: a writer waits for acknowledgments, so readers that accept samples
/// of the ring release them.
pub(crate) const ASKS_FOR_RELEASE: u8 = 4;
/// The number of no writer: such a message takes no sequence number of one.
const NO_WRITER: u32 = 0;

/// A member with RELIABLE readers that match a writer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Acceptor {
    pub(crate) member: MemberId,
    /// Its rank in the epoch.
    pub(crate) rank: Rank,
    /// One of the readers has RESOURCE_LIMITS: it leaves what exceeds them in the ring.
    pub(crate) holds_back: bool,
}

impl Acceptor {
    /// Adds one for a reader, or its demands to that of its member.
    pub(crate) fn add(acceptors: &mut Vec<Self>, new: Self) {
        match acceptors.iter_mut().find(|it| it.rank == new.rank) {
            Some(known) => known.holds_back |= new.holds_back,
            None => acceptors.push(new),
        }
    }

    /// Whether the member has accepted a message of this participant.
    pub(crate) fn has_accepted(&self, epoch: &SubgroupHandle<Wire>, message: &Committed) -> bool {
        let is_stable = || !self.holds_back && epoch.is_acknowledged(message);
        is_stable() || epoch.is_released_by(message, self.rank)
    }
}

impl WriterPort {
    /// Asks the readers to release what they have accepted, if a member that may hold `message` back has not
    /// accepted it. Does not ask again before a member has released the last question: until then its
    /// readers release all that they accept. Without room it asks the next time.
    pub(crate) fn ask_for_release(&self, message: &Committed) {
        let place = self.place();
        let (epoch, acceptors) = (place.epoch.clone(), place.acceptors.clone());
        drop(place);
        let Some(epoch) = epoch else {
            return;
        };
        let last = *self.asked();
        let is_to_be_asked = |it: &Acceptor| {
            let has_answered = |last: &Committed| epoch.is_released_by(last, it.rank);
            let lacks = it.holds_back && !it.has_accepted(&epoch, message);
            lacks && last.as_ref().is_none_or(has_answered)
        };
        if acceptors.iter().any(is_to_be_asked) {
            let meta = self.control(NO_WRITER, ASKS_FOR_RELEASE);
            if let Ok((asked, _)) = self.send_now(&mut None, &[], &meta) {
                *self.asked() = Some(asked);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_holds_back_if_one_of_its_readers_does() {
        let acceptor = |rank: u16, holds_back| Acceptor {
            member: MemberId(rank.into()),
            rank: Rank(rank),
            holds_back,
        };
        let mut acceptors = Vec::new();
        for (rank, holds_back) in [(1, false), (2, true), (1, true), (2, false), (3, false)] {
            Acceptor::add(&mut acceptors, acceptor(rank, holds_back));
        }
        let expected = [(1, true), (2, true), (3, false)];
        assert_eq!(
            acceptors,
            expected.map(|(rank, holds)| acceptor(rank, holds))
        );
    }
}
