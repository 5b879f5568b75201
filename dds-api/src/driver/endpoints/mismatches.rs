//! Writers and readers of one topic that do not match: for the log, and for monitors.
//!
//! The participants of both tell of a pair. If that is one and the same, it tells once, at the writer.
//!
//! The log has a line for each participant and topic, with the number of pairs that are alike. At most
//! [`LINES_MAX`] pairs that do not match have had a line; of more than these the log has only the
//! number, when it has doubled. So 100 participants with 100 topics cannot fill a disk.

use std::collections::{BTreeMap, BTreeSet};

use spindle_dds_core::membership::MemberId;
use spindle_dds_qos::Incompatibility;

use super::announced_matches::{EndpointName, Matches};
use super::known_endpoints::KnownEndpoints;
use super::local_endpoints::{LocalEndpoint, LocalEndpoints};
use crate::discovery::{Comparisons, Entry, Match};
use crate::monitor::MismatchFigures;

/// Most pairs that do not match now and have a line in the log.
const LINES_MAX: usize = 64;

/// Most entries that a monitor is told.
const ENTRIES_MAX: usize = 256;

/// Most bytes of a reason: partitions and names of types come from other processes.
const TEXT_LEN_MAX: usize = 600;

/// A pair: an endpoint of this participant, and another one.
type Pair = (u64, EndpointName);

/// Pairs that do not match for one reason.
type Alike<'m> = (&'m Match, Vec<Pair>);

/// Pairs with one topic, one other participant and one reason, that have become a mismatch.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) topic: String,
    pub(super) pairs: u64,
    /// One of them.
    pub(super) first: Pair,
}

/// What the log has to say after a view.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Told {
    pub(super) lines: Vec<Line>,
    /// How many pairs have had no line so far, if that is to be said now.
    pub(super) left_out: Option<u64>,
}

impl Told {
    pub(super) fn is_empty(&self) -> bool {
        self.lines.is_empty() && self.left_out.is_none()
    }
}

/// Decides what the log says. Knows the pairs that it has said, as long as they do not match.
#[derive(Debug, Default)]
pub(super) struct MismatchLog {
    said: BTreeSet<Pair>,
    /// Pairs without a line so far.
    left_out: u64,
    /// The value of `left_out` that was said last.
    left_out_said: u64,
}

impl MismatchLog {
    /// After a view, in which these pairs have become a mismatch, or are one for another reason.
    pub(super) fn update(&mut self, mismatches: &Mismatches<'_>, changed: &[Pair]) -> Told {
        let is_still = |pair: &Pair| mismatches.get(*pair).is_some();
        self.said.retain(is_still);
        let mut told = Told::default();
        for (line, of_line) in mismatches.lines(changed) {
            let is_known = of_line.iter().any(|pair| self.said.contains(pair));
            if !is_known && self.said.len() >= LINES_MAX {
                self.left_out = self.left_out.saturating_add(line.pairs);
                continue;
            }
            if !is_known {
                self.said.insert(line.first);
            }
            told.lines.push(line);
        }
        if self.left_out > self.left_out_said.saturating_mul(2) {
            self.left_out_said = self.left_out;
            told.left_out = Some(self.left_out);
        }
        told
    }
}

/// The matches of this participant's endpoints, as far as they are none.
pub(super) struct Mismatches<'m> {
    pub(super) me: MemberId,
    pub(super) known: &'m KnownEndpoints,
    pub(super) matches: &'m BTreeMap<u64, Matches>,
}

impl<'m> Mismatches<'m> {
    /// An endpoint of this participant, and what another one is to it, if that is a mismatch to be told
    /// at this endpoint.
    fn get(&self, (own, other): Pair) -> Option<(&'m Entry, &'m Match)> {
        let matches = self.matches.get(&own)?;
        let at = matches.binary_search_by_key(&other, |(name, _)| *name);
        let (_, found) = matches.get(at.ok()?)?;
        self.entry(own, other, found).map(|entry| (entry, found))
    }

