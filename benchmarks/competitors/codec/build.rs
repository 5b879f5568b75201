//! Compiles the types that `cargo bench -p spindle-dds-idl-conformance` measures.

use spindle_dds_idl::{BuildError, Builder};

fn main() -> Result<(), BuildError> {
    Builder::new()
        .file("../../../testing/idl/fixtures/bench.idl")
        .runtime_path("::spindle_dds_idl_runtime")
        .generate()
}
