//! I8, quiescence: when nobody sends, nothing is pushed but heartbeats.

use super::Invariant;
use crate::life::facts::Fact;

pub(super) struct Quiescence;

impl Invariant for Quiescence {
    fn id(&self) -> &'static str {
        "I8"
    }

    fn heed(&mut self, fact: &Fact<'_>) -> Result<(), String> {
        match *fact {
            Fact::Woken { who, pushes } if pushes > 0 => {
                Err(format!("{who} pushed {pushes} times, and nobody had sent"))
            }
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
        let woken = |pushes| Fact::Woken { who: A, pushes };
        last_violates(Quiescence, &[woken(0), woken(1)]);
    }
}
