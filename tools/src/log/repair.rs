//! `spindle log repair`.

use std::path::{Path, PathBuf};

use clap::CommandFactory as _;
use clap::error::ErrorKind;
use spindle_dds::log::{LogId, LogPlace, LogReader, LogState};

use super::failure::Failure;
use super::logs;
use super::options::RepairOptions;
use crate::top::names::clean;

/// Mends a log, or sets logs aside; prints what was done.
pub(super) fn run(options: &RepairOptions) -> Result<(), Failure> {
    let directories = options.directories.as_slice();
    match (directories, &options.from, options.keep) {
        (_, _, Some(keep)) => set_aside(options, directories, keep),
        ([directory], Some(from), _) => mend(options, directory, from),
        _ => {
            let problem = "--from needs one directory that is repaired";
            let mut command = crate::Arguments::command();
            command.error(ErrorKind::TooManyValues, problem).exit()
        }
    }
}

fn mend(options: &RepairOptions, directory: &Path, from: &Path) -> Result<(), Failure> {
    let topic = options.selection.topic.as_deref().unwrap_or_default();
    let place = logs::one(directory, topic, options.selection.domain)?;
    let other = logs::one(from, topic, Some(place.domain))?;
    let lock = logs::lock(&place)?;
    let mend = |error| Failure::Mend {
        path: place.path.clone(),
        error,
    };
    let mended = lock.mend(&place, &other).map_err(mend)?;
    for one in &mended {
        let taken = match one.positions {
            Some((first, last)) if first == last => format!("the record at position {first}"),
            Some((first, last)) => {
                format!("{} records from position {first} to {last}", one.records)
            }
            None => "no record".to_owned(),
        };
        println!(
            "{}: mended, with {taken} of {}; the damaged file is kept as {}",
            place.path.join(&one.file).display(),
            from.display(),
            one.kept
        );
    }
    // Whether all is well is seen by reading it.
    let mut log = LogReader::open(&place.path).map_err(Failure::log(&place.path))?;
    let report = log.verify(&mut |_| {}).map_err(Failure::log(&place.path))?;
    if let Some(error) = report.damaged.into_iter().next() {
        return Err(Failure::log(&place.path)(error));
    }
    let (path, records) = (place.path.display(), report.records);
    println!("{path}: {records} records, sound");
    Ok(())
}

/// A log that is there.
struct There<'a> {
    directory: &'a Path,
    place: LogPlace,
    state: LogState,
}

impl There<'_> {
    /// Whether it is, or was in a roster with, the log of this id, or has it as its lineage.
    fn knows(&self, id: LogId) -> bool {
        let state = &self.state;
        let mut rosters = state.confirmed.iter().chain(&state.proposed);
        state.id == id || state.lineage == id.0 || rosters.any(|it| it.logs.contains(&id))
    }

    fn is_of_topic(&self, other: &Self) -> bool {
        self.place.domain == other.place.domain && self.place.topic == other.place.topic
    }
}

fn set_aside(options: &RepairOptions, directories: &[PathBuf], keep: LogId) -> Result<(), Failure> {
    let mut there = Vec::new();
    for directory in directories {
        for place in logs::selected(directory, &options.selection)? {
            let log = LogReader::open(&place.path).map_err(Failure::log(&place.path))?;
            let state = log.state().clone();
            there.push(There {
                directory,
                place,
                state,
            });
        }
    }
    let lineage = lineage(&mut there, keep)?;
    // A log without a roster holds nothing of its own.
    there.retain(|it| it.state.lineage != lineage && it.state.lineage != 0);
    if there.is_empty() {
        println!("there is nothing to set aside: all logs descend from the same beginning");
    }
    for it in there {
        let lock = logs::lock(&it.place)?;
        let aside = lock.set_aside(&it.place, it.state.id);
        let aside = aside.map_err(Failure::directory(it.directory))?;
        println!(
            "{}: log {} of topic {} is set aside as {}",
            it.place.path.display(),
            it.state.id,
            clean(&it.place.topic),
            aside.display()
        );
    }
    Ok(())
}

/// The beginning from which the logs that are kept descend. Leaves the logs of the topic.
fn lineage(there: &mut Vec<There<'_>>, keep: LogId) -> Result<u128, Failure> {
    let known = there.iter().position(|it| it.state.id == keep);
    let known = known.or_else(|| there.iter().position(|it| it.knows(keep)));
    let Some(known) = known else {
        // The id is of a log elsewhere. What is here does not belong to it.
        let is_one_topic = there.iter().all(|it| it.is_of_topic(&there[0]));
        return match is_one_topic && !there.is_empty() {
            true => Ok(keep.0),
            false => Err(Failure::Selection(format!(
                "no log here knows {keep}: name the topic with --topic"
            ))),
        };
    };
    let kept = there.swap_remove(known);
    there.retain(|it| it.is_of_topic(&kept));
    match kept.state.lineage {
        0 => Err(Failure::Selection(format!("log {keep} has no records"))),
        lineage => Ok(lineage),
    }
}
