//! The compiler through its public interface, feature by feature. A folder is a building block
//! of IDL 4.2, an annotation, or an extension found in existing files; the result of each file
//! in it is beside it in a snapshot of the same name:
//!
//! - `taken.idl` has every form of the feature, at every place where it may occur;
//! - `refused.idl` has invalid uses of it;
//! - `code.idl` has a small type or two whose generated code uses the feature. The tests of
//!   `spindle-dds-idl-conformance` compile these files, exercise their topic types in every
//!   encoding and write the byte layouts of `bytes.snap`. A few of them, named by `SHOWN`, also
//!   have their generated code in `generated.snap`, as a reference for readers.
//!
//! A test beside the list of annotations (`src/resolve/standard.rs`) checks that each annotation
//! has a folder.
#![forbid(unsafe_code)]

mod invariants;
mod robustness;

use std::path::{Path, PathBuf};

use spindle_dds_idl::emit::{EmitOptions, emit};
use spindle_dds_idl::{Compilation, Diagnostic, Options, compile, compile_str, print};

/// Files that include each other, which are not fixtures by themselves.
const INCLUDES: &str = "preprocessor/includes";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/features")
}

/// Every fixture with its path, in the order of paths.
fn fixtures() -> Vec<(PathBuf, Vec<u8>)> {
    let mut paths = Vec::new();
    find(&root(), &mut paths);
    paths.sort();
    let read = |path: PathBuf| {
        let text = std::fs::read(&path).expect("a fixture");
        (path, text)
    };
    paths.into_iter().map(read).collect()
}

fn find(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a folder of fixtures") {
        let path = entry.expect("an entry").path();
        if path.extension().is_some_and(|extension| extension == "idl") {
            found.push(path);
        } else if path.is_dir() && !path.ends_with(INCLUDES) {
            find(&path, found);
        }
    }
}

/// The diagnostics, and the model when it is usable. Paths below the folder of
/// fixtures are shown from there.
fn show(compilation: &Compilation) -> String {
    let mut out: String = compilation
        .diagnostics
        .iter()
        .map(Diagnostic::render)
        .collect();
    match compilation.ok() {
        Ok(model) => {
            invariants::check(model);
            out.push_str(if out.is_empty() { "" } else { "\n" });
            out.push_str(&print(model));
        }
        Err(_) => out.push_str("(no model)\n"),
    }
    out.replace(&format!("{}/", root().display()), "")
}

/// Compares with the snapshot of this name in a folder of fixtures.
fn check(folder: &Path, name: &str, text: String) {
    let mut settings = insta::Settings::clone_current();
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.set_snapshot_path(root().join(folder));
    settings.bind(|| insta::assert_snapshot!(name, text));
}

#[test]
fn fixtures_match_their_snapshots() {
    for (path, text) in fixtures() {
        let name = path.file_name().expect("a name").to_string_lossy();
        let compilation = compile_str(&name, &text, &Options::default());
        match &*name {
            "taken.idl" => assert!(compilation.ok().is_ok(), "{path:?}: {}", show(&compilation)),
            "refused.idl" => assert!(!compilation.diagnostics.is_empty(), "{path:?}"),
            _ => {}
        }
        let folder = path.parent().expect("a folder");
        check(folder, name.trim_end_matches(".idl"), show(&compilation));
    }
}

/// Features whose generated code is kept as a reference: a plain structure, a mutable one with
/// keys, a union, and an interface with exceptions. `emit.rs` and `emit_types.rs` add constants,
/// enumerations, bitmasks and bitsets.
const SHOWN: [&str; 4] = [
    "annotations/final",
    "annotations/mutable",
    "core/unions",
    "interfaces",
];

#[test]
fn generated_code_matches_its_snapshots() {
    let options = EmitOptions {
        serde: false,
        ..EmitOptions::default()
    };
    for folder in SHOWN {
        let text = std::fs::read(root().join(folder).join("code.idl")).expect("a fixture");
        let compilation = compile_str("code.idl", &text, &Options::default());
        let model = compilation.ok().unwrap_or_else(|_| panic!("{folder}"));
        let code = emit(model, &options).expect("the options are right");
        check(Path::new(folder), "generated", code);
    }
}

#[test]
fn files_include_one_another() {
    let includes = root().join(INCLUDES);
    let options = Options {
        include_dirs: vec![includes.join("lib")],
        ..Options::default()
    };
    let run = |name: &str, files: &[&str]| {
        let files: Vec<PathBuf> = files.iter().map(|file| includes.join(file)).collect();
        check(&includes, name, show(&compile(&files, &options)));
    };
    run("main", &["main.idl", "other.idl"]);
    run("again", &["inner/once.idl", "main.idl", "main.idl"]);
    run("circle", &["circle.idl"]);
    run("twice", &["twice.idl"]);
    run("missing", &["nowhere.idl", "inner/once.idl"]);
}

#[test]
fn text_reads_no_files_beside_it() {
    let includes = root().join(INCLUDES);
    let text = b"#include \"inner/part.idl\"\nstruct S { Part part; };";
    let inside = includes.join("text.idl");
    let name = inside.to_string_lossy();
    let without = compile_str(&name, text, &Options::default());
    check(&includes, "text_without_directory", show(&without));
    let options = Options {
        include_dirs: vec![includes.clone()],
        ..Options::default()
    };
    let compilation = compile_str(&name, text, &options);
    let model = compilation.ok().expect("the include directory was given");
    let part = ["part.idl", "once.idl"].map(|name| includes.join("inner").join(name));
    assert!(model.files.starts_with(&[inside]), "{:?}", model.files);
    assert!(part.iter().all(|file| model.files.contains(file)));
}

#[test]
fn macros_of_the_options_are_defined() {
    let define = |name: &str, value: Option<&str>| (name.to_owned(), value.map(str::to_owned));
    let defines = vec![define("FULL", None), define("SIZE", Some("2 * 8"))];
    let options = Options {
        defines,
        ..Options::default()
    };
    let text =
        b"#ifdef FULL\nstruct S { octet a[SIZE]; };\n#endif\n#if FULL == 1\nstruct T {};\n#endif";
    let compilation = compile_str("defines.idl", text, &options);
    check(
        Path::new("preprocessor/macros"),
        "defines",
        show(&compilation),
    );
}
