//! C4: only messages that an application asked for are delivered, in that subgroup and class.

use super::history::History;

pub(super) fn check(history: &History) -> Result<(), String> {
    for (to, all) in &history.delivered {
        for what in all {
            let operation = history.operations.get(&(what.sender, what.sent.token));
            let is_it =
                operation.is_some_and(|it| (it.subgroup, it.class) == (what.epoch.0, what.class));
            if !is_it {
                return Err(format!(
                    "{to} was handed {what:?}, asked for was {operation:?}"
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
        let (sent, other) = (message(A, 1, 0), message(B, 1, 1));
        let facts = [called(A, 1), delivered(B, &sent), delivered(B, &other)];
        last_violates(check, &facts);
    }
}
