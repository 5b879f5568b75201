//! Kinds of lives, each drawn from a seed: what the tests, the command line and the mutants
//! have in common.

use super::logged::LoggedPlan;
use super::plan::{Action, LifePlan};

/// A kind of life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scenario {
    /// Everything by chance, see [`LifePlan::draw`].
    Any,
    /// Many write all the time, while members come and crash.
    Busy,
    /// Crashes, most of them in the middle of a view change.
    Crashes,
    /// Many requests that no view can fulfil.
    Refusals,
    /// Members and newcomers lack what they need for a view, at any step of a change.
    Lacking,
    /// Short lives in which no member fails, joins or leaves: a heartbeat seldom wakes a
    /// member that has missed a wake-up.
    Short,
    /// Many subgroups; few are busy at a time.
    ManySubgroups,
    /// Gray failure: members that are suspected while they live and go on sending, by one-way
    /// cuts and pauses shorter and longer than the heartbeat timeout; threads that lose their
    /// processor in the middle of a commit.
    Gray,
    /// Many newcomers at once, some of which a view cannot let in.
    Crowd,
    /// Members that are expelled or lose their majority, one or all at once, and come back: they
    /// send again what the group has not delivered.
    Returning,
    /// Writers and readers with storage levels, that come and go; members that get or give history
    /// crash, leave and come back.
    Storage,
    /// Topics with logs on disks that outlast their members, and whole groups.
    Logged,
    /// A few members, in whose life nothing happens but messages.
    Quiet,
}

