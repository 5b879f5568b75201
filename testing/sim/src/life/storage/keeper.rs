//! What a member keeps of a topic, and gives to others.
//!
//! The history thread takes the feed in the engine's order. A participant that becomes a keeper of a
//! topic first gets what others have kept; what is fed meanwhile waits.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use spindle_dds_core::membership::{MemberId, View};
use spindle_dds_core::storage::{
    Donor, DonorReply, HistoryLimits, Record, RecordMeta, SampleHistory, Snapshot,
};
use spindle_dds_core::{Held, SubgroupId};
use spindle_dds_transport::sim::SimFabric;

use super::announcement::{Guid, Level, Topic};
use super::facts::StorageFact;
use super::matching::{KEEPER, Matching, Transfer, Wanted};
use super::packets::{Body, Packet};
use super::plain::PlainHistory;
use super::transfer::Pull;

/// Longest part of a history: a few records.
const PART_LEN: usize = 300;

/// A delivered message, in its ring as long as it is held.
#[derive(Debug, Clone)]
pub(super) struct Arrival {
    pub(super) meta: RecordMeta,
    pub(super) level: Level,
    pub(super) held: Arc<Held<SimFabric>>,
}

/// One thing after the other, as the engine tells it.
#[derive(Debug)]
pub(super) enum FeedItem {
    Message(Arrival),
    /// A view begins, in which the subgroup begins an epoch.
    Marker {
        before: Option<Arc<View>>,
        view: Arc<View>,
    },
    /// This member leaves the subgroup. What it has pinned stays.
    Left,
}

/// A history, and what it must be.
#[derive(Debug, Default)]
struct Kept {
    history: SampleHistory,
    plain: PlainHistory,
    last: Option<RecordMeta>,
}

impl Kept {
    fn put(&mut self, record: Record, limits: &HistoryLimits, now: u64) {
        self.history.purge(now);
        let meta = record.meta();
        self.last = Some(meta);
        self.plain.put(meta, now);
        self.history.put(meta.key, record, limits, now);
    }

    fn writer_gone(&mut self, writer: Guid, limits: &HistoryLimits, now: u64) {
        self.history.purge(now);
        self.history.writer_gone(writer, false, limits, now);
        self.plain.writer_gone(writer, now);
    }

    fn snapshot(&mut self, now: u64) -> Snapshot {
        self.history.purge(now);
        self.history.snapshot()
    }

    /// The order begins at this position.
    fn order_begins(&mut self, base: u64) {
        if let Some(last) = &mut self.last
            && last.position >= base
        {
            last.position = 0;
            self.history.forget_positions();
        }
    }
}

/// A member's part in keeping a topic.
#[derive(Debug)]
pub(super) struct Keeper {
    me: MemberId,
    subgroup: SubgroupId,
    topic: Topic,
    pub(super) feed: VecDeque<FeedItem>,
    /// Histories of its own writers.
    local: BTreeMap<Guid, Kept>,
    /// The history of the topic, if it keeps it.
    shared: Option<Kept>,
    /// What it gets of that from other keepers.
    pull: Option<Pull>,
    donors: BTreeMap<Level, Donor<Transfer>>,
    /// What was pinned and is not any more, as it was not asked for, or its reader is gone.
    dropped: BTreeSet<(Transfer, Level)>,
    /// Packets about transfers whose view has not begun here.
    early: Vec<Packet>,
    /// The first view that has begun here; 0 before it. What was pinned for earlier ones, when this member
    /// was in the subgroup before, was let go of.
    first: u64,
    /// The last view that has begun here.
    passed: u64,
    pub(super) has_left: bool,
    /// What is not asked for in so many turns is not kept for its joiner any longer.
    limit: u64,
}

impl Keeper {
    pub(super) fn new(me: MemberId, subgroup: SubgroupId, topic: Topic, limit: u64) -> Self {
        let donor = |level| (level, Donor::with_parts_of(PART_LEN));
        Self {
            me,
            subgroup,
            topic,
            feed: VecDeque::new(),
            local: BTreeMap::new(),
            shared: None,
            pull: None,
            donors: [Level::TransientLocal, Level::Transient].map(donor).into(),
            dropped: BTreeSet::new(),
            early: Vec::new(),
            first: 0,
            passed: 0,
            has_left: false,
            limit,
        }
    }

