//! C7, liveness: a living application that waits until all members have its message is told so in
//! the end; and every call returns.

use std::collections::BTreeSet;

use spindle_dds_core::membership::MemberId;

use super::history::{History, Outcome};

pub(super) fn check(history: &History, living: &BTreeSet<MemberId>) -> Result<(), String> {
    for (id, operation) in &history.operations {
        let waits = match operation.outcome {
            Outcome::Open => true,
            Outcome::Committed { .. } => operation.is_awaited,
            Outcome::Refused | Outcome::Acknowledged { .. } => false,
        };
        if waits && living.contains(&id.0) {
            return Err(format!("{id:?} still waits: {operation:?}"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::history::made::*;
    use super::*;
    use crate::life::facts::Fact;

    #[test]
    fn it_can_be_violated() {
        let check = |history: &History| check(history, &BTreeSet::from([A]));
        let awaited = Fact::Awaited { by: A, token: 1 };
        last_violates(check, &[called(B, 1), called(A, 1)]);
        last_violates(
            check,
            &[called(B, 1), called(A, 1), committed(A, 1), awaited][1..],
        );
        let facts = [called(A, 1), committed(A, 1), awaited, acknowledged(A, 1)];
        assert_eq!(check(&history(&facts)), Ok(()));
    }
}
