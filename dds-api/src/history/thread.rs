//! The history thread: keeps what is delivered, gives it to joiners, and gets it for readers.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use spindle_dds_core::Header;
use spindle_dds_core::storage::{RecordMeta, Snapshot};

use super::donating::{Answer, Donating};
use super::feed::{Feed, FeedItem, NewTopic, Pin, PinPart, ViewMarker};
use super::getting::{Getting, GotTopic};
use super::kept::{KeptHistory, TopicHistory};
use super::outbox::{Outbox, Place};
use super::packet::{HistoryContent, HistoryPacket, TransferName};
use super::progress::Progress;

pub(super) struct HistoryThread {
    feed: Arc<Feed>,
    progress: Arc<Progress>,
    /// Heartbeat timeout.
    limit: Duration,
    since: Instant,
    /// This participant in the present group.
    me: Place,
    outbox: Outbox,
    donating: Donating,
    getting: Getting,
    /// Topics whose history is being got.
    incomplete: Vec<Arc<TopicHistory>>,
    /// What is to be pinned when they are complete.
    deferred: Vec<((Place, TransferName), Pin)>,
    /// Writers of topics that are kept, in the view.
    writers: BTreeSet<[u8; 16]>,
    /// Histories from which something is to be removed later.
    purging: Vec<Arc<KeptHistory>>,
    is_shown: bool,
}

/// Items between two looks at packets.
const ITEMS_MAX: usize = 256;
/// How soon a packet is sent again for which there was no room.
const RETRY: Duration = Duration::from_millis(5);
/// Joiners say that they go on so many times in a heartbeat timeout.
const REMINDERS: u32 = 4;
/// What a joiner does not ask for in so many heartbeat timeouts is not kept for it any longer. More than a
/// member may be silent where the whole group is late: one that fails is not in the next view.
const EXPIRES_AFTER_LIMITS: u32 = 16;

impl HistoryThread {
    pub(super) fn new(feed: Arc<Feed>, progress: Arc<Progress>, limit: Duration) -> Self {
        Self {
            feed,
            progress,
            limit,
            since: Instant::now(),
            me: None,
            outbox: Outbox::default(),
            donating: Donating::default(),
            getting: Getting::default(),
            incomplete: Vec::new(),
            deferred: Vec::new(),
            writers: BTreeSet::new(),
            purging: Vec::new(),
            is_shown: false,
        }
    }

    pub(super) fn run(mut self) {
        self.feed.set_thread();
        while !self.feed.is_stopped() {
            let any = self.handle_items() | self.handle_packets();
            self.feed.take_reader_ready();
            let now = self.now();
            let remind = nanos(self.limit / REMINDERS);
            let got = self.getting.go_on(&mut self.outbox, now, remind);
            got.into_iter().for_each(|got| self.topic_is_complete(got));
            self.purge(now);
            self.outbox.send_waiting();
            self.donating
                .expire(now, nanos(self.limit * EXPIRES_AFTER_LIMITS));
            self.show();
            if !any && !self.outbox.has_local() {
                self.feed.sleep(self.time_to_sleep());
            }
        }
        // What is held goes back to the rings.
        while self.feed.pop().is_some() {}
    }

    fn now(&self) -> u64 {
        nanos(self.since.elapsed())
    }

    fn time_to_sleep(&self) -> Option<Duration> {
        if self.outbox.has_waiting() {
            return Some(RETRY);
        }
        let is_idle = self.getting.is_idle() && self.donating.is_idle();
        let next = (!is_idle).then_some(self.limit / REMINDERS);
        let due = self.purging.iter().filter_map(|it| it.next_purge()).min();
        let due = due.map(|due| Duration::from_nanos(due.saturating_sub(self.now())));
        next.into_iter().chain(due).min()
    }

    /// Removes what has been kept long enough after its end.
    fn purge(&mut self, now: u64) {
        self.purging.retain(|history| {
            history.purge(now);
            history.next_purge().is_some()
        });
    }

    fn purge_later(&mut self, history: &Arc<KeptHistory>) {
        let is_known = self.purging.iter().any(|it| Arc::ptr_eq(it, history));
        if !is_known && history.next_purge().is_some() {
            self.purging.push(history.clone());
        }
    }

    fn show(&mut self) {
        let is_idle = self.getting.is_idle();
        if !is_idle || self.is_shown {
            self.is_shown = !is_idle;
            self.progress.set(self.getting.figures());
        }
    }

    /// Handles some items. Returns whether there were any.
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

    fn handle_item(&mut self, item: FeedItem) {
        match item {
            FeedItem::Message { writer, meta, held } => {
                writer.put(&meta, held.bytes(), self.now());
                drop(held);
                self.purge_later(&writer.history);
            }
            FeedItem::Missed { writer, message } => {
                let meta = record_meta(&message.header, writer.guid, 0);
                writer.put_missed(&meta, &message.payload, self.now());
            }
            FeedItem::View(marker) => self.view_begun(marker),
            FeedItem::LogRead {
                topic,
                base,
                attempt,
            } => {
                // The logs may have been opened anew meanwhile.
                if topic.history.is_attempt(attempt) {
                    self.topic_is_complete(GotTopic {
                        topic,
                        base,
                        lasts: BTreeMap::new(),
                        is_lost: false,
                    });
                }
            }
            FeedItem::GroupLost => self.group_lost(),
        }
    }

    fn group_lost(&mut self) {
        self.me = None;
        self.outbox.set_control_queue(None);
        self.donating.group_lost();
        self.getting.donors_gone(Option::is_some);
    }

