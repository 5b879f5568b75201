//! The properties of lives, by their ids (docs/properties.md): one file each, with the
//! state that it needs and no more, and a test in which it is violated.
//!
//! What members do and see is told to all of them as it happens ([`Fact`]). What the
//! applications were promised is judged over their whole history, by `client`.

mod causes;
mod complete;
mod fifo;
mod integrity;
mod none_ahead;
mod none_later;
mod one_ending;
mod one_view;
mod own_messages;
pub(super) mod payload;
mod positions;
mod quiescence;
mod ready;
mod recorded;
mod requests;
mod room;
mod stability;
mod total_order;

use super::facts::Fact;

/// A property that is checked as things happen.
pub(super) trait Invariant {
    /// Its id.
    fn id(&self) -> &'static str;

    /// Takes note of a fact; fails, with what was seen, if the property does not hold.
    fn heed(&mut self, fact: &Fact<'_>) -> Result<(), String>;
}

/// All of them, for a life in which views may branch or not.
pub(super) fn all(may_branch: bool) -> Vec<Box<dyn Invariant>> {
    let mut all: Vec<Box<dyn Invariant>> = vec![
        Box::new(integrity::Integrity::default()),
        Box::new(fifo::Fifo::default()),
        Box::new(stability::Stability),
        Box::new(positions::Positions::default()),
        Box::new(ready::Ready),
        Box::new(none_later::NoneLater::default()),
        Box::new(one_view::OneView::default()),
        Box::new(recorded::Recorded),
        Box::new(one_ending::OneEnding::new(may_branch)),
        Box::new(none_ahead::NoneAhead::new(may_branch)),
        Box::new(own_messages::OwnMessages::default()),
        Box::new(requests::Requests::default()),
        Box::new(causes::Causes),
        Box::new(complete::Complete::default()),
        Box::new(room::Room),
        Box::new(quiescence::Quiescence),
    ];
    // Where views branch, a lane has several ends, and so several orders: each has to be
    // that of all who end it so (V5), and goes on from what the others have (V6).
    if !may_branch {
        all.push(Box::new(total_order::TotalOrder::default()));
    }
    all
}

/// Facts made by hand, and what becomes of them.
#[cfg(test)]
pub(super) mod made {
    use std::collections::BTreeMap;

    use spindle_dds_core::membership::{HostId, Member, MemberId, Proposal, View};
    use spindle_dds_core::{DeliveryClass, SubgroupId, TopicKey};

    use super::super::facts::{Delivered, Fact, LaneKey, Sent};
    use super::Invariant;

    pub(in crate::life) const LANE: LaneKey = (SubgroupId(0), 1, 0);
    pub(in crate::life) const A: MemberId = MemberId(1);
    pub(in crate::life) const B: MemberId = MemberId(2);
    pub(in crate::life) const C: MemberId = MemberId(3);

    pub(in crate::life) fn committed(by: MemberId, token: u64) -> Fact<'static> {
        Fact::Committed {
            by,
            lane: LANE,
            ring: DeliveryClass::Ordered,
            sent: Sent { token, len: 8 },
        }
    }

    pub(in crate::life) fn message(sender: MemberId, token: u64, position: u64) -> Delivered {
        Delivered {
            lane: LANE,
            ring: DeliveryClass::Ordered,
            sender,
            position,
            sent: Sent { token, len: 8 },
            was_ready: true,
        }
    }

    pub(in crate::life) fn delivered(to: MemberId, what: &Delivered) -> Fact<'_> {
        let lacking = &[];
        Fact::Delivered { to, what, lacking }
    }

    pub(in crate::life) fn ended(at: MemberId, position: u64) -> Fact<'static> {
        Fact::LaneEnded {
            at,
            lane: LANE,
            next: 0,
            position,
            digest: 7,
        }
    }

    /// View 1 of one member, with a lane that begins at 0.
    pub(in crate::life) fn alone(id: MemberId) -> View {
        let endpoint = spindle_dds_core::membership::Endpoint {
            subgroup: SubgroupId(0),
            topic: TopicKey(1),
            ring: None,
            info: Vec::new(),
        };
        let founder = Member {
            id,
            host: HostId(0),
            address: Vec::new(),
            info: Vec::new(),
            updates: 0,
            endpoints: BTreeMap::from([(0, endpoint)]),
            notes: BTreeMap::new(),
        };
        View::first(founder).expect("a view")
    }

    /// View 1 ends, and nothing changes.
    pub(in crate::life) fn proposal() -> Proposal {
        Proposal {
            view: 1,
            removals: Vec::new(),
            joins: Vec::new(),
            updates: Vec::new(),
            refusals: Vec::new(),
            trims: Vec::new(),
        }
    }

    /// All but the last of the facts are in order, and that one is not.
    #[track_caller]
    pub(in crate::life) fn last_violates(mut invariant: impl Invariant, facts: &[Fact<'_>]) {
        let (last, before) = facts.split_last().expect("facts");
        for fact in before {
            assert_eq!(invariant.heed(fact), Ok(()), "{fact:?}");
        }
        assert!(invariant.heed(last).is_err(), "{last:?} is allowed");
    }
}
