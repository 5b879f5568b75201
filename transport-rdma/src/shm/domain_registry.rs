//! Decisions about a domain that must be unique on a host: which process founds it, and
//! which view follows which.
//!
//! Each decision reads the domain's record and changes it under the domain's lock, so of two
//! contradictory decisions one is refused. What a failure to write costs: see `domain`.

use core::sync::atomic::{AtomicBool, Ordering};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use super::domain::{Domain, LOCK_WITHIN};
use super::error::SetupError;
use super::locked_record::Locked;
use super::process;
use super::socket::Deadline;
use super::view_record::{ADDRESS_LEN_MAX, MemberEntry, ViewDecision, ViewRecord};
use crate::fabric::peers::MEMBERS_MAX;
use crate::fork::OwnerProcess;

/// The result of entering a domain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EnterOutcome {
    /// The domain had no living member: this process has founded it, as view 1 alone.
    Founded,
    /// A view with members that are alive, as far as this host can tell: they have to let
    /// this process join.
    Present(Vec<MemberEntry>),
}

/// The members of a domain, as far as the record of this host tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DomainState {
    /// No member.
    Empty,
    /// Members of the recorded view: those of this host that are alive, and all of other
    /// hosts.
    Present(Vec<MemberEntry>),
}

/// Why a decision was not recorded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DecisionRefused {
    /// The recorded view is another one than the decision follows.
    #[error(
        "domain {domain} is at view {there} with digest {digest:016x} on this host: \
         view {next} after view {from} comes too late"
    )]
    Superseded {
        /// The domain.
        domain: u32,
        /// The recorded view.
        there: u64,
        /// Its digest.
        digest: u64,
        /// The view that the decision follows.
        from: u64,
        /// The view decided on.
        next: u64,
    },
    /// This member is not in the recorded view.
    #[error("domain {domain} is at view {there} on this host, and member {id:032x} is not in it")]
    NotMember {
        /// The domain.
        domain: u32,
        /// The recorded view.
        there: u64,
        /// This member.
        id: u128,
    },
    /// The record was removed.
    #[error("domain {domain} has no record on this host any more")]
    Gone {
        /// The domain.
        domain: u32,
    },
    /// The decision is not a valid view.
    #[error("not a valid view: {0}")]
    NoView(String),
    /// The record cannot be used.
    #[error(transparent)]
    Domain(#[from] SetupError),
}

/// One member's access to the record of its domain. When dropped, the member leaves.
#[derive(Debug)]
pub struct DomainRegistry {
    domain: Arc<Domain>,
    me: MemberEntry,
    left: AtomicBool,
    /// A forked child has a copy of this value and must not act on it.
    owner: OwnerProcess,
}

impl DomainRegistry {
    /// Opens the directory in which the domain is recorded, and gets room in the record for
    /// this member. The directory is created if needed and must belong to this user alone.
    /// `None` is [`default_domain_directory`](super::default_domain_directory). Id 0 is for an
    /// observer, which is never a member. Waits as [`enter`](Self::enter) does, or up to 10 s
    /// if the record was removed while members live.
    pub fn open(
        domain: u32,
        directory: Option<&Path>,
        me: MemberEntry,
    ) -> Result<Self, SetupError> {
        let registry = Self {
            domain: Domain::open(domain, directory)?,
            me,
            left: AtomicBool::new(false),
            owner: OwnerProcess::this(),
        };
        if registry.me.id != 0 && !registry.current().is_some_and(|it| registry.fits(&it)) {
            let locked = registry.lock()?;
            let record = registry.load(&locked)?;
            locked.reserve(registry.room_beside(record.as_ref()))?;
        }
        Ok(registry)
    }

    /// Room for a text with the members of a record and this one.
    fn room_beside(&self, record: Option<&ViewRecord>) -> usize {
        let others = record.into_iter().flat_map(|it| &it.decision.members);
        ViewRecord::room(others.chain([&self.me]))
    }

    /// Whether the record has room for this member, too.
    fn fits(&self, record: &ViewRecord) -> bool {
        self.domain.has_room(self.room_beside(Some(record)))
    }

    /// Gets room in the record for a view with these members, before it is agreed: so recording
    /// it needs no more of the file system. Waits up to 5 s for the lock if there is no room yet.
    pub fn make_room(&self, members: &[MemberEntry]) -> Result<(), SetupError> {
        let len = ViewRecord::room(members);
        match self.domain.has_room(len) {
            true => Ok(()),
            false => self.lock()?.reserve(len),
        }
    }

    /// The members that are alive, by the record of this host. Changes nothing. Waits up to
    /// 5 s for the lock if there is no record, or it was removed.
    pub fn living_members(&self) -> Result<DomainState, SetupError> {
        let (record, living) = match self.current() {
            Some(record) => {
                let living = living(Some(&record), |member| self.domain.lives(member))?;
                (Some(record), living)
            }
            None => {
                let locked = self.lock()?;
                let record = self.load(&locked)?;
                let living = living(record.as_ref(), |member| locked.lives(member))?;
                (record, living)
            }
        };
        let is_foreign = record.is_some_and(|record| record.host != self.me.host);
        if is_foreign && self.me.id != 0 && living != DomainState::Empty {
            let problem = "was made anew while this participant joined: join again".to_owned();
            let path = self.domain.path().to_owned();
            return Err(SetupError::Directory { path, problem });
        }
        Ok(living)
    }

