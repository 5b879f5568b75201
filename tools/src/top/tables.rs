//! A scene as tables: names on the left, numbers on the right.

use spindle_dds::monitor::MemoryKind;

use super::logs::Log;
use super::names::{clean, columns};
use super::scene::{Figures, Participant, PeerReach, Scene, Sizes, Times, Topic};
use super::transfers::Transfer;

/// Columns of a number, at least.
const NUMBER_MIN: usize = 6;

/// A table.
#[derive(Debug)]
pub(super) struct Table {
    pub(super) title: &'static str,
    /// Of the columns with names.
    pub(super) names: &'static [Column],
    /// Of the columns with numbers.
    pub(super) numbers: &'static [Column],
    pub(super) rows: Vec<Row>,
}

/// A column: its heading, and what it holds.
pub(super) type Column = (&'static str, &'static str);

#[derive(Debug)]
pub(super) struct Row {
    pub(super) names: Vec<String>,
    pub(super) numbers: Vec<Number>,
    /// Why there are no numbers, if there are none.
    pub(super) note: Option<String>,
}

/// A number, or that it is not known.
#[derive(Debug, Clone, Default)]
pub(super) struct Number {
    pub(super) value: Option<f64>,
    pub(super) text: String,
}

const PARTICIPANT: Column = (
    "participant",
    "the name that it announces, or its program and process id",
);

const TOPIC: Column = ("topic", "its name");

const DONORS: Column = (
    "donors",
    "those that are asked now; -: only itself, or all has come",
);

const PARTICIPANTS: &[Column] = &[
    (
        "CPU %",
        "processor time of its process; 100 is one processor",
    ),
    ("out/s", "samples that its writers sent"),
    ("out MB/s", "payload of these"),
    (
        "in/s",
        "samples that were delivered to it, its own included",
    ),
    ("in MB/s", "payload of these"),
    (
        "waiting",
        "samples that wait in histories of its writers to be sent",
    ),
    (
        "wait %",
        "share of the time that its writers waited for room",
    ),
    ("pushes/s", "pushes of samples to other members"),
    ("acks/s", "pushes of acknowledgements"),
    (
        "nulls/s",
        "places in the order that it left to others, having nothing to send",
    ),
    ("wakes/s", "how often its polling thread woke up"),
    ("bells/s", "doorbells that it sent to sleeping members"),
];

const BATCHES: &[Column] = &[
    ("send p50", "messages sent at once, median"),
    ("send p99", "the same, 99th percentile"),
    ("recv p50", "messages received at once, median"),
    ("recv p99", "the same, 99th percentile"),
    ("dlvr p50", "messages delivered at once, median"),
    ("dlvr p99", "the same, 99th percentile"),
    ("own p50", "latency of its own samples, median"),
    ("own p99", "the same, 99th percentile"),
    ("oth. p50", "latency of the samples of others, median"),
    ("oth. p99", "the same, 99th percentile"),
];

const STREAMS: &[Column] = &[
    ("sends/s", "system calls that send"),
    ("out MB/s", "bytes that they sent"),
    ("out/call", "samples for each"),
    ("rcvs/s", "system calls that receive"),
    ("in MB/s", "bytes that they received"),
    ("in/call", "samples for each"),
    ("tcp", "peers that it reaches by TCP"),
    ("encr.", "peers to which that is encrypted"),
    ("rdma", "peers that it reaches by RDMA"),
];

const MEMORY: &[Column] = &[
    ("PSS", "memory of the process; of shared pages its share"),
    ("mapped", "what the library has mapped"),
    ("state", "in use: its rows of view and subgroups"),
    ("headers", "in use: headers of its rings"),
    ("payload", "in use: payload of its rings"),
    ("peers", "in use: rows of others"),
    ("notes", "in use: account of messages"),
    ("prepared", "in use: for the next view"),
    ("caches", "in use: caches of readers"),
    ("queues", "in use: queues of arrivals"),
    ("writers", "in use: histories and loans of writers"),
];

