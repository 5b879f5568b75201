//! The four threads of a participant: polling, control, dispatch, waking.

pub(super) mod control;
pub(super) mod control_queue;
mod departures;
pub(super) mod dispatch;
mod figures;
pub(super) mod join;
pub(super) mod memory_watch;
pub(super) mod polling;
pub(crate) mod preparation;
mod reachability;
pub(super) mod spawn;
pub(super) mod waking;
