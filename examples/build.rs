//! Generates the types of the examples from their IDL.

use spindle_dds_idl::{BuildError, Builder};

fn main() -> Result<(), BuildError> {
    Builder::new().file("idl/hello.idl").generate()
}
