//! Makes IDL up, compiles it, and writes the code that tries its types.
//!
//! `SPINDLE_IDL_SEED` and `SPINDLE_IDL_TYPES` are for other types, and more, than those
//! that the tests have by default.

use std::error::Error;
use std::path::PathBuf;
use std::{env, fs};

use spindle_dds_idl_exercise::idl::idl;
use spindle_dds_idl_exercise::suite::Suite;

/// Seeds of the files that the tests have by default.
const SEEDS: [u64; 2] = [1, 2];

/// Types in each file.
const TYPES: usize = 30;

const SEED_VARIABLE: &str = "SPINDLE_IDL_SEED";
const TYPES_VARIABLE: &str = "SPINDLE_IDL_TYPES";

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=build.rs");
    let seeds = match number(SEED_VARIABLE)? {
        Some(seed) => vec![seed],
        None => SEEDS.to_vec(),
    };
    let types = match number(TYPES_VARIABLE)? {
        Some(types) => usize::try_from(types)?,
        None => TYPES,
    };
    let out = PathBuf::from(env::var_os("OUT_DIR").ok_or("cargo sets OUT_DIR")?);
    let mut suite = Suite::new("spindle_dds_idl_random", &[])?;
    for seed in seeds {
        let name = format!("seed_{seed}");
        let file = out.join(format!("{name}.idl"));
        fs::write(&file, idl(seed, types))?;
        suite.add(&file, &name, &format!("Seed {seed}"))?;
    }
    suite.finish()?;
    Ok(())
}

fn number(variable: &str) -> Result<Option<u64>, Box<dyn Error>> {
    println!("cargo::rerun-if-env-changed={variable}");
    match env::var(variable) {
        Ok(text) => match text.parse() {
            Ok(number) => Ok(Some(number)),
            Err(_) => Err(format!("{variable} is no number: {text}").into()),
        },
        Err(_) => Ok(None),
    }
}