const TOPICS: &[Column] = &[
    ("writers", "writers of the topic"),
    ("readers", "readers of the topic"),
    (
        "no match",
        "pairs of a writer and a reader that do not match: see the problems",
    ),
    (
        "full",
        "readers that accept nothing before samples are taken",
    ),
    (
        "waiting",
        "samples that wait in histories of the writers to be sent",
    ),
    ("out/s", "samples that the writers sent"),
    ("out MB/s", "payload of these"),
    ("in/s", "samples that the readers received"),
    ("in MB/s", "payload of these"),
    (
        "kept",
        "samples that are kept for readers that come later (DURABILITY)",
    ),
    (
        "kept MB",
        "what these take: 64 bytes for each beside its payload",
    ),
];

const TRANSFERS: &[Column] = &[
    (
        "samples",
        "samples and changes of instance states that have come",
    ),
    ("MB", "their size: 64 bytes for each beside its payload"),
];

const STATE: Column = (
    "state",
    "open: it is written; learner: it takes what it lacks; shut k/n: k of n logs are there",
);

const LOGS: &[Column] = &[
    (
        "behind",
        "positions that were delivered and are not on the disk",
    ),
    ("syncs/s", "syncs of its files"),
    ("MB/s", "what was written to them"),
    ("files", "files with records"),
    ("MB", "their size"),
    (
        "compact",
        "files written anew without what nothing needs, or removed",
    ),
];

/// What each column of memory in use is the sum of.
const MEMORY_KINDS: [&[MemoryKind]; 9] = [
    &[MemoryKind::OwnControlRow, MemoryKind::OwnState],
    &[MemoryKind::OwnHeaders],
    &[MemoryKind::OwnPayload],
    &[MemoryKind::PeerRows],
    &[MemoryKind::Bookkeeping],
    &[MemoryKind::Prepared],
    &[MemoryKind::ReaderCaches],
    &[MemoryKind::ArrivalQueues],
    &[MemoryKind::Writers],
];

/// The names of the tables, in their order.
pub(super) const NAMES: [&str; 7] = [
    "Participants",
    "Batches",
    "Streams",
    "Memory",
    "Topics",
    "History",
    "Logs",
];

/// The same where there is little room.
pub(super) const SHORT_NAMES: [&str; 7] = {
    let mut names = NAMES;
    names[0] = "Members";
    names
};

/// The table that is empty where all participants are on one host.
const STREAMS_AT: usize = 2;

/// The table that is empty where no history is transferred.
const HISTORY_AT: usize = 5;

/// The table that is empty where no topic is logged.
const LOGS_AT: usize = 6;

/// The tables that are empty most of the time.
pub(super) const MOSTLY_EMPTY: [usize; 3] = [STREAMS_AT, HISTORY_AT, LOGS_AT];

/// One of the tables.
pub(super) fn table(scene: &Scene, at: usize) -> Table {
    let of_participants = |title, numbers, row: fn(&Participant) -> Option<Vec<Number>>| Table {
        title,
        names: &[PARTICIPANT],
        numbers,
        rows: rows(&scene.participants, row),
    };
    match at {
        0 => of_participants("Participants", PARTICIPANTS, participant),
        1 => of_participants(
            "Batches (messages) and latencies (us, from source timestamp to delivery)",
            BATCHES,
            |it| Some(batches(it.figures.as_ref()?)),
        ),
        STREAMS_AT => of_participants(
            "Streams to other hosts (system calls; samples for each; peers by path)",
            STREAMS,
            streams,
        ),
        3 => of_participants(
            "Memory (MB in use; PSS of the process, mapped in all)",
            MEMORY,
            memory,
        ),
        HISTORY_AT => Table {
            title: "History under way (to the participant, from the donors)",
            names: &[TOPIC, PARTICIPANT, DONORS],
            numbers: TRANSFERS,
            rows: scene.transfers.iter().map(transfer).collect(),
        },
        LOGS_AT => Table {
            title: "Logs of PERSISTENT topics",
            names: &[TOPIC, PARTICIPANT, STATE],
            numbers: LOGS,
            rows: scene.logs.iter().map(log).collect(),
        },
        _ => Table {
            title: "Topics",
            names: &[TOPIC, PARTICIPANT],
            numbers: TOPICS,
            rows: scene.topics.iter().map(topic).collect(),
        },
    }
}

