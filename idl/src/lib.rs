//! IDL 4.2 compiler for Spindle DDS, a library for build scripts.
//!
//! The front end reads files and produces a checked [`model`]:
//!
//! ```text
//! bytes -> source -> lex -> preprocess -> parse -> resolve -> Model
//!                      \________\___________\________\______> Diagnostics
//! ```
//!
//! No stage fails: each records diagnostics and continues, so that one run reports
//! every fault. No input makes it panic, recurse without bound or take unbounded
//! memory; `limits.rs` lists the bounds. The front end knows nothing of Rust, of
//! wire formats, or of the back ends.
//!
//! The back end, [`emit`], prints Rust by the rules of [`mapping`]. [`Builder`]
//! runs both ends from a build script. Only the runtime crate knows byte layouts.
#![forbid(unsafe_code)]

mod ast;
mod builder;
mod compile;
mod diag;
pub mod emit;
mod encoding;
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
pub use encoding::{Encoding, UnknownEncoding};
pub use print::print;
