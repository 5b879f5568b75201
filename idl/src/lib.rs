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
//!
//! The back end, [`emit`], prints Rust by the rules of [`mapping`]; [`Builder`]
//! is both ends in the hands of a `build.rs`. Byte layouts are the business of
//! the runtime crate alone.
#![forbid(unsafe_code)]

mod ast;
mod builder;
mod compile;
mod diag;
pub mod emit;
mod lex;
mod limits;
pub mod mapping;
pub mod model;
mod parse;
mod preprocess;
mod print;
mod resolve;
mod source;
pub mod type_object;

pub use builder::{BuildError, Builder};
pub use compile::{Compilation, Options, compile, compile_str};
pub use diag::{Diagnostic, Severity};
pub use print::print;
