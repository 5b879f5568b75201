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

/// Judges a history; as a whole, if those are known who live in the end.
pub(super) fn judge(
    history: &History,
    survivors: Option<&BTreeSet<MemberId>>,
) -> Result<(), Finding> {
    let nobody = BTreeSet::new();
    let living = survivors.unwrap_or(&nobody);
    let with = |id: &'static str| move |what: String| (id, what);
    acknowledged::check(history, living).map_err(with("C1"))?;
    refused::check(history).map_err(with("C2"))?;
    all_or_none::check(history, living).map_err(with("C3"))?;
    called::check(history).map_err(with("C4"))?;
    fifo::check(history).map_err(with("C5"))?;
    real_time::check(history).map_err(with("C6"))?;
    told::check(history, living).map_err(with("C7"))
}
