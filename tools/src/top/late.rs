//! Members that are late, as the others see them.
//!
//! - A heartbeat: the failure detectors of the participants tell how long a member is silent.
//! - Steps: a participant tells itself that it was not stepped for long.
//! - Receipt, release: a member is behind, and has not moved between two snapshots. [`Standstills`]
//!   tells since which snapshot.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;
use spindle_dds::monitor::{
    DeliveryClass, DetectorFigures, HeartbeatFigures, ParticipantFigures, RingFigures,
    SubgroupFigures,
};

use super::scene::Names;
use super::snapshot::Snapshot;

/// A member that is late.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Late {
    /// The member.
    pub(super) member: String,
    pub(super) with: LateWith,
    /// The participants that see it.
    pub(super) seen_by: Vec<String>,
    /// Topics of the subgroup in which it is late, if it is late in one.
    pub(super) topics: Vec<String>,
    pub(super) subgroup: Option<u32>,
    /// Messages that it is behind, or holds.
    pub(super) messages: Option<u64>,
    /// How long it is late, or was late of late.
    pub(super) for_s: f64,
    /// The same as text.
    pub(super) why: String,
}

/// What a member is late with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum LateWith {
    /// Its heartbeats.
    Heartbeat,
    /// Its own steps: it had no processor.
    Steps,
    /// Receiving messages, or acknowledging them.
    Receipt,
    /// Releasing messages of a ring.
    Release,
}

/// Intervals after which a heartbeat is late. A member in time is seen after two at most: one until
/// its next heartbeat, and one until the next step of the member that looks.
const INTERVALS_MAX: u64 = 2;

/// Share of a ring from which it is late to hold it.
const HELD_FROM: f64 = 0.25;

/// A count that only rises: of a participant, subgroup, epoch, and of a member or a ring.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Series {
    participant: String,
    subgroup: u32,
    epoch: u64,
    of: SeriesOf,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum SeriesOf {
    /// Messages that the member of this place in the epoch has received.
    Received(usize),
    /// Messages of the own ordered ring that all have released.
    ReleasedOrdered,
    /// The same of the ring without order.
    ReleasedUnordered,
}

impl SeriesOf {
    fn released(class: DeliveryClass) -> Self {
        match class {
            DeliveryClass::Ordered => Self::ReleasedOrdered,
            DeliveryClass::Unordered => Self::ReleasedUnordered,
        }
    }
}

/// Since when counts have not changed.
#[derive(Debug, Clone, Default)]
pub(super) struct Standstills(BTreeMap<Series, (u64, Duration)>);

impl Standstills {
    /// After a further snapshot, taken `at` this time.
    pub(super) fn after<'a>(
        &self,
        at: Duration,
        told: impl Iterator<Item = &'a ParticipantFigures>,
    ) -> Self {
        let mut next = BTreeMap::new();
        for (figures, subgroup) in told.flat_map(|it| subgroups(it).map(move |sub| (it, sub))) {
            let received = subgroup.received.iter().enumerate();
            let received = received.map(|(place, count)| (SeriesOf::Received(place), *count));
            let rings = subgroup.rings.iter();
            let released = rings.map(|ring| (SeriesOf::released(ring.class), ring.released));
            for (of, count) in received.chain(released) {
                let series = series(figures, subgroup, of);
                let known = self.0.get(&series).filter(|(then, _)| *then == count);
                let since = known.map_or(at, |(_, since)| *since);
                next.insert(series, (count, since));
            }
        }
        Self(next)
    }

    fn since(&self, series: &Series) -> Option<Duration> {
        self.0.get(series).map(|(_, since)| *since)
    }
}

fn series(figures: &ParticipantFigures, subgroup: &SubgroupFigures, of: SeriesOf) -> Series {
    Series {
        participant: figures.member.clone(),
        subgroup: subgroup.subgroup,
        epoch: subgroup.epoch,
        of,
    }
}

fn subgroups(figures: &ParticipantFigures) -> impl Iterator<Item = &SubgroupFigures> {
    figures.engine.subgroups.iter()
}

