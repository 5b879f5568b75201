//! Which announced endpoints match those of this participant, worked out before a view begins.
//!
//! The control thread knows the next view before it installs it. It reads the new announcements
//! and compares types there, outside of the engine's lock: the work grows with what a view brings,
//! and messages go on meanwhile. What is left for the beginning of the view, under the lock, is to
//! give each local endpoint the result ([`ViewMatcher`](super::view_matcher::ViewMatcher)): what
//! it says of a view becomes visible when the view begins, and not before. The matches depend on
//! the view alone, so they are the same wherever they are worked out.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::sync::Arc;

use spindle_dds_core::membership::{Endpoint as GroupEndpoint, Member, MemberId, View};

use super::known_endpoints::{KnownEndpoints, MemberEndpoints};
use super::local_endpoints::LocalEndpoints;
use super::mismatches::{MismatchLog, Mismatches};
use crate::discovery::{Comparisons, Entry, Match, ParticipantInfo, Types};
use crate::monitor::MismatchFigures;
use crate::topic::TopicCore;

/// An endpoint of the group: its member, and its number there.
pub(crate) type EndpointName = (MemberId, u64);

/// What an endpoint and those of the other kind on its topic are to each other, sorted by name.
pub(crate) type Matches = Arc<[(EndpointName, Match)]>;

/// What a view means to the endpoints of this participant.
#[derive(Debug)]
pub(crate) struct AnnouncedMatches {
    /// The view that this is of.
    pub(crate) view_id: u64,
    /// All announced endpoints that can be understood.
    pub(crate) known: KnownEndpoints,
    /// By number of the local endpoint.
    pub(crate) matches: BTreeMap<u64, Matches>,
    /// Topics of this participant that another one writes or reads as another type: once for each
    /// participant that was not known to do so.
    pub(crate) inconsistent: Vec<Arc<TopicCore>>,
}

/// Reads the announcements of one view after the other. Owned by the control thread.
///
/// What it does for a view grows with the members whose endpoints change, and with the endpoints of
/// the topics that these are on, and hardly with all the others.
pub(crate) struct AnnouncementReader {
    me: MemberId,
    known: KnownEndpoints,
    /// By member: what it announces in the last view, and whether all of it was understood.
    read: BTreeMap<MemberId, (Arc<BTreeMap<u64, GroupEndpoint>>, bool)>,
    /// By topic: its endpoints.
    topics: HashMap<String, BTreeMap<EndpointName, Arc<Entry>>>,
    matches: BTreeMap<u64, Matches>,
    /// Topics already reported as inconsistent, by member and topic name.
    inconsistent: BTreeSet<(MemberId, String)>,
    mismatch_log: MismatchLog,
    types: Types,
    comparisons: Comparisons,
}

impl fmt::Debug for AnnouncementReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AnnouncementReader")
            .field("me", &self.me)
            .finish_non_exhaustive()
    }
}

impl AnnouncementReader {
    pub(crate) fn new(me: MemberId) -> Self {
        Self {
            me,
            known: KnownEndpoints::default(),
            read: BTreeMap::new(),
            topics: HashMap::new(),
            matches: BTreeMap::new(),
            inconsistent: BTreeSet::new(),
            mismatch_log: MismatchLog::default(),
            types: Types::default(),
            comparisons: Comparisons::default(),
        }
    }

    /// Reads the announcements of a view, and matches those of this participant with all others.
    pub(crate) fn read(
        &mut self,
        view: &View,
        local_endpoints: &LocalEndpoints,
    ) -> AnnouncedMatches {
        let changed = self.read_announcements(view);
        let changed_pairs = self.match_again(&changed);
        self.log_mismatches(&changed_pairs, local_endpoints);
        AnnouncedMatches {
            view_id: view.id,
            known: self.known.clone(),
            matches: self.matches.clone(),
            inconsistent: self.find_inconsistent(&changed, local_endpoints),
        }
    }

