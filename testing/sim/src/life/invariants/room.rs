//! L4, liveness: room comes back. At rest, with nothing held, senders may use all of their rings
//! again.

use super::Invariant;
use crate::life::facts::Fact;

pub(super) struct Room;

impl Invariant for Room {
    fn id(&self) -> &'static str {
        "L4"
    }

    fn observe(&mut self, fact: &Fact<'_>) -> Result<(), String> {
        match *fact {
            Fact::RingAtRest {
                of,
                epoch,
                class,
                count,
                released,
            } if released < count => Err(format!(
                "{of} has room of {released} of its {count} messages in {epoch:?}, {class:?}"
            )),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use spindle_dds_core::DeliveryClass;

    use super::super::made::{A, EPOCH, last_violates};
    use super::*;

    #[test]
    fn it_can_be_violated() {
        let at_rest = |released| Fact::RingAtRest {
            of: A,
            epoch: EPOCH,
            class: DeliveryClass::Ordered,
            count: 3,
            released,
        };
        last_violates(Room, &[at_rest(3), at_rest(2)]);
    }
}
