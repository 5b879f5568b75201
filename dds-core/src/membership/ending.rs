//! The end of a view, once it is prepared or a member is suspected: wedge, report, propose, echo,
//! commit; takeover by a new leader.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use spindle_dds_transport::{Fabric, PeerSet, Rank};

use super::asking::{INVALID_REQUEST, Scope};
use super::proposal::{Proposal, RemovalReason, Request, Touched, Trim};
use super::protocol::{Action, Decision, Finish, Membership, OutReason, SubgroupEnds};
use super::row::{Level, ProtocolViolation, Text};
use super::view::View;
use crate::ids::SubgroupId;
use crate::spec::SubgroupSpec;

impl<F: Fabric> Membership<F> {
    pub(super) fn wedge(&mut self, subgroups: &mut impl SubgroupEnds) {
        let level = self.level();
        if level > self.wedged_level && subgroups.wedge(&self.touched()) {
            self.wedged_level = level;
            self.rows.publish_wedged(level);
        }
    }

    pub(super) fn report(&mut self, subgroups: &mut impl SubgroupEnds) {
        let level = self.level();
        if level <= self.reported_level || self.wedged_level < level {
            return;
        }
        for rank in self.trusted().iter() {
            match self.rows.wedged(rank) {
                Ok(theirs) if theirs >= level => {}
                Ok(_) => return,
                Err(ProtocolViolation) => {
                    return self.suspect(rank, "its wedged word violates the protocol", subgroups);
                }
            }
        }
        let counts = match subgroups.freeze(&self.touched()) {
            Ok(counts) => counts,
            Err((rank, cause)) => return self.suspect(rank, &cause, subgroups),
        };
        let Ok(bytes) = postcard::to_allocvec(&counts) else {
            return;
        };
        self.reported_level = level;
        self.rows.publish_text(level.report(), &bytes);
    }

    /// Whether no earlier leader can still act: every trusted member suspects all members of lower
    /// rank. A member publishes its suspicion behind its echo, so each echo of an earlier leader's
    /// proposal is visible by then. A leader that acted sooner could propose another end of the
    /// view than one that is already echoed.
    pub(super) fn may_propose(&self) -> bool {
        let before: PeerSet = (0..self.me.0).map(Rank).collect();
        self.trusted()
            .iter()
            .all(|rank| before.without(&self.rows.suspected(rank)).is_empty())
    }

    pub(super) fn propose(&mut self, subgroups: &mut impl SubgroupEnds) {
        if self.rows.proposer(self.me) == Some(self.me) {
            return;
        }
        if !self.adopt_echoed(subgroups) {
            return;
        }
        if self.echo.is_none() && !self.compose_proposal(subgroups) {
            return;
        }
        self.rows.publish_proposer(self.me);
    }

    /// Adopts a proposal that a trusted member has echoed. False: try again.
    fn adopt_echoed(&mut self, subgroups: &mut impl SubgroupEnds) -> bool {
        if self.echo.is_some() {
            return true;
        }
        for rank in self.trusted().iter() {
            if self.rows.proposer(rank).is_some() {
                return self.copy_proposal(rank, subgroups);
            }
        }
        true
    }

    /// Makes the proposal, once all trusted members have reported. False: not yet.
    fn compose_proposal(&mut self, subgroups: &mut impl SubgroupEnds) -> bool {
        let level = self.level();
        if level == Level::None || self.reported_level < level {
            return false;
        }
        let mut reports = Vec::new();
        for rank in self.trusted().iter() {
            match self.read_report(rank, level) {
                Ok(Some(report)) => reports.push((rank, report)),
                Ok(None) => return false,
                Err(ProtocolViolation) => {
                    self.suspect(rank, "its report violates the protocol", subgroups);
                    return false;
                }
            }
        }
        // A member that was suspected before it reported has published that suspicion by now.
        let suspects_more = |rank| {
            !self
                .rows
                .suspected(rank)
                .without(&self.suspected)
                .is_empty()
        };
        if self.trusted().iter().any(suspects_more) {
            return false;
        }
        // What was announced and prepared, or what needs no preparation. Other requests wait for
        // the next view.
        let mut proposal = match (level, &self.announced) {
            (Level::Some, Some(announced)) => Proposal {
                preparation: self.announcer.prepared_by_all,
                ..(*announced.preparation.proposal).clone()
            },
            _ => match self.merge_requests(Scope::Removals) {
                Ok((proposal, _)) => proposal,
                Err(rank) => {
                    self.suspect(rank, INVALID_REQUEST, subgroups);
                    return false;
                }
            },
        };
        proposal.trims = self.trims(&proposal.touched(&self.view), &reports);
        let Ok(next) = self.view.next(&proposal) else {
            return false;
        };
        self.rows.publish_text(Text::Proposal, &proposal.to_text());
        self.echo = Some((Arc::new(proposal), Arc::new(next)));
        true
    }

