//! Makes IDL up, compiles it, and writes the code that tries its types.
//!
//! `SPINDLE_IDL_SEED` and `SPINDLE_IDL_TYPES` are for other types, and more, than those
//! that the tests have by default.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::{env, fs};

use spindle_dds_idl::{Builder, Options, compile};
use spindle_dds_idl_exercise::code::code;
use spindle_dds_idl_exercise::idl::idl;

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
    let (mut modules, mut checks) = (String::new(), String::new());
    for seed in seeds {
        generate(&out, seed, types, &mut modules, &mut checks)?;
    }
    fs::write(out.join("modules.rs"), modules)?;
    fs::write(out.join("checks.rs"), checks)?;
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

fn generate(
    out: &Path,
    seed: u64,
    types: usize,
    modules: &mut String,
    checks: &mut String,
) -> Result<(), Box<dyn Error>> {
    let name = format!("seed_{seed}");
    let file = out.join(format!("{name}.idl"));
    fs::write(&file, idl(seed, types))?;
    Builder::new()
        .file(&file)
        .runtime_path("::spindle_dds_idl_runtime")
        .generate()?;
    let compilation = compile(&[file], &Options::default());
    let model = compilation
        .ok()
        .map_err(|_| format!("seed {seed}: refused the second time"))?;
    let code = code(model, "spindle_dds_idl_random", &name)?;
    fs::write(out.join(format!("{name}_tried.rs")), code.implementations)?;
    modules.push_str(&format!(
        "/// Seed {seed}.\npub mod {name} {{\n    \
         spindle_dds_idl_runtime::include_idl!(\"{name}\");\n}}\n\
         #[allow(clippy::all, clippy::nursery, unused)]\nmod {name}_tried {{\n    \
         include!(concat!(env!(\"OUT_DIR\"), \"/{name}_tried.rs\"));\n}}\n"
    ));
    checks.push_str(&format!("mod {name} {{\n{}}}\n", code.tests));
    Ok(())
}
