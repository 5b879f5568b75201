//! The `spindle` command: see the library of the same package.

#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    spindle_dds_tools::run()
}
