//! What members tell is heard: it goes to the book, and has consequences.

use std::collections::BTreeMap;

use spindle_dds_core::DeliveryClass;
use spindle_dds_core::membership::{Finish, MemberId, OutReason, RemovalReason, Request, View};

use super::World;
use crate::life::facts::{Fact, LaneKey, Standing};
use crate::life::member::News;
use crate::life::trace;
use crate::violation::Finding;

impl World<'_> {
    pub(super) fn read_news(&mut self, at: usize) -> Result<(), Finding> {
        self.read_facts(at)?;
        let news = self.members[at]
            .engine
            .with_sink(|sink| core::mem::take(&mut sink.news))
            .unwrap_or_default();
        // What follows the end of its lanes.
        let mut next = self.members[at].branch;
        for news in &news {
            if let News::ViewEnded(finish) = news {
                next = self.ending(at, finish)?;
            }
        }
        let lacking = self.lacking(at, &news);
        for news in news {
            self.tell_news(at, &news);
            self.heed(at, news, next, &lacking)?;
        }
        if self.members[at].is_up() {
            self.members[at].read_receipts();
        }
        self.read_facts(at)
    }

    /// What the applications of a member did.
    fn read_facts(&mut self, at: usize) -> Result<(), Finding> {
        let mut facts = core::mem::take(&mut self.members[at].facts).into_iter();
        facts.try_for_each(|fact| self.book.tell(&fact))
    }

    /// Of the messages that were handed over in lanes that go on: who has not received them.
    fn lacking(&self, at: usize, news: &[News]) -> BTreeMap<(LaneKey, u64), Vec<MemberId>> {
        let ended = |its: LaneKey| {
            let end = |news: &News| matches!(news, News::LaneEnded { lane, .. } if *lane == its);
            news.iter().any(end)
        };
        let mut lacking = BTreeMap::new();
        for news in news {
            let News::Delivered(delivered) = news else {
                continue;
            };
            let (lane, position) = (delivered.lane, delivered.position);
            if delivered.ring != DeliveryClass::Ordered || ended(lane) {
                continue;
            }
            let key = self.members[at].lane_key(lane.0, lane.1);
            let those = self.members.iter().filter(|it| it.lacks(key, position));
            let those: Vec<_> = those.map(|member| member.id).collect();
            if !those.is_empty() {
                lacking.insert((lane, position), those);
            }
        }
        lacking
    }

    /// `next` is the branch of the view that follows; `lacking` is by lanes as the member
    /// knows them.
    fn heed(
        &mut self,
        at: usize,
        news: News,
        next: u64,
        lacking: &BTreeMap<(LaneKey, u64), Vec<MemberId>>,
    ) -> Result<(), Finding> {
        let id = self.members[at].id;
        match news {
            News::Delivered(mut what) => {
                let lacking = lacking.get(&(what.lane, what.position));
                let lacking = lacking.map_or(&[][..], Vec::as_slice);
                what.lane = self.members[at].lane_key(what.lane.0, what.lane.1);
                let (to, what) = (id, &what);
                self.book.tell(&Fact::Delivered { to, what, lacking })
            }
            News::LaneEnded { lane, end, digest } => self.book.tell(&Fact::LaneEnded {
                at: id,
                lane: self.members[at].lane_key(lane.0, lane.1),
                next,
                position: end,
                digest,
            }),
            News::Decide(decision) => {
                self.decide(at, &decision);
                Ok(())
            }
            News::Refused(request, why) => self.refused(id, &request, &why),
            News::ViewEnded(finish) => self.view_ended(at, &finish, next),
            News::ViewBegun(view) => {
                self.know(self.members[at].branch, &view)?;
                let record = self.records.get(&self.hosts[&id]);
                let recorded = record.map_or(0, |record| record.view().id);
                let (at, view) = (id, &*view);
                self.book.tell(&Fact::ViewBegun { at, view, recorded })
            }
            News::Wrong(finding) => Err(finding),
            News::Stopped(reason) => self.stopped(at, reason),
        }
    }

    fn know(&mut self, branch: u64, view: &View) -> Result<(), Finding> {
        self.course.view(branch, view);
        self.book.tell(&Fact::ViewKnown { branch, view })
    }

    fn refused(&mut self, of: MemberId, request: &Request, why: &str) -> Result<(), Finding> {
        self.refused += 1;
        if let Request::Join(newcomer) = request {
            self.joiners.retain(|(who, _)| who.id != newcomer.id);
        }
        self.book.tell(&Fact::Refused { of, request, why })
    }

    fn tell_news(&mut self, at: usize, news: &News) {
        match news {
            News::Delivered(_) | News::Wrong(_) => {}
            News::LaneEnded { lane, end, .. } => {
                let (subgroup, epoch, _) = lane;
                self.tell(at, |_| {
                    format!("lane {subgroup} of view {epoch} ends at {end}")
                });
            }
            News::Decide(decision) => {
                self.tell(at, |_| format!("wants view {} decided", decision.next.id));
            }
            News::Refused(request, why) => {
                self.tell(at, |_| {
                    format!("{}: refused: {why}", trace::request(request))
                });
            }
            News::ViewEnded(finish) => {
                self.tell(at, |it| trace::ending(it.view.as_deref(), finish));
            }
            News::ViewBegun(view) => self.tell(at, |_| trace::beginning(view)),
            News::Stopped(reason) => self.tell(at, |_| format!("is out: {reason}")),
        }
    }

    /// Which branch of views somebody goes on with.
    fn ending(&mut self, at: usize, finish: &Finish) -> Result<u64, Finding> {
        let branch = self.members[at].branch;
        let is_divided = !self.divided.is_empty() || self.plan.may_err();
        let proposal = &finish.proposal;
        self.book.tell(&Fact::ViewEnded {
            branch,
            proposal,
            is_divided,
        })?;
        let (next, is_news) = self.course.ending(branch, proposal);
        if is_news {
            self.note_expelled(at, finish);
        }
        Ok(next)
    }

    fn view_ended(&mut self, at: usize, finish: &Finish, branch: u64) -> Result<(), Finding> {
        self.know(branch, &finish.next)?;
        let digest = finish.proposal.digest(&finish.next);
        self.members[at].follow(&finish.next, branch);
        for member in &finish.next.members {
            let joined = self.joiners.iter().position(|(who, _)| who.id == member.id);
            if let Some(joined) = joined {
                let (who, _) = self.joiners.remove(joined);
                self.spawn(&who, &finish.next, branch);
                let newcomer = self.members.len() - 1;
                if self.note(newcomer, &finish.next, digest).is_err() {
                    self.end(newcomer);
                }
            } else if self.stillborn.remove(&member.id) {
                self.network.crash(self.nodes[&member.id]);
            }
        }
        if finish.next.rank(self.members[at].id).is_some() {
            // Others of its host may be in another group: the two never become one.
            if self.note(at, &finish.next, digest).is_err() {
                self.end(at);
                return Ok(());
            }
            let delay = self.rng.below(100) as u64;
            // That is most of it.
            let delay = delay.max(self.waits_in_vain());
            self.members[at].preparing = Some((finish.next.clone(), self.now + delay));
        }
        Ok(())
    }

    fn note_expelled(&mut self, at: usize, finish: &Finish) {
        let Some(view) = &self.members[at].view else {
            return;
        };
        for removal in &finish.proposal.removals {
            let who = view.members.get(usize::from(removal.rank));
            if let (Some(who), RemovalReason::Failed(cause)) = (who, &removal.reason)
                && self.plan.is_hostile(who.id)
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
            may_lose: self.may_err || self.plan.hosts > 1,
            prefers_availability: self.plan.availability,
            lost_to_hostile: record.is_some_and(|record| {
                let mut members = record.view().members.iter();
                members.all(|it| self.plan.is_hostile(it.id))
            }),
        };
        let allowed = self.book.tell(&Fact::Stopped {
            who: id,
            reason: &reason,
            standing,
        });
        self.members[at].stopped = Some(reason);
        self.network.crash(self.members[at].node);
        allowed
    }
}