    /// The history thread takes an item of the feed, and goes on with what it gets and gives.
    pub(super) fn act(
        &mut self,
        view: &View,
        now: u64,
        facts: &mut Vec<StorageFact>,
    ) -> Vec<Packet> {
        let mut packets = Vec::new();
        for (level, donor) in &mut self.donors {
            let expired = donor.expire(now, self.limit).into_iter();
            self.dropped
                .extend(expired.map(|transfer| (transfer, *level)));
        }
        if self.pull.is_some() {
            self.go_on_pulling(view, now, facts);
        } else {
            match self.feed.pop_front() {
                Some(FeedItem::Message(arrival)) => self.keep(&arrival, now),
                Some(FeedItem::Marker {
                    before,
                    view: begun,
                }) => {
                    self.pass(before.as_deref(), &begun, view, now, facts);
                    for packet in core::mem::take(&mut self.early) {
                        packets.extend(self.asked(packet, now));
                    }
                }
                Some(FeedItem::Left) => self.forget(),
                None => {}
            }
        }
        packets.extend(self.pull.iter_mut().flat_map(Pull::packets));
        packets
    }

    fn forget(&mut self) {
        self.local.clear();
        self.shared = None;
    }

    fn keep(&mut self, arrival: &Arrival, now: u64) {
        let record = Record::new(&arrival.meta, arrival.held.bytes());
        self.put(arrival.level, record, now);
    }

    /// Keeps a record, if it is one of this member's.
    fn put(&mut self, level: Level, record: Record, now: u64) {
        let kept = match level {
            Level::TransientLocal => self.local.get_mut(&record.meta().writer),
            Level::Transient => self.shared.as_mut(),
        };
        if let Some(kept) = kept {
            kept.put(record, &self.topic.limits, now);
        }
    }

    /// A view begins here: snapshots are pinned for the transfers that begin with it.
    fn pass(
        &mut self,
        before: Option<&View>,
        begun: &View,
        view: &View,
        now: u64,
        facts: &mut Vec<StorageFact>,
    ) {
        self.passed = begun.id;
        if self.first == 0 {
            self.first = begun.id;
        }
        let matching = Matching::new(before, begun, self.subgroup);
        let base = begun.subgroup(self.subgroup).map_or(0, |it| it.base);
        self.choose_histories(&matching);
        for kept in self.local.values_mut().chain(&mut self.shared) {
            kept.order_begins(base);
        }
        if let Some(shared) = &mut self.shared {
            for writer in matching.gone() {
                shared.writer_gone(writer, &self.topic.limits, now);
            }
        }
        let is_gone = |it: &Transfer| {
            let mut endpoints = matching.of(it.member);
            !endpoints.any(|endpoint| endpoint.guid == it.reader || it.reader == KEEPER)
        };
        for (level, donor) in &mut self.donors {
            let gone = donor.transfers().map(|(it, _)| *it).filter(is_gone);
            self.dropped.extend(gone.map(|transfer| (transfer, *level)));
            donor.drop_if(is_gone);
        }
        for wanted in matching.wanted() {
            if wanted.transfer.member == self.me && wanted.transfer.reader == KEEPER {
                self.pull = Some(Pull::new(&wanted, BTreeMap::new(), view));
            }
            self.pin(&matching, &wanted, now, facts);
        }
    }

    /// Begins and ends the histories that this member keeps.
    fn choose_histories(&mut self, matching: &Matching) {
        let mine = || matching.of(self.me);
        let writers: BTreeSet<Guid> = mine()
            .filter(|it| it.is_writer && it.level == Level::TransientLocal)
            .map(|it| it.guid)
            .collect();
        let keeps = mine().any(|it| it.level == Level::Transient);
        let goes_on = matching.keepers().contains(&self.me);
        self.local.retain(|writer, _| writers.contains(writer));
        for writer in writers {
            self.local.entry(writer).or_default();
        }
        if !keeps || !goes_on {
            self.shared = None;
        }
        if keeps {
            self.shared.get_or_insert_default();
        }
    }

    fn pin(
        &mut self,
        matching: &Matching,
        wanted: &Wanted,
        now: u64,
        facts: &mut Vec<StorageFact>,
    ) {
        let limits = &self.topic.limits;
        let sources = wanted.sources.iter().flatten();
        for source in sources.filter(|(donor, _)| *donor == self.me) {
            let mut kept: Vec<&mut Kept> = match source.1 {
                Level::TransientLocal => {
                    let writers = matching.local_writers(self.me);
                    let local = self.local.iter_mut();
                    let with_history = local.filter(|(writer, _)| writers.contains(writer));
                    with_history.map(|(_, kept)| kept).collect()
                }
                Level::Transient => self.shared.iter_mut().collect(),
            };
            let snapshots: Vec<_> = kept.iter_mut().map(|it| it.snapshot(now)).collect();
            facts.push(StorageFact::Pinned {
                transfer: wanted.transfer,
                source: *source,
                must_be: kept
                    .iter()
                    .flat_map(|it| it.plain.at(now, limits))
                    .collect(),
            });
            if let Some(donor) = self.donors.get_mut(&source.1) {
                donor.pin(wanted.transfer, Snapshot::merge(&snapshots), now);
            }
        }
    }

