//! A host's record of the domain, as `shm::Register` is for real processes.

use std::sync::Arc;

use spindle_dds_core::membership::{MemberId, View};

/// Number of decisions remembered before the present one.
const REMEMBERED_MAX: usize = 8;

/// The view of the domain on a host.
#[derive(Debug)]
pub(super) struct DomainRecord {
    view: Arc<View>,
    /// View and digest of the decisions, the last one last.
    made: Vec<(u64, u64)>,
}

impl DomainRecord {
    /// The record of the founder of a domain that had a group before. It remembers that group's
    /// decisions, for members that have yet to learn that they have left.
    pub(super) fn founded(first: Arc<View>, before: &[(u64, u64)]) -> Self {
        let mut record = Self {
            view: first.clone(),
            made: before.to_vec(),
        };
        record.go_on(&first, 0);
        record
    }

    /// View and digest of the decisions remembered, the last one last.
    pub(super) fn decisions(&self) -> Vec<(u64, u64)> {
        self.made.clone()
    }

    /// A record that begins with a view.
    pub(super) fn new(view: Arc<View>, digest: u64) -> Self {
        let made = vec![(view.id, digest)];
        Self { view, made }
    }

    /// The present view.
    pub(super) fn view(&self) -> &View {
        &self.view
    }

    /// Compare-and-set of the view; decides if all members are on one host.
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

    /// Follows a decision made elsewhere. Never goes back; refuses if living members of this host
    /// have gone further without the member that asks.
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
