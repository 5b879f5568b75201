//! One topic's log at a participant: what it appends and when it is complete.
//!
//! ```text
//!   learner   pulls records of a logger by position; drops what is delivered
//!      | the logger has no more
//!   near      pulls on, and keeps what is delivered
//!      | both meet
//!   whole     appends what is delivered; announces that it follows; others pull of it
//!      | it is in the roster of an open group
//!   ready     has all below the base of the epoch, and has recorded the roster
//! ```
//!
//! A log is whole for a generation. What its records hold beyond those of the log that the generation
//! began with was never acknowledged by a majority, and is cut off: the chains of both tell where they
//! part.
//!
//! The methods call the disk, and so they block. Sources: the logged storage level of the Derecho DDS
//! (Spindle, section V-C); PERSISTENT of DDS 1.4 (2.2.3.4).

mod compacting;
mod pull;
#[cfg(all(test, not(loom)))]
#[expect(clippy::unwrap_used)]
mod tests;

use std::collections::VecDeque;

use self::compacting::Compacting;
pub use self::compacting::CompactionTime;
use self::pull::Pull;
use super::history::HistoryLimits;
use super::log::{Disk, LogError, LogHead, LogState, LoggedRecord, TopicLog};
use super::record::RecordMeta;
use super::roster::{Generation, LogEnd, LogGroup, LogId, Logger, Roster};
use crate::limits::LOG_ROSTERS_MAX;
use crate::membership::MemberId;

/// When a log is written through to the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SyncMode {
    /// After each record.
    Each,
    /// After all records that have come since the last time.
    Batch,
    /// After some time at most.
    Interval {
        /// Nanoseconds.
        ns: u64,
    },
}

/// The beginning of a view, between the messages that are delivered before and after it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogMarker {
    /// The view.
    pub view: u64,
    /// First position of the epoch of the topic's subgroup.
    pub base: u64,
    /// This member.
    pub me: MemberId,
    /// The loggers of the topic.
    pub group: Option<LogGroup>,
}

/// Whether a log can be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeeperStatus {
    /// It can.
    Good,
    /// There is no room on the disk: what is delivered waits.
    Full(String),
    /// The records of the others do not go with its own: it learns none of them in this view.
    Barred(String),
    /// It has failed, and is not used any more.
    Dead(String),
}

/// What keepers of a topic tell each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LogPacket {
    /// Asks for records.
    Ask {
        /// What the asking log descends from; 0: from nothing yet.
        lineage: u128,
        /// The end of those that it has.
        after: u64,
        /// The chain of the last one.
        chain: u32,
        /// Bytes that it takes, unless a single record is larger.
        bytes_max: u32,
    },
    /// Records.
    Part {
        /// The place that was asked for.
        after: u64,
        /// [`LoggedRecord`]s, one behind the other.
        records: Vec<u8>,
        /// Position below which the sender has all records on its disk.
        complete: u64,
        /// There are no more on its disk.
        is_end: bool,
        /// How often the sender has removed records by compaction.
        removals: u64,
    },
    /// The sender's records are others before the place that was asked for, or are gone.
    Mismatch {
        /// That place.
        after: u64,
    },
    /// The sender gives none.
    Refused,
}

/// One topic's log at a participant. `H` is a delivered message that is held until it is appended.
#[derive(Debug)]
pub struct LogKeeper<D: Disk, H> {
    log: TopicLog<D>,
    mode: SyncMode,
    marker: Option<LogMarker>,
    /// The generation of which `log` and `live` hold all that was delivered.
    whole: Option<Generation>,
    /// The view in which it is ready.
    ready: Option<u64>,
    live: VecDeque<Live<H>>,
    /// All deliveries below it were handed in.
    delivered_to: u64,
    /// Deliveries from here on are in `live`.
    near: Option<u64>,
    pull: Option<Pull>,
    announced: Option<LogEnd>,
    status: KeeperStatus,
    synced_at_ns: u64,
    /// When what has failed for lack of room is tried again.
    retry_at_ns: Option<u64>,
    compacting: Compacting,
    packets: Vec<(MemberId, LogPacket)>,
}

