//! The side that gets history: pulls it for the readers of this participant.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use spindle_dds_core::storage::{Joiner, JoinerAsk, JoinerState, Record};

use super::feed::{Feed, NewTopic, NewTransfer};
use super::kept::TopicHistory;
use super::outbox::{Outbox, Place};
use super::packet::{HistoryContent, HistoryPacket, TransferName};
use super::{HistoryEnd, HistoryOffer, HistoryProgress, TransferId};
use crate::driver::ReaderPort;
use crate::monitor::TransferFigures;
use crate::wire::Wire;

/// The transfers of the readers of this participant.
#[derive(Default)]
pub(super) struct Getting {
    transfers: BTreeMap<TransferId, Transfer>,
}

struct Transfer {
    name: TransferName,
    topic: String,
    target: Target,
    joiner: Joiner<Place>,
    /// By donor: the writers whose history it has.
    writers: BTreeMap<Place, Vec<[u8; 16]>>,
    /// Of each writer the sequence number after which the reader wants records; `None` before it has come
    /// to the transfer.
    after: Option<BTreeMap<[u8; 16], u64>>,
    /// Writers of which it wants none.
    unmatched: Vec<[u8; 16]>,
    /// Records for the reader.
    ready: VecDeque<Record>,
    /// What is to be sent, and waits for other transfers of that donor.
    asks: VecDeque<JoinerAsk<Place>>,
    /// By donor: parts that are asked for and have not come.
    in_flight: BTreeMap<Place, u32>,
    begun_at_ns: u64,
    /// When the donors were told last that the transfer goes on.
    said_at_ns: u64,
}

/// Where records go to.
enum Target {
    Reader(Arc<ReaderPort<Wire>>),
    /// What is kept of a topic, before this position.
    Topic(Arc<TopicHistory>, u64),
}

/// The history of a topic has come.
pub(super) struct GotTopic {
    pub(super) topic: Arc<TopicHistory>,
    pub(super) base: u64,
    /// The last sequence numbers before that position, by writer.
    pub(super) lasts: BTreeMap<[u8; 16], u64>,
    /// No keeper knows it, or the one that did is gone.
    pub(super) is_lost: bool,
}

/// Records for a reader at one time.
const READY_MAX: usize = 64;
/// Their bytes, but for the last one.
const READY_BYTES_MAX: usize = 128 << 10;
/// Parts on their way from one donor, over all transfers.
const IN_FLIGHT_MAX: u32 = 8;

impl Getting {
    /// A reader awaits history.
    pub(super) fn begin(&mut self, new: NewTransfer, feed: &Arc<Feed>, me: Place, now_ns: u64) {
        let place = |member| (Some(member) != me).then_some(member);
        let sources = new.sources.iter().map(|(member, _)| vec![place(*member)]);
        let joiner = Joiner::new(sources.collect::<Vec<_>>());
        let writers = new.sources.into_iter();
        let feed = feed.clone();
        new.port
            .set_history_wake(Arc::new(move || feed.reader_is_ready()));
        let transfer = Transfer {
            name: new.name,
            topic: new.topic,
            target: Target::Reader(new.port),
            joiner,
            writers: writers.map(|(member, of)| (place(member), of)).collect(),
            after: None,
            unmatched: new.unmatched,
            ready: VecDeque::new(),
            asks: VecDeque::new(),
            in_flight: BTreeMap::new(),
            begun_at_ns: now_ns,
            said_at_ns: now_ns,
        };
        self.transfers.insert(new.id, transfer);
    }

    /// This participant begins to keep a topic that others have kept.
    pub(super) fn begin_topic(&mut self, new: NewTopic, now_ns: u64) {
        self.forget_topic(&new.topic);
        let donors: Vec<Place> = new.donors.into_iter().map(Some).collect();
        let transfer = Transfer {
            name: new.name,
            topic: new.topic.name.clone(),
            target: Target::Topic(new.topic, new.base),
            writers: donors.iter().map(|donor| (*donor, Vec::new())).collect(),
            joiner: Joiner::new([donors]),
            after: Some(BTreeMap::new()),
            unmatched: Vec::new(),
            ready: VecDeque::new(),
            asks: VecDeque::new(),
            in_flight: BTreeMap::new(),
            begun_at_ns: now_ns,
            said_at_ns: now_ns,
        };
        self.transfers.insert(new.id, transfer);
    }

    /// Ends an earlier attempt to get a topic.
    pub(super) fn forget_topic(&mut self, topic: &Arc<TopicHistory>) {
        self.transfers.retain(|_, it| match &it.target {
            Target::Topic(known, _) => !Arc::ptr_eq(known, topic),
            Target::Reader(_) => true,
        });
    }

