//! Which matches bring history, decided by the announcements of a view on both sides alike.
//!
//! A match of a reader and a writer that are both durable, and that did not match before, brings the
//! writer's history to the reader: the writer's participant pins it at the beginning of the view, and
//! the reader's asks for it. A writer that is new in a view has none.
//!
//! A topic with TRANSIENT endpoints is kept by all participants that have one. One that begins to keep it
//! gets what the others have kept before, from the first of them that knows it. A TRANSIENT reader that
//! is new gets all that its own participant keeps.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use spindle_dds_core::membership::{MemberId, View};
use spindle_dds_core::storage::{HistoryLimits, LogGroup};
use spindle_dds_core::{SubgroupHandle, SubgroupId, SubgroupSpec, TopicKey};
use spindle_dds_qos::DurabilityKind;
use spindle_dds_transport::Rank;

use super::announced_matches::{AnnouncedMatches, EndpointName};
use super::known_endpoints::KnownEndpoints;
use super::local_endpoints::LocalEndpoint;
use super::view_matcher::subgroup_rank;
use crate::discovery::{Entry, Match, ReaderEntry, WriterEntry};
use crate::driver::logs::log_group;
use crate::driver::receive::reader_port::ReaderPort;
use crate::driver::receive::routes::KeptTopic;
use crate::handle::{Guid, InstanceHandle};
use crate::history::{
    HistoryService, KeptHistory, KeptWriter, LogPlace, LogService, LoggedTopic, NewTopic,
    NewTransfer, Pin, PinPart, TopicHistory, TransferId, TransferName, service_limits,
};
use crate::wire::Wire;

/// Goes from view to view beside the [`ViewMatcher`](super::view_matcher::ViewMatcher).
pub(super) struct HistoryMatches {
    me: MemberId,
    service: Arc<HistoryService>,
    logs: Arc<LogService>,
    /// The endpoints of the view before, in this group.
    before: Option<KnownEndpoints>,
    /// Durable writers of this participant that the last view has, by their numbers.
    writers: BTreeMap<u64, Matched>,
    /// Topics that this participant keeps, by name.
    topics: BTreeMap<String, Keeping>,
    /// Transfers to readers of this participant that begin with the view.
    transfers: Vec<NewTransfer>,
    /// TRANSIENT and PERSISTENT readers of this participant that begin with the view, and their topics.
    readers: Vec<(Guid, String)>,
    /// PERSISTENT readers of this participant that began before the logs of their topic were open.
    early: BTreeSet<Guid>,
}

/// The durable readers that match a writer in a subgroup epoch.
struct Matched {
    epoch: u64,
    readers: BTreeSet<Guid>,
}

/// A topic that this participant keeps.
struct Keeping {
    topic: Arc<TopicHistory>,
    subgroup: SubgroupId,
    base: u64,
    /// Its TRANSIENT writers in the last view, with their members.
    writers: BTreeMap<Guid, (MemberId, u32, Arc<KeptWriter>)>,
}

/// What begins with a view.
#[derive(Default)]
pub(crate) struct BegunHistory {
    /// Histories of subgroups that begin an epoch at this position.
    pub(crate) bases: Vec<(Arc<KeptHistory>, u64)>,
    pub(crate) gone: Vec<(Arc<KeptWriter>, bool)>,
    pub(crate) writers: BTreeSet<[u8; 16]>,
    pub(crate) topics: Vec<NewTopic>,
    pub(crate) pins: Vec<Pin>,
    pub(crate) transfers: Vec<NewTransfer>,
}

/// By topic that this participant keeps: its endpoints of TRANSIENT at least.
type OwnTopics<'v> = BTreeMap<&'v str, OwnTopic<'v>>;

struct OwnTopic<'v> {
    /// The first one.
    number: u64,
    entry: &'v Entry,
    /// Whether any is PERSISTENT, and any TRANSIENT.
    is_logged: bool,
    is_transient: bool,
}

