//! For tests that look into memory, and for measurements that step by hand. Not part of the public
//! API.

use std::sync::Arc;

pub use crate::discovery::fuzzing::{Announced, announce, meet};
use crate::driver::Session;
use crate::error::Result;
use crate::participant::DomainParticipant;
use crate::publication::{DataWriter, Loan};
use spindle_dds_transport::{Fabric, Rank};

/// Address and length of each row that this participant sees in its lanes.
///
/// # Errors
/// NOT_ENABLED, ALREADY_DELETED.
pub fn rows(participant: &DomainParticipant) -> Result<Vec<(usize, usize)>> {
    let session = participant.core.ready()?;
    let handle = session.handle();
    let subgroups = handle.subgroups();
    let lanes = subgroups.iter().filter_map(|id| handle.lane(*id));
    let rows = lanes.flat_map(|lane| {
        let fabric = lane.fabric();
        let rows = (0..fabric.members()).map(|rank| fabric.row(Rank(rank as u16)));
        rows.map(|row| (row.address(), row.len()))
            .collect::<Vec<_>>()
    });
    Ok(rows.collect())
}

/// The memory that a builder would build in.
///
/// # Errors
/// Those of [`DataWriter::loan`].
pub fn loan<T>(writer: &DataWriter<T>, len: usize) -> Result<Loan<T>> {
    writer.slot(len, None)
}

/// While this lives, the polling thread of a participant is paused, and the owner of this value
/// steps in its place. Heartbeats are sent only by these steps.
#[derive(Debug)]
pub struct ByHand(Arc<Session>);

impl ByHand {
    /// Waits until the polling thread stands still. One at a time for a participant.
    ///
    /// # Errors
    /// NOT_ENABLED, ALREADY_DELETED.
    pub fn new(participant: &DomainParticipant) -> Result<Self> {
        let session = participant.core.ready()?;
        session.pause_polling(true);
        Ok(Self(session))
    }

    /// One step of the engine. Whether it found something to do.
    pub fn step(&self) -> bool {
        self.0.step().is_some_and(|outcome| outcome.progress)
    }
}

impl Drop for ByHand {
    fn drop(&mut self) {
        self.0.resume_polling();
    }
}

/// While this lives, the polling thread of a participant is paused: data comes only by threads that
/// step themselves.
#[derive(Debug)]
pub struct Still(Arc<Session>);

impl Still {
    /// Waits until the polling thread stands still. One at a time for a participant, and not
    /// beside a [`ByHand`].
    ///
    /// # Errors
    /// NOT_ENABLED, ALREADY_DELETED.
    pub fn new(participant: &DomainParticipant) -> Result<Self> {
        let session = participant.core.ready()?;
        session.pause_polling(false);
        Ok(Self(session))
    }
}

impl Drop for Still {
    fn drop(&mut self) {
        self.0.resume_polling();
    }
}