/// A message that is not appended yet.
#[derive(Debug)]
struct Live<H> {
    generation: u64,
    epoch: u64,
    meta: RecordMeta,
    held: H,
}

/// When a full disk is tried again.
const RETRY_NS: u64 = 100_000_000;
/// Bytes that are appended at a time, but for the last record.
const APPEND_LEN: usize = 1 << 20;

impl<D: Disk, H: AsRef<[u8]>> LogKeeper<D, H> {
    /// Goes on with a log. A roster that its last record was written under was confirmed.
    pub fn new(log: TopicLog<D>, mode: SyncMode) -> Self {
        Self {
            log,
            mode,
            marker: None,
            whole: None,
            ready: None,
            live: VecDeque::new(),
            delivered_to: 0,
            near: None,
            pull: None,
            announced: None,
            status: KeeperStatus::Good,
            synced_at_ns: 0,
            retry_at_ns: None,
            compacting: Compacting::default(),
            packets: Vec::new(),
        }
    }

    /// Its identity.
    pub fn log_id(&self) -> LogId {
        self.log.state().id
    }

    /// Its records.
    pub fn log(&self) -> &TopicLog<D> {
        &self.log
    }

    /// Its records, to be read.
    pub fn log_mut(&mut self) -> &mut TopicLog<D> {
        &mut self.log
    }

    /// Whether it can be used.
    pub fn status(&self) -> &KeeperStatus {
        &self.status
    }

    /// Whether it holds all that was delivered in the present generation.
    pub fn is_whole(&self) -> bool {
        let generation = self.group().map(|group| group.generation);
        self.whole.is_some() && self.whole == generation
    }

    /// Whether it has all records below the base of the epoch on its disk, and its roster.
    pub fn is_ready(&self) -> bool {
        self.ready.is_some() && self.ready == self.marker.as_ref().map(|it| it.view)
    }

    /// Whether anything that was delivered is not appended.
    pub fn is_behind(&self) -> bool {
        !self.live.is_empty()
    }

    /// What readers that come later are to find in it.
    pub fn keep_within(&mut self, limits: HistoryLimits, now_ns: u64) {
        if self.log.head().limits != limits && !self.is_dead() {
            let head = LogHead {
                limits,
                ..self.log.head().clone()
            };
            let set = self.log.set_head(&head);
            self.note(set, now_ns);
        }
    }

    /// Whether a delivery is kept; [`deliver`](Self::deliver) drops the others.
    pub fn wants_live(&self) -> bool {
        !self.is_dead() && (self.whole.is_some() || self.near.is_some())
    }

    /// Positions from the first message that is not on the disk to the last one that was delivered.
    pub fn behind(&self) -> u64 {
        let synced = match self.is_whole() {
            true => self.unsynced_from().unwrap_or(self.delivered_to),
            false => self.log.synced(),
        };
        self.delivered_to.saturating_sub(synced)
    }

    /// Position below which all deliveries are on the disk; `None` if all are.
    pub fn unsynced_from(&self) -> Option<u64> {
        let synced = self.log.synced();
        let first = self.live.front().map(|it| it.meta.position);
        (synced < self.log.appended()).then_some(synced).or(first)
    }

    /// What is announced of the log when its member joins a group.
    pub fn log_end(&mut self) -> LogEnd {
        self.sync_if_good(self.synced_at_ns);
        let end = self.end_now();
        self.announced = Some(end.clone());
        end
    }

    /// What the log has now. More of it may be on the disk by the time that it is announced.
    pub fn end(&self) -> LogEnd {
        self.end_now()
    }

    /// This was announced of it to a group that its member joins.
    pub fn announced(&mut self, end: LogEnd) {
        self.announced = Some(end);
    }

