//! What is shown: the rates between two snapshots.

use std::collections::BTreeMap;

use serde::Serialize;
use spindle_dds::StreamCalls;
use spindle_dds::monitor::{
    BatchHistogram, Latencies, MemberFigures, MemoryFigures, ObservedMember, ParticipantFigures,
    TopicFigures, Traffic,
};

use super::blocked::{Blocked, Comparison};
use super::late::{Late, late};
use super::logs::Log;
use super::mismatches::{Mismatch, mismatches};
use super::snapshot::Snapshot;
use super::transfers::{Transfer, transfers};

/// What is shown. Rates are per second, over the time between the snapshots.
#[derive(Debug, Default, Serialize)]
pub(super) struct Scene {
    pub(super) domain: u32,
    /// Time between the two snapshots.
    pub(super) interval_s: f64,
    /// The newest view of all participants that answer.
    pub(super) view: Option<View>,
    pub(super) participants: Vec<Participant>,
    pub(super) topics: Vec<Topic>,
    /// History that participants are getting.
    pub(super) transfers: Vec<Transfer>,
    /// Logs of PERSISTENT topics.
    pub(super) logs: Vec<Log>,
    /// Writers and readers of one topic that do not match.
    pub(super) mismatches: Vec<Mismatch>,
    /// Pairs of these that participants do not list. Those that both of its participants leave out
    /// count twice.
    pub(super) unlisted_mismatches: u64,
    pub(super) blocked: Vec<Blocked>,
    pub(super) late: Vec<Late>,
}

#[derive(Debug, Serialize)]
pub(super) struct View {
    pub(super) id: u64,
    pub(super) leader: String,
    /// Names by rank.
    pub(super) members: Vec<String>,
}

#[derive(Debug, Serialize)]
pub(super) struct Participant {
    pub(super) name: String,
    /// Its member id.
    pub(super) member: String,
    pub(super) pid: u32,
    pub(super) is_here: bool,
    /// Why there are no figures, if there are none.
    pub(super) problem: Option<String>,
    /// Processor time of its process; 100 is one core.
    pub(super) cpu_percent: Option<f64>,
    /// Memory of its process, of shared pages its share (PSS).
    pub(super) pss_bytes: Option<u64>,
    pub(super) figures: Option<Figures>,
}

#[derive(Debug, Serialize)]
pub(super) struct Figures {
    pub(super) view: u64,
    pub(super) sent_per_s: f64,
    pub(super) sent_bytes_per_s: f64,
    pub(super) delivered_per_s: f64,
    pub(super) delivered_bytes_per_s: f64,
    pub(super) nulls_per_s: f64,
    pub(super) upcalls_per_s: f64,
    pub(super) pushes_per_s: Pushes,
    pub(super) pushed_bytes_per_s: Pushes,
    /// Streams (TCP) to other hosts; `None` if it has never used one.
    pub(super) streams: Option<Streams>,
    /// How its peers are reached.
    pub(super) peers: Vec<PeerReach>,
    /// Doorbells sent to sleeping participants.
    pub(super) rings_per_s: f64,
    pub(super) sleeps_per_s: f64,
    pub(super) wake_ups_per_s: f64,
    /// How often writers began to wait for room.
    pub(super) room_waits_per_s: f64,
    /// Share of the time that its threads waited for room; may be above 1 with several threads.
    pub(super) room_wait: f64,
    /// Samples that wait in histories of its writers to be sent, and what they take.
    pub(super) waiting: u64,
    pub(super) waiting_bytes: u64,
    pub(super) batches: Batches,
    /// What its memory is used for.
    pub(super) memory: Vec<MemoryFigures>,
    pub(super) latency_own: Option<Times>,
    pub(super) latency_others: Option<Times>,
}

/// Pushes by content.
#[derive(Debug, Serialize)]
pub(super) struct Pushes {
    pub(super) data: f64,
    pub(super) acks: f64,
    pub(super) digests: f64,
}

/// How a peer is reached.
#[derive(Debug, Serialize)]
pub(super) struct PeerReach {
    /// Its member id.
    pub(super) member: String,
    /// `shm`, `tcp` or `rdma`.
    pub(super) way: &'static str,
    pub(super) encrypted: bool,
}

/// System calls of streams, and what they moved.
#[derive(Debug, Serialize)]
pub(super) struct Streams {
    pub(super) send_calls_per_s: f64,
    pub(super) sent_bytes_per_s: f64,
    pub(super) receive_calls_per_s: f64,
    pub(super) received_bytes_per_s: f64,
    /// Samples sent for each call, and delivered for each; both of all peers.
    pub(super) sent_per_call: Option<f64>,
    pub(super) delivered_per_call: Option<f64>,
}

