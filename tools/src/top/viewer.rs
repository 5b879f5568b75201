//! What of a scene is on the screen: the table, its order, and where it is scrolled to. Keys change it.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use super::tables::{self, Row, Table};

/// The tables, and the problems after them.
pub(super) const TABS: usize = tables::NAMES.len() + 1;
pub(super) const PROBLEMS: usize = TABS - 1;

/// What the keys do.
pub(super) const KEYS: [(&str, &str); 10] = [
    ("Tab, 1 to 8", "another table, or the problems"),
    ("Up, Down, k, j", "a row up or down"),
    ("PageUp, PageDown", "a screen up or down"),
    ("Home, End, g, G", "the first rows, the last ones"),
    ("Left, Right, h, l", "columns to the left or right"),
    ("<, >", "sort by the column before, or the next one"),
    ("r", "reverse the order"),
    ("p, Space", "hold the picture, and go on"),
    ("?", "this help; again, or Esc: back"),
    ("q, Esc, Ctrl-C", "quit"),
];

/// What is on the screen.
#[derive(Debug, Default)]
pub(super) struct Viewer {
    pub(super) tab: usize,
    pub(super) is_help: bool,
    /// The picture is held: new snapshots are not shown.
    pub(super) is_held: bool,
    tabs: [Scroll; TABS],
    help: Scroll,
}

/// Where a table is scrolled to, and how it is sorted.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Scroll {
    /// The first row that is shown.
    pub(super) row: usize,
    /// The first column of numbers that is shown.
    pub(super) column: usize,
    /// The column by which rows are sorted: names first, then numbers.
    pub(super) sorted_by: usize,
    /// Numbers begin with the largest, and names with the first, unless this is so.
    pub(super) is_reversed: bool,
    /// The column that they are sorted by has been chosen, and is to be seen.
    shows_sorted: bool,
    /// Rows that had room when it was drawn last.
    page: usize,
}

/// What follows from a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reaction {
    Draw,
    Quit,
}

impl Viewer {
    pub(super) fn handle_key(&mut self, key: KeyEvent) -> Reaction {
        if key.kind == KeyEventKind::Release {
            return Reaction::Draw;
        }
        let interrupts = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Char('c') if interrupts => return Reaction::Quit,
            KeyCode::Char('?') | KeyCode::F(1) => self.is_help = !self.is_help,
            KeyCode::Esc if self.is_help => self.is_help = false,
            KeyCode::Char('q') | KeyCode::Esc => return Reaction::Quit,
            KeyCode::Char('p' | ' ') => self.is_held = !self.is_held,
            KeyCode::Tab => self.turn_to((self.tab + 1) % TABS),
            KeyCode::BackTab => self.turn_to((self.tab + TABS - 1) % TABS),
            KeyCode::Char(digit @ '1'..='9') => {
                let tab = digit as usize - '1' as usize;
                if tab < TABS {
                    self.turn_to(tab);
                }
            }
            code => self.scroll_mut().handle_key(code),
        }
        Reaction::Draw
    }

    fn turn_to(&mut self, tab: usize) {
        self.tab = tab;
        self.is_help = false;
    }

    pub(super) fn scroll_mut(&mut self) -> &mut Scroll {
        match self.is_help {
            true => &mut self.help,
            false => &mut self.tabs[self.tab],
        }
    }
}

impl Scroll {
    fn handle_key(&mut self, code: KeyCode) {
        // What is beyond the end is corrected when it is drawn.
        let page = self.page.max(1);
        match code {
            KeyCode::Up | KeyCode::Char('k') => self.row = self.row.saturating_sub(1),
            KeyCode::Down | KeyCode::Char('j') => self.row = self.row.saturating_add(1),
            KeyCode::PageUp => self.row = self.row.saturating_sub(page),
            KeyCode::PageDown => self.row = self.row.saturating_add(page),
            KeyCode::Home | KeyCode::Char('g') => self.row = 0,
            KeyCode::End | KeyCode::Char('G') => self.row = usize::MAX,
            KeyCode::Left | KeyCode::Char('h') => self.column = self.column.saturating_sub(1),
            KeyCode::Right | KeyCode::Char('l') => self.column = self.column.saturating_add(1),
            KeyCode::Char('<') => self.sort_by(self.sorted_by.saturating_sub(1)),
            KeyCode::Char('>') => self.sort_by(self.sorted_by.saturating_add(1)),
            KeyCode::Char('r') => self.is_reversed = !self.is_reversed,
            _ => {}
        }
    }

    fn sort_by(&mut self, column: usize) {
        (self.sorted_by, self.is_reversed, self.row) = (column, false, 0);
        self.shows_sorted = true;
    }

    /// So many rows are there, of which so many have room: the first and the end of those shown.
    pub(super) fn show_rows(&mut self, rows: usize, room: usize) -> std::ops::Range<usize> {
        self.page = room;
        self.row = self.row.min(rows.saturating_sub(room));
        self.row..rows.min(self.row.saturating_add(room))
    }

    /// The same of the columns of numbers, which have these widths. `names` are before them.
    pub(super) fn show_columns(
        &mut self,
        names: usize,
        widths: &[usize],
        room: usize,
    ) -> std::ops::Range<usize> {
        let fitting = |widths: &mut dyn Iterator<Item = &usize>| {
            let mut used = 0;
            let fits = |width: &&usize| {
                used += **width;
                used <= room
            };
            widths.take_while(fits).count()
        };
        let last_first = widths.len() - fitting(&mut widths.iter().rev());
        self.column = self.column.min(last_first);
        if std::mem::take(&mut self.shows_sorted)
            && let Some(sorted_by) = self.sorted_by.checked_sub(names)
            && let Some(to_it) = widths.get(..=sorted_by)
        {
            let before = fitting(&mut to_it.iter().rev()).max(1);
            let first = to_it.len() - before;
            self.column = self.column.clamp(first, sorted_by.max(first));
        }
        let shown = fitting(&mut widths[self.column..].iter());
        self.column..self.column + shown
    }

    /// Sorts a table.
    pub(super) fn sort(&mut self, table: &mut Table) {
        let (names, numbers) = (table.names.len(), table.numbers.len());
        self.sorted_by = self.sorted_by.min((names + numbers).saturating_sub(1));
        let is_reversed = self.is_reversed;
        let ordered = |order: std::cmp::Ordering| match is_reversed {
            true => order.reverse(),
            false => order,
        };
        match self.sorted_by.checked_sub(names) {
            None => {
                let by = self.sorted_by;
                let name = |row: &Row| row.names.get(by).cloned().unwrap_or_default();
                table.rows.sort_by(|a, b| ordered(name(a).cmp(&name(b))));
            }
            Some(by) => {
                let value = |row: &Row| row.numbers.get(by)?.value;
                table.rows.sort_by(|a, b| match (value(a), value(b)) {
                    (Some(a), Some(b)) => ordered(b.total_cmp(&a)),
                    // What is not known is last in either order.
                    (a, b) => b.is_some().cmp(&a.is_some()),
                });
            }
        }
    }
}
