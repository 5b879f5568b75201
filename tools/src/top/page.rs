//! A scene as a page, for pipes and files: all of it, in lines as long as they need to be.

use std::fmt::Write as _;

use super::names::{clean, columns, padded};
use super::problems::problems;
use super::scene::Scene;
use super::tables::{self, Table, table};

/// Columns of names, at least.
const NAME_MIN: usize = 27;

pub(super) fn page(scene: &Scene) -> String {
    let mut text = headline(scene) + "\n";
    for at in 0..tables::NAMES.len() {
        let table = table(scene, at);
        if !table.rows.is_empty() || !tables::MOSTLY_EMPTY.contains(&at) {
            push_table(&mut text, &table);
        }
    }
    for problems in problems(scene) {
        let _ = write!(text, "\n{}\n", problems.title);
        for problem in &problems.texts {
            text += &clean(problem);
            text.push('\n');
        }
        if problems.texts.is_empty() {
            text += "none\n";
        }
    }
    text
}

fn push_table(text: &mut String, table: &Table) {
    let _ = write!(text, "\n{}\n", table.title);
    let names = 0..table.names.len();
    let names: Vec<usize> = names.map(|at| table.name_width(at).max(NAME_MIN)).collect();
    let numbers = table.number_widths();
    let heads = table.names.iter().map(|(head, _)| *head);
    push_row(
        text,
        heads.zip(names.iter().copied()),
        table
            .numbers
            .iter()
            .map(|(head, _)| *head)
            .zip(numbers.iter().copied()),
    );
    for row in &table.rows {
        let of_row = row.names.iter().map(String::as_str);
        let of_row = of_row.zip(names.iter().copied());
        match &row.note {
            Some(note) => push_row(text, of_row, std::iter::once((&**note, 0))),
            None => {
                let texts = row.numbers.iter().map(|number| &*number.text);
                push_row(text, of_row, texts.zip(numbers.iter().copied()));
            }
        }
    }
}

/// Adds a line, of texts and their widths.
fn push_row<'t>(
    text: &mut String,
    names: impl Iterator<Item = (&'t str, usize)>,
    numbers: impl Iterator<Item = (&'t str, usize)>,
) {
    let mut line = String::new();
    for (name, width) in names {
        line += &padded(&clean(name), width);
        line.push(' ');
    }
    for (number, width) in numbers {
        let number = clean(number);
        line += &" ".repeat(width.saturating_sub(columns(&number)));
        line += &number;
    }
    text.push_str(line.trim_end());
    text.push('\n');
}

/// The first line, of a page and of a frame.
pub(super) fn headline(scene: &Scene) -> String {
    let view = match &scene.view {
        Some(view) => {
            let members = match view.members.len() {
                1 => "1 member".to_owned(),
                members => format!("{members} members"),
            };
            format!("view {}, {members}, led by {}", view.id, view.leader)
        }
        None => match scene.participants.is_empty() {
            true => "no participants".to_owned(),
            false => "no answers".to_owned(),
        },
    };
    let (domain, interval) = (scene.domain, scene.interval_s);
    clean(&format!(
        "spindle top   domain {domain}   last {interval:.1} s   {view}"
    ))
}
