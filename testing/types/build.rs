//! Compiles the IDL files of this package, each to a file of its own.

use spindle_dds_idl::{BuildError, Builder};

/// Labels of the large union: its description takes about 18 KiB.
const LABELS: usize = 4500;

fn main() -> Result<(), BuildError> {
    println!("cargo::rerun-if-changed=build.rs");
    let labels: Vec<String> = (0..LABELS).map(|label| format!("case {label}:")).collect();
    for name in ["flight", "evolution", "large"] {
        Builder::new()
            .file(format!("idl/{name}.idl"))
            .define("LABELS", labels.join(" "))
            .runtime_path("::spindle_dds_idl_runtime")
            .serde(false)
            .generate()?;
    }
    Ok(())
}
