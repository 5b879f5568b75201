//! `spindle log ls`.

use std::io::{Write, stdout};

use serde::Serialize;
use spindle_dds::log::{LogError, LogLock, LogPlace, LogReader, LogState, Roster};

use super::failure::Failure;
use super::logs;
use super::options::LsOptions;
use super::timestamp::Timestamp;
use crate::top::names::{clean, columns, padded};

/// What there is to know of a log without reading all of it.
#[derive(Debug, Serialize)]
struct Listed {
    domain: u32,
    topic: String,
    directory: String,
    state: State,
    /// What is wrong with it, or has been left by a crash.
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<String>,
    #[serde(flatten)]
    contents: Option<Contents>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum State {
    Ok,
    /// A participant writes it.
    InUse,
    /// A crash has left a part of a record at its end, which is cut off when a participant opens it.
    TornTail,
    Damaged,
    /// It is no log, or cannot be read.
    Unreadable,
}

#[derive(Debug, Serialize)]
struct Contents {
    #[serde(rename = "type")]
    ty: String,
    log: String,
    lineage: String,
    records: u64,
    bytes: u64,
    /// Position of the first record.
    first: Option<u64>,
    /// Position after the last one.
    end: u64,
    last_time: Option<String>,
    /// Number of the generation of the newest roster.
    generation: u64,
    roster: Vec<String>,
    /// The roster was recorded, and it is not known whether all its logs did.
    is_proposed: bool,
}

#[derive(Debug, Serialize)]
struct Listing {
    directory: String,
    logs: Vec<Listed>,
}

/// Prints a table, or JSON.
pub(super) fn run(options: &LsOptions) -> Result<(), Failure> {
    let directory = options.directory.as_path();
    let places = logs::selected(directory, &options.selection)?;
    let listing = Listing {
        directory: directory.display().to_string(),
        logs: places.iter().map(listed).collect::<Result<_, _>>()?,
    };
    let text = match options.json {
        true => serde_json::to_string(&listing)? + "\n",
        false => table(&listing),
    };
    stdout().write_all(text.as_bytes()).map_err(Failure::Output)
}

fn listed(place: &LogPlace) -> Result<Listed, Failure> {
    let domain = place.domain_directory();
    let is_in_use = LogLock::is_held(domain).map_err(Failure::directory(domain))?;
    let opened = LogReader::open(&place.path);
    let (state, why) = match &opened {
        Err(error @ LogError::Damaged { .. }) => (State::Damaged, Some(error.to_string())),
        Err(error) => (State::Unreadable, Some(error.to_string())),
        Ok(_) if is_in_use => (State::InUse, None),
        Ok(log) => match log.torn_tail() {
            Some(tail) => (State::TornTail, Some(torn_tail(tail))),
            None => (State::Ok, None),
        },
    };
    let contents = opened.and_then(|mut log| contents(&mut log));
    let (contents, state, why) = match contents {
        Ok(contents) => (Some(contents), state, why),
        Err(_) if why.is_some() => (None, state, why),
        Err(error) => (None, State::Damaged, Some(error.to_string())),
    };
    Ok(Listed {
        domain: place.domain,
        topic: place.topic.clone(),
        directory: place.path.display().to_string(),
        state,
        why,
        contents,
    })
}

/// What a crash has left at the end of a log.
pub(super) fn torn_tail((file, offset, bytes): (&str, u64, u64)) -> String {
    format!("torn tail: {bytes} bytes of {file} from byte {offset} on")
}

fn contents(log: &mut LogReader) -> Result<Contents, LogError> {
    let end = log.end();
    let first = log.records(0).next().transpose()?;
    let last = log.records(end.saturating_sub(1)).next().transpose()?;
    let time = last.map(|it| Timestamp(it.record.meta().timestamp).to_string());
    let (state, figures) = (log.state(), log.figures());
    let newest = newest_roster(state);
    Ok(Contents {
        ty: log.head().type_name.clone(),
        log: state.id.to_string(),
        lineage: format!("{:032x}", state.lineage),
        records: figures.records,
        bytes: figures.bytes,
        first: first.map(|it| it.record.position()),
        end,
        last_time: time,
        generation: newest.map_or(0, |it| it.generation.number),
        roster: newest.map_or_else(Vec::new, |it| {
            it.logs.iter().map(ToString::to_string).collect()
        }),
        is_proposed: !state.proposed.is_empty(),
    })
}

fn newest_roster(state: &LogState) -> Option<&Roster> {
    state.proposed.last().or(state.confirmed.as_ref())
}

const HEADINGS: [&str; 11] = [
    "domain",
    "topic",
    "type",
    "records",
    "bytes",
    "positions",
    "last",
    "generation",
    "log",
    "roster",
    "state",
];

/// The columns with numbers, which stand on the right.
const NUMBERS: [usize; 4] = [0, 3, 4, 7];

fn table(listing: &Listing) -> String {
    if listing.logs.is_empty() {
        return format!("{}: there are no logs\n", listing.directory);
    }
    let mut rows = vec![HEADINGS.map(str::to_owned)];
    rows.extend(listing.logs.iter().map(row));
    let widths: Vec<usize> = (0..HEADINGS.len())
        .map(|column| {
            rows.iter()
                .map(|row| columns(&row[column]))
                .max()
                .unwrap_or(0)
        })
        .collect();
    let mut text = String::new();
    for row in &rows {
        let mut line = String::new();
        for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
            let missing = " ".repeat(width - columns(cell));
            line += &match NUMBERS.contains(&column) {
                true => missing + cell,
                false => padded(cell, *width),
            };
            line += "  ";
        }
        text += line.trim_end();
        text.push('\n');
    }
    text
}

fn row(log: &Listed) -> [String; 11] {
    let state = match (log.state, &log.why) {
        (State::Ok, _) => "ok".to_owned(),
        (State::InUse, _) => "in use".to_owned(),
        (State::TornTail | State::Damaged | State::Unreadable, why) => {
            why.clone().unwrap_or_default()
        }
    };
    let mut row = [const { String::new() }; 11];
    row[0] = log.domain.to_string();
    row[1] = clean(&log.topic);
    row[10] = clean(&state);
    let Some(contents) = &log.contents else {
        return row;
    };
    row[2] = clean(&contents.ty);
    row[3] = contents.records.to_string();
    row[4] = contents.bytes.to_string();
    row[5] = match contents.first {
        Some(first) => format!("{first}..{}", contents.end),
        None => "none".to_owned(),
    };
    row[6] = contents.last_time.clone().unwrap_or_default();
    row[7] = contents.generation.to_string();
    row[8] = short(&contents.log).to_owned();
    let roster: Vec<&str> = contents.roster.iter().map(|id| short(id)).collect();
    row[9] = roster.join(" ");
    if contents.is_proposed {
        row[9] += " (proposed)";
    }
    row
}

/// The beginning of an id, which tells it apart from others.
fn short(id: &str) -> &str {
    id.get(..8).unwrap_or(id)
}
