//! One member's part in one view, as a state machine.

use std::collections::BTreeMap;
use std::sync::Arc;

use spindle_dds_transport::{Fabric, FailureCause, PeerSet, Rank};

use super::asking::OpenRequest;
use super::detector::{Detection, Detector, DetectorFigures, Lateness, is_load};
use super::pace::Pace;
use super::preparing::{Announced, Announcer};
use super::proposal::{Proposal, Refusal, Request, Touched, Trim};
use super::row::{Level, Rows};
use super::view::View;
use crate::counters::Traffic;
use crate::ids::SubgroupId;
use crate::limits::REASON_LEN_MAX;

/// A member's subgroups, as the end of a view needs them.
pub trait SubgroupEnds {
    /// Wedges these subgroups: commits are refused, what was committed is published, and
    /// deliveries are not acknowledged any more. True once everything is pushed; called again
    /// until then.
    fn wedge(&mut self, which: &Touched) -> bool;

    /// Receives what the wedged members have published; from then on the counts do not change.
    /// Returns, for each of these subgroups that this member is in, how many messages of each
    /// sender's ordered ring have been received, by place. Fails, and may be called again, if
    /// the row of a member violates the protocol.
    fn freeze(&mut self, which: &Touched) -> Result<Vec<Trim>, (Rank, String)>;

    /// Stops reading what this member of the view writes.
    fn fence(&mut self, member: Rank);
}

/// Rules of a group; equal at all members.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rules {
    /// Failure detection.
    pub detection: Detection,
    /// Whether a part of a divided network without a majority goes on. Both parts may then go
    /// on, and never become one group again.
    pub prefer_availability: bool,
}

/// What a step asks of its caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Prepare everything that this view needs. The answer goes to [`Membership::prepared`]. What
    /// was prepared before for the same view is not needed any more.
    Prepare(Preparation),
    /// What was prepared is not needed any more.
    CallOff,
    /// Another member cannot prepare this view: it is not waited for any more. An answer is not
    /// needed.
    StopPreparing {
        /// [`Preparation::number`].
        number: u64,
    },
    /// Requests of this member are refused, with the reasons. The view goes on.
    Refused(Vec<(Request, Refusal)>),
    /// Decide on this host whether the domain goes on with this view. The answer goes to
    /// [`Membership::decided`]. Asked once in a view.
    Decide(Decision),
    /// The view is over: deliver up to the trims, then install the next view.
    Finish(Finish),
    /// This member is not in the group any more.
    Out(OutReason),
}

/// A view that is about to be proposed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Preparation {
    /// Its number among those of the present view; they rise.
    pub number: u64,
    /// The proposal that would make it, without trims.
    pub proposal: Arc<Proposal>,
    /// The subgroups whose epochs it ends.
    pub touched: Touched,
    /// The view; where these subgroups begin is not known yet.
    pub next: Arc<View>,
}

/// A decision to be made. Two decisions with one digest are the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// The view that is proposed.
    pub next: Arc<View>,
    /// [`Proposal::digest`] of the proposal that makes it.
    pub digest: u64,
}

/// How a view ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finish {
    /// The proposal that was agreed. If its preparation has a number, all members have made what
    /// the next view needs; else they make it now.
    pub proposal: Arc<Proposal>,
    /// The subgroups whose epochs end.
    pub touched: Touched,
    /// The view that it makes.
    pub next: Arc<View>,
}

/// Why a member is out of its group.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OutReason {
    /// It has left.
    #[error("it has left")]
    Left,
    /// It was expelled: another member suspected it.
    #[error(
        "expelled: member {by} suspected this one, as it did not answer in time or could not be reached"
    )]
    Expelled {
        /// The member that suspected it first, as far as this one knows.
        by: Rank,
    },
    /// Too few members can be reached to know that no other part of the group goes on.
    #[error(
        "no majority: {left} of {of} members can be reached, and the others may go on without this \
         one"
    )]
    NoMajority {
        /// Members that can be reached, this one included.
        left: usize,
        /// Members that count: those that did not leave, and of whose death no other member of
        /// their host has told.
        of: usize,
    },
    /// It lacks messages that the others deliver.
    #[error("subgroup {subgroup} cannot be delivered as agreed")]
    Behind {
        /// The subgroup that lacks them.
        subgroup: SubgroupId,
    },
    /// This member led, and the record of the domain on this host did not take its decision: it
    /// has a view without this member, or cannot be written.
    #[error("this member cannot record the next view: {0}")]
    Refused(String),
    /// Its driver cannot go on with it, for this reason.
    #[error("{0}")]
    Driver(String),
}

