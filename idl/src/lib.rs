//! Being written.
pub mod emit;
pub mod mapping;
pub mod model;
