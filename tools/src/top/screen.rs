//! What a viewer looks at, as a frame of a terminal.
//!
//! ```text
//!   the domain and its view
//!   1 Participants  2 Batches  ...  8 Problems (2)
//!   the title of the table
//!   participant   CPU %   out/s   ...            >
//!   rows; what has no room is scrolled to
//!   rows 1-19 of 60   columns 1-7 of 12   ...      the last line
//! ```

use std::ops::Range;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Style, Stylize};
use ratatui::text::{Line, Span};

use super::names::{clean, columns, cut_end, padded, shorten, wrap};
use super::page::headline;
use super::problems::problems;
use super::scene::Scene;
use super::tables::{self, Table, table};
use super::viewer::{KEYS, PROBLEMS, TABS, Viewer};

/// Columns and lines that are left.
#[derive(Clone, Copy)]
struct Room {
    width: usize,
    height: usize,
}

/// Draws what a viewer looks at. What has no room can be scrolled to, and the last line says so.
pub(super) fn draw(scene: &Scene, viewer: &mut Viewer, area: Rect, buffer: &mut Buffer) {
    let (width, height) = (usize::from(area.width), usize::from(area.height));
    let mut lines = vec![
        Line::from(cut_end(&headline(scene), width)),
        tabs(scene, viewer, width),
    ];
    let room = Room {
        width,
        // One line is for the last.
        height: height.saturating_sub(lines.len() + 1),
    };
    let mut last = match (viewer.is_help, viewer.tab) {
        (true, tab) => draw_texts(help(tab), "Help", viewer, room, &mut lines),
        (false, PROBLEMS) => draw_texts(problem_lines(scene), "Problems", viewer, room, &mut lines),
        (false, tab) => draw_table(table(scene, tab), viewer, room, &mut lines),
    };
    last += match viewer.is_help {
        true => "   ?: back   q: quit",
        false => "   ?: help   q: quit",
    };
    if viewer.is_held {
        last.insert_str(0, "HELD   ");
    }
    lines.truncate(height.saturating_sub(1));
    for (y, line) in (area.y..).zip(&lines) {
        buffer.set_line(area.x, y, line, area.width);
    }
    if height > 0 {
        let last = Line::from(padded(&cut_end(&last, width), width)).reversed();
        buffer.set_line(area.x, area.bottom() - 1, &last, area.width);
    }
}

/// The names of the tables, short ones if these have no room; that of the one that is shown if not all
/// have.
fn tabs(scene: &Scene, viewer: &Viewer, width: usize) -> Line<'static> {
    let counts = problems(scene).into_iter().map(|it| it.count);
    let problems = counts.fold(0, u64::saturating_add);
    let names = |is_short: bool| {
        let (names, problems) = match is_short {
            false => (tables::NAMES, format!("Problems ({problems})")),
            true => (tables::SHORT_NAMES, format!("Problems {problems}")),
        };
        let names = names.map(str::to_owned).into_iter().chain([problems]);
        let names = (1..).zip(names).map(|(at, name)| format!("{at} {name}"));
        names.collect::<Vec<String>>()
    };
    let fits = |(is_short, gap): &(bool, usize)| {
        let names = names(*is_short);
        let all: usize = names.iter().map(|it| columns(it)).sum();
        all + gap * (names.len() - 1) <= width
    };
    let Some((is_short, gap)) = [(false, 2), (false, 1), (true, 1)].into_iter().find(fits) else {
        let names = names(false);
        let text = format!("{} of {TABS}, Tab: the next", names[viewer.tab]);
        return Line::from(cut_end(&text, width)).bold();
    };
    let names = names(is_short);
    let spans = names.into_iter().enumerate().flat_map(|(at, name)| {
        let style = match at {
            at if at == viewer.tab => Style::new().reversed(),
            PROBLEMS if problems > 0 => Style::new().red().bold(),
            _ => Style::new(),
        };
        [Span::styled(name, style), Span::raw(" ".repeat(gap))]
    });
    Line::from(spans.collect::<Vec<_>>())
}

/// Which part of a whole is shown.
fn shown_part(what: &str, shown: &Range<usize>, all: usize) -> String {
    if shown.len() == all {
        return format!("all {all} {what}");
    }
    let (first, last) = ((shown.start + 1).min(shown.end), shown.end);
    format!("{what} {first}-{last} of {all}")
}

// Texts.

/// Draws lines of text, wrapped. Returns what the last line says of them.
fn draw_texts(
    texts: Vec<(String, Style)>,
    title: &str,
    viewer: &mut Viewer,
    room: Room,
    lines: &mut Vec<Line<'static>>,
) -> String {
    let wrapped = texts.into_iter().flat_map(|(text, style)| {
        let parts = wrap(&clean(&text), room.width);
        parts.into_iter().map(move |part| (part, style))
    });
    let wrapped: Vec<_> = wrapped.collect();
    let shown = viewer.scroll_mut().show_rows(wrapped.len(), room.height);
    let part = shown_part("lines", &shown, wrapped.len());
    let shown = wrapped.into_iter().skip(shown.start).take(room.height);
    lines.extend(shown.map(|(part, style)| Line::styled(part, style)));
    format!("{title}: {part}")
}

fn problem_lines(scene: &Scene) -> Vec<(String, Style)> {
    let mut lines = Vec::new();
    for problems in problems(scene) {
        let style = match problems.count {
            0 => Style::new().dim(),
            _ => Style::new().bold(),
        };
        lines.push((format!("{} ({})", problems.title, problems.count), style));
        lines.extend(problems.texts.into_iter().map(|it| (it, Style::new())));
    }
    lines
}

