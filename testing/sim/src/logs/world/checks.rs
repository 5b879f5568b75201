//! What must be true of logs.

use spindle_dds_core::membership::MemberId;

use super::super::participant::{Kept, LogView, at_rest, records};
use super::super::show;
use super::{GROUPS, World, takes};
use crate::violation::Finding;

impl World {
    /// All that was acknowledged is in each log of a group that begins to take samples.
    pub(super) fn taking(&mut self) -> Result<(), Finding> {
        for group in 0..GROUPS {
            let Some(view) = self.groups[group].last.clone() else {
                continue;
            };
            let is_known = self.groups[group].took == Some(view.view);
            if is_known || !takes(&self.groups[group], &view) {
                continue;
            }
            self.groups[group].took = Some(view.view);
            self.openings += 1;
            self.say(|| format!("group {group} takes samples in view {}", view.view));
            self.alone(group, &view)?;
            self.recovered(&view)?;
            self.shown_is_known(&view)?;
            let generation = view
                .logs
                .as_ref()
                .map(|it| (it.lineage, it.generation.number));
            self.took.extend(generation);
            self.equal_logs()?;
        }
        Ok(())
    }

    /// No other group acknowledges samples to logs of the same origin.
    fn alone(&self, group: usize, view: &LogView) -> Result<(), Finding> {
        let lineage = view.logs.as_ref().map(|it| it.lineage);
        for (other, its) in self.groups.iter().enumerate() {
            let Some(its_view) = its.last.as_ref().filter(|_| other != group) else {
                continue;
            };
            let is_related = its_view.logs.as_ref().map(|it| it.lineage) == lineage;
            let is_open = takes(its, its_view) && self.may_acknowledge(its_view);
            if is_related && is_open && self.may_acknowledge(view) {
                let (one, two) = (show::view(view), show::view(its_view));
                return Err(("D9", format!("two groups take samples: {one}, and {two}")));
            }
        }
        Ok(())
    }

    pub(super) fn recovered(&mut self, view: &LogView) -> Result<(), Finding> {
        let Some(logs) = &view.logs else {
            return Ok(());
        };
        let mut acked = self.acked.get(&logs.lineage).cloned().unwrap_or_default();
        acked.retain(|it| !self.excused.contains(&it.value));
        let shown = show::group(logs);
        for record in &acked {
            if record.position >= view.base && record.generation != logs.generation.number {
                let what = format!("{record:?} is not below the base {} of {shown}", view.base);
                return Err(("D5", what));
            }
        }
        for logger in &logs.loggers {
            let Some(kept) = self.durable_of(logger.member) else {
                continue;
            };
            let lacks = |it: &&Kept| it.position < view.base && !kept.contains(it);
            if let Some(record) = acked.iter().find(lacks) {
                let what = format!(
                    "log {} of {shown} lacks {record:?}, which was acknowledged",
                    logger.log.0
                );
                return Err(("D1", what));
            }
        }
        Ok(())
    }

    /// What the log of a member has on its disk.
    pub(super) fn durable_of(&mut self, member: MemberId) -> Option<Vec<Kept>> {
        let mut nodes = self.hosts.iter_mut().filter_map(|it| it.node.as_mut());
        let node = nodes.find(|it| it.member == member)?;
        Some(node.log.as_mut()?.durable())
    }

    /// Logs with one record in common have all before it in common.
    pub(super) fn equal_logs(&mut self) -> Result<(), Finding> {
        let mut all = Vec::new();
        for (at, host) in self.hosts.iter_mut().enumerate() {
            let log = host.node.as_mut().and_then(|it| it.log.as_mut());
            match (log, &host.disk) {
                (Some(log), _) => {
                    let lineage = log.keeper.log().state().lineage;
                    let kept = records(log.keeper.log_mut());
                    all.push((at, lineage, kept));
                }
                (None, Some(_)) => {
                    let rest = host.at_rest().and_then(at_rest);
                    all.extend(rest.map(|(state, kept)| (at, state.lineage, kept)));
                }
                _ => {}
            }
        }
        for (i, (at, lineage, a)) in all.iter().enumerate() {
            for (other, other_lineage, b) in &all[..i] {
                if lineage != other_lineage || *lineage == 0 {
                    continue;
                }
                let common = a.iter().zip(b).take_while(|(a, b)| a == b).count();
                let of = |it: &Kept| (it.generation, it.position);
                let rest: Vec<_> = b[common..].iter().map(of).collect();
                if let Some(record) = a[common..].iter().find(|it| rest.contains(&of(it))) {
                    let what = format!(
                        "the logs of hosts {other} and {at} have {record:?}, and differ before: {:?} {:?}",
                        &b[common..],
                        &a[common..]
                    );
                    return Err(("D2", what));
                }
            }
        }
        Ok(())
    }
}
