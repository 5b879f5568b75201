//! What must be true of the logs of a life.

use std::collections::BTreeSet;

use spindle_dds_core::SubgroupId;
use spindle_dds_core::membership::{MemberId, View};
use spindle_dds_core::storage::log::{SimDisk, TopicLog};

use super::{Logs, key_of};
use crate::violation::Finding;

/// A sample: the member that has sent it, and its token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Sample {
    pub(super) writer: u128,
    pub(super) token: u64,
}

/// A record, as far as it is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Kept {
    position: u64,
    generation: u64,
    epoch: u64,
    sample: Sample,
}

/// All records of a log.
fn records(log: &mut TopicLog<SimDisk>) -> Vec<Kept> {
    let (mut kept, mut from) = (Vec::new(), 0);
    loop {
        let records = log.read(from, 1 << 16).unwrap_or_default();
        let Some(last) = records.last() else {
            return kept;
        };
        from = last.record.position() + 1;
        kept.extend(records.iter().map(|it| {
            let meta = it.record.meta();
            Kept {
                position: meta.position,
                generation: it.generation,
                epoch: it.epoch,
                sample: Sample {
                    writer: u128::from_le_bytes(meta.writer),
                    token: meta.sequence,
                },
            }
        }));
    }
}

/// What a log descends from, and its records.
pub(super) fn at_rest(disk: &SimDisk) -> Option<(u128, Vec<Kept>)> {
    let (mut log, _) = TopicLog::open_read_only(disk.copy()).ok()??;
    Some((log.state().lineage, records(&mut log)))
}

/// Whether there is a log, or was one that cannot be read.
pub(super) fn is_used(disk: &SimDisk) -> bool {
    !matches!(TopicLog::open_read_only(disk.copy()), Ok(None))
}

/// A log that has records up to `end` has them after a power cut, too.
pub(super) fn is_on_disk(disk: &SimDisk, end: u64) -> Result<(), String> {
    let left = disk.copy_of_durable();
    match TopicLog::open_read_only(left) {
        Ok(Some((log, _))) if log.appended() >= end => Ok(()),
        Ok(Some((log, _))) => Err(format!(
            "a log says that it has all below {end}, and a power cut leaves what is below {}",
            log.appended()
        )),
        Ok(None) => Err("a power cut leaves no log".to_owned()),
        Err(error) => Err(format!("a power cut leaves a log that is refused: {error}")),
    }
}

impl Logs {
    /// A member was seen to take samples in an epoch: each logger has all that was acknowledged.
    pub(crate) fn takes_samples(
        &mut self,
        subgroup: SubgroupId,
        epoch: u64,
        view: &View,
    ) -> Result<(), Finding> {
        if !self.taking.insert((subgroup, epoch)) {
            return Ok(());
        }
        self.openings += 1;
        let (Some(group), Some(spec)) = (view.logs.get(&key_of(subgroup)), view.subgroup(subgroup))
        else {
            return Ok(());
        };
        let acked = self.acked.get(&(subgroup, group.lineage));
        let acked = acked.cloned().unwrap_or_default();
        for logger in &group.loggers {
            let Some(kept) = self.durable(logger.member, subgroup) else {
                continue;
            };
            let has: BTreeSet<Sample> = kept.iter().map(|it| it.sample).collect();
            if let Some(sample) = acked.iter().find(|it| !has.contains(it)) {
                let what = format!(
                    "in view {} log {} of {subgroup} lacks {sample:?}, which was acknowledged: {group:?}",
                    view.id, logger.log
                );
                return Err(("D1", what));
            }
            let is_above = |it: &&Kept| {
                it.position >= spec.base && it.epoch != epoch && acked.contains(&it.sample)
            };
            if let Some(record) = kept.iter().find(is_above) {
                let base = spec.base;
                return Err(("D5", format!("{record:?} is not below the base {base}")));
            }
        }
        self.equal_logs(subgroup)
    }

    fn durable(&mut self, member: MemberId, subgroup: SubgroupId) -> Option<Vec<Kept>> {
        let topic = self.nodes.get_mut(&member)?.topics.get_mut(&subgroup)?;
        let keeper = topic.keeper.as_mut()?;
        let synced = keeper.log().synced();
        let mut kept = records(keeper.log_mut());
        kept.retain(|it| it.position < synced);
        Some(kept)
    }

    /// Logs with one record in common have all before it in common.
    pub(crate) fn equal_logs(&self, subgroup: SubgroupId) -> Result<(), Finding> {
        let disks = self.slots.iter().filter_map(|it| it.disks.get(&subgroup));
        let all: Vec<_> = disks.filter_map(at_rest).collect();
        for (index, (lineage, a)) in all.iter().enumerate() {
            let others = all[..index]
                .iter()
                .filter(|it| *lineage != 0 && it.0 == *lineage);
            for (_, b) in others {
                let common = a.iter().zip(b).take_while(|(a, b)| a == b).count();
                let of = |it: &Kept| (it.generation, it.position);
                let rest: Vec<_> = b[common..].iter().map(of).collect();
                if let Some(record) = a[common..].iter().find(|it| rest.contains(&of(it))) {
                    let what = format!("two logs of {subgroup} have {record:?}, and differ before");
                    return Err(("D2", what));
                }
            }
        }
        Ok(())
    }

    /// At the end all logs are there: all topics take samples, and all logs of one origin are loggers.
    pub(crate) fn all_open(&self, subgroups: usize, view: &View) -> Result<(), Finding> {
        for subgroup in (0..subgroups as u32).map(SubgroupId) {
            self.equal_logs(subgroup)?;
            if self.lineages(subgroup).len() != 1 || !self.idle_users().is_empty() {
                continue;
            }
            let nodes = self.nodes.values().filter(|it| it.has_log(subgroup));
            let logs = nodes.count();
            let group = view.logs.get(&key_of(subgroup));
            let loggers = group.filter(|it| it.is_open()).map(|it| it.loggers.len());
            let mut nodes = self.nodes.values();
            let takes = nodes.any(|it| it.open_topics().contains(&subgroup));
            if logs > 0 && (loggers != Some(logs) || !takes) {
                let what =
                    format!("with all {logs} logs of {subgroup} there, it is shut: {group:?}");
                return Err(("D7", what));
            }
        }
        Ok(())
    }
}