/// The keys, and the columns of a table.
fn help(tab: usize) -> Vec<(String, Style)> {
    let bold = Style::new().bold();
    let entry = |name: &str, text: &str| (format!("{} {text}", padded(name, 18)), Style::new());
    let mut lines = vec![("Keys".to_owned(), bold)];
    lines.extend(KEYS.iter().map(|(key, what)| entry(key, what)));
    if tab != PROBLEMS {
        let table = table(&Scene::default(), tab);
        lines.push((table.title.to_owned(), bold));
        let columns = table.names.iter().chain(table.numbers);
        lines.extend(columns.map(|(head, what)| entry(head, what)));
    }
    lines
}

// Tables.

/// A table, and which part of it is shown where.
struct Layout {
    table: Table,
    name_widths: Vec<usize>,
    number_widths: Vec<usize>,
    shown_numbers: Range<usize>,
    sorted_by: usize,
    width: usize,
}

/// Draws a table. Returns what the last line says of it.
fn draw_table(
    mut table: Table,
    viewer: &mut Viewer,
    room: Room,
    lines: &mut Vec<Line<'static>>,
) -> String {
    let scroll = viewer.scroll_mut();
    scroll.sort(&mut table);
    let name_widths = name_widths(&table, room.width);
    let number_widths = table.number_widths();
    let taken: usize = name_widths.iter().map(|width| width + 1).sum();
    // The last column of the terminal is for the mark of what is cut.
    let for_numbers = room.width.saturating_sub(taken + 1);
    let shown_numbers = scroll.show_columns(table.names.len(), &number_widths, for_numbers);
    // Two lines are for the title and the heads.
    let rows = table.rows.len();
    let shown = scroll.show_rows(rows, room.height.saturating_sub(2));
    let heads = table.names.iter().chain(table.numbers);
    let sorted = heads.map(|(head, _)| *head).nth(scroll.sorted_by);
    let reversed = if scroll.is_reversed { " reversed" } else { "" };
    let last = format!(
        "{}   {}   by {}{reversed}",
        shown_part("rows", &shown, rows),
        shown_part("columns", &shown_numbers, table.numbers.len()),
        sorted.unwrap_or_default()
    );
    let layout = Layout {
        table,
        name_widths,
        number_widths,
        shown_numbers,
        sorted_by: scroll.sorted_by,
        width: room.width,
    };
    lines.push(Line::from(cut_end(layout.table.title, room.width)).bold());
    lines.push(layout.heads());
    lines.extend(layout.rows(shown));
    last
}

/// Columns for the names of a table: what they need, unless too little is left for numbers.
fn name_widths(table: &Table, width: usize) -> Vec<usize> {
    let names = 0..table.names.len();
    let needed: Vec<usize> = names.map(|at| table.name_width(at)).collect();
    let mut left = match needed.len() {
        1 => width * 2 / 5,
        2 => width * 3 / 5,
        _ => width * 3 / 4,
    };
    let mut order: Vec<usize> = (0..needed.len()).collect();
    order.sort_by_key(|at| needed[*at]);
    let mut widths = vec![0; needed.len()];
    for (done, at) in order.iter().enumerate() {
        widths[*at] = needed[*at].min(left / (needed.len() - done));
        left -= widths[*at];
    }
    widths
}

impl Layout {
    /// The heads of the columns, with marks where columns are left out.
    fn heads(&self) -> Line<'static> {
        let style = |at: usize| match at == self.sorted_by {
            true => Style::new().bold().underlined(),
            false => Style::new().dim(),
        };
        let mut spans = Vec::new();
        let mut used = 0;
        for (at, width) in self.name_widths.iter().enumerate() {
            let head = cut_end(self.table.names[at].0, *width);
            used += width + 1;
            let after = width + 1 - columns(&head);
            spans.push(Span::styled(head, style(at)));
            spans.push(Span::raw(" ".repeat(after)));
        }
        let numbers = self.table.numbers.len();
        for at in self.shown_numbers.clone() {
            let (head, width) = (self.table.numbers[at].0, self.number_widths[at]);
            let is_cut = at == self.shown_numbers.start && at > 0;
            let mark = if is_cut { "<" } else { "" };
            let before = width.saturating_sub(columns(head) + mark.len());
            used += width;
            spans.push(Span::raw(mark.to_owned() + &" ".repeat(before)));
            spans.push(Span::styled(head, style(self.table.names.len() + at)));
        }
        if self.shown_numbers.end < numbers {
            let before = self.width.saturating_sub(used + 1);
            spans.push(Span::raw(" ".repeat(before) + ">"));
        }
        Line::from(spans)
    }

    fn rows(&self, shown: Range<usize>) -> Vec<Line<'static>> {
        let all = &self.table.rows;
        let names = (0..self.name_widths.len()).map(|at| {
            let names = all.iter().map(|row| clean(&row.names[at]));
            let names: Vec<String> = names.collect();
            shorten(names.iter().map(String::as_str), self.name_widths[at])
        });
        let names: Vec<Vec<String>> = names.collect();
        let line = |at: usize| {
            let row = &all[at];
            let mut line = String::new();
            for (name, width) in names.iter().zip(&self.name_widths) {
                line += &padded(&name[at], *width);
                line.push(' ');
            }
            if let Some(note) = &row.note {
                let left = self.width.saturating_sub(columns(&line));
                return Line::from(line + &cut_end(&clean(note), left)).red();
            }
            for at in self.shown_numbers.clone() {
                let (text, width) = (&row.numbers[at].text, self.number_widths[at]);
                line += &" ".repeat(width.saturating_sub(columns(text)));
                line += text;
            }
            Line::from(line)
        };
        shown.map(line).collect()
    }
}
