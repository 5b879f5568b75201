//! The table.

use std::io::{self, Write};

use super::cell::Cell;
use super::contender::LatencyKind;
use super::options::BenchOptions;
use super::tally::{Row, Tally};
use crate::harness::spread::{Spread, number};

/// Prints all cells, a block each.
pub(super) fn print(
    out: &mut impl Write,
    tallies: &[Tally],
    options: &BenchOptions,
    rounds: usize,
) -> io::Result<()> {
    writeln!(out, "\n{}", crate::harness::load::machine())?;
    writeln!(
        out,
        "medians of {rounds} rounds of {} s in turns, [min .. max]; the ratio is spindle / other",
        options.seconds
    )?;
    writeln!(
        out,
        "CPU: processor time of all processes per received sample; foreign: share of the \
         processors used by anything else, noisy above {NOISY_PERCENT} % in a round; line: time of a \
         cache line from one processor to another around each run, and if it changes in a round, \
         the round is run again (as often as there are rounds)"
    )?;
    for tally in tallies {
        let rows = tally.rows();
        if rows.is_empty() {
            continue;
        }
        head(out, &tally.cell)?;
        for row in rows {
            line(out, &tally.cell, &row)?;
        }
    }
    Ok(())
}

fn head(out: &mut impl Write, cell: &Cell) -> io::Result<()> {
    let (value, second) = match cell.is_time() {
        true => ("p50 us", "p99 us"),
        false => ("k samples/s", "MB/s"),
    };
    writeln!(out, "\n{cell}")?;
    writeln!(
        out,
        "  {:<13} {value:>11} {:>23} {second:>9} {:>7} {:>17} {:>10} {:>12} {:>12} {:>7}",
        "", "", "ratio", "", "CPU us", "foreign %", "line ns", "lost"
    )
}

fn line(out: &mut impl Write, cell: &Cell, row: &Row) -> io::Result<()> {
    let Some(value) = row.value else {
        let error = row.error.as_deref().unwrap_or("no figure");
        return writeln!(out, "  {:<13} {error}", row.contender);
    };
    let value = value.by(1e-3);
    let second = match cell.is_time() {
        true => row.p99_ns.map_or(0.0, |p99| p99.median / 1e3),
        false => value.median * cell.size as f64 / 1e3,
    };
    let ratio = row.ratio.map(|ratio| (number(ratio.median), ratio.range()));
    let (ratio, ratio_range) = ratio.unwrap_or_default();
    let foreign = row.foreign.map(|foreign| foreign.by(1e2));
    write!(
        out,
        "  {:<13} {:>11} {:>23} {:>9} {ratio:>7} {ratio_range:>17} {:>10} {:>12} {:>12} {:>7}",
        row.contender,
        number(value.median),
        value.range(),
        number(second),
        row.cpu_us_per_sample
            .map_or_else(String::new, |cpu| number(cpu.median)),
        foreign.map_or_else(String::new, whole),
        row.line_ns.map_or_else(String::new, whole),
        row.lost,
    )?;
    if row.latency == Some(LatencyKind::HalfRoundTrip) {
        write!(out, "  half a round trip")?;
    }
    if foreign.is_some_and(|foreign| foreign.max > NOISY_PERCENT) {
        write!(out, "  noisy")?;
    }
    if row.uneven > 0 {
        write!(out, "  {} rounds uneven", row.uneven)?;
    }
    if let Some(error) = &row.error {
        write!(out, "  after {} rounds: {error}", row.rounds)?;
    }
    writeln!(out)
}

fn whole(spread: Spread) -> String {
    format!("{:.0} .. {:.0}", spread.min, spread.max)
}

/// Foreign load above this is marked.
const NOISY_PERCENT: f64 = 5.0;
