//! Gives the endpoints of this participant what a view means to them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use spindle_dds_core::membership::{Finish, Member, MemberId, RemovalReason, View};
use spindle_dds_core::{
    DeliveryClass, EngineHandle, SubgroupHandle, SubgroupId, SubgroupSpec, TopicKey,
};
use spindle_dds_qos::{DurabilityKind, Incompatibility, PolicyId, ReliabilityKind, ResourceLimits};
use spindle_dds_transport::Rank;

use super::announced_matches::{AnnouncedMatches, AnnouncementReader, EndpointName};
use super::history_matches::{BegunHistory, HistoryMatches, durability};
use super::local_endpoints::{LocalEndpoint, LocalEndpoints};
use crate::discovery::{Entry, Match, ReaderEntry};
use crate::driver::receive::arrival::Departure;
use crate::driver::receive::reader_epoch::{MatchedWriter, ReaderEpoch};
use crate::driver::receive::reader_port::ReaderPort;
use crate::driver::receive::routes::{Route, Routes};
use crate::driver::send::acceptance::Acceptor;
use crate::handle::{Guid, InstanceHandle};
use crate::history::{HistoryService, LogPlace, LogService};
use crate::publication::WriterCore;
use crate::subscription::ReaderCore;
use crate::wire::Wire;

/// Goes from view to view, under the engine's lock, between two steps. What takes long is done
/// before: see [`announced_matches`](super::announced_matches).
pub(crate) struct ViewMatcher {
    local_endpoints: Arc<LocalEndpoints>,
    me: MemberId,
    /// How often the participant had lost its group when the session began.
    outages: u32,
    handle: Option<EngineHandle<Wire>>,
    /// What the control thread has worked out for the view that begins next.
    prepared: Option<AnnouncedMatches>,
    /// Readers of this participant that the last view has, by their numbers.
    readers: BTreeMap<u64, ViewReader>,
    /// Writers of this participant that the last view has, by their numbers: the epochs that they
    /// have entered.
    writers: BTreeMap<u64, u64>,
    /// Last positions of the subgroup epochs that have ended since the view before.
    ends: BTreeMap<SubgroupId, u64>,
    /// Members that have left since then, on purpose.
    left: BTreeSet<MemberId>,
    history: HistoryMatches,
}

/// What a view means to what is delivered.
pub(crate) struct BegunView {
    pub(crate) routes: Routes,
    pub(crate) history: BegunHistory,
    pub(crate) logs: Vec<LogPlace>,
}

/// A reader of this participant in the last view.
struct ViewReader {
    port: Arc<ReaderPort<Wire>>,
    epoch: Arc<ReaderEpoch<Wire>>,
    topic: TopicKey,
    subgroup: SubgroupId,
}

/// The view that begins.
struct Beginning<'v> {
    view: &'v View,
    announced: &'v AnnouncedMatches,
    spec: &'v SubgroupSpec,
    handle: Arc<SubgroupHandle<Wire>>,
}

impl fmt::Debug for ViewMatcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ViewMatcher")
            .field("me", &self.me)
            .finish_non_exhaustive()
    }
}

impl ViewMatcher {
    pub(crate) fn new(
        local_endpoints: Arc<LocalEndpoints>,
        (me, outages): (MemberId, u32),
        services: (Arc<HistoryService>, Arc<LogService>),
    ) -> Self {
        Self {
            history: HistoryMatches::new(me, services),
            local_endpoints,
            me,
            outages,
            handle: None,
            prepared: None,
            readers: BTreeMap::new(),
            writers: BTreeMap::new(),
            ends: BTreeMap::new(),
            left: BTreeSet::new(),
        }
    }

    /// This participant in its group.
    pub(crate) fn me(&self) -> MemberId {
        self.me
    }

    /// Called once, before the first view.
    pub(crate) fn set_handle(&mut self, handle: EngineHandle<Wire>) {
        self.handle = Some(handle);
    }

    /// What the view that begins next means.
    pub(crate) fn prepare(&mut self, announced: AnnouncedMatches) {
        self.prepared = Some(announced);
    }

    /// A subgroup epoch has ended at this position.
    pub(crate) fn epoch_ended(&mut self, subgroup: SubgroupId, position: u64) {
        self.ends.insert(subgroup, position);
    }

