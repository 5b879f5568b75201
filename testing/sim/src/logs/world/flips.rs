//! Bits that change on a disk between two lives of a process.
//!
//! What a log says of a changed bit: it is refused, and the message names the file; or its last records are
//! cut, as they look like a write that the crash has torn; or it shows in nothing that is read. A log that is
//! refused counts as one that is not there, and is mended from another one.

use std::collections::BTreeSet;

use spindle_dds_core::storage::log::{LogError, SimDisk, TopicLog};
use spindle_dds_core::storage::{LogId, Roster};

use super::super::participant::{Kept, at_rest, records};
use super::{Host, World};
use crate::violation::Finding;

/// What a log was before a bit changed.
pub(super) struct Damaged {
    backup: SimDisk,
    records: Vec<Kept>,
}

impl Host {
    /// Its disk, as it was before it was damaged.
    pub(super) fn at_rest(&self) -> Option<&SimDisk> {
        let backup = self.damaged.as_ref().map(|it| &it.backup);
        backup.or(self.disk.as_ref())
    }
}

impl World {
    /// A bit changes on disks that have lost their power.
    pub(super) fn flip_bits(&mut self) -> Result<(), Finding> {
        let chance = self.plan.flips;
        for at in 0..self.hosts.len() {
            let host = &mut self.hosts[at];
            let has_lost_power = std::mem::take(&mut host.has_lost_power);
            let is_sound = host.node.is_none() && host.damaged.is_none();
            if has_lost_power && is_sound && chance > 0.0 && self.rng.chance(chance) {
                self.flip(at)?;
            }
        }
        Ok(())
    }

    fn flip(&mut self, at: usize) -> Result<(), Finding> {
        let Some(disk) = self.hosts[at].disk.clone() else {
            return Ok(());
        };
        let Some((state, before)) = at_rest(&disk) else {
            return Ok(());
        };
        let files = disk.contents().into_iter();
        let files: Vec<_> = files.filter(|(_, bytes)| !bytes.is_empty()).collect();
        let backup = disk.copy();
        let Some((file, bytes)) = self.rng.pick(&files) else {
            return Ok(());
        };
        // Many bits of the last records, and some of all others.
        let len = bytes.len();
        let last = self.rng.chance(0.4).then(|| len.min(250));
        let byte = len - 1 - self.rng.below(last.unwrap_or(len));
        disk.flip(file, byte as u64, self.rng.below(8) as u32);
        self.flipped.0 += 1;
        self.say(|| format!("a bit of byte {byte} of host {at}'s {file} changes"));
        match TopicLog::open_read_only(disk.copy()) {
            Err(LogError::Damaged { file, offset, what }) => {
                self.say(|| format!("host {at}'s log is refused: {file} at {offset}: {what}"));
                let records = before;
                self.hosts[at].damaged = Some(Damaged { backup, records });
                Ok(())
            }
            Err(error) => Err((
                "D6",
                format!("host {at}'s log is not refused by name: {error}"),
            )),
            Ok(None) => Err(("D6", format!("host {at}'s log is not there any more"))),
            Ok(Some((mut log, _))) => {
                let after = records(&mut log);
                let is_same = *log.state() == state && before.starts_with(&after);
                if !is_same {
                    let what =
                        format!("host {at}'s log says {after:?}, and {before:?} was written");
                    return Err(("D6", what));
                }
                self.cut_by_flip(at, &before[after.len()..]);
                Ok(())
            }
        }
    }

    /// A log has lost its last records, and cannot know it.
    fn cut_by_flip(&mut self, at: usize, records: &[Kept]) {
        let rosters = self.rosters();
        for record in records {
            let lacking = self.logs_without(record, at);
            self.taken.insert((at, record.value));
            let may_open = |it: &Roster| {
                let without = it.logs.iter().filter(|log| lacking.contains(log)).count();
                it.generation.number >= record.generation && without * 2 > it.logs.len()
            };
            if rosters.iter().any(may_open) {
                self.excused.insert(record.value);
            }
            let value = record.value;
            self.say(|| format!("host {at}'s log has lost {value}"));
        }
    }

    /// All rosters that any log knows.
    fn rosters(&self) -> Vec<Roster> {
        let disks = self.hosts.iter().filter_map(Host::at_rest);
        let states = disks.filter_map(at_rest).map(|(state, _)| state);
        states
            .flat_map(|it| it.confirmed.into_iter().chain(it.proposed))
            .collect()
    }

    /// The logs that do not have a record, besides that of the host at which it was cut.
    fn logs_without(&self, record: &Kept, at: usize) -> BTreeSet<LogId> {
        let mut without = BTreeSet::new();
        for (other, host) in self.hosts.iter().enumerate() {
            let kept = host.at_rest().and_then(at_rest);
            let has_it = kept.is_some_and(|(_, kept)| kept.contains(record));
            if other == at || !has_it {
                without.insert(LogId(other as u128 + 1));
            }
        }
        without
    }

    /// A damaged log is mended from another one, where that is possible.
    pub(super) fn mend(&mut self, at: usize) -> Result<(), Finding> {
        if self.hosts[at].damaged.is_none() || !self.rng.chance(0.3) {
            return Ok(());
        }
        let from = self.rng.below(self.hosts.len());
        let other = &self.hosts[from];
        let other = other.disk.as_ref().filter(|_| other.damaged.is_none());
        let other = other.and_then(|it| TopicLog::open_read_only(it.copy()).ok()?);
        let (Some(disk), Some((mut other, _))) = (self.hosts[at].disk.clone(), other) else {
            return Ok(());
        };
        if let Err(why) = TopicLog::mend(&mut disk.clone(), &mut other) {
            self.say(|| format!("host {at}'s log is not mended from host {from}'s: {why}"));
            return Ok(());
        }
        let Some(damaged) = self.hosts[at].damaged.take() else {
            return Ok(());
        };
        self.flipped.1 += 1;
        self.say(|| format!("host {at}'s log is mended from host {from}'s"));
        let mended = at_rest(&disk).map(|(_, records)| records);
        if mended.as_ref() != Some(&damaged.records) {
            let written = damaged.records;
            let what = format!("host {at}'s log was mended to {mended:?} from {written:?}");
            return Err(("D6", what));
        }
        Ok(())
    }

    /// Disks that were damaged are read as they were before.
    pub(super) fn restore_damaged(&mut self) {
        for host in &mut self.hosts {
            if let Some(damaged) = host.damaged.take() {
                host.disk = Some(damaged.backup);
            }
        }
    }
}
