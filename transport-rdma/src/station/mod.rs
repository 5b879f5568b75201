//! What all kinds of stations have in common: segments, events and errors.

pub(crate) mod error;
pub(crate) mod event;
pub(crate) mod event_slots;
pub(crate) mod segment;
pub(crate) mod traffic;
