//! Q4: a transfer ends. A donor knows what it is asked for, unless it has not been asked for it in time;
//! what it sends makes sense; and at rest no reader awaits history, nothing is pinned, and nothing is
//! kept aside.

use super::Invariant;
use crate::life::facts::Fact;
use crate::life::storage::StorageFact;

pub(super) struct HistoryEnds;

impl Invariant for HistoryEnds {
    fn id(&self) -> &'static str {
        "Q4"
    }

    fn observe(&mut self, fact: &Fact<'_>) -> Result<(), String> {
        let Fact::Storage(fact) = *fact else {
            return Ok(());
        };
        match fact {
            StorageFact::Unknown {
                transfer,
                was_dropped: false,
            } => Err(format!("a donor does not know {transfer:?}")),
            StorageFact::Refused { transfer, why } => Err(format!("{transfer:?}: {why}")),
            StorageFact::AtRest {
                member,
                awaiting,
                pinned,
                aside_bytes,
            } if awaiting + pinned + aside_bytes > 0 => Err(format!(
                "at rest, {member} awaits {awaiting} transfers, has pinned {pinned}, and keeps \
                 {aside_bytes} bytes aside"
            )),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::made::{A, last_violates, transfer};
    use super::*;

    #[test]
    fn it_can_be_violated() {
        let transfer = transfer(2);
        let at_rest = |awaiting, pinned, aside_bytes| StorageFact::AtRest {
            member: A,
            awaiting,
            pinned,
            aside_bytes,
        };
        let unknown = |was_dropped| StorageFact::Unknown {
            transfer,
            was_dropped,
        };
        let why = "out of order".to_owned();
        let refused = StorageFact::Refused { transfer, why };
        let wrong = [
            at_rest(1, 0, 0),
            at_rest(0, 1, 0),
            at_rest(0, 0, 1),
            unknown(false),
            refused,
        ];
        for wrong in wrong {
            let facts = [unknown(true), at_rest(0, 0, 0), wrong];
            last_violates(HistoryEnds, &facts.each_ref().map(Fact::Storage));
        }
    }
}