fn rows(all: &[Participant], row: fn(&Participant) -> Option<Vec<Number>>) -> Vec<Row> {
    let row = |one: &Participant| {
        Some(Row {
            names: vec![one.name.clone()],
            numbers: row(one)?,
            note: one.problem.clone(),
        })
    };
    all.iter().filter_map(row).collect()
}

fn participant(one: &Participant) -> Option<Vec<Number>> {
    let cpu = one
        .cpu_percent
        .map(|it| Number::new(it, format!("{it:.0}")));
    let mut numbers = vec![cpu.unwrap_or_default()];
    let Some(figures) = &one.figures else {
        numbers.resize_with(PARTICIPANTS.len(), Number::default);
        return Some(numbers);
    };
    let wait = figures.room_wait * 100.0;
    numbers.extend([
        rate(figures.sent_per_s),
        megabytes(figures.sent_bytes_per_s),
        rate(figures.delivered_per_s),
        megabytes(figures.delivered_bytes_per_s),
        count(figures.waiting),
        Number::new(wait, format!("{wait:.0}")),
        rate(figures.pushes_per_s.data),
        rate(figures.pushes_per_s.acks),
        rate(figures.nulls_per_s),
        rate(figures.wake_ups_per_s),
        rate(figures.rings_per_s),
    ]);
    Some(numbers)
}

fn batches(figures: &Figures) -> Vec<Number> {
    let sizes = |sizes: &Option<Sizes>| {
        let sizes = sizes.as_ref().map(|it| [it.p50, it.p99].map(count));
        sizes.unwrap_or_else(|| [Number::unknown(), Number::unknown()])
    };
    let times = |times: &Option<Times>| {
        let times = times.as_ref();
        let times = times.map(|it| [it.p50_ns, it.p99_ns].map(microseconds));
        times.unwrap_or_else(|| [Number::unknown(), Number::unknown()])
    };
    let stages = &figures.batches;
    let sizes = [&stages.send, &stages.receive, &stages.delivery].map(sizes);
    let times = [&figures.latency_own, &figures.latency_others].map(times);
    sizes.into_iter().chain(times).flatten().collect()
}

fn streams(one: &Participant) -> Option<Vec<Number>> {
    let figures = one.figures.as_ref()?;
    let streams = figures.streams.as_ref()?;
    let peers = |is: &dyn Fn(&PeerReach) -> bool| {
        let peers = figures.peers.iter().filter(|peer| is(peer));
        count(peers.count() as u64)
    };
    let known = |value: Option<f64>| value.map_or_else(Number::unknown, rate);
    Some(vec![
        rate(streams.send_calls_per_s),
        megabytes(streams.sent_bytes_per_s),
        known(streams.sent_per_call),
        rate(streams.receive_calls_per_s),
        megabytes(streams.received_bytes_per_s),
        known(streams.delivered_per_call),
        peers(&|peer| peer.way == "tcp"),
        peers(&|peer| peer.encrypted),
        peers(&|peer| peer.way == "rdma"),
    ])
}

