//! A scene as a frame of text.

use ratatui::buffer::Buffer;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Style, Stylize};
use ratatui::text::Line;
use ratatui::widgets::{Cell, Row, Table, Widget};
use spindle_dds::monitor::MemoryKind;

use super::blocked::{Blocked, What};
use super::late::Late;
use super::scene::{Figures, Participant, PeerReach, Scene, Sizes, Times, Topic};

/// Columns of the tables.
const WIDTH: u16 = 132;

const NAME: u16 = 28;

/// Columns of the whole scene.
pub(super) fn width(scene: &Scene) -> u16 {
    let sections = sections(scene);
    let lines = sections.iter().filter(|it| it.texts == [WIDTH]);
    let lengths = lines.flat_map(|it| it.rows.iter().flatten().map(|line| line.chars().count()));
    let longest = lengths.max().unwrap_or(0);
    u16::try_from(longest).unwrap_or(u16::MAX).max(WIDTH)
}

/// Lines of the whole scene.
pub(super) fn height(scene: &Scene) -> u16 {
    let sections = sections(scene);
    let heights = sections.iter().map(|section| section.height);
    heights.fold(0, u16::saturating_add)
}

/// A table with its title.
struct Section {
    title: &'static str,
    head: Vec<&'static str>,
    rows: Vec<Vec<String>>,
    /// Widths of the columns of text, which are on the left of the numbers.
    texts: &'static [u16],
    height: u16,
}

pub(super) fn draw(scene: &Scene, area: Rect, buffer: &mut Buffer) {
    let sections = sections(scene);
    let heights = sections.iter().map(|it| Constraint::Length(it.height));
    let areas = Layout::vertical(heights).split(area);
    for (section, area) in sections.iter().zip(areas.iter()) {
        section.draw(*area, buffer);
    }
}

fn sections(scene: &Scene) -> Vec<Section> {
    let unanswered: Vec<Vec<String>> = scene.participants.iter().filter_map(no_answer).collect();
    let mut sections = vec![
        Section::new("", vec![], vec![vec![headline(scene)]], &[WIDTH]),
        Section::new(
            "Participants",
            vec![
                "", "CPU %", "out/s", "MB/s", "in/s", "MB/s", "pushes/s", "acks/s", "nulls/s",
                "wakes/s", "bells/s", "wait %",
            ],
            scene.participants.iter().map(participant).collect(),
            &[NAME],
        ),
        Section::new(
            "Batches (messages) and latencies (us, from source timestamp to delivery)",
            vec![
                "", "send p50", "p99", "recv p50", "p99", "dlvr p50", "p99", "own p50", "p99",
                "oth. p50", "p99",
            ],
            scene.participants.iter().filter_map(batches).collect(),
            &[NAME],
        ),
        Section::new(
            "Memory (MB in use; PSS of the process, mapped in all)",
            vec![
                "", "PSS", "mapped", "state", "headers", "payload", "peers", "notes", "prepared",
                "caches", "queues", "writers",
            ],
            scene.participants.iter().filter_map(memory).collect(),
            &[NAME],
        ),
        Section::new(
            "Topics",
            vec![
                "", "", "writers", "readers", "full", "out/s", "MB/s", "in/s", "MB/s",
            ],
            scene.topics.iter().map(topic).collect(),
            &[NAME, NAME],
        ),
        Section::new(
            "Blocked",
            vec![],
            match scene.blocked.is_empty() {
                true => vec![vec!["none".to_owned()]],
                false => scene.blocked.iter().map(|it| vec![blocked(it)]).collect(),
            },
            &[WIDTH],
        ),
    ];
    let streams: Vec<Vec<String>> = scene.participants.iter().filter_map(streams).collect();
    if !streams.is_empty() {
        let head = vec![
            "", "sends/s", "MB/s", "out/call", "rcvs/s", "MB/s", "in/call", "tcp", "encr.", "rdma",
        ];
        let title = "Streams to other hosts (system calls; samples for each; peers by path)";
        let after_batches = 3;
        sections.insert(after_batches, Section::new(title, head, streams, &[NAME]));
    }
    let late: Vec<Vec<String>> = match scene.late.is_empty() {
        true => vec![vec!["none".to_owned()]],
        false => scene.late.iter().map(|it| vec![late(it)]).collect(),
    };
    sections.push(Section::new("Late", vec![], late, &[WIDTH]));
    if !unanswered.is_empty() {
        sections.push(Section::new("No answer", vec![], unanswered, &[WIDTH]));
    }
    sections
}

