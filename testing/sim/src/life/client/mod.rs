//! What the applications were promised, judged over the history of what they asked for,
//! were told, and were handed (docs/properties.md, C1 to C7): one file each.
//!
//! An operation is a message that an application wants sent. It is *refused*, or
//! *committed*; then, maybe, *acknowledged*: the application has been told that all have
//! it. Of the others nobody knows what becomes of them, as their senders died, stopped,
//! or lost interest before they were told.

mod acknowledged;
mod all_or_none;
mod called;
mod fifo;
mod history;
mod real_time;
mod refused;
mod told;

use std::collections::BTreeSet;

use spindle_dds_core::membership::MemberId;

pub(super) use history::History;

use crate::violation::Finding;

/// Judges a history; as a whole, if those are known who live in the end. Of all properties,
/// or of one.
pub(super) fn judge(
    history: &History,
    survivors: Option<&BTreeSet<MemberId>>,
    only: Option<&str>,
) -> Result<(), Finding> {
    let nobody = BTreeSet::new();
    let living = survivors.unwrap_or(&nobody);
    let judged = |id: &'static str, check: &dyn Fn() -> Result<(), String>| match only {
        Some(only) if only != id => Ok(()),
        _ => check().map_err(|what| (id, what)),
    };
    judged("C1", &|| acknowledged::check(history, living))?;
    judged("C2", &|| refused::check(history))?;
    judged("C3", &|| all_or_none::check(history, living))?;
    judged("C4", &|| called::check(history))?;
    judged("C5", &|| fifo::check(history))?;
    judged("C6", &|| real_time::check(history))?;
    judged("C7", &|| told::check(history, living))
}
