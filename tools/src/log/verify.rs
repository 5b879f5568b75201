//! `spindle log verify`.

use std::collections::BTreeMap;
use std::io::{Write, stdout};
use std::path::Path;

use indicatif::ProgressBar;
use serde::Serialize;
use spindle_dds::log::{LogError, LogPlace, LogReader};

use super::failure::Failure;
use super::logs;
use super::ls::torn_tail;
use super::options::VerifyOptions;
use super::same::{Difference, first_difference};
use crate::harness::progress;
use crate::top::names::clean;

/// The file that has what no other log knows.
const SUPERBLOCK: &str = "superblock";

/// A log that was read.
#[derive(Debug, Serialize)]
struct Verified {
    directory: String,
    domain: u32,
    topic: String,
    records: u64,
    /// Position after the last record; 0 for a log that cannot be opened.
    end: u64,
    bytes: u64,
    /// What a crash has left at its end, which is no damage.
    #[serde(skip_serializing_if = "Option::is_none")]
    torn_tail: Option<String>,
    damage: Vec<Damage>,
}

#[derive(Debug, Serialize)]
struct Damage {
    /// With its directory.
    file: String,
    offset: u64,
    what: String,
    /// The command that may mend it.
    repair: String,
}

/// The logs of a topic, compared.
#[derive(Debug, Serialize)]
struct Compared {
    domain: u32,
    topic: String,
    directories: Vec<String>,
    /// The least of their ends.
    end: u64,
    same: bool,
    /// The first difference, or why they cannot be compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<String>,
}

#[derive(Debug, Serialize)]
struct Outcome {
    sound: bool,
    logs: Vec<Verified>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    same: Vec<Compared>,
}

/// A log and the directory of logs that it is in.
struct Found<'a> {
    directory: &'a Path,
    place: LogPlace,
}

/// Prints what was read, and what is wrong; fails if anything is.
pub(super) fn run(options: &VerifyOptions) -> Result<(), Failure> {
    let mut found = Vec::new();
    for directory in &options.directories {
        let places = logs::selected(directory, &options.selection)?;
        found.extend(places.into_iter().map(|place| Found { directory, place }));
    }
    let bar = Bar::new(&found, if options.same { 2 } else { 1 });
    let logs: Result<Vec<_>, _> = found.iter().map(|it| verified(it, &bar)).collect();
    let logs = logs?;
    let same = match options.same {
        true => compared(&found, &logs, &bar),
        false => Vec::new(),
    };
    bar.bar.finish_and_clear();
    let is_sound = logs.iter().all(|it| it.damage.is_empty()) && same.iter().all(|it| it.same);
    let outcome = Outcome {
        sound: is_sound,
        logs,
        same,
    };
    let text = match options.json {
        true => serde_json::to_string(&outcome)? + "\n",
        false => page(&outcome),
    };
    stdout()
        .write_all(text.as_bytes())
        .map_err(Failure::Output)?;
    is_sound.then_some(()).ok_or(Failure::Found)
}

/// A bar in MiB.
struct Bar {
    bar: ProgressBar,
    bytes: std::cell::Cell<u64>,
}