impl Section {
    fn new(
        title: &'static str,
        head: Vec<&'static str>,
        rows: Vec<Vec<String>>,
        texts: &'static [u16],
    ) -> Self {
        let above = match title {
            "" => 0,
            _ => 2,
        };
        let lines = above + usize::from(!head.is_empty()) + rows.len();
        Self {
            title,
            head,
            rows,
            texts,
            height: u16::try_from(lines).unwrap_or(u16::MAX),
        }
    }

    fn draw(&self, mut area: Rect, buffer: &mut Buffer) {
        if !self.title.is_empty() {
            let above = Rect {
                height: area.height.min(2),
                ..area
            };
            let title = Line::from(self.title).bold();
            let below = Rect {
                y: above.bottom().saturating_sub(1).max(above.y),
                height: above.height.min(1),
                ..above
            };
            title.render(below, buffer);
            area.y += above.height;
            area.height -= above.height;
        }
        let row = |cells: &[String]| {
            let cells = cells.iter().enumerate().map(|(at, text)| {
                let line = Line::from(text.clone());
                match at < self.texts.len() {
                    true => Cell::from(line.left_aligned()),
                    false => Cell::from(line.right_aligned()),
                }
            });
            Row::new(cells.collect::<Vec<_>>())
        };
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let columns = columns.max(self.head.len());
        let widths = (0..columns).map(|at| match self.texts.get(at) {
            Some(&WIDTH) => Constraint::Fill(1),
            Some(width) => Constraint::Length(*width),
            None => Constraint::Length(8),
        });
        let mut table = Table::new(self.rows.iter().map(|cells| row(cells)), widths);
        if !self.head.is_empty() {
            let head: Vec<String> = self.head.iter().map(|it| (*it).to_owned()).collect();
            table = table.header(row(&head).style(Style::new().dim()));
        }
        Widget::render(table, area, buffer);
    }
}

fn headline(scene: &Scene) -> String {
    let view = match &scene.view {
        Some(view) => format!(
            "view {}, {} members, led by {}",
            view.id,
            view.members.len(),
            view.leader
        ),
        None => match scene.participants.is_empty() {
            true => "no participants".to_owned(),
            false => "no answers".to_owned(),
        },
    };
    let (domain, interval) = (scene.domain, scene.interval_s);
    format!("spindle top   domain {domain}   {view}   last {interval:.1} s")
}

fn participant(one: &Participant) -> Vec<String> {
    let cpu = one
        .cpu_percent
        .map_or_else(String::new, |it| format!("{it:.0}"));
    let mut cells = vec![one.name.clone(), cpu];
    if let Some(figures) = &one.figures {
        let Figures {
            pushes_per_s: pushes,
            ..
        } = figures;
        cells.extend([
            rate(figures.sent_per_s),
            megabytes(figures.sent_bytes_per_s),
            rate(figures.delivered_per_s),
            megabytes(figures.delivered_bytes_per_s),
            rate(pushes.data),
            rate(pushes.acks),
            rate(figures.nulls_per_s),
            rate(figures.wake_ups_per_s),
            rate(figures.rings_per_s),
            format!("{:.0}", figures.room_wait * 100.0),
        ]);
    }
    cells
}

fn no_answer(one: &Participant) -> Option<Vec<String>> {
    let problem = one.problem.as_ref()?;
    Some(vec![format!("{}: {problem}", one.name)])
}

