//! Whether logs of a topic have the same records.

use std::iter::Peekable;

use spindle_dds::log::{LogError, LoggedRecord};

use super::sample::hex;

/// The records of a log, by position.
pub(super) trait Records: Iterator<Item = Result<LoggedRecord, LogError>> {}

impl<I: Iterator<Item = Result<LoggedRecord, LogError>>> Records for I {}

/// The first position at which two logs differ. Logs go by their index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Difference {
    pub(super) position: u64,
    pub(super) logs: [usize; 2],
    pub(super) what: String,
}

/// A log that cannot be read.
#[derive(Debug)]
pub(super) struct Unread {
    pub(super) log: usize,
    pub(super) error: LogError,
}

/// Looks for a difference below a position. A record that compaction has removed from a log, which the
/// next one says, is no difference. What was there before is compared by the chain values.
pub(super) fn first_difference<R: Records>(
    logs: &mut [Peekable<R>],
    end: u64,
    mut progress: impl FnMut(u64),
) -> Result<Option<Difference>, Unread> {
    while let Some((position, first)) = next_position(logs)? {
        if position >= end {
            return Ok(None);
        }
        let mut of_first: Option<LoggedRecord> = None;
        for (log, records) in logs.iter_mut().enumerate() {
            let difference = |what| Difference {
                position,
                logs: [first, log],
                what,
            };
            let found = records.next_if(|it| {
                let it = it.as_ref();
                it.is_ok_and(|it| it.record.position() == position)
            });
            match (found, &of_first) {
                (Some(Ok(found)), None) => of_first = Some(found),
                (Some(Ok(found)), Some(expected)) => {
                    if let Some(what) = difference_of(expected, &found) {
                        return Ok(Some(difference(what)));
                    }
                }
                _ if is_removed(records) => {}
                _ => {
                    return Ok(Some(difference(
                        "only the first has a record there".to_owned(),
                    )));
                }
            }
        }
        progress(of_first.map_or(0, |it| it.byte_len() as u64));
    }
    Ok(None)
}

/// The least position at which a log has its next record, and the first log that has it.
fn next_position<R: Records>(logs: &mut [Peekable<R>]) -> Result<Option<(u64, usize)>, Unread> {
    let mut least: Option<(u64, usize)> = None;
    for (log, records) in logs.iter_mut().enumerate() {
        if let Some(Err(error)) = records.next_if(Result::is_err) {
            return Err(Unread { log, error });
        }
        if let Some(Ok(next)) = records.peek() {
            let position = next.record.position();
            if least.is_none_or(|(least, _)| position < least) {
                least = Some((position, log));
            }
        }
    }
    Ok(least)
}

/// Whether records before the next one were removed.
fn is_removed<R: Records>(records: &mut Peekable<R>) -> bool {
    matches!(records.peek(), Some(Ok(next)) if next.is_after_gap)
}

fn difference_of(one: &LoggedRecord, other: &LoggedRecord) -> Option<String> {
    let written = |it: &LoggedRecord| {
        let meta = it.record.meta();
        (meta.writer, meta.sequence)
    };
    if one.record == other.record && one.generation == other.generation && one.epoch == other.epoch
    {
        let same = one.chain == other.chain;
        return (!same)
            .then(|| "the records before it differ, which are no longer there".to_owned());
    }
    if written(one) != written(other) {
        let name = |(writer, sequence): ([u8; 16], u64)| {
            format!("number {sequence} of writer {}", hex(&writer))
        };
        let (one, other) = (name(written(one)), name(written(other)));
        return Some(format!("one has {one}, the other {other}"));
    }
    if one.record != other.record {
        return Some("the same message with different contents".to_owned());
    }
    Some(format!(
        "one has it from generation {} and view {}, the other from generation {} and view {}",
        one.generation, one.epoch, other.generation, other.epoch
    ))
}
