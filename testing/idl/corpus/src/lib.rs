//! Code generated from IDL of other projects: see `idl/tests/corpus/SOURCES.tsv` for
//! where each file is from and under which licence. Nothing but a test of the compiler.

#![forbid(unsafe_code)]
// The IDL has names that Rust's lints do not like, and no comments.
#![allow(missing_docs)]

include!(concat!(env!("OUT_DIR"), "/modules.rs"));
