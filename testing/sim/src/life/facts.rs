//! What happens in a life, in the words that invariants are told it with.

use spindle_dds_core::membership::{MemberId, OutReason, Proposal, Request, View};
use spindle_dds_core::{DeliveryClass, SubgroupId};

/// A lane: subgroup, epoch, and the branch of views that it was made in.
pub(crate) type LaneKey = (SubgroupId, u64, u64);

/// A message: the token that its sender built it with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sent {
    pub(crate) token: u64,
    pub(crate) len: u32,
}

/// A delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Delivered {
    pub(crate) lane: LaneKey,
    pub(crate) ring: DeliveryClass,
    pub(crate) sender: MemberId,
    pub(crate) position: u64,
    pub(crate) sent: Sent,
    /// Whether whoever was handed it had said that it is ready for the lane.
    pub(crate) was_ready: bool,
}

/// Something that happened. The order in which facts are told is that in which they happened.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Fact<'a> {
    /// An application wants a message sent: the call. What becomes of it follows:
    /// it is committed or refused, or its process ends first.
    Called {
        by: MemberId,
        subgroup: SubgroupId,
        ring: DeliveryClass,
        token: u64,
    },
    /// It is on its way: the call returns.
    Committed {
        by: MemberId,
        lane: LaneKey,
        ring: DeliveryClass,
        sent: Sent,
    },
    /// It never will be: the call returns.
    NotSent { by: MemberId, token: u64 },
    /// Its sender has begun to wait until all have it.
    Awaited { by: MemberId, token: u64 },
    /// Its sender does not care for it any more: it has no writer there.
    Abandoned { by: MemberId, token: u64 },
    /// Its sender has been told that all have it.
    Acknowledged { by: MemberId, token: u64 },
    /// A message was handed over. Unless its lane has ended with that, or it is of no order:
    /// the members that have this lane, and have not received it.
    Delivered {
        to: MemberId,
        what: &'a Delivered,
        lacking: &'a [MemberId],
    },
    /// A lane is over for a member, which goes on by this branch.
    LaneEnded {
        at: MemberId,
        lane: LaneKey,
        next: u64,
        position: u64,
        digest: u64,
    },
    /// A view is over for a member. Where it is divided from others, or was stopped, they
    /// may go on without it.
    ViewEnded {
        branch: u64,
        proposal: &'a Proposal,
        is_divided: bool,
    },
    /// Somebody knows of a view.
    ViewKnown { branch: u64, view: &'a View },
    /// A view has begun for a member; the record of its host is at the view of that number.
    ViewBegun {
        at: MemberId,
        view: &'a View,
        recorded: u64,
    },
    /// What a member asked for will not be done.
    Refused {
        of: MemberId,
        request: &'a Request,
        why: &'a str,
    },
    /// A member is out.
    Stopped {
        who: MemberId,
        reason: &'a OutReason,
        standing: Standing,
    },
    /// All is quiet: what a member has asked for so many times is settled.
    Settled { of: MemberId, updates: u64 },
    /// All is quiet, in a lane that goes on.
    LaneAtRest {
        lane: LaneKey,
        members: &'a [MemberId],
    },
    /// All is quiet, and nothing is held any more: up to its last message, a sender has put
    /// so many into a ring of a lane that goes on, and has room again of so many.
    RingAtRest {
        of: MemberId,
        lane: LaneKey,
        ring: DeliveryClass,
        count: u64,
        released: u64,
    },
    /// All is quiet, nothing is held, and all have taken notice of all that was said: woken
    /// once more, before its heartbeat is due, a member has pushed so much.
    Woken { who: MemberId, pushes: usize },
    /// Nothing more will happen.
    Over,
}

/// What may excuse a member that stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Standing {
    /// It has asked to leave.
    pub(crate) is_leaving: bool,
    /// It may have been stopped, or cut off from others.
    pub(crate) may_lose: bool,
    /// Who loses the majority goes on.
    pub(crate) prefers_availability: bool,
    /// Only hostile members are in the view that the domain's record has.
    pub(crate) lost_to_hostile: bool,
}