/// By topic: the members that keep it, each with its first TRANSIENT endpoint.
type Keepers = BTreeMap<String, BTreeMap<MemberId, Guid>>;

/// The view that begins.
struct Beginning<'v> {
    view: &'v View,
    announced: &'v AnnouncedMatches,
    own: &'v BTreeMap<u64, LocalEndpoint>,
    left: &'v BTreeSet<MemberId>,
}

impl HistoryMatches {
    pub(super) fn new(
        me: MemberId,
        (service, logs): (Arc<HistoryService>, Arc<LogService>),
    ) -> Self {
        Self {
            me,
            service,
            logs,
            before: None,
            writers: BTreeMap::new(),
            topics: BTreeMap::new(),
            transfers: Vec::new(),
            readers: Vec::new(),
            early: BTreeSet::new(),
        }
    }

    /// The transfer of history that a reader of this participant awaits in a new epoch, in which it has
    /// these matches; `None` if there is no history to await. `had_matched`: whether a writer matched it
    /// in the epoch before; `was_in_view`: whether it had one.
    pub(super) fn transfer(
        &mut self,
        (view, known): (&View, &KnownEndpoints),
        (reader, port): (&ReaderEntry, &Arc<ReaderPort<Wire>>),
        matches: &[(EndpointName, Match)],
        had_matched: impl Fn(InstanceHandle) -> bool,
        was_in_view: bool,
    ) -> Option<TransferId> {
        let (guid, topic) = (reader.endpoint.guid, &reader.endpoint.topic);
        let mut sources: BTreeMap<MemberId, Vec<[u8; 16]>> = BTreeMap::new();
        let mut unmatched = Vec::new();
        match reader.qos.durability.kind {
            DurabilityKind::Volatile => return None,
            DurabilityKind::TransientLocal => {
                for (name, _) in matches.iter().filter(|(_, it)| *it == Match::Matched) {
                    let Some(Entry::Writer(writer)) = known.get(*name).map(|it| &**it) else {
                        continue;
                    };
                    let guid = writer.endpoint.guid;
                    let is_new = self.is_new(*name, writer);
                    if !is_new && !had_matched(InstanceHandle::of_entity(guid)) {
                        sources.entry(name.0).or_default().push(guid.0);
                    }
                }
            }
            DurabilityKind::Persistent if !self.begins(view, reader, was_in_view) => return None,
            DurabilityKind::Transient if was_in_view => return None,
            _ => {
                // What is kept of the topic is of all its writers.
                let others = matches.iter().filter(|(_, it)| *it != Match::Matched);
                let guid_of = |name: &EndpointName| Some(known.get(*name)?.endpoint().guid.0);
                unmatched.extend(others.filter_map(|(name, _)| guid_of(name)));
                sources.insert(self.me, Vec::new());
                self.readers.push((guid, topic.clone()));
            }
        }
        if sources.is_empty() {
            return None;
        }
        let id = self.service.new_transfer();
        self.transfers.push(NewTransfer {
            id,
            name: TransferName {
                endpoint: guid.0,
                view: view.id,
            },
            topic: topic.clone(),
            port: port.clone(),
            sources: sources.into_iter().collect(),
            unmatched,
        });
        Some(id)
    }

    /// Whether a PERSISTENT reader gets its history in this view: in the first in which it is, and the logs
    /// are open.
    fn begins(&mut self, view: &View, reader: &ReaderEntry, was_in_view: bool) -> bool {
        let (guid, topic) = (reader.endpoint.guid, &reader.endpoint.topic);
        let is_open = log_group(view, topic).is_some_and(LogGroup::is_open);
        let is_early = self.early.remove(&guid);
        let is_due = !was_in_view || is_early;
        if is_due && !is_open {
            self.early.insert(guid);
        }
        is_due && is_open
    }

    /// Whether a PERSISTENT reader has history to await that does not come yet: the logs of its topic are
    /// shut, or it has writers and no log.
    pub(super) fn awaits_logs(&self, view: &View, reader: &ReaderEntry, has_writers: bool) -> bool {
        let has_log = log_group(view, &reader.endpoint.topic).is_some();
        self.early.contains(&reader.endpoint.guid) && (has_log || has_writers)
    }