    fn view_begun(&mut self, marker: ViewMarker) {
        let now = self.now();
        if !self.outbox.is_of(&marker.control_queue) {
            self.group_lost();
            self.outbox.set_control_queue(Some(marker.control_queue));
            self.me = Some(marker.me);
        }
        for (history, base) in &marker.bases {
            history.order_begins(*base);
        }
        let members = &marker.members;
        self.donating.begin_view(marker.view, members);
        self.getting
            .donors_gone(|it| it.is_some_and(|it| !members.contains(&it)));
        for (writer, has_left) in &marker.gone {
            writer.gone(*has_left, now);
            self.purge_later(&writer.history);
        }
        self.writers = marker.writers;
        for new in marker.topics {
            self.begin_topic(new, now);
        }
        for pin in marker.pins {
            let joiner = (pin.joiner != marker.me).then_some(pin.joiner);
            let name = TransferName {
                endpoint: pin.endpoint,
                view: marker.view,
            };
            self.pin((joiner, name), pin, now);
        }
        for new in marker.transfers {
            self.getting.begin(new, &self.feed, self.me, now);
        }
        let answers = self.donating.answer_waiting(now);
        self.send(answers);
    }

    /// This participant begins to keep a topic.
    fn begin_topic(&mut self, new: NewTopic, now: u64) {
        if new.donors.is_empty() && new.log.is_none() {
            new.topic.history.order_begins(new.base);
            return;
        }
        let attempt = new.topic.history.begin_getting(new.keeps_unlogged);
        if !self.is_incomplete(&new.topic) {
            self.incomplete.push(new.topic.clone());
        }
        if let Some(log) = new.log {
            self.getting.forget_topic(&new.topic);
            log.ask(new.topic, new.base, attempt);
            return;
        }
        self.getting.begin_topic(new, now);
    }

    fn is_incomplete(&self, topic: &Arc<TopicHistory>) -> bool {
        self.incomplete.iter().any(|it| Arc::ptr_eq(it, topic))
    }

    fn topic_is_complete(&mut self, got: GotTopic) {
        let GotTopic {
            topic,
            base,
            lasts,
            is_lost,
        } = got;
        let now = self.now();
        let writers = &self.writers;
        let is_alive = |writer: &[u8; 16]| writers.contains(writer);
        let history = &topic.history;
        let at_base = history.end_getting(is_lost, base, &lasts, is_alive, now);
        self.incomplete.retain(|it| !Arc::ptr_eq(it, &topic));
        for (transfer, pin) in std::mem::take(&mut self.deferred) {
            // Its joiner may be gone.
            if !self.donating.is_expected(&transfer) {
                continue;
            }
            if pin.is_of(|topic| self.is_incomplete(topic)) {
                self.deferred.push((transfer, pin));
                continue;
            }
            let end = pin.base;
            let at_marker = |of: &Arc<TopicHistory>| match pin.base == base {
                true if Arc::ptr_eq(of, &topic) => at_base.clone(),
                // What came after the marker is kept by now, too.
                _ => of.history.snapshot().before(end),
            };
            self.pin_now(transfer, &pin, at_marker, now);
        }
        let answers = self.donating.answer_waiting(now);
        self.send(answers);
    }

    /// Pins what there is before the marker; if not all of it has come, when it has.
    fn pin(&mut self, transfer: (Place, TransferName), pin: Pin, now: u64) {
        if pin.is_of(|topic| self.is_incomplete(topic)) {
            self.donating.expect(transfer);
            self.deferred.push((transfer, pin));
            return;
        }
        self.pin_now(transfer, &pin, |topic| topic.history.snapshot(), now);
    }

    /// Pins histories as they were at the marker.
    fn pin_now(
        &mut self,
        transfer: (Place, TransferName),
        pin: &Pin,
        of_topic: impl Fn(&Arc<TopicHistory>) -> Snapshot,
        now: u64,
    ) {
        let snapshot = |part: &PinPart| match part {
            PinPart::Writer(history) => history.snapshot(),
            PinPart::Topic(topic, None) => of_topic(topic),
            PinPart::Topic(topic, Some(writer)) => of_topic(topic).of_writer(*writer),
        };
        let snapshots: Vec<_> = pin.parts.iter().map(snapshot).collect();
        self.donating.pin(transfer, &snapshots, now);
    }

    /// Handles all packets that have come. Returns whether there were any.
    fn handle_packets(&mut self) -> bool {
        let mut any = false;
        while let Some((from, packet)) = self.feed.pop_packet() {
            any = true;
            self.handle_packet(Some(from), packet);
        }
        while let Some(packet) = self.outbox.next_local() {
            any = true;
            self.handle_packet(None, packet);
        }
        any
    }

    fn handle_packet(&mut self, from: Place, packet: HistoryPacket) {
        let HistoryPacket { name, content } = packet;
        match content {
            HistoryContent::Ask { .. } | HistoryContent::More { .. } => {
                let answers = self.donating.handle((from, name), content, self.now());
                self.send(answers);
            }
            HistoryContent::Part(_) | HistoryContent::End(_) | HistoryContent::Unknown => {
                self.getting.handle(from, name, content);
            }
        }
    }

    fn send(&mut self, answers: Vec<Answer>) {
        for (to, name, content) in answers {
            // A joiner that is not reached is gone, and the next view says so.
            self.outbox.send(to, HistoryPacket { name, content });
        }
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// What is known of a message beside its payload.
pub(crate) fn record_meta(header: &Header, writer: [u8; 16], position: u64) -> RecordMeta {
    RecordMeta {
        position,
        sequence: header.writer_seq,
        timestamp: header.timestamp,
        writer,
        key: header.key_hash,
        kind: header.kind,
        encapsulation: header.encapsulation,
    }
}