    /// Founds the domain if no member is alive; else returns the living members. With a
    /// living member, this one included, a second group is never founded. Waits up to 5 s
    /// for the lock.
    pub fn enter(&self) -> Result<EnterOutcome, SetupError> {
        self.enter_ignoring(&BTreeSet::new())
    }

    /// [`enter`](Self::enter), where members `gone` are known to have ended or to be in no
    /// view any more, though this host cannot tell.
    pub fn enter_ignoring(&self, gone: &BTreeSet<u128>) -> Result<EnterOutcome, SetupError> {
        let locked = self.lock()?;
        let record = self.load(&locked)?;
        if let DomainState::Present(living) =
            living(record.as_ref(), |member| locked.lives(member))?
            && living.iter().any(|entry| !gone.contains(&entry.id))
        {
            return Ok(EnterOutcome::Present(living));
        }
        if self.me.address.len() > ADDRESS_LEN_MAX {
            let too_long = std::io::Error::from(std::io::ErrorKind::InvalidInput);
            return Err(SetupError::system(
                "writing down an address above 1024 bytes",
            )(too_long));
        }
        locked.sweep_stations()?;
        let alone = ViewDecision {
            view: 1,
            digest: 0,
            members: vec![self.me.clone()],
        };
        let record = match record {
            Some(record) => record.followed_by(alone),
            None => ViewRecord::new(self.me.host, alone),
        };
        locked.write(&record?.write())?;
        self.domain.show(self.me.id);
        Ok(EnterOutcome::Founded)
    }

    /// Records `next`, which follows view `from_view`, as the domain's view on this host.
    /// Succeeds also if this decision was recorded before (the last eight are remembered).
    ///
    /// If all members of `from_view` are on this host (`one_host`), this call decides: it is
    /// a compare-and-set, refused if the recorded view is not `from_view` or does not have
    /// this member. Otherwise a majority has decided, and the record is brought up to date
    /// as by [`record`](Self::record), also with a view by which this member leaves. Waits
    /// up to 5 s for the lock.
    pub fn decide(
        &self,
        from_view: u64,
        next: &ViewDecision,
        one_host: bool,
    ) -> Result<(), DecisionRefused> {
        check(from_view, next)?;
        let domain = self.domain.id;
        let locked = self.lock()?;
        let record = self.load(&locked)?;
        if !one_host {
            return Ok(self.follow(&locked, record, next)?);
        }
        let record = record.ok_or(DecisionRefused::Gone { domain })?;
        if record.remembers(next) {
            return Ok(());
        }
        let there = &record.decision;
        if !record.has(self.me.id) {
            return Err(DecisionRefused::NotMember {
                domain,
                there: there.view,
                id: self.me.id,
            });
        }
        if there.view != from_view {
            return Err(DecisionRefused::Superseded {
                domain,
                there: there.view,
                digest: there.digest,
                from: from_view,
                next: next.view,
            });
        }
        let next = record.followed_by(next.clone())?;
        Ok(locked.write(&next.write())?)
    }

    /// Whether this host can tell that the process of a member has ended.
    pub fn is_known_dead(&self, member: &MemberEntry) -> bool {
        member.host == self.me.host && !self.domain.lives(member)
    }

    /// Records a view that others have decided and that has this member. The record never
    /// goes back. Fails, and changes nothing, if other living members of this host are in
    /// that view or a later one without this member. Waits up to 5 s for the lock, unless the view
    /// was recorded before.
    pub fn record(&self, decision: &ViewDecision) -> Result<(), SetupError> {
        if let Err(DecisionRefused::NoView(what)) = check(0, decision) {
            let pid = self.me.pid;
            return Err(SetupError::ProtocolViolation { pid, what });
        }
        // The member that decided has recorded it for all members of the host: if each of them
        // waited for the lock, view after view would take them time in proportion to their square.
        if self.is_recorded(decision) {
            self.domain.check_stations();
        } else {
            let locked = self.lock()?;
            let record = self.load(&locked)?;
            self.follow(&locked, record, decision)?;
        }
        self.domain.show(self.me.id);
        Ok(())
    }

    /// Whether the record is known to have a decision, or to have had it before. Needs no lock: a
    /// text that is being written is not the current one, and what was recorded stays so.
    fn is_recorded(&self, decision: &ViewDecision) -> bool {
        self.current()
            .is_some_and(|record| record.remembers(decision))
    }

    /// The record without the lock: it may be that before a change under way. `None` where the lock
    /// is needed to tell what is there.
    fn current(&self) -> Option<ViewRecord> {
        ViewRecord::read(&self.domain.current_text()?)
    }

