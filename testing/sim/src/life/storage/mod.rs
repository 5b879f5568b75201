//! The storage levels in lives: a model of the driver around the product's `storage`.
//!
//! ```text
//!   engine --deliveries, views--> Storage --feed----> Keeper (the history thread): SampleHistory, Donor
//!                                         --inbox---> Reader: Handover, Joiner
//!   Keeper, Reader --packets--> Post --after a delay--> Storage of another member
//! ```
//!
//! Feed and inboxes keep the engine's order; the history thread and the readers come to them at random
//! turns. Endpoints announce their levels (`announcement`), of which all members compute alike which
//! transfers begin with a view (`matching`). `plain` says what a history must be.

mod announcement;
mod facts;
mod keeper;
mod matching;
mod packets;
mod plain;
mod reader;
mod transfer;

use std::collections::BTreeMap;
use std::sync::Arc;

use spindle_dds_core::membership::{MemberId, View};
use spindle_dds_core::storage::RecordMeta;
use spindle_dds_core::{Header, Held, SubgroupId};
use spindle_dds_transport::sim::{Rng, SimFabric};

pub(super) use self::announcement::{Guid, Level, RETURNED, Topic, draw, writer_of};
pub(super) use self::facts::{SourceEnd, StorageFact};
use self::keeper::{Arrival, FeedItem, Keeper};
use self::matching::{KEEPER, Matching};
pub(super) use self::matching::{Source, Transfer};
use self::packets::Body;
pub(super) use self::packets::{Packet, Post, Road};
use self::reader::{Incoming, Reader};

/// What the engine has told, in order.
pub(super) enum Told {
    Message(Message),
    ViewBegun(Arc<View>),
}

/// An ordered message.
pub(super) struct Message {
    pub(super) subgroup: SubgroupId,
    pub(super) epoch: u64,
    pub(super) sender: MemberId,
    pub(super) position: u64,
    pub(super) header: Header,
    pub(super) held: Held<SimFabric>,
}

/// A member's part in storage.
pub(super) struct Storage {
    me: MemberId,
    seed: u64,
    limit: u64,
    rng: Rng,
    /// The present view; before the first one, that which its sponsor was in.
    view: Option<Arc<View>>,
    keepers: BTreeMap<SubgroupId, Keeper>,
    readers: BTreeMap<(SubgroupId, Guid), Reader>,
    pub(super) facts: Vec<StorageFact>,
}

impl Storage {
    pub(super) fn new(me: MemberId, seed: u64, limit: u64) -> Self {
        Self {
            me,
            seed,
            limit,
            rng: Rng::new(seed ^ (me.0 as u64) << 35),
            view: None,
            keepers: BTreeMap::new(),
            readers: BTreeMap::new(),
            facts: Vec::new(),
        }
    }

    /// The view before this member's first one.
    pub(super) fn follows(&mut self, view: Arc<View>) {
        self.view = Some(view);
    }

    /// The topic of a subgroup.
    pub(super) fn topic(&self, subgroup: SubgroupId) -> Topic {
        Topic::of(self.seed, subgroup)
    }

    /// What the engine has told goes to the history thread and to the readers.
    pub(super) fn hear(&mut self, told: impl IntoIterator<Item = Told>) {
        for one in told {
            match one {
                Told::Message(message) => self.hear_message(message),
                Told::ViewBegun(view) => self.begin_view(&view),
            }
        }
    }

    fn hear_message(&mut self, message: Message) {
        let Message {
            subgroup, epoch, ..
        } = message;
        let view = self.view.as_deref();
        let writer = view.and_then(|view| writer_of(view, message.sender, subgroup));
        let (Some((writer, level)), Some(keeper)) = (writer, self.keepers.get_mut(&subgroup))
        else {
            return;
        };
        let header = &message.header;
        let arrival = Arrival {
            meta: RecordMeta {
                position: message.position,
                sequence: header.writer_seq,
                timestamp: header.timestamp,
                writer,
                key: header.key_hash,
                kind: header.kind,
                encapsulation: header.encapsulation,
            },
            level,
            held: Arc::new(message.held),
        };
        self.facts.push(StorageFact::Kept {
            subgroup,
            epoch,
            level,
            topic: Topic::of(self.seed, subgroup),
            message: arrival.meta,
        });
        let readers = self.readers.iter_mut();
        let here = readers.filter(|((its, _), reader)| *its == subgroup && level >= reader.level);
        for (_, reader) in here {
            reader.inbox.push_back(Incoming::Message(arrival.clone()));
        }
        keeper.feed.push_back(FeedItem::Message(arrival));
    }