    /// What is to be announced anew, if anything is.
    pub fn announcement(&mut self) -> Option<LogEnd> {
        let marker = self.marker.as_ref()?;
        let now = self.end_now();
        let announced = self.announced.as_ref()?;
        let is_due = match &marker.group {
            Some(group) if !group.loggers.is_empty() => {
                let is_logger = group.log_of(marker.me) == Some(self.log_id());
                let is_written = self.unsynced_from().is_none();
                let catches_up = self.is_whole() && is_written && announced.follows != now.follows;
                let is_whole_there = group.whole.contains(&self.log_id());
                // That of a generation is whole without saying so.
                catches_up && !is_whole_there
                    || self.is_source(group) && !self.is_whole() && !is_same(&now, announced)
                    || is_logger && !group.is_open() && announced.as_of < group.since
                    || self.confirms(group, &now) && announced.confirmed != now.confirmed
            }
            _ => !is_same(&now, announced),
        };
        if !is_due || self.is_dead() {
            return None;
        }
        self.announced = Some(now.clone());
        Some(now)
    }

    /// Whether this log tells the group that its roster is confirmed: the first whole one does.
    fn confirms(&self, group: &LogGroup, now: &LogEnd) -> bool {
        let is_first = group.whole.first() == Some(&now.log);
        is_first && group.rosters.len() > 1 && now.confirmed.as_ref() == group.roster()
    }

    fn end_now(&self) -> LogEnd {
        let state = self.log.state();
        let last = self.log.last();
        let (confirmed, proposed) = rosters_as_known(state, last.generation, last.epoch);
        let group = self.group().filter(|_| self.is_whole());
        LogEnd {
            log: state.id,
            lineage: state.lineage,
            generation: last.generation,
            end: last.end,
            confirmed,
            proposed,
            follows: group.map(|group| group.generation.number),
            as_of: self.marker.as_ref().map_or(0, |marker| marker.view),
        }
    }

    /// A view begins, in which the topic's subgroup begins an epoch or its loggers change.
    pub fn view(&mut self, marker: LogMarker, now_ns: u64) {
        if self.is_dead() {
            return;
        }
        self.append_live(now_ns);
        let is_first = self.marker.is_none();
        let generation = marker.group.as_ref().map(|group| group.generation);
        let goes_on = self.group().map(|group| group.generation) == generation;
        if is_first || !goes_on {
            self.whole = None;
            self.near = None;
            self.pull = None;
            self.live.clear();
        }
        if matches!(self.status, KeeperStatus::Barred(_)) {
            self.status = KeeperStatus::Good;
        }
        self.delivered_to = self.delivered_to.max(marker.base);
        self.ready = None;
        self.marker = Some(marker);
        self.begin_whole(goes_on && !is_first);
        self.make_ready(now_ns);
        self.pull_on(now_ns);
    }

    /// The log with which a generation begins is whole.
    fn begin_whole(&mut self, goes_on: bool) {
        let Some(group) = self.group() else {
            return;
        };
        let begins = self.is_source(group) && !goes_on;
        let end = group.source.map(|source| source.end);
        let last = self.log.last();
        // It may have got other records since it was announced.
        let is_announced = |it: &LogEnd| (it.generation, it.end) == (last.generation, last.end);
        let is_same = self.announced.as_ref().is_none_or(is_announced);
        if begins && is_same && end == Some(last.end) {
            self.whole = Some(group.generation);
        }
    }

    /// A message was delivered: of a PERSISTENT writer of the topic, in order.
    pub fn deliver(&mut self, meta: &RecordMeta, held: H) {
        self.delivered_to = self.delivered_to.max(meta.position + 1);
        // It may have pulled what comes only now.
        let is_pulled = self.is_whole() && meta.position < self.log.last().end;
        if !self.wants_live() || is_pulled {
            return;
        }
        let Some(marker) = &self.marker else {
            return;
        };
        let group = marker.group.as_ref();
        self.live.push_back(Live {
            generation: group.map_or(0, |group| group.generation.number),
            epoch: marker.view,
            meta: *meta,
            held,
        });
    }

