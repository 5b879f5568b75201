//! Decisions about a domain that must be single on a host: who founds it, and
//! which view follows which.
//!
//! Each is a look at the domain's record and a change of it under the domain's
//! lock, so that of two that contradict each other one is refused.

use core::sync::atomic::{AtomicBool, Ordering};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::domain::{Domain, Locked};
use super::error::SetupError;
use super::process;
use super::socket::Deadline;
use super::station::sweep_sockets;
use super::view_record::{ADDRESS_LEN_MAX, MemberEntry, ViewDecision, ViewRecord};
use crate::peers::MEMBERS_MAX;

/// How long to wait for the lock, which is held for moments unless its holder
/// is stopped.
const LOCK_WITHIN: Duration = Duration::from_secs(5);

/// What a process finds that comes to a domain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EnterOutcome {
    /// Nobody: it has founded the domain, and is view 1 alone.
    Founded,
    /// A view with members that live, as far as it can be known here: it has to
    /// be let in by them.
    Present(Vec<MemberEntry>),
}

/// Who lives in a domain, as far as the record of this host tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DomainState {
    /// Nobody.
    Empty,
    /// These members of the view that is there: of this host those that live, and all
    /// of other hosts.
    Present(Vec<MemberEntry>),
}

/// Why a decision did not become the domain's.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DecisionRefused {
    /// Another view is there than the one that the decision follows.
    #[error(
        "domain {domain} is at view {there} with digest {digest:016x} on this host: \
         view {next} after view {from} comes too late"
    )]
    Superseded {
        /// The domain.
        domain: u32,
        /// The view that is there.
        there: u64,
        /// Its digest.
        digest: u64,
        /// The view that the decision follows.
        from: u64,
        /// The view decided on.
        next: u64,
    },
    /// The view that is there is not this member's.
    #[error("domain {domain} is at view {there} on this host, and member {id:032x} is not in it")]
    NotMember {
        /// The domain.
        domain: u32,
        /// The view that is there.
        there: u64,
        /// This member.
        id: u128,
    },
    /// The record is not there: somebody has removed it.
    #[error("domain {domain} has no record on this host any more")]
    Gone {
        /// The domain.
        domain: u32,
    },
    /// What was decided is no view.
    #[error("no view can be like that: {0}")]
    NoView(String),
    /// The record cannot be used.
    #[error(transparent)]
    Domain(#[from] SetupError),
}

/// One member's hand on the record of its domain. Dropped, it leaves.
#[derive(Debug)]
pub struct DomainRegistry {
    domain: Arc<Domain>,
    me: MemberEntry,
    left: AtomicBool,
    /// A child of a fork has a copy of this, and no say.
    process: u32,
}

impl DomainRegistry {
    /// Opens the directory, made if need be, in which the domain is recorded; it
    /// must be this user's alone. `None`: `$SPINDLE_DDS_DIR`, or else the user's runtime
    /// directory, or a directory in shared memory.
    pub fn open(
        domain: u32,
        directory: Option<&Path>,
        me: MemberEntry,
    ) -> Result<Self, SetupError> {
        Ok(Self {
            domain: Arc::new(Domain::open(domain, directory)?),
            me,
            left: AtomicBool::new(false),
            process: std::process::id(),
        })
    }

    /// Who lives in the domain, by the record of this host. Changes nothing. Waits up
    /// to 5 s for the lock.
    pub fn living_members(&self) -> Result<DomainState, SetupError> {
        let locked = self.lock()?;
        let record = self.load(&locked)?;
        living(record.as_ref())
    }

    /// Founds the domain if nobody lives in it, and says who does otherwise:
    /// with a living member, this one included, a second group is never founded.
    /// Waits up to 5 s for the lock.
    pub fn enter(&self) -> Result<EnterOutcome, SetupError> {
        self.enter_ignoring(&BTreeSet::new())
    }

