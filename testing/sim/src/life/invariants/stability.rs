//! A4, stability: an ordered message that is delivered while its epoch goes on has been received by
//! every member of the epoch.

use super::Invariant;
use crate::life::facts::Fact;

pub(super) struct Stability;

impl Invariant for Stability {
    fn id(&self) -> &'static str {
        "A4"
    }

    fn observe(&mut self, fact: &Fact<'_>) -> Result<(), String> {
        let Fact::Delivered { to, what, lacking } = *fact else {
            return Ok(());
        };
        match lacking {
            [] => Ok(()),
            those => Err(format!(
                "{to} was handed {what:?}, which {those:?} have not received"
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::made::{A, B, C, last_violates, message};
    use super::*;

    #[test]
    fn it_can_be_violated() {
        let what = &message(A, 1, 5);
        let to = B;
        let fact = |lacking| Fact::Delivered { to, what, lacking };
        last_violates(Stability, &[fact(&[]), fact(&[C])]);
    }
}
