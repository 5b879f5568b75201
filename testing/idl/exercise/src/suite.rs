//! Files of IDL as modules of a crate, with the code that tries their types: for a `build.rs`.

use std::collections::BTreeSet;
use std::error::Error;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

use spindle_dds_idl::{Builder, Options, compile};

use crate::code::code;

/// What has been generated so far: by the name of each file a module, a module beside it with
/// what it takes to try its types, and the tests.
#[derive(Debug)]
pub struct Suite {
    out: PathBuf,
    krate: String,
    includes: Vec<PathBuf>,
    /// Modules for the crate's root.
    pub modules: String,
    /// Tests, in a module for each file, for a place that has a function `every_way`.
    pub checks: String,
}

impl Suite {
    /// Nothing yet; `krate` is how tests call the crate of the modules: by its name, or `crate`.
    /// Included files are looked for in `includes`.
    ///
    /// # Errors
    /// `OUT_DIR` is not set: this is no `build.rs`.
    pub fn new(krate: &str, includes: &[&str]) -> Result<Self, Box<dyn Error>> {
        let out = env::var_os("OUT_DIR").ok_or("cargo sets OUT_DIR")?;
        Ok(Self {
            out: out.into(),
            krate: krate.into(),
            includes: includes.iter().map(PathBuf::from).collect(),
            modules: String::new(),
            checks: String::new(),
        })
    }

    /// Compiles a file by itself to the module `name`, which is documented as `called`. The
    /// paths of its topic types inside of that are returned.
    ///
    /// # Errors
    /// The file is refused, or nothing can be written.
    pub fn add(
        &mut self,
        file: &Path,
        name: &str,
        called: &str,
    ) -> Result<Vec<String>, Box<dyn Error>> {
        let builder = self
            .includes
            .iter()
            .fold(Builder::new(), |builder, folder| {
                builder.include_dir(folder)
            });
        builder
            .file(file)
            .runtime_path("::spindle_dds_idl_runtime")
            .out_file(format!("{name}.rs"))
            .generate()?;
        let options = Options {
            include_dirs: self.includes.clone(),
            defines: Vec::new(),
        };
        let compilation = compile(&[file.to_path_buf()], &options);
        let model = compilation
            .ok()
            .map_err(|_| format!("{called}: refused the second time"))?;
        let code = code(model, &self.krate, name)?;
        fs::write(
            self.out.join(format!("{name}_tried.rs")),
            code.implementations,
        )?;
        writeln!(
            self.modules,
            "/// {called}.\npub mod {name} {{\n    \
             spindle_dds_idl_runtime::include_idl!(\"{name}\");\n}}\n\
             #[allow(clippy::all, clippy::nursery, unused)]\nmod {name}_tried {{\n    \
             include!(concat!(env!(\"OUT_DIR\"), \"/{name}_tried.rs\"));\n}}"
        )?;
        writeln!(self.checks, "mod {name} {{\n{}}}", code.tests)?;
        Ok(code.topics)
    }

    /// Writes `modules.rs` and `checks.rs`.
    ///
    /// # Errors
    /// Those of writing.
    pub fn finish(self) -> io::Result<()> {
        fs::write(self.out.join("modules.rs"), self.modules)?;
        fs::write(self.out.join("checks.rs"), self.checks)
    }
}

/// All files of IDL in a folder and those inside of it.
///
/// # Errors
/// Those of reading folders.
pub fn files(folder: &Path) -> io::Result<BTreeSet<PathBuf>> {
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
pub fn module_name(path: &Path) -> String {
    let text = path.with_extension("");
    let word = |c: char| match c {
        'a'..='z' | '0'..='9' => c,
        'A'..='Z' => c.to_ascii_lowercase(),
        _ => '_',
    };
    text.to_string_lossy().chars().map(word).collect()
}
