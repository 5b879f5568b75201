//! Generates the types that the processes exchange.

use spindle_dds_idl::{BuildError, Builder};

fn main() -> Result<(), BuildError> {
    Builder::new().file("idl/traffic.idl").generate()?;
    Builder::new().file("idl/exchange.idl").generate()
}