    /// A view with these members has ended. Returns those of them that failed, and why, in the
    /// words of the members that noticed.
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
    pub(crate) fn view_begun(&mut self, view: &Arc<View>) -> BegunView {
        let prepared = self.prepared.take().filter(|it| it.view_id == view.id);
        // The control thread prepares every view before it installs it.
        debug_assert!(prepared.is_some(), "view {} is prepared", view.id);
        let announced = prepared
            .unwrap_or_else(|| AnnouncementReader::new(self.me).read(view, &self.local_endpoints));
        // First: the application may look up an endpoint as soon as it is matched.
        self.local_endpoints.set_known(announced.known.clone());
        let own = self.local_endpoints.numbered();
        let in_view = |number: &u64| announced.matches.contains_key(number);
        self.readers
            .retain(|number, _| own.contains_key(number) && in_view(number));
        self.writers
            .retain(|number, _| own.contains_key(number) && in_view(number));
        for (number, endpoint) in own.iter().filter(|(number, _)| in_view(number)) {
            let Some(entry) = announced.known.get((self.me, *number)) else {
                continue;
            };
            let subgroup = SubgroupId(entry.endpoint().subgroup);
            let handle = self.handle.as_ref().and_then(|it| it.subgroup(subgroup));
            let (Some(handle), Some(spec)) = (handle, view.subgroup(subgroup)) else {
                continue;
            };
            let beginning = Beginning {
                view,
                announced: &announced,
                spec,
                handle,
            };
            if durability(entry) == DurabilityKind::Persistent {
                let (topic, epoch) = (endpoint.topic(), (beginning.spec, &beginning.handle));
                let me = (self.me, self.outages);
                topic.logs.enter(me, &topic.name, view, epoch);
            }
            let matches = announced.matches.get(number).map_or(&[][..], |it| it);
            match (endpoint, &**entry) {
                (LocalEndpoint::Writer(writer), Entry::Writer(_)) => {
                    // Matches change with an epoch only.
                    let has_entered = self.writers.get(number) == Some(&spec.epoch);
                    if !has_entered && match_writer(writer, matches, beginning) {
                        self.writers.insert(*number, spec.epoch);
                    }
                }
                (LocalEndpoint::Reader(reader), Entry::Reader(entry)) => {
                    self.match_reader(*number, reader, entry, matches, &beginning);
                }
                _ => {}
            }
        }
        for topic in &announced.inconsistent {
            topic.found_inconsistent();
        }
        let history = self.history.view_begun(view, &announced, &own, &self.left);
        self.ends.clear();
        self.left.clear();
        let routes = self.readers.values().map(ViewReader::route).collect();
        let epoch_of = |subgroup| self.handle.as_ref()?.subgroup(subgroup);
        let logs = self.history.log_places(view, &announced.known, epoch_of);
        BegunView {
            logs,
            routes: Routes::new(routes, self.history.kept_topics(view, &own)),
            history,
        }
    }

    /// The participant has lost its group, `for_good` or until it comes back: the endpoints of the
    /// other participants are gone, as by a view without them.
    pub(crate) fn group_lost(&mut self, for_good: bool) {
        for (number, endpoint) in self.local_endpoints.numbered() {
            match endpoint {
                LocalEndpoint::Writer(writer) => writer.group_failed(),
                LocalEndpoint::Reader(reader) => {
                    if let Some(known) = self.readers.remove(&number) {
                        let own = reader.base.guid().participant();
                        self.lose_other_writers(&known, own);
                    }
                    if for_good {
                        reader.side.port.group_failed();
                    }
                }
            }
        }
    }

    fn lose_other_writers(&self, reader: &ViewReader, own: Guid) {
        let stays = |handle: InstanceHandle| {
            let writer = handle.guid();
            writer.is_some_and(|writer| writer.participant() == own)
        };
        let end = self.ends.get(&reader.subgroup).copied().or_else(|| {
            let handle = self.handle.as_ref()?.subgroup(reader.subgroup)?;
            Some(handle.stable_position())
        });
        let departure = |writer: &MatchedWriter| match self.left.contains(&writer.member) {
            true => Departure::Left {
                disposes: writer.autodispose,
            },
            false => Departure::Failed,
        };
        reader.epoch.end(end, stays, departure);
        let next = reader.epoch.follow_without_group(stays);
        reader.epoch.set_next(Arc::new(next));
        reader.port.enter_next_epoch();
    }

    fn match_reader(
        &mut self,
        number: u64,
        reader: &ReaderCore,
        entry: &ReaderEntry,
        matches: &[(EndpointName, Match)],
        beginning: &Beginning<'_>,
    ) {
        let Beginning {
            view, spec, handle, ..
        } = beginning;
        let old = match self.readers.get(&number) {
            Some(known) => known.epoch.clone(),
            None => reader.side.port.last_epoch(),
        };
        if old.epoch() == Some(spec.epoch) {
            return;
        }
        let (mut matched, refused) = beginning.matched_writers(entry, matches);
        if reader.side.port.keys().is_some() {
            let all = matched.iter_mut();
            all.for_each(|writer| writer.is_rekeyed = true);
        }
        let stays: BTreeSet<_> = matched.iter().map(|writer| writer.handle).collect();
        let sizes = ring_sizes(&matched, spec);
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
        let awaits = self.history.transfer(
            (view, &beginning.announced.known),
            (entry, &reader.side.port),
            matches,
            |writer| old.matched.knows(writer),
            old.matched.is_in_view(),
        );
        let port = &reader.side.port;
        let awaits_logs = self.history.awaits_logs(view, entry, !matched.is_empty());
        let next = Arc::new(old.follow(handle, matched, refused, &sizes, awaits));
        // While it is looked at, one of both is seen: this, or the transfer.
        if awaits_logs {
            port.set_awaits_opening(true);
        }
        old.set_next(next.clone());
        if !awaits_logs {
            port.set_awaits_opening(false);
        }
        reader.side.port.enter_next_epoch();
        let known = ViewReader {
            port: reader.side.port.clone(),
            epoch: next,
            topic: TopicKey::of_name(&entry.endpoint.topic),
            subgroup: spec.subgroup,
        };
        self.readers.insert(number, known);
    }
}