    /// Appends what was delivered, writes it through when it is time, and tries again what had no room.
    pub fn flush(&mut self, now_ns: u64) {
        if self.is_dead() || self.retry_at_ns.is_some_and(|at| now_ns < at) {
            return;
        }
        self.append_live(now_ns);
        self.make_ready(now_ns);
        self.pull_on(now_ns);
    }

    /// When [`flush`](Self::flush) has something to do by time.
    pub fn due(&self) -> Option<u64> {
        if self.is_dead() {
            return None;
        }
        let sync = match self.mode {
            SyncMode::Interval { ns } if self.log.synced() < self.log.appended() => {
                Some(self.synced_at_ns.saturating_add(ns))
            }
            _ => None,
        };
        let pull = self.pull.as_ref().map(Pull::due);
        [sync, pull, self.retry_at_ns].into_iter().flatten().min()
    }

    /// All loggers are ready in this view: its roster is confirmed.
    pub fn loggers_ready(&mut self, view: u64, now_ns: u64) {
        if self.ready != Some(view) || self.is_dead() {
            return;
        }
        let mut state = self.log.state().clone();
        if let Some(confirmed) = state.proposed.pop() {
            state.confirmed = Some(confirmed);
            state.proposed.clear();
            let recorded = self.log.record(state);
            self.note(recorded, now_ns);
        }
    }

    /// The group is lost. What it has delivered is appended.
    pub fn group_lost(&mut self, now_ns: u64) {
        self.append_live(now_ns);
        self.sync_if_good(now_ns);
        self.live.clear();
        self.whole = None;
        self.near = None;
        self.pull = None;
        self.ready = None;
        self.marker = None;
        self.delivered_to = 0;
    }

    /// What is to be sent.
    pub fn take_packets(&mut self) -> Vec<(MemberId, LogPacket)> {
        std::mem::take(&mut self.packets)
    }

    fn is_dead(&self) -> bool {
        matches!(self.status, KeeperStatus::Dead(_))
    }

    fn group(&self) -> Option<&LogGroup> {
        self.marker.as_ref()?.group.as_ref()
    }

    fn me(&self) -> Option<Logger> {
        let member = self.marker.as_ref()?.me;
        let log = self.log_id();
        Some(Logger { member, log })
    }

    fn is_source(&self, group: &LogGroup) -> bool {
        let source = group.source.map(|source| source.logger);
        source.is_some() && source == self.me()
    }

    /// Appends what waits, if the log is whole, and writes it through by the mode.
    fn append_live(&mut self, now_ns: u64) {
        if !self.is_dead() && self.is_whole() {
            let done = self.try_append_live(now_ns);
            self.note(done, now_ns);
        }
    }

    fn try_append_live(&mut self, now_ns: u64) -> Result<(), LogError> {
        while !self.live.is_empty() {
            let count = self.append_some()?;
            self.live.drain(..count);
            if self.mode == SyncMode::Each {
                self.log.sync()?;
            }
        }
        let is_due = match self.mode {
            SyncMode::Each | SyncMode::Batch => true,
            SyncMode::Interval { ns } => now_ns.saturating_sub(self.synced_at_ns) >= ns,
        };
        if is_due && self.log.synced() < self.log.appended() {
            self.log.sync()?;
            self.synced_at_ns = now_ns;
        }
        Ok(())
    }

    /// Appends the first messages of one epoch that wait. Returns how many.
    fn append_some(&mut self) -> Result<usize, LogError> {
        let Some(first) = self.live.front() else {
            return Ok(0);
        };
        let (generation, epoch) = (first.generation, first.epoch);
        let count_max = if self.mode == SyncMode::Each {
            1
        } else {
            usize::MAX
        };
        let mut bytes = 0;
        let mut records: Vec<(RecordMeta, &[u8])> = Vec::new();
        for live in self.live.iter().take(count_max) {
            let is_enough = !records.is_empty() && bytes >= APPEND_LEN;
            if is_enough || (live.generation, live.epoch) != (generation, epoch) {
                break;
            }
            bytes += live.held.as_ref().len();
            records.push((live.meta, live.held.as_ref()));
        }
        self.log.append(generation, epoch, &records)?;
        Ok(records.len())
    }

