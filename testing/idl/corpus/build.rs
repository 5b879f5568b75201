//! Compiles every file of the corpus by itself, as its owners do, lists the topic types found,
//! and writes the code that tries them.

use std::error::Error;
use std::fmt::Write as _;
use std::path::Path;

use spindle_dds_idl_exercise::suite::{Suite, files, module_name};

/// The files, and `SOURCES.tsv`, which says whose they are.
const CORPUS: &str = "../../../idl/tests/corpus";

/// Where the projects of the corpus have their compilers look.
const INCLUDES: [&str; 2] = [
    "../../../idl/tests/corpus/OpenDDS",
    "../../../idl/tests/corpus/OpenDDS/tests/DCPS/Compiler/TryConstruct",
];

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed={CORPUS}");
    let mut suite = Suite::new("spindle_dds_idl_corpus", &INCLUDES)?;
    let files = files(Path::new(CORPUS))?;
    for file in &files {
        let called = file.strip_prefix(CORPUS)?;
        let name = module_name(called);
        let topics = suite.add(file, &name, &format!("`{}`", called.display()))?;
        writeln!(suite.checks, "#[test]\nfn {name}() {{")?;
        for path in topics {
            writeln!(
                suite.checks,
                "    check::<spindle_dds_idl_corpus::{name}::{path}>();"
            )?;
        }
        suite.checks.push_str("}\n");
    }
    writeln!(
        suite.modules,
        "/// Files that compile.\npub const ACCEPTED: usize = {};",
        files.len()
    )?;
    suite.finish()?;
    Ok(())
}