    fn read_report(
        &self,
        rank: Rank,
        level: Level,
    ) -> Result<Option<Vec<Trim>>, ProtocolViolation> {
        let Some(bytes) = self.rows.text(rank, level.report())? else {
            return Ok(None);
        };
        let report: Vec<Trim> = postcard::from_bytes(&bytes).map_err(|_| ProtocolViolation)?;
        // A report must cover all touched subgroups that its member is in: the trims rest on it.
        let touched = self.touched();
        let reported: BTreeSet<SubgroupId> = report.iter().map(|trim| trim.subgroup).collect();
        let mut subgroups = self.view.subgroups.iter();
        let whole = subgroups.all(|subgroup| {
            let is_in = touched.contains(subgroup.subgroup) && subgroup.members.contains(&rank);
            !is_in || reported.contains(&subgroup.subgroup)
        });
        let sound = whole
            && report.iter().all(|trim| {
                let group = self.view.subgroup(trim.subgroup);
                group.is_some_and(|group| {
                    group.members.contains(&rank) && group.senders.len() == trim.counts.len()
                })
            });
        if sound {
            Ok(Some(report))
        } else {
            Err(ProtocolViolation)
        }
    }

    /// The trim of each touched subgroup: the least count that any reporting member has of each
    /// sender.
    fn trims(&self, touched: &Touched, reports: &[(Rank, Vec<Trim>)]) -> Vec<Trim> {
        let mut least: BTreeMap<SubgroupId, Vec<u64>> = BTreeMap::new();
        for trim in reports.iter().flat_map(|(_, report)| report) {
            let counts = least.entry(trim.subgroup);
            let counts = counts.or_insert_with(|| trim.counts.clone());
            for (least, count) in counts.iter_mut().zip(&trim.counts) {
                *least = (*least).min(*count);
            }
        }
        let groups = self.view.subgroups.iter();
        let replaced = groups.filter(|group| touched.contains(group.subgroup));
        let trim = |group: &SubgroupSpec| {
            Some(Trim {
                subgroup: group.subgroup,
                counts: least.remove(&group.subgroup)?,
            })
        };
        replaced.filter_map(trim).collect()
    }

    /// Copies a proposal into this member's row. False if the proposal violates the protocol.
    fn copy_proposal(&mut self, from: Rank, subgroups: &mut impl SubgroupEnds) -> bool {
        let text = self.rows.text(from, Text::Proposal);
        let found = text.ok().flatten().and_then(|bytes| {
            let (proposal, next) = Proposal::read(&bytes, &self.view)?;
            Some((bytes, proposal, next))
        });
        let Some((bytes, proposal, next)) = found else {
            self.suspect(from, "its proposal violates the protocol", subgroups);
            return false;
        };
        if let Some((echo, _)) = &self.echo {
            let same = **echo == proposal;
            if !same {
                self.suspect(from, "it proposes another end of the view", subgroups);
            }
            return same;
        }
        // A leader may add only what all members have prepared, this one too.
        let is_prepared = match proposal.preparation {
            0 => proposal.additions().next().is_none(),
            number => self.prepared_for(&proposal) == Some(number),
        };
        if !is_prepared {
            self.suspect(from, "it proposes what was not prepared", subgroups);
            return false;
        }
        {
            // The proposer published these suspicions before, but this member may have stopped
            // reading its row by then.
            for removal in &proposal.removals {
                if let RemovalReason::Failed(cause) = &removal.reason {
                    if removal.rank == self.me.0 {
                        self.expelled_by = Some(from);
                        return false;
                    }
                    self.suspect(Rank(removal.rank), cause, subgroups);
                }
            }
            self.rows.publish_text(Text::Proposal, &bytes);
            self.echo = Some((Arc::new(proposal), Arc::new(next)));
        }
        true
    }

