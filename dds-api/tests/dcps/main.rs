//! The DCPS interface over real groups: participants in threads, each a member
//! of its own, meeting in a directory of their own.

mod errors;
mod flow;
mod generated;
mod lifecycle;
mod listeners;
mod matching;
mod meeting;
mod membership;
mod order;
mod places;

/// Made of `tests/idl/flight.idl`.
mod types {
    include!("../idl/flight.rs");
}

pub(crate) use types::flight;
