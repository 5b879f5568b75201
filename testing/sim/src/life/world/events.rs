//! Events of members are recorded, and have consequences.

use std::collections::BTreeMap;

use spindle_dds_core::DeliveryClass;
use spindle_dds_core::membership::{
    Finish, MemberId, OutReason, Preparation, RemovalReason, Request, View,
};

use super::World;
use crate::life::facts::{EpochKey, Fact, Standing};
use crate::life::member::SinkEvent;
use crate::life::storage::RETURNED;
use crate::life::trace;
use crate::violation::Finding;

impl World<'_> {
    pub(super) fn read_events(&mut self, at: usize) -> Result<(), Finding> {
        self.read_facts(at)?;
        let events = self.members[at]
            .engine
            .with_sink(|sink| core::mem::take(&mut sink.events))
            .unwrap_or_default();
        // The branch that follows the end of its epochs.
        let mut next = self.members[at].branch;
        for event in &events {
            if let SinkEvent::ViewEnded(finish) = event {
                next = self.ending(at, finish)?;
            }
        }
        let lacking = self.lacking(at, &events);
        for event in events {
            self.trace_event(at, &event);
            self.handle(at, event, next, &lacking)?;
        }
        if self.members[at].is_up() {
            self.members[at].read_receipts();
        }
        self.read_facts(at)
    }

    /// Records what the applications of a member did.
    fn read_facts(&mut self, at: usize) -> Result<(), Finding> {
        let mut facts = core::mem::take(&mut self.members[at].facts).into_iter();
        facts.try_for_each(|fact| self.checkers.tell(&fact))
    }

    /// For messages delivered in epochs that go on: the members that have not received them.
    fn lacking(&self, at: usize, events: &[SinkEvent]) -> BTreeMap<(EpochKey, u64), Vec<MemberId>> {
        let ended = |its: EpochKey| {
            let end = |event: &SinkEvent| matches!(event, SinkEvent::EpochEnded { epoch, .. } if *epoch == its);
            events.iter().any(end)
        };
        let mut lacking = BTreeMap::new();
        for event in events {
            let SinkEvent::Delivered(delivered) = event else {
                continue;
            };
            let (epoch, position) = (delivered.epoch, delivered.position);
            if delivered.class != DeliveryClass::Ordered || ended(epoch) {
                continue;
            }
            let key = self.members[at].epoch_key(epoch.0, epoch.1);
            let those = self.members.iter().filter(|it| it.lacks(key, position));
            let those: Vec<_> = those.map(|member| member.id).collect();
            if !those.is_empty() {
                lacking.insert((epoch, position), those);
            }
        }
        lacking
    }

    /// `next` is the branch of the view that follows; `lacking` is by epochs as the member knows
    /// them.
    fn handle(
        &mut self,
        at: usize,
        event: SinkEvent,
        next: u64,
        lacking: &BTreeMap<(EpochKey, u64), Vec<MemberId>>,
    ) -> Result<(), Finding> {
        let id = self.members[at].id;
        match event {
            SinkEvent::Delivered(mut what) => {
                let lacking = lacking.get(&(what.epoch, what.position));
                let lacking = lacking.map_or(&[][..], Vec::as_slice);
                what.epoch = self.members[at].epoch_key(what.epoch.0, what.epoch.1);
                let (to, what) = (id, &what);
                self.checkers.tell(&Fact::Delivered { to, what, lacking })
            }
            SinkEvent::EpochEnded { epoch, end, digest } => self.checkers.tell(&Fact::EpochEnded {
                at: id,
                epoch: self.members[at].epoch_key(epoch.0, epoch.1),
                next,
                position: end,
                digest,
            }),
            SinkEvent::Prepare(preparation) => {
                self.prepare_ahead(at, preparation);
                Ok(())
            }
            SinkEvent::StopPreparing(number) => {
                let stopped =
                    |(preparation, ..): &mut (Preparation, _, _)| preparation.number == number;
                drop(self.members[at].answering.take_if(stopped));
                Ok(())
            }
            SinkEvent::CallOff => {
                self.members[at].answering = None;
                Ok(())
            }
            SinkEvent::Decide(decision) => {
                self.decide(at, &decision);
                Ok(())
            }
            SinkEvent::Refused(request, why) => {
                if let Request::Update(update) = &request {
                    self.members[at].refused(update.number);
                }
                self.refused(at, &request, &why)
            }
            SinkEvent::ViewEnded(finish) => self.view_ended(at, &finish, next),
            SinkEvent::ViewBegun(view) => {
                self.know(self.members[at].branch, &view)?;
                let record = self.records.get(&self.hosts[&id]);
                let recorded = record.map_or(0, |record| record.view().id);
                let (at, view) = (id, &*view);
                self.checkers.tell(&Fact::ViewBegun { at, view, recorded })
            }
            SinkEvent::Wrong(finding) => Err(finding),
            SinkEvent::Stopped(reason) => self.stopped(at, reason),
        }
    }

    fn know(&mut self, branch: u64, view: &View) -> Result<(), Finding> {
        self.branches.view(branch, view);
        self.checkers.tell(&Fact::ViewKnown { branch, view })
    }

    fn refused(&mut self, at: usize, request: &Request, why: &str) -> Result<(), Finding> {
        let (of, branch) = (self.members[at].id, self.members[at].branch);
        self.refused += 1;
        if let Request::Join(newcomer) = request {
            // A newcomer that asks another member by now does not hear of it.
            let mut joiners = self.joiners.iter();
            if joiners.any(|(joiner, asked)| joiner.id == newcomer.id && *asked != of) {
                return Ok(());
            }
            self.joiners.retain(|(joiner, _)| joiner.id != newcomer.id);
        }
        self.checkers.tell(&Fact::Refused {
            of,
            branch,
            request,
            why,
        })
    }

    fn trace_event(&mut self, at: usize, event: &SinkEvent) {
        match event {
            SinkEvent::Delivered(_) | SinkEvent::Wrong(_) => {}
            SinkEvent::EpochEnded { epoch, end, .. } => {
                let (subgroup, epoch, _) = epoch;
                self.tell(at, |_| {
                    format!("subgroup {subgroup} of view {epoch} ends at {end}")
                });
            }
            SinkEvent::Prepare(preparation) => {
                self.tell(at, |it| {
                    let (old, proposal) = (it.view.as_deref(), &preparation.proposal);
                    let changes = trace::changes(old, proposal);
                    format!("prepares view {}: {changes}", preparation.next.id)
                });
            }
            SinkEvent::CallOff => self.tell(at, |_| "drops what it prepared".to_owned()),
            SinkEvent::StopPreparing(_) => self.tell(at, |_| "stops preparing".to_owned()),
            SinkEvent::Decide(decision) => {
                self.tell(at, |_| format!("wants view {} decided", decision.next.id));
            }
            SinkEvent::Refused(request, why) => {
                self.tell(at, |_| {
                    format!("{}: refused: {why}", trace::request(request))
                });
            }
            SinkEvent::ViewEnded(finish) => {
                self.tell(at, |it| trace::ending(it.view.as_deref(), finish));
            }
            SinkEvent::ViewBegun(view) => self.tell(at, |_| trace::beginning(view)),
            SinkEvent::Stopped(reason) => self.tell(at, |_| format!("is out: {reason}")),
        }
    }

    /// The branch of views that a member goes on in.
    fn ending(&mut self, at: usize, finish: &Finish) -> Result<u64, Finding> {
        let branch = self.members[at].branch;
        let is_divided = !self.divided.is_empty() || self.plan.may_suspect_wrongly();
        let proposal = &finish.proposal;
        self.checkers.tell(&Fact::ViewEnded {
            at: self.members[at].id,
            branch,
            proposal,
            is_divided,
        })?;
        let (next, is_news) = self.branches.ending(branch, proposal);
        if is_news {
            self.count_expelled(at, finish);
        }
        Ok(next)
    }

    fn view_ended(&mut self, at: usize, finish: &Finish, branch: u64) -> Result<(), Finding> {
        self.know(branch, &finish.next)?;
        if let Some(view) = self.members[at].view.clone() {
            let delivered = &mut self.members[at].delivered;
            delivered.view_ended(&view, &finish.proposal);
        }
        let digest = finish.proposal.digest(&finish.next);
        self.members[at].follow(&finish.next, branch);
        for member in &finish.next.members {
            let joined = self
                .joiners
                .iter()
                .position(|(joiner, _)| joiner.id == member.id);
            if let Some(joined) = joined {
                let (joiner, _) = self.joiners.remove(joined);
                self.spawn(&joiner, &finish.next, branch);
                let newcomer = self.members.len() - 1;
                self.begin_storage(newcomer, at);
                self.return_member(newcomer, at)?;
                if self.note(newcomer, &finish.next, digest).is_err() {
                    self.end(newcomer);
                }
            } else if self.died_joining.remove(&member.id) {
                self.network.crash(self.nodes[&member.id]);
            }
        }
        if finish.next.rank(self.members[at].id).is_some() {
            // Other members of its host may be in another group; the two never become one.
            if self.note(at, &finish.next, digest).is_err() {
                self.end(at);
                return Ok(());
            }
            let delay = match finish.proposal.preparation {
                0 => self.long_preparation(),
                _ => self.rng.below(20) as u64,
            };
            self.members[at].answering = None;
            self.members[at].preparing = Some((finish.next.clone(), self.now + delay));
        }
        Ok(())
    }

    fn count_expelled(&mut self, at: usize, finish: &Finish) {
        let Some(view) = &self.members[at].view else {
            return;
        };
        for removal in &finish.proposal.removals {
            let joiner = view.members.get(usize::from(removal.rank));
            if let (Some(joiner), RemovalReason::Failed(cause)) = (joiner, &removal.reason)
                && self.plan.is_hostile(joiner.id)
            {
                *self.expelled.entry(cause.clone()).or_default() += 1;
            }
        }
    }

    fn stopped(&mut self, at: usize, reason: OutReason) -> Result<(), Finding> {
        let id = self.members[at].id;
        let record = self.records.get(&self.hosts[&id]);
        let standing = Standing {
            is_leaving: self.members[at].is_leaving,
            may_lose: self.may_suspect_wrongly || self.plan.hosts > 1,
            prefers_availability: self.plan.availability,
            lost_to_hostile: record.is_some_and(|record| {
                let mut members = record.view().members.iter();
                members.all(|it| self.plan.is_hostile(it.id))
            }),
        };
        let allowed = self.checkers.tell(&Fact::Stopped {
            member: id,
            reason: &reason,
            standing,
        });
        let comes_back = reason != OutReason::Left && self.turn < self.plan.turns;
        self.members[at].stopped = Some(reason);
        self.network.crash(self.members[at].node);
        if comes_back {
            self.come_back(at);
        }
        allowed
    }

    /// The process of a member that has stopped may enter the group again, as a new member.
    fn come_back(&mut self, at: usize) {
        let plan = self.plan;
        let may = plan.returns > 0.0 && self.nodes.len() < plan.members_max;
        if !may || plan.is_hostile(self.members[at].id) || !self.odds.chance(plan.returns) {
            return;
        }
        let mut newcomer = self.new_participant();
        newcomer.host = self.hosts[&self.members[at].id];
        newcomer.endpoints = self.members[at].endpoints().clone().into();
        newcomer.info = RETURNED.to_vec();
        self.hosts.insert(newcomer.id, newcomer.host);
        self.returning.insert(newcomer.id, at);
        self.joiners.push((newcomer, MemberId(0)));
    }

    /// A newcomer that was a member before is told by its sponsor what was delivered of it.
    fn return_member(&mut self, newcomer: usize, sponsor: usize) -> Result<(), Finding> {
        let Some(before) = self.returning.remove(&self.members[newcomer].id) else {
            return Ok(());
        };
        let was = self.members[before].id;
        let counts = self.members[sponsor].delivered.of(was);
        let counts = counts.cloned().unwrap_or_default();
        // The newcomer was added last.
        let (members, added) = self.members.split_at_mut(newcomer);
        let Some(newcomer) = added.first_mut() else {
            return Ok(());
        };
        let again = newcomer.return_from(&members[before], &counts)?;
        newcomer.return_storage(&mut members[before], &counts, self.now);
        self.returned.0 += 1;
        for (epoch, again) in again {
            self.returned.1 += again.len();
            let again = &again[..];
            self.checkers.tell(&Fact::Returned { was, epoch, again })?;
        }
        Ok(())
    }
}
