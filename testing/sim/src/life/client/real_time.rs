//! C6: if an application was told that all have one message before another one was asked
//! for, anywhere, the one stands before the other in the order of their subgroup.

use std::collections::BTreeMap;

use spindle_dds_core::DeliveryClass;

use super::history::History;

pub(super) fn check(history: &History) -> Result<(), String> {
    for (to, all) in &history.delivered {
        // Of each subgroup: the one that was asked for last, of those before.
        let mut latest = BTreeMap::new();
        for what in all
            .iter()
            .filter(|what| what.ring == DeliveryClass::Ordered)
        {
            let id = (what.sender, what.sent.token);
            let Some(operation) = history.operations.get(&id) else {
                continue;
            };
            let latest = latest.entry(what.lane.0).or_insert((0, id));
            if let Some(told) = operation.acknowledged()
                && told < latest.0
            {
                let later = latest.1;
                return Err(format!(
                    "{to} was handed {later:?} before {id:?}, which all had before that was \
                     asked for"
                ));
            }
            *latest = (*latest).max((operation.called, id));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::history::made::*;
    use super::*;

    #[test]
    fn it_can_be_violated() {
        let (first, second) = (message(A, 1, 0), message(B, 1, 1));
        let apart = [
            called(A, 1),
            committed(A, 1),
            acknowledged(A, 1),
            called(B, 1),
            committed(B, 1),
            delivered(B, &first),
            delivered(B, &second),
            delivered(C, &second),
            delivered(C, &first),
        ];
        last_violates(check, &apart);
        // At the same time, any order is good.
        let (early, late) = (apart[3], apart[2]);
        let mut together = apart;
        (together[2], together[3]) = (early, late);
        assert_eq!(check(&history(&together)), Ok(()));
    }
}
