//! What applications asked for, were told, and were delivered, in the order of time.

use std::collections::{BTreeMap, BTreeSet};

use spindle_dds_core::membership::MemberId;
use spindle_dds_core::{DeliveryClass, SubgroupId};

use crate::life::facts::{Delivered, EpochKey, Fact};

/// A point in time: the number of facts before it.
pub(super) type Moment = usize;

/// Sender and token.
pub(super) type OperationId = (MemberId, u64);

/// What an application was told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    /// Nothing.
    Open,
    /// The message is not sent.
    Refused,
    /// The message is committed.
    Committed { epoch: EpochKey, at: Moment },
    /// All members have the message.
    Acknowledged {
        epoch: EpochKey,
        committed: Moment,
        at: Moment,
    },
}

/// A message that an application asked to be sent.
#[derive(Debug, Clone, Copy)]
pub(super) struct Operation {
    pub(super) subgroup: SubgroupId,
    pub(super) class: DeliveryClass,
    pub(super) called: Moment,
    pub(super) outcome: Outcome,
    /// Whether its application waits until all members have it.
    pub(super) is_awaited: bool,
}

impl Operation {
    /// The epoch that it was committed in, and when.
    pub(super) fn committed(&self) -> Option<(EpochKey, Moment)> {
        match self.outcome {
            Outcome::Open | Outcome::Refused => None,
            Outcome::Committed { epoch, at } => Some((epoch, at)),
            Outcome::Acknowledged {
                epoch, committed, ..
            } => Some((epoch, committed)),
        }
    }

    /// When its application was told that all members have it.
    pub(super) fn acknowledged(&self) -> Option<Moment> {
        match self.outcome {
            Outcome::Acknowledged { at, .. } => Some(at),
            _ => None,
        }
    }
}

/// Everything that applications know.
#[derive(Debug, Default)]
pub(in crate::life) struct History {
    now: Moment,
    pub(super) operations: BTreeMap<OperationId, Operation>,
    /// By receiver.
    pub(super) delivered: BTreeMap<MemberId, Vec<Delivered>>,
    /// Operations delivered, by receiver.
    holders: BTreeSet<(OperationId, MemberId)>,
    /// Members of epochs.
    members: BTreeMap<EpochKey, Vec<MemberId>>,
    /// When epochs ended at members, and the branch that each went on in.
    ends: BTreeMap<(EpochKey, MemberId), (Moment, u64)>,
}

impl History {
    pub(in crate::life) fn observe(&mut self, fact: &Fact<'_>) {
        self.now += 1;
        let now = self.now;
        match *fact {
            Fact::Called {
                by,
                subgroup,
                class,
                token,
            } => {
                let operation = Operation {
                    subgroup,
                    class,
                    called: now,
                    outcome: Outcome::Open,
                    is_awaited: false,
                };
                self.operations.insert((by, token), operation);
            }
            Fact::NotSent { by, token } => self.change(by, token, |it| {
                it.outcome = Outcome::Refused;
            }),
            Fact::Committed {
                by, epoch, sent, ..
            } => self.change(by, sent.token, |it| {
                it.outcome = Outcome::Committed { epoch, at: now };
            }),
            Fact::Awaited { by, token } => self.change(by, token, |it| it.is_awaited = true),
            Fact::Abandoned { by, token } => self.change(by, token, |it| it.is_awaited = false),
            Fact::Acknowledged { by, token } => self.change(by, token, |it| {
                if let Some((epoch, committed)) = it.committed() {
                    it.outcome = Outcome::Acknowledged {
                        epoch,
                        committed,
                        at: now,
                    };
                }
            }),
            Fact::Delivered { to, what, .. } => {
                self.delivered.entry(to).or_default().push(*what);
                let id = (what.sender, what.sent.token);
                self.holders.insert((id, to));
            }
            Fact::EpochEnded {
                at, epoch, next, ..
            } => {
                self.ends.insert((epoch, at), (now, next));
            }
            Fact::ViewKnown { branch, view } => {
                for subgroup in view
                    .subgroups
                    .iter()
                    .filter(|subgroup| subgroup.epoch == view.id)
                {
                    let ids = subgroup.members.iter();
                    let ids = ids.map(|rank| view.members[rank.index()].id).collect();
                    let key = (subgroup.subgroup, subgroup.epoch, branch);
                    self.members.entry(key).or_insert(ids);
                }
            }
            _ => {}
        }
    }

