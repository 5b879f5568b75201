//! V10: a member stops only for a cause: it left, was expelled, lost its majority, or was
//! refused by the record.

use spindle_dds_core::membership::OutReason;

use super::Invariant;
use crate::life::facts::{Fact, Standing};

pub(super) struct ExitCauses;

fn is_cause(reason: &OutReason, standing: Standing) -> bool {
    match reason {
        OutReason::Left => standing.is_leaving,
        OutReason::NoMajority { .. } => standing.may_lose && !standing.prefers_availability,
        // Of two that are left, the hostile one may come first to the record.
        OutReason::Refused(_) => standing.may_lose || standing.lost_to_hostile,
        OutReason::Expelled { .. } => standing.may_lose,
        _ => false,
    }
}

impl Invariant for ExitCauses {
    fn id(&self) -> &'static str {
        "V10"
    }

    fn observe(&mut self, fact: &Fact<'_>) -> Result<(), String> {
        match *fact {
            Fact::Stopped {
                member,
                reason,
                standing,
            } if !is_cause(reason, standing) => Err(format!("{member} stopped: {reason}")),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use spindle_dds_core::SubgroupId;

    use super::super::made::{A, last_violates};
    use super::*;

    fn check(reason: OutReason, allowed: Standing, wrong: Standing) {
        let (member, reason) = (A, &reason);
        let stopped = |standing| Fact::Stopped {
            member,
            reason,
            standing,
        };
        last_violates(ExitCauses, &[stopped(allowed), stopped(wrong)]);
    }

    #[test]
    fn it_can_be_violated() {
        let none = Standing::default();
        let leaving = Standing {
            is_leaving: true,
            ..none
        };
        let lost = Standing {
            may_lose: true,
            ..none
        };
        let beaten = Standing {
            lost_to_hostile: true,
            ..none
        };
        check(OutReason::Left, leaving, none);
        check(OutReason::Refused(String::new()), lost, leaving);
        check(OutReason::Refused(String::new()), beaten, none);
        let subgroup = SubgroupId(0);
        let reason = &OutReason::Behind { subgroup };
        let (member, standing) = (A, lost);
        let behind = Fact::Stopped {
            member,
            reason,
            standing,
        };
        last_violates(ExitCauses, &[behind]);
    }
}