    /// Takes what has come from other keepers; then all of it is there, and the feed goes on.
    fn go_on_pulling(&mut self, view: &View, now: u64, facts: &mut Vec<StorageFact>) {
        let Some(mut pull) = self.pull.take() else {
            return;
        };
        while let Some(record) = pull.next() {
            self.put(Level::Transient, record, now);
        }
        let Some(fact) = pull.ended() else {
            self.pull = Some(pull);
            return;
        };
        facts.push(fact);
        let writers = Matching::new(None, view, self.subgroup);
        let is_here = |guid: &Guid| writers.writers(Level::Transient).any(|it| it.guid == *guid);
        for writer in pull.lasts().keys().filter(|guid| !is_here(guid)) {
            if let Some(shared) = &mut self.shared {
                shared.writer_gone(*writer, &self.topic.limits, now);
            }
        }
    }

    /// This member leaves the subgroup.
    pub(super) fn leave(&mut self) {
        if !self.has_left {
            self.has_left = true;
            self.pull = None;
            self.feed.push_back(FeedItem::Left);
        }
    }

    /// Whether it has left, and nothing that it has pinned is to be asked for.
    pub(super) fn is_over(&self) -> bool {
        self.has_left && self.pinned() == 0 && self.is_at_rest()
    }

    /// A view has begun: donors may be gone.
    pub(super) fn view_begins(&mut self, view: &View) {
        if let Some(pull) = &mut self.pull {
            pull.view_begins(view);
        }
    }

    /// A packet about a transfer to this keeper.
    pub(super) fn receive(&mut self, packet: Packet, facts: &mut Vec<StorageFact>) {
        let pull = self.pull.as_mut();
        if let Some(pull) = pull.filter(|it| it.transfer == packet.transfer) {
            pull.receive((packet.from, packet.level), packet.body, facts);
        }
    }

    /// A joiner asks.
    pub(super) fn asked(&mut self, packet: Packet, now: u64) -> Vec<Packet> {
        let (transfer, level) = (packet.transfer, packet.level);
        if transfer.view > self.passed {
            self.early.push(packet);
            return Vec::new();
        }
        let Some(donor) = self.donors.get_mut(&level) else {
            return Vec::new();
        };
        let replies = match &packet.body {
            Body::Ask { after, from, parts } => {
                donor.ask(&transfer, after.clone(), *from, *parts, now)
            }
            Body::More => donor.more(&transfer, now),
            _ => Vec::new(),
        };
        let was_dropped = transfer.view < self.first || self.dropped.contains(&(transfer, level));
        let bodies = replies.into_iter().map(|reply| match reply {
            DonorReply::Part(bytes) => Body::Part(bytes),
            DonorReply::End { lasts } => Body::End(lasts),
            DonorReply::Unknown => Body::Unknown { was_dropped },
        });
        bodies.map(|body| packet.answer(self.me, body)).collect()
    }

    /// Transfers for which something is pinned.
    pub(super) fn pinned(&self) -> usize {
        self.donors
            .values()
            .map(|donor| donor.transfers().count())
            .sum()
    }

    pub(super) fn is_at_rest(&self) -> bool {
        self.feed.is_empty() && self.pull.is_none() && self.early.is_empty()
    }

    pub(super) fn is_pulling(&self) -> bool {
        self.pull.is_some()
    }

    /// Its participant comes back under another id: it has what was delivered and what it had kept.
    pub(super) fn return_as(mut self, me: MemberId, now: u64) -> Self {
        let mut is_incomplete = self.pull.is_some();
        for item in core::mem::take(&mut self.feed) {
            match item {
                FeedItem::Message(arrival) => self.keep(&arrival, now),
                FeedItem::Marker { before, view } => {
                    let matching = Matching::new(before.as_deref(), &view, self.subgroup);
                    self.choose_histories(&matching);
                    let wanted = matching.wanted().into_iter().map(|it| it.transfer);
                    let mut mine = wanted.filter(|it| it.member == self.me);
                    is_incomplete |= mine.any(|it| it.reader == KEEPER);
                }
                FeedItem::Left => self.forget(),
            }
        }
        Self {
            local: self.local,
            shared: self.shared.filter(|_| !is_incomplete),
            ..Self::new(me, self.subgroup, self.topic, self.limit)
        }
    }

    /// A message of an own writer that the group has delivered, but not to this participant, which
    /// was lost to it.
    pub(super) fn put_missed(&mut self, mut meta: RecordMeta, payload: &[u8], now: u64) {
        if let Some(kept) = self.local.get_mut(&meta.writer)
            && kept.last.is_none_or(|last| last.sequence < meta.sequence)
        {
            meta.position = kept.last.map_or(0, |last| last.position);
            kept.put(Record::new(&meta, payload), &self.topic.limits, now);
        }
    }

    /// The last message that is kept of an own writer.
    pub(super) fn last_of(&self, writer: &Guid) -> Option<u64> {
        Some(self.local.get(writer)?.last?.sequence)
    }
}
