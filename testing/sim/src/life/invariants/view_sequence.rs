//! V4, one sequence of views: no two views have one number.

use std::collections::BTreeMap;

use spindle_dds_core::membership::View;

use super::Invariant;
use crate::life::facts::Fact;

/// By number and branch.
#[derive(Default)]
pub(super) struct ViewSequence(BTreeMap<(u64, u64), View>);

impl Invariant for ViewSequence {
    fn id(&self) -> &'static str {
        "V4"
    }

    fn observe(&mut self, fact: &Fact<'_>) -> Result<(), String> {
        let Fact::ViewKnown { branch, view } = *fact else {
            return Ok(());
        };
        let known = self.0.entry((view.id, branch));
        if known.or_insert_with(|| view.clone()) == view {
            return Ok(());
        }
        Err(format!("view {} is two views", view.id))
    }
}

#[cfg(test)]
mod tests {
    use super::super::made::{A, B, alone, last_violates};
    use super::*;

    #[test]
    fn it_can_be_violated() {
        let (one, other) = (&alone(A), &alone(B));
        let known = |branch, view| Fact::ViewKnown { branch, view };
        let facts = [
            known(0, one),
            known(1, other),
            known(0, one),
            known(0, other),
        ];
        last_violates(ViewSequence::default(), &facts);
    }
}