    fn begin_view(&mut self, view: &Arc<View>) {
        let before = self.view.replace(view.clone());
        self.keepers
            .values_mut()
            .for_each(|it| it.view_begins(view));
        let pulls = self.readers.values_mut().filter_map(|it| it.pull.as_mut());
        pulls.for_each(|pull| pull.view_begins(view));
        let me = view.rank(self.me);
        let mine = view.subgroups.iter();
        let mine = mine.filter(|it| me.is_some_and(|me| it.members.contains(&me)));
        let mine: BTreeMap<_, _> = mine.map(|it| (it.subgroup, it.epoch)).collect();
        self.keepers.retain(|_, keeper| !keeper.is_over());
        for (subgroup, keeper) in &mut self.keepers {
            if !mine.contains_key(subgroup) {
                keeper.leave();
            }
        }
        self.readers
            .retain(|(subgroup, _), _| mine.contains_key(subgroup));
        for (subgroup, epoch) in mine {
            if epoch == view.id {
                self.begin_epoch(subgroup, before.as_ref(), view);
            }
        }
    }

    fn begin_epoch(&mut self, subgroup: SubgroupId, before: Option<&Arc<View>>, view: &Arc<View>) {
        let matching = Matching::new(before.map(|it| &**it), view, subgroup);
        let epoch = view.id;
        if matching.begins_anew() {
            self.facts.push(StorageFact::BeginsAnew { subgroup, epoch });
        }
        let topic = Topic::of(self.seed, subgroup);
        let new = || Keeper::new(self.me, subgroup, topic, self.limit);
        let keeper = self.keepers.entry(subgroup).or_insert_with(new);
        keeper.has_left = false;
        keeper.feed.push_back(FeedItem::Marker {
            before: before.cloned(),
            view: view.clone(),
        });
        let mine = || matching.of(self.me).filter(|it| !it.is_writer);
        let is_here = |guid: &Guid| mine().any(|it| it.guid == *guid);
        self.readers
            .retain(|(its, guid), _| *its != subgroup || is_here(guid));
        for announced in mine() {
            let new = || Reader::new(announced.guid, announced.level);
            let reader = self
                .readers
                .entry((subgroup, announced.guid))
                .or_insert_with(new);
            let is_new = !matching.was_there(announced);
            let met = matching.writers(announced.level);
            let met = met.filter(|writer| is_new || !matching.was_there(writer));
            self.facts.push(StorageFact::Meets {
                reader: reader.guid,
                is_new,
                epoch,
                writers: met.map(|it| it.guid).collect(),
            });
            let mut wanted = matching.wanted().into_iter();
            let is_its = |it: &Transfer| (it.member, it.reader) == (self.me, reader.guid);
            if let Some(wanted) = wanted.find(|it| is_its(&it.transfer)) {
                reader.inbox.push_back(Incoming::Await(wanted));
            }
        }
    }

    /// The history thread and the readers act, each by chance. Without `dawdling`, all do.
    pub(super) fn act(&mut self, now: u64, dawdling: bool) -> Vec<Packet> {
        let Some(view) = self.view.clone() else {
            return Vec::new();
        };
        let mut packets = Vec::new();
        for keeper in self.keepers.values_mut() {
            if !dawdling || self.rng.chance(0.3) {
                for _ in 0..1 + self.rng.below(4) {
                    packets.extend(keeper.act(&view, now, &mut self.facts));
                }
            }
        }
        for reader in self.readers.values_mut() {
            if !dawdling || self.rng.chance(0.3) {
                packets.extend(reader.act(&view, &mut self.rng, &mut self.facts));
            }
        }
        packets
    }

