//! The logs of a PERSISTENT topic, as its writers and readers here see them.
//!
//! A view says which logs a topic has, and a word of each logger how much of the topic it has on disk
//! ([`LogLevels`]). Writers ask whether an epoch takes samples at all, and whether a sample is acknowledged;
//! readers whether one may be shown.

mod troubles;

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use spindle_dds_core::membership::{MemberId, View};
pub(crate) use spindle_dds_core::storage::{Degree, Logged};
use spindle_dds_core::storage::{EpochPlace, LogGroup, LogGroupState, LogLevels};
use spindle_dds_core::{Committed, SubgroupHandle, SubgroupSpec, TopicKey};
use spindle_dds_transport::Rank;

use self::troubles::name_of;
pub(crate) use self::troubles::name_troubles;
use super::endpoints::view_matcher::subgroup_rank;
use crate::history::LogTroubles;
use crate::properties::{LogAck, LogDeliver};
use crate::wire::Wire;

/// The logs of one topic. It lasts as long as the topic here, from session to session.
pub(crate) struct TopicLogs {
    topic: TopicKey,
    troubles: Arc<LogTroubles>,
    state: Mutex<State>,
    /// 1 more than the number of outages and views that is known to take samples; 0: none is known.
    open: AtomicU64,
}

#[derive(Default)]
struct State {
    levels: LogLevels,
    now: Option<Now>,
}

/// The present epoch.
struct Now {
    outages: u32,
    handle: Arc<SubgroupHandle<Wire>>,
    view: Arc<View>,
    group: Option<LogGroup>,
    /// Of the loggers, in their order.
    ranks: Vec<Rank>,
    /// Index of this participant's.
    own: Option<usize>,
}

impl fmt::Debug for TopicLogs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TopicLogs")
            .field("open", &self.open)
            .finish_non_exhaustive()
    }
}

/// So many logs acknowledge a sample.
impl From<LogAck> for Degree {
    fn from(ack: LogAck) -> Self {
        match ack {
            LogAck::Local => Self::Local,
            LogAck::Quorum => Self::Quorum,
            LogAck::All => Self::All,
        }
    }
}

/// So many logs have a sample that is shown; `None`: it is shown without.
pub(crate) fn degree_of_delivery(deliver: LogDeliver) -> Option<Degree> {
    match deliver {
        LogDeliver::Before => None,
        LogDeliver::AfterLocal => Some(Degree::Local),
        LogDeliver::AfterAll => Some(Degree::All),
    }
}

