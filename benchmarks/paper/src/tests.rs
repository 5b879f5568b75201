//! The report of a quick figure in virtual time: its raw numbers, and its page.
//! `tests/real_processes.rs` has the tests with real processes.

use clap::Parser;

use crate::options::Options;
use crate::report::{Figure, Report, Subject, Verdict};
use crate::simulated::figures;
use crate::{experiments, page, real};

fn options(line: &str) -> Options {
    Options::parse_from(format!("paper {line}").split_whitespace())
}

fn quick(figure: &[u32]) -> (Report, Vec<String>) {
    let mut options = options("--simulated --quick --out report");
    options.figure = figure.iter().copied().map(Subject::Figure).collect();
    experiments::run(&options).unwrap_or_else(|failure| panic!("{failure}"))
}

/// Runs of a figure, with few digits: the results of the model, and its claims.
#[test]
fn raw_numbers_of_a_quick_figure() {
    let (_, lines) = quick(&[12]);
    let told: Vec<String> = lines
        .iter()
        .map(|line| serde_json::from_str(line).expect("a line is JSON"))
        .filter_map(|line: serde_json::Value| match line["kind"].as_str() {
            Some("run") => Some(format!(
                "{} of {} {}: {:.2} GB/s, {:.0} µs, {:.3} requests a message",
                line["series"].as_str()?,
                line["x"],
                line["source"],
                line["measured"]["gb_per_s"].as_f64()?,
                line["measured"]["latency_mean_us"].as_f64()?,
                line["measured"]["requests"].as_f64()? / line["experiment"]["messages"].as_f64()?,
            )),
            Some("claim") => Some(format!(
                "{} {}: {}",
                line["claim"]["verdict"], line["claim"]["text"], line["claim"]["ours"]
            )),
            _ => None,
        })
        .collect();
    insta::assert_snapshot!(told.join("\n"));
}

#[test]
fn the_same_command_makes_the_same_report() {
    let (report, lines) = quick(&[5, 7]);
    let (again, other) = quick(&[5, 7]);
    assert_eq!((page::page(&report), lines), (page::page(&again), other));
}

#[test]
fn the_page_needs_nothing_from_outside() {
    let (report, _) = quick(&[7, 16]);
    let page = page::page(&report);
    for word in ["<script", "src=", "url(", "@import", "<link", "<img"] {
        assert!(!page.contains(word), "{word}");
    }
    let addresses = page.matches("http").count();
    assert_eq!(
        addresses,
        page.matches("xmlns=\"http://www.w3.org/2000/svg\"").count()
    );
    for name in [
        "baseline",
        "Spindle",
        "GB/s",
        "members",
        "posting a work request",
    ] {
        assert!(page.contains(name), "{name}");
    }
    assert_eq!(page.matches("<svg").count(), page.matches("</svg>").count());
}

/// Each figure has points and verdicts; reasons are given only where a result differs.
#[test]
fn all_figures_are_run_and_judged() {
    let (report, _) = quick(&figures::NUMBERS);
    assert_eq!(report.figures.len(), figures::NUMBERS.len());
    for figure in &report.figures {
        assert_eq!(figure.failures().count(), 0, "{}", figure.subject);
        let panels = figure.parts.iter().flat_map(|part| &part.panels);
        for series in panels.flat_map(|panel| &panel.series) {
            assert!(
                !series.points.is_empty(),
                "{}: {}",
                figure.subject,
                series.name
            );
        }
        // The paper's text has no number for figure 14.
        let claims = |figure: &Figure| {
            let claims = figure.parts.iter().flat_map(|part| &part.claims);
            claims.cloned().collect::<Vec<_>>()
        };
        let told = claims(figure);
        let told = told.iter().any(|claim| claim.verdict != Verdict::NotRun);
        let silent = [7, 14].map(Subject::Figure);
        assert!(
            told || silent.contains(&figure.subject),
            "{}",
            figure.subject
        );
        for claim in claims(figure) {
            let differs = matches!(claim.verdict, Verdict::Shape | Verdict::Differs);
            assert!(differs || claim.why.is_none(), "{}", claim.text);
        }
    }
}

/// Each subject of the paper has runs of real processes, except figure 14, which measures the
/// machine. Runs of curves are limited to the paper's number of messages, and rows of tables to
/// ninety times that: a second or two with this engine.
#[test]
fn all_figures_have_real_runs() {
    for scale in [true, false].map(|quick| real::Scale { quick }) {
        for subject in real::SUBJECTS {
            let plan = real::plan(subject, scale);
            assert_eq!(plan.subject, subject);
            let [curves, rows] = plan.messages();
            let is_empty = curves.is_empty() && rows.is_empty();
            assert!(!is_empty || subject == Subject::Figure(14), "{subject}");
            assert!(curves.iter().all(|each| *each <= 20_000), "{subject}");
            assert!(rows.iter().all(|each| *each <= 1_800_000), "{subject}");
        }
    }
}

#[test]
fn options_are_checked() {
    let check = |line: &str| Options::try_parse_from(format!("paper {line}").split_whitespace());
    let good = check("--simulated --figure 3 --figure 18 --out d").expect("a command");
    assert_eq!(good.figure, [3, 18].map(Subject::Figure));
    for good in [
        "",
        "--quick --figure upcalls",
        "--real --rounds 3",
        "--rounds 3 --figure 14",
    ] {
        assert!(check(good).is_ok(), "{good}");
    }
    for bad in [
        "--simulated --figure 2 --out d",
        "--simulated --figure x --out d",
        "--simulated --rounds 3",
        "--simulated --real",
        "--real --rounds 0",
        "--figure upcall",
    ] {
        assert!(check(bad).is_err(), "{bad}");
    }
}
