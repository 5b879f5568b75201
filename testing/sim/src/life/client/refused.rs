//! C2: a message that was refused is not delivered.

use super::history::{History, Outcome};

pub(super) fn check(history: &History) -> Result<(), String> {
    for (id, operation) in &history.operations {
        if operation.outcome == Outcome::Refused
            && let Some(member) = history.holders(*id).next()
        {
            return Err(format!("{id:?} was refused, and {member} was handed it"));
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
        let (sent, other) = (message(A, 1, 0), message(A, 2, 1));
        let facts = [
            called(A, 1),
            committed(A, 1),
            called(A, 2),
            not_sent(A, 2),
            delivered(B, &sent),
            delivered(B, &other),
        ];
        last_violates(check, &facts);
    }
}
