//! J8: a request that a member cannot serve is refused with that member's reason, and only if it
//! could not be served by itself; or it is tried again.

use std::collections::BTreeSet;

use spindle_dds_core::membership::{Request, RequestId};

use super::Invariant;
use crate::life::facts::Fact;

/// How the reasons begin for which no view can fulfil a request, whatever its members have.
const INVALID: [&str; 6] = [
    "subgroup ",
    "it takes more than",
    "the endpoints of all members",
    "the notes of all members",
    "a view has",
    "member ",
];

/// Requests that a member could not serve though nothing else was added, each with the reason.
#[derive(Default)]
pub(super) struct RefusalReasons(BTreeSet<(u128, u64, String)>);

fn key(request: RequestId) -> (u128, u64) {
    match request {
        RequestId::Update { member, number } => (member.0, number),
        RequestId::Join(id) => (id.0, 0),
    }
}

impl Invariant for RefusalReasons {
    fn id(&self) -> &'static str {
        "J8"
    }

    fn observe(&mut self, fact: &Fact<'_>) -> Result<(), String> {
        match *fact {
            Fact::Prepared {
                proposal,
                answer: Err(reason),
                ..
            } => {
                let mut additions = proposal.additions();
                if let (Some(only), None) = (additions.next(), additions.next()) {
                    let (of, number) = key(only);
                    self.0.insert((of, number, reason.clone()));
                }
            }
            Fact::Refused { request, why, .. } => {
                let request = match request {
                    Request::Join(newcomer) => RequestId::Join(newcomer.id),
                    Request::Update(update) => RequestId::Update {
                        member: update.member,
                        number: update.number,
                    },
                    Request::Leave => return Ok(()),
                };
                let (of, number) = key(request);
                let is_invalid = INVALID.iter().any(|begins| why.starts_with(begins));
                if !is_invalid && !self.0.contains(&(of, number, why.to_owned())) {
                    return Err(format!("{request:?} is refused: {why}"));
                }
            }
            _ => {}
        }
        Ok(())
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
        let mut one = proposal();
        one.joins.push(newcomer.clone());
        let mut two = one.clone();
        two.joins.push(alone(A).members.remove(0));
        let answer = &Err("lacking: memory".to_owned());
        let lacks = |proposal| Fact::Prepared {
            by: A,
            branch: 0,
            proposal,
            answer,
        };
        let join = Request::Join(newcomer);
        let refused = |why| Fact::Refused {
            branch: 0,
            of: A,
            request: &join,
            why,
        };
        let told = refused("lacking: memory");
        last_violates(RefusalReasons::default(), &[lacks(&two), told]);
        last_violates(RefusalReasons::default(), &[lacks(&one), told, refused("")]);
        let update = Request::Update(Update {
            member: A,
            number: 1,
            put: Vec::new(),
            remove: Vec::new(),
            notes: Default::default(),
        });
        let request = &update;
        let (of, why) = (A, "lacking: memory");
        let refused = Fact::Refused {
            of,
            branch: 0,
            request,
            why,
        };
        last_violates(RefusalReasons::default(), &[lacks(&one), refused]);
    }
}
