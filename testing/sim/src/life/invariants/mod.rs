//! The properties of lives by their ids (docs/properties.md): one file each, with the state that it
//! needs and a test in which it is violated.
//!
//! Each invariant observes every fact as it happens ([`Fact`]). What applications are promised is
//! judged over their whole history, by `client`.

mod delivery_liveness;
mod exit_causes;
mod fifo;
mod history_bounded;
mod history_complete;
mod history_ends;
mod history_exact;
mod history_order;
mod integrity;
mod newcomers_pace;
mod nothing_after_end;
mod own_messages;
pub(super) mod payload_integrity;
mod positions;
mod prefix_of_end;
mod prepared_first;
mod quiescence;
mod ready;
mod recorded;
mod refusal_reasons;
mod refused_stays_refused;
mod requests;
mod returned;
mod room;
mod same_end;
mod stability;
mod total_order;
mod view_sequence;

use super::facts::Fact;

/// A property that is checked as facts happen.
pub(super) trait Invariant {
    /// Its id.
    fn id(&self) -> &'static str;

    /// Observes a fact; fails, and says what was seen, if the property does not hold.
    fn observe(&mut self, fact: &Fact<'_>) -> Result<(), String>;
}

/// All invariants, for a life in which views may branch or not.
pub(super) fn all(may_branch: bool) -> Vec<Box<dyn Invariant>> {
    let mut all: Vec<Box<dyn Invariant>> = vec![
        Box::new(integrity::Integrity::default()),
        Box::new(fifo::Fifo::default()),
        Box::new(stability::Stability),
        Box::new(positions::Positions::default()),
        Box::new(ready::Ready),
        Box::new(nothing_after_end::NothingAfterEnd::default()),
        Box::new(view_sequence::ViewSequence::default()),
        Box::new(recorded::Recorded),
        Box::new(same_end::SameEnd::new(may_branch)),
        Box::new(prefix_of_end::PrefixOfEnd::new(may_branch)),
        Box::new(own_messages::OwnMessages::default()),
        Box::new(requests::Requests::default()),
        Box::new(refusal_reasons::RefusalReasons::default()),
        Box::new(prepared_first::PreparedFirst::default()),
        Box::new(newcomers_pace::NewcomersPace::default()),
        Box::new(refused_stays_refused::RefusedStaysRefused::default()),
        Box::new(exit_causes::ExitCauses),
        Box::new(delivery_liveness::DeliveryLiveness::default()),
        Box::new(returned::Returned::default()),
        Box::new(history_complete::HistoryComplete::default()),
        Box::new(history_order::HistoryOrder::default()),
        Box::new(history_exact::HistoryExact::default()),
        Box::new(history_ends::HistoryEnds),
        Box::new(history_bounded::HistoryBounded),
        Box::new(room::Room),
        Box::new(quiescence::Quiescence),
    ];
    // Where views branch, an epoch has several ends, and so several orders: each must be the same
    // for all members that end it so (V5), and continue what the others have (V6).
    if !may_branch {
        all.push(Box::new(total_order::TotalOrder::default()));
    }
    all
}

/// Facts for tests.
#[cfg(test)]
pub(super) mod made {
    use std::collections::BTreeMap;

    use spindle_dds_core::membership::{HostId, Member, MemberId, Proposal, View};
    use spindle_dds_core::storage::RecordMeta;
    use spindle_dds_core::{DeliveryClass, MessageKind, SubgroupId, TopicKey};

    use super::super::facts::{Delivered, EpochKey, Fact, Sent};
    use super::super::storage::{Level, StorageFact, Topic, Transfer};
    use super::Invariant;

    pub(in crate::life) const EPOCH: EpochKey = (SubgroupId(0), 1, 0);
    pub(in crate::life) const A: MemberId = MemberId(1);
    pub(in crate::life) const B: MemberId = MemberId(2);
    pub(in crate::life) const C: MemberId = MemberId(3);

    pub(in crate::life) fn committed(by: MemberId, token: u64) -> Fact<'static> {
        Fact::Committed {
            by,
            epoch: EPOCH,
            class: DeliveryClass::Ordered,
            sent: Sent { token, len: 8 },
        }
    }

    pub(in crate::life) fn message(sender: MemberId, token: u64, position: u64) -> Delivered {
        Delivered {
            epoch: EPOCH,
            class: DeliveryClass::Ordered,
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
        Fact::EpochEnded {
            at,
            epoch: EPOCH,
            next: 0,
            position,
            digest: 7,
        }
    }

    /// View 1 of one member, with a subgroup that begins at position 0.
    pub(in crate::life) fn alone(id: MemberId) -> View {
        let endpoint = spindle_dds_core::membership::Endpoint {
            subgroup: SubgroupId(0),
            topic: TopicKey(1),
            ring: None,
            info: Vec::new(),
            log: None,
        };
        let founder = Member {
            id,
            host: HostId(0),
            address: Vec::new(),
            info: Vec::new(),
            updates: 0,
            endpoints: BTreeMap::from([(0, endpoint)]).into(),
            notes: BTreeMap::new(),
        };
        View::first(founder).expect("a view")
    }

    /// View 1 ends without a change.
    pub(in crate::life) fn proposal() -> Proposal {
        Proposal {
            view: 1,
            removals: Vec::new(),
            joins: Vec::new(),
            updates: Vec::new(),
            refusals: Vec::new(),
            trims: Vec::new(),
            preparation: 0,
        }
    }

    /// A transfer that begins with a view.
    pub(in crate::life) fn transfer(view: u64) -> Transfer {
        Transfer {
            subgroup: SubgroupId(0),
            member: C,
            reader: [9; 16],
            view,
        }
    }

    /// A sample of a writer.
    pub(in crate::life) fn sample(writer: u8, sequence: u64, position: u64) -> RecordMeta {
        RecordMeta {
            position,
            sequence,
            timestamp: 0,
            writer: [writer; 16],
            key: [1; 16],
            kind: MessageKind::Data,
            encapsulation: 1,
        }
    }

    /// A sample of a topic that keeps all was delivered.
    pub(in crate::life) fn kept(
        writer: u8,
        sequence: u64,
        epoch: u64,
        position: u64,
    ) -> StorageFact {
        StorageFact::Kept {
            subgroup: SubgroupId(0),
            epoch,
            level: Level::TransientLocal,
            topic: Topic::keeps_all(),
            message: sample(writer, sequence, position),
        }
    }

    /// The reader of [`transfer`] shows a sample.
    pub(in crate::life) fn shown(
        writer: u8,
        sequence: u64,
        position: u64,
        of: Option<Transfer>,
    ) -> StorageFact {
        StorageFact::Shown {
            reader: transfer(2).reader,
            transfer: of,
            message: sample(writer, sequence, position),
        }
    }

    /// Asserts that the invariant holds up to the last fact, and is violated by it.
    #[track_caller]
    pub(in crate::life) fn last_violates(mut invariant: impl Invariant, facts: &[Fact<'_>]) {
        let (last, before) = facts.split_last().expect("facts");
        for fact in before {
            assert_eq!(invariant.observe(fact), Ok(()), "{fact:?}");
        }
        assert!(invariant.observe(last).is_err(), "{last:?} is allowed");
    }
}