/// Batches by stage.
#[derive(Debug, Serialize)]
pub(super) struct Batches {
    pub(super) send: Option<Sizes>,
    pub(super) receive: Option<Sizes>,
    pub(super) delivery: Option<Sizes>,
}

/// Batch sizes in messages.
#[derive(Debug, Serialize)]
pub(super) struct Sizes {
    pub(super) p50: u64,
    pub(super) p99: u64,
}

/// Nanoseconds from source timestamp to delivery.
#[derive(Debug, Serialize)]
pub(super) struct Times {
    pub(super) samples: u64,
    pub(super) p50_ns: u64,
    pub(super) p99_ns: u64,
}

/// A topic at one participant.
#[derive(Debug, Serialize)]
pub(super) struct Topic {
    pub(super) topic: String,
    pub(super) participant: String,
    pub(super) subgroup: u32,
    pub(super) writers: u32,
    pub(super) readers: u32,
    /// Pairs of one of these and another endpoint that do not match.
    pub(super) mismatches: u64,
    pub(super) full_readers: u32,
    pub(super) waiting: u64,
    pub(super) waiting_bytes: u64,
    pub(super) out_per_s: f64,
    pub(super) out_bytes_per_s: f64,
    pub(super) in_per_s: f64,
    pub(super) in_bytes_per_s: f64,
    /// Samples that are kept there for readers that come later, and what they take.
    pub(super) kept: u64,
    pub(super) kept_bytes: u64,
}

/// Names of members.
pub(super) struct Names(BTreeMap<String, String>);

impl Names {
    /// By the names that participants announce, or else named by process; with a part of the member
    /// id where several have one name.
    fn of_seen(look: &Snapshot) -> Self {
        let told = look
            .seen
            .iter()
            .filter_map(|seen| seen.figures.as_ref().ok());
        let told = told.flat_map(|figures| &figures.members);
        let announced: BTreeMap<&str, &str> = told
            .map(|it| (it.member.as_str(), it.name.as_str()))
            .collect();
        let name = |seen: &ObservedMember| {
            if let Some(name) = announced.get(seen.member.as_str()) {
                return name.replace(char::is_control, "?");
            }
            let process = look.processes.get(&seen.pid).filter(|_| seen.is_here);
            match process {
                Some(process) => format!("{}/{}", process.command, seen.pid),
                None if seen.is_here => seen.pid.to_string(),
                None => format!("{} elsewhere", seen.pid),
            }
        };
        let mut members: BTreeMap<String, Vec<&str>> = BTreeMap::new();
        for seen in &look.seen {
            members.entry(name(seen)).or_default().push(&seen.member);
        }
        let unlike = |seen: &ObservedMember| {
            let name = name(seen);
            let alike = members.get(&name).into_iter().flatten();
            let others = alike.filter(|member| **member != seen.member);
            match others.map(|it| common(it, &seen.member)).max() {
                None => name,
                Some(common) => {
                    let digits = (common + 1).max(SHORT);
                    let part = seen.member.get(..digits).unwrap_or(&seen.member);
                    format!("{name}:{part}")
                }
            }
        };
        let names = look.seen.iter().map(|it| (it.member.clone(), unlike(it)));
        Self(names.collect())
    }

    pub(super) fn of(&self, member: &str) -> String {
        let known = self.0.get(member).cloned();
        known.unwrap_or_else(|| format!("member {}", short(member)))
    }
}

/// Digits of a member id that are shown at least.
const SHORT: usize = 4;

fn short(member: &str) -> &str {
    member.get(..SHORT).unwrap_or(member)
}

/// How many digits two member ids begin with.
fn common(one: &str, other: &str) -> usize {
    let digits = one.bytes().zip(other.bytes());
    digits.take_while(|(one, other)| one == other).count()
}

/// Turns counts into rates. Without an earlier snapshot, the counts since the participant's start
/// are used.
pub(super) struct Rate {
    seconds: f64,
}

impl Rate {
    pub(super) fn between(before: Option<&ParticipantFigures>, now: &ParticipantFigures) -> Self {
        let before_ns = before.map_or(0, |before| before.taken_at_ns);
        let elapsed_ns = now.taken_at_ns.saturating_sub(before_ns);
        Self {
            seconds: (elapsed_ns as f64 / 1e9).max(1e-9),
        }
    }

    pub(super) fn of(&self, before: Option<u64>, now: u64) -> f64 {
        now.saturating_sub(before.unwrap_or(0)) as f64 / self.seconds
    }
}

