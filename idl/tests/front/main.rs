//! The front end through its public face: each `*.idl` in this folder is
//! compiled, and its model or its diagnostics are compared to a snapshot.
#![forbid(unsafe_code)]

mod invariants;
mod robustness;

use std::path::{Path, PathBuf};

use spindle_dds_idl::{Compilation, Diagnostic, Options, compile, compile_str, print};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/front")
}

/// Every fixture with its name, in the order of names.
fn fixtures() -> Vec<(String, Vec<u8>)> {
    let entries = std::fs::read_dir(folder()).expect("the folder of fixtures");
    let mut paths: Vec<PathBuf> = entries
        .map(|entry| entry.expect("an entry").path())
        .collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "idl"));
    paths.sort();
    let read = |path: PathBuf| {
        let name = path
            .file_name()
            .expect("a name")
            .to_string_lossy()
            .into_owned();
        (name, std::fs::read(&path).expect("a fixture"))
    };
    paths.into_iter().map(read).collect()
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
    out.replace(&format!("{}/", folder().display()), "")
}

fn check(name: &str, compilation: &Compilation) {
    let mut settings = insta::Settings::clone_current();
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!(name, show(compilation)));
}

#[test]
fn fixtures_match_their_snapshots() {
    let fixtures = fixtures();
    assert!(fixtures.len() > 10, "fixtures are found");
    for (name, text) in fixtures {
        let compilation = compile_str(&name, &text, &Options::default());
        check(name.trim_end_matches(".idl"), &compilation);
    }
}

#[test]
fn files_include_one_another() {
    let includes = folder().join("includes");
    let options = Options {
        include_dirs: vec![includes.join("lib")],
        ..Options::default()
    };
    let run = |names: &[&str]| {
        let files: Vec<PathBuf> = names.iter().map(|name| includes.join(name)).collect();
        compile(&files, &options)
    };
    check("includes", &run(&["main.idl", "other.idl"]));
    check(
        "includes_again",
        &run(&["inner/once.idl", "main.idl", "main.idl"]),
    );
    check("includes_circle", &run(&["circle.idl"]));
    check("includes_twice", &run(&["twice.idl"]));
    check("includes_missing", &run(&["nowhere.idl", "inner/once.idl"]));
}

#[test]
fn text_reads_no_files_beside_it() {
    let text = b"#include \"accepted.idl\"\nstruct S { data::All all; };";
    let inside = folder().join("text.idl");
    let name = inside.to_string_lossy();
    check(
        "text_without_directory",
        &compile_str(&name, text, &Options::default()),
    );
    let options = Options {
        include_dirs: vec![folder()],
        ..Options::default()
    };
    let compilation = compile_str(&name, text, &options);
    let model = compilation.ok().expect("the include directory was given");
    assert_eq!(model.files, [inside, folder().join("accepted.idl")]);
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
    check("defines", &compile_str("defines.idl", text, &options));
}
