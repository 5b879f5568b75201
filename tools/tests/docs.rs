//! The documentation is complete and leads somewhere: the noun of each public type is a term of
//! docs/glossary.md, or a word that DDS, XTypes, DDS-XML or Rust define; links lead to files that
//! exist; the pages that are read first are short.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The crates that applications and the engine's users see.
const CRATES: &[&str] = &[
    "dds-api/src",
    "dds-core/src",
    "transport-rdma/src",
    "qos-profiles/src",
    "idl/src",
    "idl/runtime/src",
    "idl/xtypes/src",
];

/// Words with the meaning that they have in Rust and its libraries.
const RUST: &[&str] = &[
    "action",
    "array",
    "bool",
    "bounds",
    "build",
    "builder",
    "bytes",
    "cause",
    "char",
    "choice",
    "compilation",
    "composite",
    "config",
    "count",
    "counter",
    "counters",
    "cursor",
    "diagnostic",
    "direction",
    "duration",
    "element",
    "encoder",
    "entries",
    "entry",
    "error",
    "event",
    "factory",
    "failure",
    "fault",
    "field",
    "figures",
    "form",
    "format",
    "graph",
    "hand",
    "handle",
    "hasher",
    "head",
    "histogram",
    "id",
    "index",
    "item",
    "iter",
    "json",
    "key",
    "kind",
    "latencies",
    "later",
    "layout",
    "len",
    "length",
    "level",
    "limited",
    "list",
    "location",
    "map",
    "mask",
    "measure",
    "meta",
    "mismatch",
    "model",
    "monitor",
    "mut",
    "name",
    "network",
    "node",
    "numbers",
    "open",
    "options",
    "origins",
    "outcome",
    "output",
    "pair",
    "parser",
    "part",
    "path",
    "phase",
    "place",
    "placement",
    "range",
    "reader",
    "reason",
    "record",
    "registry",
    "request",
    "resolved",
    "result",
    "rng",
    "rules",
    "scope",
    "sealed",
    "selection",
    "seq",
    "sequence",
    "serde",
    "set",
    "settings",
    "severity",
    "shape",
    "size",
    "slice",
    "slot",
    "source",
    "span",
    "spec",
    "state",
    "still",
    "string",
    "support",
    "switch",
    "text",
    "token",
    "totals",
    "traffic",
    "type",
    "update",
    "use",
    "value",
    "vec",
    "version",
    "visitor",
    "within",
    "word",
    "words",
    "writer",
];

/// Words of IDL 4.2, XTypes 1.3 and the encodings.
const TYPES: &[&str] = &[
    "alias",
    "annotation",
    "applied",
    "attribute",
    "bitfield",
    "bitmask",
    "bitset",
    "bounded",
    "boxed",
    "branch",
    "case",
    "complete",
    "consistency",
    "const",
    "constant",
    "construct",
    "decl",
    "declaration",
    "declarator",
    "default",
    "definition",
    "delimited",
    "dense",
    "described",
    "description",
    "difference",
    "discriminator",
    "double",
    "encapsulation",
    "enum",
    "enumerated",
    "enumeration",
    "equivalence",
    "exception",
    "extensibility",
    "fixed",
    "flag",
    "flags",
    "hash",
    "header",
    "identifier",
    "information",
    "interface",
    "listed",
    "literal",
    "mapped",
    "member",
    "minimal",
    "module",
    "needs",
    "object",
    "operation",
    "optional",
    "packed",
    "parameter",
    "plain",
    "preprocessor",
    "present",
    "primitive",
    "ranged",
    "representation",
    "room",
    "site",
    "struct",
    "structure",
    "together",
    "trimmable",
    "typedef",
    "union",
    "untrusted",
    "verbatim",
];

