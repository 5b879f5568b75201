//! The report as one page of HTML: no network, no script.

use std::fmt::Write;

use super::plot::svg;
use super::report::{Claim, Figure, Machine, Part, Report, Source, Table, Verdict};
use spindle_dds_tools::harness::plot::{escape, number};
use spindle_dds_tools::harness::spread::Spread;

const STYLE: &str = "
body{font:15px/1.5 sans-serif;color:#1b1b1b;background:#fff;max-width:1180px;margin:2em auto;\
padding:0 1.2em}
h3{margin:1.2em 0 .4em}h4{margin:1.2em 0 .2em}
h1{font-size:1.6em;margin-bottom:.2em}h2{margin-top:2.2em;border-top:1px solid #ddd;padding-top:.8em}
table{border-collapse:collapse;margin:.8em 0;width:100%}
th,td{text-align:left;vertical-align:top;padding:.3em .6em;border-bottom:1px solid #e4e4e4;\
font-size:.92em}
th{background:#f5f5f5}td.name{white-space:nowrap}td.v{white-space:nowrap;font-weight:bold}
.holds{color:#00684a}.shape{color:#8a6100}.differs{color:#b3300e}.not-run{color:#6b6b6b}
.panels{display:flex;flex-wrap:wrap;gap:10px;align-items:flex-start}.panels svg{max-width:100%;height:auto}
.why{color:#444;font-size:.95em}code{background:#f3f3f3;padding:0 .25em}
.note{max-width:60em}
";

/// The whole page.
pub(super) fn page(report: &Report) -> String {
    let mut out = String::new();
    let _ = write!(
        out,
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>spindle \
         bench</title><style>{STYLE}</style></head><body><h1>The Spindle paper's experiments, run \
         again</h1><p class=\"note\"><code>{}</code>{}. The paper's curves are images, so only the \
         statements of its text are compared.</p>",
        escape(&report.command),
        if report.quick {
            ", with <b>quick</b>: few points, few messages"
        } else {
            ""
        }
    );
    if !report.constants.is_empty() {
        out.push_str(
            "<p class=\"note\"><b>Simulated</b> runs are in virtual time: the engines are those of \
             the product, and the network and the processors take the times of the constants \
             below. So the results are the same on every machine.</p>",
        );
    }
    if let Some(machine) = &report.machine {
        describe(machine, &mut out);
    }
    overview(report, &mut out);
    for figure in &report.figures {
        draw(figure, &mut out);
    }
    if !report.constants.is_empty() {
        constants(report, &mut out);
    }
    out.push_str("</body></html>\n");
    out
}

fn describe(machine: &Machine, out: &mut String) {
    let [before, after] = &machine.load_average;
    let foreign = machine.foreign.map_or_else(String::new, |foreign| {
        let [median, most] = [foreign.median, foreign.max].map(|part| part * 100.0);
        format!(
            " Other processes used {median:.0} % of the processors during a run (median; at most \
             {most:.0} %)."
        )
    });
    let sleeper = machine.kept_beside_a_sleeper.map_or_else(String::new, |kept| {
        let Spread { median, min, max } = kept;
        format!(
            " Beside a thread that sleeps for 100 µs at a time, threads that only count, one for \
             each core, keep {median:.2} [{min:.2} .. {max:.2}] of their rate: the rest is the \
             cost of its timer, and of the timer of a delayed sender that sleeps."
        )
    });
    let rounds = match machine.rounds {
        1 => "each run once".to_owned(),
        rounds => format!(
            "medians of {rounds} rounds, in which the runs of a figure take turns; ratios are \
             medians of the ratios of each round"
        ),
    };
    let rows = match machine.rows {
        [0, _] => String::new(),
        [kept, unlike] => format!(
            " Each row of a table is run between two runs of the first row, and is compared with \
             them. It is run again, a limited number of times, if they differ by more than a \
             tenth, or if the time of a cache line between processors changed: of {kept} rows, \
             {unlike} were kept in spite of that."
        ),
    };
    let _ = write!(
        out,
        "<p class=\"note\"><b>Real</b> runs (dotted lines) are processes of this machine over \
         shared memory, each a command of <code>spindle perf throughput</code>, listed in \
         runs.jsonl; {rounds}.{rows} The machine: {}, so {} cores for 2 to 4 members and their \
         polling threads. Load average before: {before}; after: {after}.{foreign}{sleeper} The \
         paper had a machine of 16 cores for each member: its numbers cannot be compared here, and \
         its trends only where so few processors can show them.</p>",
        escape(&machine.description),
        machine.cores,
    );
}

fn sources(report: &Report) -> Vec<Source> {
    let parts = || report.figures.iter().flat_map(|figure| &figure.parts);
    let all = [Source::Simulated, Source::Real].into_iter();
    all.filter(|source| parts().any(|part| part.source == *source))
        .collect()
}

fn overview(report: &Report, out: &mut String) {
    let sources = sources(report);
    out.push_str("<table><tr><th></th><th></th>");
    for source in &sources {
        for verdict in Verdict::ALL {
            let _ = write!(out, "<th>{}: {}</th>", source.word(), verdict.word());
        }
    }
    out.push_str("<th></th></tr>");
    for figure in &report.figures {
        let _ = write!(
            out,
            "<tr><td class=\"name\"><a href=\"#figure-{}\">{}</a></td><td>{}</td>",
            figure.subject.id(),
            figure.subject,
            escape(&figure.title)
        );
        for (source, verdict) in sources
            .iter()
            .flat_map(|source| Verdict::ALL.map(|it| (source, it)))
        {
            let _ = match figure.count(*source, verdict) {
                0 => write!(out, "<td></td>"),
                count => write!(out, "<td class=\"v {}\">{count}</td>", class(verdict)),
            };
        }
        let _ = match figure.failures().count() {
            0 => write!(out, "<td></td></tr>"),
            count => write!(out, "<td class=\"v differs\">{count} failed</td></tr>"),
        };
    }
    out.push_str(
        "</table><p class=\"note\">A claim <b>holds</b> if our number is within a fifth of the \
         paper's, or if the statement is true of our runs. Its <b>shape holds</b> if the trend \
         agrees with the paper's and the number does not. Otherwise it <b>differs</b>. The reasons \
         were written after full runs, from their batches and waiting times. They are \
         interpretations that no experiment has tested, and may not apply to another run.</p>",
    );
}

fn draw(figure: &Figure, out: &mut String) {
    let _ = write!(
        out,
        "<h2 id=\"figure-{}\">{}: {}</h2>",
        figure.subject.id(),
        figure.subject,
        escape(&figure.title)
    );
    for part in &figure.parts {
        draw_part(part, out);
    }
}

fn draw_part(part: &Part, out: &mut String) {
    let _ = write!(
        out,
        "<h3>{}</h3>",
        match part.source {
            Source::Simulated => "Simulated",
            Source::Real => "Real processes",
        }
    );
    for failure in &part.failures {
        let _ = write!(
            out,
            "<p class=\"differs\">A run failed: {}</p>",
            escape(failure)
        );
    }
    for note in &part.notes {
        let _ = write!(out, "<p class=\"note\">{}</p>", escape(note));
    }
    out.push_str("<div class=\"panels\">");
    for panel in &part.panels {
        out.push_str(&svg(panel));
    }
    out.push_str("</div>");
    for table in &part.tables {
        draw_table(table, out);
    }
    if part.claims.is_empty() {
        return;
    }
    out.push_str(
        "<table><tr><th>the paper says</th><th>where</th><th>paper</th><th>ours</th><th></th></tr>",
    );
    for claim in &part.claims {
        row(claim, out);
    }
    out.push_str("</table>");
}

fn draw_table(table: &Table, out: &mut String) {
    let _ = write!(out, "<h4>{}</h4><table><tr>", escape(&table.title));
    for word in &table.head {
        let _ = write!(out, "<th>{}</th>", escape(word));
    }
    out.push_str("</tr>");
    for row in &table.rows {
        out.push_str("<tr>");
        for cell in row {
            let _ = write!(out, "<td>{}</td>", escape(cell));
        }
        out.push_str("</tr>");
    }
    out.push_str("</table>");
}

fn row(claim: &Claim, out: &mut String) {
    let why = claim.why.map_or_else(String::new, |why| {
        format!("<div class=\"why\">{}</div>", escape(why))
    });
    let _ = write!(
        out,
        "<tr><td>{}{why}</td><td class=\"name\">{}</td><td>{}</td><td>{}</td>\
         <td class=\"v {}\">{}</td></tr>",
        escape(claim.text),
        escape(claim.section),
        escape(claim.paper),
        escape(&claim.ours),
        class(claim.verdict),
        claim.verdict.word()
    );
}

fn class(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Holds => "holds",
        Verdict::Shape => "shape",
        Verdict::Differs => "differs",
        Verdict::NotRun => "not-run",
    }
}

fn constants(report: &Report, out: &mut String) {
    out.push_str(
        "<h2>Constants of the simulated runs</h2><p class=\"note\">The cost of sending, the halves \
         of a message's cost, the cost of a copy, and the model of the paper's lock were chosen \
         after trial runs, the other constants before. Some are not independent of the claims: see \
         the notes of the figures.</p><table><tr><th>cost</th><th>value</th><th>source</th></tr>",
    );
    for constant in &report.constants {
        let _ = write!(
            out,
            "<tr><td>{}</td><td>{} {}</td><td>{}</td></tr>",
            escape(constant.name),
            number(constant.value as f64),
            constant.unit,
            escape(constant.source)
        );
    }
    out.push_str("</table>");
}
