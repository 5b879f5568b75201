//! J5: no ordered message of a new epoch is delivered to a member that is not ready.

use spindle_dds_core::DeliveryClass;

use super::Invariant;
use crate::life::facts::Fact;

pub(super) struct Ready;

impl Invariant for Ready {
    fn id(&self) -> &'static str {
        "J5"
    }

    fn observe(&mut self, fact: &Fact<'_>) -> Result<(), String> {
        match *fact {
            Fact::Delivered { to, what, .. }
                if what.class == DeliveryClass::Ordered && !what.was_ready =>
            {
                Err(format!("{to} was handed {what:?} before it was ready"))
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::made::{A, B, delivered, last_violates, message};
    use super::*;

    #[test]
    fn it_can_be_violated() {
        let ready = message(A, 1, 0);
        let mut early = message(A, 2, 1);
        early.was_ready = false;
        last_violates(Ready, &[delivered(B, &ready), delivered(B, &early)]);
    }
}
