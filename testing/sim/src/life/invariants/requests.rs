//! J7: each request is fulfilled or refused, once, and its maker is told; or its maker has stopped.

use std::collections::BTreeSet;

use spindle_dds_core::membership::{MemberId, Request};

use super::Invariant;
use crate::life::facts::Fact;

/// Updates that were applied, and that were refused, by member and number.
#[derive(Default)]
pub(super) struct Requests {
    done: BTreeSet<(MemberId, u64)>,
    refused: BTreeSet<(MemberId, u64)>,
}

impl Invariant for Requests {
    fn id(&self) -> &'static str {
        "J7"
    }

    fn observe(&mut self, fact: &Fact<'_>) -> Result<(), String> {
        match *fact {
            // What a group does of which the maker is no member is not told to it.
            Fact::ViewEnded { at, proposal, .. } => {
                let updates = proposal.updates.iter().filter(|it| it.member == at);
                self.done.extend(updates.map(|it| (it.member, it.number)));
            }
            Fact::Refused {
                of, request, why, ..
            } => match request {
                Request::Join(_) => {}
                Request::Leave => return Err(format!("{of} may not leave: {why}")),
                Request::Update(update) => {
                    let key = (of, update.number);
                    if !self.refused.insert(key) || self.done.contains(&key) {
                        return Err(format!(
                            "update {key:?} is refused once more, or done: {why}"
                        ));
                    }
                }
            },
            Fact::Settled { of, updates } => {
                let settled = |number: u64| {
                    let key = (of, number);
                    self.done.contains(&key) != self.refused.contains(&key)
                };
                if let Some(number) = (1..=updates).find(|number| !settled(*number)) {
                    return Err(format!(
                        "update {number} of {of} is neither done nor refused"
                    ));
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

    use super::super::made::{A, last_violates, proposal};
    use super::*;

    #[test]
    fn it_can_be_violated() {
        let update = Update {
            member: A,
            number: 1,
            put: Vec::new(),
            remove: Vec::new(),
            notes: Default::default(),
        };
        let mut proposal = proposal();
        proposal.updates.push(update.clone());
        let proposal = &proposal;
        let done = Fact::ViewEnded {
            at: A,
            branch: 0,
            proposal,
            is_divided: false,
        };
        let request = &Request::Update(update);
        let (of, why) = (A, "");
        let refused = Fact::Refused {
            of,
            branch: 0,
            request,
            why,
        };
        let settled = |updates| Fact::Settled { of, updates };
        last_violates(Requests::default(), &[settled(0), settled(1)]);
        last_violates(Requests::default(), &[done, settled(1), settled(2)]);
        last_violates(Requests::default(), &[refused, settled(1), refused]);
        last_violates(Requests::default(), &[done, refused]);
        last_violates(Requests::default(), &[refused, done, settled(1)]);
        let request = &Request::Leave;
        let refused = Fact::Refused {
            of,
            branch: 0,
            request,
            why,
        };
        last_violates(Requests::default(), &[refused]);
    }
}
