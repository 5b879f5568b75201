//! A panel as SVG: axes with units, lines with markers, a legend. Static; no script.

use std::fmt::Write;

use serde::Serialize;

const WIDTH: f64 = 560.0;
const LEFT: f64 = 62.0;
const RIGHT: f64 = 14.0;
const TOP: f64 = 30.0;
const PLOT_HEIGHT: f64 = 250.0;
const BELOW: f64 = 44.0;
const LEGEND_ROW: f64 = 17.0;

/// Colours that are distinct for colour-blind readers too (Okabe and Ito).
const COLOURS: [&str; 7] = [
    "#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#8A7500",
];
const GREY: &str = "#6b6b6b";

/// A plot.
#[derive(Debug, Clone, PartialEq)]
pub struct Panel {
    /// What it shows.
    pub title: String,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// Its lines.
    pub series: Vec<Series>,
}

/// An axis: its quantity and unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Axis {
    /// Quantity and unit.
    pub label: &'static str,
    /// Whether it is logarithmic.
    pub log: bool,
}

/// A line of a plot.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// Its name in the legend.
    pub name: String,
    /// How it is drawn.
    pub stroke: Stroke,
    /// Whether it has no colour: what others are compared with.
    pub is_grey: bool,
    /// Its points from left to right.
    pub points: Vec<(f64, f64)>,
}

/// How a line is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stroke {
    /// Without gaps.
    Solid,
    /// Of dashes.
    Dashed,
    /// Of dots.
    Dotted,
}

/// Draws a panel.
pub fn svg(panel: &Panel) -> String {
    if panel.series.iter().all(|series| series.points.is_empty()) {
        let title = escape(&panel.title);
        return format!("<p class=\"note\"><b>{title}</b>: there is no run to plot.</p>");
    }
    let scales = Scales::of(panel);
    let rows = panel.series.len().div_ceil(2);
    let height = TOP + PLOT_HEIGHT + BELOW + rows as f64 * LEGEND_ROW + 6.0;
    let mut out = String::new();
    let _ = write!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" \
         width=\"{WIDTH}\" height=\"{height}\" font-family=\"sans-serif\" font-size=\"12\" \
         role=\"img\"><rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\
         <text x=\"{LEFT}\" y=\"18\" font-size=\"13\" font-weight=\"bold\">{}</text>",
        escape(&panel.title)
    );
    scales.draw(panel, &mut out);
    for (at, series) in panel.series.iter().enumerate() {
        let over = panel.series.len() - 1 - at;
        draw_series(series, (at, over), &scales, &mut out);
        draw_legend(series, at, &mut out);
    }
    out.push_str("</svg>");
    out
}

fn colour(series: &Series, at: usize) -> &'static str {
    match series.is_grey {
        true => GREY,
        false => COLOURS[at % COLOURS.len()],
    }
}

fn dashes(series: &Series) -> &'static str {
    match series.stroke {
        Stroke::Solid => "none",
        Stroke::Dashed => "6 4",
        Stroke::Dotted => "2 3",
    }
}

fn marker(at: usize, x: f64, y: f64, colour: &str) -> String {
    match at % 3 {
        0 => format!("<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3.2\" fill=\"{colour}\"/>"),
        1 => format!(
            "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"6\" height=\"6\" fill=\"{colour}\"/>",
            x - 3.0,
            y - 3.0
        ),
        _ => format!(
            "<path d=\"M{x:.1} {:.1}l4 7h-8z\" fill=\"{colour}\"/>",
            y - 4.5
        ),
    }
}

/// `over` is the number of lines that are drawn over it: each makes it wider, so that it stays
/// visible where the lines coincide.
fn draw_series(series: &Series, (at, over): (usize, usize), scales: &Scales, out: &mut String) {
    let colour = colour(series, at);
    let places: Vec<(f64, f64)> = series
        .points
        .iter()
        .map(|(x, y)| (scales.x.place(*x), scales.y.place(*y)))
        .collect();
    let line: Vec<String> = places
        .iter()
        .map(|(x, y)| format!("{x:.1},{y:.1}"))
        .collect();
    let _ = write!(
        out,
        "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"{:.1}\" \
         stroke-dasharray=\"{}\"/>",
        line.join(" "),
        1.8 + 1.5 * over.min(4) as f64,
        dashes(series)
    );
    for (x, y) in places {
        out.push_str(&marker(at, x, y, colour));
    }
}

