//! The log thread: writes what is delivered, gives and gets records, and tells how much is on the disk.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use spindle_dds_core::membership::MemberId;
use spindle_dds_core::storage::{HistoryLimits, KeeperStatus, LogGroup, LogMarker, RecordMeta};
use spindle_dds_core::{SubgroupHandle, SubgroupId, TopicKey};
use spindle_dds_transport::Rank;

use super::packet::LogMessage;
use super::service::{LogChange, LogChanges, LoggedTopics};
use super::topic::{HeldMessage, LoggedTopic};
use crate::driver::ControlQueue;
use crate::history::feed::Feed;
use crate::history::outbox::Outbox;
use crate::history::{FeedItem, HistoryService, TopicHistory};
use crate::joining::Packet;
use crate::wire::Wire;

/// One thing after the other, as the engine tells it.
pub(crate) enum LogItem {
    Opened(Arc<LoggedTopic>),
    Closed(Arc<LoggedTopic>),
    /// A delivered message of a PERSISTENT writer.
    Message {
        topic: Arc<LoggedTopic>,
        meta: RecordMeta,
        held: HeldMessage,
    },
    /// A view begins.
    View(LogView),
    /// The group is lost: nothing comes of its members any more.
    GroupLost,
    /// A history is to be filled with what the log has before this position.
    Fill {
        topic: Arc<LoggedTopic>,
        history: Arc<TopicHistory>,
        base: u64,
    },
    /// Asks to be told when all before is done.
    Settle(mpsc::Sender<()>),
}

/// The beginning of a view.
pub(crate) struct LogView {
    pub(crate) me: MemberId,
    /// By which packets are sent.
    pub(crate) control_queue: Arc<ControlQueue>,
    pub(crate) places: Vec<LogPlace>,
}

/// A logged topic in a view.
pub(crate) struct LogPlace {
    pub(crate) topic: Arc<LoggedTopic>,
    /// The epoch of its subgroup.
    pub(crate) handle: Arc<SubgroupHandle<Wire>>,
    pub(crate) group: Option<LogGroup>,
    /// Whether this participant is one of the loggers.
    pub(crate) is_logger: bool,
    /// Places of the loggers in the epoch.
    pub(crate) ranks: Vec<Rank>,
    /// What the writers of the topic ask to be kept.
    pub(crate) limits: Option<HistoryLimits>,
}

pub(super) type LogFeed = Feed<LogItem, LogMessage>;

pub(super) struct LogThread {
    feed: Arc<LogFeed>,
    changes: Arc<LogChanges>,
    /// All topics that are logged, as the service knows them.
    known: Arc<LoggedTopics>,
    history: Arc<HistoryService>,
    since: Instant,
    outbox: Outbox,
    control_queue: Option<Arc<ControlQueue>>,
    topics: BTreeMap<TopicKey, Topic>,
}

/// A topic as the thread sees it.
struct Topic {
    logged: Arc<LoggedTopic>,
    place: Option<LogPlace>,
    /// Position after the last message that was taken from the feed.
    taken_to: u64,
    /// All loggers are known to be ready in the present epoch.
    is_confirmed: bool,
    fill: Option<(Arc<TopicHistory>, u64)>,
    /// The text of the last warning.
    told: String,
}

/// Items between two looks at packets.
const ITEMS_MAX: usize = 1024;
/// How soon a packet is sent again for which there was no room.
const RETRY: Duration = Duration::from_millis(5);
/// Bytes of a log that are read at a time.
const READ_LEN: usize = 1 << 20;

impl LogThread {
    pub(super) fn new(
        feed: Arc<LogFeed>,
        changes: Arc<LogChanges>,
        known: Arc<LoggedTopics>,
        history: Arc<HistoryService>,
    ) -> Self {
        Self {
            feed,
            changes,
            known,
            history,
            since: Instant::now(),
            outbox: Outbox::default(),
            control_queue: None,
            topics: BTreeMap::new(),
        }
    }

    pub(super) fn run(mut self) {
        self.feed.set_thread();
        while !self.feed.is_stopped() {
            let any = self.handle_items() | self.handle_packets();
            self.feed.take_reader_ready();
            let now = self.now();
            for topic in self.topics.values_mut() {
                topic.logged.keeper().flush(now);
                topic.confirm(now);
                topic.fill(&self.history, now);
            }
            let mut topics = self.topics.values();
            let awaits = topics.any(Topic::awaits_words);
            self.changes.awaits_words.store(awaits, Ordering::Release);
            self.tell();
            self.outbox.send_waiting();
            if !any {
                self.feed.sleep(self.time_to_sleep());
            }
        }
        // What was delivered is written, as far as the disk allows.
        while !self.feed.is_empty() {
            self.handle_items();
        }
        let now = self.now();
        for topic in self.topics.values() {
            topic.logged.keeper().group_lost(now);
        }
    }