impl Scenario {
    /// All, by their names on the command line.
    pub const ALL: [(&'static str, Self); 13] = [
        ("any", Self::Any),
        ("busy", Self::Busy),
        ("crashes", Self::Crashes),
        ("refusals", Self::Refusals),
        ("lacking", Self::Lacking),
        ("short", Self::Short),
        ("many-subgroups", Self::ManySubgroups),
        ("gray", Self::Gray),
        ("crowd", Self::Crowd),
        ("returning", Self::Returning),
        ("storage", Self::Storage),
        ("logged", Self::Logged),
        ("quiet", Self::Quiet),
    ];

    /// The scenario of this name.
    pub fn named(name: &str) -> Option<Self> {
        let mut all = Self::ALL.into_iter();
        all.find_map(|(its, scenario)| (its == name).then_some(scenario))
    }

    /// A life of this kind.
    pub fn draw(self, seed: u64) -> LifePlan {
        let mut plan = LifePlan::draw(seed);
        if !matches!(self, Self::Any | Self::Returning) {
            plan.durable = 0.0;
        }
        match self {
            Self::Any => {}
            Self::Busy => {
                (plan.crashes, plan.fault_bias) = (0.002, 1.0);
                (plan.joins, plan.updates) = (0.01, 0.001);
                (plan.members, plan.members_max) = (4, 20);
                (plan.app_chance, plan.messages) = (0.6, 500);
                (plan.hosts, plan.ack_waits, plan.turns) = (1, 0.5, 4000);
            }
            Self::Crashes => {
                // Groups of several members, of which two are left to be compared, with requests
                // that can be fulfilled and applications that always have something to send.
                (plan.crashes, plan.fault_bias, plan.crowd) = (0.0005, 200.0, 3);
                (plan.members, plan.members_max) = (3 + plan.members % 3, 8);
                (plan.joins, plan.updates) = (0.005, plan.updates.max(0.002));
                (plan.invalid_requests, plan.lacking, plan.lacking_always) = (0.0, 0.0, 0.0);
                (plan.app_chance, plan.messages) = (0.6, 100);
                (plan.slow, plan.turns) = (0.0, 2000);
            }
            Self::Refusals => (plan.invalid_requests, plan.updates, plan.joins) = (0.5, 0.02, 0.01),
            Self::Lacking => {
                (plan.lacking, plan.lacking_always) = (0.2, 0.3);
                (plan.updates, plan.joins, plan.leaves) = (0.01, 0.01, 0.0005);
                (plan.crashes, plan.fault_bias) = (plan.crashes.max(0.0002), 50.0);
                (plan.members_max, plan.slow) = (8, 0.0);
            }
            Self::Short => {
                (plan.crashes, plan.pauses) = (0.0, 0.0);
                (plan.joins, plan.leaves, plan.turns) = (0.0, 0.0, 1000);
            }
            Self::ManySubgroups => {
                plan.config.summary_polling = true;
                (plan.subgroups, plan.hosts) = (40, 1);
                (plan.members, plan.updates) = (3, 0.02);
                (plan.app_chance, plan.messages) = (0.2, 400);
                // A view that begins makes all subgroups active: messages come after the last.
                (plan.turns, plan.calm) = (2000, 1500);
                // A member that prepares a view for long has no subgroups meanwhile.
                plan.slow = 0.0;
            }
            Self::Gray => {
                (plan.cuts, plan.pauses, plan.fault_bias) = (0.001, 0.0005, 20.0);
                (plan.preempted, plan.members) = (0.5, plan.members.max(3));
                (plan.app_chance, plan.messages) = (0.6, 100);
                (plan.limit, plan.turns) = (2000, 8000);
            }
            Self::Crowd => {
                let newcomers = 8 + seed as usize % 17;
                plan.script = vec![(300, Action::Join); newcomers];
                (plan.members, plan.hosts, plan.joins) = (1 + seed as usize % 3, 1, 0.0);
                (plan.messages, plan.turns) = (plan.messages.min(30), plan.turns.min(4000));
                (plan.divisions, plan.availability, plan.slow) = (0.0, false, 0.0);
            }
            Self::Returning => {
                (plan.cuts, plan.pauses, plan.fault_bias) = (0.01, 0.0005, 2.0);
                (plan.crashes, plan.leaves, plan.divisions) = (0.00002, 0.0, 0.0);
                // Only those come that were there before: many members are never all at rest.
                plan.joins = 0.0;
                (plan.preempted, plan.members) = (0.5, plan.members.max(3));
                (plan.app_chance, plan.messages) = (0.6, 300);
                (plan.limit, plan.turns, plan.members_max) = (1500, 12_000, 16);
                (plan.returns, plan.availability) = (0.9, false);
            }
            Self::Storage => {
                (plan.durable, plan.availability, plan.mute) = (0.9, false, 0.0);
                (plan.members, plan.members_max) = (2 + plan.members % 3, 8);
                (plan.subgroups, plan.slow, plan.large) = (1 + plan.subgroups % 2, 0.0, 0.0);
                (plan.joins, plan.updates, plan.leaves) = (0.002, 0.003, 0.0002);
                (plan.crashes, plan.returns) = (plan.crashes.max(0.0001), 0.8);
                (plan.fault_bias, plan.lacking_always) = (5.0, 0.0);
                (plan.app_chance, plan.messages) = (0.3, 60);
                (plan.turns, plan.limit) = (3000, 1500);
                if seed.is_multiple_of(3) {
                    (plan.cuts, plan.pauses, plan.preempted) = (0.005, 0.0003, 0.3);
                }
            }
            Self::Logged => {
                plan.logged = Some(LoggedPlan::draw(seed));
                (plan.availability, plan.mute, plan.divisions) = (false, 0.0, 0.0);
                (plan.members, plan.members_max) = (1 + plan.members % 4, 12);
                (plan.subgroups, plan.slow, plan.large) = (1 + plan.subgroups % 2, 0.0, 0.0);
                (plan.joins, plan.updates, plan.leaves) = (0.003, 0.001, 0.0002);
                (plan.lacking, plan.lacking_always, plan.invalid_requests) = (0.0, 0.0, 0.0);
                (plan.crashes, plan.fault_bias) = ([0.0, 0.0002, 0.0006][seed as usize % 3], 5.0);
                (plan.app_chance, plan.messages) = (0.3, 60);
                (plan.turns, plan.limit) = (2500, 1500);
                if seed.is_multiple_of(4) {
                    (plan.cuts, plan.pauses, plan.preempted) = (0.003, 0.0003, 0.3);
                }
            }
            Self::Quiet => plan = LifePlan::quiet(seed, 3, 5),
        }
        plan
    }
}
