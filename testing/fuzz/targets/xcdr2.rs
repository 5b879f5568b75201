//! Samples in XCDR version 2.
#![no_main]

use libfuzzer_sys::fuzz_target;
use spindle_dds_idl_runtime::Representation;

mod samples;

fuzz_target!(|bytes: &[u8]| samples::check(bytes, Representation::Xcdr2));