    /// Reads new announcements, and forgets those that the view does not have. Returns the topics
    /// whose endpoints have changed.
    fn read_announcements(&mut self, view: &View) -> BTreeSet<String> {
        let mut changed = BTreeSet::new();
        let gone = self.read.keys().filter(|id| view.rank(**id).is_none());
        for id in gone.copied().collect::<Vec<_>>() {
            self.read.remove(&id);
            let before = self.known.remove(id);
            self.changed(id, before.as_deref(), None, &mut changed);
        }
        for member in &view.members {
            let is_same = |(read, is_whole): &(Arc<_>, bool)| {
                // What was not understood is looked at again: notes may have come.
                *is_whole && Arc::ptr_eq(read, &member.endpoints)
            };
            if !self.read.get(&member.id).is_some_and(is_same) {
                self.read_member(member, &mut changed);
            }
        }
        self.inconsistent.retain(|(id, _)| view.rank(*id).is_some());
        if !changed.is_empty() {
            self.types.tidy();
        }
        changed
    }

    fn read_member(&mut self, member: &Member, changed: &mut BTreeSet<String>) {
        let before = self.known.remove(member.id);
        let info = ParticipantInfo::of(member).ok();
        let (pid, name) = info.map_or_else(Default::default, |info| (info.pid, info.name));
        let mut entries = BTreeMap::new();
        let last = self.read.get(&member.id);
        // Logs match nothing.
        let announced = || member.endpoints.iter().filter(|(_, it)| it.log.is_none());
        for (number, endpoint) in announced() {
            let known = before.as_ref().and_then(|it| it.get(*number));
            let is_same = || last.is_some_and(|(last, _)| last.get(number) == Some(endpoint));
            let entry = match known.filter(|_| is_same()) {
                Some(entry) => entry.clone(),
                None => match Entry::from_group(endpoint, &member.notes, &mut self.types) {
                    Ok(entry) => Arc::new(entry),
                    Err(why) => {
                        tracing::warn!(pid, number, %why, "an announced endpoint makes no sense");
                        continue;
                    }
                },
            };
            entries.insert(*number, entry);
        }
        let is_whole = entries.len() == announced().count();
        let read = (member.endpoints.clone(), is_whole);
        self.read.insert(member.id, read);
        let now = Arc::new(MemberEndpoints::new(pid, name, entries));
        self.changed(member.id, before.as_deref(), Some(&now), changed);
        self.known.put(member.id, now);
    }

    /// The endpoints of a member change from `before` to `now`: notes the topics of those that do.
    fn changed(
        &mut self,
        id: MemberId,
        before: Option<&MemberEndpoints>,
        now: Option<&MemberEndpoints>,
        changed: &mut BTreeSet<String>,
    ) {
        for (number, entry) in before.iter().flat_map(|it| it.all()) {
            let same = now.and_then(|now| now.get(*number));
            if same.is_some_and(|same| Arc::ptr_eq(same, entry)) {
                continue;
            }
            let topic = &entry.endpoint().topic;
            if let Some(of_topic) = self.topics.get_mut(topic) {
                of_topic.remove(&(id, *number));
                if of_topic.is_empty() {
                    self.topics.remove(topic);
                }
            }
            changed.insert(topic.clone());
        }
        for (number, entry) in now.iter().flat_map(|it| it.all()) {
            let same = before.and_then(|before| before.get(*number));
            if same.is_some_and(|same| Arc::ptr_eq(same, entry)) {
                continue;
            }
            let topic = &entry.endpoint().topic;
            let of_topic = self.topics.entry(topic.clone()).or_default();
            of_topic.insert((id, *number), entry.clone());
            changed.insert(topic.clone());
        }
    }

    /// Matches the endpoints of this participant on these topics with the others on the same.
    /// Returns the pairs that did match before, or were not there, or did not match for another
    /// reason, and do not match now.
    fn match_again(&mut self, changed: &BTreeSet<String>) -> Vec<(u64, EndpointName)> {
        let mut changed_pairs = Vec::new();
        let own = self.known.member(self.me);
        self.matches
            .retain(|number, _| own.is_some_and(|own| own.get(*number).is_some()));
        for topic in changed {
            let Some(of_topic) = self.topics.get(topic) else {
                continue;
            };
            for ((_, number), entry) in of_topic.range((self.me, 0)..=(self.me, u64::MAX)) {
                let matches = matches_of(&mut self.comparisons, entry, of_topic);
                let before = self.matches.insert(*number, matches.clone());
                let before = before.as_deref().unwrap_or_default();
                let known = |name| {
                    let at = before.binary_search_by_key(name, |(name, _)| *name);
                    at.ok().map(|at| &before[at].1)
                };
                let new = matches.iter().filter(|(_, found)| found.is_mismatch());
                let new = new.filter(|(name, found)| known(name) != Some(found));
                changed_pairs.extend(new.map(|(name, _)| (*number, *name)));
            }
        }
        changed_pairs
    }

