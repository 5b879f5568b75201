//! The DCPS interface over real groups: participants in threads, each a member
//! of its own, meeting in a directory of their own.

mod acknowledgments;
mod conditions;
mod discovered;
mod ended;
mod endings;
mod errors;
mod evolution;
mod failing_logs;
mod flow;
mod from_config;
mod futures;
mod history;
mod hosts;
mod idle;
mod instances;
mod joining;
mod key_values;
mod large_types;
mod late;
mod lifecycle;
mod limits;
mod listeners;
mod liveliness;
mod logged;
mod long_keys;
mod many_endpoints;
mod matching;
mod meeting;
mod membership;
mod monitor;
#[path = "../../src/history/log_disk/mounted.rs"]
mod mounted;
mod nested;
mod order;
mod persistent;
mod places;
mod polling_readers;
mod psm;
mod refused;
mod rekeyed;
mod representations;
mod returning;
mod slow_readers;
mod standard;
mod streams;
mod transient;

pub(crate) use spindle_dds_test_types::{flight, large, newer, older};
