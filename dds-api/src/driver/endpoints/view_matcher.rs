//! What a view means to the endpoints of this participant.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use spindle_dds_core::membership::{Finish, Member, MemberId, RemovalReason, View};
use spindle_dds_core::{
    DeliveryClass, EngineHandle, SubgroupHandle, SubgroupId, SubgroupSpec, TopicKey,
};
use spindle_dds_transport::Rank;

use super::local_endpoints::{LocalEndpoint, LocalEndpoints};
use crate::discovery::{
    Comparisons, Entry, Match, ParticipantInfo, ReaderEntry, Types, WriterEntry,
};
use crate::driver::receive::arrival::Departure;
use crate::driver::receive::reader_epoch::{MatchedWriter, ReaderEpoch};
use crate::driver::receive::reader_port::ReaderPort;
use crate::driver::receive::routes::{Route, Routes};
use crate::handle::InstanceHandle;
use crate::publication::WriterCore;
use crate::subscription::ReaderCore;
use crate::wire::Wire;

/// An endpoint of the group: whose, and its number there.
type Name = (MemberId, u64);

/// Goes from view to view. By the thread that steps the engine, between two steps.
pub(crate) struct ViewMatcher {
    local_endpoints: Arc<LocalEndpoints>,
    me: MemberId,
    handle: Option<EngineHandle<Wire>>,
    known: BTreeMap<Name, Arc<Entry>>,
    pids: BTreeMap<MemberId, u32>,
    /// Readers of this participant that a view has.
    linked: BTreeMap<u64, Linked>,
    /// Where epochs have ended since the view before.
    ends: BTreeMap<SubgroupId, u64>,
    /// Who has left since then, on purpose.
    left: BTreeSet<MemberId>,
    /// Whose topics, of which name, are known to have another type.
    inconsistent: BTreeSet<(MemberId, String)>,
    types: Types,
    comparisons: Comparisons,
}

struct Linked {
    port: Arc<ReaderPort<Wire>>,
    link: Arc<ReaderEpoch<Wire>>,
    topic: TopicKey,
    subgroup: SubgroupId,
}

impl fmt::Debug for ViewMatcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ViewMatcher")
            .field("me", &self.me)
            .finish_non_exhaustive()
    }
}

impl ViewMatcher {
    pub(crate) fn new(local_endpoints: Arc<LocalEndpoints>, me: MemberId) -> Self {
        Self {
            local_endpoints,
            me,
            handle: None,
            known: BTreeMap::new(),
            pids: BTreeMap::new(),
            linked: BTreeMap::new(),
            ends: BTreeMap::new(),
            left: BTreeSet::new(),
            inconsistent: BTreeSet::new(),
            types: Types::default(),
            comparisons: Comparisons::default(),
        }
    }

    /// Where it finds epochs: before the first view.
    pub(crate) fn set_handle(&mut self, handle: EngineHandle<Wire>) {
        self.handle = Some(handle);
    }

    /// An epoch has ended at this position.
    pub(crate) fn epoch_ended(&mut self, subgroup: SubgroupId, end: u64) {
        self.ends.insert(subgroup, end);
    }

    /// A view has ended that had these members. Returns those of them that failed, and
    /// why, in the words of who noticed.
    pub(crate) fn view_ended(
        &mut self,
        finish: &Finish,
        old: &[Member],
    ) -> Vec<(MemberId, String)> {
        let mut failed = Vec::new();
        for removal in &finish.proposal.removals {
            let Some(member) = old.get(usize::from(removal.rank)) else {
                continue;
            };
            match &removal.reason {
                RemovalReason::Left => drop(self.left.insert(member.id)),
                RemovalReason::Failed(cause) => failed.push((member.id, cause.clone())),
            }
        }
        failed
    }

