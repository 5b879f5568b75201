//! What applications are promised (docs/properties.md, C1 to C7), judged over the history of what
//! they asked for, were told, and were delivered: one file each.
//!
//! An operation is a message that an application asks to be sent. It is *refused* or *committed*; a
//! committed one may be *acknowledged*: the application is told that all members have it. The
//! outcome of the others is *unknown*: their sender crashed, stopped, or lost its writer before it
//! was told.

mod acknowledged;
mod acknowledgement_liveness;
mod atomicity;
mod fifo;
mod history;
mod no_creation;
mod real_time;
mod refused;

use std::collections::BTreeSet;

use spindle_dds_core::membership::MemberId;

pub(super) use history::History;

use crate::violation::Finding;

/// Judges a history, as a whole if the survivors are known. Judges all properties, or `only` one.
pub(super) fn judge(
    history: &History,
    survivors: Option<&BTreeSet<MemberId>>,
    only: Option<&str>,
) -> Result<(), Finding> {
    let no_survivors = BTreeSet::new();
    let living = survivors.unwrap_or(&no_survivors);
    let judged = |id: &'static str, check: &dyn Fn() -> Result<(), String>| match only {
        Some(only) if only != id => Ok(()),
        _ => check().map_err(|what| (id, what)),
    };
    judged("C1", &|| acknowledged::check(history, living))?;
    judged("C2", &|| refused::check(history))?;
    judged("C3", &|| atomicity::check(history, living))?;
    judged("C4", &|| no_creation::check(history))?;
    judged("C5", &|| fifo::check(history))?;
    judged("C6", &|| real_time::check(history))?;
    judged("C7", &|| acknowledgement_liveness::check(history, living))
}
