//! Waiting until a change has taken effect.

use std::time::Duration;

use spindle_dds::{DataReader, DataWriter, Error, StatusCondition, StatusMask, WaitSet};

use super::entities::Entities;
use crate::Failure;
use crate::exchange::Probe;

/// Until the reader is matched with exactly so many writers.
pub(crate) fn wait_for_writers(reader: &DataReader<Probe>, count: i32) -> Result<(), Failure> {
    let condition = reader.status_condition()?;
    wait_until(&condition, StatusMask::SUBSCRIPTION_MATCHED, || {
        Ok(reader.subscription_matched_status()?.current_count == count)
    })
}

/// Until the writer is matched with at least so many readers.
pub(crate) fn wait_for_readers(writer: &DataWriter<Probe>, count: i32) -> Result<(), Failure> {
    let condition = writer.status_condition()?;
    wait_until(&condition, StatusMask::PUBLICATION_MATCHED, || {
        Ok(writer.publication_matched_status()?.current_count >= count)
    })
}

fn wait_until(
    condition: &StatusCondition,
    mask: StatusMask,
    done: impl Fn() -> Result<bool, Failure>,
) -> Result<(), Failure> {
    condition.set_enabled_statuses(mask);
    let waits = WaitSet::new();
    waits.attach(condition);
    while !done()? {
        wait_a_while(&waits)?;
    }
    Ok(())
}

/// Until a condition triggers; a second at most, because a failed group shows only when its
/// entities are looked at.
pub(super) fn wait_a_while(waits: &WaitSet) -> Result<(), Failure> {
    match waits.wait(WAIT_MAX) {
        Err(error) if !error.is_timeout() => Err(error.into()),
        _ => Ok(()),
    }
}

/// Until a view other than `view` has begun.
pub(crate) fn wait_for_view_after(entities: &Entities, view: u64) -> Result<(), Failure> {
    while entities.participant.counters()?.view == view {
        std::thread::sleep(POLL_EVERY);
    }
    Ok(())
}

/// Deletes a reader, once its listener has given back the samples that it has taken.
pub(crate) fn delete_reader(
    entities: &Entities,
    reader: &DataReader<Probe>,
) -> Result<(), Failure> {
    loop {
        match entities.subscriber.delete_datareader(reader) {
            Ok(()) => return Ok(()),
            Err(Error::PreconditionNotMet(_)) => std::thread::yield_now(),
            Err(error) => return Err(error.into()),
        }
    }
}

const WAIT_MAX: Duration = Duration::from_secs(1);
const POLL_EVERY: Duration = Duration::from_micros(250);
