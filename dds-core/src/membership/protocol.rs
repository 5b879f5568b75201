//! One member's part in one view, as a state machine.

use std::collections::BTreeMap;
use std::sync::Arc;

use spindle_dds_transport::{Fabric, FailureCause, PeerSet, Rank};

use super::detector::{Detection, Detector};
use super::proposal::{Proposal, Request, Touched, Trim};
use super::row::{Level, Rows};
use super::view::View;
use crate::ids::SubgroupId;
use crate::limits::REASON_LEN_MAX;

/// The lanes of a member, as the end of a view needs them.
pub trait LaneEnds {
    /// Stops sending in these subgroups: nothing is committed any more, what was
    /// committed is published, nothing more is said of deliveries. True once all
    /// of it is pushed. Called again until then.
    fn wedge(&mut self, which: &Touched) -> bool;

    /// Receives what was published by all who wedged; from then on the counts do
    /// not change. How many messages of each sender's ordered ring are here, by
    /// place, for each of these subgroups that this member is in.
    /// Fails, and is called again, when the row of a member makes no sense.
    fn freeze(&mut self, which: &Touched) -> Result<Vec<Trim>, (Rank, String)>;

    /// Nothing more is read of what this member of the view writes.
    fn fence(&mut self, member: Rank);
}

/// How a group decides what goes on, the same at all members.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rules {
    /// Failure detection.
    pub detection: Detection,
    /// Goes on without a majority of the hosts' members: two halves of a divided
    /// network may both go on, and never become one again.
    pub prefer_availability: bool,
}

/// What a step asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// To be decided on the host: whether the domain goes on like this. The
    /// answer goes to [`Membership::decided`]. Asked once.
    Decide(Decision),
    /// The view is over: deliver what is left of it, then go on in the next.
    Finish(Finish),
    /// This member is out.
    Out(OutReason),
}

/// What is to be decided: whoever decides takes two of one digest for the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// The view that would be next.
    pub next: Arc<View>,
    /// [`Proposal::digest`] of what makes it.
    pub digest: u64,
}

/// How a view ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finish {
    /// What was agreed.
    pub proposal: Arc<Proposal>,
    /// The subgroups that are replaced.
    pub touched: Touched,
    /// The view that it makes.
    pub next: Arc<View>,
}

/// Why a member is out of its group.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OutReason {
    /// It wanted to leave, and nobody is left who would have to agree.
    #[error("it has left")]
    Left,
    /// Another member took it for failed.
    #[error(
        "member {by} takes this one for failed: it did not answer in time, or could not be reached"
    )]
    Expelled {
        /// Who.
        by: Rank,
    },
    /// Too few members are left to know that nobody else goes on.
    #[error(
        "{left} of {of} members are in reach, which is no majority: the others may go on without \
         this one"
    )]
    NoMajority {
        /// Members that can be reached, this one included.
        left: usize,
        /// Members that count.
        of: usize,
    },
    /// It has not what the others deliver.
    #[error("subgroup {subgroup} cannot be delivered as agreed")]
    Behind {
        /// Where.
        subgroup: SubgroupId,
    },
    /// The domain on this host has gone on without this member.
    #[error("the domain has gone on without this member: {0}")]
    Refused(String),
}

/// A member's part in one view.
#[derive(Debug)]
pub struct Membership<F> {
    pub(super) rows: Rows<F>,
    pub(super) view: Arc<View>,
    pub(super) me: Rank,
    pub(super) rules: Rules,
    pub(super) detector: Detector,
    pub(super) suspected: PeerSet,
    pub(super) dead: PeerSet,
    pub(super) causes: BTreeMap<Rank, String>,
    pub(super) requests: Vec<Request>,
    /// Of these, what the end of the view refuses, and why.
    pub(super) refused: Vec<(Request, String)>,
    /// What the leader said it would replace.
    pub(super) intent: Option<Touched>,
    pub(super) wedged: Level,
    pub(super) reported: Level,
    /// The proposal that stands in this member's row.
    pub(super) echo: Option<(Arc<Proposal>, Arc<View>)>,
    pub(super) deciding: bool,
    /// Since when there has been no majority.
    pub(super) alone_since: Option<u64>,
    pub(super) is_decided: bool,
    /// Whose proposal removes this member.
    pub(super) expelled_by: Option<Rank>,
    pub(super) over: bool,
    /// Nobody had said anything in this view when it was looked last.
    silent: bool,
    /// Brief steps since then.
    passed_over: u32,
}

/// Steps in a row that look at nobody's part in the view, at most.
const PASSED_OVER_MAX: u32 = 7;