    fn entry(&self, own: u64, other: EndpointName, found: &Match) -> Option<&'m Entry> {
        let entry: &Entry = self.known.get((self.me, own))?;
        // A pair of one participant is told at the writer.
        let is_here = other.0 != self.me || matches!(entry, Entry::Writer(_));
        (found.is_mismatch() && is_here).then_some(entry)
    }

    /// These pairs, put together where they are alike.
    fn lines(&self, pairs: &[Pair]) -> Vec<(Line, Vec<Pair>)> {
        let mut found: BTreeMap<(&str, bool, MemberId), Vec<Alike<'_>>> = BTreeMap::new();
        for pair in pairs {
            let Some((entry, matched)) = self.get(*pair) else {
                continue;
            };
            let is_writer = matches!(entry, Entry::Writer(_));
            let key = (&*entry.endpoint().topic, is_writer, pair.1.0);
            let of_key = found.entry(key).or_default();
            match of_key.iter_mut().find(|(reason, _)| *reason == matched) {
                Some((_, alike)) => alike.push(*pair),
                None => of_key.push((matched, vec![*pair])),
            }
        }
        let mut lines = Vec::new();
        for ((topic, ..), reasons) in found {
            for (_, alike) in reasons {
                lines.extend(alike.first().copied().map(|first| {
                    let line = Line {
                        topic: topic.to_owned(),
                        pairs: alike.len() as u64,
                        first,
                    };
                    (line, alike)
                }));
            }
        }
        lines
    }

    /// The names of the participants of the writer and the reader.
    pub(super) fn participants(&self, line: &Line) -> [String; 2] {
        let (own, other) = line.first;
        let members = match self.known.get((self.me, own)).map(|it| &**it) {
            Some(Entry::Reader(_)) => [other.0, self.me],
            _ => [self.me, other.0],
        };
        members.map(|member| {
            let known = self.known.member(member);
            known.map_or_else(|| "unknown".to_owned(), |it| it.name())
        })
    }

    /// Why the pairs of a line do not match.
    pub(super) fn why(
        &self,
        line: &Line,
        comparisons: &mut Comparisons,
        own: &BTreeMap<u64, LocalEndpoint>,
    ) -> String {
        let Some((_, found)) = self.get(line.first) else {
            return String::new();
        };
        let policies = policies(found).iter().map(ToString::to_string);
        let types = self.types(line.first, found, comparisons, own);
        let types = types.map(|types| format!("types: {types}"));
        let all: Vec<String> = policies.chain(types).collect();
        cut(all.join("; "))
    }

    /// Why the types of a pair do not match, if that is the reason; with names of members as far as
    /// this participant knows them.
    fn types(
        &self,
        (number, other): Pair,
        found: &Match,
        comparisons: &mut Comparisons,
        own: &BTreeMap<u64, LocalEndpoint>,
    ) -> Option<String> {
        let Match::Inconsistent(conflict) = found else {
            return None;
        };
        let (entry, theirs) = (self.known.get((self.me, number))?, self.known.get(other)?);
        let named = own.get(&number).and_then(|own| own.topic().ty.as_ref());
        let again = comparisons.conflict(entry, theirs, named);
        let conflict = again.as_ref().unwrap_or(conflict);
        let names = [entry, theirs].map(|it| &*it.endpoint().type_name);
        let [written, read] = match **entry {
            Entry::Writer(_) => names,
            Entry::Reader(_) => [names[1], names[0]],
        };
        Some(cut(format!("{conflict} (written {written}, read {read})")))
    }

    /// What a monitor is told; and how many more pairs there are.
    pub(super) fn figures(
        &self,
        comparisons: &mut Comparisons,
        local_endpoints: &LocalEndpoints,
    ) -> (Vec<MismatchFigures>, u64) {
        let each = self.matches.iter().flat_map(|(own, matches)| {
            let others = matches.iter().filter(|(_, found)| found.is_mismatch());
            others.map(|(other, _)| (*own, *other))
        });
        let lines = self.lines(&each.collect::<Vec<_>>());
        if lines.is_empty() {
            return Default::default();
        }
        let own = local_endpoints.numbered();
        let mut entries = Vec::new();
        let mut unlisted = 0_u64;
        for (line, _) in lines {
            let Some((entry, found)) = self.get(line.first) else {
                continue;
            };
            if entries.len() == ENTRIES_MAX {
                unlisted = unlisted.saturating_add(line.pairs);
                continue;
            }
            let other = line.first.1.0;
            let [writer, reader] = match entry {
                Entry::Writer(_) => [self.me, other],
                Entry::Reader(_) => [other, self.me],
            };
            let shortened = policies(found).iter().map(|it| Incompatibility {
                policy: it.policy,
                offered: cut(it.offered.clone()),
                requested: cut(it.requested.clone()),
            });
            entries.push(MismatchFigures {
                writer: format!("{:032x}", writer.0),
                reader: format!("{:032x}", reader.0),
                pairs: line.pairs,
                policies: shortened.collect(),
                types: self.types(line.first, found, comparisons, &own),
                topic: line.topic,
            });
        }
        (entries, unlisted)
    }
}

