//! The plot of a run: one panel for each thing that a process holds, one line for each place in the
//! group, and a mark for each fault.

use std::fmt::Write;

use super::Soak;
use super::fault::Fault;
use super::messages::State;

/// The plot as SVG.
pub(super) fn draw(soak: &Soak<'_>) -> String {
    let ends = soak.processes.iter().filter_map(|it| it.history.last());
    let end_s = ends.map(|(at, _)| soak.seconds(*at)).fold(1.0, f64::max);
    let mut svg = String::new();
    let height = TOP + PANELS.len() as f64 * PANEL_PITCH + LEGEND;
    // Writing to a string does not fail.
    let _ = writeln!(
        svg,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" \
         font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n\
         <text x=\"{LEFT}\" y=\"18\">{} participants, {} topics, a fault every {} s</text>",
        soak.options.processes, soak.options.topics, soak.options.fault_every
    );
    for (number, panel) in PANELS.iter().enumerate() {
        let lines = lines(soak, panel.value, end_s);
        draw_panel(
            &mut svg,
            TOP + number as f64 * PANEL_PITCH,
            panel,
            &lines,
            end_s,
        );
    }
    let bottom = TOP + PANELS.len() as f64 * PANEL_PITCH;
    draw_faults(&mut svg, soak, end_s, bottom);
    svg.push_str("</svg>\n");
    svg
}

/// Something that is plotted.
struct Panel {
    title: &'static str,
    value: fn(&State) -> f64,
}

const PANELS: [Panel; 4] = [
    Panel {
        title: "memory of its own, MiB",
        value: |it| it.memory_kib as f64 / 1024.0,
    },
    Panel {
        title: "descriptors",
        value: |it| it.descriptors as f64,
    },
    Panel {
        title: "threads",
        value: |it| it.threads as f64,
    },
    Panel {
        title: "participants in its view",
        value: |it| f64::from(it.members),
    },
];

/// For each place in the group the values over time, in seconds: the largest one of each stretch.
fn lines(soak: &Soak<'_>, value: fn(&State) -> f64, end_s: f64) -> Vec<Vec<(f64, f64)>> {
    let line = |history: &[(u64, State)]| {
        let mut line: Vec<(f64, f64)> = Vec::new();
        for (at_ns, state) in history {
            let stretch = (soak.seconds(*at_ns) / end_s * STRETCHES).floor();
            let at_s = stretch * end_s / STRETCHES;
            match line.last_mut() {
                Some((last_s, largest)) if *last_s == at_s => *largest = largest.max(value(state)),
                _ => line.push((at_s, value(state))),
            }
        }
        line
    };
    soak.processes.iter().map(|it| line(&it.history)).collect()
}

fn draw_panel(svg: &mut String, top: f64, panel: &Panel, lines: &[Vec<(f64, f64)>], end_s: f64) {
    let values = lines.iter().flatten().map(|(_, value)| *value);
    let max = values.fold(1.0, f64::max) * 1.1;
    let (right, bottom) = (LEFT + PLOT_WIDTH, top + PANEL_HEIGHT);
    let _ = writeln!(
        svg,
        "<text x=\"{LEFT}\" y=\"{:.0}\">{}</text>\n\
         <path d=\"M{LEFT} {top}V{bottom}H{right}\" fill=\"none\" stroke=\"black\"/>\n\
         <text x=\"{:.0}\" y=\"{bottom}\" text-anchor=\"end\">0</text>\n\
         <text x=\"{:.0}\" y=\"{:.0}\" text-anchor=\"end\">{max:.0}</text>\n\
         <text x=\"{right}\" y=\"{:.0}\" text-anchor=\"end\">{end_s:.0} s</text>",
        top - 6.0,
        panel.title,
        LEFT - 4.0,
        LEFT - 4.0,
        top + 10.0,
        bottom + 14.0,
    );
    for (number, line) in lines.iter().enumerate() {
        let hue = 360 * number / lines.len().max(1);
        let points = line.iter().map(|(at_s, value)| {
            let x = LEFT + at_s / end_s * PLOT_WIDTH;
            let y = bottom - value / max * PANEL_HEIGHT;
            format!("{x:.0},{y:.1}")
        });
        let points: Vec<String> = points.collect();
        let _ = writeln!(
            svg,
            "<polyline fill=\"none\" stroke=\"hsl({hue},70%,45%)\" points=\"{}\"/>",
            points.join(" ")
        );
    }
}

/// A mark for each fault, a row for each kind.
fn draw_faults(svg: &mut String, soak: &Soak<'_>, end_s: f64, top: f64) {
    for (row, fault) in Fault::ALL.iter().enumerate() {
        let y = top + 16.0 * row as f64;
        let _ = write!(
            svg,
            "<text x=\"{:.0}\" y=\"{:.0}\" text-anchor=\"end\" font-size=\"10\">{}</text>\n\
             <path stroke=\"hsl({},80%,40%)\" stroke-width=\"2\" d=\"",
            LEFT - 4.0,
            y + 8.0,
            fault.name(),
            360 * row / Fault::ALL.len()
        );
        for (at_ns, ..) in soak.faults.iter().filter(|it| it.1 == *fault) {
            let x = LEFT + soak.seconds(*at_ns) / end_s * PLOT_WIDTH;
            let _ = write!(svg, "M{x:.0} {y:.0}v8");
        }
        svg.push_str("\"/>\n");
    }
}

const WIDTH: f64 = 1000.0;
const LEFT: f64 = 140.0;
const PLOT_WIDTH: f64 = 840.0;
const TOP: f64 = 48.0;
const PANEL_HEIGHT: f64 = 130.0;
const PANEL_PITCH: f64 = 176.0;
const LEGEND: f64 = 120.0;
/// Stretches of time with one point each.
const STRETCHES: f64 = 160.0;