fn batches(one: &Participant) -> Option<Vec<String>> {
    let figures = one.figures.as_ref()?;
    let pair =
        |values: Option<[String; 2]>| values.unwrap_or_else(|| ["-", "-"].map(str::to_owned));
    let sizes = |sizes: &Option<Sizes>| {
        let sizes = sizes.as_ref();
        pair(sizes.map(|it| [it.p50.to_string(), it.p99.to_string()]))
    };
    let times = |times: &Option<Times>| {
        let times = times.as_ref();
        pair(times.map(|it| [it.p50_ns, it.p99_ns].map(microseconds)))
    };
    let mut cells = vec![one.name.clone()];
    let stages = &figures.batches;
    cells.extend(
        [&stages.send, &stages.receive, &stages.delivery]
            .map(sizes)
            .concat(),
    );
    cells.extend(
        [&figures.latency_own, &figures.latency_others]
            .map(times)
            .concat(),
    );
    Some(cells)
}

fn streams(one: &Participant) -> Option<Vec<String>> {
    let figures = one.figures.as_ref()?;
    let streams = figures.streams.as_ref()?;
    let peers = |is: &dyn Fn(&PeerReach) -> bool| {
        let peers = figures.peers.iter().filter(|peer| is(peer));
        peers.count().to_string()
    };
    let known = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), rate);
    Some(vec![
        one.name.clone(),
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

/// The columns of memory that is in use.
const MEMORY: [&[MemoryKind]; 9] = [
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

fn memory(one: &Participant) -> Option<Vec<String>> {
    let told = &one.figures.as_ref()?.memory;
    let used = |kinds: &[MemoryKind]| {
        let of_these = told.iter().filter(|it| kinds.contains(&it.kind));
        of_these.map(|it| it.resident_bytes).sum::<Option<u64>>()
    };
    let known =
        |bytes: Option<u64>| bytes.map_or_else(|| "-".to_owned(), |it| megabytes(it as f64));
    let mapped: u64 = told.iter().map(|it| it.bytes).sum();
    let mut cells = vec![
        one.name.clone(),
        known(one.pss_bytes),
        megabytes(mapped as f64),
    ];
    cells.extend(MEMORY.map(used).map(known));
    Some(cells)
}

fn topic(one: &Topic) -> Vec<String> {
    vec![
        one.topic.clone(),
        one.participant.clone(),
        one.writers.to_string(),
        one.readers.to_string(),
        one.full_readers.to_string(),
        rate(one.out_per_s),
        megabytes(one.out_bytes_per_s),
        rate(one.in_per_s),
        megabytes(one.in_bytes_per_s),
    ]
}

fn blocked(one: &Blocked) -> String {
    let (participant, by, why) = (&one.participant, one.by.join(", "), &one.why);
    let topics = match one.topics.is_empty() {
        true => format!("subgroup {}", one.subgroup),
        false => one.topics.join(", "),
    };
    let what = match one.what {
        What::Room => "waits for room",
        What::Delivery => "waits to deliver",
    };
    format!("{participant} {what} ({topics}): {by} {why}")
}

fn late(one: &Late) -> String {
    let (member, why, seen_by) = (&one.member, &one.why, one.seen_by.join(", "));
    match one.topics.is_empty() {
        true => format!("{member}: {why}; seen by {seen_by}"),
        false => format!(
            "{member}: {why} ({}); seen by {seen_by}",
            one.topics.join(", ")
        ),
    }
}

/// A rate in at most five digits.
fn rate(value: f64) -> String {
    match value {
        value if value >= 1e7 => format!("{:.1}M", value / 1e6),
        value if value >= 1e4 => format!("{:.1}k", value / 1e3),
        value if value >= 100.0 || value == 0.0 => format!("{value:.0}"),
        value => format!("{value:.1}"),
    }
}

fn megabytes(value: f64) -> String {
    match value / 1e6 {
        value if value >= 100.0 || value == 0.0 => format!("{value:.0}"),
        value => format!("{value:.2}"),
    }
}

fn microseconds(ns: u64) -> String {
    match ns as f64 / 1e3 {
        us if us >= 100.0 => format!("{us:.0}"),
        us => format!("{us:.1}"),
    }
}