/// The members that are late in `now`, the latest of each kind first.
pub(super) fn late(before: &Snapshot, now: &Snapshot, names: &Names) -> Vec<Late> {
    let told = |look: &'_ Snapshot, member: &str| {
        let seen = look.seen.iter().find(|seen| seen.member == member);
        seen.and_then(|seen| seen.figures.as_ref().ok()).cloned()
    };
    let mut all: Vec<Late> = Vec::new();
    for figures in now.seen.iter().filter_map(|it| it.figures.as_ref().ok()) {
        let observer = Observer {
            figures,
            before: told(before, &figures.member),
            now,
            names,
        };
        for found in observer.late() {
            // One entry for all that see the same.
            let is_same = |it: &&mut Late| {
                let key = |it: &Late| (it.member.clone(), it.with, it.subgroup);
                it.with != LateWith::Release && key(it) == key(&found)
            };
            match all.iter_mut().find(is_same) {
                None => all.push(found),
                Some(known) => {
                    let seen_by = [known.seen_by.clone(), found.seen_by.clone()].concat();
                    if found.for_s > known.for_s {
                        *known = found;
                    }
                    known.seen_by = seen_by;
                }
            }
        }
    }
    all.sort_by(|a, b| a.with.cmp(&b.with).then(b.for_s.total_cmp(&a.for_s)));
    all
}

/// A participant that reports about others.
struct Observer<'a> {
    figures: &'a ParticipantFigures,
    before: Option<ParticipantFigures>,
    now: &'a Snapshot,
    names: &'a Names,
}

