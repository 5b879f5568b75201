//! The history of a participant: its thread, and what others tell it.

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use spindle_dds_core::membership::MemberId;
use spindle_dds_transport::fork::OwnerProcess;
use spindle_dds_transport::library_thread::LibraryThread;
use spindle_dds_transport::thread_settings::ThreadSettings;

use super::TransferId;
use super::feed::{Feed, FeedItem};
use super::kept::{KeptHistory, TopicHistory};
use super::packet::HistoryPacket;
use super::progress::Progress;
use super::thread::HistoryThread;
use crate::error::{Error, Result};
use crate::keys::KeyTable;
use crate::monitor::TransferFigures;
use crate::sample_type::SampleType;

/// What keeps and transfers history in a participant. Its thread begins with the first endpoint whose
/// DURABILITY asks for it, and ends with the participant.
#[derive(Debug)]
pub(crate) struct HistoryService {
    feed: Arc<Feed>,
    progress: Arc<Progress>,
    thread: Mutex<Option<JoinHandle<()>>>,
    is_started: AtomicBool,
    transfers: AtomicU64,
    settings: ThreadSettings,
    /// The topics that this participant keeps, by name.
    topics: Mutex<BTreeMap<String, Arc<TopicHistory>>>,
    /// Names of the keys of the participant.
    keys: Arc<KeyTable>,
    /// Heartbeat timeout: what a joiner does not ask for in that time is not kept for it any longer.
    limit: Duration,
    owner: OwnerProcess,
}

impl HistoryService {
    pub(crate) fn new(settings: ThreadSettings, limit: Duration, keys: Arc<KeyTable>) -> Self {
        Self {
            feed: Arc::default(),
            progress: Arc::default(),
            thread: Mutex::default(),
            is_started: AtomicBool::new(false),
            transfers: AtomicU64::new(0),
            topics: Mutex::default(),
            keys,
            settings,
            limit,
            owner: OwnerProcess::this(),
        }
    }

    /// Starts the thread, unless it runs.
    ///
    /// # Errors
    /// OUT_OF_RESOURCES without a thread; ERROR when the system refuses a setting.
    pub(crate) fn start(&self) -> Result<()> {
        let mut thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        if thread.is_some() {
            return Ok(());
        }
        let history = HistoryThread::new(self.feed.clone(), self.progress.clone(), self.limit);
        let started = LibraryThread::named("spindle-history");
        let started = started.spawn_with(&self.settings, move || history.run());
        *thread = Some(started.map_err(|error| match error.kind() {
            io::ErrorKind::Other => Error::Error(error.to_string()),
            _ => Error::OutOfResources(format!("no thread can be started: {error}")),
        })?);
        self.is_started.store(true, Ordering::Release);
        Ok(())
    }

    /// Whether anything is kept, or got, here.
    pub(crate) fn is_started(&self) -> bool {
        self.is_started.load(Ordering::Acquire)
    }

    /// The name of a new transfer in this participant.
    pub(crate) fn new_transfer(&self) -> TransferId {
        TransferId(self.transfers.fetch_add(1, Ordering::Relaxed) + 1)
    }

    /// What is kept of a topic, from now on.
    pub(crate) fn topic(&self, name: &str, sample_type: &SampleType) -> Arc<TopicHistory> {
        let mut topics = self.topics();
        let known = topics.entry(name.to_owned()).or_insert_with(|| {
            Arc::new(TopicHistory {
                name: name.to_owned(),
                history: Arc::new(KeptHistory::new(sample_type.known_keys(&self.keys))),
            })
        });
        known.clone()
    }

    /// Keeps topics only that are wanted.
    pub(crate) fn retain_topics(&self, is_wanted: impl Fn(&str) -> bool) {
        self.topics().retain(|name, _| is_wanted(name));
    }

    /// The topics that are kept.
    pub(crate) fn topics(&self) -> MutexGuard<'_, BTreeMap<String, Arc<TopicHistory>>> {
        self.topics.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds an item. The thread need not be awake for it before [`wake`](Self::wake).
    pub(crate) fn push(&self, item: FeedItem) {
        self.feed.push(item);
    }

    /// Wakes the thread if it sleeps.
    pub(crate) fn wake(&self) {
        self.feed.wake();
    }

    /// A packet has come from a member, or from a participant that says it is one.
    pub(crate) fn handle(&self, from: MemberId, packet: HistoryPacket) {
        self.feed.push_packet(from, packet);
    }

    /// Transfers that are under way.
    pub(crate) fn figures(&self) -> Vec<TransferFigures> {
        self.progress.figures()
    }

    /// Ends the thread. Waits for it, unless the calling thread is it.
    pub(crate) fn end(&self) {
        if self.owner.is_inherited() {
            return;
        }
        self.feed.stop();
        let ended = self
            .thread
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(ended) = ended
            && ended.thread().id() != thread::current().id()
        {
            let _ = ended.join();
        }
        while self.feed.pop().is_some() {}
    }

    /// The same without waiting: the thread ends by itself.
    pub(crate) fn abandon(&self) {
        self.feed.stop();
    }
}

impl Drop for HistoryService {
    fn drop(&mut self) {
        if !self.owner.is_inherited() {
            self.feed.stop();
        }
    }
}