    /// Donors that are not there any more.
    pub(super) fn donors_gone(&mut self, is_gone: impl Fn(&Place) -> bool) {
        for transfer in self.transfers.values_mut() {
            let gone = transfer.writers.keys().filter(|donor| is_gone(donor));
            for donor in gone.copied().collect::<Vec<_>>() {
                transfer.lose(donor);
            }
        }
    }

    /// A donor says this.
    pub(super) fn handle(&mut self, donor: Place, name: TransferName, content: HistoryContent) {
        // A topic and its first reader have one name, and different donors.
        let is_it = |it: &&mut Transfer| it.name == name && it.writers.contains_key(&donor);
        if let Some(transfer) = self.transfers.values_mut().find(is_it) {
            transfer.handle(donor, content);
        }
    }

    /// Does what can be done now. `remind_ns`: how often donors are told that a transfer goes on. Returns
    /// the topics whose history has come.
    pub(super) fn go_on(
        &mut self,
        outbox: &mut Outbox,
        now_ns: u64,
        remind_ns: u64,
    ) -> Vec<GotTopic> {
        let ended = self.transfers.iter_mut().filter_map(|(id, transfer)| {
            let is_late = now_ns.saturating_sub(transfer.begun_at_ns) >= remind_ns;
            transfer.go_on(*id, is_late, now_ns).then_some(*id)
        });
        let ended = ended.collect::<Vec<_>>();
        let ended = ended.iter().filter_map(|id| self.transfers.remove(id));
        let got = ended.filter_map(Transfer::got_topic).collect();
        self.send_asks(outbox);
        for transfer in self.transfers.values_mut() {
            if now_ns.saturating_sub(transfer.said_at_ns) >= remind_ns {
                transfer.said_at_ns = now_ns;
                transfer.remind(outbox);
            }
        }
        got
    }

    /// Sends questions, oldest transfers first, but asks no donor for too much at a time.
    fn send_asks(&mut self, outbox: &mut Outbox) {
        let mut in_flight: BTreeMap<Place, u32> = BTreeMap::new();
        for (donor, parts) in self.transfers.values().flat_map(|it| &it.in_flight) {
            *in_flight.entry(*donor).or_default() += parts;
        }
        for transfer in self.transfers.values_mut() {
            let mut later = VecDeque::new();
            for ask in std::mem::take(&mut transfer.asks) {
                let (donor, parts) = match ask {
                    JoinerAsk::Ask { donor, parts, .. } => (donor, parts),
                    JoinerAsk::More { donor } => (donor, 1),
                };
                let of_donor = in_flight.entry(donor).or_default();
                if *of_donor + parts > IN_FLIGHT_MAX {
                    later.push_back(ask);
                    continue;
                }
                *of_donor += parts;
                *transfer.in_flight.entry(donor).or_default() += parts;
                if !outbox.send(donor, transfer.question(ask)) {
                    transfer.lose(donor);
                }
            }
            transfer.asks.extend(later);
        }
    }

    pub(super) fn is_idle(&self) -> bool {
        self.transfers.is_empty()
    }

    pub(super) fn figures(&self) -> Vec<TransferFigures> {
        self.transfers.values().map(Transfer::figures).collect()
    }
}

impl Target {
    fn offer(&self, id: TransferId, records: &mut VecDeque<Record>, now_ns: u64) -> HistoryOffer {
        match self {
            Self::Reader(port) => port.offer_history(id, records),
            Self::Topic(topic, _) => {
                for record in records.drain(..) {
                    topic.history.put_got(record, now_ns);
                }
                HistoryOffer::Taken
            }
        }
    }
}

impl Transfer {
    fn handle(&mut self, donor: Place, content: HistoryContent) {
        match content {
            HistoryContent::Part(records) => {
                if let Some(parts) = self.in_flight.get_mut(&donor) {
                    *parts = parts.saturating_sub(1);
                }
                if let Err(error) = self.joiner.part(donor, &records) {
                    tracing::warn!(topic = self.topic, ?donor, %error, "history is not used");
                    self.lose(donor);
                }
            }
            HistoryContent::End(lasts) => {
                self.in_flight.remove(&donor);
                self.joiner.end(donor, lasts);
            }
            HistoryContent::Unknown => self.lose(donor),
            HistoryContent::Ask { .. } | HistoryContent::More { .. } => {}
        }
    }

    fn lose(&mut self, donor: Place) {
        self.in_flight.remove(&donor);
        self.asks.retain(|ask| match ask {
            JoinerAsk::Ask { donor: asked, .. } | JoinerAsk::More { donor: asked } => {
                *asked != donor
            }
        });
        self.joiner.lost(donor);
    }