    /// Echoes the leader's proposal, which acknowledges it.
    pub(super) fn echo_leader(&mut self, subgroups: &mut impl SubgroupEnds) {
        let leader = self.leader();
        let proposed = self.rows.proposer(leader) == Some(leader);
        if proposed
            && self.rows.proposer(self.me) != Some(leader)
            && self.copy_proposal(leader, subgroups)
        {
            self.rows.publish_proposer(leader);
        }
    }

    /// The leader's commit, once all trusted members have echoed its proposal.
    pub(super) fn decide(&mut self, now: u64) -> Option<Action> {
        let (proposal, next) = self.echo.as_ref()?;
        let decision = Decision {
            next: next.clone(),
            digest: proposal.digest(next),
        };
        if self.is_decided {
            self.rows.publish_committed();
            return None;
        }
        let has_echoed = |rank| self.rows.proposer(rank) == Some(self.me);
        let all = self.trusted().iter().all(has_echoed);
        if self.is_deciding || !all {
            return None;
        }
        if let Err((left, of)) = self.majority() {
            // Members that can certify a death may not have heard of it yet.
            let since = *self.no_majority_since_ns.get_or_insert(now);
            if now.saturating_sub(since) > self.rules.detection.timeout_ns {
                return self.stop(OutReason::NoMajority { left, of });
            }
            return None;
        }
        self.is_deciding = true;
        Some(Action::Decide(decision))
    }

    /// Whether a strict majority is left, of the members that did not leave and are not known to be
    /// dead. If all members are on one host, its record of the domain decides instead.
    fn majority(&self) -> Result<(), (usize, usize)> {
        let host = |rank: Rank| self.view.members[rank.index()].host;
        let one_host = self
            .all_members()
            .iter()
            .all(|rank| host(rank) == host(self.me));
        if one_host || self.rules.prefer_availability {
            return Ok(());
        }
        let certified = |dead: Rank| {
            let mut witnesses = self
                .trusted()
                .iter()
                .filter(|rank| host(*rank) == host(dead));
            witnesses.any(|rank| {
                let told = if rank == self.me {
                    self.known_dead
                } else {
                    self.rows.dead(rank)
                };
                told.contains(dead)
            })
        };
        let Some((proposal, _)) = &self.echo else {
            return Ok(());
        };
        let left_on_purpose = |rank: Rank| {
            let mut removals = proposal.removals.iter();
            removals.any(|removal| removal.rank == rank.0 && removal.reason == RemovalReason::Left)
        };
        let counted = |rank: &Rank| !left_on_purpose(*rank);
        let left = self.trusted().iter().filter(counted).count();
        let lost = self.suspected.iter().filter(counted);
        let of = left + lost.filter(|rank| !certified(*rank)).count();
        if left * 2 > of {
            Ok(())
        } else {
            Err((left, of))
        }
    }

    /// Finishes the view if a trusted member has committed.
    pub(super) fn finish_if_committed(
        &mut self,
        subgroups: &mut impl SubgroupEnds,
    ) -> Option<Action> {
        let mut trusted = self.trusted().iter();
        let committed = trusted.find(|rank| self.rows.is_committed(*rank))?;
        // A member commits what it has echoed, and all echo the same proposal.
        if committed != self.me && !self.copy_proposal(committed, subgroups) {
            return None;
        }
        let (proposal, next) = self.echo.clone()?;
        if committed != self.me {
            self.rows.publish_committed();
        }
        self.is_over = true;
        self.settle_requests(&proposal, &next);
        let touched = proposal.touched(&self.view);
        Some(Action::Finish(Finish {
            proposal,
            touched,
            next,
        }))
    }

    /// Drops the requests that the view has fulfilled, and moves those that it refuses.
    fn settle_requests(&mut self, proposal: &Proposal, next: &View) {
        let me = self.view.members[self.me.index()].id;
        let now = next.rank(me).map(|rank| &next.members[rank.index()]);
        for open in core::mem::take(&mut self.requests) {
            let refusal = open.request.id().and_then(|asked| proposal.refuses(asked));
            if let Some(refusal) = refusal {
                if open.refusal.is_none() {
                    self.refused.push((open.request, refusal.clone()));
                }
                continue;
            }
            let is_open = match &open.request {
                Request::Update(update) => now.is_some_and(|me| update.number > me.updates),
                // Only the numbers of updates have to be continued.
                Request::Join(_) if open.refusal.is_some() => false,
                Request::Join(member) => next.rank(member.id).is_none(),
                Request::Leave => now.is_some(),
            };
            if is_open {
                self.requests.push(open);
            }
        }
    }
}