    /// A packet has arrived.
    pub(super) fn receive(&mut self, packet: Packet, now: u64) -> Vec<Packet> {
        let transfer = packet.transfer;
        if let Body::Ask { .. } | Body::More = packet.body {
            return self.asked(packet, now);
        }
        let Some(keeper) = self.keepers.get_mut(&transfer.subgroup) else {
            return Vec::new();
        };
        if transfer.reader == KEEPER {
            keeper.receive(packet, &mut self.facts);
        } else if let Some(reader) = self.readers.get_mut(&(transfer.subgroup, transfer.reader)) {
            let pull = reader.pull.as_mut();
            if let Some(pull) = pull.filter(|it| it.transfer == transfer) {
                pull.receive((packet.from, packet.level), packet.body, &mut self.facts);
            }
        }
        Vec::new()
    }

    /// A joiner asks. What it asks for may begin with a view that has not begun here.
    fn asked(&mut self, packet: Packet, now: u64) -> Vec<Packet> {
        let subgroup = packet.transfer.subgroup;
        let topic = self.topic(subgroup);
        let new = || Keeper::new(self.me, subgroup, topic, self.limit);
        let present = self.view.as_ref().map_or(0, |view| view.id);
        if packet.transfer.view > present {
            let keeper = self.keepers.entry(subgroup).or_insert_with(new);
            return keeper.asked(packet, now);
        }
        match self.keepers.get_mut(&subgroup) {
            Some(keeper) => keeper.asked(packet, now),
            // It has left the subgroup long ago.
            None => vec![packet.answer(self.me, Body::Unknown { was_dropped: true })],
        }
    }

    /// Whether nothing is to be kept, given or shown any more. What is pinned may still be asked for.
    pub(super) fn is_at_rest(&self) -> bool {
        self.keepers.values().all(Keeper::is_at_rest)
            && self.readers.values().all(Reader::is_at_rest)
    }

    /// Transfers for which something is pinned.
    pub(super) fn pinned(&self) -> usize {
        self.keepers.values().map(Keeper::pinned).sum()
    }

    /// What is left at rest.
    pub(super) fn facts_at_rest(&self, reads: bool) -> Vec<StorageFact> {
        let pulling = self.keepers.values().filter(|it| it.is_pulling()).count();
        let awaiting = self.readers.values().filter(|it| it.is_awaiting()).count();
        let mut facts = vec![StorageFact::AtRest {
            member: self.me,
            awaiting: pulling + awaiting,
            pinned: self.pinned(),
            aside_bytes: self.readers.values().map(Reader::aside_bytes).sum(),
        }];
        let readers = self.readers.values().filter(|_| reads);
        facts.extend(readers.map(|reader| StorageFact::ReaderAtRest {
            reader: reader.guid,
        }));
        facts
    }

    /// This participant comes back, after it was another member: it has what it had kept and shown.
    pub(super) fn return_from(&mut self, before: Self, now: u64) {
        let keepers = before.keepers.into_iter();
        let keepers = keepers.map(|(subgroup, keeper)| (subgroup, keeper.return_as(self.me, now)));
        self.keepers = keepers.collect();
        self.readers = before.readers;
        self.readers.values_mut().for_each(Reader::lose_group);
    }

    /// A message of an own writer that the group has delivered, but not to this participant.
    pub(super) fn put_missed(
        &mut self,
        subgroup: SubgroupId,
        meta: RecordMeta,
        payload: &[u8],
        now: u64,
    ) {
        if let Some(keeper) = self.keepers.get_mut(&subgroup) {
            keeper.put_missed(meta, payload, now);
        }
    }

    /// The last message that is kept of an own writer.
    pub(super) fn last_of(&self, subgroup: SubgroupId, writer: &Guid) -> u64 {
        let keeper = self.keepers.get(&subgroup);
        keeper.and_then(|it| it.last_of(writer)).unwrap_or_default()
    }
}

impl std::fmt::Debug for Storage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            keepers, readers, ..
        } = self;
        let readers: Vec<_> = readers.values().filter(|it| !it.is_at_rest()).collect();
        let keepers: Vec<_> = keepers
            .values()
            .filter(|it| !it.is_at_rest() || it.pinned() > 0)
            .collect();
        f.debug_struct("Storage")
            .field("keepers", &keepers)
            .field("readers", &readers)
            .finish()
    }
}