    fn sync_if_good(&mut self, now_ns: u64) {
        if !self.is_dead() && self.log.synced() < self.log.appended() {
            let synced = self.log.sync();
            self.note(synced, now_ns);
        }
    }

    /// Records the roster of the view, if the log is whole and one of it.
    fn make_ready(&mut self, now_ns: u64) {
        if self.is_dead() || self.is_ready() || !self.is_whole() || !self.live.is_empty() {
            return;
        }
        let (Some(marker), Some(me)) = (&self.marker, self.me()) else {
            return;
        };
        let (view, Some(group)) = (marker.view, &marker.group) else {
            return;
        };
        // Whole in the eyes of all: else they might open it anew by what it has announced before.
        if !group.is_open() || !group.loggers.contains(&me) || !group.whole.contains(&me.log) {
            return;
        }
        let Some(state) = next_state(self.log.state(), group) else {
            return;
        };
        self.sync_if_good(now_ns);
        if self.is_dead() {
            return;
        }
        let recorded = match state == *self.log.state() {
            true => Ok(()),
            false => self.log.record(state),
        };
        if self.note(recorded, now_ns) {
            self.ready = Some(view);
        }
    }

    /// Takes note of what the disk has done. Returns whether it went well.
    fn note(&mut self, done: Result<(), LogError>, now_ns: u64) -> bool {
        match done {
            Ok(()) => {
                if matches!(self.status, KeeperStatus::Full(_)) {
                    self.status = KeeperStatus::Good;
                }
                self.retry_at_ns = None;
                true
            }
            Err(error @ LogError::Full { .. }) => {
                self.status = KeeperStatus::Full(error.to_string());
                self.retry_at_ns = Some(now_ns.saturating_add(RETRY_NS));
                false
            }
            Err(error) => {
                self.status = KeeperStatus::Dead(error.to_string());
                self.live.clear();
                self.pull = None;
                self.ready = None;
                self.whole = None;
                self.near = None;
                false
            }
        }
    }
}

/// The rosters of a log. One that its last record was written under was confirmed: only then are samples
/// sent.
fn rosters_as_known(
    state: &LogState,
    generation: u64,
    epoch: u64,
) -> (Option<Roster>, Vec<Roster>) {
    let was_used = |it: &Roster| it.generation.number == generation && it.epoch <= epoch;
    match state.proposed.iter().rposition(was_used) {
        Some(at) => {
            let rest = state.proposed[at + 1..].to_vec();
            (Some(state.proposed[at].clone()), rest)
        }
        None => (state.confirmed.clone(), state.proposed.clone()),
    }
}

/// The state of a log with the group's rosters: all that may be in use, as the last one may not be confirmed.
/// `None` where there are none, or too many.
fn next_state(state: &LogState, group: &LogGroup) -> Option<LogState> {
    let confirmed = state.confirmed.as_ref();
    let at = group.rosters.iter().position(|it| Some(it) == confirmed);
    let proposed = match at {
        Some(at) => &group.rosters[at + 1..],
        None => &group.rosters,
    };
    let next = LogState {
        id: state.id,
        lineage: group.lineage,
        confirmed: confirmed.filter(|_| at.is_some()).cloned(),
        proposed: proposed.to_vec(),
    };
    (!group.rosters.is_empty() && next.proposed.len() <= LOG_ROSTERS_MAX).then_some(next)
}

/// Whether two announcements differ only in their views.
fn is_same(a: &LogEnd, b: &LogEnd) -> bool {
    let as_of = a.as_of;
    *a == LogEnd { as_of, ..b.clone() }
}
