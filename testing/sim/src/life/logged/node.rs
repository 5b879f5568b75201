//! A participant's part in logs.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use spindle_dds_core::membership::{MemberId, View};
use spindle_dds_core::storage::{Degree, EpochPlace, LogEnd, LogPacket, Logged, RecordMeta};
use spindle_dds_core::{Committed, DeliveryClass, EngineHandle, SubgroupId};
use spindle_dds_transport::Rank;
use spindle_dds_transport::sim::SimFabric;

use super::checks::{self, Sample};
use super::topic::{Place, Topic};
use super::{Logs, Parcel, key_of};
use crate::life::storage::{Message, Told};
use crate::violation::Finding;

/// One thing after the other, as the engine tells it.
enum FeedItem {
    Message {
        subgroup: SubgroupId,
        meta: RecordMeta,
        payload: Vec<u8>,
    },
    View(Vec<(SubgroupId, Place)>),
}

/// A sample that is to be acknowledged.
struct Waits {
    committed: Committed,
    sample: Sample,
    lineage: u128,
}

/// What a participant announces of its logs; `None`: one is not written any more.
pub(crate) type Changes = Vec<(SubgroupId, Option<LogEnd>)>;

pub(crate) struct LogNode {
    me: MemberId,
    pub(super) topics: BTreeMap<SubgroupId, Topic>,
    feed: VecDeque<FeedItem>,
    waits: Vec<Waits>,
    /// Nothing was to be done the last time.
    is_idle: bool,
}

/// Nanoseconds of a keeper in a turn.
const TURN_NS: u64 = 100_000;

impl LogNode {
    pub(super) fn new(me: MemberId) -> Self {
        Self {
            me,
            topics: BTreeMap::new(),
            feed: VecDeque::new(),
            waits: Vec::new(),
            is_idle: false,
        }
    }

    pub(super) fn has_log(&self, subgroup: SubgroupId) -> bool {
        let topic = self.topics.get(&subgroup);
        topic.is_some_and(|it| it.keeper.is_some())
    }

    /// What the engine has told goes to the log thread, and to readers and writers.
    pub(crate) fn hear(&mut self, told: Vec<Told>, handle: &EngineHandle<SimFabric>) {
        for one in told {
            match one {
                Told::Message(message) => self.hear_message(&message),
                Told::ViewBegun(view) => self.hear_view(&view, handle),
            }
        }
    }

    fn hear_message(&mut self, message: &Message) {
        let header = &message.header;
        let meta = RecordMeta {
            position: message.position,
            sequence: header.timestamp as u64,
            timestamp: header.timestamp,
            writer: message.sender.0.to_le_bytes(),
            key: header.key_hash,
            kind: header.kind,
            encapsulation: header.encapsulation,
        };
        if self.has_log(message.subgroup) {
            self.feed.push_back(FeedItem::Message {
                subgroup: message.subgroup,
                meta,
                payload: message.held.bytes().to_vec(),
            });
        }
    }

    fn hear_view(&mut self, view: &Arc<View>, handle: &EngineHandle<SimFabric>) {
        let mut places = Vec::new();
        for spec in &view.subgroups {
            let here = handle.subgroup(spec.subgroup);
            let Some(here) = here.filter(|it| it.epoch() == spec.epoch) else {
                continue;
            };
            let group = view.logs.get(&key_of(spec.subgroup)).cloned();
            let loggers = group.iter().flat_map(|it| &it.loggers);
            let place_of = |id| {
                let mut members = spec.members.iter();
                let at = members.position(|rank| view.members[rank.index()].id == id)?;
                Some((id, Rank(at as u16)))
            };
            let loggers = loggers.filter_map(|it| place_of(it.member));
            let (members, ranks): (Vec<MemberId>, Vec<Rank>) = loggers.unzip();
            let place = Place {
                handle: here,
                group,
                ranks,
                own: members.iter().position(|it| *it == self.me),
            };
            places.push((spec.subgroup, place));
        }
        for topic in self.topics.values_mut() {
            // The last words of the epoch before.
            topic.look();
            topic.now = None;
        }
        for (subgroup, place) in &places {
            let topic = self.topics.entry(*subgroup);
            let topic = topic.or_insert_with(|| Topic::new(None));
            topic
                .levels
                .enter(EpochPlace::of(&place.handle, 0), place.group.as_ref());
            topic.now = Some(place.clone());
        }
        self.feed.push_back(FeedItem::View(places));
    }

    /// The topics that take samples now.
    pub(crate) fn open_topics(&self) -> BTreeSet<SubgroupId> {
        let topics = self.topics.iter();
        let open = topics.filter(|(_, it)| it.now.as_ref().is_some_and(Place::takes_samples));
        open.map(|(subgroup, _)| *subgroup).collect()
    }

    /// A sample was sent.
    pub(crate) fn sent(&mut self, committed: Committed, token: u64) {
        let topic = self.topics.get(&committed.subgroup);
        let group = topic.and_then(|it| it.now.as_ref()?.group.as_ref());
        if committed.class == DeliveryClass::Ordered
            && let Some(group) = group
        {
            let writer = self.me.0;
            self.waits.push(Waits {
                committed,
                sample: Sample { writer, token },
                lineage: group.lineage,
            });
        }
    }