    /// Numbers of operations that were acknowledged, refused, and unknown.
    pub(in crate::life) fn outcomes(&self) -> [usize; 3] {
        let mut counts = [0; 3];
        for operation in self.operations.values() {
            counts[match operation.outcome {
                Outcome::Acknowledged { .. } => 0,
                Outcome::Refused => 1,
                Outcome::Open | Outcome::Committed { .. } => 2,
            }] += 1;
        }
        counts
    }

    fn change(&mut self, by: MemberId, token: u64, change: impl FnOnce(&mut Operation)) {
        if let Some(operation) = self.operations.get_mut(&(by, token)) {
            change(operation);
        }
    }

    /// Whether a message was delivered to a member.
    pub(super) fn has(&self, member: MemberId, what: OperationId) -> bool {
        self.holders.contains(&(what, member))
    }

    /// Members that a message was delivered to.
    pub(super) fn holders(&self, what: OperationId) -> impl Iterator<Item = MemberId> {
        let range = (what, MemberId(0))..=(what, MemberId(u128::MAX));
        self.holders.range(range).map(|(_, member)| *member)
    }

    /// Members that have seen the whole epoch: those that have ended it, with the branch they went
    /// on in, and those of its members that survive.
    pub(super) fn witnesses<'a>(
        &'a self,
        epoch: EpochKey,
        living: &'a BTreeSet<MemberId>,
    ) -> impl Iterator<Item = (MemberId, Option<u64>)> + 'a {
        let members = self.members.get(&epoch).into_iter().flatten();
        members.filter_map(move |member| match self.end(epoch, *member) {
            Some((_, branch)) => Some((*member, Some(branch))),
            None => living.contains(member).then_some((*member, None)),
        })
    }

    /// When an epoch ended at a member, and the branch that it went on in.
    pub(super) fn end(&self, epoch: EpochKey, member: MemberId) -> Option<(Moment, u64)> {
        self.ends.get(&(epoch, member)).copied()
    }
}

/// Histories for tests.
#[cfg(test)]
pub(super) mod made {
    pub(in crate::life) use super::super::super::invariants::made::*;

    use super::*;

    pub(in crate::life) fn called(by: MemberId, token: u64) -> Fact<'static> {
        Fact::Called {
            by,
            subgroup: SubgroupId(0),
            class: DeliveryClass::Ordered,
            token,
        }
    }

    pub(in crate::life) fn acknowledged(by: MemberId, token: u64) -> Fact<'static> {
        Fact::Acknowledged { by, token }
    }

    pub(in crate::life) fn not_sent(by: MemberId, token: u64) -> Fact<'static> {
        Fact::NotSent { by, token }
    }

    /// In an epoch of A, B and C.
    pub(in crate::life) fn history(facts: &[Fact<'_>]) -> History {
        let mut history = History::default();
        history.members.insert(EPOCH, vec![A, B, C]);
        for fact in facts {
            history.observe(fact);
        }
        history
    }

    /// Asserts that the history is valid up to the last fact, and invalid with it.
    #[track_caller]
    pub(in crate::life) fn last_violates(
        check: impl Fn(&History) -> Result<(), String>,
        facts: &[Fact<'_>],
    ) {
        let (_, before) = facts.split_last().expect("facts");
        assert_eq!(check(&history(before)), Ok(()));
        assert!(check(&history(facts)).is_err(), "it is allowed");
    }
}
