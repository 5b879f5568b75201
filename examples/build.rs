//! Generates the types of the examples from their IDL.

use spindle_dds_idl::{BuildError, Builder};

fn main() -> Result<(), BuildError> {
    let names = [
        "hello", "flight", "keyed", "waitset", "loans", "chat", "recorder",
    ];
    for name in names {
        Builder::new().file(format!("idl/{name}.idl")).generate()?;
    }
    Ok(())
}