/// Words of DDS 1.4 and DDS-XML.
const DDS: &[&str] = &[
    "budget",
    "code",
    "condition",
    "data",
    "deadline",
    "durability",
    "endpoint",
    "enforcement",
    "entity",
    "filter",
    "group",
    "guid",
    "history",
    "incompatibility",
    "inconsistent",
    "info",
    "kind",
    "lifecycle",
    "lifespan",
    "limits",
    "listener",
    "liveliness",
    "order",
    "ownership",
    "participant",
    "partition",
    "peer",
    "policy",
    "presentation",
    "priority",
    "profile",
    "properties",
    "property",
    "provider",
    "publisher",
    "qos",
    "received",
    "reliability",
    "sample",
    "samples",
    "service",
    "status",
    "stream",
    "strength",
    "subscriber",
    "topic",
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn files(folder: &Path, extension: &str, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder)
        .expect("a folder of the project")
        .flatten()
    {
        let path = entry.path();
        if path.is_dir() {
            files(&path, extension, found);
        } else if path.extension().is_some_and(|it| it == extension) {
            found.push(path);
        }
    }
}

/// The name of the public type that a line declares.
fn public_type(line: &str) -> Option<&str> {
    let rest = line.trim_start().strip_prefix("pub ")?;
    let rest = rest.strip_prefix("unsafe ").unwrap_or(rest);
    let kinds = ["struct ", "enum ", "trait ", "union "];
    let rest = kinds.iter().find_map(|kind| rest.strip_prefix(kind))?;
    let end = rest.find(|c: char| !c.is_ascii_alphanumeric())?;
    Some(&rest[..end])
}

/// The last word of a name in camel case.
fn noun(name: &str) -> String {
    let at = name.rfind(|c: char| c.is_ascii_uppercase()).unwrap_or(0);
    name[at..].to_ascii_lowercase()
}

/// The words of the first column of the glossary's tables.
fn terms(glossary: &str) -> BTreeSet<String> {
    glossary
        .lines()
        .filter_map(|line| line.strip_prefix("| ")?.split(" | ").next())
        .flat_map(|term| term.split(|c: char| !c.is_ascii_alphanumeric()))
        .map(str::to_ascii_lowercase)
        .collect()
}

#[test]
fn the_noun_of_each_public_type_is_in_the_glossary() {
    let glossary = fs::read_to_string(root().join("docs/glossary.md")).expect("the glossary");
    let mut known = terms(&glossary);
    let words = [RUST, TYPES, DDS].concat();
    known.extend(words.iter().map(|word| (*word).to_owned()));
    let mut missing: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for folder in CRATES {
        let mut sources = Vec::new();
        files(&root().join(folder), "rs", &mut sources);
        for file in sources {
            let text = fs::read_to_string(&file).expect("a source file");
            for name in text.lines().filter_map(public_type) {
                let noun = noun(name);
                if !known.contains(&noun) && !known.contains(noun.trim_end_matches('s')) {
                    missing.entry(noun).or_default().push(name.to_owned());
                }
            }
        }
    }
    assert!(missing.is_empty(), "not in docs/glossary.md: {missing:#?}");
}

/// The targets of the links of a page in Markdown: `[text](target)`.
fn links(page: &str) -> impl Iterator<Item = &str> {
    page.split("](")
        .skip(1)
        .filter_map(|rest| rest.split(')').next())
}

#[test]
fn links_lead_to_files_that_exist() {
    let mut pages = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"]
        .map(|name| root().join(name))
        .to_vec();
    files(&root().join("docs"), "md", &mut pages);
    for page in pages {
        let text = fs::read_to_string(&page).expect("a page");
        let folder = page.parent().expect("the folder of a page");
        for link in links(&text).filter(|link| !link.starts_with("http")) {
            let file = link.split('#').next().unwrap_or(link);
            assert!(
                file.is_empty() || folder.join(file).exists(),
                "{}: {link} leads nowhere",
                page.display()
            );
        }
    }
}

#[test]
fn the_pages_that_are_read_first_are_short() {
    for name in ["README.md", "ARCHITECTURE.md"] {
        let text = fs::read_to_string(root().join(name)).expect("a page");
        let lines = text.lines().count();
        assert!(lines <= 150, "{name} has {lines} lines");
    }
}
