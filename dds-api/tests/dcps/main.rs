//! The DCPS interface over real groups: participants in threads, each a member
//! of its own, meeting in a directory of their own.

mod conditions;
mod discovered;
mod endings;
mod errors;
mod evolution;
mod flow;
mod generated;
mod glances;
mod hosts;
mod idle;
mod instances;
mod joining;
mod late;
mod lifecycle;
mod limits;
mod listeners;
mod liveliness;
mod matching;
mod meeting;
mod membership;
mod monitor;
mod nested;
mod order;
mod places;
mod psm;
mod refused;
mod rekeyed;
mod representations;
mod streams;

/// Made of `tests/idl/flight.idl` and `tests/idl/evolution.idl`.
mod types {
    include!("../idl/flight.rs");
    include!("../idl/evolution.rs");
}

pub(crate) use types::{flight, newer, older};
