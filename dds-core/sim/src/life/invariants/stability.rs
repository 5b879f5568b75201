//! A4, stability: what one member delivers in order while the lane goes on, every member
//! of the lane has received.

use spindle_dds_core::Ring;

use super::Invariant;
use crate::life::facts::Fact;

pub(super) struct Stability;

impl Invariant for Stability {
    fn id(&self) -> &'static str {
        "A4"
    }

    fn heed(&mut self, fact: &Fact<'_>) -> Result<(), String> {
        let Fact::Delivered { to, what, received } = *fact else {
            return Ok(());
        };
        let mut received = received.iter().filter(|_| what.ring == Ring::Ordered);
        match received.find(|(_, end)| *end <= what.position) {
            None => Ok(()),
            Some((who, end)) => Err(format!(
                "{to} was handed {what:?}, of which {who} has received up to {end}"
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
        let all: &[_] = &[(A, 6), (B, 6), (C, 6)];
        let one_less: &[_] = &[(A, 6), (B, 9), (C, 5)];
        let fact = |received| Fact::Delivered { to, what, received };
        last_violates(Stability, &[fact(all), fact(one_less)]);
    }
}