    /// Moves what has come to the reader. Returns whether the transfer has ended. One that `is_late` asks
    /// before the reader has come to it, as donors do not wait for long.
    fn go_on(&mut self, id: TransferId, is_late: bool, now_ns: u64) -> bool {
        if self.after.is_none()
            && let Target::Reader(port) = &self.target
        {
            self.after = port.begin_history(id);
            if let Some(after) = &mut self.after {
                after.extend(self.unmatched.iter().map(|writer| (*writer, u64::MAX)));
            }
        }
        if self.after.is_some() || is_late {
            self.asks.extend(self.joiner.asks());
        }
        if self.after.is_none() {
            return false;
        }
        loop {
            self.fill_ready();
            if self.ready.is_empty() {
                break;
            }
            match self.target.offer(id, &mut self.ready, now_ns) {
                HistoryOffer::Taken if self.ready.is_empty() => {}
                HistoryOffer::Closed => return true,
                HistoryOffer::Taken | HistoryOffer::Full | HistoryOffer::NotYet => break,
            }
        }
        self.asks.extend(self.joiner.asks());
        let progress = self.joiner.progress();
        let progress = HistoryProgress {
            samples: progress.records,
            bytes: progress.bytes,
            donors: self.joiner.donors().count(),
        };
        if let Target::Reader(port) = &self.target {
            port.note_history(id, progress);
        }
        let JoinerState::Done { lost_sources } = self.joiner.state() else {
            return false;
        };
        if !self.ready.is_empty() {
            return false;
        }
        let lasts = self.joiner.lasts().iter();
        let end = HistoryEnd {
            lasts: lasts.map(|(writer, last)| (*writer, *last)).collect(),
            lost_sources,
        };
        if let Target::Reader(port) = &self.target {
            // False if the reader does not await it any more: then it has ended, too.
            port.end_history(id, &end);
        }
        true
    }

    /// Of a transfer that has ended: what this participant keeps by it.
    fn got_topic(self) -> Option<GotTopic> {
        let Target::Topic(topic, base) = self.target else {
            return None;
        };
        let state = self.joiner.state();
        let is_lost = !matches!(state, JoinerState::Done { lost_sources: 0 });
        Some(GotTopic {
            topic,
            base,
            lasts: self.joiner.lasts().clone(),
            is_lost,
        })
    }

    fn fill_ready(&mut self) {
        let mut bytes: usize = self.ready.iter().map(|it| it.bytes().len()).sum();
        while self.ready.len() < READY_MAX
            && bytes < READY_BYTES_MAX
            && let Some(record) = self.joiner.next_record()
        {
            let (cursor, after) = (record.cursor(), self.after.as_ref());
            let had = after.and_then(|after| after.get(&cursor.writer));
            if had.is_none_or(|had| cursor.sequence > *had) {
                bytes += record.bytes().len();
                self.ready.push_back(record);
            }
        }
    }

    fn question(&self, ask: JoinerAsk<Place>) -> HistoryPacket {
        let content = match ask {
            JoinerAsk::Ask { donor, from, parts } => HistoryContent::Ask {
                parts: u8::try_from(parts).unwrap_or(u8::MAX),
                from,
                after: self.after_of(donor),
            },
            JoinerAsk::More { .. } => HistoryContent::More { grants: true },
        };
        HistoryPacket {
            name: self.name,
            content,
        }
    }

    /// What the reader has of the writers of a donor.
    fn after_of(&self, donor: Place) -> BTreeMap<[u8; 16], u64> {
        let (Some(after), Some(writers)) = (&self.after, self.writers.get(&donor)) else {
            return BTreeMap::new();
        };
        if writers.is_empty() {
            return after.clone();
        }
        let known = writers.iter().filter_map(|it| Some((*it, *after.get(it)?)));
        known.collect()
    }

    /// Tells donors that the transfer goes on: also those that are asked only if another one is lost.
    fn remind(&mut self, outbox: &mut Outbox) {
        let asks = &self.asks;
        let waits = |donor: &Place| {
            let first = |ask: &JoinerAsk<Place>| matches!(ask, JoinerAsk::Ask { donor: it, .. } if it == donor);
            asks.iter().any(first)
        };
        let donors = self.writers.keys().copied();
        let needed = donors.filter(|it| self.joiner.needs(*it) && !waits(it));
        let donors: Vec<Place> = needed.collect();
        for donor in donors {
            let content = HistoryContent::More { grants: false };
            let packet = HistoryPacket {
                name: self.name,
                content,
            };
            if !outbox.send(donor, packet) {
                self.lose(donor);
            }
        }
    }

    fn figures(&self) -> TransferFigures {
        let progress = self.joiner.progress();
        let donors = self.joiner.donors().flatten();
        TransferFigures {
            topic: self.topic.clone(),
            donors: donors.map(|it| format!("{:032x}", it.0)).collect(),
            samples: progress.records,
            bytes: progress.bytes,
        }
    }
}
