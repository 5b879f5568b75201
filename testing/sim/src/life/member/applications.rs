//! A member's applications: they build and commit messages, and ask what became of them.

use spindle_dds_core::commit_steps::{CommitSteps, IndexTaken};
use spindle_dds_core::membership::{DeliveredCounts, Endpoint};
use spindle_dds_core::{
    AckWait, Claim, ClaimError, CommitMeta, Committed, DeliveryClass, MessageKind, SentMessage,
    SubgroupId,
};
use spindle_dds_transport::sim::SimFabric;

use super::Member;
use crate::life::facts::{EpochKey, Fact, Sent};
use crate::life::invariants::payload_integrity;
use crate::life::plan::LifePlan;
use crate::violation::Finding;

/// A message that is being built.
pub(super) struct Building {
    claim: Claim<SimFabric>,
    token: u64,
    until: usize,
}

/// A message that was not acknowledged yet.
pub(super) struct Receipt {
    committed: Committed,
    token: u64,
    /// Set if the application waits for the acknowledgement.
    waiting: Option<AckWait>,
}

/// A thread that was preempted in the middle of a commit.
pub(super) struct Committing {
    step: Step,
    sent: Sent,
    /// The turn at which it runs again.
    until: usize,
}

/// The step that it had taken.
enum Step {
    Entered(CommitSteps<SimFabric>),
    TookIndex(IndexTaken<SimFabric>),
}

impl Member {
    /// Whether no application has anything under way.
    pub(crate) fn is_done(&self) -> bool {
        let writes = self
            .endpoints
            .values()
            .any(|endpoint| endpoint.ring.is_some());
        let idle =
            self.building.is_empty() && self.stranded.is_empty() && self.committing.is_empty();
        idle && (self.left == 0 || !writes)
    }

    pub(crate) fn todo(&self) -> String {
        let stranded = self.stranded.iter().map(|(g, r, _, b)| {
            let claim = self.claim(*g, *r, b.len() as u32);
            format!("{g} {r:?} {} {:?}", b.len(), claim.map(|c| c.err()))
        });
        format!(
            "left {} building {} stranded {:?} endpoints {:?}",
            self.left,
            self.building.len(),
            stranded.collect::<Vec<_>>(),
            self.endpoints
        )
    }

    /// Begins no more messages.
    pub(crate) fn rest(&mut self) {
        self.left = 0;
    }

    /// One of the applications acts.
    pub(crate) fn act(&mut self, turn: usize, plan: &LifePlan) {
        if !self.committing.is_empty() && self.preemption.0.chance(0.5) {
            return self.go_on_committing(turn, plan);
        }
        if self.rng.chance(0.3)
            && let Some((subgroup, class, token, bytes)) = self.stranded.pop_front()
        {
            return self.move_on(subgroup, class, token, bytes);
        }
        let due = self.building.iter().position(|one| one.until <= turn);
        match due {
            Some(at) if self.rng.chance(0.7) => {
                if let Some(building) = self.building.remove(at) {
                    self.commit(building, turn, plan);
                }
            }
            _ => self.begin(turn, plan),
        }
    }

    fn claim(
        &self,
        subgroup: SubgroupId,
        class: DeliveryClass,
        len: u32,
    ) -> Option<Result<Claim<SimFabric>, ClaimError>> {
        if self.awaits_logs(subgroup, class) {
            return None;
        }
        Some(self.engine.handle().subgroup(subgroup)?.claim(class, len))
    }

    fn begin(&mut self, turn: usize, plan: &LifePlan) {
        let writers: Vec<(SubgroupId, DeliveryClass)> = self
            .endpoints
            .values()
            .filter_map(|endpoint| Some((endpoint.subgroup, endpoint.ring?.0)))
            .collect();
        let Some(&(subgroup, class)) = self.rng.pick(&writers) else {
            return;
        };
        if self.left == 0 {
            return;
        }
        let len = self.len(subgroup, class, plan);
        if let Some(handle) = self.engine.handle().subgroup(subgroup)
            && self.rng.chance(0.2)
        {
            self.engine.reclaim(&handle);
        }
        match self.claim(subgroup, class, len) {
            Some(Ok(claim)) => {
                self.waiting = None;
                self.left -= 1;
                self.tokens += 1;
                let hold = if self.rng.chance(0.2) {
                    self.rng.below(plan.hold_turns)
                } else {
                    0
                };
                self.building.push_back(Building {
                    claim,
                    token: self.tokens,
                    until: turn + hold,
                });
            }
            Some(Err(ClaimError::NoRoom | ClaimError::NotBegun)) if self.waiting.is_none() => {
                self.waiting = Some(self.engine.handle().waiting_for_acks());
            }
            // Between two epochs, or the update that makes it a sender is under way.
            _ => {}
        }
    }

    /// Bytes to claim: mostly few, sometimes as many as the ring takes.
    fn len(&mut self, subgroup: SubgroupId, class: DeliveryClass, plan: &LifePlan) -> u32 {
        let small = self.rng.below(64) as u32;
        if !self.lengths.chance(plan.large) {
            return small;
        }
        let subgroup = self.engine.handle().subgroup(subgroup);
        let max = subgroup.and_then(|subgroup| subgroup.message_len_max(class));
        max.map_or(small, |max| self.lengths.below(max as usize + 1) as u32)
    }

