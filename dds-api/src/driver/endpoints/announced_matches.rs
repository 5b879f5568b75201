//! Which announced endpoints match those of this participant, worked out before a view begins.
//!
//! The control thread knows the next view before it installs it. It reads the new announcements
//! and compares types there, outside of the engine's lock: the work grows with what a view brings,
//! and messages go on meanwhile. What is left for the beginning of the view, under the lock, is to
//! give each local endpoint the result ([`ViewMatcher`](super::view_matcher::ViewMatcher)): what
//! it says of a view becomes visible when the view begins, and not before. The matches depend on
//! the view alone, so they are the same wherever they are worked out.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use spindle_dds_core::membership::{MemberId, View};

use super::local_endpoints::LocalEndpoints;
use crate::discovery::{Comparisons, Entry, Match, ParticipantInfo, Types};
use crate::topic::TopicCore;

/// An endpoint of the group: its member, and its number there.
pub(crate) type EndpointName = (MemberId, u64);

/// What a view means to the endpoints of this participant.
#[derive(Debug)]
pub(crate) struct AnnouncedMatches {
    /// The view that this is of.
    pub(crate) view_id: u64,
    /// All announced endpoints that can be understood.
    pub(crate) known: BTreeMap<EndpointName, Arc<Entry>>,
    /// The subgroup of each topic, and the process that announces it.
    pub(crate) topics: BTreeMap<String, (u32, u32)>,
    /// By number of the local endpoint: the endpoints that match, or are incompatible.
    pub(crate) matches: BTreeMap<u64, Vec<(EndpointName, Match)>>,
    /// Topics of this participant that another one writes or reads as another type: once for each
    /// participant that was not known to do so.
    pub(crate) inconsistent: Vec<Arc<TopicCore>>,
}

/// Reads the announcements of one view after the other. Owned by the control thread.
pub(crate) struct AnnouncementReader {
    me: MemberId,
    known: BTreeMap<EndpointName, Arc<Entry>>,
    /// Process ids by member: 0 if a member does not say.
    pids: BTreeMap<MemberId, u32>,
    /// Topics already reported as inconsistent, by member and topic name.
    inconsistent: BTreeSet<(MemberId, String)>,
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
            known: BTreeMap::new(),
            pids: BTreeMap::new(),
            inconsistent: BTreeSet::new(),
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
        let topics = self.read_announcements(view);
        // Only endpoints of one topic match: others are not looked at.
        let mut by_topic: BTreeMap<&str, Vec<(EndpointName, &Entry)>> = BTreeMap::new();
        for (name, entry) in &self.known {
            let topic = entry.endpoint().topic.as_str();
            by_topic.entry(topic).or_default().push((*name, &**entry));
        }
        let comparisons = &mut self.comparisons;
        let own = self.known.range((self.me, 0)..=(self.me, u64::MAX));
        let matches = own.map(|((_, number), entry)| {
            let topic = entry.endpoint().topic.as_str();
            let others = by_topic.get(topic).map_or(&[][..], |it| it);
            (*number, matches_of(comparisons, entry, others))
        });
        let matches = matches.collect();
        AnnouncedMatches {
            view_id: view.id,
            known: self.known.clone(),
            topics,
            matches,
            inconsistent: self.find_inconsistent(local_endpoints),
        }
    }

    /// Reads new announcements, and forgets those that the view does not have.
    fn read_announcements(&mut self, view: &View) -> BTreeMap<String, (u32, u32)> {
        let mut before = std::mem::take(&mut self.known);
        let mut topics = BTreeMap::new();
        for member in &view.members {
            let pid = self.pids.get(&member.id).copied();
            let pid = pid.or_else(|| Some(ParticipantInfo::of(member).ok()?.pid));
            let pid = pid.unwrap_or_default();
            self.pids.insert(member.id, pid);
            for (number, endpoint) in &*member.endpoints {
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
                let announced = entry.endpoint();
                topics
                    .entry(announced.topic.clone())
                    .or_insert((announced.subgroup, pid));
                self.known.insert(name, entry);
            }
        }
        self.pids.retain(|id, _| view.rank(*id).is_some());
        self.inconsistent.retain(|(id, _)| view.rank(*id).is_some());
        drop(before);
        self.types.tidy();
        topics
    }

    /// Logs and returns topics that another participant writes or reads as another type, once for
    /// each participant.
    fn find_inconsistent(&mut self, local_endpoints: &LocalEndpoints) -> Vec<Arc<TopicCore>> {
        let mut inconsistent = Vec::new();
        let mut others: BTreeMap<&str, Vec<(MemberId, &Entry)>> = BTreeMap::new();
        for ((member, _), entry) in self.known.iter().filter(|((id, _), _)| *id != self.me) {
            let topic = entry.endpoint().topic.as_str();
            others.entry(topic).or_default().push((*member, &**entry));
        }
        for (number, own) in local_endpoints.numbered() {
            let topic = own.topic();
            let (Some(entry), Some(others)) = (
                self.known.get(&(self.me, number)),
                others.get(topic.name.as_str()),
            ) else {
                continue;
            };
            for (member, other) in others {
                let reported = (*member, topic.name.clone());
                if self.inconsistent.contains(&reported) {
                    continue;
                }
                let found = self.comparisons.conflict(entry, other, topic.ty.as_ref());
                if let Some(conflict) = found {
                    self.inconsistent.insert(reported);
                    let (own, theirs) = (topic.type_name, &other.endpoint().type_name);
                    let (topic_name, pid) = (&topic.name, self.pids.get(member));
                    tracing::warn!(topic_name, own, theirs, pid, %conflict, "inconsistent topic");
                    inconsistent.push(topic.clone());
                }
            }
        }
        inconsistent
    }
}

/// Which of the endpoints of its topic an endpoint matches, or is incompatible with.
fn matches_of(
    comparisons: &mut Comparisons,
    own: &Entry,
    others: &[(EndpointName, &Entry)],
) -> Vec<(EndpointName, Match)> {
    let mut found = Vec::new();
    for (name, other) in others {
        let ((Entry::Writer(writer), Entry::Reader(reader))
        | (Entry::Reader(reader), Entry::Writer(writer))) = (own, *other)
        else {
            continue;
        };
        match Match::of(comparisons, writer, reader) {
            Match::Apart => {}
            matched => found.push((*name, matched)),
        }
    }
    found
}