fn policies(found: &Match) -> &[Incompatibility] {
    match found {
        Match::Incompatible(policies) => policies,
        Match::NoCommonPartition(partitions) => std::slice::from_ref(&**partitions),
        Match::Apart | Match::Inconsistent(_) | Match::Matched => &[],
    }
}

/// A text of at most [`TEXT_LEN_MAX`] bytes; a longer one ends with a sign.
fn cut(mut text: String) -> String {
    if text.len() > TEXT_LEN_MAX {
        text.truncate(text.floor_char_boundary(TEXT_LEN_MAX - '…'.len_utf8()));
        text.push('…');
    }
    text
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use spindle_dds_qos::{DataReaderQos, DataWriterQos, PolicyId};

    use super::*;
    use crate::discovery::{Conflict, Endpoint, ReaderEntry, WriterEntry};
    use crate::driver::endpoints::known_endpoints::MemberEndpoints;
    use crate::handle::{EntityKind, Guid};
    use crate::properties::ParticipantConfig;

    const ME: MemberId = MemberId(1);

    fn endpoint(kind: EntityKind, member: MemberId, topic: u64) -> Endpoint {
        Endpoint {
            guid: Guid([member.0 as u8; 16]).entity(kind, topic as u32),
            topic: format!("T{topic:03}"),
            type_name: "T".to_owned(),
            has_key: false,
            subgroup: 1,
            ty: None,
        }
    }

    fn writer(member: MemberId, topic: u64) -> Arc<Entry> {
        Arc::new(Entry::Writer(WriterEntry {
            endpoint: endpoint(EntityKind::Writer, member, topic),
            number: topic as u32,
            is_ordered: true,
            returns: 0,
            qos: DataWriterQos::default(),
            publisher: Default::default(),
        }))
    }

    fn reader(member: MemberId, topic: u64) -> Arc<Entry> {
        Arc::new(Entry::Reader(ReaderEntry {
            endpoint: endpoint(EntityKind::Reader, member, topic),
            qos: DataReaderQos::default(),
            subscriber: Default::default(),
        }))
    }

    fn offered(value: &str) -> Match {
        Match::Incompatible(vec![Incompatibility {
            policy: PolicyId::Deadline,
            offered: value.to_owned(),
            requested: "1 s".to_owned(),
        }])
    }

    /// A view, and what the log has said of those before.
    #[derive(Default)]
    struct World {
        known: KnownEndpoints,
        matches: BTreeMap<u64, Matches>,
        log: MismatchLog,
    }

    impl World {
        fn put(&mut self, member: MemberId, entries: impl Iterator<Item = (u64, Arc<Entry>)>) {
            let name = format!("participant {}", member.0);
            let endpoints = MemberEndpoints::new(member.0 as u32, name, entries.collect());
            self.known.put(member, Arc::new(endpoints));
        }

        /// What `member` is to an endpoint of this participant; `None` if it has gone.
        fn matched(&mut self, own: u64, other: EndpointName, found: Option<Match>) -> Pair {
            let before = self.matches.get(&own).map_or(&[][..], |it| it);
            let mut all: BTreeMap<_, _> = before.iter().cloned().collect();
            match found {
                Some(found) => all.insert(other, found),
                None => all.remove(&other),
            };
            self.matches.insert(own, all.into_iter().collect());
            (own, other)
        }

        fn mismatches(&self) -> Mismatches<'_> {
            Mismatches {
                me: ME,
                known: &self.known,
                matches: &self.matches,
            }
        }

        fn update(&mut self, changed: &[Pair]) -> Told {
            let mismatches = Mismatches {
                me: ME,
                known: &self.known,
                matches: &self.matches,
            };
            self.log.update(&mismatches, changed)
        }

        /// The line of one pair: the participants of the writer and the reader, and the reason.
        fn line(&mut self, changed: Pair) -> (String, String, String) {
            let told = self.update(&[changed]);
            let [line] = &told.lines[..] else {
                panic!("{told:?}");
            };
            let mismatches = self.mismatches();
            let why = mismatches.why(line, &mut Comparisons::default(), &BTreeMap::new());
            let [writer, reader] = mismatches.participants(line);
            (writer, reader, why)
        }

        fn figures(&self) -> (Vec<MismatchFigures>, u64) {
            let config = ParticipantConfig::read(&Default::default()).expect("defaults");
            let local_endpoints = LocalEndpoints::test(config);
            let mut comparisons = Comparisons::default();
            self.mismatches()
                .figures(&mut comparisons, &local_endpoints)
        }
    }

    #[test]
    fn a_line_has_both_participants_and_both_values() {
        let mut world = World::default();
        let other = MemberId(2);
        world.put(ME, [(7, writer(ME, 1)), (8, reader(ME, 2))].into_iter());
        world.put(
            other,
            [(3, reader(other, 1)), (4, writer(other, 2))].into_iter(),
        );
        let pair = world.matched(7, (other, 3), Some(offered("2 s")));
        let [me, you] = [1, 2].map(|id| format!("participant {id}"));
        let why = "DEADLINE: offered 2 s, requested 1 s";
        let line = world.line(pair);
        assert_eq!(line, (me.clone(), you.clone(), why.to_owned()));
        let pair = world.matched(8, (other, 4), Some(Match::Inconsistent(Conflict::HasKey)));
        let why = "types: one of the types has a key, the other has not (written T, read T)";
        assert_eq!(world.line(pair), (you, me, why.to_owned()));
        // Texts of other processes are cut.
        let long = world.matched(7, (other, 3), Some(offered(&"ä".repeat(9000))));
        let (.., why) = world.line(long);
        assert!(why.len() <= TEXT_LEN_MAX && why.ends_with("ä…"), "{why}");
        let figures = world.figures().0;
        assert!(figures[0].policies[0].offered.len() <= TEXT_LEN_MAX);
    }

    #[test]
    fn a_pair_of_one_participant_is_told_at_the_writer() {
        let mut world = World::default();
        world.put(ME, [(7, writer(ME, 1)), (8, reader(ME, 1))].into_iter());
        let pairs = [
            world.matched(7, (ME, 8), Some(offered("2 s"))),
            world.matched(8, (ME, 7), Some(offered("2 s"))),
        ];
        let told = world.update(&pairs);
        let first: Vec<Pair> = told.lines.iter().map(|line| line.first).collect();
        assert_eq!(first, [pairs[0]]);
        assert_eq!(world.figures().0.len(), 1);
    }

    #[test]
    fn many_pairs_take_few_lines_and_the_rest_is_counted() {
        let mut world = World::default();
        world.put(ME, (0..100).map(|topic| (topic, reader(ME, topic))));
        let (mut lines, mut counts) = (0, Vec::new());
        for member in (2..=101).map(MemberId) {
            let writers = (0..100).map(|topic| (topic, writer(member, topic)));
            world.put(member, writers);
            let changed = (0..100).map(|topic| {
                let other = (member, topic);
                world.matched(topic, other, Some(offered("2 s")))
            });
            let changed: Vec<Pair> = changed.collect();
            let told = world.update(&changed);
            lines += told.lines.len();
            counts.extend(told.left_out);
        }
        assert_eq!(lines, LINES_MAX);
        assert!((2..=14).contains(&counts.len()), "{counts:?}");
        let last = *counts.last().expect("some");
        assert!(last > 10_000 / 2 - 64 && last <= 10_000 - 64, "{last}");
        let (entries, unlisted) = world.figures();
        assert_eq!((entries.len(), unlisted), (ENTRIES_MAX, 10_000 - 256));

        // One that has changed is told of, and a pair that has gone makes room for another one.
        let again = world.matched(0, (MemberId(2), 0), Some(offered("3 s")));
        assert_eq!(world.update(&[again]).lines.len(), 1);
        let beyond = world.matched(99, (MemberId(99), 99), Some(offered("3 s")));
        assert_eq!(world.update(&[beyond]).lines, []);
        world.matched(0, (MemberId(2), 0), None);
        assert_eq!(world.update(&[beyond]).lines.len(), 1);
        assert_eq!(world.update(&[]), Told::default());
    }

    #[test]
    fn pairs_that_are_alike_are_one_line() {
        let mut world = World::default();
        let other = MemberId(2);
        world.put(ME, (0..3).map(|number| (number, reader(ME, 1))));
        world.put(other, (0..3).map(|number| (number, writer(other, 1))));
        let mut changed = Vec::new();
        for own in 0..3 {
            for number in 0..3 {
                let value = if number == 2 { "3 s" } else { "2 s" };
                changed.push(world.matched(own, (other, number), Some(offered(value))));
            }
        }
        let told = world.update(&changed);
        let pairs: Vec<u64> = told.lines.iter().map(|line| line.pairs).collect();
        assert_eq!(pairs, [6, 3]);
        let (entries, unlisted) = world.figures();
        let pairs: Vec<u64> = entries.iter().map(|entry| entry.pairs).collect();
        assert_eq!((pairs, unlisted), (vec![6, 3], 0));
    }
}
