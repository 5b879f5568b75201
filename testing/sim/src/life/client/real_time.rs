//! C6, real time: if all members had a message before another one of its subgroup was asked for, it
//! stands before the other one in the order.

use std::collections::BTreeMap;

use spindle_dds_core::DeliveryClass;

use super::history::History;

pub(super) fn check(history: &History) -> Result<(), String> {
    for (to, all) in &history.delivered {
        // By subgroup: the latest call among the messages before.
        let mut latest = BTreeMap::new();
        for what in all
            .iter()
            .filter(|what| what.class == DeliveryClass::Ordered)
        {
            let id = (what.sender, what.sent.token);
            let Some(operation) = history.operations.get(&id) else {
                continue;
            };
            let latest = latest.entry(what.epoch.0).or_insert((0, id));
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
        // Concurrent messages may have any order.
        let (early, late) = (apart[3], apart[2]);
        let mut together = apart;
        (together[2], together[3]) = (early, late);
        assert_eq!(check(&history(&together)), Ok(()));
    }
}