    /// Logs these pairs, which do not match.
    fn log_mismatches(&mut self, pairs: &[(u64, EndpointName)], local_endpoints: &LocalEndpoints) {
        let mismatches = Mismatches {
            me: self.me,
            known: &self.known,
            matches: &self.matches,
        };
        let told = self.mismatch_log.update(&mismatches, pairs);
        if told.is_empty() {
            return;
        }
        let own = local_endpoints.numbered();
        for line in &told.lines {
            let why = mismatches.why(line, &mut self.comparisons, &own);
            let [writer, reader] = mismatches.participants(line);
            let (topic, pairs) = (&line.topic, line.pairs);
            tracing::warn!(
                topic,
                writer,
                reader,
                pairs,
                why,
                "writer and reader do not match"
            );
        }
        if let Some(pairs) = told.left_out {
            tracing::warn!(
                pairs,
                "more writers and readers do not match than are logged one by one: `spindle top` \
                 lists them"
            );
        }
    }

    /// The endpoints of this participant and those that they do not match, for a monitor; and how
    /// many more pairs there are.
    pub(crate) fn mismatches(
        &mut self,
        local_endpoints: &LocalEndpoints,
    ) -> (Vec<MismatchFigures>, u64) {
        let mismatches = Mismatches {
            me: self.me,
            known: &self.known,
            matches: &self.matches,
        };
        mismatches.figures(&mut self.comparisons, local_endpoints)
    }

    /// Topics, of these, that another participant writes or reads as another type,
    /// once for each participant.
    fn find_inconsistent(
        &mut self,
        changed: &BTreeSet<String>,
        local_endpoints: &LocalEndpoints,
    ) -> Vec<Arc<TopicCore>> {
        let mut inconsistent = Vec::new();
        if changed.is_empty() {
            return inconsistent;
        }
        for (number, own) in local_endpoints.numbered() {
            let topic = own.topic();
            if !changed.contains(&topic.name) {
                continue;
            }
            let Some(of_topic) = self.topics.get(&topic.name) else {
                continue;
            };
            let Some(entry) = of_topic.get(&(self.me, number)) else {
                continue;
            };
            for ((member, _), other) in of_topic.iter().filter(|((id, _), _)| *id != self.me) {
                if self.comparisons.are_inconsistent(entry, other)
                    && self.inconsistent.insert((*member, topic.name.clone()))
                {
                    inconsistent.push(topic.clone());
                }
            }
        }
        inconsistent
    }
}

/// What the endpoints of its topic are to an endpoint.
fn matches_of(
    comparisons: &mut Comparisons,
    own: &Entry,
    others: &BTreeMap<EndpointName, Arc<Entry>>,
) -> Matches {
    let mut found = Vec::new();
    for (name, other) in others {
        let ((Entry::Writer(writer), Entry::Reader(reader))
        | (Entry::Reader(reader), Entry::Writer(writer))) = (own, &**other)
        else {
            continue;
        };
        match Match::of(comparisons, writer, reader) {
            Match::Apart => {}
            matched => found.push((*name, matched)),
        }
    }
    found.into()
}

#[cfg(test)]
mod tests {
    use spindle_dds_core::RingSpec;
    use spindle_dds_core::membership::HostId;
    use spindle_dds_qos::{DataReaderQos, DataWriterQos, ReliabilityKind};

    use super::*;
    use crate::discovery::{Endpoint, ReaderEntry, WriterEntry};
    use crate::handle::{EntityKind, Guid};
    use crate::properties::ParticipantConfig;

    const ME: MemberId = MemberId(1);

    /// Numbers without a pattern, below `end`.
    struct Numbers(u64);