    /// Brings the record up to date with a decision made elsewhere.
    fn follow(
        &self,
        locked: &Locked,
        record: Option<ViewRecord>,
        decided: &ViewDecision,
    ) -> Result<(), SetupError> {
        let me = self.me.id;
        let fresh = || ViewRecord::new(self.me.host, decided.clone());
        let next = match record {
            Some(record) if record.remembers(decided) => return Ok(()),
            Some(record) if record.decision.view < decided.view => {
                record.followed_by(decided.clone())?
            }
            // The record is of a group of which no other member of this host is alive.
            Some(record) if !lives_here_besides(locked, &record, me)? => fresh()?,
            Some(record) => {
                let leaving = decided.members.iter().all(|member| member.id != me);
                if leaving || record.has(me) && record.decision.view > decided.view {
                    return Ok(());
                }
                return Err(SetupError::Elsewhere {
                    domain: self.domain.id,
                    there: record.decision.view,
                    id: me,
                    view: decided.view,
                });
            }
            None => fresh()?,
        };
        locked.write(&next.write())
    }

    /// Removes this member from the record. Idempotent. Waits up to 5 s for the lock.
    ///
    /// A record without members stays: of two members that leave at the same time, one may
    /// record the common decision after the other has recorded it and left.
    pub fn leave(&self) -> Result<(), SetupError> {
        if self.owner.is_inherited() || self.left.swap(true, Ordering::Relaxed) {
            return Ok(());
        }
        self.domain.hide(self.me.id);
        let locked = self.lock()?;
        let Some(mut record) = self.load(&locked)? else {
            return Ok(());
        };
        let members = &mut record.decision.members;
        let before = members.len();
        members.retain(|member| member.id != self.me.id);
        if members.len() == before {
            return Ok(());
        }
        locked.write(&record.write())
    }

    fn lock(&self) -> Result<Locked, SetupError> {
        self.domain.lock(Deadline::after(LOCK_WITHIN))
    }

    fn load(&self, locked: &Locked) -> Result<Option<ViewRecord>, SetupError> {
        let Some(text) = locked.read()? else {
            return Ok(None);
        };
        let record = ViewRecord::read(text).ok_or_else(|| locked.invalid_record())?;
        Ok(Some(record))
    }
}

impl Drop for DomainRegistry {
    fn drop(&mut self) {
        if let Err(error) = self.leave() {
            // The record names this process until the kernel reports its end.
            tracing::warn!(domain = self.domain.id, %error, "leaving a domain");
        }
    }
}

fn lives_here_besides(locked: &Locked, record: &ViewRecord, me: u128) -> Result<bool, SetupError> {
    let lives = |member: &MemberEntry| locked.lives(member);
    Ok(record.lives_here_besides(me, process::boot()?, lives))
}

fn living(
    record: Option<&ViewRecord>,
    lives: impl Fn(&MemberEntry) -> bool,
) -> Result<DomainState, SetupError> {
    let boot = process::boot()?;
    let living = record.map_or_else(Vec::new, |record| record.living(boot, lives));
    Ok(if living.is_empty() {
        DomainState::Empty
    } else {
        DomainState::Present(living)
    })
}

/// A decision that is recorded must be readable again.
fn check(from_view: u64, next: &ViewDecision) -> Result<(), DecisionRefused> {
    let members = next.members.len();
    let refuse = |what: String| Err(DecisionRefused::NoView(what));
    if next.view <= from_view {
        return refuse(format!("view {} after view {from_view}", next.view));
    }
    if !(1..=MEMBERS_MAX).contains(&members) {
        return refuse(format!("{members} members, not 1 to {MEMBERS_MAX}"));
    }
    let longest = next.members.iter().map(|member| member.address.len()).max();
    if longest > Some(ADDRESS_LEN_MAX) {
        return refuse(format!("an address of more than {ADDRESS_LEN_MAX} bytes"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_recorded_is_read_while_others_have_the_lock() {
        let parent = tempfile::tempdir().expect("a directory");
        let directory = parent.path().join("domains");
        let here = |id| MemberEntry::here(id, 1, vec![]).expect("a process");
        let register = |id| DomainRegistry::open(7, Some(&directory), here(id));
        let [first, second] = [1, 2].map(|id| register(id).expect("a register"));
        let view = |view| ViewDecision {
            view,
            digest: view,
            members: vec![here(1), here(2)],
        };
        assert_eq!(first.enter().expect("entered"), EnterOutcome::Founded);
        for next in [2, 3] {
            first.decide(next - 1, &view(next), true).expect("decided");
        }
        let locked = first.lock().expect("the lock");
        for noted in [2, 3] {
            second.record(&view(noted)).expect("it is there");
        }
        assert!(!second.is_recorded(&view(4)));
        drop(locked);
        second.record(&view(4)).expect("recorded");
        let locked = first.lock().expect("the lock");
        let there = DomainState::Present(view(4).members);
        let third = register(3).expect("there is room");
        assert_eq!(third.living_members().expect("looked"), there);
        drop(locked);
        assert!(first.is_recorded(&view(4)));
    }
}
