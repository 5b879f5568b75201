//! The interface for build scripts.
//!
//! ```no_run
//! fn main() -> Result<(), spindle_dds_idl::BuildError> {
//!     spindle_dds_idl::Builder::new().file("idl/flight.idl").include_dir("idl").generate()
//! }
//! ```
//!
//! and then, in a module of the crate:
//!
//! ```text
//! spindle_dds::idl::include_idl!("flight");
//! ```

use std::path::{Path, PathBuf};
use std::{env, fmt, fs, io};

use crate::compile::{Options, compile};
use crate::diag::{Diagnostic, Severity};
use crate::emit::{EmitError, EmitOptions, emit};
use crate::encoding::Encoding;
use crate::model::Model;
use crate::preprocess::BUILT_IN;

/// Why nothing was generated. `Debug` prints the readable form as well, because
/// cargo shows it when `main` returns the error.
#[derive(thiserror::Error)]
pub enum BuildError {
    /// No file was named.
    #[error("no IDL file was named; call Builder::file")]
    NoFile,
    /// The IDL is wrong. The diagnostics, warnings too, in the long form.
    #[error("IDL errors:\n{}", render(.diagnostics))]
    Idl {
        /// All of them, at least one of which is an error.
        diagnostics: Vec<Diagnostic>,
        /// Every file that was read.
        files: Vec<PathBuf>,
    },
    /// The options do not fit.
    #[error(transparent)]
    Emit(#[from] EmitError),
    /// The output directory is unknown.
    #[error("OUT_DIR is not set; call from build.rs, or call Builder::out_dir")]
    NoOutDir,
    /// Writing failed.
    #[error("cannot write {}: {error}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
}

impl fmt::Debug for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

fn render(diagnostics: &[Diagnostic]) -> String {
    diagnostics.iter().map(Diagnostic::render).collect()
}

/// Collects files and options, then generates one Rust file from all of them.
#[derive(Debug, Clone, Default)]
pub struct Builder {
    files: Vec<PathBuf>,
    options: Options,
    emit: EmitOptions,
    out_file: Option<PathBuf>,
    out_dir: Option<PathBuf>,
}

impl Builder {
    /// Nothing to compile yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an IDL file, relative to the package. All files of a builder share one
    /// tree of modules; what they include is generated too, once.
    #[must_use]
    pub fn file(mut self, path: impl Into<PathBuf>) -> Self {
        self.files.push(path.into());
        self
    }

    /// Adds a directory where `#include` looks.
    #[must_use]
    pub fn include_dir(mut self, path: impl Into<PathBuf>) -> Self {
        self.options.include_dirs.push(path.into());
        self
    }

    /// Defines a macro of the preprocessor.
    #[must_use]
    pub fn define(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.options.defines.push((name.into(), Some(value.into())));
        self
    }

    /// The encoding of all files; the default is [`Encoding::Auto`].
    #[must_use]
    pub fn encoding(mut self, encoding: Encoding) -> Self {
        self.options.encoding = encoding;
        self
    }

    /// Name of the output, `flight.rs` for the first file `flight.idl` unless set.
    #[must_use]
    pub fn out_file(mut self, name: impl Into<PathBuf>) -> Self {
        self.out_file = Some(name.into());
        self
    }

    /// Directory of the output, `OUT_DIR` unless set.
    #[must_use]
    pub fn out_dir(mut self, path: impl Into<PathBuf>) -> Self {
        self.out_dir = Some(path.into());
        self
    }

    /// Path by which generated code names the runtime, `::spindle_dds::idl` unless set.
    #[must_use]
    pub fn runtime_path(mut self, path: impl Into<String>) -> Self {
        self.emit.runtime_path = path.into();
        self
    }

    /// Takes the types of an IDL module from a Rust path instead of generating
    /// them: `extern_module("ext::types", "::other_crate::types")`.
    #[must_use]
    pub fn extern_module(mut self, idl: impl Into<String>, path: impl Into<String>) -> Self {
        self.emit.extern_modules.insert(idl.into(), path.into());
        self
    }

