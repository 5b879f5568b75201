//! Code generated from IDL that nobody wrote, and what it takes to try it out. Nothing but a
//! test of the compiler and the runtime.

#![forbid(unsafe_code)]
// The IDL has no comments.
#![allow(missing_docs)]

include!(concat!(env!("OUT_DIR"), "/modules.rs"));
