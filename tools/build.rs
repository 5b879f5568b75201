//! Generates the type that `spindle perf` sends.

use spindle_dds_idl::{BuildError, Builder};

fn main() -> Result<(), BuildError> {
    Builder::new().file("idl/perf.idl").generate()
}
