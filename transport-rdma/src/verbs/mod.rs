//! One-sided writes between hosts: RDMA over reliable connected queue pairs.

mod core;
mod error;
mod segment;

pub(crate) use self::core::{Core, Hooks};
pub use error::RdmaError;
pub(crate) use segment::Segment;
