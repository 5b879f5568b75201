//! Counts the instructions of a message: see `benches/`, and CONTRIBUTING.md.
#![forbid(unsafe_code)]
