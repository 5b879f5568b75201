//! IDL 4.2 compiler for Spindle DDS, made to be called from a `build.rs`.
//!
//! The front end reads files and hands over a checked [`model`]:
//!
//! ```text
//! bytes -> source -> lex -> preprocess -> parse -> resolve -> Model
//!                      \________\___________\________\______> Diagnostics
//! ```
//!
//! No stage fails: each leaves diagnostics and goes on, so that one run shows
//! all that is wrong. No input makes it panic, recurse without bound or take
//! unbounded memory; `limits.rs` lists the bounds. The front end knows nothing
//! of Rust, of wire formats, or of the back ends.
#![forbid(unsafe_code)]

mod ast;
mod compile;
mod diag;
mod lex;
mod limits;
pub mod model;
mod parse;
mod preprocess;
mod resolve;
mod source;

pub use compile::{Compilation, Options, compile, compile_str};
pub use diag::{Diagnostic, Severity};
