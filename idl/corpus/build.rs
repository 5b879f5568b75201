//! Compiles every file of the corpus by itself, as its owners do, lists the topic types found,
//! and writes the code that tries them.

use std::collections::BTreeSet;
use std::error::Error;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

use spindle_dds_idl::model::{Item, Model, Module, TypeDecl, TypeKind};
use spindle_dds_idl::{Builder, Options, compile, mapping};
use spindle_dds_idl_exercise::code::code;

/// The files, and `SOURCES.tsv`, which says whose they are.
const CORPUS: &str = "../tests/corpus";

/// Where the projects of the corpus have their compilers look.
const INCLUDES: [&str; 2] = [
    "../tests/corpus/OpenDDS",
    "../tests/corpus/OpenDDS/tests/DCPS/Compiler/TryConstruct",
];

fn main() -> Result<(), Box<dyn Error>> {
    let mut files = BTreeSet::new();
    find(Path::new(CORPUS), &mut files)?;
    let mut modules = String::new();
    let mut checks = String::new();
    let out = PathBuf::from(env::var_os("OUT_DIR").ok_or("cargo sets OUT_DIR")?);
    let mut accepted = 0_usize;
    for file in &files {
        let name = module_name(file);
        let builder = INCLUDES
            .iter()
            .fold(Builder::new().file(file), |builder, folder| {
                builder.include_dir(folder)
            });
        let builder = builder
            .runtime_path("::spindle_dds_idl_runtime")
            .out_file(format!("{name}.rs"));
        let shown = file.to_string_lossy();
        let called = shown.trim_start_matches(CORPUS).trim_start_matches('/');
        builder.generate()?;
        accepted += 1;
        let options = Options {
            include_dirs: INCLUDES.iter().map(PathBuf::from).collect(),
            defines: Vec::new(),
        };
        let compilation = compile(std::slice::from_ref(file), &options);
        let code = code(&compilation.model, "spindle_dds_idl_corpus", &name)?;
        fs::write(out.join(format!("{name}_tried.rs")), code.implementations)?;
        let mut types = Vec::new();
        topics(&compilation.model, &compilation.model.root, &mut types);
        writeln!(
            modules,
            "/// `{called}`.\npub mod {name} {{\n    spindle_dds_idl_runtime::include_idl!(\"{name}\");\n}}\n\
             #[allow(clippy::all, clippy::nursery, unused)]\nmod {name}_tried {{\n    \
             include!(concat!(env!(\"OUT_DIR\"), \"/{name}_tried.rs\"));\n}}"
        )?;
        writeln!(checks, "#[test]\nfn {name}() {{")?;
        for path in &types {
            writeln!(
                checks,
                "    check::<spindle_dds_idl_corpus::{name}::{path}>();"
            )?;
        }
        writeln!(checks, "}}\nmod {name} {{\n{}}}", code.tests)?;
        let tried = code.tests.matches("every_way").count();
        if tried != types.len() {
            return Err(format!("{called}: {tried} of {} types are tried", types.len()).into());
        }
    }
    writeln!(
        modules,
        "/// Files that compile.\npub const ACCEPTED: usize = {accepted};"
    )?;
    fs::write(out.join("modules.rs"), modules)?;
    fs::write(out.join("checks.rs"), checks)?;
    println!("cargo::rerun-if-changed={CORPUS}");
    Ok(())
}

fn find(folder: &Path, files: &mut BTreeSet<PathBuf>) -> std::io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            find(&path, files)?;
        } else if path.extension().is_some_and(|extension| extension == "idl") {
            files.insert(path);
        }
    }
    Ok(())
}

fn module_name(file: &Path) -> String {
    let text = file.with_extension("");
    let text = text.to_string_lossy();
    let word = |c: char| match c {
        'a'..='z' | '0'..='9' => c,
        'A'..='Z' => c.to_ascii_lowercase(),
        _ => '_',
    };
    text.trim_start_matches(CORPUS)
        .trim_start_matches('/')
        .chars()
        .map(word)
        .collect()
}

/// Paths of the types that a topic can have.
fn topics(model: &Model, module: &Module, found: &mut Vec<String>) {
    for item in &module.items {
        match item {
            Item::Module(inner) => topics(model, inner, found),
            Item::Type(id) if is_topic(&model.types[id.0]) => {
                let decl = &model.types[id.0];
                let names = decl.scope.iter().chain([&decl.name]);
                let names: Vec<String> = names.map(|name| mapping::identifier(name)).collect();
                found.push(names.join("::"));
            }
            _ => {}
        }
    }
}

fn is_topic(decl: &TypeDecl) -> bool {
    match &decl.kind {
        TypeKind::Struct(structure) => !structure.nested,
        TypeKind::Union(union) => !union.nested,
        _ => false,
    }
}