fn draw_legend(series: &Series, at: usize, out: &mut String) {
    let x = LEFT + (at % 2) as f64 * (WIDTH - LEFT) / 2.0;
    let y = TOP + PLOT_HEIGHT + BELOW + (at / 2) as f64 * LEGEND_ROW;
    let colour = colour(series, at);
    let _ = write!(
        out,
        "<line x1=\"{x}\" x2=\"{:.1}\" y1=\"{y}\" y2=\"{y}\" stroke=\"{colour}\" \
         stroke-width=\"1.8\" stroke-dasharray=\"{}\"/>{}<text x=\"{:.1}\" y=\"{:.1}\">{}</text>",
        x + 26.0,
        dashes(series),
        marker(at, x + 13.0, y, colour),
        x + 32.0,
        y + 4.0,
        escape(&series.name)
    );
}

/// Maps values to positions on an axis.
struct Scale {
    low: f64,
    high: f64,
    log: bool,
    begin: f64,
    end: f64,
    ticks: Vec<f64>,
}

struct Scales {
    x: Scale,
    y: Scale,
}

impl Scales {
    fn of(panel: &Panel) -> Self {
        let points = || panel.series.iter().flat_map(|series| series.points.iter());
        let xs: Vec<f64> = points().map(|(x, _)| *x).collect();
        let ys: Vec<f64> = points().map(|(_, y)| *y).collect();
        Self {
            x: Scale::of(&xs, panel.x, LEFT, WIDTH - RIGHT, true),
            y: Scale::of(&ys, panel.y, TOP + PLOT_HEIGHT, TOP, false),
        }
    }

    fn draw(&self, panel: &Panel, out: &mut String) {
        let (left, right) = (LEFT, WIDTH - RIGHT);
        let (top, bottom) = (TOP, TOP + PLOT_HEIGHT);
        for tick in &self.y.ticks {
            let y = self.y.place(*tick);
            let _ = write!(
                out,
                "<line x1=\"{left}\" x2=\"{right}\" y1=\"{y:.1}\" y2=\"{y:.1}\" \
                 stroke=\"#e2e2e2\"/><text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
                left - 6.0,
                y + 4.0,
                number(*tick)
            );
        }
        for tick in &self.x.ticks {
            let x = self.x.place(*tick);
            let _ = write!(
                out,
                "<line x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{bottom}\" y2=\"{:.1}\" \
                 stroke=\"#444\"/><text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
                bottom + 4.0,
                bottom + 17.0,
                number(*tick)
            );
        }
        let _ = write!(
            out,
            "<path d=\"M{left} {top}V{bottom}H{right}\" fill=\"none\" stroke=\"#444\"/>\
             <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>\
             <text transform=\"translate(14 {:.1}) rotate(-90)\" text-anchor=\"middle\">{}</text>",
            (left + right) / 2.0,
            bottom + 33.0,
            escape(panel.x.label),
            (top + bottom) / 2.0,
            escape(panel.y.label)
        );
    }
}

impl Scale {
    fn of(values: &[f64], axis: Axis, begin: f64, end: f64, exact: bool) -> Self {
        let high = values.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
        let low = values.iter().copied().fold(high, f64::min);
        let (low, high, ticks) = if axis.log {
            logarithmic(low, high)
        } else if exact {
            let few = distinct(values);
            (low, high.max(low + 1.0), few)
        } else {
            linear(high)
        };
        Self {
            low,
            high,
            log: axis.log,
            begin,
            end,
            ticks,
        }
    }

