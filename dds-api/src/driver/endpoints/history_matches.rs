//! Which matches bring history, decided by the announcements of a view on both sides alike.
//!
//! A match of a reader and a writer that are both durable, and that did not match before, brings the
//! writer's history to the reader: the writer's participant pins it at the beginning of the view, and
//! the reader's asks for it. A writer that is new in a view has none.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use spindle_dds_core::membership::{MemberId, View};
use spindle_dds_core::{SubgroupId, TopicKey};
use spindle_dds_qos::DurabilityKind;

use super::announced_matches::{EndpointName, Matches};
use super::known_endpoints::KnownEndpoints;
use super::local_endpoints::LocalEndpoint;
use super::view_matcher::subgroup_rank;
use crate::discovery::{Entry, Match, ReaderEntry, WriterEntry};
use crate::driver::receive::reader_port::ReaderPort;
use crate::driver::receive::routes::KeptTopic;
use crate::handle::{Guid, InstanceHandle};
use crate::history::{
    HistoryService, KeptHistory, KeptWriter, NewTransfer, Pin, TransferId, TransferName,
};
use crate::wire::Wire;

/// Goes from view to view beside the [`ViewMatcher`](super::view_matcher::ViewMatcher).
pub(super) struct HistoryMatches {
    me: MemberId,
    service: Arc<HistoryService>,
    /// The endpoints of the view before, in this group.
    before: Option<KnownEndpoints>,
    /// Durable writers of this participant that the last view has, by their numbers.
    writers: BTreeMap<u64, Matched>,
    /// Transfers to readers of this participant that begin with the view.
    transfers: Vec<NewTransfer>,
}

/// The durable readers that match a writer in a subgroup epoch.
struct Matched {
    epoch: u64,
    readers: BTreeSet<Guid>,
}

/// What begins with a view.
#[derive(Default)]
pub(crate) struct BegunHistory {
    /// Histories of subgroups that begin an epoch at this position.
    pub(crate) bases: Vec<(Arc<KeptHistory>, u64)>,
    pub(crate) pins: Vec<Pin>,
    pub(crate) transfers: Vec<NewTransfer>,
}

impl HistoryMatches {
    pub(super) fn new(me: MemberId, service: Arc<HistoryService>) -> Self {
        Self {
            me,
            service,
            before: None,
            writers: BTreeMap::new(),
            transfers: Vec::new(),
        }
    }

