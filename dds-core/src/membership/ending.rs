//! How a view ends: wedge, report, propose, repeat, commit; takeover.

use std::sync::Arc;

use spindle_dds_transport::{Fabric, PeerSet, Rank};

use super::asking::ASKS_NONSENSE;
use super::proposal::{Proposal, Request, Touched, Trim, Why};
use super::protocol::{Action, Decision, Finish, LaneEnds, Membership, OutReason};
use super::row::{Level, ProtocolViolation, Text};
use super::view::View;
use crate::spec::SubgroupSpec;

impl<F: Fabric> Membership<F> {
    pub(super) fn wedge(&mut self, lanes: &mut impl LaneEnds) {
        let level = self.level();
        if level > self.wedged && lanes.wedge(&self.touched()) {
            self.wedged = level;
            self.rows.tell_wedged(level);
        }
    }

    pub(super) fn report(&mut self, lanes: &mut impl LaneEnds) {
        let level = self.level();
        if level <= self.reported || self.wedged < level {
            return;
        }
        for rank in self.trusted().iter() {
            match self.rows.wedged(rank) {
                Ok(theirs) if theirs >= level => {}
                Ok(_) => return,
                Err(ProtocolViolation) => {
                    return self.suspect(rank, "it is wedged beyond all", lanes);
                }
            }
        }
        let counts = match lanes.freeze(&self.touched()) {
            Ok(counts) => counts,
            Err((rank, cause)) => return self.suspect(rank, &cause, lanes),
        };
        let Ok(bytes) = postcard::to_allocvec(&counts) else {
            return;
        };
        self.reported = level;
        self.rows.tell(level.report(), &bytes);
    }

    /// Whether nobody else may still act as a leader: every trusted member
    /// suspects all that come before this one.
    /// What they have repeated of these is seen by then, as each tells its suspicion behind
    /// it; who acted sooner could propose another end, and be taken for broken by whoever has
    /// repeated the first.
    pub(super) fn may_act(&self) -> bool {
        let before: PeerSet = (0..self.me.0).map(Rank).collect();
        self.trusted()
            .iter()
            .all(|rank| before.without(&self.rows.suspected(rank)).is_empty())
    }

    pub(super) fn propose(&mut self, lanes: &mut impl LaneEnds) {
        if self.rows.label(self.me) == Some(self.me) {
            return;
        }
        if !self.adopt(lanes) {
            return;
        }
        if self.echo.is_none() && !self.compose(lanes) {
            return;
        }
        self.rows.tell_label(self.me);
    }

    /// Takes over a proposal that somebody has repeated. False: try again.
    fn adopt(&mut self, lanes: &mut impl LaneEnds) -> bool {
        if self.echo.is_some() {
            return true;
        }
        for rank in self.trusted().iter() {
            if self.rows.label(rank).is_some() {
                return self.copy(rank, lanes);
            }
        }
        true
    }

