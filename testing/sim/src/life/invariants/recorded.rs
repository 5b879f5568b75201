//! V11: a view that begins at a member is in the record of its host, or was followed there by a
//! later one.

use super::Invariant;
use crate::life::facts::Fact;

pub(super) struct Recorded;

impl Invariant for Recorded {
    fn id(&self) -> &'static str {
        "V11"
    }

    fn observe(&mut self, fact: &Fact<'_>) -> Result<(), String> {
        match *fact {
            Fact::ViewBegun { at, view, recorded } if recorded < view.id => Err(format!(
                "{at} begins view {}, and the record of its host is at view {recorded}",
                view.id
            )),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::made::{A, alone, last_violates};
    use super::*;

    #[test]
    fn it_can_be_violated() {
        let (at, view) = (A, &alone(A));
        let begun = |recorded| Fact::ViewBegun { at, view, recorded };
        last_violates(Recorded, &[begun(view.id), begun(view.id + 1), begun(0)]);
    }
}
