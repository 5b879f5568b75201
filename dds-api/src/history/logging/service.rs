//! The logs of a participant: their thread, and what others tell it.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use spindle_dds_core::SubgroupId;
use spindle_dds_core::membership::MemberId;
use spindle_dds_core::storage::log::LogHead;
use spindle_dds_core::storage::{HistoryLimits, LogEnd, SyncMode};
use spindle_dds_transport::fork::OwnerProcess;
use spindle_dds_transport::library_thread::LibraryThread;
use spindle_dds_transport::thread_settings::ThreadSettings;

use super::changes::{LogChange, LogChanges};
use super::counters::LogCounters;
use super::notice::LogTroubles;
use super::packet::LogMessage;
use super::thread::{Fill, Join, LogFeed, LogItem, LogThread};
use super::topic::LoggedTopic;
use crate::error::{Error, Result};
use crate::history::{HistoryService, TopicHistory, service_limits};
use crate::log::LogLock;
use crate::monitor::TopicLogFigures;
#[cfg(test)]
use crate::properties::ParticipantConfig;
use crate::properties::{LogConfig, LogSync};
use crate::topic::TopicCore;

/// What keeps the logs of a participant. Its thread begins with the first of them.
#[derive(Debug)]
pub(crate) struct LogService {
    config: LogConfig,
    domain: u32,
    settings: ThreadSettings,
    feed: Arc<LogFeed>,
    history: Arc<HistoryService>,
    topics: Arc<LoggedTopics>,
    state: Mutex<State>,
    changes: Arc<LogChanges>,
    troubles: Arc<LogTroubles>,
    is_started: AtomicBool,
    /// The number of the next log endpoint.
    next_number: AtomicU64,
    owner: OwnerProcess,
}

/// The topics that are logged, by name.
#[derive(Debug, Default)]
pub(super) struct LoggedTopics {
    topics: Mutex<BTreeMap<String, Arc<LoggedTopic>>>,
    /// What monitors are told of those that have failed.
    failed: Mutex<BTreeMap<String, TopicLogFigures>>,
}

#[derive(Debug, Default)]
struct State {
    /// How many endpoints of this participant ask for the log of a topic.
    users: BTreeMap<String, usize>,
    lock: Option<LogLock>,
    thread: Option<JoinHandle<()>>,
}

/// How long a join waits for the log thread. A disk that stalls does not hold it up for longer.
const SETTLE_WITHIN: Duration = Duration::from_millis(200);

/// Log endpoints have numbers from here on, and others below.
const FIRST_NUMBER: u64 = 1 << 32;

/// Fills the history of a topic with what its log has.
#[derive(Debug)]
pub(crate) struct LogFill {
    feed: Arc<LogFeed>,
    topic: Arc<LoggedTopic>,
}

impl LogFill {
    /// What comes before a position; the history thread is told when it is there.
    pub(crate) fn ask(self, history: Arc<TopicHistory>, base: u64, attempt: u64) {
        let topic = self.topic;
        let fill = Fill {
            history,
            base,
            attempt,
            next: 0,
        };
        self.feed.push(LogItem::Fill(topic, fill));
        self.feed.wake();
    }
}

impl LoggedTopics {
    fn all(&self) -> MutexGuard<'_, BTreeMap<String, Arc<LoggedTopic>>> {
        self.topics.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn failed(&self) -> MutexGuard<'_, BTreeMap<String, TopicLogFigures>> {
        self.failed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The log of this topic is not written any more.
    pub(super) fn remove(&self, topic: &Arc<LoggedTopic>) {
        let mut all = self.all();
        if all
            .get(&topic.name)
            .is_some_and(|it| Arc::ptr_eq(it, topic))
        {
            all.remove(&topic.name);
            self.failed().insert(topic.name.clone(), topic.figures());
        }
    }
}

impl LogService {
    pub(crate) fn new(
        config: LogConfig,
        domain: u32,
        settings: ThreadSettings,
        history: Arc<HistoryService>,
    ) -> Self {
        Self {
            config,
            domain,
            settings,
            feed: Arc::default(),
            history,
            topics: Arc::default(),
            state: Mutex::default(),
            changes: Arc::default(),
            troubles: Arc::default(),
            is_started: AtomicBool::new(false),
            next_number: AtomicU64::new(FIRST_NUMBER),
            owner: OwnerProcess::this(),
        }
    }