    impl Numbers {
        fn below(&mut self, end: u64) -> u64 {
            self.0 = self
                .0
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(7);
            (self.0 >> 33) % end
        }
    }

    /// An endpoint of one of four topics: a reader, or a writer that may be incompatible with it.
    fn announced(member: u128, number: u64, numbers: &mut Numbers) -> GroupEndpoint {
        let kind = match numbers.below(2) {
            0 => EntityKind::Reader,
            _ => EntityKind::Writer,
        };
        let endpoint = Endpoint {
            guid: Guid([member as u8; 16]).entity(kind, number as u32),
            topic: format!("T{}", numbers.below(4)),
            type_name: "T".to_owned(),
            has_key: false,
            subgroup: 1,
            ty: None,
        };
        let mut entry = match kind {
            EntityKind::Reader => Entry::Reader(ReaderEntry {
                endpoint,
                qos: DataReaderQos::default(),
                subscriber: Default::default(),
            }),
            _ => Entry::Writer(WriterEntry {
                endpoint,
                number: number as u32,
                is_ordered: true,
                returns: 0,
                qos: DataWriterQos::default(),
                publisher: Default::default(),
            }),
        };
        let ring = match &mut entry {
            Entry::Reader(reader) => {
                reader.qos.reliability.kind = ReliabilityKind::Reliable;
                None
            }
            Entry::Writer(writer) => {
                if numbers.below(3) == 0 {
                    writer.qos.reliability.kind = ReliabilityKind::BestEffort;
                }
                Some((writer.class(), RingSpec::at_least(2, 128)))
            }
        };
        entry.to_group(ring, None).expect("an announcement")
    }

    fn member(id: u128) -> Member {
        let info = ParticipantInfo {
            guid: Guid([id as u8; 16]),
            name: String::new(),
            subgroups: 4,
            pid: id as u32,
            start: 0,
        };
        Member {
            id: MemberId(id),
            host: HostId(1),
            address: Vec::new(),
            info: info.to_bytes().expect("JSON"),
            updates: 0,
            endpoints: Arc::default(),
            notes: BTreeMap::new(),
        }
    }

    /// Members come, go and change; mostly they stay as they are.
    fn change(view: &mut View, numbers: &mut Numbers, next_id: &mut u128) {
        view.id += 1;
        if numbers.below(3) == 0 {
            view.members.push(member(*next_id));
            *next_id += 1;
        }
        if numbers.below(4) == 0 && view.members.len() > 1 {
            let at = 1 + numbers.below(view.members.len() as u64 - 1);
            view.members.remove(at as usize);
        }
        for _ in 0..numbers.below(4) {
            let at = numbers.below(view.members.len() as u64) as usize;
            let (member, number) = (&mut view.members[at], numbers.below(6));
            let endpoints = Arc::make_mut(&mut member.endpoints);
            match numbers.below(3) {
                0 => drop(endpoints.remove(&number)),
                _ => {
                    let endpoint = announced(member.id.0, number, numbers);
                    endpoints.insert(number, endpoint);
                }
            }
        }
    }

    #[test]
    fn views_read_one_after_the_other_mean_what_each_means_alone() {
        let local_endpoints =
            LocalEndpoints::new(ParticipantConfig::read(&Default::default()).expect("defaults"));
        let (mut numbers, mut next_id) = (Numbers(5), 2);
        let mut view = View::first(member(ME.0)).expect("a view");
        let mut reader = AnnouncementReader::new(ME);
        let mut matched = 0;
        for _ in 0..400 {
            change(&mut view, &mut numbers, &mut next_id);
            let read = reader.read(&view, &local_endpoints);
            let alone = AnnouncementReader::new(ME).read(&view, &local_endpoints);
            assert_eq!(read.matches, alone.matches, "view {}", view.id);
            matched += read.matches.values().map(|it| it.len()).sum::<usize>();
            for member in &view.members {
                for number in member.endpoints.keys() {
                    let entry = read.known.get((member.id, *number)).expect("known");
                    assert_eq!(Some(entry), alone.known.get((member.id, *number)));
                    assert_eq!(read.known.find(entry.endpoint().guid), Some(entry));
                }
            }
        }
        assert!(matched > 400, "{matched}");
    }
}
