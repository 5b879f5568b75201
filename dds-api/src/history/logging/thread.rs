//! The log thread: writes what is delivered, gives and gets records, and tells how much is on the disk.

use std::collections::BTreeMap;
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use spindle_dds_core::membership::MemberId;
use spindle_dds_core::storage::{
    HistoryLimits, KeeperStatus, LogEnd, LogGroup, LogMarker, RecordMeta,
};
use spindle_dds_core::{SubgroupHandle, SubgroupId, TopicKey};
use spindle_dds_transport::Rank;

use super::changes::{LogChange, LogChanges};
use super::compacting::Compacting;
use super::notice::{LogTroubles, Notices};
use super::packet::LogMessage;
use super::service::LoggedTopics;
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
    Fill(Arc<LoggedTopic>, Fill),
    /// The participant joins a group: what comes from here on is of that one.
    Join(Join),
    /// Asks to be told when all before is done.
    Settle(mpsc::Sender<()>),
}

/// A history that is to have what the log has before a position.
pub(crate) struct Fill {
    pub(super) history: Arc<TopicHistory>,
    pub(super) base: u64,
    /// Of the history: which attempt to get it this is.
    pub(super) attempt: u64,
    /// Records before this position are there.
    pub(super) next: u64,
}

/// A group is joined.
pub(crate) struct Join {
    /// How often one was.
    pub(super) number: u64,
    /// What it was told of the logs.
    pub(super) announced: Vec<(Arc<LoggedTopic>, LogEnd)>,
}

/// The beginning of a view.
pub(crate) struct LogView {
    pub(crate) me: MemberId,
    /// The other members.
    pub(crate) others: Vec<MemberId>,
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

/// Packets have the count of joins at which they came.
pub(super) type LogFeed = Feed<LogItem, (u64, LogMessage)>;

pub(super) struct LogThread {
    feed: Arc<LogFeed>,
    changes: Arc<LogChanges>,
    /// All topics that are logged, as the service knows them.
    known: Arc<LoggedTopics>,
    troubles: Arc<LogTroubles>,
    notices: Notices,
    history: Arc<HistoryService>,
    since: Instant,
    outbox: Outbox,
    control_queue: Option<Arc<ControlQueue>>,
    /// The count of joins at which it is.
    join: u64,
    topics: BTreeMap<TopicKey, Topic>,
    /// When monitors are told next, if anything has changed since.
    publish_at: Option<u64>,
    /// Epochs in which a log that counts is gone: nothing more is told of them.
    stopped: BTreeMap<SubgroupId, Arc<SubgroupHandle<Wire>>>,
}

/// A topic as the thread sees it.
struct Topic {
    logged: Arc<LoggedTopic>,
    place: Option<LogPlace>,
    /// Position after the last message that was taken from the feed.
    taken_to: u64,
    /// All loggers are known to be ready in the present epoch.
    is_confirmed: bool,
    fill: Option<Fill>,
    compacting: Compacting,
    /// The text of the last warning.
    told: String,
}

/// Items between two looks at packets.
const ITEMS_MAX: usize = 1024;
/// How soon a packet is sent again for which there was no room.
const RETRY: Duration = Duration::from_millis(5);
/// From one telling of monitors to the next.
const PUBLISH_EVERY: Duration = Duration::from_millis(100);
/// Bytes of a log that are read at a time.
const READ_LEN: usize = 1 << 20;

impl LogThread {
    pub(super) fn new(
        feed: Arc<LogFeed>,
        changes: Arc<LogChanges>,
        (known, troubles): (Arc<LoggedTopics>, Arc<LogTroubles>),
        history: Arc<HistoryService>,
    ) -> Self {
        Self {
            feed,
            changes,
            known,
            troubles,
            notices: Notices::default(),
            history,
            since: Instant::now(),
            outbox: Outbox::default(),
            control_queue: None,
            join: 0,
            topics: BTreeMap::new(),
            publish_at: None,
            stopped: BTreeMap::new(),
        }
    }