    /// Whether a writer cannot have written anything before the view: the view before did not have it, and
    /// it has not come back.
    fn is_new(&self, name: EndpointName, writer: &WriterEntry) -> bool {
        let before = self.before.as_ref();
        before.is_some_and(|before| match before.member(name.0) {
            Some(member) => member.get(name.1).is_none(),
            None => writer.returns == 0,
        })
    }

    /// A view has begun, and all readers of this participant have their epochs. `left`: members that have
    /// left since the view before, on purpose.
    pub(super) fn view_begun(
        &mut self,
        view: &View,
        announced: &AnnouncedMatches,
        own: &BTreeMap<u64, LocalEndpoint>,
        left: &BTreeSet<MemberId>,
    ) -> BegunHistory {
        let beginning = Beginning {
            view,
            announced,
            own,
            left,
        };
        let mut begun = BegunHistory {
            transfers: std::mem::take(&mut self.transfers),
            ..BegunHistory::default()
        };
        self.keep_topics(&beginning, &mut begun);
        self.pin_writers(&beginning, &mut begun);
        self.before = Some(announced.known.clone());
        begun
    }

    /// Pins the histories of this participant's writers for the readers that newly match them.
    fn pin_writers(&mut self, beginning: &Beginning<'_>, begun: &mut BegunHistory) {
        let known = &beginning.announced.known;
        let mut pins: BTreeMap<Guid, Pin> = BTreeMap::new();
        let announced = known.member(self.me);
        let announced = announced.into_iter().flat_map(|it| it.all());
        let mut durable = BTreeSet::new();
        for (number, entry) in announced {
            let Entry::Writer(writer) = &**entry else {
                continue;
            };
            let spec = beginning.spec_of(entry);
            let Some(spec) = spec.filter(|_| durability(entry) > DurabilityKind::Volatile) else {
                continue;
            };
            durable.insert(*number);
            let before = self.writers.get(number);
            if before.is_some_and(|it| it.epoch == spec.epoch) {
                continue;
            }
            let kept = beginning.own.get(number).and_then(kept_writer);
            begun
                .bases
                .extend(kept.map(|it| (it.history.clone(), spec.base)));
            let topic = self.topics.get(&writer.endpoint.topic);
            let is_of_topic = durability(entry) > DurabilityKind::TransientLocal;
            let of_topic = topic.filter(|_| is_of_topic && beginning.own.contains_key(number));
            let matches = beginning.announced.matches.get(number);
            let readers = local_readers(known, matches.map_or(&[][..], |it| it));
            let is_new = |guid: &Guid| before.is_none_or(|it| !it.readers.contains(guid));
            for (guid, member) in readers.iter().filter(|(guid, _)| is_new(guid)) {
                let pin = pins.entry(*guid).or_insert_with(|| Pin {
                    joiner: *member,
                    endpoint: guid.0,
                    base: spec.base,
                    parts: Vec::new(),
                });
                // A writer that was deleted meanwhile has none.
                let part = kept.map(|it| PinPart::Writer(it.history.clone()));
                let guid = writer.endpoint.guid.0;
                let part_of = |it: &Keeping| PinPart::Topic(it.topic.clone(), Some(guid));
                pin.parts.extend(part.or_else(|| of_topic.map(part_of)));
            }
            let matched = Matched {
                epoch: spec.epoch,
                readers: readers.into_keys().collect(),
            };
            self.writers.insert(*number, matched);
        }
        self.writers.retain(|number, _| durable.contains(number));
        begun.pins.extend(pins.into_values());
    }

