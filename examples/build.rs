//! Generates the types of the examples from their IDL.

use spindle_dds_idl::{BuildError, Builder};

fn main() -> Result<(), BuildError> {
    for name in ["hello", "flight", "keyed", "waitset", "loans", "chat"] {
        Builder::new().file(format!("idl/{name}.idl")).generate()?;
    }
    Ok(())
}
