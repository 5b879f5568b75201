//! The end of a life: faults end, and all logs come together.

use std::collections::BTreeSet;

use super::super::participant::at_rest;
use super::super::show;
use super::{GROUPS, World, takes};
use crate::violation::Finding;

impl World {
    /// Faults end. All logs come together, in a new group or in one that is there, and it takes samples.
    pub(super) fn heal(&mut self) -> Result<(), Finding> {
        if self.openings == 0 {
            return Ok(());
        }
        self.is_healing = true;
        self.restore_damaged();
        let stays = (self.rng.below(3) > 0).then(|| self.rng.below(GROUPS));
        for group in 0..GROUPS {
            if stays != Some(group) {
                self.crash_group(group);
            }
        }
        for at in 0..self.hosts.len() {
            if let Some(disk) = &self.hosts[at].disk {
                disk.set_capacity(None);
            }
            if let Some(disk) = &self.hosts[at].disk
                && self.hosts[at].node.is_none()
            {
                disk.end_process();
            }
        }
        let group = stays.unwrap_or(0);
        for round in 0..400 {
            self.step = self.plan.steps + round;
            for at in 0..self.hosts.len() {
                let host = &self.hosts[at];
                let is_dead = host.node.as_ref().is_some_and(|it| it.log.is_none());
                if host.disk.is_some() && is_dead {
                    self.crash(at);
                }
            }
            self.now_ns += 300_000_000;
            for at in 0..self.hosts.len() {
                self.start(at, group);
            }
            self.change_view(group);
            for at in 0..self.hosts.len() {
                self.work(at)?;
                self.taking()?;
            }
            let it = &self.groups[group];
            let Some(view) = &it.last else {
                continue;
            };
            let loggers = view.logs.as_ref().map_or(0, |it| it.loggers.len());
            let up = self.hosts.iter().filter(|it| it.node.is_some());
            let up = up.filter(|it| it.disk.is_some()).count();
            if takes(it, view) && loggers == up {
                return self.equal_logs();
            }
        }
        let disks = self.hosts.iter().filter_map(|it| it.disk.as_ref());
        let lineages = disks.filter_map(at_rest).map(|(state, _)| state.lineage);
        let lineages: BTreeSet<u128> = lineages.filter(|it| *it != 0).collect();
        if lineages.len() > 1 {
            // Such logs stay apart.
            return Ok(());
        }
        let last = self.groups[group].last.as_ref();
        let last = last.map_or_else(String::new, |it| show::view(it));
        Err((
            "D7",
            format!("with all logs there, it does not open: {last}"),
        ))
    }
}
