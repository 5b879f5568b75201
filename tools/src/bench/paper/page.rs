//! The report as one page of HTML: no network, no script.

use std::fmt::Write;

use super::plot::{escape, number, svg};
use super::report::{Claim, Figure, Report, Verdict};

const STYLE: &str = "
body{font:15px/1.5 sans-serif;color:#1b1b1b;background:#fff;max-width:1180px;margin:2em auto;\
padding:0 1.2em}
h1{font-size:1.6em;margin-bottom:.2em}h2{margin-top:2.2em;border-top:1px solid #ddd;padding-top:.8em}
table{border-collapse:collapse;margin:.8em 0;width:100%}
th,td{text-align:left;vertical-align:top;padding:.3em .6em;border-bottom:1px solid #e4e4e4;\
font-size:.92em}
th{background:#f5f5f5}td.v{white-space:nowrap;font-weight:bold}
.holds{color:#00684a}.shape{color:#8a6100}.differs{color:#b3300e}.untold{color:#6b6b6b}
.panels{display:flex;flex-wrap:wrap;gap:10px}.panels svg{max-width:100%;height:auto}
.why{color:#444;font-size:.95em}code{background:#f3f3f3;padding:0 .25em}
.note{max-width:60em}
";

/// The whole page.
pub(super) fn page(report: &Report) -> String {
    let mut out = String::new();
    let _ = write!(
        out,
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\">\
         <title>spindle bench</title><style>{STYLE}</style></head><body>\
         <h1>The Spindle paper's experiments, run again</h1>\
         <p class=\"note\"><code>{}</code>. Simulated runs are in virtual time: the engines are the \
         product's, the network and the processors take the time that the constants below say. \
         So they are the same on every machine{}. The paper's curves are images, so only what its \
         text says is compared; nothing is read off them.</p>",
        escape(&report.command),
        if report.quick {
            ", but <b>quick</b>: few points, few messages"
        } else {
            ""
        }
    );
    overview(report, &mut out);
    for figure in &report.figures {
        draw(figure, &mut out);
    }
    constants(report, &mut out);
    out.push_str("</body></html>\n");
    out
}

fn overview(report: &Report, out: &mut String) {
    out.push_str("<table><tr><th>figure</th><th></th>");
    let verdicts = [
        Verdict::Holds,
        Verdict::Shape,
        Verdict::Differs,
        Verdict::Untold,
    ];
    for verdict in verdicts {
        let _ = write!(out, "<th>{}</th>", verdict.word());
    }
    out.push_str("</tr>");
    for figure in &report.figures {
        let _ = write!(
            out,
            "<tr><td><a href=\"#figure-{0}\">{0}</a></td><td>{1}</td>",
            figure.number,
            escape(&figure.title)
        );
        for verdict in verdicts {
            let claims = figure.claims.iter();
            let count = claims.filter(|claim| claim.verdict == verdict).count();
            let _ = match count {
                0 => write!(out, "<td></td>"),
                _ => write!(out, "<td class=\"v {}\">{count}</td>", class(verdict)),
            };
        }
        out.push_str("</tr>");
    }
    out.push_str(
        "</table><p class=\"note\">A claim <b>holds</b> if our number is within a fifth of the \
         paper's, or the statement is true of our runs. Its <b>shape holds</b> if the direction is \
         the paper's and the number is not. Else it <b>differs</b>. The reasons given then were \
         written after full runs, from their batches and waiting times: readings, that no \
         experiment has tested, and of another run perhaps not the cause.</p>",
    );
}

fn draw(figure: &Figure, out: &mut String) {
    let _ = write!(
        out,
        "<h2 id=\"figure-{0}\">Figure {0}: {1}</h2>",
        figure.number,
        escape(&figure.title)
    );
    for note in &figure.notes {
        let _ = write!(out, "<p class=\"note\">{}</p>", escape(note));
    }
    out.push_str("<div class=\"panels\">");
    for panel in &figure.panels {
        out.push_str(&svg(panel));
    }
    out.push_str("</div>");
    if figure.claims.is_empty() {
        return;
    }
    out.push_str(
        "<table><tr><th>the paper says</th><th>where</th><th>paper</th><th>ours</th><th></th></tr>",
    );
    for claim in &figure.claims {
        row(claim, out);
    }
    out.push_str("</table>");
}

fn row(claim: &Claim, out: &mut String) {
    let why = claim.why.map_or_else(String::new, |why| {
        format!("<div class=\"why\">{}</div>", escape(why))
    });
    let _ = write!(
        out,
        "<tr><td>{}{why}</td><td>{}</td><td>{}</td><td>{}</td><td class=\"v {}\">{}</td></tr>",
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
        Verdict::Untold => "untold",
    }
}

fn constants(report: &Report, out: &mut String) {
    out.push_str(
        "<h2>Constants of the simulated runs</h2><p class=\"note\">What sending costs, the halves of \
         a message's cost and what a copy costs were settled after trial runs, and so was how the \
         paper's lock is modelled; the others before. They are not all independent of what is \
         compared: see the notes of the figures.</p><table><tr><th>what</th><th>how much</th>\
         <th>where from</th></tr>",
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