    /// The transfer of history that a reader of this participant awaits in a new epoch, in which it has
    /// these matches; `None` if there is no history to await. `had_matched`: whether a writer matched it
    /// in the epoch before.
    pub(super) fn transfer(
        &mut self,
        (view, known): (u64, &KnownEndpoints),
        (reader, port): (&ReaderEntry, &Arc<ReaderPort<Wire>>),
        matches: &[(EndpointName, Match)],
        had_matched: impl Fn(InstanceHandle) -> bool,
    ) -> Option<TransferId> {
        if reader.qos.durability.kind < DurabilityKind::TransientLocal {
            return None;
        }
        let mut sources: BTreeMap<MemberId, Vec<[u8; 16]>> = BTreeMap::new();
        for (name, _) in matches.iter().filter(|(_, it)| *it == Match::Matched) {
            let Some(Entry::Writer(writer)) = known.get(*name).map(|it| &**it) else {
                continue;
            };
            let guid = writer.endpoint.guid;
            let is_new = self.is_new(*name, writer);
            if is_durable(writer) && !is_new && !had_matched(InstanceHandle::of_entity(guid)) {
                sources.entry(name.0).or_default().push(guid.0);
            }
        }
        if sources.is_empty() {
            return None;
        }
        let id = self.service.new_transfer();
        self.transfers.push(NewTransfer {
            id,
            name: TransferName {
                endpoint: reader.endpoint.guid.0,
                view,
            },
            topic: reader.endpoint.topic.clone(),
            port: port.clone(),
            sources: sources.into_iter().collect(),
        });
        Some(id)
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

    /// A view has begun, and all readers of this participant have their epochs.
    pub(super) fn view_begun(
        &mut self,
        view: &View,
        known: &KnownEndpoints,
        matches: &BTreeMap<u64, Matches>,
        own: &BTreeMap<u64, LocalEndpoint>,
    ) -> BegunHistory {
        let mut begun = BegunHistory {
            transfers: std::mem::take(&mut self.transfers),
            ..BegunHistory::default()
        };
        let mut pins: BTreeMap<Guid, Pin> = BTreeMap::new();
        let announced = known.member(self.me);
        let announced = announced.into_iter().flat_map(|it| it.all());
        let mut durable = BTreeSet::new();
        for (number, entry) in announced {
            let Entry::Writer(writer) = &**entry else {
                continue;
            };
            let spec = view.subgroup(SubgroupId(writer.endpoint.subgroup));
            let Some(spec) = spec.filter(|_| is_durable(writer)) else {
                continue;
            };
            durable.insert(*number);
            if self
                .writers
                .get(number)
                .is_some_and(|it| it.epoch == spec.epoch)
            {
                continue;
            }
            let kept = own.get(number).and_then(kept_writer);
            begun
                .bases
                .extend(kept.map(|it| (it.history.clone(), spec.base)));
            let of_writer = matches.get(number).map_or(&[][..], |it| it);
            let readers = durable_readers(known, of_writer);
            let before = self.writers.get(number);
            let is_new = |guid: &Guid| before.is_none_or(|it| !it.readers.contains(guid));
            for (guid, member) in readers.iter().filter(|(guid, _)| is_new(guid)) {
                let pin = pins.entry(*guid).or_insert_with(|| Pin {
                    joiner: *member,
                    endpoint: guid.0,
                    histories: Vec::new(),
                });
                // A writer that was deleted meanwhile has none.
                pin.histories.extend(kept.map(|it| it.history.clone()));
            }
            let matched = Matched {
                epoch: spec.epoch,
                readers: readers.into_keys().collect(),
            };
            self.writers.insert(*number, matched);
        }
        self.writers.retain(|number, _| durable.contains(number));
        self.before = Some(known.clone());
        begun.pins = pins.into_values().collect();
        begun
    }

    /// The topics of which messages of this participant's writers are kept.
    pub(super) fn kept_topics(
        &self,
        view: &View,
        own: &BTreeMap<u64, LocalEndpoint>,
    ) -> Vec<KeptTopic> {
        let mut topics: BTreeMap<(SubgroupId, u64), (u64, Vec<_>)> = BTreeMap::new();
        for number in self.writers.keys() {
            let Some(endpoint) = own.get(number) else {
                continue;
            };
            let (Some(kept), LocalEndpoint::Writer(writer)) = (kept_writer(endpoint), endpoint)
            else {
                continue;
            };
            let (topic, subgroup) = (endpoint.topic(), writer.subgroup());
            let Some(spec) = subgroup.and_then(|it| view.subgroup(it)) else {
                continue;
            };
            if let Some(rank) = subgroup_rank(spec, view, self.me) {
                let key = (spec.subgroup, TopicKey::of_name(&topic.name).low());
                let (_, writers) = topics.entry(key).or_insert((spec.base, Vec::new()));
                writers.push((rank, writer.number, kept.clone()));
            }
        }
        let topics = topics.into_iter();
        topics
            .map(|(key, (base, writers))| KeptTopic::new(key, base, writers))
            .collect()
    }
}

fn is_durable(writer: &WriterEntry) -> bool {
    writer.qos.durability.kind >= DurabilityKind::TransientLocal
}

fn kept_writer(endpoint: &LocalEndpoint) -> Option<&Arc<KeptWriter>> {
    match endpoint {
        LocalEndpoint::Writer(writer) => writer.side.history(),
        LocalEndpoint::Reader(_) => None,
    }
}

/// The durable readers that match a writer, and their members.
fn durable_readers(
    known: &KnownEndpoints,
    matches: &[(EndpointName, Match)],
) -> BTreeMap<Guid, MemberId> {
    let matched = matches.iter().filter(|(_, it)| *it == Match::Matched);
    let readers = matched.filter_map(|(name, _)| match &**known.get(*name)? {
        Entry::Reader(reader) if reader.qos.durability.kind >= DurabilityKind::TransientLocal => {
            Some((reader.endpoint.guid, name.0))
        }
        _ => None,
    });
    readers.collect()
}