/// A member's part in one view.
#[derive(Debug)]
pub struct Membership<F> {
    pub(super) rows: Rows<F>,
    pub(super) view: Arc<View>,
    pub(super) me: Rank,
    pub(super) rules: Rules,
    pub(super) detector: Detector,
    /// Members that this one suspects; it only grows, and never contains this one. All of them
    /// are fenced.
    pub(super) suspected: PeerSet,
    /// Members whose process has ended, as the fabric has reported: a part of `suspected`,
    /// but for those that had committed before.
    pub(super) known_dead: PeerSet,
    /// Why each suspected member is suspected.
    pub(super) suspicion_causes: BTreeMap<Rank, String>,
    /// This member's requests that no view has fulfilled or refused.
    pub(super) requests: Vec<OpenRequest>,
    /// Number of these that stand in this member's row, or need not.
    pub(super) requests_published: usize,
    /// The requests in this member's row.
    pub(super) request_text: Vec<u8>,
    /// How many bytes they become when they are read.
    pub(super) requests_len: usize,
    /// Whether it has no room for the next request, in this view.
    pub(super) is_request_row_full: bool,
    /// Refused requests that the driver has not been told of, with the reasons.
    pub(super) refused: Vec<(Request, Refusal)>,
    /// All refusals that the leader has announced.
    pub(super) refusals: Vec<Refusal>,
    /// Number of the last intent that this member has read.
    pub(super) intent_read: u64,
    /// The view that the leader has announced and not called off.
    pub(super) announced: Option<Announced>,
    /// What this member has announced as the leader.
    pub(super) announcer: Announcer,
    /// How many newcomers the next view lets in.
    pub(super) pace: Pace,
    /// How much of the view is wedged here; as published.
    pub(super) wedged_level: Level,
    /// How much of the view this member has reported its counts of; at most `wedged_level`.
    pub(super) reported_level: Level,
    /// The proposal that stands in this member's row, and the view it makes; set once.
    pub(super) echo: Option<(Arc<Proposal>, Arc<View>)>,
    /// Whether [`Action::Decide`] has been asked.
    pub(super) is_deciding: bool,
    /// Whether it has been answered with yes.
    pub(super) is_decided: bool,
    /// Since when this leader waits for a majority.
    pub(super) no_majority_since_ns: Option<u64>,
    /// The member whose proposal removes this one.
    pub(super) expelled_by: Option<Rank>,
    /// Whether the view has ended here, one way or another: no further step does anything.
    pub(super) is_over: bool,
    /// Whether at the last step no member had published anything but heartbeats since this one
    /// had nothing to do.
    was_silent: bool,
    /// By rank: what each member had published then ([`Rows::published`]).
    heard: Vec<u64>,
    /// Steps skipped in a row since the last one that was taken; at most [`STEPS_SKIPPED_MAX`].
    steps_skipped: u32,
}

/// Most steps in a row that [`Membership::may_skip_step`] allows to skip.
const STEPS_SKIPPED_MAX: u32 = 7;

impl<F: Fabric> Membership<F> {
    /// Begins a view over its control segment. `suspected` are members of it that this one
    /// suspected already in the view before, and `requests` its requests that are still open.
    pub fn new(
        fabric: F,
        view: Arc<View>,
        rules: Rules,
        suspected: &[(Rank, String)],
        requests: Vec<OpenRequest>,
    ) -> Self {
        let me = fabric.me();
        let mut this = Self {
            detector: Detector::new(rules.detection, view.members.len()),
            heard: vec![0; view.members.len()],
            rows: Rows::new(fabric),
            view,
            me,
            rules,
            suspected: PeerSet::EMPTY,
            known_dead: PeerSet::EMPTY,
            suspicion_causes: BTreeMap::new(),
            requests,
            requests_published: 0,
            request_text: Vec::new(),
            requests_len: 0,
            is_request_row_full: false,
            refused: Vec::new(),
            refusals: Vec::new(),
            intent_read: 0,
            announced: None,
            announcer: Announcer::default(),
            pace: Pace::default(),
            wedged_level: Level::None,
            reported_level: Level::None,
            echo: None,
            is_deciding: false,
            no_majority_since_ns: None,
            is_decided: false,
            expelled_by: None,
            is_over: false,
            was_silent: false,
            steps_skipped: 0,
        };
        for (rank, cause) in suspected {
            this.suspected.insert(*rank);
            this.suspicion_causes.insert(*rank, cause.clone());
        }
        this
    }

