//! J9: what a view needs was prepared by all members of the view before it, before it was agreed,
//! unless nothing is added and the proposal says so.

use std::collections::BTreeMap;

use spindle_dds_core::membership::{MemberId, Proposal};

use super::Invariant;
use crate::life::facts::Fact;

/// By number and branch of the view that ends.
#[derive(Default)]
pub(super) struct PreparedFirst {
    members: BTreeMap<(u64, u64), Vec<MemberId>>,
    prepared: BTreeMap<(u64, u64), Vec<(MemberId, Proposal)>>,
}

impl Invariant for PreparedFirst {
    fn id(&self) -> &'static str {
        "J9"
    }

    fn observe(&mut self, fact: &Fact<'_>) -> Result<(), String> {
        match *fact {
            Fact::ViewKnown { branch, view } => {
                let ids = view.members.iter().map(|member| member.id);
                self.members.insert((view.id, branch), ids.collect());
            }
            Fact::Prepared {
                by,
                branch,
                proposal,
                answer: Ok(()),
            } => {
                let all = self.prepared.entry((proposal.view, branch)).or_default();
                all.push((by, proposal.clone()));
            }
            Fact::ViewEnded {
                branch, proposal, ..
            } if proposal.preparation != 0 || proposal.additions().next().is_some() => {
                let ends = (proposal.view, branch);
                let prepared = self.prepared.get(&ends).map_or(&[][..], Vec::as_slice);
                let has_prepared = |id: &MemberId| {
                    let mut prepared = prepared.iter();
                    prepared.any(|(by, it)| by == id && it.is_same_change(proposal))
                };
                let mut members = self.members.get(&ends).into_iter().flatten();
                if let Some(id) = members.find(|id| !has_prepared(id)) {
                    return Err(format!("view {} ends, and {id} was not prepared", ends.0));
                }
            }
            _ => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::made::{A, B, alone, last_violates, proposal};
    use super::*;

    #[test]
    fn it_can_be_violated() {
        let view = &alone(A);
        let branch = 0;
        let known = Fact::ViewKnown { branch, view };
        let mut joins = proposal();
        joins.joins.push(alone(B).members.remove(0));
        let ended = |branch, proposal| Fact::ViewEnded {
            at: A,
            branch,
            proposal,
            is_divided: false,
        };
        let prepared = |proposal, answer| Fact::Prepared {
            by: A,
            branch,
            proposal,
            answer,
        };
        let lacks = &Err(String::new());
        let nothing = &proposal();
        let joins = &joins;
        let facts = [known, ended(0, nothing), ended(0, joins)];
        last_violates(PreparedFirst::default(), &facts);
        let facts = [known, prepared(joins, lacks), ended(0, joins)];
        last_violates(PreparedFirst::default(), &facts);
        let facts = [known, prepared(nothing, &Ok(())), ended(0, joins)];
        last_violates(PreparedFirst::default(), &facts);
        let other = Fact::ViewKnown { branch: 1, view };
        let facts = [
            known,
            other,
            prepared(joins, &Ok(())),
            ended(0, joins),
            ended(1, joins),
        ];
        last_violates(PreparedFirst::default(), &facts);
    }
}
