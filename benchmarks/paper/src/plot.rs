//! A panel of the report as a plot.

use spindle_dds_tools::harness::plot::{self, Stroke};

use super::report::{Panel, Series, Source, System};

/// Draws a panel.
pub(super) fn svg(panel: &Panel) -> String {
    let series = panel.series.iter().enumerate();
    plot::svg(&plot::Panel {
        title: panel.title.clone(),
        x: panel.x,
        y: panel.y,
        series: series.map(|(at, series)| drawn(series, at)).collect(),
    })
}

/// Dashes show the source of a line, and whether it is a baseline.
fn drawn(series: &Series, at: usize) -> plot::Series {
    let is_baseline = series.system == System::Baseline;
    plot::Series {
        name: series.name.clone(),
        stroke: match (series.source, is_baseline) {
            (Source::Real, _) => Stroke::Dotted,
            (_, true) => Stroke::Dashed,
            _ => Stroke::Solid,
        },
        is_grey: is_baseline && at == 0,
        points: series.points.clone(),
    }
}
