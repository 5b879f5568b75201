//! Being written.
pub mod model;