impl TopicLogs {
    pub(crate) fn new(topic: &str, troubles: Arc<LogTroubles>) -> Self {
        Self {
            topic: TopicKey::of_name(topic),
            troubles,
            state: Mutex::default(),
            open: AtomicU64::new(0),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A view begins with this epoch of the topic's subgroup; `outages`: how often the participant had
    /// lost its group.
    pub(crate) fn enter(
        &self,
        (me, outages): (MemberId, u32),
        topic: &str,
        view: &Arc<View>,
        (spec, handle): (&SubgroupSpec, &Arc<SubgroupHandle<Wire>>),
    ) {
        let mut state = self.state();
        let is_same = |now: &Now| now.outages == outages && now.handle.epoch() == handle.epoch();
        if state.now.as_ref().is_some_and(is_same) {
            return;
        }
        // The last words of the epoch before.
        state.look();
        let group = log_group(view, topic).cloned();
        let loggers = group.iter().flat_map(|it| &it.loggers);
        let loggers =
            loggers.filter_map(|it| Some((it.member, subgroup_rank(spec, view, it.member)?)));
        let (members, ranks): (Vec<MemberId>, Vec<Rank>) = loggers.unzip();
        let place = EpochPlace::of(handle, outages);
        state.levels.enter(place, group.as_ref());
        state.now = Some(Now {
            outages,
            handle: handle.clone(),
            view: view.clone(),
            group,
            ranks,
            own: members.iter().position(|member| *member == me),
        });
    }

    /// Whether an epoch takes samples of PERSISTENT writers: the logs are open, and each logger has
    /// recorded all that came before.
    pub(crate) fn take_samples(&self, outages: u32, epoch: &SubgroupHandle<Wire>) -> bool {
        let tag = tag(outages, epoch.epoch());
        // Relaxed: what the word stands for, the claim finds in the epoch itself.
        if self.open.load(Ordering::Relaxed) == tag {
            return true;
        }
        let mut state = self.state();
        state.look();
        let is_of = |now: &&Now| now.outages == outages && now.handle.epoch() == epoch.epoch();
        let is_open = state
            .now
            .as_ref()
            .filter(is_of)
            .is_some_and(Now::takes_samples);
        if is_open {
            self.open.store(tag, Ordering::Relaxed);
        }
        is_open
    }

    /// Whether the logs are open, and only have to record what came before.
    pub(crate) fn is_recording(&self) -> bool {
        self.state().now.as_ref().is_some_and(Now::is_open)
    }

    /// How a message of this participant stands, which was sent when it had lost its group so often.
    pub(crate) fn of_message(&self, degree: Degree, message: &Committed, outages: u32) -> Logged {
        let mut state = self.state();
        state.look();
        let key = (outages, message.epoch);
        state.levels.of_message(degree, key, message.index)
    }

    /// How the message at a position stands.
    pub(crate) fn at(&self, degree: Degree, position: u64) -> Logged {
        let mut state = self.state();
        match state.levels.at(degree, position) {
            Logged::NotYet if state.look() => state.levels.at(degree, position),
            known => known,
        }
    }

    /// Why the topic takes no samples now, as a sentence without a full stop. `None` if it does.
    pub(crate) fn why_shut(&self) -> Option<String> {
        let mut state = self.state();
        state.look();
        match &state.now {
            Some(now) if now.takes_samples() => None,
            Some(now) => Some(self.with_troubles(now, now.why_shut())),
            None => Some("the group has not taken notice of the writer yet".to_owned()),
        }
    }

    /// The logs that a message waits for, as a sentence without a full stop.
    pub(crate) fn why_not_logged(&self, degree: Degree, message: &Committed) -> String {
        if let Some(why) = self.why_shut() {
            return why;
        }
        let state = self.state();
        let Some(now) = &state.now else {
            return String::new();
        };
        let position = now.handle.position_of(message);
        let end = position.map_or_else(|| now.handle.base(), |position| position + 1);
        let lacking = now.lacking(end);
        let text = match degree {
            Degree::Local => "the log has not recorded it",
            Degree::Quorum => "less than a majority of the logs has recorded it",
            Degree::All => "not all logs have recorded it",
        };
        self.with_troubles(now, format!("{text}: not that of {lacking}"))
    }

    /// Adds which logs of the topic are not written, and why.
    fn with_troubles(&self, now: &Now, text: String) -> String {
        match name_troubles(Some(&now.view), &self.troubles.of_topic(self.topic)) {
            Some(troubles) => format!("{text}; {troubles}"),
            None => text,
        }
    }
}

impl State {
    /// Looks at the words of the present epoch. Returns whether any level has risen.
    fn look(&mut self) -> bool {
        let Some(now) = self.now.as_ref().filter(|now| now.is_open()) else {
            return false;
        };
        let words = now.words();
        self.levels.note(&words, now.own)
    }
}

impl Now {
    fn is_open(&self) -> bool {
        self.group.as_ref().is_some_and(LogGroup::is_open)
    }

    fn words(&self) -> Vec<u64> {
        let ranks = self.ranks.iter();
        ranks.map(|rank| self.handle.persisted(*rank)).collect()
    }

    fn takes_samples(&self) -> bool {
        let base = self.handle.base();
        let has_begun = |word: u64| word > 0 && word >= base;
        let loggers = self.group.as_ref().map_or(0, |it| it.loggers.len());
        // A logger that has no row cannot say anything.
        self.is_open() && self.ranks.len() == loggers && self.words().into_iter().all(has_begun)
    }

    fn why_shut(&self) -> String {
        let Some(group) = &self.group else {
            return "no participant logs the topic (spindle.log.directory)".to_owned();
        };
        match group.state {
            LogGroupState::NoMajority { present, of } => {
                format!("the log is shut: {present} of {of} logs of its roster are there")
            }
            LogGroupState::Lineages(one, other) => format!(
                "the log is shut: there are two logs of different origin, {one} and {other}, see \
                 `spindle log repair --keep`"
            ),
            LogGroupState::Open => format!(
                "the log of {} has not recorded yet what came before",
                self.lacking(self.handle.base().max(1))
            ),
        }
    }

    /// The participants whose logs do not have all records below `end`.
    fn lacking(&self, end: u64) -> String {
        let loggers = self.group.iter().flat_map(|it| &it.loggers);
        let lacking = loggers.zip(self.words()).filter(|(_, word)| *word < end);
        let name = |member| name_of(Some(&self.view), member);
        let names: Vec<String> = lacking.map(|(it, _)| name(it.member)).collect();
        names.join(", ")
    }
}

/// Names an epoch; never 0.
fn tag(outages: u32, epoch: u64) -> u64 {
    (u64::from(outages) << 48) ^ epoch.wrapping_add(1)
}

/// The loggers of a topic in a view.
pub(crate) fn log_group<'v>(view: &'v View, topic: &str) -> Option<&'v LogGroup> {
    view.logs.get(&TopicKey::of_name(topic))
}
