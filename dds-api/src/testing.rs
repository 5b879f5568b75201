//! For tests that show where things are; no part of the product's face.

use crate::error::Result;
use crate::participant::DomainParticipant;
use crate::publication::{DataWriter, Loan};
use spindle_dds_transport::{Fabric, Rank};

/// Address and length of each member's row as this participant sees it.
///
/// # Errors
/// NOT_ENABLED, ALREADY_DELETED.
pub fn rows(participant: &DomainParticipant) -> Result<Vec<(usize, usize)>> {
    let session = participant.core.ready()?;
    let fabric = session.handle().fabric().whole();
    let rows = (0..fabric.members()).map(|rank| fabric.row(Rank(rank as u16)));
    Ok(rows.map(|row| (row.address(), row.len())).collect())
}

/// The memory that a builder would build in.
///
/// # Errors
/// Those of [`DataWriter::loan`].
pub fn loan<T>(writer: &DataWriter<T>, len: usize) -> Result<Loan<T>> {
    writer.slot(len, None)
}
