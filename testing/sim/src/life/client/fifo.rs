//! C5: messages of one sender in one subgroup are delivered to each member in the order of their
//! commits, over all epochs.

use std::collections::BTreeMap;

use super::history::History;

pub(super) fn check(history: &History) -> Result<(), String> {
    for (to, all) in &history.delivered {
        let mut last = BTreeMap::new();
        for what in all {
            let operation = history.operations.get(&(what.sender, what.sent.token));
            let Some((_, committed)) = operation.and_then(|it| it.committed()) else {
                continue;
            };
            let before = last.insert((what.sender, what.epoch.0, what.class), committed);
            if before.is_some_and(|before| before >= committed) {
                return Err(format!(
                    "{to} was handed {what:?} after what was sent later"
                ));
            }
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
        let (first, mut second) = (message(A, 1, 9), message(A, 2, 0));
        second.epoch.1 += 1;
        let facts = [
            called(A, 1),
            called(A, 2),
            committed(A, 1),
            committed(A, 2),
            delivered(B, &second),
            delivered(C, &first),
            delivered(C, &second),
            delivered(B, &first),
        ];
        last_violates(check, &facts);
    }
}