    /// Begins to keep topics, ends to, and goes on with others.
    fn keep_topics(&mut self, beginning: &Beginning<'_>, begun: &mut BegunHistory) {
        let known = &beginning.announced.known;
        let mut own = OwnTopics::new();
        let announced = known.member(self.me).into_iter().flat_map(|it| it.all());
        for (number, entry) in announced {
            if durability(entry) > DurabilityKind::TransientLocal {
                let topic = &*entry.endpoint().topic;
                let of_topic = own.entry(topic).or_insert(OwnTopic {
                    number: *number,
                    entry,
                    is_logged: false,
                    is_transient: false,
                });
                match durability(entry) {
                    DurabilityKind::Persistent => of_topic.is_logged = true,
                    _ => of_topic.is_transient = true,
                }
            }
        }
        self.topics.retain(|name, _| own.contains_key(&**name));
        if own.is_empty() && self.service.topics().is_empty() {
            self.readers.clear();
            return;
        }
        let local = beginning.own.values().map(|it| it.topic().name.as_str());
        let local: BTreeSet<&str> = local.collect();
        self.service.retain_topics(|name| local.contains(name));
        let before = self.before.as_ref().map(|before| keepers(before, &own));
        let keepers = keepers(known, &own);
        for (name, own) in own {
            let OwnTopic { number, entry, .. } = own;
            let Some(spec) = beginning.spec_of(entry) else {
                continue;
            };
            let of_topic = keepers.get(name).cloned().unwrap_or_default();
            let had = before
                .as_ref()
                .map(|it| it.get(name).cloned().unwrap_or_default());
            let mut had = had;
            let (mut log, mut keeps_unlogged) = (None, false);
            let group = log_group(beginning.view, name);
            let group = group.filter(|_| own.is_logged);
            let opening =
                group.filter(|it| it.is_open() && it.generation.view == beginning.view.id);
            if let Some(opening) = opening {
                // All that is kept of the topic begins with what its logs have.
                keeps_unlogged = self.topics.remove(name).is_some();
                let loggers = opening.loggers.iter().map(|it| it.member);
                let loggers = loggers.filter_map(|it| Some((it, *of_topic.get(&it)?)));
                had = Some(loggers.collect());
                log = self
                    .logs
                    .fill(name)
                    .filter(|_| opening.log_of(self.me).is_some());
            } else if own.is_logged
                && !own.is_transient
                && !self.topics.contains_key(name)
                && !group.is_some_and(LogGroup::is_open)
            {
                // What is to be kept is in logs that are shut, or there is none.
                continue;
            }
            let is_filled = log.is_some();
            if self.topics.contains_key(name) {
                self.pin_topic(name, spec.base, &of_topic, &had.unwrap_or_default(), begun);
            } else if let Some(endpoint) = beginning.own.get(&number) {
                let guid = entry.endpoint().guid;
                let donors = beginning.view.members.iter().map(|it| it.id);
                let donors = donors.filter(|id| {
                    let had_it = had.as_ref().is_none_or(|had| had.contains_key(id));
                    *id != self.me && of_topic.contains_key(id) && had_it
                });
                let topic = self.service.topic(name, &endpoint.topic().sample_type);
                begun.topics.push(NewTopic {
                    id: self.service.new_transfer(),
                    name: TransferName {
                        endpoint: guid.0,
                        view: beginning.view.id,
                    },
                    topic: topic.clone(),
                    base: spec.base,
                    donors: if is_filled {
                        Vec::new()
                    } else {
                        donors.collect()
                    },
                    keeps_unlogged,
                    log,
                });
                let keeping = Keeping {
                    topic,
                    subgroup: spec.subgroup,
                    base: spec.base,
                    writers: BTreeMap::new(),
                };
                self.topics.insert(name.to_owned(), keeping);
                if is_filled {
                    let had = had.unwrap_or_default();
                    self.pin_topic(name, spec.base, &of_topic, &had, begun);
                }
            }
            if let Some(keeping) = self.topics.get_mut(name) {
                keeping.go_on(name, spec, beginning, begun);
            }
        }
        self.pin_for_readers(begun);
    }

