//! J10: a refused request is in no view of the group that has refused it.

use std::collections::BTreeSet;

use spindle_dds_core::membership::{MemberId, Request};

use super::Invariant;
use crate::life::facts::Fact;

/// By branch; updates by member and number, joins by newcomer and 0.
#[derive(Default)]
pub(super) struct RefusedStaysRefused {
    refused: BTreeSet<(u64, MemberId, u64)>,
    fulfilled: BTreeSet<(u64, MemberId, u64)>,
}

impl Invariant for RefusedStaysRefused {
    fn id(&self) -> &'static str {
        "J10"
    }

    fn observe(&mut self, fact: &Fact<'_>) -> Result<(), String> {
        match *fact {
            Fact::Refused {
                branch, request, ..
            } => match request {
                Request::Join(newcomer) => drop(self.refused.insert((branch, newcomer.id, 0))),
                Request::Update(it) => drop(self.refused.insert((branch, it.member, it.number))),
                Request::Leave => {}
            },
            Fact::ViewEnded {
                branch, proposal, ..
            } => {
                let joins = proposal.joins.iter().map(|member| (branch, member.id, 0));
                let updates = proposal.updates.iter();
                let updates = updates.map(|it| (branch, it.member, it.number));
                self.fulfilled.extend(joins.chain(updates));
            }
            _ => return Ok(()),
        }
        match self.refused.intersection(&self.fulfilled).next() {
            Some((_, id, 0)) => Err(format!("{id} joins, and was refused")),
            Some((_, id, number)) => {
                Err(format!("update {number} of {id} was refused, and is done"))
            }
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use spindle_dds_core::membership::Update;

    use super::super::made::{A, B, alone, last_violates, proposal};
    use super::*;

    #[test]
    fn it_can_be_violated() {
        let newcomer = alone(B).members.remove(0);
        let update = Update {
            member: A,
            number: 1,
            put: Vec::new(),
            remove: Vec::new(),
            notes: Default::default(),
        };
        let mut proposal = proposal();
        proposal.joins.push(newcomer.clone());
        proposal.updates.push(update.clone());
        let proposal = &proposal;
        let ended = Fact::ViewEnded {
            at: A,
            branch: 0,
            proposal,
            is_divided: false,
        };
        let (of, why) = (A, "");
        for request in [&Request::Join(newcomer), &Request::Update(update)] {
            let refused = Fact::Refused {
                of,
                branch: 0,
                request,
                why,
            };
            last_violates(RefusedStaysRefused::default(), &[refused, ended]);
            last_violates(RefusedStaysRefused::default(), &[ended, refused]);
        }
    }
}
