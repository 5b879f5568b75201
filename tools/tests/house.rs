//! The house rules that a machine can check: floors, unsafe, names.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use cargo_metadata::{DependencyKind, MetadataCommand};

/// Packages and floors, as in ARCHITECTURE.md: a package imports only from
/// packages on floors below.
const FLOORS: &[(&str, u32)] = &[
    // What generated code and the compiler of types both need.
    ("spindle-dds-idl-runtime", 0),
    // Knows of processes alone.
    ("spindle-dds-children", 0),
    ("spindle-dds-transport", 1),
    ("spindle-dds-xtypes", 1),
    ("spindle-dds-qos", 2),
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
    "spindle-dds-children",
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

/// What the published packages are built from asks for no newer compiler than they name.
/// `clippy::incompatible_msrv` looks for what the standard library got later.
#[test]
fn dependencies_build_with_the_named_compiler() {
    let metadata = MetadataCommand::new()
        .manifest_path(root().join("Cargo.toml"))
        .other_options(
            ["--offline", "--filter-platform=x86_64-unknown-linux-gnu"].map(String::from),
        )
        .exec()
        .expect("cargo metadata runs offline");
    let graph = metadata.resolve.as_ref().expect("a graph");
    let own = metadata.workspace_packages();
    let published = own.iter().filter(|package| package.publish.is_none());
    let mut open: Vec<_> = published.map(|package| &package.id).collect();
    let minimum = metadata[open[0]].rust_version.clone().expect("a version");
    let mut seen = BTreeSet::new();
    while let Some(id) = open.pop() {
        if !seen.insert(id) {
            continue;
        }
        let package = &metadata[id];
        let newer = package
            .rust_version
            .as_ref()
            .filter(|version| **version > minimum);
        assert_eq!(newer, None, "{} asks for more than {minimum}", package.name);
        let node = graph
            .nodes
            .iter()
            .find(|node| node.id == *id)
            .expect("a node");
        let is_built = |kinds: &[cargo_metadata::DepKindInfo]| {
            kinds
                .iter()
                .any(|kind| kind.kind != DependencyKind::Development)
        };
        open.extend(
            node.deps
                .iter()
                .filter(|dep| is_built(&dep.dep_kinds))
                .map(|dep| &dep.pkg),
        );
    }
    assert!(seen.len() > own.len(), "only {} packages", seen.len());
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

/// Crates whose threads run in an application.
const IN_APPLICATIONS: &[&str] = &[
    "dds-api",
    "dds-core",
    "transport-rdma",
    "qos-profiles",
    "idl/runtime",
    "idl/xtypes",
];

/// A thread of the library blocks the signals of the application: one place starts all.
#[test]
fn threads_of_the_library_are_started_in_one_place() {
    let mut files = Vec::new();
    for library in IN_APPLICATIONS {
        sources(&root().join(library).join("src"), &mut files);
    }
    let starter = Path::new("transport-rdma/src/library_thread.rs");
    let is_test = |file: &Path| {
        let name = |part: std::path::Component<'_>| {
            let part = part.as_os_str().to_string_lossy();
            matches!(part.trim_end_matches(".rs"), "tests" | "loom_models")
        };
        file.components().any(name)
    };
    files.retain(|file| !is_test(file.strip_prefix(root()).expect("a file of the project")));
    assert!(files.iter().any(|file| file.ends_with(starter)));
    for file in files.iter().filter(|file| !file.ends_with(starter)) {
        let text = fs::read_to_string(file).expect("a source file");
        // Tests follow at the end.
        let product = text.split("\nmod tests {").next().unwrap_or_default();
        let starts = ["thread::spawn", "thread::Builder", "scope.spawn("];
        for start in starts {
            assert!(
                !product.contains(start),
                "{}: {start}: use LibraryThread",
                file.display()
            );
        }
    }
}

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
    for id in &listed {
        assert!(
            mutants.iter().any(|named| named == id),
            "no mutant violates {id}"
        );
    }
    let mut files = Vec::new();
    sources(&root().join("transport-rdma/src"), &mut files);
    let contract: String = files
        .iter()
        .map(|file| fs::read_to_string(file).expect("a source file"))
        .collect();
    for id in &mutants {
        // A clause of the fabric, or a property of lives.
        let is_known = match id.starts_with('F') {
            true => contract.contains(id.as_str()),
            false => listed.contains(&id.as_str()),
        };
        assert!(is_known, "a mutant violates {id}, which is not in the docs");
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

/// The library crates whose public types have one name each: folder and name.
const LIBRARIES: &[&str] = &[
    "dds-api",
    "dds-core",
    "transport-rdma",
    "qos-profiles",
    "idl",
    "idl/runtime",
    "idl/xtypes",
];

/// Names that public types of several library crates have, and why that is right.
const HOMONYMS: &[(&[&str], &str)] = &[
    (
        &[
            "Alias",
            "AnnotationParameter",
            "BitField",
            "Bitmask",
            "Bitset",
            "Branch",
            "Discriminator",
            "Element",
            "Enum",
            "Extensibility",
            "Flag",
            "Primitive",
            "Range",
            "Struct",
            "TryConstruct",
            "Type",
            "Union",
            "Value",
        ],
        "XTypes' own words: the compiler's model, the runtime's trait and the type description of \
         the same construct",
    ),
    (
        &["Member"],
        "XTypes' member of a type, and the member of a view: each the word of its field",
    ),
    (
        &["Trim"],
        "the ragged trim of a view change, and XTypes' TRIM: each the word of its field",
    ),
    (
        &["Diagnostic", "Severity"],
        "what compilers call a finding and its weight; the readers of IDL and of QoS profiles do \
         not depend on each other",
    ),
    (
        &["Result"],
        "Rust's habit: the alias with the crate's own error",
    ),
];

/// The names of public types that a source file declares.
fn public_types(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter_map(|line| {
        let line = line.trim_start().strip_prefix("pub ")?;
        let line = line.strip_prefix("unsafe ").unwrap_or(line);
        let (kind, rest) = line.split_once(' ')?;
        let is_type = ["struct", "enum", "trait", "type", "union"].contains(&kind);
        let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_');
        let name = rest.split_at(end.unwrap_or(rest.len())).0;
        // Macros declare types whose names begin with `$`.
        (is_type && !name.is_empty()).then_some(name)
    })
}

/// A public type has one name in the whole workspace: two crates do not use the same name for
/// different things.
#[test]
fn public_types_of_different_crates_have_different_names() {
    let mut crates_of: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for library in LIBRARIES {
        let mut files = Vec::new();
        sources(&root().join(library).join("src"), &mut files);
        for file in files {
            let text = fs::read_to_string(&file).expect("a source file");
            for name in public_types(&text) {
                let crates = crates_of.entry(name.to_owned()).or_default();
                if !crates.contains(library) {
                    crates.push(library);
                }
            }
        }
    }
    let argued: Vec<&str> = HOMONYMS
        .iter()
        .flat_map(|(names, _)| *names)
        .copied()
        .collect();
    let homonyms = crates_of.iter().filter(|(_, crates)| crates.len() > 1);
    let homonyms: BTreeMap<&str, &Vec<&str>> = homonyms
        .map(|(name, crates)| (name.as_str(), crates))
        .collect();
    for (name, crates) in &homonyms {
        assert!(
            argued.contains(name),
            "{name} is a public type of {}: rename one of them",
            crates.join(", ")
        );
    }
    for name in argued {
        assert!(homonyms.contains_key(name), "{name} is no homonym any more");
    }
}

/// Words with which sentences speak of people instead of the thing that acts.
const WORDS: [&str; 3] = [
    concat!("who", "ever"),
    concat!("no", "body"),
    concat!("some", "body"),
];

fn texts(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).expect("a folder").flatten() {
        let path = entry.path();
        match path.is_dir() {
            true => texts(&path, found),
            false => found.push(path),
        }
    }
}

#[test]
fn subjects_of_sentences_are_things() {
    let mut files = Vec::new();
    sources(&root(), &mut files);
    files.retain(|file| file.components().any(|it| it.as_os_str() == "src"));
    texts(&root().join("docs"), &mut files);
    // Names of earlier trees are quoted there.
    files.retain(|file| !file.ends_with("architecture/renames.md"));
    let mut found = Vec::new();
    for file in files {
        // Not every file of the docs is text.
        let text = fs::read_to_string(&file).unwrap_or_default().to_lowercase();
        for (number, line) in (1..).zip(text.lines()) {
            if WORDS.iter().any(|word| line.contains(word)) {
                found.push(format!("{}:{number}: {}", file.display(), line.trim()));
            }
        }
    }
    assert!(
        found.is_empty(),
        "say which thing acts, in these lines:\n{}",
        found.join("\n")
    );
}
