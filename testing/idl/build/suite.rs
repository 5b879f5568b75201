//! Files of IDL as modules of a test binary, with the code that exercises their types.

use std::collections::BTreeSet;
use std::error::Error;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

use spindle_dds_idl::{Builder, Options, compile};

use crate::code::code;

/// What has been generated so far for one test binary: for each file a module, a module beside it
/// with the implementations that exercising its types takes, and the tests.
#[derive(Debug)]
pub(crate) struct Suite {
    /// Of the files that `finish` writes.
    name: &'static str,
    out: PathBuf,
    includes: Vec<PathBuf>,
    /// Modules for the root of the test binary.
    pub(crate) modules: String,
    /// Tests, in a module for each file, for a place that has a function `every_way`.
    pub(crate) checks: String,
}

impl Suite {
    /// Nothing yet. Included files are looked for in `includes`.
    ///
    /// # Errors
    /// `OUT_DIR` is not set: this is not a build script.
    pub(crate) fn new(name: &'static str, includes: &[&str]) -> Result<Self, Box<dyn Error>> {
        let out = env::var_os("OUT_DIR").ok_or("cargo sets OUT_DIR")?;
        Ok(Self {
            name,
            out: out.into(),
            includes: includes.iter().map(PathBuf::from).collect(),
            modules: String::new(),
            checks: String::new(),
        })
    }

    /// Compiles a file by itself to the module `name`, which is documented as `called`. Returns
    /// the paths of its topic types inside that module.
    ///
    /// # Errors
    /// The file is refused, or nothing can be written.
    pub(crate) fn add(
        &mut self,
        file: &Path,
        name: &str,
        called: &str,
    ) -> Result<Vec<String>, Box<dyn Error>> {
        // Suites may have modules of the same name, and share a folder.
        let stem = format!("{}_{name}", self.name);
        let builder = self
            .includes
            .iter()
            .fold(Builder::new(), |builder, folder| {
                builder.include_dir(folder)
            });
        builder
            .file(file)
            .runtime_path("::spindle_dds_idl_runtime")
            .out_file(format!("{stem}.rs"))
            .generate()?;
        let options = Options {
            include_dirs: self.includes.clone(),
            ..Options::default()
        };
        let compilation = compile(&[file.to_path_buf()], &options);
        let model = compilation
            .ok()
            .map_err(|_| format!("{called}: refused the second time"))?;
        let code = code(model, name)?;
        fs::write(
            self.out.join(format!("{stem}_exercise.rs")),
            code.implementations,
        )?;
        writeln!(
            self.modules,
            "/// {called}.\npub mod {name} {{\n    \
             spindle_dds_idl_runtime::include_idl!(\"{stem}\");\n}}\n\
             #[allow(clippy::all, clippy::nursery, unused)]\nmod {name}_exercise {{\n    \
             include!(concat!(env!(\"OUT_DIR\"), \"/{stem}_exercise.rs\"));\n}}"
        )?;
        writeln!(self.checks, "mod {name} {{\n{}}}", code.tests)?;
        Ok(code.topics)
    }

    /// Writes `<name>_modules.rs` and `<name>_checks.rs`.
    ///
    /// # Errors
    /// Those of writing.
    pub(crate) fn finish(self) -> io::Result<()> {
        let path = |part: &str| self.out.join(format!("{}_{part}.rs", self.name));
        fs::write(path("modules"), &self.modules)?;
        fs::write(path("checks"), &self.checks)
    }
}

/// All files of IDL in a folder and those inside of it.
///
/// # Errors
/// Those of reading folders.
pub(crate) fn files(folder: &Path) -> io::Result<BTreeSet<PathBuf>> {
    let mut found = BTreeSet::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            found.append(&mut files(&path)?);
        } else if path.extension().is_some_and(|extension| extension == "idl") {
            found.insert(path);
        }
    }
    Ok(found)
}

/// A path as the name of a module: `OpenDDS/tests.idl` is `opendds_tests`.
pub(crate) fn module_name(path: &Path) -> String {
    let text = path.with_extension("");
    let word = |c: char| match c {
        'a'..='z' | '0'..='9' => c,
        'A'..='Z' => c.to_ascii_lowercase(),
        _ => '_',
    };
    text.to_string_lossy().chars().map(word).collect()
}
