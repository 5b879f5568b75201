//! The logs of a run: where they are, when they know each other, and what they have in the end.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Instant;

use super::super::messages::Situation;
use super::super::process::Process;
use super::{Over, POLL_EVERY, ROLES_MAX, Role, Script, Step, Symptom, found};
use crate::logged::logs::Log;

/// By writer: so many of its samples are acknowledged.
type Acknowledged = BTreeMap<String, u64>;

/// What the logs have to have.
pub(super) struct Logs {
    below: PathBuf,
    acknowledged: Acknowledged,
    /// What was acknowledged when a participant left in order.
    left: [Option<Acknowledged>; ROLES_MAX],
}

impl Logs {
    pub(super) fn new(below: &Path) -> Self {
        Self {
            below: below.to_owned(),
            acknowledged: BTreeMap::new(),
            left: Default::default(),
        }
    }

    /// Where a participant has its log.
    pub(super) fn directory(&self, role: Role) -> PathBuf {
        self.below.join(format!("log-{}", role as u32))
    }

    fn read(&self, role: Role) -> Result<Option<Log>, String> {
        Log::read(&self.directory(role), role as u32).map_err(|failure| failure.to_string())
    }

    /// A participant says this.
    pub(super) fn note(&mut self, situation: &Situation) {
        for (writer, samples) in &situation.acknowledged {
            let known = self.acknowledged.entry(writer.clone()).or_default();
            *known = samples.max(known).to_owned();
        }
    }

    /// A participant is about to leave.
    pub(super) fn leave(&mut self, role: Role) {
        self.left[role as usize] = Some(self.acknowledged.clone());
    }
}

/// What a log lacks of that.
fn lacking(log: &Log, acknowledged: &Acknowledged) -> Option<String> {
    let mut lacking = acknowledged.iter().filter_map(|(writer, samples)| {
        let has = log.samples_of(writer);
        (has < *samples).then(|| format!("{has} of {samples} acknowledged samples of {writer}"))
    });
    lacking.next()
}

impl Script {
    /// Until the roster has the logs of all members, but for one that has failed, and no others: so that
    /// the next one may leave.
    pub(super) fn await_roster(&mut self) -> Step {
        let members = self.members();
        if self.over != Over::Logged || !members.contains(&Role::D) {
            return Ok(Ok(()));
        }
        loop {
            let said = match self.roster_is_complete(&members) {
                Ok(None) => return Ok(Ok(())),
                Ok(Some(said)) | Err(said) => said,
            };
            if Instant::now() > self.deadline {
                return found(Symptom::Hangs, Role::D, said);
            }
            std::thread::sleep(POLL_EVERY);
        }
    }

    /// What is missing. Logs may be read while they are written, with an error now and then.
    fn roster_is_complete(&self, members: &[Role]) -> Result<Option<String>, String> {
        let mut known = Vec::new();
        let Some(log) = self.logs.read(Role::D)? else {
            return Ok(Some("no log".to_owned()));
        };
        for &role in members {
            let Some(of_member) = self.logs.read(role)? else {
                if self.has_failed(role) {
                    continue;
                }
                return Ok(Some(format!("{role:?} has no log")));
            };
            if !log.roster.contains(&of_member.id) && !self.has_failed(role) {
                return Ok(Some(format!("the log of {role:?} is not in the roster")));
            }
            known.push(of_member.id);
        }
        let is_there = log.roster.iter().all(|id| known.contains(id));
        let said = "the roster has a log of one that is not there";
        Ok((!is_there).then(|| said.to_owned()))
    }

    /// Whether a call of this participant has failed.
    pub(super) fn has_failed(&self, role: Role) -> bool {
        let failed = self.injected().is_some_and(|it| it.failed().is_some());
        failed && self.target.is_some_and(|(of, _)| of == role)
    }

    /// Whether a write was held up because the log with the fault had no room for long, and says so.
    pub(super) fn is_held_up_by_log(&self, text: &str) -> bool {
        self.over == Over::Logged && !self.lasting.is_zero() && text.contains("is full")
    }

    /// After all have ended: what was acknowledged is in the logs, which have the same records.
    pub(super) fn check_logs(&mut self) -> Step {
        if self.over != Over::Logged {
            return Ok(Ok(()));
        }
        let mut logs = Vec::new();
        for &role in self.over.roles() {
            match self.logs.read(role) {
                Ok(log) => logs.push((role, log)),
                Err(text) => return found(Symptom::Damaged, role, text),
            }
        }
        let longest = logs.iter().filter_map(|(_, log)| log.as_ref());
        let Some(longest) = longest.max_by_key(|log| log.len()) else {
            return found(Symptom::Lost, Role::D, "there is no log".to_owned());
        };
        for (role, log) in &logs {
            let differs = |log: &Log| !log.agrees_with(longest);
            if log.as_ref().is_some_and(differs) {
                let text = format!("its log has other records than log {}", longest.number);
                return found(Symptom::Damaged, *role, text);
            }
            let Some(acknowledged) = &self.logs.left[*role as usize] else {
                continue;
            };
            let lacks = match log {
                Some(log) => lacking(log, acknowledged),
                None => Some("no log".to_owned()),
            };
            let Some(lacks) = lacks else {
                continue;
            };
            let said = self.processes.get(*role as usize).map(Process::last_words);
            let said = said.unwrap_or_default();
            if !self.has_failed(*role) {
                return found(Symptom::Lost, *role, format!("its log has {lacks}; {said}"));
            }
            if !self.is_cause_in(&said) {
                let text = format!("its log has {lacks}, and it says: {said}");
                return found(Symptom::Silent, *role, text);
            }
            self.told.get_or_insert(said);
        }
        Ok(Ok(()))
    }
}
