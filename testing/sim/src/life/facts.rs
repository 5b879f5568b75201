//! What happens in a life, as the checkers are told.

use spindle_dds_core::membership::{MemberId, OutReason, Proposal, Request, View};
use spindle_dds_core::{DeliveryClass, SubgroupId};

use super::storage::StorageFact;

/// A subgroup epoch: subgroup, epoch, and the branch of views that it was made in.
pub(crate) type EpochKey = (SubgroupId, u64, u64);

/// A message: the token that its sender built it with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sent {
    pub(crate) token: u64,
    pub(crate) len: u32,
}

/// A delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Delivered {
    pub(crate) epoch: EpochKey,
    pub(crate) class: DeliveryClass,
    pub(crate) sender: MemberId,
    pub(crate) position: u64,
    pub(crate) sent: Sent,
    /// Whether the receiver had said that it is ready for the epoch.
    pub(crate) was_ready: bool,
}

/// Something that happened; facts are recorded in the order in which they happened.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Fact<'a> {
    /// An application calls for a message to be sent. The call ends with a commit or a refusal,
    /// unless its process ends first.
    Called {
        by: MemberId,
        subgroup: SubgroupId,
        class: DeliveryClass,
        token: u64,
    },
    /// The message was committed: the call returns.
    Committed {
        by: MemberId,
        epoch: EpochKey,
        class: DeliveryClass,
        sent: Sent,
    },
    /// The message was refused: the call returns.
    NotSent { by: MemberId, token: u64 },
    /// The sender begins to wait until all members have received the message.
    Awaited { by: MemberId, token: u64 },
    /// The sender stops waiting, as it has no writer in the subgroup any more.
    Abandoned { by: MemberId, token: u64 },
    /// The sender was told that all members have received the message.
    Acknowledged { by: MemberId, token: u64 },
    /// A message was delivered. `lacking` are the members of the epoch that have not received it;
    /// empty if the epoch ended with the delivery, or the message is unordered.
    Delivered {
        to: MemberId,
        what: &'a Delivered,
        lacking: &'a [MemberId],
    },
    /// A subgroup epoch ended at a member, which goes on in branch `next`.
    EpochEnded {
        at: MemberId,
        epoch: EpochKey,
        next: u64,
        position: u64,
        digest: u64,
    },
    /// A member has prepared the view that this proposal would make, or lacks something for it.
    Prepared {
        by: MemberId,
        branch: u64,
        proposal: &'a Proposal,
        answer: &'a Result<(), String>,
    },
    /// A view ended at a member. If it `is_divided` from others, or was stopped, these may go on
    /// without it.
    ViewEnded {
        at: MemberId,
        branch: u64,
        proposal: &'a Proposal,
        is_divided: bool,
    },
    /// A member that had stopped comes back as another one. Of its ordered messages in an epoch it
    /// sends these tokens again: it was told how many the group has delivered.
    Returned {
        was: MemberId,
        epoch: EpochKey,
        again: &'a [u64],
    },
    /// A view is known to exist.
    ViewKnown { branch: u64, view: &'a View },
    /// A view begins at a member; `recorded` is the number of the view in its host's record.
    ViewBegun {
        at: MemberId,
        view: &'a View,
        recorded: u64,
    },
    /// A request of a member was refused; a newcomer hears of it.
    Refused {
        of: MemberId,
        branch: u64,
        request: &'a Request,
        why: &'a str,
    },
    /// A member stopped.
    Stopped {
        member: MemberId,
        reason: &'a OutReason,
        standing: Standing,
    },
    /// At rest: the view has applied this many updates of the member.
    Settled { of: MemberId, updates: u64 },
    /// At rest, in an epoch that goes on.
    EpochAtRest {
        epoch: EpochKey,
        members: &'a [MemberId],
    },
    /// At rest, with nothing held: a sender has put `count` messages into a ring of an epoch that
    /// goes on, and has the room of `released` again.
    RingAtRest {
        of: MemberId,
        epoch: EpochKey,
        class: DeliveryClass,
        count: u64,
        released: u64,
    },
    /// At rest, with nothing held and all words read: a member that was stepped once more before
    /// its heartbeat was due has pushed this much.
    Woken { member: MemberId, pushes: usize },
    /// Something happened to kept messages.
    Storage(&'a StorageFact),
    /// The life is over.
    Over,
}

/// Circumstances that may explain why a member stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Standing {
    /// It had asked to leave.
    pub(crate) is_leaving: bool,
    /// It may have been paused, or cut off from others.
    pub(crate) may_lose: bool,
    /// A part without a majority goes on.
    pub(crate) prefers_availability: bool,
    /// The domain's record has a view of hostile members only.
    pub(crate) lost_to_hostile: bool,
}