    /// A view has begun.
    pub(crate) fn view_begun(&mut self, view: &View) -> Routes {
        self.learn(view);
        let own = self.local_endpoints.numbered();
        let mine = view.rank(self.me);
        let mine = mine.map(|rank| &view.members[rank.index()].endpoints);
        let in_view = |number: &u64| mine.is_some_and(|mine| mine.contains_key(number));
        self.linked
            .retain(|number, _| own.contains_key(number) && in_view(number));
        for (number, endpoint) in own.iter().filter(|(number, _)| in_view(number)) {
            let Some(entry) = self.known.get(&(self.me, *number)).cloned() else {
                continue;
            };
            let id = SubgroupId(entry.endpoint().subgroup);
            let subgroup = self.handle.as_ref().and_then(|it| it.subgroup(id));
            let (Some(subgroup), Some(spec)) = (subgroup, view.subgroup(id)) else {
                continue;
            };
            match (endpoint, &*entry) {
                (LocalEndpoint::Writer(writer), Entry::Writer(entry)) => {
                    self.match_writer(writer, entry, subgroup);
                }
                (LocalEndpoint::Reader(reader), Entry::Reader(entry)) => {
                    self.match_reader(*number, reader, entry, subgroup, spec, view);
                }
                _ => {}
            }
        }
        self.find_inconsistent(&own);
        self.ends.clear();
        self.left.clear();
        self.routes()
    }

    /// Reads what is new, forgets what is no more.
    fn learn(&mut self, view: &View) {
        let mut before = std::mem::take(&mut self.known);
        let mut topics = BTreeMap::new();
        for member in &view.members {
            let pid = self.pids.get(&member.id).copied();
            let pid = pid.or_else(|| Some(ParticipantInfo::of(member).ok()?.pid));
            let pid = pid.unwrap_or_default();
            self.pids.insert(member.id, pid);
            for (number, endpoint) in &member.endpoints {
                let name = (member.id, *number);
                let entry = match before.remove(&name) {
                    Some(entry) => entry,
                    None => match Entry::from_group(endpoint, &member.notes, &mut self.types) {
                        Ok(entry) => Arc::new(entry),
                        Err(why) => {
                            tracing::warn!(pid, number, %why, "an announced endpoint makes no sense");
                            continue;
                        }
                    },
                };
                let said = entry.endpoint();
                topics
                    .entry(said.topic.clone())
                    .or_insert((said.subgroup, pid));
                self.known.insert(name, entry);
            }
        }
        self.pids.retain(|id, _| view.rank(*id).is_some());
        self.inconsistent.retain(|(id, _)| view.rank(*id).is_some());
        let known = self.known.values();
        let known = known.map(|entry| (entry.endpoint().guid, entry.clone()));
        self.local_endpoints.set_known(topics, known.collect());
        drop(before);
        self.types.tidy();
    }

    fn match_writer(
        &mut self,
        writer: &WriterCore,
        entry: &WriterEntry,
        subgroup: Arc<SubgroupHandle<Wire>>,
    ) {
        let mut matched = Vec::new();
        let mut refused = Vec::new();
        for other in self.known.values() {
            let Entry::Reader(reader) = &**other else {
                continue;
            };
            let handle = InstanceHandle::of_entity(reader.endpoint.guid);
            match Match::of(&mut self.comparisons, entry, reader) {
                Match::Apart => {}
                Match::Matched => matched.push(handle),
                Match::Incompatible(policies) => refused.push((handle, policies)),
            }
        }
        writer.meet(matched, refused);
        writer.enter_epoch(subgroup);
    }