    /// Of a participant that is not there.
    #[cfg(test)]
    pub(crate) fn test(config: &ParticipantConfig) -> Self {
        let (threads, limit) = (&config.threads, config.failure_limit);
        let history = HistoryService::new(threads.history, limit, Arc::default());
        Self::new(config.log.clone(), 0, threads.log, Arc::new(history))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A PERSISTENT endpoint of a topic is created. Opens the log of the topic, if this participant logs
    /// and it is the first one. `limits`: what a writer asks to be kept for readers that come later.
    ///
    /// # Errors
    /// PRECONDITION_NOT_MET if another participant writes the directory; ERROR for a log that is damaged;
    /// OUT_OF_RESOURCES without room, or without a thread.
    pub(crate) fn open(
        &self,
        topic: &TopicCore,
        subgroup: SubgroupId,
        limits: Option<HistoryLimits>,
    ) -> Result<()> {
        let Some(directory) = &self.config.directory else {
            return Ok(());
        };
        let mut state = self.state();
        if !state.users.contains_key(&topic.name) {
            if state.lock.is_none() {
                state.lock = Some(self.lock(directory)?);
            }
            let begun = self.begin(&mut state, (topic, directory), subgroup, limits);
            if begun.is_err() && state.users.is_empty() && state.thread.is_none() {
                // What is wrong can be mended while this participant runs.
                state.lock = None;
            }
            begun?;
        }
        *state.users.entry(topic.name.clone()).or_default() += 1;
        Ok(())
    }

    /// Opens the log of a topic.
    fn begin(
        &self,
        state: &mut State,
        (topic, directory): (&TopicCore, &Path),
        subgroup: SubgroupId,
        limits: Option<HistoryLimits>,
    ) -> Result<()> {
        let number = self.next_number.fetch_add(1, Ordering::Relaxed);
        let of_topic = || service_limits(&topic.durability_service());
        let head = self.head(topic, limits.unwrap_or_else(of_topic))?;
        let is_asked = limits.is_some();
        let mode = mode(self.config.sync);
        let place = (subgroup, number, &topic.sample_type);
        let opened = LoggedTopic::open(directory, (&head, is_asked), place, mode)?;
        self.start(state)?;
        let opened = Arc::new(opened);
        self.feed.push(LogItem::Opened(opened.clone()));
        let end = opened.end();
        self.topics.failed().remove(&topic.name);
        self.topics.all().insert(topic.name.clone(), opened.clone());
        self.changes.push(LogChange::Put(opened, end));
        Ok(())
    }

    /// Such an endpoint is deleted.
    pub(crate) fn close(&self, topic: &str) {
        if self.config.directory.is_none() {
            return;
        }
        let mut state = self.state();
        let Some(users) = state.users.get_mut(topic) else {
            return;
        };
        *users = users.saturating_sub(1);
        if *users > 0 {
            return;
        }
        state.users.remove(topic);
        let removed = self.topics.all().remove(topic);
        if let Some(removed) = removed {
            self.changes.push(LogChange::Removed(removed.clone()));
            self.feed.push(LogItem::Closed(removed));
            self.feed.wake();
        }
    }

    fn lock(&self, directory: &Path) -> Result<LogLock> {
        let domain = directory.join(format!("domain-{}", self.domain));
        let failed = |error: &dyn std::fmt::Display| {
            Error::Error(format!("the logs in {}: {error}", domain.display()))
        };
        crate::history::LogDirectory::create(&domain).map_err(|error| failed(&error))?;
        let lock = LogLock::acquire(&domain).map_err(|error| failed(&error))?;
        lock.ok_or_else(|| {
            Error::PreconditionNotMet(format!(
                "another participant, or `spindle log`, writes the logs in {}: give each \
                 participant a spindle.log.directory of its own",
                domain.display()
            ))
        })
    }

    fn head(&self, topic: &TopicCore, limits: HistoryLimits) -> Result<LogHead> {
        let ty = topic.ty.as_ref().map(|ty| ty.logged()).transpose();
        let ty = ty.map_err(|error| Error::Error(format!("topic {}: {error}", topic.name)))?;
        Ok(LogHead {
            domain: self.domain,
            topic: topic.name.clone(),
            type_name: topic.type_name.clone().into_owned(),
            type_information: ty.unwrap_or_default(),
            limits,
        })
    }

    fn start(&self, state: &mut State) -> Result<()> {
        if state.thread.is_some() {
            return Ok(());
        }
        let (feed, changes) = (self.feed.clone(), self.changes.clone());
        let known = (self.topics.clone(), self.troubles.clone());
        let log = LogThread::new(feed, changes, known, self.history.clone());
        let started = LibraryThread::named("spindle-log");
        let started = started.spawn_with(&self.settings, move || log.run());
        state.thread = Some(started.map_err(|error| {
            Error::OutOfResources(format!("no thread can be started: {error}"))
        })?);
        self.is_started.store(true, Ordering::Release);
        Ok(())
    }

    /// Whether any topic is logged here.
    pub(crate) fn is_started(&self) -> bool {
        self.is_started.load(Ordering::Acquire)
    }

    /// The logs that are in trouble, those of other participants included.
    pub(crate) fn troubles(&self) -> &Arc<LogTroubles> {
        &self.troubles
    }

    /// The topics that are logged.
    pub(crate) fn topics(&self) -> Vec<Arc<LoggedTopic>> {
        self.topics.all().values().cloned().collect()
    }

    /// What was written to the logs of these topics.
    pub(crate) fn counters(&self) -> LogCounters {
        let mut sum = LogCounters::default();
        for topic in self.topics.all().values() {
            topic.counters.add_to(&mut sum);
        }
        sum
    }

    /// What monitors are told of the logs, by topic.
    pub(crate) fn figures(&self) -> Vec<TopicLogFigures> {
        let mut all = self.topics.failed().clone();
        let topics = self.topics().into_iter();
        all.extend(topics.map(|topic| (topic.name.clone(), topic.figures())));
        all.into_values().collect()
    }

    /// What fills the history of a topic, if it is logged here.
    pub(crate) fn fill(&self, name: &str) -> Option<LogFill> {
        Some(LogFill {
            feed: self.feed.clone(),
            topic: self.topics.all().get(name)?.clone(),
        })
    }

    /// What is announced of the logs to a group that this participant is about to join: what was
    /// delivered in an earlier one is in them before, if the disk does not stall.
    ///
    /// If it does, the thread is behind, and what it has published last is announced. That is at least what
    /// this participant has ever told others of its logs, so no opening that counts on it lacks what was
    /// acknowledged. What the log has more by the time that the thread sees the new group, it announces then:
    /// until it has, a log that a generation begins with is not whole, and takes no samples.
    pub(crate) fn ends(&self) -> Vec<(Arc<LoggedTopic>, LogEnd)> {
        if !self.is_started() {
            return Vec::new();
        }
        let (told, done) = mpsc::channel();
        self.feed.push(LogItem::Settle(told));
        self.feed.wake();
        // The thread may have ended.
        let _ = done.recv_timeout(SETTLE_WITHIN);
        let number = self.changes.begin_join();
        let topics = self.topics().into_iter();
        let ends = topics.map(|topic| (topic.clone(), topic.end()));
        let ends: Vec<(Arc<LoggedTopic>, LogEnd)> = ends.collect();
        let announced = ends.clone();
        self.feed.push(LogItem::Join(Join { number, announced }));
        self.feed.wake();
        ends
    }

    /// What the group is to be told.
    pub(crate) fn take_changes(&self) -> Vec<LogChange> {
        self.changes.take()
    }

    /// Adds an item. The thread need not be awake for it before [`wake`](Self::wake).
    pub(crate) fn push(&self, item: LogItem) {
        self.feed.push(item);
    }

    /// Wakes the thread if it sleeps.
    pub(crate) fn wake(&self) {
        self.feed.wake();
    }

    /// Logs of a subgroup have more on disk.
    pub(crate) fn words_have_risen(&self) {
        if self.is_started() {
            self.feed.reader_is_ready();
        }
    }

    /// Whether a log waits until others are ready.
    pub(crate) fn awaits_words(&self) -> bool {
        self.changes.awaits_words()
    }

    /// A packet has come from a member, or from a participant that says it is one.
    pub(crate) fn handle(&self, from: MemberId, message: LogMessage) {
        if self.is_started() {
            // In another group it stands for nothing.
            let join = self.changes.joins();
            self.feed.push_packet(from, (join, message));
        }
    }

    /// Ends the thread. Waits for it, unless the calling thread is it.
    pub(crate) fn end(&self) {
        if self.owner.is_inherited() {
            return;
        }
        self.feed.stop();
        let ended = self.state().thread.take();
        if let Some(ended) = ended
            && ended.thread().id() != thread::current().id()
        {
            let _ = ended.join();
        }
        while self.feed.pop().is_some() {}
        self.topics.all().clear();
        self.state().lock = None;
    }

    /// The same without waiting: the thread ends by itself.
    pub(crate) fn abandon(&self) {
        self.feed.stop();
    }
}

impl Drop for LogService {
    fn drop(&mut self) {
        if !self.owner.is_inherited() {
            self.feed.stop();
        }
    }
}

fn mode(sync: LogSync) -> SyncMode {
    match sync {
        LogSync::Each => SyncMode::Each,
        LogSync::Batch => SyncMode::Batch,
        LogSync::Interval(time) => SyncMode::Interval {
            ns: u64::try_from(time.as_nanos()).unwrap_or(u64::MAX),
        },
    }
}