fn told<'a>(look: &'a Snapshot, member: &str) -> Option<&'a ParticipantFigures> {
    let seen = look.seen.iter().find(|seen| seen.member == member)?;
    seen.figures.as_ref().ok()
}

impl Scene {
    pub(super) fn of(before: &Snapshot, now: &Snapshot) -> Self {
        let names = Names::of_seen(now);
        let interval = now.at.saturating_sub(before.at).as_secs_f64();
        let all: Vec<&ParticipantFigures> = now
            .seen
            .iter()
            .filter_map(|it| it.figures.as_ref().ok())
            .collect();
        let mut scene = Self {
            domain: now.domain,
            interval_s: interval,
            view: newest_view(&all, &names),
            transfers: transfers(&all, &names),
            mismatches: mismatches(&all, &names),
            unlisted_mismatches: all
                .iter()
                .fold(0, |sum, it| sum.saturating_add(it.unlisted_mismatches)),
            late: late(before, now, &names),
            ..Self::default()
        };
        for seen in &now.seen {
            let old = told(before, &seen.member);
            let cpu = |look: &Snapshot| Some(look.processes.get(&seen.pid)?.cpu_ns);
            let cpu_ns = cpu(now).zip(cpu(before));
            let cpu_ns = cpu_ns.filter(|_| seen.is_here && interval > 0.0);
            let figures = seen.figures.as_ref().ok();
            scene.participants.push(Participant {
                name: names.of(&seen.member),
                member: seen.member.clone(),
                pid: seen.pid,
                is_here: seen.is_here,
                problem: seen.figures.as_ref().err().map(ToString::to_string),
                cpu_percent: cpu_ns
                    .map(|(now, then)| now.saturating_sub(then) as f64 / interval / 1e7),
                pss_bytes: now
                    .processes
                    .get(&seen.pid)
                    .filter(|_| seen.is_here)
                    .and_then(|it| it.pss_bytes),
                figures: figures.map(|now| Figures::of(old, now)),
            });
            let Some(figures) = figures else { continue };
            let topics = figures.topics.iter();
            let topic = |topic| Topic::of(topic, old, figures, &names);
            scene.topics.extend(topics.map(topic));
            scene.logs.extend(Log::all(old, figures, &names));
            let comparison = Comparison {
                before: old,
                now: figures,
                names: &names,
                all: &all,
            };
            scene.blocked.extend(comparison.blocked());
        }
        scene
            .logs
            .sort_by(|a, b| (&a.topic, &a.participant).cmp(&(&b.topic, &b.participant)));
        scene
            .topics
            .sort_by(|a, b| (&a.topic, &a.participant).cmp(&(&b.topic, &b.participant)));
        scene
    }
}

fn newest_view(all: &[&ParticipantFigures], names: &Names) -> Option<View> {
    let newest = all.iter().max_by_key(|it| it.view)?;
    let members = newest.members.iter().map(|it| names.of(&it.member));
    let members: Vec<String> = members.collect();
    Some(View {
        id: newest.view,
        leader: members.first()?.clone(),
        members,
    })
}

impl Figures {
    fn of(old: Option<&ParticipantFigures>, now: &ParticipantFigures) -> Self {
        let rate = Rate::between(old, now);
        let of = |value: fn(&ParticipantFigures) -> u64| rate.of(old.map(value), value(now));
        let traffic = |kind: fn(&ParticipantFigures) -> Traffic, what: fn(Traffic) -> u64| {
            rate.of(old.map(|old| what(kind(old))), what(kind(now)))
        };
        let pushes = |what: fn(Traffic) -> u64| Pushes {
            data: traffic(|it| it.engine.counters.data, what),
            acks: traffic(|it| it.engine.counters.acks, what),
            digests: traffic(|it| it.engine.counters.digests, what),
        };
        Self {
            view: now.view,
            sent_per_s: of(|it| it.engine.counters.sent),
            sent_bytes_per_s: of(|it| it.engine.counters.sent_bytes),
            delivered_per_s: of(|it| it.engine.counters.delivered),
            delivered_bytes_per_s: of(|it| it.engine.counters.delivered_bytes),
            nulls_per_s: of(|it| it.engine.counters.nulls),
            upcalls_per_s: of(|it| it.engine.counters.upcalls),
            pushes_per_s: pushes(|it| it.pushes),
            pushed_bytes_per_s: pushes(|it| it.bytes),
            streams: Streams::of(&of, now),
            peers: peers(now),
            rings_per_s: of(|it| it.fabric.peer_wakes),
            sleeps_per_s: of(|it| it.fabric.sleeps),
            wake_ups_per_s: of(|it| it.wake_ups),
            room_waits_per_s: of(|it| it.waits.iter().map(|waits| waits.times).sum()),
            room_wait: of(|it| it.waits.iter().map(|waits| waits.ns).sum()) / 1e9,
            waiting: sum(&now.topics, |it| it.waiting),
            waiting_bytes: sum(&now.topics, |it| it.waiting_bytes),
            batches: Batches::of(old, now),
            memory: now.memory.clone(),
            latency_own: Times::of(old.map(|it| &it.latency_own), &now.latency_own),
            latency_others: Times::of(old.map(|it| &it.latency_others), &now.latency_others),
        }
    }
}