impl<F: Fabric> Membership<F> {
    /// Begins a view over its control segment. `suspected` are those of its
    /// members that this one suspected already when it began, and `requests` what
    /// it still asks for.
    pub fn new(
        fabric: F,
        view: Arc<View>,
        rules: Rules,
        suspected: &[(Rank, String)],
        requests: Vec<Request>,
    ) -> Self {
        let me = fabric.me();
        let mut this = Self {
            detector: Detector::new(rules.detection, view.members.len()),
            rows: Rows::new(fabric),
            view,
            me,
            rules,
            suspected: PeerSet::EMPTY,
            dead: PeerSet::EMPTY,
            causes: BTreeMap::new(),
            requests,
            refused: Vec::new(),
            intent: None,
            wedged: Level::None,
            reported: Level::None,
            echo: None,
            deciding: false,
            alone_since: None,
            is_decided: false,
            expelled_by: None,
            over: false,
            silent: false,
            passed_over: 0,
        };
        for (rank, cause) in suspected {
            this.suspected.insert(*rank);
            this.causes.insert(*rank, cause.clone());
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

    /// When the next step is due, if nothing else causes one before.
    pub fn due(&self) -> u64 {
        self.detector.due()
    }

    /// Asks the leader for something; what this view does not do stays asked for.
    pub fn request(&mut self, request: Request) {
        self.requests.push(request);
    }

    /// Whether this member has proposed an end of the view.
    #[cfg(all(test, not(loom)))]
    pub(super) fn is_proposing(&self) -> bool {
        self.rows.label(self.me) == Some(self.me)
    }

    /// How much is asked for and not done.
    pub fn requests_open(&self) -> usize {
        self.requests.len()
    }

    /// What is asked for and not done by this view: for the next one.
    pub fn take_requests(&mut self) -> Vec<Request> {
        core::mem::take(&mut self.requests)
    }

    /// What was asked for and is refused, and why, once the view has ended. In the
    /// order in which it was asked for.
    pub fn take_refused(&mut self) -> Vec<(Request, String)> {
        core::mem::take(&mut self.refused)
    }

    /// Those whom this member suspects, with the reasons.
    pub fn suspects(&self) -> impl Iterator<Item = (Rank, &str)> {
        let causes = self.causes.iter();
        causes.map(|(rank, cause)| (*rank, cause.as_str()))
    }

    /// Somebody's row makes no sense, or its lane.
    pub fn suspect(&mut self, rank: Rank, cause: &str, lanes: &mut impl LaneEnds) {
        if rank == self.me || self.suspected.contains(rank) {
            return;
        }
        // First nothing more is read, then it is said: what this member repeats
        // of that row, it has read before.
        self.rows.fabric.fence(rank);
        lanes.fence(rank);
        self.suspected.insert(rank);
        self.causes.insert(rank, shortened(cause));
        let suspected = self.suspected;
        self.rows.tell_suspected(&suspected);
    }

    /// The answer to [`Action::Decide`].
    pub fn decided(&mut self, answer: Result<(), String>) -> Option<Action> {
        if self.over {
            return None;
        }
        match answer {
            Ok(()) => {
                self.is_decided = true;
                None
            }
            Err(reason) => self.out(OutReason::Refused(reason)),
        }
    }

    /// One pass over everything. `now` in nanoseconds of a clock that never falls.
    pub fn step(&mut self, now: u64, lanes: &mut impl LaneEnds) -> Option<Action> {
        if self.over {
            return None;
        }
        let action = self.pass(now, lanes);
        self.rows.ring();
        action
    }

    /// For one step of who goes on and on: whether this one may be left out. That is so for a
    /// few steps in a row while there is nothing to do but to look whether others live and are
    /// silent, which looks at a line or two of each.
    pub fn may_pass_over(&mut self) -> bool {
        let may = self.silent && !self.has_cause() && self.passed_over < PASSED_OVER_MAX;
        self.passed_over = if may { self.passed_over + 1 } else { 0 };
        may
    }

    fn pass(&mut self, now: u64, lanes: &mut impl LaneEnds) -> Option<Action> {
        self.watch(now, lanes);
        self.silent = self.is_silent();
        if self.silent && !self.has_cause() {
            return None;
        }
        if let Some(by) = self.spread(lanes).or(self.expelled_by) {
            return self.out(OutReason::Expelled { by });
        }
        if let Some(finish) = self.finish_if_committed(lanes) {
            return Some(finish);
        }
        if self.leaves_alone() {
            return self.out(OutReason::Left);
        }
        self.ask();
        let leads = self.leader() == self.me;
        if leads {
            self.intend(lanes);
        }
        self.heed_intent(lanes);
        self.wedge(lanes);
        self.report(lanes);
        if leads && self.may_act() {
            self.propose(lanes);
            if let Some(action) = self.decide(now) {
                return Some(action);
            }
        } else if !leads {
            self.repeat(lanes);
        }
        // A leader of one has nobody to wait for.
        self.finish_if_committed(lanes)
    }

    /// Whether this member has something to say. If not, and while nobody has said anything in
    /// this view, nothing finds anything to do. So it is nearly always.
    fn has_cause(&self) -> bool {
        let asks = !self.requests.is_empty() || self.intent.is_some();
        let knows = !self.suspected.is_empty() || self.expelled_by.is_some();
        let decides = self.deciding || self.is_decided || self.alone_since.is_some();
        asks || knows || decides || self.wedged != Level::None
    }

    /// Whether nobody has said anything in this view, this member included.
    fn is_silent(&self) -> bool {
        let mut others = self.rows.others.iter();
        self.rows.is_silent(self.me) && others.all(|rank| self.rows.is_silent(rank))
    }

    pub(super) fn out(&mut self, reason: OutReason) -> Option<Action> {
        self.over = true;
        Some(Action::Out(reason))
    }

    // Who is there.

    pub(super) fn everybody(&self) -> PeerSet {
        (0..self.view.members.len() as u16).map(Rank).collect()
    }

    /// All that are not suspected, this member included.
    pub(super) fn trusted(&self) -> PeerSet {
        self.everybody().without(&self.suspected)
    }

    pub(super) fn trusted_others(&self) -> impl Iterator<Item = Rank> + use<F> {
        let mut others = self.trusted();
        others.remove(self.me);
        others.iter()
    }

    pub(super) fn leader(&self) -> Rank {
        // This member trusts itself, so there is one.
        self.trusted().iter().next().unwrap_or(self.me)
    }

    pub(super) fn level(&self) -> Level {
        match (&self.intent, self.suspected.is_empty()) {
            (_, false) => Level::All,
            (Some(_), true) => Level::Some,
            (None, true) => Level::None,
        }
    }

    pub(super) fn touched(&self) -> Touched {
        match (&self.intent, self.suspected.is_empty()) {
            (Some(touched), true) => touched.clone(),
            _ => Touched::All,
        }
    }

    fn watch(&mut self, now: u64, lanes: &mut impl LaneEnds) {
        // What it carried over from the view before is said first.
        let is_told = || {
            let told = self.rows.suspected(self.me);
            self.suspected.without(&told).is_empty()
        };
        if !self.suspected.is_empty() && !is_told() {
            for rank in self.suspected.iter() {
                self.rows.fabric.fence(rank);
                lanes.fence(rank);
            }
            let suspected = self.suspected;
            self.rows.tell_suspected(&suspected);
        }
        if self.detector.tick(now) {
            self.rows.beat();
        }
        while let Some(failure) = self.rows.fabric.poll() {
            if failure.cause == FailureCause::ProcessEnded {
                self.dead.insert(failure.peer);
                let dead = self.dead;
                self.rows.tell_dead(&dead);
            }
            // Its last words may have come with the news of its end.
            if !self.rows.is_committed(failure.peer) {
                self.suspect(failure.peer, &failure.cause.to_string(), lanes);
            }
        }
        let others = self.rows.others.without(&self.suspected);
        for rank in others.iter() {
            let beat = self.rows.heartbeat(rank);
            if self.detector.is_late(rank, beat, now) && !self.rows.is_committed(rank) {
                let cause = match beat {
                    0 => "it has not begun the view in time",
                    _ => "its heartbeat has stopped",
                };
                self.suspect(rank, cause, lanes);
            }
        }
    }

    /// Suspicions of others become one's own. Returns who suspects this member.
    fn spread(&mut self, lanes: &mut impl LaneEnds) -> Option<Rank> {
        let everybody = self.everybody();
        for rank in self.trusted_others() {
            // Before a word of it is believed.
            if !self.rows.is_sound(rank, &everybody) {
                self.suspect(rank, "its row makes no sense", lanes);
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
                self.suspect(suspect, &format!("member {rank} suspects it"), lanes);
            }
        }
        None
    }
}

/// What may stand in a proposal: a cause can come from a peer's.
fn shortened(cause: &str) -> String {
    let mut end = cause.len().min(REASON_LEN_MAX);
    while !cause.is_char_boundary(end) {
        end -= 1;
    }
    cause[..end].to_owned()
}

impl Rules {
    /// Rules with this failure detection, under which a majority of the hosts goes on.
    pub fn new(detection: Detection) -> Self {
        Self {
            detection,
            prefer_availability: false,
        }
    }
}