    /// [`enter`](Self::enter), where it is known of these members that they have ended,
    /// or are in no view any more, though this host cannot tell.
    pub fn enter_ignoring(&self, gone: &BTreeSet<u128>) -> Result<EnterOutcome, SetupError> {
        let locked = self.lock()?;
        let record = self.load(&locked)?;
        if let DomainState::Present(living) = living(record.as_ref())?
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
        sweep_sockets(&self.domain)?;
        let alone = ViewDecision {
            view: 1,
            digest: 0,
            members: vec![self.me.clone()],
        };
        let record = match record {
            Some(record) => record.followed_by(alone),
            None => ViewRecord::new(self.me.host, alone),
        };
        locked.replace(&record?.write())?;
        Ok(EnterOutcome::Founded)
    }

    /// Makes `next`, which follows view `from_view`, the domain's on this host. Made
    /// already, by whomever, it is made: one of the last eight is remembered.
    ///
    /// If all members of `from_view` are on this host (`one_host`), this is what
    /// decides: a compare-and-set, refused if the view that is there is not
    /// `from_view`, or has not this member. If not, a majority has decided: the record
    /// is brought up to date as by [`note`](Self::record), also with a view that this
    /// member leaves by. Waits up to 5 s for the lock.
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
        Ok(locked.replace(&next.write())?)
    }

    /// Whether this host knows that the process of a member has ended.
    pub fn is_known_dead(&self, member: &MemberEntry) -> bool {
        member.host == self.me.host && process::start_time(member.pid) != Some(member.start)
    }

    /// Takes note of a view that others have decided and that has this member: the
    /// record of this host follows, and never goes back. Fails, and changes nothing,
    /// if others who live on this host are in that view or a later one without this
    /// member. Waits up to 5 s for the lock.
    pub fn record(&self, decision: &ViewDecision) -> Result<(), SetupError> {
        if let Err(DecisionRefused::NoView(what)) = check(0, decision) {
            let pid = self.me.pid;
            return Err(SetupError::Nonsense { pid, what });
        }
        let locked = self.lock()?;
        let record = self.load(&locked)?;
        self.follow(&locked, record, decision)
    }

    /// Brings the record up to date with what was decided elsewhere.
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
            // It is of a group that is no more.
            Some(record) if !record.lives_here_besides(me, process::boot()?) => fresh()?,
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
        locked.replace(&next.write())
    }

    /// Takes this member out of the record. Once is enough. Waits up to 5 s for the lock.
    ///
    /// A record without members stays: of two that leave at once, one comes to make the
    /// decision by which it leaves when the other has left already, and made it, too.
    pub fn leave(&self) -> Result<(), SetupError> {
        if self.process != std::process::id() || self.left.swap(true, Ordering::Relaxed) {
            return Ok(());
        }
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
        locked.replace(&record.write())
    }

    fn lock(&self) -> Result<Locked, SetupError> {
        self.domain.lock(Deadline::after(LOCK_WITHIN))
    }

    fn load(&self, locked: &Locked) -> Result<Option<ViewRecord>, SetupError> {
        let Some(text) = locked.read()? else {
            return Ok(None);
        };
        let record = ViewRecord::read(&text).ok_or_else(|| locked.makes_no_sense())?;
        if record.boot == process::boot()? && !record.decision.members.is_empty() {
            locked.check_namespace(record.namespace)?;
        }
        Ok(Some(record))
    }
}

impl Drop for DomainRegistry {
    fn drop(&mut self) {
        if let Err(error) = self.leave() {
            // The record names a process that ends some day.
            tracing::warn!(domain = self.domain.id, %error, "leaving a domain");
        }
    }
}

fn living(record: Option<&ViewRecord>) -> Result<DomainState, SetupError> {
    let boot = process::boot()?;
    let living = record.map_or_else(Vec::new, |record| record.living(boot));
    Ok(if living.is_empty() {
        DomainState::Empty
    } else {
        DomainState::Present(living)
    })
}

/// What is written down must be readable again.
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