    fn match_reader(
        &mut self,
        number: u64,
        reader: &ReaderCore,
        entry: &ReaderEntry,
        subgroup: Arc<SubgroupHandle<Wire>>,
        spec: &SubgroupSpec,
        view: &View,
    ) {
        let old = match self.linked.get(&number) {
            Some(linked) => linked.link.clone(),
            None => reader.side.port.link(),
        };
        if old.epoch() == Some(spec.epoch) {
            return;
        }
        let mut matched = Vec::new();
        let mut refused = Vec::new();
        for ((member, _), other) in &self.known {
            let Entry::Writer(writer) = &**other else {
                continue;
            };
            let handle = InstanceHandle::of_entity(writer.endpoint.guid);
            match Match::of(&mut self.comparisons, writer, entry) {
                Match::Apart => {}
                Match::Matched => matched.extend(place(spec, view, *member).map(|place| {
                    let lifecycle = writer.qos.writer_data_lifecycle;
                    MatchedWriter {
                        place,
                        number: writer.number,
                        member: *member,
                        ring: writer.ring(),
                        handle,
                        autodispose: lifecycle.autodispose_unregistered_instances,
                        is_rekeyed: writer.endpoint.hashes_keys_unlike(&entry.endpoint),
                    }
                })),
                Match::Incompatible(policies) => refused.push((handle, policies)),
            }
        }
        let stays: BTreeSet<_> = matched.iter().map(|writer| writer.handle).collect();
        let sizes = sizes(&matched, spec);
        let departure = |writer: &MatchedWriter| {
            if view.rank(writer.member).is_none() && !self.left.contains(&writer.member) {
                return Departure::Failed;
            }
            Departure::Left {
                disposes: writer.autodispose,
            }
        };
        let end = self.ends.get(&spec.subgroup).copied();
        old.end(end, |handle| stays.contains(&handle), departure);
        let link = Arc::new(old.follow(&subgroup, matched, refused, &sizes));
        old.set_next(link.clone());
        reader.side.port.go_on();
        let linked = Linked {
            port: reader.side.port.clone(),
            link,
            topic: TopicKey::of_name(&entry.endpoint.topic),
            subgroup: spec.subgroup,
        };
        self.linked.insert(number, linked);
    }

    /// Topics that another participant writes or reads as another type: told once of each.
    fn find_inconsistent(&mut self, own: &BTreeMap<u64, LocalEndpoint>) {
        let mut others: BTreeMap<&str, Vec<(MemberId, &Entry)>> = BTreeMap::new();
        for ((member, _), entry) in self.known.iter().filter(|((id, _), _)| *id != self.me) {
            let topic = entry.endpoint().topic.as_str();
            others.entry(topic).or_default().push((*member, &**entry));
        }
        for (number, own) in own {
            let topic = own.topic();
            let (Some(entry), Some(others)) = (
                self.known.get(&(self.me, *number)),
                others.get(topic.name.as_str()),
            ) else {
                continue;
            };
            for (member, other) in others {
                let place = (*member, topic.name.clone());
                if self.inconsistent.contains(&place) {
                    continue;
                }
                let found = self.comparisons.conflict(entry, other, topic.ty.as_ref());
                if let Some(conflict) = found {
                    self.inconsistent.insert(place);
                    let (own, theirs) = (topic.type_name, &other.endpoint().type_name);
                    let (topic_name, pid) = (&topic.name, self.pids.get(member));
                    tracing::warn!(topic_name, own, theirs, pid, %conflict, "inconsistent topic");
                    topic.found_inconsistent();
                }
            }
        }
    }

    fn routes(&self) -> Routes {
        let linked = self.linked.values();
        let route = |linked: &Linked| {
            let key = (linked.subgroup, linked.topic.low());
            Route::new(key, linked.port.clone(), linked.link.clone())
        };
        Routes::new(linked.map(route).collect())
    }
}

/// The place of a member in an epoch.
fn place(spec: &SubgroupSpec, view: &View, member: MemberId) -> Option<Rank> {
    let rank = view.rank(member)?;
    let place = spec.members.iter().position(|it| *it == rank)?;
    Some(Rank(place as u16))
}

/// Messages that the rings of these writers hold, each ring once.
fn sizes(writers: &[MatchedWriter], spec: &SubgroupSpec) -> Vec<usize> {
    let rings: BTreeSet<(Rank, DeliveryClass)> =
        writers.iter().map(|it| (it.place, it.ring)).collect();
    let size = |(place, ring): (Rank, DeliveryClass)| {
        let mut senders = spec.senders.iter();
        let sender = senders.find(|sender| sender.rank == place)?;
        Some(sender.rings[ring.index()]?.messages as usize)
    };
    rings.into_iter().filter_map(size).collect()
}