    /// In lives with storage each subgroup has a topic of its own.
    fn meta(&self, token: u64, subgroup: SubgroupId, class: DeliveryClass) -> CommitMeta {
        let class = class.index() as u32;
        let topic = self.storage.as_ref().map(|storage| storage.topic(subgroup));
        let message = topic.map(|topic| topic.message(token));
        let (kind, key_hash) = message.unwrap_or((MessageKind::Data, [token as u8; 16]));
        CommitMeta {
            kind,
            flags: 0,
            encapsulation: 1,
            writer: topic.map_or(class, |_| 2 * subgroup.0 + class),
            timestamp: token as i64,
            topic: 7,
            key_hash,
            skipped: 0,
        }
    }

    fn commit(&mut self, mut building: Building, turn: usize, plan: &LifePlan) {
        let (by, token) = (self.id, building.token);
        let (subgroup, class) = (building.claim.subgroup().id(), building.claim.class());
        self.facts.push(Fact::Called {
            by,
            subgroup,
            class,
            token,
        });
        if self.rng.chance(0.1) {
            building.claim.bytes().fill(0xee);
            return self.facts.push(Fact::NotSent { by, token });
        }
        let mut used = building.claim.bytes().len();
        if self.lengths.chance(plan.partial) {
            used = self.lengths.below(used + 1);
        }
        payload_integrity::build(&mut building.claim.bytes()[..used], by, token);
        let len = used as u32;
        let (rng, chance) = &mut self.preemption;
        if *chance > 0.0 && rng.chance(*chance) {
            return self.enter_commit(building, len, turn, plan);
        }
        self.commit_built(building.claim, Sent { token, len });
    }

    /// A thread begins to commit, and is preempted.
    fn enter_commit(&mut self, building: Building, len: u32, turn: usize, plan: &LifePlan) {
        let (subgroup, class) = (building.claim.subgroup().id(), building.claim.class());
        let meta = self.meta(building.token, subgroup, class);
        self.committing.push(Committing {
            step: Step::Entered(CommitSteps::enter(building.claim, len, meta)),
            sent: Sent {
                token: building.token,
                len,
            },
            until: turn + self.preemption.0.below(plan.hold_turns),
        });
    }

    /// A thread in the middle of a commit takes the next step.
    fn go_on_committing(&mut self, turn: usize, plan: &LifePlan) {
        let due = self.committing.iter().position(|it| it.until <= turn);
        let Some(Committing { step, sent, .. }) = due.map(|at| self.committing.remove(at)) else {
            return;
        };
        match step {
            Step::Entered(steps) => match steps.take_index() {
                Ok(taken) => {
                    self.keep_receipt(taken.committed(), sent);
                    self.committing.push(Committing {
                        step: Step::TookIndex(taken),
                        sent,
                        until: turn + self.preemption.0.below(plan.hold_turns),
                    });
                }
                Err(refused) => {
                    let (error, mut steps) = *refused;
                    self.not_committed(error, steps.claim(), sent);
                }
            },
            Step::TookIndex(taken) => {
                let subgroup = self.engine.handle().subgroup(taken.committed().subgroup);
                taken.finish();
                if let Some(subgroup) = subgroup {
                    subgroup.nudge();
                }
            }
        }
    }

    /// A commit was refused: the payload is kept for the next epoch, if there is one.
    fn not_committed(&mut self, error: ClaimError, claim: &mut Claim<SimFabric>, sent: Sent) {
        let (by, Sent { token, len }) = (self.id, sent);
        match error {
            ClaimError::Wedged => {
                let bytes = claim.bytes()[..len as usize].to_vec();
                let entry = (claim.subgroup().id(), claim.class(), token, bytes);
                self.stranded.push_back(entry);
            }
            _ => self.facts.push(Fact::NotSent { by, token }),
        }
    }

    /// Commits the first bytes of a claim.
    fn commit_built(&mut self, mut claim: Claim<SimFabric>, sent: Sent) {
        let Sent { token, len } = sent;
        let class = claim.class();
        let meta = self.meta(token, claim.subgroup().id(), class);
        // Drawn for commits alone, so that old seeds keep their lives.
        let mut rng = self.rng.clone();
        let publishes = rng.chance(0.5);
        let index = match publishes {
            true => self.engine.send(&mut claim, len, &meta),
            false => claim.commit(len, &meta),
        };
        match index {
            Ok(index) => {
                self.rng = rng;
                self.keep_receipt(claim.committed(index), sent);
                if !publishes {
                    claim.subgroup().nudge();
                }
            }
            Err(error) => self.not_committed(error, &mut claim, sent),
        }
    }

