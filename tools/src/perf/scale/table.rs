//! The tables.

use std::io::{self, Write};

use super::Outcome;
use super::run::Stage;
use super::summary::{Cell, StageSummary, Summary};
use crate::harness::spread::{Spread, number};

/// Prints the figures of all sizes.
pub(super) fn print(out: &mut impl Write, outcome: &Outcome) -> io::Result<()> {
    writeln!(out, "{}", outcome.describe())?;
    for cell in outcome.cells() {
        let size = cell.size;
        writeln!(
            out,
            "\n{} processes with a writer and a reader on each of {} topics",
            size.participants, size.topics
        )?;
        times(out, cell)?;
        agreement(out, cell)?;
        late(out, cell)?;
        resources(out, cell)?;
        if let Some(ratio) = cell.matched_ratio {
            let (median, range) = (number(ratio.median), ratio.range());
            writeln!(out, "  all matched, ratio of both: {median} {range}")?;
        }
    }
    Ok(())
}

fn times(out: &mut impl Write, cell: &Cell) -> io::Result<()> {
    writeln!(
        out,
        "  {:<8} {:>26} {:>24} {:>24}",
        "", "all matched s", "CPU s until then", "close s"
    )?;
    for one in &cell.contenders {
        writeln!(
            out,
            "  {:<8} {:>26} {:>24} {:>24}",
            one.contender.to_string(),
            with_range(one.matched_s),
            with_range(one.cpu_s),
            with_range(one.close_s),
        )?;
    }
    Ok(())
}

/// What it took until all were matched; nothing of a peer, which has no views.
fn agreement(out: &mut impl Write, cell: &Cell) -> io::Result<()> {
    let counted = cell.contenders.iter().filter(|one| one.views.is_some());
    for (at, one) in counted.enumerate() {
        if at == 0 {
            writeln!(
                out,
                "  {:<8} {:<15} {:>6} {:>16} {:>15} {:>9} {:>9} {:>9} {:>9} {:>15} {:>9}",
                "",
                "until then",
                "views",
                "subgroup epochs",
                "control pushes",
                "KB",
                "packets",
                "KB",
                "rows",
                "subgroup pushes",
                "KB"
            )?;
        }
        let count =
            |counts: Option<Spread>| counts.map_or_else(String::new, |it| it.median.to_string());
        let kb = |bytes: Option<Spread>| {
            let kb = bytes.map(|it| number(it.median / 1e3));
            kb.unwrap_or_default()
        };
        writeln!(
            out,
            "  {:<8} {:<15} {:>6} {:>16} {:>15} {:>9} {:>9} {:>9} {:>9} {:>15} {:>9}",
            one.contender.to_string(),
            "",
            count(one.views),
            count(one.epochs),
            count(one.control_pushes),
            kb(one.control_pushed_bytes),
            count(one.packets),
            kb(one.packet_bytes),
            count(one.rows),
            count(one.subgroup_pushes),
            kb(one.subgroup_pushed_bytes),
        )?;
    }
    Ok(())
}

fn late(out: &mut impl Write, cell: &Cell) -> io::Result<()> {
    for late in cell.contenders.iter().filter_map(|one| one.late.as_ref()) {
        writeln!(
            out,
            "  one more joins: matched after {} s; longest gap in samples of others {} s, before \
             {} s, ratio {}",
            with_range(late.matched_s),
            with_range(late.gap_s),
            with_range(late.gap_before_s),
            with_range(late.gap_ratio),
        )?;
    }
    Ok(())
}

fn resources(out: &mut impl Write, cell: &Cell) -> io::Result<()> {
    writeln!(
        out,
        "  {:<8} {:<26} {:>24} {:>8} {:>13} {:>10} {:>8} {:>12} {:>9} {:>8}",
        "",
        "a process holds",
        "memory (PSS) MiB",
        "added",
        "memory files",
        "anonymous",
        "program",
        "descriptors",
        "mappings",
        "threads"
    )?;
    for (one, held) in stages(&cell.contenders) {
        let mib = |bytes: Spread| number(bytes.median * MIB);
        writeln!(
            out,
            "  {:<8} {:<26} {:>24} {:>8} {:>13} {:>10} {:>8} {:>12} {:>9} {:>8}",
            one.contender.to_string(),
            held.stage.words(),
            with_range(held.pss_bytes.by(MIB)),
            mib(held.added_bytes),
            mib(held.shared_bytes),
            mib(held.anonymous_bytes),
            mib(held.program_bytes),
            held.descriptors.median,
            held.mappings.median,
            held.threads.median,
        )?;
    }
    Ok(())
}

fn stages(contenders: &[Summary]) -> impl Iterator<Item = (&Summary, &StageSummary)> {
    contenders
        .iter()
        .flat_map(|one| one.stages.iter().map(move |held| (one, held)))
}

/// The median, and the range if there is one.
pub(super) fn with_range(spread: Spread) -> String {
    match spread.min == spread.max {
        true => number(spread.median),
        false => format!("{} {}", number(spread.median), spread.range()),
    }
}

impl Stage {
    pub(super) fn words(self) -> &'static str {
        match self {
            Self::Start => "before the middleware",
            Self::Matched => "all matched",
            Self::OneSampleATopic => "one sample on each topic",
            Self::OneSampleAWriter => "one sample of each writer",
            Self::Burst => "10,000 of 10 KB on one",
        }
    }
}

/// A byte in MiB.
pub(super) const MIB: f64 = 1.0 / 1_048_576.0;