impl Observer<'_> {
    fn late(&self) -> Vec<Late> {
        let mut late = Vec::new();
        if let Some(detector) = &self.figures.engine.detector {
            let others = detector.heartbeats.iter();
            late.extend(others.filter_map(|one| self.heartbeat(detector, one)));
            late.extend(self.steps(detector));
        }
        for subgroup in subgroups(self.figures) {
            late.extend(self.receipt(subgroup));
            let rings = subgroup.rings.iter();
            late.extend(rings.flat_map(|ring| self.release(subgroup, ring)));
        }
        late
    }

    fn entry(&self, rank: u16, with: LateWith, for_ns: u64, why: String) -> Late {
        let member = self.figures.members.get(usize::from(rank));
        Late {
            member: match member {
                Some(member) => self.names.of(&member.member),
                None => format!("member {rank}"),
            },
            with,
            seen_by: vec![self.names.of(&self.figures.member)],
            topics: Vec::new(),
            subgroup: None,
            messages: None,
            for_s: for_ns as f64 / 1e9,
            why,
        }
    }

    fn heartbeat(&self, detector: &DetectorFigures, one: &HeartbeatFigures) -> Option<Late> {
        let late_from_ns = detector.interval_ns.saturating_mul(INTERVALS_MAX);
        let silent_ns = one.silent_ns;
        let limits = format!(
            "every {}, suspected after {}",
            seconds(detector.interval_ns),
            seconds(detector.allowed_ns)
        );
        let (for_ns, mut why) = match one.has_begun {
            // It prepares the view until its first heartbeat.
            false if silent_ns > detector.allowed_ns => (
                silent_ns,
                format!("has not begun the view for {}", seconds(silent_ns)),
            ),
            false => return None,
            true if silent_ns > late_from_ns => (
                silent_ns,
                format!("no heartbeat for {} ({limits})", seconds(silent_ns)),
            ),
            true if one.gap_ns > late_from_ns => {
                let gap = seconds(one.gap_ns);
                (
                    one.gap_ns,
                    format!("heartbeats up to {gap} apart of late ({limits})"),
                )
            }
            true => return None,
        };
        if one.is_suspected {
            why += ", suspected";
        }
        Some(self.entry(one.member, LateWith::Heartbeat, for_ns, why))
    }

    fn steps(&self, detector: &DetectorFigures) -> Option<Late> {
        let gap_ns = detector.own_gap_ns;
        let rank = self
            .figures
            .members
            .iter()
            .position(|it| it.member == self.figures.member)?;
        (gap_ns > detector.interval_ns.saturating_mul(INTERVALS_MAX)).then(|| {
            let why = format!(
                "did not run for up to {} of late (suspected after {})",
                seconds(gap_ns),
                seconds(detector.timeout_ns)
            );
            let rank = u16::try_from(rank).unwrap_or(u16::MAX);
            self.entry(rank, LateWith::Steps, gap_ns, why)
        })
    }

    /// The same subgroup in the snapshot before.
    fn subgroup_before(&self, subgroup: &SubgroupFigures) -> Option<&SubgroupFigures> {
        let mut before = subgroups(self.before.as_ref()?);
        before.find(|it| it.subgroup == subgroup.subgroup && it.epoch == subgroup.epoch)
    }

    fn standstill_ns(&self, subgroup: &SubgroupFigures, of: SeriesOf) -> u64 {
        let since = self
            .now
            .standstills
            .since(&series(self.figures, subgroup, of));
        let for_how_long = since.map(|since| self.now.at.saturating_sub(since));
        let ns = for_how_long.unwrap_or_default().as_nanos();
        u64::try_from(ns).unwrap_or(u64::MAX)
    }

    /// An entry for a member that does not move in a subgroup.
    fn standing(
        &self,
        subgroup: &SubgroupFigures,
        (rank, with): (u16, LateWith),
        (messages, for_ns): (u64, u64),
        why: String,
    ) -> Late {
        let topics = self.figures.topics.iter();
        let topics = topics.filter(|topic| topic.subgroup == subgroup.subgroup);
        Late {
            topics: topics.map(|topic| topic.topic.clone()).collect(),
            subgroup: Some(subgroup.subgroup),
            messages: Some(messages),
            ..self.entry(rank, with, for_ns, why)
        }
    }

    /// Members that have received nothing between the snapshots of what they were behind before.
    fn receipt(&self, subgroup: &SubgroupFigures) -> Vec<Late> {
        let Some(before) = self.subgroup_before(subgroup) else {
            return Vec::new();
        };
        let places = subgroup.members.iter().zip(&subgroup.received).enumerate();
        let late = places.filter_map(|(place, (rank, count))| {
            let then = *before.received.get(place)?;
            if *count != then || then >= before.received_num {
                return None;
            }
            let for_ns = self.standstill_ns(subgroup, SeriesOf::Received(place));
            let behind = subgroup.received_num.saturating_sub(*count);
            let why = format!(
                "{behind} messages behind, none received for {}",
                seconds(for_ns)
            );
            Some(self.standing(subgroup, (*rank, LateWith::Receipt), (behind, for_ns), why))
        });
        late.collect()
    }

    /// Members that hold much of a ring, and have released nothing between the snapshots.
    fn release(&self, subgroup: &SubgroupFigures, ring: &RingFigures) -> Vec<Late> {
        let rings = self
            .subgroup_before(subgroup)
            .map(|before| before.rings.iter());
        let Some(before) = rings.and_then(|mut rings| rings.find(|it| it.class == ring.class))
        else {
            return Vec::new();
        };
        let used = |it: &RingFigures| {
            let messages = f64::from(it.messages) / f64::from(it.messages_max.max(1));
            messages.max(it.bytes as f64 / it.bytes_max.max(1) as f64)
        };
        let is_held = |it: &RingFigures| it.released < it.published && used(it) >= HELD_FROM;
        if before.released != ring.released || !is_held(before) || !is_held(ring) {
            return Vec::new();
        }
        let for_ns = self.standstill_ns(subgroup, SeriesOf::released(ring.class));
        let writer = self.names.of(&self.figures.member);
        let (messages, most) = (ring.messages, ring.messages_max);
        let (bytes, bytes_max) = (ring.bytes, ring.bytes_max);
        let holders = ring.unreleased.iter().map(|rank| {
            let why = format!(
                "holds {messages} of {most} messages, {bytes} of {bytes_max} bytes, in the ring of \
                 {writer}, none released for {}",
                seconds(for_ns)
            );
            let of = (*rank, LateWith::Release);
            self.standing(subgroup, of, (messages.into(), for_ns), why)
        });
        holders.collect()
    }
}

/// Nanoseconds as text.
fn seconds(ns: u64) -> String {
    match ns {
        ns if ns < 1_000_000_000 => format!("{} ms", ns / 1_000_000),
        ns => format!("{:.1} s", ns as f64 / 1e9),
    }
}
