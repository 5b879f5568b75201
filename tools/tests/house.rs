//! The house rules that a machine can check: floors, unsafe, names.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use cargo_metadata::{DependencyKind, MetadataCommand};

/// Packages and floors, as in ARCHITECTURE.md: a package imports only from
/// packages on floors below.
const FLOORS: &[(&str, u32)] = &[
    // What generated code and the compiler of types both need.
    ("spindle-dds-idl-runtime", 0),
    ("spindle-dds-transport", 1),
    ("spindle-dds-xtypes", 1),
    ("spindle-dds-qos", 1),
    // Describes the types that it compiles.
    ("spindle-dds-idl", 2),
    // Compile what the compiler emits, over the runtime, to test both.
    ("spindle-dds-idl-conformance", 3),
    ("spindle-dds-test-types", 3),
    ("spindle-dds-core", 2),
    ("spindle-dds-sim", 3),
    ("spindle-dds-processes", 4),
    ("spindle-dds", 3),
    ("spindle-dds-examples", 4),
    ("spindle-dds-tools", 4),
    ("spindle-dds-instructions", 4),
    // Runs `spindle perf`, and measures the host as `spindle bench` does.
    ("spindle-dds-paper", 5),
];

/// Packages in which `unsafe` does not occur.
const SAFE: &[&str] = &[
    "spindle-dds-idl",
    "spindle-dds-idl-runtime",
    "spindle-dds-xtypes",
    "spindle-dds-qos",
    "spindle-dds-sim",
    "spindle-dds-processes",
    "spindle-dds",
    "spindle-dds-examples",
    "spindle-dds-tools",
    "spindle-dds-instructions",
    "spindle-dds-paper",
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn packages() -> Vec<cargo_metadata::Package> {
    let metadata = MetadataCommand::new()
        .manifest_path(root().join("Cargo.toml"))
        .no_deps()
        .other_options(["--offline".to_owned()])
        .exec()
        .expect("cargo metadata runs offline");
    metadata.packages
}

#[test]
fn dependencies_point_down_the_floors() {
    let floors: BTreeMap<&str, u32> = FLOORS.iter().copied().collect();
    for package in packages() {
        let name = package.name.as_str();
        let floor = *floors
            .get(name)
            .unwrap_or_else(|| panic!("{name} stands on no floor"));
        // Tests may look at anything.
        let built = package
            .dependencies
            .iter()
            .filter(|dependency| dependency.kind != DependencyKind::Development);
        for dependency in built {
            let below = floors.get(dependency.name.as_str());
            assert!(
                below.is_none_or(|below| *below < floor),
                "{name} (floor {floor}) depends on {} (floor {below:?})",
                dependency.name
            );
        }
    }
}

fn sources(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory)
        .expect("a folder of the project")
        .flatten()
    {
        let path = entry.path();
        let name = entry.file_name();
        if path.is_dir() && name != "target" && !name.to_string_lossy().starts_with('.') {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

#[test]
fn crates_that_need_no_unsafe_forbid_it() {
    for package in packages()
        .iter()
        .filter(|package| SAFE.contains(&package.name.as_str()))
    {
        for target in package
            .targets
            .iter()
            .filter(|target| target.is_lib() || target.is_bin())
        {
            let text = fs::read_to_string(&target.src_path).expect("a crate root");
            assert!(
                text.contains("#![forbid(unsafe_code)]"),
                "{}",
                target.src_path
            );
        }
    }
}

#[test]
fn the_core_takes_its_atomics_from_one_place() {
    let mut files = Vec::new();
    sources(&root().join("dds-core/src"), &mut files);
    for file in files.iter().filter(|file| !file.ends_with("sync.rs")) {
        let text = fs::read_to_string(file).expect("a source file");
        let direct = text.contains("core::sync::atomic") || text.contains("std::sync::atomic");
        assert!(
            !direct,
            "{}: use crate::sync, which loom can replace",
            file.display()
        );
    }
}

/// Properties that no mutant violates yet: their bugs are still planted by a switch.
const WITHOUT_MUTANT: &[&str] = &[
    "A1", "A4", "A5", "C1", "C2", "C3", "C4", "C5", "C6", "C7", "I8", "J5", "L4", "L7", "L8", "M3",
    "V3", "V11", "X0", "X1", "X2",
];

/// The properties that each mutant names in its line `Violates:`.
fn properties_of_mutants() -> Vec<String> {
    let mut found = Vec::new();
    let mut folders = vec![root().join("testing/mutants")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("a folder of mutants").flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|it| it == "patch") {
                let text = fs::read_to_string(&path).expect("a mutant");
                let violates = text.lines().find_map(|line| line.strip_prefix("Violates:"));
                let violates =
                    violates.unwrap_or_else(|| panic!("{} has no line Violates", path.display()));
                found.extend(violates.split_whitespace().map(str::to_owned));
            }
        }
    }
    found
}

/// Every property of docs/properties.md has a checker in the simulator and a mutant that
/// violates it; code and mutants name no property that is not listed.
#[test]
fn each_property_has_a_checker_and_a_mutant() {
    let docs = fs::read_to_string(root().join("docs/properties.md")).expect("docs/properties.md");
    let listed: Vec<&str> = docs
        .lines()
        .filter_map(|line| line.strip_prefix("| ")?.split(' ').next())
        .filter(|id| id.len() >= 2 && id.ends_with(|c: char| c.is_ascii_digit()))
        .collect();
    let mut files = Vec::new();
    sources(&root().join("testing/sim/src"), &mut files);
    let code: String = files
        .iter()
        .map(|file| fs::read_to_string(file).expect("a source file"))
        .collect();
    let mutants = properties_of_mutants();
    // A test compares two runs of one seed.
    for id in listed.iter().filter(|id| **id != "X1") {
        assert!(
            code.contains(&format!("\"{id}\"")),
            "{id} is in the docs and not in the code"
        );
    }
    for id in listed.iter().filter(|id| !WITHOUT_MUTANT.contains(id)) {
        assert!(
            mutants.iter().any(|named| named == id),
            "no mutant violates {id}"
        );
    }
    for id in &mutants {
        assert!(
            listed.contains(&id.as_str()),
            "a mutant violates {id}, which is not in the docs"
        );
    }
    for finding in code
        .split("Err((\"")
        .skip(1)
        .filter_map(|rest| rest.split('"').next())
    {
        assert!(
            listed.contains(&finding),
            "{finding} is in the code and not in the docs"
        );
    }
}

#[test]
fn nothing_is_left_for_later_in_silence() {
    let mut files = Vec::new();
    sources(&root(), &mut files);
    // Spelled apart, so that this file does not find itself.
    let words = [
        concat!("todo", "!("),
        concat!("unimplemented", "!("),
        concat!("#[ig", "nore"),
    ];
    // What cannot run everywhere, and is run by CI where it can.
    let devices = concat!(
        "#[ig",
        "nore = \"needs RDMA devices: run it in testing/rdma-vm\"]"
    );
    for file in files {
        let text = fs::read_to_string(&file).expect("a source file");
        let text = text.replace(devices, "");
        for word in words {
            assert!(!text.contains(word), "{}: {word}", file.display());
        }
    }
}

#[test]
fn the_readme_shows_the_programs_that_run() {
    let read = |path: &str| fs::read_to_string(root().join(path)).expect("a file of the project");
    let readme = read("README.md");
    for name in ["publisher", "subscriber"] {
        let program = read(&format!("examples/hello/{name}.rs"));
        let shown = program
            .split_once("#![forbid(unsafe_code)]")
            .expect("the head of a program")
            .1;
        assert!(
            readme.contains(shown.trim()),
            "the README shows another {name}"
        );
    }
    let table = read("dds-api/src/properties.rs");
    for row in table
        .lines()
        .filter_map(|line| line.strip_prefix("//! | `"))
    {
        assert!(
            readme.contains(row),
            "the README's table of properties lacks: {row}"
        );
    }
}