    fn place(&self, value: f64) -> f64 {
        let part = if self.log {
            let value = value.max(self.low);
            (value / self.low).ln() / (self.high / self.low).ln()
        } else {
            (value - self.low) / (self.high - self.low)
        };
        self.begin + part * (self.end - self.begin)
    }
}

/// Ticks at the values themselves, as many as fit.
fn distinct(values: &[f64]) -> Vec<f64> {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    values.dedup();
    let step = values.len().div_ceil(12).max(1);
    values.into_iter().step_by(step).collect()
}

/// Ticks from 0, with round steps.
fn linear(high: f64) -> (f64, f64, Vec<f64>) {
    let rough = high / 5.0;
    let power = 10_f64.powf(rough.log10().floor());
    let steps = [1.0, 2.0, 2.5, 5.0, 10.0].map(|step| step * power);
    let step = steps
        .into_iter()
        .find(|step| *step >= rough)
        .unwrap_or(rough);
    let count = (high / step).ceil();
    let ticks = (0..=count as u32).map(|at| f64::from(at) * step).collect();
    (0.0, count * step, ticks)
}

/// Ticks at powers of ten; if these are few, at halves and fifths too.
fn logarithmic(low: f64, high: f64) -> (f64, f64, Vec<f64>) {
    let low = low.max(high / 1e9);
    let (from, to) = (low.log10().floor() as i32, high.log10().ceil() as i32);
    let to = to.max(from + 1);
    let between: &[f64] = if to - from <= 3 {
        &[1.0, 2.0, 5.0]
    } else {
        &[1.0]
    };
    let all =
        (from..=to).flat_map(|power| between.iter().map(move |step| step * 10_f64.powi(power)));
    let all: Vec<f64> = all.collect();
    let floor = all
        .iter()
        .copied()
        .filter(|tick| *tick <= low * 1.0001)
        .fold(all[0], f64::max);
    let ceiling = all.iter().copied().find(|tick| *tick >= high * 0.9999);
    let ceiling = ceiling.unwrap_or(high).max(floor * 2.0);
    let inside = |tick: &f64| (floor..=ceiling * 1.0001).contains(tick);
    (floor, ceiling, all.into_iter().filter(inside).collect())
}

/// A number in its shortest form.
pub fn number(value: f64) -> String {
    let suffix = [(1e9, "G"), (1e6, "M"), (1e4, "k")];
    let found = suffix.iter().find(|(from, _)| value.abs() >= *from);
    let (value, suffix) = match found {
        Some((1e4, suffix)) => (value / 1e3, *suffix),
        Some((from, suffix)) => (value / from, *suffix),
        None => (value, ""),
    };
    let digits = match value.abs() {
        0.0 => 0,
        ..0.1 => 3,
        ..10.0 => 2,
        ..100.0 => 1,
        _ => 0,
    };
    let text = format!("{value:.digits$}");
    let text = match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.'),
        false => &text,
    };
    format!("{text}{suffix}")
}

/// Escapes text for HTML or SVG.
pub fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        let check = |value: f64, text: &str| assert_eq!(number(value), text);
        check(0.0, "0");
        check(0.05, "0.05");
        check(2.50, "2.5");
        check(9.714, "9.71");
        check(64.2, "64.2");
        check(1234.0, "1234");
        check(18_200_000.0, "18.2M");
        check(20_000.0, "20k");
    }

    #[test]
    fn ticks_cover_the_values() {
        for high in [0.3, 1.0, 7.7, 9.99, 1234.0] {
            let (low, top, ticks) = linear(high);
            assert!(
                low == 0.0 && top >= high && ticks.len() <= 7,
                "{high}: {ticks:?}"
            );
        }
        for (low, high) in [(0.01, 10.0), (3.0, 4.0), (1.0, 1.0), (0.5, 50_000.0)] {
            let (from, to, ticks) = logarithmic(low, high);
            assert!(
                from <= low * 1.001 && to >= high * 0.999,
                "{low}..{high}: {from}..{to}"
            );
            assert!((2..=12).contains(&ticks.len()), "{low}..{high}: {ticks:?}");
        }
    }
}
