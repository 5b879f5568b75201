//! Generates what this package compiles:
//!
//! - the fixtures of `fixtures/`, which the library has as modules;
//! - for `tests/features.rs`, the `code.idl` of each feature in `idl/tests/features`;
//! - for `tests/random.rs`, IDL made from seeds: `SPINDLE_IDL_SEED` is a seed or a range of seeds
//!   such as `3-6`, `SPINDLE_IDL_TYPES` the number of types per seed;
//! - for `tests/corpus.rs`, IDL of other projects: a sample, or every file of `idl/tests/corpus`
//!   if `SPINDLE_IDL_CORPUS` is `all`.

mod code;
mod idl;
#[allow(dead_code, reason = "the library uses all of it")]
#[path = "../src/random.rs"]
mod random;
mod suite;

use std::error::Error;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

use spindle_dds_idl::Builder;
use suite::{Suite, files, module_name};

type Outcome = Result<(), Box<dyn Error>>;

/// The folders of features, each with a `code.idl` where it has code to show.
const FEATURES: &str = "../../idl/tests/features";

/// The files of other projects, and `SOURCES.tsv`, which names their origin.
const CORPUS: &str = "../../idl/tests/corpus";

/// Folders where the compilers of those projects look for included files.
const CORPUS_INCLUDES: [&str; 2] = [
    "../../idl/tests/corpus/OpenDDS",
    "../../idl/tests/corpus/OpenDDS/tests/DCPS/Compiler/TryConstruct",
];

/// Small files of each project; all of them together take minutes to compile.
const CORPUS_SAMPLE: [&str; 5] = [
    "OpenDDS/tests/DCPS/Compiler/keywords/test.idl",
    "OpenDDS/tests/FACE/Conformance/SampleModel.idl",
    "cyclonedds/src/core/ddsc/tests/CdrStreamXcdr1Opt.idl",
    "dds-types-test/IDL/member_id.idl",
    "rosidl/rosidl_adapter/test/data/msg/Test.expected.idl",
];

const CORPUS_VARIABLE: &str = "SPINDLE_IDL_CORPUS";
const SEED_VARIABLE: &str = "SPINDLE_IDL_SEED";
const TYPES_VARIABLE: &str = "SPINDLE_IDL_TYPES";

/// The seed and the number of types of the default run.
const SEED: u64 = 1;
const TYPES: usize = 30;

fn main() -> Outcome {
    println!("cargo::rerun-if-changed=build");
    println!("cargo::rerun-if-changed=src/random.rs");
    fixtures()?;
    features()?;
    random()?;
    corpus()
}

fn fixtures() -> Outcome {
    let builder = |name: &str| {
        Builder::new()
            .include_dir("fixtures")
            .file(format!("fixtures/{name}.idl"))
            .runtime_path("::spindle_dds_idl_runtime")
    };
    for name in [
        "arrays",
        "bench",
        "bits",
        "evolution",
        "flight",
        "golden",
        "layouts",
        "members",
        "nested",
        "plain",
        "recursive_unions",
        "union_construct",
        "unions",
    ] {
        builder(name).generate()?;
    }
    builder("names").file("fixtures/rootless.idl").generate()?;
    builder("interfaces")
        .native("services::Handle", "::std::os::fd::RawFd")
        .generate()?;
    builder("flight")
        .serde(false)
        .out_file("bare.rs")
        .generate()?;
    builder("borrower")
        .runtime_path("crate::fixtures::middleware::idl")
        .extern_module("common", "crate::fixtures::flight::common")
        .generate()?;
    Ok(())
}

fn features() -> Outcome {
    println!("cargo::rerun-if-changed={FEATURES}");
    let mut suite = Suite::new("features", &[])?;
    let files = files(Path::new(FEATURES))?;
    for file in files.iter().filter(|file| file.ends_with("code.idl")) {
        let folder = file.parent().ok_or("is in a folder")?;
        let folder = folder.strip_prefix(FEATURES)?;
        let name = module_name(folder);
        let folder = folder.display();
        let topics = suite.add(file, &name, &format!("`{folder}`"))?;
        if topics.is_empty() {
            continue;
        }
        let layouts: Vec<String> = topics
            .iter()
            .map(|path| format!("layout::<crate::{name}::{path}>()"))
            .collect();
        writeln!(
            suite.checks,
            "#[test]\nfn {name}_bytes() {{\n    \
             bytes(\"{folder}\", &[{}]);\n}}",
            layouts.join(", ")
        )?;
    }
    suite.finish()?;
    Ok(())
}

fn random() -> Outcome {
    println!("cargo::rerun-if-env-changed={SEED_VARIABLE}");
    println!("cargo::rerun-if-env-changed={TYPES_VARIABLE}");
    let seeds = match env::var(SEED_VARIABLE) {
        Ok(text) => {
            let (first, last) = text.split_once('-').unwrap_or((&text, &text));
            number(SEED_VARIABLE, first)?..=number(SEED_VARIABLE, last)?
        }
        Err(_) => SEED..=SEED,
    };
    let types = match env::var(TYPES_VARIABLE) {
        Ok(text) => usize::try_from(number(TYPES_VARIABLE, &text)?)?,
        Err(_) => TYPES,
    };
    let out = PathBuf::from(env::var_os("OUT_DIR").ok_or("cargo sets OUT_DIR")?);
    let mut suite = Suite::new("random", &[])?;
    for seed in seeds {
        let name = format!("seed_{seed}");
        let file = out.join(format!("{name}.idl"));
        fs::write(&file, idl::idl(seed, types))?;
        suite.add(&file, &name, &format!("Seed {seed}"))?;
    }
    suite.finish()?;
    Ok(())
}

fn number(variable: &str, text: &str) -> Result<u64, Box<dyn Error>> {
    let wrong = |_| format!("{variable}: {text} is not a number").into();
    text.parse().map_err(wrong)
}

fn corpus() -> Outcome {
    println!("cargo::rerun-if-changed={CORPUS}");
    println!("cargo::rerun-if-env-changed={CORPUS_VARIABLE}");
    let root = Path::new(CORPUS);
    let files: Vec<PathBuf> = match env::var(CORPUS_VARIABLE).as_deref() {
        Ok("all") => files(root)?.into_iter().collect(),
        _ => CORPUS_SAMPLE.map(|name| root.join(name)).into(),
    };
    let mut suite = Suite::new("corpus", &CORPUS_INCLUDES)?;
    for file in &files {
        let called = file.strip_prefix(root)?;
        let name = module_name(called);
        let topics = suite.add(file, &name, &format!("`{}`", called.display()))?;
        writeln!(suite.checks, "#[test]\nfn {name}() {{")?;
        for path in topics {
            writeln!(suite.checks, "    check::<crate::{name}::{path}>();")?;
        }
        suite.checks.push_str("}\n");
    }
    suite.finish()?;
    Ok(())
}