    /// Names the Rust type of a `native` one: `native("a::Handle", "::my_crate::Handle")`.
    /// Everything declared with the native type then has that Rust type.
    #[must_use]
    pub fn native(mut self, idl: impl Into<String>, path: impl Into<String>) -> Self {
        self.emit.natives.insert(idl.into(), path.into());
        self
    }

    /// Whether owned types derive serde's traits; the default is yes.
    /// Must be off when `spindle-dds` is built without its feature `serde`.
    #[must_use]
    pub fn serde(mut self, serde: bool) -> Self {
        self.emit.serde = serde;
        self
    }

    /// Compiles and returns the Rust text and the files that were read. Writes and
    /// prints nothing.
    ///
    /// # Errors
    /// What is wrong with the IDL or the options.
    pub fn generate_string(&self) -> Result<(String, Vec<PathBuf>), BuildError> {
        let (model, _) = self.model()?;
        let text = emit(&model, &self.emit)?;
        let on_disk = |file: &PathBuf| !file.starts_with(BUILT_IN);
        Ok((text, model.files.into_iter().filter(on_disk).collect()))
    }

    /// Compiles and writes the output; for `build.rs`. Tells cargo which files to
    /// watch, and shows warnings and errors through cargo.
    ///
    /// # Errors
    /// What is wrong with the IDL or the options, or writing failed.
    pub fn generate(&self) -> Result<(), BuildError> {
        let outcome = self.model();
        if let Err(BuildError::Idl { diagnostics, files }) = &outcome {
            report(diagnostics);
            // The correction may be in any file that was read.
            self.files.iter().chain(files).for_each(|file| watch(file));
        }
        let (model, warnings) = outcome?;
        report(&warnings);
        model.files.iter().for_each(|file| watch(file));
        let text = emit(&model, &self.emit)?;
        let path = self.out_path()?;
        // An unchanged file keeps its modification time, so that cargo compiles nothing again.
        if fs::read_to_string(&path).is_ok_and(|old| old == text) {
            return Ok(());
        }
        fs::write(&path, text).map_err(|error| BuildError::Write { path, error })
    }

    fn model(&self) -> Result<(Model, Vec<Diagnostic>), BuildError> {
        if self.files.is_empty() {
            return Err(BuildError::NoFile);
        }
        let compilation = compile(&self.files, &self.options);
        if compilation
            .diagnostics
            .iter()
            .any(|one| one.severity == Severity::Error)
        {
            return Err(BuildError::Idl {
                diagnostics: compilation.diagnostics,
                files: compilation.model.files,
            });
        }
        Ok((compilation.model, compilation.diagnostics))
    }

    fn out_path(&self) -> Result<PathBuf, BuildError> {
        let directory = match &self.out_dir {
            Some(directory) => directory.clone(),
            None => env::var_os("OUT_DIR").ok_or(BuildError::NoOutDir)?.into(),
        };
        let name = match (&self.out_file, self.files.first()) {
            (Some(name), _) => name.clone(),
            (None, Some(file)) => {
                Path::new(file.file_name().unwrap_or(file.as_os_str())).with_extension("rs")
            }
            (None, None) => return Err(BuildError::NoFile),
        };
        Ok(directory.join(name))
    }
}

fn watch(file: &Path) {
    // Not on the disk: cargo would always consider it changed.
    if file.starts_with(BUILT_IN) {
        return;
    }
    println!("cargo::rerun-if-changed={}", file.display());
}

/// Prints one line per diagnostic: cargo shows no more.
fn report(diagnostics: &[Diagnostic]) {
    for diagnostic in diagnostics {
        match diagnostic.severity {
            Severity::Error => println!("cargo::error={diagnostic}"),
            Severity::Warning => println!("cargo::warning={diagnostic}"),
        }
    }
}