impl Bar {
    fn new(found: &[Found<'_>], times: u64) -> Self {
        let bytes: u64 = found.iter().map(|it| bytes_of(&it.place.path)).sum();
        Self {
            bar: progress::bar((bytes * times) >> 20, 0),
            bytes: std::cell::Cell::new(0),
        }
    }

    fn add(&self, bytes: u64) {
        self.bytes.set(self.bytes.get() + bytes);
        self.bar.set_position(self.bytes.get() >> 20);
    }
}

/// Bytes of the files of a log.
fn bytes_of(directory: &Path) -> u64 {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    entries
        .filter_map(|it| Some(it.metadata().ok()?.len()))
        .sum()
}

fn verified(found: &Found<'_>, bar: &Bar) -> Result<Verified, Failure> {
    let place = &found.place;
    let mut verified = Verified {
        directory: found.directory.display().to_string(),
        domain: place.domain,
        topic: place.topic.clone(),
        records: 0,
        end: 0,
        bytes: 0,
        torn_tail: None,
        damage: Vec::new(),
    };
    let opened = LogReader::open(&place.path).and_then(|mut log| {
        let mut before = 0;
        let report = log.verify(&mut |read| {
            bar.add(read - before);
            before = read;
        })?;
        Ok((log, report))
    });
    let errors = match opened {
        Ok((log, report)) => {
            verified.records = report.records;
            verified.bytes = report.bytes;
            verified.end = log.end();
            verified.torn_tail = log.torn_tail().map(torn_tail);
            report.damaged
        }
        Err(error) => vec![error],
    };
    for error in errors {
        let LogError::Damaged { file, offset, what } = error else {
            return Err(Failure::log(&place.path)(error));
        };
        verified.damage.push(Damage {
            repair: repair(found, &file),
            file: place.path.join(file).display().to_string(),
            offset,
            what,
        });
    }
    Ok(verified)
}

/// What may mend a log.
fn repair(found: &Found<'_>, file: &str) -> String {
    let (directory, place) = (found.directory.display(), &found.place);
    if file == SUPERBLOCK {
        return format!(
            "rename {}: the participant begins a new log, with the records of the others",
            place.path.display()
        );
    }
    format!(
        "spindle log repair {directory} --topic {} --domain {} --from DIR-OF-ANOTHER-PARTICIPANT",
        quoted(&place.topic),
        place.domain
    )
}

/// A name as a shell takes it.
fn quoted(name: &str) -> String {
    let is_plain = |it: char| it.is_ascii_alphanumeric() || "_-./".contains(it);
    match name.chars().all(is_plain) {
        true => name.to_owned(),
        false => format!("'{}'", name.replace('\'', r"'\''")),
    }
}

/// Compares the logs of each topic that has several.
fn compared(found: &[Found<'_>], logs: &[Verified], bar: &Bar) -> Vec<Compared> {
    let mut by_topic: BTreeMap<(u32, &str), Vec<usize>> = BTreeMap::new();
    for (index, it) in found.iter().enumerate() {
        let topic = (it.place.domain, it.place.topic.as_str());
        by_topic.entry(topic).or_default().push(index);
    }
    let compare = |((domain, topic), of): ((u32, &str), Vec<usize>)| {
        let paths: Vec<&Path> = of.iter().map(|it| found[*it].directory).collect();
        let is_sound = of.iter().all(|it| logs[*it].damage.is_empty());
        let places: Vec<&LogPlace> = of.iter().map(|it| &found[*it].place).collect();
        let outcome = match is_sound {
            true => same(&places, &paths, bar),
            false => Err("not compared, as one of them is damaged".to_owned()),
        };
        Compared {
            domain,
            topic: topic.to_owned(),
            directories: paths.iter().map(|it| it.display().to_string()).collect(),
            end: of.iter().map(|it| logs[*it].end).min().unwrap_or(0),
            same: outcome.is_ok(),
            why: outcome.err(),
        }
    };
    by_topic.into_iter().map(compare).collect()
}

/// Whether logs have the same records below their common end, from the first position that all have. If
/// not, the first difference.
fn same(places: &[&LogPlace], directories: &[&Path], bar: &Bar) -> Result<(), String> {
    let name = |log: usize| directories[log].display().to_string();
    let unread = |log: usize| move |error: LogError| format!("{}: {error}", name(log));
    let mut logs = Vec::new();
    for (log, place) in places.iter().enumerate() {
        logs.push(LogReader::open(&place.path).map_err(unread(log))?);
    }
    let of = |log: &LogReader| log.state().lineage;
    let other = logs.iter().position(|it| of(it) != of(&logs[0]));
    if let Some(other) = other {
        let (one, other) = (name(0), name(other));
        return Err(format!(
            "{one} and {other} descend from different beginnings"
        ));
    }
    let end = logs.iter().map(LogReader::end).min().unwrap_or(0);
    let mut from = 0;
    for (log, it) in logs.iter_mut().enumerate() {
        let first = it.records(0).next().transpose().map_err(unread(log))?;
        from = first.map_or(from, |it| from.max(it.record.position()));
    }
    let mut records: Vec<_> = logs
        .iter_mut()
        .map(|it| it.records(from).peekable())
        .collect();
    let found = first_difference(&mut records, end, |read| {
        bar.add(read * places.len() as u64)
    });
    match found {
        Ok(None) => Ok(()),
        Ok(Some(Difference {
            position,
            logs: [one, other],
            what,
        })) => Err(format!(
            "{} and {} differ at position {position}: {what}",
            name(one),
            name(other)
        )),
        Err(it) => Err(unread(it.log)(it.error)),
    }
}

fn page(outcome: &Outcome) -> String {
    let mut text = String::new();
    for log in &outcome.logs {
        let (directory, topic, domain) = (&log.directory, clean(&log.topic), log.domain);
        let state = match (log.damage.as_slice(), &log.torn_tail) {
            ([], None) => "sound".to_owned(),
            ([], Some(tail)) => format!("sound, {tail}"),
            (damage, _) => format!("DAMAGED in {} places", damage.len()),
        };
        let (records, end) = (log.records, log.end);
        text += &format!(
            "{directory}: topic {topic} of domain {domain}: {records} records, end {end}: {state}\n"
        );
        for one in &log.damage {
            let (file, offset, what) = (&one.file, one.offset, &one.what);
            text += &format!("  {file}: byte {offset}: {what}\n");
        }
        if let Some(one) = log.damage.first() {
            text += &format!("  -> {}\n", one.repair);
        }
    }
    for topic in &outcome.same {
        let (name, domain) = (clean(&topic.topic), topic.domain);
        let verdict = match (&topic.why, topic.directories.len()) {
            (Some(why), _) => format!("NOT THE SAME: {why}"),
            (None, 1) => "only one log".to_owned(),
            (None, logs) => format!("{logs} logs are the same below position {}", topic.end),
        };
        text += &format!("topic {name} of domain {domain}: {verdict}\n");
    }
    if outcome.logs.is_empty() {
        text += "there are no logs\n";
    }
    text
}