    fn keep_receipt(&mut self, committed: Committed, sent: Sent) {
        let by = self.id;
        let token = sent.token;
        self.facts.push(Fact::Committed {
            by,
            epoch: self.epoch_key(committed.subgroup, committed.epoch),
            class: committed.class,
            sent,
        });
        if self.open_topics.is_some() {
            self.committed.push((committed, token));
        }
        let key = (committed.subgroup, committed.class);
        self.last.insert(key, committed);
        let (rng, chance) = &mut self.patience;
        let waits = committed.class == DeliveryClass::Ordered && rng.chance(*chance);
        let waiting = waits.then(|| self.engine.handle().waiting_for_acks());
        if waits {
            self.facts.push(Fact::Awaited { by, token });
        }
        self.receipts.push(Receipt {
            committed,
            token,
            waiting,
        });
    }

    /// The applications ask what became of their messages.
    pub(crate) fn read_receipts(&mut self) {
        let (by, handle) = (self.id, self.engine.handle());
        let facts = &mut self.facts;
        self.receipts.retain(
            |Receipt {
                 committed, token, ..
             }| {
                let subgroup = handle.subgroup(committed.subgroup);
                let told = subgroup.is_some_and(|subgroup| subgroup.is_acknowledged(committed));
                if told {
                    let token = *token;
                    facts.push(Fact::Acknowledged { by, token });
                }
                !told
            },
        );
    }

    /// How much room of its rings is free again. (Nulls take no room; some of the last may not be
    /// passed yet.) A sender that lets go of its own messages, and waits for no room, does not wake
    /// its engine: the engine finds them at its next step.
    pub(crate) fn rings_at_rest(&self, turn: usize, now: u64) -> Vec<Fact<'static>> {
        self.engine.step(now);
        // A member that does not read may have been lent its own messages only now.
        self.engine.with_sink(|sink| sink.return_loans(turn, true));
        self.engine.step(now);
        let handle = self.engine.handle();
        let at_rest = |last: &Committed| {
            let subgroup = handle.subgroup(last.subgroup)?;
            (subgroup.epoch() == last.epoch).then(|| Fact::RingAtRest {
                of: self.id,
                epoch: self.epoch_key(last.subgroup, last.epoch),
                class: last.class,
                count: last.index + 1,
                released: subgroup.released(last.class),
            })
        };
        self.last.values().filter_map(at_rest).collect()
    }

    /// Without a part in a subgroup, there is no way to ask for an acknowledgement.
    pub(super) fn abandon_receipts(&mut self) {
        let (by, handle) = (self.id, self.engine.handle());
        let facts = &mut self.facts;
        self.receipts.retain(|receipt| {
            let stays = handle.subgroup(receipt.committed.subgroup).is_some();
            if !stays && receipt.waiting.is_some() {
                let token = receipt.token;
                facts.push(Fact::Abandoned { by, token });
            }
            stays
        });
    }

    /// This process is that of a member that has stopped, and comes back: its applications send again
    /// what the group has not delivered. Returns the tokens of that by epoch, where it is known.
    pub(crate) fn return_from(
        &mut self,
        before: &Self,
        counts: &DeliveredCounts,
    ) -> Result<Vec<(EpochKey, Vec<u64>)>, Finding> {
        let handle = before.engine.handle();
        let mut again = Vec::new();
        for subgroup in handle.subgroups() {
            let Some(epoch) = handle.subgroup(subgroup) else {
                continue;
            };
            let Some(delivered) = counts.of(subgroup, epoch.epoch()) else {
                continue;
            };
            let class = DeliveryClass::Ordered;
            let mut tokens = Vec::new();
            for SentMessage { header, payload } in epoch.sent_since(class, delivered) {
                let token = header.timestamp as u64;
                payload_integrity::check(&payload, before.id, token)
                    .map_err(|what| ("M3", what))?;
                tokens.push(token);
                let mut bytes = payload;
                payload_integrity::build(&mut bytes, self.id, token);
                self.facts.push(Fact::Called {
                    by: self.id,
                    subgroup,
                    class,
                    token,
                });
                self.stranded.push_back((subgroup, class, token, bytes));
            }
            again.push((before.epoch_key(subgroup, epoch.epoch()), tokens));
        }
        self.tokens = before.tokens;
        Ok(again)
    }

    /// Copies a payload built for an epoch that has ended into the next one.
    fn move_on(&mut self, subgroup: SubgroupId, class: DeliveryClass, token: u64, bytes: Vec<u8>) {
        let writer = |endpoint: &Endpoint| {
            endpoint.subgroup == subgroup && endpoint.ring.is_some_and(|(its, _)| its == class)
        };
        if !self.endpoints.values().any(writer) {
            // Its writer was deleted meanwhile.
            let by = self.id;
            return self.facts.push(Fact::NotSent { by, token });
        }
        match self.claim(subgroup, class, bytes.len() as u32) {
            Some(Ok(mut claim)) => {
                claim.bytes().copy_from_slice(&bytes);
                let len = bytes.len() as u32;
                self.commit_built(claim, Sent { token, len });
            }
            // The rings of the next epoch may be smaller.
            Some(Err(ClaimError::TooLarge { .. })) => {
                let by = self.id;
                self.facts.push(Fact::NotSent { by, token });
            }
            _ => self.stranded.push_back((subgroup, class, token, bytes)),
        }
    }
}