    fn now(&self) -> u64 {
        u64::try_from(self.since.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    fn time_to_sleep(&self) -> Option<Duration> {
        if self.outbox.has_waiting() {
            return Some(RETRY);
        }
        let due = self
            .topics
            .values()
            .filter_map(|it| it.logged.keeper().due());
        let due = due.min()?;
        Some(Duration::from_nanos(due.saturating_sub(self.now())))
    }

    fn handle_items(&mut self) -> bool {
        let mut any = false;
        for _ in 0..ITEMS_MAX {
            let Some(item) = self.feed.pop() else {
                break;
            };
            any = true;
            self.handle_item(item);
        }
        any
    }

    fn handle_item(&mut self, item: LogItem) {
        let now = self.now();
        match item {
            LogItem::Opened(logged) => {
                let topic = Topic {
                    logged: logged.clone(),
                    place: None,
                    taken_to: 0,
                    is_confirmed: false,
                    fill: None,
                    told: String::new(),
                };
                self.topics.insert(logged.key, topic);
            }
            LogItem::Closed(logged) => {
                if let Some(topic) = self.topics.remove(&logged.key) {
                    topic.logged.keeper().group_lost(now);
                }
            }
            LogItem::Message { topic, meta, held } => {
                if let Some(known) = self.topics.get_mut(&topic.key) {
                    known.taken_to = meta.position + 1;
                    topic.keeper().deliver(&meta, held);
                }
            }
            LogItem::View(view) => self.view_begun(view, now),
            LogItem::GroupLost => self.group_lost(now),
            LogItem::Fill {
                topic,
                history,
                base,
            } => {
                if let Some(known) = self.topics.get_mut(&topic.key) {
                    known.fill = Some((history, base));
                }
            }
            LogItem::Settle(told) => {
                // It may have been given up meanwhile.
                let _ = told.send(());
            }
        }
    }

    fn group_lost(&mut self, now: u64) {
        self.outbox.set_control_queue(None);
        self.control_queue = None;
        for topic in self.topics.values_mut() {
            topic.logged.keeper().group_lost(now);
            topic.place = None;
            topic.fill = None;
        }
    }

    fn view_begun(&mut self, begun: LogView, now: u64) {
        if !self.outbox.is_of(&begun.control_queue) {
            self.group_lost(now);
            self.outbox
                .set_control_queue(Some(begun.control_queue.clone()));
            self.control_queue = Some(begun.control_queue);
        }
        for place in begun.places {
            let Some(topic) = self.topics.get_mut(&place.topic.key) else {
                continue;
            };
            // The last words of the epoch before.
            topic.confirm(now);
            if !topic.is_new(&place) {
                continue;
            }
            topic.is_confirmed = false;
            topic.taken_to = topic.taken_to.max(place.handle.base());
            let marker = LogMarker {
                view: place.handle.epoch(),
                base: place.handle.base(),
                me: begun.me,
                group: place.group.clone(),
            };
            let mut keeper = place.topic.keeper();
            if let Some(limits) = place.limits {
                keeper.keep_within(limits, now);
            }
            keeper.view(marker, now);
            drop(keeper);
            topic.place = Some(place);
        }
    }

    fn handle_packets(&mut self) -> bool {
        let mut any = false;
        while let Some((from, message)) = self.feed.pop_packet() {
            any = true;
            let now = self.now();
            if let Some(topic) = self.topics.get(&message.topic) {
                topic.logged.keeper().handle(from, message.packet, now);
            }
        }
        any
    }

    /// Tells others what has changed: other loggers, the group, and writers that wait.
    fn tell(&mut self) {
        let mut has_changed = false;
        let mut dead = Vec::new();
        for (key, topic) in &mut self.topics {
            let mut keeper = topic.logged.keeper();
            for (to, packet) in keeper.take_packets() {
                let message = LogMessage {
                    topic: *key,
                    packet,
                };
                self.outbox.send_to(to, Packet::Log(message).write());
            }
            if let Some(end) = keeper.announcement() {
                self.changes.push(LogChange::Put(topic.logged.clone(), end));
                has_changed = true;
            }
            let status = keeper.status().clone();
            drop(keeper);
            topic.warn(&status);
            if let KeeperStatus::Dead(_) = status {
                dead.push(*key);
            }
        }
        for key in dead {
            if let Some(topic) = self.topics.remove(&key) {
                self.known.remove(&topic.logged);
                self.changes.push(LogChange::Removed(topic.logged));
                has_changed = true;
            }
        }
        self.tell_words();
        if let Some(control_queue) = &self.control_queue
            && has_changed
        {
            control_queue.wake();
        }
    }

    /// Raises the word of each subgroup to the position below which all of its logs have all.
    fn tell_words(&mut self) {
        let mut words: BTreeMap<SubgroupId, (Arc<SubgroupHandle<Wire>>, u64)> = BTreeMap::new();
        let mut ends: BTreeMap<SubgroupId, u64> = BTreeMap::new();
        for topic in self.topics.values() {
            let end = ends.entry(topic.logged.subgroup).or_default();
            *end = topic.taken_to.max(*end);
        }
        for topic in self.topics.values() {
            let Some(place) = topic.place.as_ref().filter(|it| it.is_logger) else {
                continue;
            };
            let subgroup = topic.logged.subgroup;
            let keeper = topic.logged.keeper();
            let word = match keeper.is_ready() {
                false => 0,
                true => {
                    let end = ends.get(&subgroup).copied().unwrap_or(0);
                    keeper.unsynced_from().unwrap_or(end)
                }
            };
            let known = words.entry(subgroup);
            let (_, least) = known.or_insert_with(|| (place.handle.clone(), u64::MAX));
            *least = word.min(*least);
        }
        for (handle, word) in words.into_values() {
            if word > 0 {
                handle.set_persisted(word.max(handle.base()));
            }
        }
    }
}

impl Topic {
    /// Whether a view begins another epoch of the topic's subgroup, or changes its loggers.
    fn is_new(&self, place: &LogPlace) -> bool {
        let is_same = |known: &LogPlace| {
            Arc::ptr_eq(&known.handle, &place.handle) && known.group == place.group
        };
        !self.place.as_ref().is_some_and(is_same)
    }

    /// Whether it waits until all loggers are ready.
    fn awaits_words(&self) -> bool {
        !self.is_confirmed && self.place.as_ref().is_some_and(|place| place.is_logger)
    }

    /// Takes note that all loggers are ready.
    fn confirm(&mut self, now: u64) {
        let Some(place) = &self.place else {
            return;
        };
        if self.is_confirmed || !place.group.as_ref().is_some_and(LogGroup::is_open) {
            return;
        }
        let (handle, base) = (&place.handle, place.handle.base());
        let mut ranks = place.ranks.iter();
        if ranks.all(|rank| handle.persisted(*rank) >= base) {
            self.is_confirmed = true;
            let view = handle.epoch();
            self.logged.keeper().loggers_ready(view, now);
        }
    }

    /// Fills the history of the topic, once the log has all before the base.
    fn fill(&mut self, history: &HistoryService, now: u64) {
        let mut keeper = self.logged.keeper();
        if self.fill.is_none() || !keeper.is_whole() || keeper.is_behind() {
            return;
        }
        let Some((topic, base)) = self.fill.take() else {
            return;
        };
        let limits = keeper.log().head().limits;
        let mut from = 0;
        loop {
            let read = keeper.log_mut().read(from, READ_LEN);
            let records = match read {
                Ok(records) => records,
                Err(error) => {
                    tracing::warn!(topic = self.logged.name, %error, "the log cannot be read");
                    break;
                }
            };
            let before = records.into_iter().map(|it| it.record);
            let before: Vec<_> = before.take_while(|it| it.position() < base).collect();
            let Some(last) = before.last() else {
                break;
            };
            from = last.position() + 1;
            for record in before {
                topic.history.put_logged(record, &limits, now);
            }
        }
        drop(keeper);
        history.push(FeedItem::LogRead { topic, base });
        history.wake();
    }

    /// Warns of what keeps the log from being written, once.
    fn warn(&mut self, status: &KeeperStatus) {
        let text = match status {
            KeeperStatus::Good => "",
            KeeperStatus::Full(text) | KeeperStatus::Barred(text) | KeeperStatus::Dead(text) => {
                text
            }
        };
        if text != self.told {
            text.clone_into(&mut self.told);
            if !text.is_empty() {
                let topic = &self.logged.name;
                tracing::warn!(topic, why = text, "the log of a topic is not written");
            }
        }
    }
}
