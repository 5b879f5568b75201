//! Which subgroups a step evaluates: see [`active_set`](super::active_set).

use spindle_dds_transport::{Fabric, News, NewsBuckets};

use crate::engine::active_set::{Activity, IdleWaits};
use crate::engine::handle::Participant;
use crate::engine::{State, StepScope};
use crate::sink::Sink;
use crate::subgroup::{PollResult, Progress, SubgroupState};
use crate::sync::Ordering;

impl<F: Fabric, S: Sink<F>> State<F, S> {
    /// Steps the active subgroups, and polls idle ones: fewer where there was progress.
    pub(super) fn step_subgroups(
        &mut self,
        participant: &Participant<F>,
        scope: StepScope,
        progress: &mut Progress,
    ) {
        // Before the first pass: a thread that leaves a commit from here on sets it again.
        if participant.shared.left_commits.load(Ordering::Relaxed) {
            participant
                .shared
                .left_commits
                .swap(false, Ordering::AcqRel);
        }
        if participant.shared.left_work.take() {
            self.activate_left_work();
        }
        let mut at = 0;
        while let Some(active) = self.active_set.next(at, Activity::Active) {
            self.step_subgroup(participant, active, progress);
            at = active + 1;
        }
        let has_changed = progress.is_any();
        if has_changed && !self.active_set.should_poll_idle()
            || self.active_set.next(0, Activity::Idle).is_none()
        {
            return;
        }
        // Only where all that is found is polled: no later look finds it again.
        match participant.own.news(&mut self.news.seen) {
            Some(news) => self.poll_with_news(participant, &news, progress),
            None if has_changed => self.poll_in_turn(participant, Activity::Idle, progress),
            None => self.poll_without_news(participant, scope, progress),
        }
    }

    /// Polls the idle subgroups in which others have news.
    #[inline]
    fn poll_with_news(
        &mut self,
        participant: &Participant<F>,
        news: &News,
        progress: &mut Progress,
    ) {
        if news.is_empty() {
            return;
        }
        if news.buckets == NewsBuckets::ALL {
            return self.poll_all(participant, Activity::Idle, progress);
        }
        if news.acknowledged {
            self.poll_all(participant, Activity::AwaitingRelease, progress);
        }
        let fabric = |it: &SubgroupState<F>| it.handle.fabric.news_bucket();
        self.news.index(self.subgroups.iter().map(fabric));
        for bucket in news.buckets.iter() {
            let mut from = 0;
            while let Some(at) = self.news.next_in(bucket, from) {
                if self.active_set.is_idle(at) {
                    self.poll_idle(participant, at, progress);
                }
                from = at + 1;
            }
        }
    }

    /// Polls idle subgroups where it is not known which of them have news.
    fn poll_without_news(
        &mut self,
        participant: &Participant<F>,
        scope: StepScope,
        progress: &mut Progress,
    ) {
        match scope {
            StepScope::Full => self.poll_all(participant, Activity::Idle, progress),
            StepScope::Brief => {
                self.poll_all(participant, Activity::Warm, progress);
                self.poll_in_turn(participant, Activity::Cold, progress);
            }
        }
    }

    /// Polls all subgroups of this activity.
    fn poll_all(
        &mut self,
        participant: &Participant<F>,
        activity: Activity,
        progress: &mut Progress,
    ) {
        let mut at = 0;
        while let Some(idle) = self.active_set.next(at, activity) {
            self.poll_idle(participant, idle, progress);
            at = idle + 1;
        }
    }

    /// Polls the subgroup of this activity whose turn it is.
    fn poll_in_turn(
        &mut self,
        participant: &Participant<F>,
        activity: Activity,
        progress: &mut Progress,
    ) {
        if let Some(idle) = self.active_set.next_in_turn(activity) {
            self.poll_idle(participant, idle, progress);
        }
    }

    /// Compares the recorded words of an idle subgroup, and steps it where one differs.
    fn poll_idle(&mut self, participant: &Participant<F>, at: usize, progress: &mut Progress) {
        let (subgroups, context) = self.split();
        match subgroups[at].poll(&context) {
            PollResult::Changed => {
                self.active_set.set_active(at);
                self.step_subgroup(participant, at, progress);
            }
            PollResult::BecomesCold => self.active_set.set_cold(at),
            PollResult::Unchanged => {}
        }
    }

    fn step_subgroup(&mut self, participant: &Participant<F>, at: usize, progress: &mut Progress) {
        let (subgroups, mut context) = self.split();
        let subgroup = &mut subgroups[at];
        match subgroup.step(&mut context, progress) {
            Ok(is_idle) => {
                if is_idle {
                    let waits = IdleWaits {
                        wants_acks: subgroup.wants_acks(&*context.sink),
                        awaits_release: subgroup.awaits_release(),
                    };
                    self.active_set.set_idle(at, waits);
                }
            }
            Err(trouble) => self.suspect_member(participant, at, trouble),
        }
    }

    /// Makes all subgroups active, after a change that concerns them.
    pub(crate) fn activate_all(&mut self) {
        self.active_set.reset(self.subgroups.len());
        self.news.forget_index();
    }

    /// Makes those idle subgroups active in which threads have left work.
    fn activate_left_work(&mut self) {
        let mut at = 0;
        while let Some(idle) = self.active_set.next(at, Activity::Idle) {
            if self.subgroups[idle].has_new_work() {
                self.active_set.set_active(idle);
            }
            at = idle + 1;
        }
    }
}