    /// Pins a topic that was kept before for the members that begin to keep it.
    fn pin_topic(
        &self,
        name: &str,
        base: u64,
        keepers: &BTreeMap<MemberId, Guid>,
        before: &BTreeMap<MemberId, Guid>,
        begun: &mut BegunHistory,
    ) {
        let Some(keeping) = self.topics.get(name) else {
            return;
        };
        let new = keepers.iter().filter(|(id, _)| !before.contains_key(id));
        begun.pins.extend(new.map(|(joiner, guid)| Pin {
            joiner: *joiner,
            endpoint: guid.0,
            base,
            parts: vec![PinPart::Topic(keeping.topic.clone(), None)],
        }));
    }

    /// Pins what is kept of topics for new TRANSIENT readers of this participant.
    fn pin_for_readers(&mut self, begun: &mut BegunHistory) {
        for (reader, topic) in std::mem::take(&mut self.readers) {
            let keeping = self.topics.get(&topic);
            let part = |it: &Keeping| PinPart::Topic(it.topic.clone(), None);
            begun.pins.push(Pin {
                joiner: self.me,
                endpoint: reader.0,
                base: keeping.map_or(0, |it| it.base),
                parts: keeping.map(part).into_iter().collect(),
            });
        }
    }

    /// The topics of which messages are kept.
    pub(super) fn kept_topics(
        &self,
        view: &View,
        own: &BTreeMap<u64, LocalEndpoint>,
    ) -> Vec<KeptTopic> {
        let mut topics: BTreeMap<(SubgroupId, u64), (u64, Vec<_>)> = BTreeMap::new();
        let mut add = |name: &str, spec: &SubgroupSpec, writer: (Rank, u32, Arc<KeptWriter>)| {
            let key = (spec.subgroup, TopicKey::of_name(name).low());
            let (_, writers) = topics.entry(key).or_insert((spec.base, Vec::new()));
            writers.push(writer);
        };
        for number in self.writers.keys() {
            let Some(endpoint @ LocalEndpoint::Writer(writer)) = own.get(number) else {
                continue;
            };
            let spec = writer.subgroup().and_then(|it| view.subgroup(it));
            if let (Some(kept), Some(spec)) = (kept_writer(endpoint), spec)
                && let Some(rank) = subgroup_rank(spec, view, self.me)
            {
                add(
                    &endpoint.topic().name,
                    spec,
                    (rank, writer.number, kept.clone()),
                );
            }
        }
        for (name, keeping) in &self.topics {
            let Some(spec) = view.subgroup(keeping.subgroup) else {
                continue;
            };
            for (member, number, kept) in keeping.writers.values() {
                if let Some(rank) = subgroup_rank(spec, view, *member) {
                    add(name, spec, (rank, *number, kept.clone()));
                }
            }
        }
        let logs = self.logs.topics();
        let log_of = |(subgroup, low): (SubgroupId, u64)| {
            let mut logs = logs.iter();
            logs.find(|it| it.subgroup == subgroup && it.key.low() == low)
                .cloned()
        };
        let topics = topics.into_iter();
        topics
            .map(|(key, (base, writers))| KeptTopic::new(key, base, writers).logged(log_of(key)))
            .collect()
    }

    /// The topics that are logged here, in a view. `epoch_of`: the epochs of subgroups.
    pub(super) fn log_places(
        &self,
        view: &View,
        known: &KnownEndpoints,
        epoch_of: impl Fn(SubgroupId) -> Option<Arc<SubgroupHandle<Wire>>>,
    ) -> Vec<LogPlace> {
        let place = |topic: Arc<LoggedTopic>| {
            let spec = view.subgroup(topic.subgroup)?;
            let group = log_group(view, &topic.name).cloned();
            let loggers = group.iter().flat_map(|it| &it.loggers);
            Some(LogPlace {
                handle: epoch_of(topic.subgroup)?,
                is_logger: group
                    .as_ref()
                    .is_some_and(|it| it.log_of(self.me).is_some()),
                ranks: loggers
                    .filter_map(|it| subgroup_rank(spec, view, it.member))
                    .collect(),
                limits: persistent_limits(known, &topic.name),
                group,
                topic,
            })
        };
        self.logs.topics().into_iter().filter_map(place).collect()
    }
}

