//! I8, quiescence: while no application sends, nothing is pushed but heartbeats.

use super::Invariant;
use crate::life::facts::Fact;

pub(super) struct Quiescence;

impl Invariant for Quiescence {
    fn id(&self) -> &'static str {
        "I8"
    }

    fn observe(&mut self, fact: &Fact<'_>) -> Result<(), String> {
        match *fact {
            Fact::Woken { member, pushes } if pushes > 0 => Err(format!(
                "{member} pushed {pushes} times, though no application had sent"
            )),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::made::{A, last_violates};
    use super::*;

    #[test]
    fn it_can_be_violated() {
        let woken = |pushes| Fact::Woken { member: A, pushes };
        last_violates(Quiescence, &[woken(0), woken(1)]);
    }
}