fn sum<T>(all: &[T], value: fn(&T) -> u64) -> u64 {
    let values = all.iter().map(value);
    values.fold(0, u64::saturating_add)
}

/// Those that are reached, by rank.
fn peers(now: &ParticipantFigures) -> Vec<PeerReach> {
    let reach = |member: &MemberFigures| {
        Some(PeerReach {
            member: member.member.clone(),
            way: member.path.as_ref()?.name(),
            encrypted: member.encrypted,
        })
    };
    now.members.iter().filter_map(reach).collect()
}

impl Streams {
    /// By the rates of counts.
    fn of(
        rate: &impl Fn(fn(&ParticipantFigures) -> u64) -> f64,
        now: &ParticipantFigures,
    ) -> Option<Self> {
        let StreamCalls {
            send_calls,
            receive_calls,
            ..
        } = now.streams;
        if send_calls + receive_calls == 0 {
            return None;
        }
        let send_calls = rate(|it| it.streams.send_calls);
        let receive_calls = rate(|it| it.streams.receive_calls);
        let per_call = |samples: f64, calls: f64| (calls > 0.0).then(|| samples / calls);
        Some(Self {
            send_calls_per_s: send_calls,
            sent_bytes_per_s: rate(|it| it.streams.bytes_sent),
            receive_calls_per_s: receive_calls,
            received_bytes_per_s: rate(|it| it.streams.bytes_received),
            sent_per_call: per_call(rate(|it| it.engine.counters.sent), send_calls),
            delivered_per_call: per_call(rate(|it| it.engine.counters.delivered), receive_calls),
        })
    }
}

impl Batches {
    fn of(old: Option<&ParticipantFigures>, now: &ParticipantFigures) -> Self {
        let sizes = |stage: fn(&ParticipantFigures) -> &BatchHistogram| {
            let new = stage(now);
            let new = old.map_or_else(|| new.clone(), |old| new.since(stage(old)));
            (new.batches() > 0).then(|| Sizes {
                p50: new.quantile(0.5),
                p99: new.quantile(0.99),
            })
        };
        Self {
            send: sizes(|it| &it.engine.counters.send_batches),
            receive: sizes(|it| &it.engine.counters.receive_batches),
            delivery: sizes(|it| &it.engine.counters.delivery_batches),
        }
    }
}

impl Times {
    fn of(old: Option<&Latencies>, now: &Latencies) -> Option<Self> {
        let new = old.map_or_else(|| now.clone(), |old| now.since(old));
        Some(Self {
            samples: new.count(),
            p50_ns: new.quantile(0.5)?,
            p99_ns: new.quantile(0.99)?,
        })
    }
}

impl Topic {
    fn of(
        topic: &TopicFigures,
        old: Option<&ParticipantFigures>,
        now: &ParticipantFigures,
        names: &Names,
    ) -> Self {
        let rate = Rate::between(old, now);
        let topics = old.into_iter().flat_map(|old| &old.topics);
        let before = { topics }.find(|it| it.topic == topic.topic);
        let of = |value: fn(&TopicFigures) -> u64| rate.of(before.map(value), value(topic));
        let mismatches = now.mismatches.iter();
        let mismatches = mismatches.filter(|it| it.topic == topic.topic);
        Self {
            topic: topic.topic.clone(),
            participant: names.of(&now.member),
            subgroup: topic.subgroup,
            writers: topic.writers,
            readers: topic.readers,
            mismatches: mismatches.fold(0, |sum, it| sum.saturating_add(it.pairs)),
            full_readers: topic.full_readers,
            waiting: topic.waiting,
            waiting_bytes: topic.waiting_bytes,
            out_per_s: of(|it| it.sent),
            out_bytes_per_s: of(|it| it.sent_bytes),
            in_per_s: of(|it| it.received),
            in_bytes_per_s: of(|it| it.received_bytes),
            kept: topic.kept,
            kept_bytes: topic.kept_bytes,
        }
    }
}