impl Keeping {
    /// Goes on with the writers of the view.
    fn go_on(
        &mut self,
        name: &str,
        spec: &SubgroupSpec,
        beginning: &Beginning<'_>,
        begun: &mut BegunHistory,
    ) {
        self.base = spec.base;
        let mut now = BTreeMap::new();
        for (member, endpoints) in beginning.announced.known.members() {
            for (_, entry) in endpoints.all() {
                let Entry::Writer(writer) = &**entry else {
                    continue;
                };
                let is_of = writer.endpoint.topic == name
                    && writer.endpoint.subgroup == spec.subgroup.0
                    && durability(entry) > DurabilityKind::TransientLocal;
                if !is_of {
                    continue;
                }
                let guid = writer.endpoint.guid;
                begun.writers.insert(guid.0);
                let known = self.writers.remove(&guid).map(|(.., kept)| kept);
                let kept = known.unwrap_or_else(|| {
                    Arc::new(KeptWriter::of_topic(guid.0, &writer.qos, &self.topic))
                });
                now.insert(guid, (member, writer.number, kept));
            }
        }
        for (member, _, kept) in std::mem::replace(&mut self.writers, now).into_values() {
            // Deleted, or gone with its participant.
            let has_left =
                beginning.view.rank(member).is_some() || beginning.left.contains(&member);
            begun.gone.push((kept, has_left));
        }
    }
}

impl Beginning<'_> {
    fn spec_of(&self, entry: &Entry) -> Option<&SubgroupSpec> {
        self.view.subgroup(SubgroupId(entry.endpoint().subgroup))
    }
}

pub(super) fn durability(entry: &Entry) -> DurabilityKind {
    match entry {
        Entry::Writer(writer) => writer.qos.durability.kind,
        Entry::Reader(reader) => reader.qos.durability.kind,
    }
}

/// What the first PERSISTENT writer of a topic asks to be kept.
fn persistent_limits(known: &KnownEndpoints, topic: &str) -> Option<HistoryLimits> {
    let all = known.members();
    let mut all = all.flat_map(|(_, endpoints)| endpoints.all());
    all.find_map(|(_, entry)| match &**entry {
        Entry::Writer(writer) if writer.endpoint.topic == topic => {
            let is_logged = writer.qos.durability.kind == DurabilityKind::Persistent;
            is_logged.then(|| service_limits(&writer.qos.durability_service))
        }
        _ => None,
    })
}

fn kept_writer(endpoint: &LocalEndpoint) -> Option<&Arc<KeptWriter>> {
    match endpoint {
        LocalEndpoint::Writer(writer) => writer.side.history(),
        LocalEndpoint::Reader(_) => None,
    }
}

/// The members that keep these topics.
fn keepers(known: &KnownEndpoints, topics: &OwnTopics<'_>) -> Keepers {
    let mut keepers = Keepers::new();
    for (member, endpoints) in known.members() {
        for (_, entry) in endpoints.all() {
            let endpoint = entry.endpoint();
            if durability(entry) > DurabilityKind::TransientLocal
                && topics.contains_key(&*endpoint.topic)
            {
                let of_topic = keepers.entry(endpoint.topic.clone()).or_default();
                of_topic.entry(member).or_insert(endpoint.guid);
            }
        }
    }
    keepers
}

/// The TRANSIENT_LOCAL readers that match a writer, and their members.
fn local_readers(
    known: &KnownEndpoints,
    matches: &[(EndpointName, Match)],
) -> BTreeMap<Guid, MemberId> {
    let matched = matches.iter().filter(|(_, it)| *it == Match::Matched);
    let readers = matched.filter_map(|(name, _)| match &**known.get(*name)? {
        Entry::Reader(reader) if reader.qos.durability.kind == DurabilityKind::TransientLocal => {
            Some((reader.endpoint.guid, name.0))
        }
        _ => None,
    });
    readers.collect()
}