    /// The samples that `spindle.log.ack = quorum` acknowledges now.
    pub(crate) fn acknowledged(
        &mut self,
        has_receipt: impl Fn(&Committed) -> bool,
    ) -> Vec<(SubgroupId, u128, Sample)> {
        let topics = &mut self.topics;
        topics.values_mut().for_each(Topic::look);
        let mut acked = Vec::new();
        self.waits.retain(|it| {
            let committed = &it.committed;
            let subgroup = committed.subgroup;
            let Some(topic) = topics.get(&subgroup) else {
                return false;
            };
            let key = (0, committed.epoch);
            match topic
                .levels
                .of_message(Degree::Quorum, key, committed.index)
            {
                Logged::NotYet => true,
                Logged::Lost => false,
                Logged::Yes => {
                    let is_acked = has_receipt(committed);
                    if is_acked {
                        acked.push((subgroup, it.lineage, it.sample));
                    }
                    !is_acked
                }
            }
        });
        acked
    }

    /// The log thread takes a turn. `count`: items that it comes to.
    pub(crate) fn act(
        &mut self,
        count: usize,
        turn: u64,
        judges: bool,
    ) -> Result<(Vec<Parcel>, Changes), Finding> {
        let now = turn * TURN_NS;
        self.is_idle = self.feed.is_empty();
        for _ in 0..count {
            match self.feed.pop_front() {
                Some(item) => self.take(item, now),
                None => break,
            }
        }
        let (mut packets, mut changes) = (Vec::new(), Changes::new());
        for (subgroup, topic) in &mut self.topics {
            topic.confirm(now);
            let Some(keeper) = &mut topic.keeper else {
                continue;
            };
            keeper.flush(now);
            let (subgroup, from) = (*subgroup, self.me);
            let new = keeper.take_packets().into_iter();
            packets.extend(new.map(|(to, packet)| Parcel {
                to,
                from,
                subgroup,
                packet,
            }));
            if let Some(end) = keeper.announcement() {
                changes.push((subgroup, Some(end)));
            }
            self.is_idle &= keeper.due().is_none() && !keeper.is_behind();
            if topic.is_dead() {
                topic.keeper = None;
                changes.push((subgroup, None));
            }
        }
        self.is_idle &= packets.is_empty() && changes.is_empty();
        self.tell_words(judges)?;
        Ok((packets, changes))
    }

    fn take(&mut self, item: FeedItem, now: u64) {
        match item {
            FeedItem::Message {
                subgroup,
                meta,
                payload,
            } => {
                if let Some(topic) = self.topics.get_mut(&subgroup) {
                    topic.taken(meta.position);
                    if let Some(keeper) = &mut topic.keeper {
                        keeper.deliver(&meta, payload);
                    }
                }
            }
            FeedItem::View(places) => {
                for (subgroup, place) in places {
                    if let Some(topic) = self.topics.get_mut(&subgroup) {
                        topic.begin(self.me, place, now);
                    }
                }
            }
        }
    }

    fn tell_words(&mut self, judges: bool) -> Result<(), Finding> {
        for (subgroup, topic) in &mut self.topics {
            let word = topic.word();
            let Some((word, handle)) = word.map(|(word, place)| (word, place.handle.clone()))
            else {
                continue;
            };
            if judges && let Some(keeper) = &mut topic.keeper {
                // Positions may have no record: the last one below the word counts.
                let last = keeper.log_mut().chain_before(word);
                last.map_err(|error| error.to_string())
                    .and_then(|(end, _)| checks::is_on_disk(keeper.log().disk(), end))
                    .map_err(|what| ("D8", format!("subgroup {subgroup}: {what}")))?;
            }
            handle.set_persisted(word);
        }
        Ok(())
    }

    pub(crate) fn receive(&mut self, parcel: Parcel, turn: u64) {
        let topic = self.topics.get_mut(&parcel.subgroup);
        if let Some(keeper) = topic.and_then(|it| it.keeper.as_mut()) {
            keeper.handle(parcel.from, parcel.packet, turn * TURN_NS);
        } else if matches!(parcel.packet, LogPacket::Ask { .. }) {
            self.is_idle = false;
        }
    }

    /// Its keepers in words.
    pub(crate) fn describe(&self) -> String {
        let topics = self.topics.iter().filter_map(|(subgroup, topic)| {
            let keeper = topic.keeper.as_ref()?;
            let (whole, ready) = (keeper.is_whole(), keeper.is_ready());
            let (due, status) = (keeper.due(), keeper.status());
            let log = keeper.log_id();
            Some(format!(
                "\nmember {}, subgroup {subgroup}, log {log}: whole {whole}, ready {ready}, due {due:?}, {status:?}",
                self.me
            ))
        });
        topics.collect()
    }

    pub(crate) fn is_at_rest(&self) -> bool {
        self.is_idle && self.feed.is_empty()
    }
}

impl Logs {
    /// The samples of a member were acknowledged.
    pub(crate) fn note_acknowledged(&mut self, acked: Vec<(SubgroupId, u128, Sample)>) {
        self.acknowledged += acked.len();
        for (subgroup, lineage, sample) in acked {
            let known = self.acked.entry((subgroup, lineage)).or_default();
            known.insert(sample);
        }
    }
}
