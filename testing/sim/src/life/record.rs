//! A host's record of the domain: what `shm::Register` is to real processes.

use std::sync::Arc;

use spindle_dds_core::membership::{MemberId, View};

/// Decisions before the present one that are remembered.
const REMEMBERED_MAX: usize = 8;

/// Which view there is on a host.
#[derive(Debug)]
pub(super) struct DomainRecord {
    view: Arc<View>,
    /// View and digest of the decisions made, the last one last.
    made: Vec<(u64, u64)>,
}

impl DomainRecord {
    /// The record of who founds a domain that has had a group before: it remembers that
    /// one's decisions, for those of its members that have yet to hear that they have left.
    pub(super) fn founded(first: Arc<View>, before: &[(u64, u64)]) -> Self {
        let mut record = Self {
            view: first.clone(),
            made: before.to_vec(),
        };
        record.go_on(&first, 0);
        record
    }

    /// View and digest of what it remembers, the last one last.
    pub(super) fn decisions(&self) -> Vec<(u64, u64)> {
        self.made.clone()
    }

    /// The record that begins with a view.
    pub(super) fn new(view: Arc<View>, digest: u64) -> Self {
        let made = vec![(view.id, digest)];
        Self { view, made }
    }

    /// The view that is there.
    pub(super) fn view(&self) -> &View {
        &self.view
    }

    /// The compare-and-set, where all members are on one host.
    pub(super) fn decide(
        &mut self,
        by: MemberId,
        next: &Arc<View>,
        digest: u64,
    ) -> Result<(), String> {
        let there = self.view.id;
        if self.made.contains(&(next.id, digest)) {
            return Ok(());
        }
        if self.view.rank(by).is_none() {
            return Err(format!("view {there} is there without {by}"));
        }
        if there + 1 != next.id {
            return Err(format!("view {there} is there"));
        }
        self.go_on(next, digest);
        Ok(())
    }

    /// What others have decided. Never goes back; refused if others that live on this
    /// host are further without whoever asks.
    pub(super) fn follow(
        &mut self,
        by: MemberId,
        view: &Arc<View>,
        digest: u64,
        lives: impl Fn(MemberId) -> bool,
    ) -> Result<(), String> {
        if self.made.contains(&(view.id, digest)) {
            return Ok(());
        }
        if self.view.id < view.id {
            self.go_on(view, digest);
            return Ok(());
        }
        if !self.view.members.iter().any(|member| lives(member.id)) {
            *self = Self::new(view.clone(), digest);
            return Ok(());
        }
        let there = self.view.id;
        let overtaken = self.view.rank(by).is_some() && there > view.id;
        if overtaken || view.rank(by).is_none() {
            return Ok(());
        }
        Err(format!("view {there} is there without {by}"))
    }

    fn go_on(&mut self, view: &Arc<View>, digest: u64) {
        self.view = view.clone();
        self.made.push((view.id, digest));
        if self.made.len() > 1 + REMEMBERED_MAX {
            self.made.remove(0);
        }
    }
}