    pub(super) fn run(mut self) {
        self.feed.set_thread();
        while !self.feed.is_stopped() {
            let any = self.handle_items() | self.handle_packets();
            self.feed.take_reader_ready();
            let now = self.now();
            let mut topics = self.topics.values();
            let awaits = topics.any(Topic::awaits_words);
            self.changes.set_awaits_words(awaits);
            let mut fills = false;
            for topic in self.topics.values_mut() {
                topic.logged.keeper().flush(now);
                topic.confirm(now);
                fills |= topic.fill_on(&self.history, now);
                topic.logged.publish_end();
            }
            self.tell();
            self.outbox.send_waiting();
            let mut topics = self.topics.values_mut();
            let compacts = topics.any(|it| it.compact_on(now));
            let is_idle = !any && !fills && !compacts;
            self.publish(now, is_idle);
            if is_idle {
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

    /// Tells monitors of the logs, as far as that is due.
    fn publish(&mut self, now: u64, is_idle: bool) {
        // After a pass that did nothing, nothing has changed.
        let due = *self.publish_at.get_or_insert(now);
        if now >= due {
            self.topics.values().for_each(Topic::publish);
            self.publish_at = (!is_idle).then(|| now + PUBLISH_EVERY.as_nanos() as u64);
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
        let due = due.chain(self.publish_at).min()?;
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
                    compacting: Compacting::default(),
                    told: String::new(),
                };
                self.topics.insert(logged.key, topic);
                self.note_status(&logged, &KeeperStatus::Good);
            }
            LogItem::Closed(logged) => {
                if let Some(topic) = self.topics.remove(&logged.key) {
                    self.gone(&topic);
                    topic.logged.keeper().group_lost(now);
                    self.note_status(&logged, &KeeperStatus::Good);
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
            LogItem::Fill(topic, fill) => {
                if let Some(known) = self.topics.get_mut(&topic.key) {
                    known.fill = Some(fill);
                }
            }
            LogItem::Join(join) => {
                self.group_lost(now);
                self.join = join.number;
                for (topic, end) in join.announced {
                    topic.keeper().announced(end);
                }
            }
            LogItem::Settle(told) => {
                for topic in self.topics.values() {
                    topic.logged.publish_end();
                }
                // It may have been given up meanwhile.
                let _ = told.send(());
            }
        }
    }

    fn group_lost(&mut self, now: u64) {
        self.outbox.set_control_queue(None);
        self.control_queue = None;
        self.notices.group_lost();
        for topic in self.topics.values_mut() {
            topic.logged.keeper().group_lost(now);
            topic.place = None;
            topic.fill = None;
            // What was delivered and is not in the log may have other positions in the next group.
            topic.taken_to = 0;
        }
        self.stopped.clear();
    }

    /// A log is not written any more. While it counts, no position of the others stands for its records: the
    /// subgroup's word stops for the rest of the epoch.
    fn gone(&mut self, topic: &Topic) {
        if let Some(place) = topic.place.as_ref().filter(|it| it.is_logger) {
            let subgroup = topic.logged.subgroup;
            self.stopped.insert(subgroup, place.handle.clone());
        }
    }

    fn view_begun(&mut self, begun: LogView, now: u64) {
        if !self.outbox.is_of(&begun.control_queue) {
            self.group_lost(now);
            self.outbox
                .set_control_queue(Some(begun.control_queue.clone()));
            self.control_queue = Some(begun.control_queue);
        }
        for (to, notice) in self.notices.view_begun(begun.others.into_iter()) {
            self.outbox.send_to(to, Packet::LogNotice(notice).write());
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
        while let Some((from, (join, message))) = self.feed.pop_packet() {
            any = true;
            if join != self.join {
                continue;
            }
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
        let (mut changed, mut dead) = (Vec::new(), Vec::new());
        for (key, topic) in &mut self.topics {
            let mut keeper = topic.logged.keeper();
            let (counters, log) = (&topic.logged.counters, keeper.log());
            counters.set(&log.figures(), keeper.is_ready());
            for (to, packet) in keeper.take_packets() {
                let message = LogMessage {
                    topic: *key,
                    packet,
                };
                self.outbox.send_to(to, Packet::Log(message).write());
            }
            if let Some(end) = keeper.announcement() {
                let put = LogChange::Put(topic.logged.clone(), end);
                self.changes.push_of(self.join, put);
                has_changed = true;
            }
            let status = keeper.status().clone();
            drop(keeper);
            if topic.warn(&status) {
                changed.push((topic.logged.clone(), status.clone()));
            }
            if let KeeperStatus::Dead(_) = status {
                dead.push(*key);
            }
        }
        for (logged, status) in changed {
            self.note_status(&logged, &status);
        }
        for key in dead {
            if let Some(topic) = self.topics.remove(&key) {
                topic.publish();
                self.gone(&topic);
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

    /// Tells all members whether a log is written.
    fn note_status(&mut self, logged: &LoggedTopic, status: &KeeperStatus) {
        let Some(notice) = self.notices.changed(logged, status) else {
            return;
        };
        self.troubles.note(None, notice.clone());
        let packet = Packet::LogNotice(notice).write();
        for to in self.notices.members() {
            self.outbox.send_to(to, packet.clone());
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
        for (subgroup, (handle, word)) in words {
            let stopped = self.stopped.get(&subgroup);
            let is_stopped = stopped.is_some_and(|it| Arc::ptr_eq(it, &handle));
            if word > 0 && !is_stopped {
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

    /// Fills the history of the topic with some records, once the log has all before the base. Returns
    /// whether there are more.
    fn fill_on(&mut self, history: &HistoryService, now: u64) -> bool {
        let mut keeper = self.logged.keeper();
        if !keeper.is_whole() || keeper.is_behind() {
            return false;
        }
        let Some(mut fill) = self.fill.take() else {
            return false;
        };
        let limits = keeper.log().head().limits;
        let records = keeper.log_mut().read(fill.next, READ_LEN);
        drop(keeper);
        let records = records.unwrap_or_else(|error| {
            tracing::warn!(topic = self.logged.name, %error, "the log cannot be read");
            Vec::new()
        });
        let records = records.into_iter().map(|it| it.record);
        let before: Vec<_> = records.take_while(|it| it.position() < fill.base).collect();
        let Some(last) = before.last() else {
            history.push(FeedItem::LogRead {
                topic: fill.history,
                base: fill.base,
                attempt: fill.attempt,
            });
            history.wake();
            return false;
        };
        fill.next = last.position() + 1;
        for record in before {
            if !fill
                .history
                .history
                .put_logged(fill.attempt, record, &limits, now)
            {
                return false;
            }
        }
        self.fill = Some(fill);
        true
    }

    /// Tells monitors of it.
    fn publish(&self) {
        let place = self.place.as_ref();
        let group = place.and_then(|place| place.group.as_ref());
        let is_logger = place.is_some_and(|place| place.is_logger);
        super::figures::publish(&self.logged, group, is_logger);
    }

    /// Removes some of what no reader needs from the log. Returns whether there is more to do.
    fn compact_on(&mut self, now: u64) -> bool {
        let mut settled = 0;
        if let Some(place) = &self.place
            && self.is_confirmed
            && place.is_logger
        {
            let words = place.ranks.iter().map(|rank| place.handle.persisted(*rank));
            settled = words.min().unwrap_or(0);
        }
        self.compacting.go_on(&self.logged, settled, now)
    }

    /// Warns of what keeps the log from being written, once. Returns whether it is another status than
    /// before.
    fn warn(&mut self, status: &KeeperStatus) -> bool {
        let text = match status {
            KeeperStatus::Good => "",
            KeeperStatus::Full(text) | KeeperStatus::Barred(text) | KeeperStatus::Dead(text) => {
                text
            }
        };
        let is_new = text != self.told;
        if is_new {
            text.clone_into(&mut self.told);
            if !text.is_empty() {
                let topic = &self.logged.name;
                tracing::warn!(topic, why = text, "the log of a topic is not written");
            }
        }
        is_new
    }
}
