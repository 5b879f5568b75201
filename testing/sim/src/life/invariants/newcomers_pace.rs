//! J11: newcomers come at a pace: a view lets in at most four, or twice as many as a view before it
//! did, or half as many as the group has members.

use std::collections::BTreeMap;

use super::Invariant;
use crate::life::facts::Fact;

#[derive(Default)]
pub(super) struct NewcomersPace {
    /// By number of the view that ends: how many newcomers the next one lets in.
    joins: BTreeMap<u64, usize>,
    /// Members by number of the view; the first one has its founder.
    members: BTreeMap<u64, usize>,
}

impl Invariant for NewcomersPace {
    fn id(&self) -> &'static str {
        "J11"
    }

    fn observe(&mut self, fact: &Fact<'_>) -> Result<(), String> {
        let Fact::ViewEnded { proposal, .. } = fact else {
            return Ok(());
        };
        let (ends, joins) = (proposal.view, proposal.joins.len());
        let before = self.joins.range(..ends).map(|(_, joins)| *joins).max();
        let members = self.members.get(&ends).copied().unwrap_or(1);
        let bound = before
            .unwrap_or(0)
            .saturating_mul(2)
            .max(4)
            .max(members / 2);
        let most = self.joins.entry(ends).or_default();
        *most = joins.max(*most);
        let next = (members + joins).saturating_sub(proposal.removals.len());
        let most = self.members.entry(ends + 1).or_default();
        *most = next.max(*most);
        if joins > bound {
            let next = ends + 1;
            return Err(format!("view {next} has {joins} newcomers, not {bound}"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use spindle_dds_core::membership::Proposal;

    use super::super::made::{A, alone, last_violates, proposal};
    use super::*;

    #[test]
    fn it_can_be_violated() {
        let newcomer = alone(A).members.remove(0);
        let ends = |view: u64, joins: usize| Proposal {
            view,
            joins: vec![newcomer.clone(); joins],
            ..proposal()
        };
        let check = |ended: &[Proposal]| {
            let fact = |proposal| Fact::ViewEnded {
                at: A,
                branch: 0,
                proposal,
                is_divided: false,
            };
            let facts: Vec<_> = ended.iter().map(fact).collect();
            last_violates(NewcomersPace::default(), &facts);
        };
        check(&[ends(1, 5)]);
        check(&[ends(1, 3), ends(1, 3), ends(2, 7)]);
        check(&[ends(1, 4), ends(2, 8), ends(3, 1), ends(4, 17)]);
        // Of 21 members, ten more.
        let four = (1..6).map(|view| ends(view, 4));
        check(&four.chain([ends(6, 11)]).collect::<Vec<_>>());
    }
}
