//! The figures as one page of HTML, with plots of the curve: no network, no script.

use std::fmt::Write;

use super::summary::{Cell, Summary};
use super::table::{MIB, with_range};
use super::{Outcome, Size};
use crate::harness::plot::{Axis, Panel, Series, Stroke, escape, svg};
use crate::harness::spread::{Spread, number};

const STYLE: &str = "
body{font:15px/1.5 sans-serif;color:#1b1b1b;background:#fff;max-width:1180px;margin:2em auto;\
padding:0 1.2em}
table{border-collapse:collapse;margin:.8em 0}
th,td{text-align:right;padding:.3em .6em;border-bottom:1px solid #e4e4e4;font-size:.92em}
th{background:#f5f5f5}.panels{display:flex;flex-wrap:wrap;gap:10px}
.panels svg{max-width:100%;height:auto}code{background:#f3f3f3;padding:0 .25em}
";

/// The whole page.
pub(super) fn page(outcome: &Outcome, command: &str) -> String {
    let mut out = String::new();
    // Writing to a string does not fail.
    let _ = write!(
        out,
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>spindle perf scale\
         </title><style>{STYLE}</style></head><body><h1>Many participants and topics</h1>\
         <p><code>{}</code></p><p>{}</p>",
        escape(command),
        escape(&outcome.describe())
    );
    if !outcome.curve.is_empty() {
        out.push_str("<div class=\"panels\">");
        for panel in panels(outcome) {
            out.push_str(&svg(&panel));
        }
        out.push_str("</div>");
    }
    table(outcome, &mut out);
    out.push_str("</body></html>\n");
    out
}

const HEAD: [&str; 17] = [
    "processes x topics",
    "",
    "all matched, s",
    "CPU until then, s",
    "close, s",
    "views",
    "subgroup epochs",
    "rows",
    "",
    "PSS of a process, MiB",
    "added",
    "memory files",
    "anonymous",
    "program",
    "descriptors",
    "mappings",
    "threads",
];

fn table(outcome: &Outcome, out: &mut String) {
    out.push_str("<table><tr>");
    for head in HEAD {
        let _ = write!(out, "<th>{head}</th>");
    }
    out.push_str("</tr>");
    for cell in outcome.cells() {
        for one in &cell.contenders {
            rows(cell.size, one, out);
        }
    }
    out.push_str("</table>");
}

/// A row for each stage.
fn rows(size: Size, one: &Summary, out: &mut String) {
    for held in &one.stages {
        let mib = |bytes: Spread| number(bytes.median * MIB);
        let count =
            |counts: Option<Spread>| counts.map_or_else(String::new, |it| it.median.to_string());
        let columns = [
            size.to_string(),
            one.contender.to_string(),
            with_range(one.matched_s),
            with_range(one.cpu_s),
            with_range(one.close_s),
            count(one.views),
            count(one.epochs),
            count(one.rows),
            held.stage.words().to_owned(),
            with_range(held.pss_bytes.by(MIB)),
            mib(held.added_bytes),
            mib(held.shared_bytes),
            mib(held.anonymous_bytes),
            mib(held.program_bytes),
            held.descriptors.median.to_string(),
            held.mappings.median.to_string(),
            held.threads.median.to_string(),
        ];
        out.push_str("<tr>");
        for column in columns {
            let _ = write!(out, "<td>{}</td>", escape(&column));
        }
        out.push_str("</tr>");
    }
}

/// A figure that is plotted: its axis, and its value.
type Measure = (&'static str, fn(&Summary) -> f64);

const MEASURES: [Measure; 5] = [
    ("s until all are matched", |one| one.matched_s.median),
    ("CPU s until then, all processes", |one| one.cpu_s.median),
    ("s to close", |one| one.close_s.median),
    ("MiB a process (PSS), all matched", |one| {
        one.matched().map_or(0.0, |it| it.pss_bytes.median * MIB)
    }),
    ("descriptors a process", |one| {
        one.matched().map_or(0.0, |it| it.descriptors.median)
    }),
];

/// Each figure over the number of participants, and over the number of topics.
fn panels(outcome: &Outcome) -> Vec<Panel> {
    let whole = outcome.cell.size;
    let over_participants = outcome
        .curve
        .iter()
        .filter(|cell| cell.size.topics == whole.topics);
    let over_topics = outcome
        .curve
        .iter()
        .filter(|cell| cell.size.participants == whole.participants);
    let over_participants: Vec<_> = over_participants
        .map(|cell| (cell.size.participants, cell))
        .collect();
    let over_topics: Vec<_> = over_topics.map(|cell| (cell.size.topics, cell)).collect();
    let [topics, participants] = [whole.topics, whole.participants];
    let mut panels = Vec::new();
    for measure in MEASURES {
        let title = format!("{topics} topics");
        panels.push(panel(title, "processes", &over_participants, measure));
        let title = format!("{participants} processes");
        panels.push(panel(title, "topics", &over_topics, measure));
    }
    panels
}

fn panel(title: String, x: &'static str, cells: &[(u32, &Cell)], (label, read): Measure) -> Panel {
    let contenders = cells.first().map_or(0, |(_, cell)| cell.contenders.len());
    let series = (0..contenders).map(|at| {
        let of_one = cells.iter().filter_map(|(x, cell)| {
            let one = cell.contenders.get(at)?;
            Some((one.contender, (f64::from(*x), read(one))))
        });
        let (names, points): (Vec<_>, Vec<_>) = of_one.unzip();
        Series {
            name: names.first().map_or_else(String::new, ToString::to_string),
            stroke: Stroke::Solid,
            is_grey: false,
            points,
        }
    });
    Panel {
        title,
        x: Axis {
            label: x,
            log: true,
        },
        y: Axis { label, log: false },
        series: series.collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::perf::scale::summary::tests::cell;

    #[test]
    fn the_curve_is_plotted_over_participants_and_over_topics() {
        let curve = [(1, 8), (2, 8), (4, 1), (4, 4), (4, 8)];
        let outcome = Outcome {
            machine: "a machine".to_owned(),
            peer: Some("Cyclone DDS <1>".to_owned()),
            sample_bytes: 64,
            rounds: 3,
            burst: false,
            cell: cell(4, 8),
            curve: curve
                .map(|(participants, topics)| cell(participants, topics))
                .to_vec(),
        };
        let panels = panels(&outcome);
        assert_eq!(panels.len(), 2 * MEASURES.len());
        let xs = |panel: &Panel| -> Vec<f64> {
            let points = panel.series[1].points.iter();
            points.map(|(x, _)| *x).collect()
        };
        assert_eq!(xs(&panels[0]), [1.0, 2.0, 4.0]);
        assert_eq!(xs(&panels[1]), [1.0, 4.0, 8.0]);
        assert_eq!(panels[1].series[0].points[2], (8.0, 2.0));
        let names = panels[0].series.iter().map(|it| &*it.name);
        assert_eq!(names.collect::<Vec<_>>(), ["spindle", "cyclone"]);

        let page = page(&outcome, "spindle perf scale");
        assert_eq!(page.matches("<svg").count(), 2 * MEASURES.len());
        assert!(page.contains("Cyclone DDS &lt;1&gt;"), "{page}");
        for word in ["<script", "src=", "url(", "@import", "<link", "<img"] {
            assert!(!page.contains(word), "{word}");
        }
    }
}