impl ViewReader {
    fn route(&self) -> Route {
        let key = (self.subgroup, self.topic.low());
        Route::new(key, self.port.clone(), self.epoch.clone())
    }
}

/// False if the writer is not usable yet.
fn match_writer(
    writer: &WriterCore,
    matches: &[(EndpointName, Match)],
    beginning: Beginning<'_>,
) -> bool {
    let mut matched = Vec::new();
    let mut refused = Vec::new();
    let mut acceptors = Vec::new();
    for (name, found) in matches {
        let Some(other) = beginning.announced.known.get(*name) else {
            continue;
        };
        let handle = InstanceHandle::of_entity(other.endpoint().guid);
        match found {
            Match::Matched => {
                matched.push(handle);
                if let Some(acceptor) = beginning.acceptor(name.0, other) {
                    Acceptor::add(&mut acceptors, acceptor);
                }
            }
            Match::Incompatible(found) => refused.push((handle, policies(found))),
            Match::Apart | Match::NoCommonPartition(_) | Match::Inconsistent(_) => {}
        }
    }
    writer.meet(matched, refused);
    writer.enter_epoch(beginning.handle, acceptors.into())
}

impl Beginning<'_> {
    /// The member of a matched reader has to accept what is sent, if the reader is RELIABLE.
    fn acceptor(&self, member: MemberId, reader: &Entry) -> Option<Acceptor> {
        let Entry::Reader(ReaderEntry { qos, .. }) = reader else {
            return None;
        };
        if qos.reliability.kind != ReliabilityKind::Reliable {
            return None;
        }
        Some(Acceptor {
            member,
            rank: subgroup_rank(self.spec, self.view, member)?,
            holds_back: qos.resource_limits != ResourceLimits::default(),
        })
    }

    /// The writers that match a reader, and those that are incompatible.
    fn matched_writers(
        &self,
        reader: &ReaderEntry,
        matches: &[(EndpointName, Match)],
    ) -> (Vec<MatchedWriter>, Vec<(InstanceHandle, Vec<PolicyId>)>) {
        let mut matched = Vec::new();
        let mut refused = Vec::new();
        for (name, found) in matches {
            let Some(Entry::Writer(writer)) = self.announced.known.get(*name).map(|it| &**it)
            else {
                continue;
            };
            let handle = InstanceHandle::of_entity(writer.endpoint.guid);
            match found {
                Match::Apart | Match::NoCommonPartition(_) | Match::Inconsistent(_) => {}
                Match::Matched => {
                    let rank = subgroup_rank(self.spec, self.view, name.0);
                    let lifecycle = &writer.qos.writer_data_lifecycle;
                    matched.extend(rank.map(|rank| MatchedWriter {
                        rank,
                        number: writer.number,
                        member: name.0,
                        class: writer.class(),
                        handle,
                        autodispose: lifecycle.autodispose_unregistered_instances,
                        is_rekeyed: writer.endpoint.hashes_keys_unlike(&reader.endpoint),
                    }));
                }
                Match::Incompatible(found) => refused.push((handle, policies(found))),
            }
        }
        (matched, refused)
    }
}

fn policies(found: &[Incompatibility]) -> Vec<PolicyId> {
    found.iter().map(|found| found.policy).collect()
}

/// The rank of a member in a subgroup.
pub(in crate::driver) fn subgroup_rank(
    spec: &SubgroupSpec,
    view: &View,
    member: MemberId,
) -> Option<Rank> {
    let rank = view.rank(member)?;
    let place = spec.members.iter().position(|it| *it == rank)?;
    Some(Rank(place as u16))
}

/// Messages that the rings of these writers hold, each ring once.
fn ring_sizes(writers: &[MatchedWriter], spec: &SubgroupSpec) -> Vec<usize> {
    let rings: BTreeSet<(Rank, DeliveryClass)> =
        writers.iter().map(|it| (it.rank, it.class)).collect();
    let size = |(rank, class): (Rank, DeliveryClass)| {
        let mut senders = spec.senders.iter();
        let sender = senders.find(|sender| sender.rank == rank)?;
        Some(sender.rings[class.index()]?.messages as usize)
    };
    rings.into_iter().filter_map(size).collect()
}