    /// The view.
    pub fn view(&self) -> &Arc<View> {
        &self.view
    }

    /// This member's rank.
    pub fn me(&self) -> Rank {
        self.me
    }

    /// Its control segment.
    pub fn fabric(&self) -> &F {
        &self.rows.fabric
    }

    /// Time at which the next step is due, unless something causes one before.
    pub fn due(&self) -> u64 {
        let heartbeat_at_ns = self.detector.next_heartbeat_at_ns();
        match self.announcer.pauses_until_ns {
            Some(until_ns) => until_ns.min(heartbeat_at_ns),
            None => heartbeat_at_ns,
        }
    }

    /// Requests something of the leader. A request that this view does not fulfil stays open.
    pub fn request(&mut self, request: Request) {
        self.requests.push(OpenRequest::from(request));
    }

    /// Whether this member has proposed an end of the view.
    #[cfg(all(test, not(loom)))]
    pub(super) fn is_proposing(&self) -> bool {
        self.rows.proposer(self.me) == Some(self.me)
    }

    /// What this member has pushed in the view's control segment since the last call.
    pub(crate) fn take_traffic(&mut self) -> Traffic {
        self.rows.take_traffic()
    }

    /// Number of open requests.
    pub fn requests_open(&self) -> usize {
        let open = self.requests.iter();
        open.filter(|open| open.refusal.is_none()).count()
    }

    /// Takes the requests that this view has not settled, for the next one.
    pub fn take_requests(&mut self) -> Vec<OpenRequest> {
        core::mem::take(&mut self.requests)
    }

    /// Takes the requests that the end of the view refuses, with the reasons, in their order.
    pub fn take_refused(&mut self) -> Vec<(Request, Refusal)> {
        core::mem::take(&mut self.refused)
    }

    /// What this member knows of the heartbeats of the others.
    pub fn detector_figures(&self) -> DetectorFigures {
        let is_suspected = |rank| self.suspected.contains(rank);
        self.detector.figures(self.me, is_suspected)
    }

    /// Suspected members, with the causes.
    pub fn suspects(&self) -> impl Iterator<Item = (Rank, &str)> {
        let causes = self.suspicion_causes.iter();
        causes.map(|(rank, cause)| (*rank, cause.as_str()))
    }

    /// Suspects a member, for example because its row violates the protocol. A member is
    /// fenced before the suspicion is published: so what this one publishes later never rests
    /// on something that was read of the suspected member after it.
    pub fn suspect(&mut self, rank: Rank, cause: &str, subgroups: &mut impl SubgroupEnds) {
        if rank == self.me || self.suspected.contains(rank) {
            return;
        }
        self.rows.fabric.fence(rank);
        subgroups.fence(rank);
        self.suspected.insert(rank);
        self.suspicion_causes.insert(rank, shortened(cause));
        let suspected = self.suspected;
        self.rows.publish_suspected(&suspected);
    }

    /// The answer to [`Action::Decide`].
    pub fn decided(&mut self, answer: Result<(), String>) -> Option<Action> {
        if self.is_over {
            return None;
        }
        match answer {
            Ok(()) => {
                self.is_decided = true;
                None
            }
            Err(reason) => self.stop(OutReason::Refused(reason)),
        }
    }

    /// One pass over all predicates. `now` is in nanoseconds of a monotonic clock.
    pub fn step(&mut self, now: u64, subgroups: &mut impl SubgroupEnds) -> Option<Action> {
        if self.is_over {
            return None;
        }
        self.steps_skipped = 0;
        let action = self.pass(now, subgroups);
        self.rows.flush();
        action
    }

