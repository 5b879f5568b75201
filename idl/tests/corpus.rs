//! IDL files of other projects: each compiles. `corpus/SOURCES.tsv` has their origins. The tests of
//! `spindle-dds-idl-conformance` compile the Rust generated from a sample of them, `.ci/corpus` that
//! of all.
#![forbid(unsafe_code)]

#[path = "features/invariants.rs"]
mod invariants;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use spindle_dds_idl::{Compilation, Options, Severity, compile, print};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus")
}

fn find(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a folder of the corpus") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            find(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "idl") {
            found.push(path);
        }
    }
}

/// All files, by their names below the folder.
fn names() -> Vec<String> {
    let mut found = Vec::new();
    find(&folder(), &mut found);
    let name = |path: &PathBuf| {
        let below = path.strip_prefix(folder()).expect("below the folder");
        below.to_string_lossy().into_owned()
    };
    let mut names: Vec<String> = found.iter().map(name).collect();
    names.sort();
    names
}

fn compiled(name: &str) -> Compilation {
    let options = Options {
        include_dirs: vec![
            folder().join("OpenDDS"),
            folder().join("OpenDDS/tests/DCPS/Compiler/TryConstruct"),
        ],
        ..Options::default()
    };
    compile(&[folder().join(name)], &options)
}

#[test]
fn every_file_has_a_source_and_a_licence() {
    let sources = std::fs::read_to_string(folder().join("SOURCES.tsv")).expect("the list");
    let mut listed = BTreeSet::new();
    for line in sources.lines().skip(1) {
        let fields: Vec<&str> = line.split('\t').collect();
        let [file, repository, commit, path, licence, _] = fields.as_slice() else {
            panic!("{line:?} has other fields");
        };
        assert!(repository.contains('/') && commit.len() == 40, "{line}");
        assert!(file.ends_with(path), "{line}");
        let licences = ["Apache-2.0", "OpenDDS", "EPL-2.0 OR BSD-3-Clause"];
        assert!(licences.contains(licence), "{line}");
        listed.insert((*file).to_owned());
    }
    let files: BTreeSet<String> = names().into_iter().collect();
    assert_eq!(files, listed);
}

/// Each file compiles without an error to a valid model; the snapshot shows how much it declares,
/// so that a change of the result is noticed.
#[test]
fn every_file_compiles() {
    let mut text = String::new();
    for name in names() {
        let compilation = compiled(&name);
        let diagnostics = compilation.diagnostics.iter();
        let errors = diagnostics.filter(|one| one.severity == Severity::Error);
        let errors: Vec<String> = errors.map(ToString::to_string).collect();
        assert!(errors.is_empty(), "{name}: {errors:#?}");
        let model = &compilation.model;
        invariants::check(model);
        let warnings = compilation.diagnostics.len();
        let (types, constants) = (model.types.len(), model.constants.len());
        let (interfaces, lines) = (model.interfaces.len(), print(model).lines().count());
        writeln!(
            text,
            "{name}: {types} types, {constants} constants, {interfaces} interfaces, \
             {lines} lines, {warnings} warnings"
        )
        .expect("a string");
    }
    let mut settings = insta::Settings::clone_current();
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.set_snapshot_path("corpus");
    settings.bind(|| insta::assert_snapshot!("declared", text));
}
