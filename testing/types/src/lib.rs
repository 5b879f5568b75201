//! Topic types that the tests of `spindle-dds` and the instruction benches share, generated from
//! `idl/`. They are a package of their own so that the tests compile them once, and so that a
//! user of `spindle-dds` never compiles them.

#![forbid(unsafe_code)]
#![allow(missing_docs, reason = "the IDL documents what a test needs to know")]

use spindle_dds_idl_runtime::include_idl;

include_idl!("flight");
include_idl!("evolution");
include_idl!("large");