    /// Whether a thread that steps again and again may skip this step: for a few steps in a
    /// row, while the only work is to look for failures and for a first word of others, which
    /// reads a cache line or two of each member.
    pub fn may_skip_step(&mut self) -> bool {
        let may = self.was_silent && !self.has_work() && self.steps_skipped < STEPS_SKIPPED_MAX;
        self.steps_skipped = if may { self.steps_skipped + 1 } else { 0 };
        may
    }

    fn pass(&mut self, now: u64, subgroups: &mut impl SubgroupEnds) -> Option<Action> {
        if self.requests_published < self.requests.len() && self.rows.heartbeat(self.me) == 0 {
            // Before the first heartbeat: a leader that knows that all have begun sees what they ask.
            self.publish_requests();
        }
        self.detect_failures(now, subgroups);
        self.was_silent = self.is_silent();
        if self.was_silent && !self.has_work() {
            return None;
        }
        // What is published from here on is heard at the next step.
        let heard = self.published_by_all();
        let action = self.pass_predicates(now, subgroups);
        if action.is_none() && !self.has_work() {
            self.heard = heard;
        }
        action
    }

    fn pass_predicates(&mut self, now: u64, subgroups: &mut impl SubgroupEnds) -> Option<Action> {
        if let Some(by) = self.adopt_suspicions(subgroups).or(self.expelled_by) {
            return self.stop(OutReason::Expelled { by });
        }
        if let Some(finish) = self.finish_if_committed(subgroups) {
            return Some(finish);
        }
        if self.is_last_leaving() {
            return self.stop(OutReason::Left);
        }
        self.publish_requests();
        let stops = self.hear_lack(subgroups);
        self.publish_answer();
        if stops.is_some() {
            return stops;
        }
        let leads = self.leader() == self.me;
        if leads {
            self.announce(now, subgroups);
        }
        if let Some(action) = self.read_intent(subgroups) {
            return Some(action);
        }
        if !self.refused.is_empty() {
            return Some(Action::Refused(core::mem::take(&mut self.refused)));
        }
        self.wedge(subgroups);
        self.report(subgroups);
        if leads && self.may_propose() {
            self.propose(subgroups);
            if let Some(action) = self.decide(now) {
                return Some(action);
            }
        } else if !leads {
            self.echo_leader(subgroups);
        }
        // A leader that is alone has committed in this step.
        self.finish_if_committed(subgroups)
    }

    /// Whether this member takes part in a view change. If it does not, and the view is
    /// silent, no predicate finds anything to do; this is the usual state.
    fn has_work(&self) -> bool {
        let asks = self.requests_published < self.requests.len()
            || !self.refused.is_empty()
            || self.announced.is_some()
            || self.pace.is_measured()
            || self.announcer.pauses_until_ns.is_some();
        let knows = !self.suspected.is_empty() || self.expelled_by.is_some();
        let decides = self.is_deciding || self.is_decided || self.no_majority_since_ns.is_some();
        asks || knows || decides || self.wedged_level != Level::None
    }

    /// Whether no member, this one included, has published anything but heartbeats since this
    /// one had nothing to do.
    fn is_silent(&self) -> bool {
        let mut heard = (0..).map(Rank).zip(&self.heard);
        heard.all(|(rank, heard)| self.rows.published(rank) == *heard)
    }

    fn published_by_all(&self) -> Vec<u64> {
        let ranks = (0..self.heard.len() as u16).map(Rank);
        ranks.map(|rank| self.rows.published(rank)).collect()
    }

    pub(super) fn stop(&mut self, reason: OutReason) -> Option<Action> {
        self.is_over = true;
        Some(Action::Out(reason))
    }

    pub(super) fn all_members(&self) -> PeerSet {
        (0..self.view.members.len() as u16).map(Rank).collect()
    }

    /// All members that are not suspected, this one included.
    pub(super) fn trusted(&self) -> PeerSet {
        self.all_members().without(&self.suspected)
    }

    pub(super) fn trusted_others(&self) -> impl Iterator<Item = Rank> + use<F> {
        let mut others = self.trusted();
        others.remove(self.me);
        others.iter()
    }