    /// Makes the proposal, once everybody has reported. False: not yet.
    fn compose(&mut self, lanes: &mut impl LaneEnds) -> bool {
        let level = self.level();
        if level == Level::None || self.reported < level {
            return false;
        }
        let mut reports = Vec::new();
        for rank in self.trusted().iter() {
            match self.read_report(rank, level) {
                Ok(Some(report)) => reports.push((rank, report)),
                Ok(None) => return false,
                Err(ProtocolViolation) => {
                    self.suspect(rank, "its report makes no sense", lanes);
                    return false;
                }
            }
        }
        // Whoever was suspected before it reported says so in its row by now.
        let grown = |rank| {
            !self
                .rows
                .suspected(rank)
                .without(&self.suspected)
                .is_empty()
        };
        if self.trusted().iter().any(grown) {
            return false;
        }
        // What has been asked for since the intent waits, if it touches more.
        let inside = match (level, &self.intent) {
            (Level::Some, Some(Touched::Only(intended))) => Some(intended),
            _ => None,
        };
        let mut proposal = match self.requested(inside) {
            Ok(proposal) => proposal,
            Err(rank) => {
                self.suspect(rank, ASKS_NONSENSE, lanes);
                return false;
            }
        };
        proposal.trims = self.trims(&proposal.touched(&self.view), &reports);
        let Ok(next) = self.view.next(&proposal) else {
            return false;
        };
        self.rows.tell(Text::Proposal, &proposal.to_bytes());
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
        // Of all lanes that it is in: what nobody reports of cannot be proposed.
        let touched = self.touched();
        let mut lanes = self.view.lanes.iter();
        let whole = lanes.all(|lane| {
            let is_in = touched.contains(lane.subgroup) && lane.members.contains(&rank);
            !is_in || report.iter().any(|trim| trim.subgroup == lane.subgroup)
        });
        let sound = whole
            && report.iter().all(|trim| {
                let group = self.view.lane(trim.subgroup);
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

    /// Where the subgroups end: what all have that are left of each.
    fn trims(&self, touched: &Touched, reports: &[(Rank, Vec<Trim>)]) -> Vec<Trim> {
        let groups = self.view.lanes.iter();
        let replaced = groups.filter(|group| touched.contains(group.subgroup));
        let trim = |group: &SubgroupSpec| {
            let counts = reports.iter().filter_map(|(_, report)| {
                let trim = report.iter().find(|trim| trim.subgroup == group.subgroup)?;
                Some(trim.counts.clone())
            });
            let least =
                |a: Vec<u64>, b: Vec<u64>| a.iter().zip(&b).map(|(a, b)| *a.min(b)).collect();
            let counts = counts.reduce(least)?;
            Some(Trim {
                subgroup: group.subgroup,
                counts,
            })
        };
        replaced.filter_map(trim).collect()
    }

    /// Copies a proposal into this member's row. False when it makes no sense.
    fn copy(&mut self, from: Rank, lanes: &mut impl LaneEnds) -> bool {
        let text = self.rows.text(from, Text::Proposal);
        let found = text.ok().flatten().and_then(|bytes| {
            let (proposal, next) = Proposal::read(&bytes, &self.view)?;
            Some((bytes, proposal, next))
        });
        let Some((bytes, proposal, next)) = found else {
            self.suspect(from, "its proposal makes no sense", lanes);
            return false;
        };
        if let Some((echo, _)) = &self.echo {
            let same = **echo == proposal;
            if !same {
                self.suspect(from, "it proposes another end of the view", lanes);
            }
            return same;
        }
        {
            // Whoever proposed this had said before whom it suspects; but this
            // member may not have seen that any more.
            for removal in &proposal.removals {
                if let Why::Failed(cause) = &removal.why {
                    if removal.rank == self.me.0 {
                        self.expelled_by = Some(from);
                        return false;
                    }
                    self.suspect(Rank(removal.rank), cause, lanes);
                }
            }
            self.rows.tell(Text::Proposal, &bytes);
            self.echo = Some((Arc::new(proposal), Arc::new(next)));
        }
        true
    }

    /// Repeats what the leader proposes: the acknowledgement.
    pub(super) fn repeat(&mut self, lanes: &mut impl LaneEnds) {
        let leader = self.leader();
        let proposed = self.rows.label(leader) == Some(leader);
        if proposed && self.rows.label(self.me) != Some(leader) && self.copy(leader, lanes) {
            self.rows.tell_label(leader);
        }
    }

    /// The leader, once all have repeated its proposal.
    pub(super) fn decide(&mut self, now: u64) -> Option<Action> {
        let (proposal, next) = self.echo.as_ref()?;
        let decision = Decision {
            next: next.clone(),
            digest: proposal.digest(next),
        };
        if self.is_decided {
            self.rows.tell_committed();
            return None;
        }
        let unanimous = |rank| self.rows.label(rank) == Some(self.me);
        let all = self.trusted().iter().all(unanimous);
        if self.deciding || !all {
            return None;
        }
        if let Err((left, of)) = self.majority() {
            // Those who can certify a death may not have heard of it yet.
            let since = *self.alone_since.get_or_insert(now);
            if now.saturating_sub(since) > self.rules.detection.limit {
                return self.out(OutReason::NoMajority { left, of });
            }
            return None;
        }
        self.deciding = true;
        Some(Action::Decide(decision))
    }

    /// A strict majority of those who did not leave and are not known to be dead.
    /// On one host the record of the domain decides instead.
    fn majority(&self) -> Result<(), (usize, usize)> {
        let host = |rank: Rank| self.view.members[rank.index()].host;
        let one_host = self
            .everybody()
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
                    self.dead
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
            removals.any(|removal| removal.rank == rank.0 && removal.why == Why::Left)
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

    /// Somebody whom this member trusts says that it is decided: so it is.
    pub(super) fn finish_if_committed(&mut self, lanes: &mut impl LaneEnds) -> Option<Action> {
        let mut trusted = self.trusted().iter();
        let committed = trusted.find(|rank| self.rows.is_committed(*rank))?;
        // It has repeated the proposal before, which is everybody's.
        if committed != self.me && !self.copy(committed, lanes) {
            return None;
        }
        let (proposal, next) = self.echo.clone()?;
        if committed != self.me {
            self.rows.tell_committed();
        }
        self.over = true;
        self.settle_requests(&proposal, &next);
        let touched = proposal.touched(&self.view);
        Some(Action::Finish(Finish {
            proposal,
            touched,
            next,
        }))
    }

    /// Forgets what has been done, or refused, of what it asked for.
    fn settle_requests(&mut self, proposal: &Proposal, next: &View) {
        let me = self.view.members[self.me.index()].id;
        let now = next.rank(me).map(|rank| &next.members[rank.index()]);
        for request in core::mem::take(&mut self.requests) {
            let refusal = request.asked().and_then(|asked| proposal.refuses(asked));
            if let Some(refusal) = refusal {
                self.refused.push((request, refusal.why.clone()));
                continue;
            }
            let open = match &request {
                Request::Update(update) => now.is_some_and(|me| update.number > me.updates),
                Request::Join(member) => next.rank(member.id).is_none(),
                Request::Leave => now.is_some(),
            };
            if open {
                self.requests.push(request);
            }
        }
    }
}