fn memory(one: &Participant) -> Option<Vec<Number>> {
    let told = &one.figures.as_ref()?.memory;
    let used = |kinds: &[MemoryKind]| {
        let of_these = told.iter().filter(|it| kinds.contains(&it.kind));
        of_these.map(|it| it.resident_bytes).sum::<Option<u64>>()
    };
    let known = |bytes: Option<u64>| bytes.map_or_else(Number::unknown, |it| megabytes(it as f64));
    let mapped: u64 = told.iter().map(|it| it.bytes).sum();
    let mut numbers = vec![known(one.pss_bytes), megabytes(mapped as f64)];
    numbers.extend(MEMORY_KINDS.map(used).map(known));
    Some(numbers)
}

fn topic(one: &Topic) -> Row {
    Row {
        names: vec![one.topic.clone(), one.participant.clone()],
        numbers: vec![
            count(one.writers.into()),
            count(one.readers.into()),
            count(one.mismatches),
            count(one.full_readers.into()),
            count(one.waiting),
            rate(one.out_per_s),
            megabytes(one.out_bytes_per_s),
            rate(one.in_per_s),
            megabytes(one.in_bytes_per_s),
            count(one.kept),
            megabytes(one.kept_bytes as f64),
        ],
        note: None,
    }
}

fn transfer(one: &Transfer) -> Row {
    Row {
        names: vec![
            one.topic.clone(),
            one.participant.clone(),
            one.donors_text(),
        ],
        numbers: vec![count(one.samples), megabytes(one.bytes as f64)],
        note: None,
    }
}

fn log(one: &Log) -> Row {
    Row {
        names: vec![
            one.topic.clone(),
            one.participant.clone(),
            one.condition.short(),
        ],
        numbers: vec![
            count(one.behind),
            rate(one.syncs_per_s),
            megabytes(one.written_bytes_per_s),
            count(one.files),
            megabytes(one.bytes as f64),
            count(one.compacted),
        ],
        note: None,
    }
}

impl Table {
    /// Columns that the names of a column take.
    pub(super) fn name_width(&self, at: usize) -> usize {
        let names = self.rows.iter().filter_map(|row| row.names.get(at));
        let widths = names.map(|name| columns(&clean(name)));
        widths.max().unwrap_or(0).max(columns(self.names[at].0))
    }

    /// Columns that each column of numbers takes, with a space before it.
    pub(super) fn number_widths(&self) -> Vec<usize> {
        let width = |(at, (head, _)): (usize, &Column)| {
            let texts = self.rows.iter().filter_map(|row| row.numbers.get(at));
            let widest = texts.map(|number| columns(&number.text)).max();
            1 + columns(head).max(widest.unwrap_or(0)).max(NUMBER_MIN)
        };
        self.numbers.iter().enumerate().map(width).collect()
    }
}

impl Number {
    fn new(value: f64, text: String) -> Self {
        Self {
            value: Some(value),
            text,
        }
    }

    fn unknown() -> Self {
        Self {
            value: None,
            text: "-".to_owned(),
        }
    }
}

fn count(value: u64) -> Number {
    Number::new(value as f64, value.to_string())
}

/// A rate in at most six characters.
fn rate(value: f64) -> Number {
    let text = match value {
        value if value >= 1e10 => format!("{:.1}G", value / 1e9),
        value if value >= 1e7 => format!("{:.1}M", value / 1e6),
        value if value >= 1e6 => format!("{:.0}k", value / 1e3),
        value if value >= 1e4 => format!("{:.1}k", value / 1e3),
        value if value >= 100.0 || value == 0.0 => format!("{value:.0}"),
        value => format!("{value:.1}"),
    };
    Number::new(value, text)
}

fn megabytes(value: f64) -> Number {
    let text = match value / 1e6 {
        value if value >= 100.0 || value == 0.0 => format!("{value:.0}"),
        value => format!("{value:.2}"),
    };
    Number::new(value, text)
}

fn microseconds(ns: u64) -> Number {
    let text = match ns as f64 / 1e3 {
        us if us >= 100.0 => format!("{us:.0}"),
        us => format!("{us:.1}"),
    };
    Number::new(ns as f64, text)
}