    pub(super) fn leader(&self) -> Rank {
        // A member never suspects itself, so there is one.
        self.trusted().iter().next().unwrap_or(self.me)
    }

    pub(super) fn level(&self) -> Level {
        let is_prepared = |announced: &Announced| announced.ends_view;
        match self.suspected.is_empty() {
            false => Level::All,
            true if self.announced.as_ref().is_some_and(is_prepared) => Level::Some,
            true => Level::None,
        }
    }

    pub(super) fn touched(&self) -> Touched {
        match (&self.announced, self.suspected.is_empty()) {
            (Some(announced), true) => announced.preparation.touched.clone(),
            _ => Touched::All,
        }
    }

    fn detect_failures(&mut self, now: u64, subgroups: &mut impl SubgroupEnds) {
        // Suspicions from the view before are published first.
        let is_published = || {
            let published = self.rows.suspected(self.me);
            self.suspected.without(&published).is_empty()
        };
        if !self.suspected.is_empty() && !is_published() {
            for rank in self.suspected.iter() {
                self.rows.fabric.fence(rank);
                subgroups.fence(rank);
            }
            let suspected = self.suspected;
            self.rows.publish_suspected(&suspected);
        }
        if self.detector.poll(now) {
            self.rows.publish_heartbeat();
        }
        while let Some(failure) = self.rows.fabric.poll() {
            if failure.cause == FailureCause::ProcessEnded {
                self.known_dead.insert(failure.peer);
                let dead = self.known_dead;
                self.rows.publish_dead(&dead);
            }
            // Its commit may have landed before the report of its failure.
            if !self.rows.is_committed(failure.peer) {
                self.suspect(failure.peer, &failure.cause.to_string(), subgroups);
            }
        }
        let others = self.rows.others.without(&self.suspected);
        let mut late = PeerSet::EMPTY;
        for rank in others.iter() {
            let lateness = self.detector.lateness(rank, self.rows.heartbeat(rank), now);
            if lateness != Lateness::None && !self.rows.is_committed(rank) {
                late.insert(rank);
            }
        }
        if !late.is_empty() {
            self.suspect_late(now, &late, others.len(), subgroups);
        }
    }

    /// Suspects members that are late; where these are most of the `others`, only those that are too
    /// late for a group under load.
    #[cold]
    fn suspect_late(
        &mut self,
        now: u64,
        late: &PeerSet,
        others: usize,
        subgroups: &mut impl SubgroupEnds,
    ) {
        let is_load = is_load(late.len(), others);
        for rank in late.iter() {
            let heartbeat = self.rows.heartbeat(rank);
            let lateness = self.detector.lateness(rank, heartbeat, now);
            if lateness == Lateness::VeryLate || lateness == Lateness::Late && !is_load {
                let cause = match heartbeat {
                    0 => "it has not begun the view in time",
                    _ => "its heartbeat has stopped",
                };
                self.suspect(rank, cause, subgroups);
            }
        }
    }

    /// Adopts the suspicions of trusted members. Returns a member that suspects this one.
    fn adopt_suspicions(&mut self, subgroups: &mut impl SubgroupEnds) -> Option<Rank> {
        let all_members = self.all_members();
        for rank in self.trusted_others() {
            // A row is input from another process: nothing in it is used before this check.
            if !self.rows.is_valid(rank, &all_members) {
                self.suspect(rank, "its row violates the protocol", subgroups);
                continue;
            }
            let theirs = self.rows.suspected(rank);
            if theirs.contains(self.me) {
                return Some(rank);
            }
            for suspect in theirs.without(&self.suspected).iter() {
                if suspect.index() >= self.view.members.len() {
                    break;
                }
                self.suspect(suspect, &format!("member {rank} suspects it"), subgroups);
            }
        }
        None
    }
}

/// A cause, cut to the length that a proposal may carry: it may come from another member's.
pub(super) fn shortened(cause: &str) -> String {
    let mut end = cause.len().min(REASON_LEN_MAX);
    while !cause.is_char_boundary(end) {
        end -= 1;
    }
    cause[..end].to_owned()
}

impl Rules {
    /// Rules with this failure detection, by which only a majority goes on.
    pub fn new(detection: Detection) -> Self {
        Self {
            detection,
            prefer_availability: false,
        }
    }
}
