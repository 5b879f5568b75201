//! The whole front end: files in, model and diagnostics out.

use std::path::{Path, PathBuf};

use crate::diag::{Diagnostic, Severity, Sink};
use crate::encoding::Encoding;
use crate::limits::FILE_BYTES_MAX;
use crate::model::Model;
use crate::parse::parse;
use crate::preprocess::{Disk, Preprocessor, open};
use crate::resolve::resolve;
use crate::source::{FileId, Sources};

/// How files are found and read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Options {
    /// Where `#include` looks, after the directory of the including file.
    pub include_dirs: Vec<PathBuf>,
    /// Predefined macros; one without a value is 1.
    pub defines: Vec<(String, Option<String>)>,
    /// The encoding of all files.
    pub encoding: Encoding,
}

/// The result of a compilation.
#[derive(Debug, Clone, PartialEq)]
pub struct Compilation {
    /// The checked model, usable only without errors: see [`Compilation::ok`].
    /// Its list of files is complete in either case.
    pub model: Model,
    /// All errors and warnings, in the order of files and lines.
    pub diagnostics: Vec<Diagnostic>,
}

impl Compilation {
    /// The model if there was no error.
    ///
    /// # Errors
    ///
    /// All diagnostics, warnings too, when at least one is an error.
    pub fn ok(&self) -> Result<&Model, &[Diagnostic]> {
        let failed = self
            .diagnostics
            .iter()
            .any(|one| one.severity == Severity::Error);
        if failed {
            Err(&self.diagnostics)
        } else {
            Ok(&self.model)
        }
    }
}

/// Compiles files together: they share one tree of modules, in the order given.
///
/// Never fails and never panics: an unreadable file and any fault in a file are
/// diagnostics.
#[must_use]
pub fn compile(files: &[PathBuf], options: &Options) -> Compilation {
    let mut sources = Sources::new(options.encoding);
    let mut sink = Sink::default();
    let mut roots = Vec::new();
    for path in files {
        match open(&mut sources, path) {
            Ok(file) => roots.push(file),
            Err(reason) => sink.file_error(path, format!("cannot read the file: {reason}")),
        }
    }
    run(sources, sink, &roots, options, true)
}

/// Compiles a text, called `name` in diagnostics. `#include` looks in the include
/// directories only: the text has no directory of its own.
#[must_use]
pub fn compile_str(name: &str, text: &[u8], options: &Options) -> Compilation {
    let mut sources = Sources::new(options.encoding);
    let mut sink = Sink::default();
    let text = if text.len() > FILE_BYTES_MAX {
        let message = format!(
            "the text has {} bytes, more than {FILE_BYTES_MAX}",
            text.len()
        );
        sink.file_error(Path::new(name), message);
        b""
    } else {
        text
    };
    let root = sources.add(PathBuf::from(name), None, text);
    run(sources, sink, &[root], options, false)
}

fn run(
    mut sources: Sources,
    mut sink: Sink,
    roots: &[FileId],
    options: &Options,
    beside: bool,
) -> Compilation {
    let disk = Disk {
        beside,
        include_dirs: &options.include_dirs,
    };
    let mut preprocessor = Preprocessor::new(&mut sources, &mut sink, options, disk);
    let tokens: Vec<_> = roots.iter().map(|root| preprocessor.root(*root)).collect();
    let (exhausted, include_missing) = (preprocessor.exhausted, preprocessor.include_missing);
    // Once a limit is exceeded, further diagnostics would mislead.
    let definitions: Vec<_> = match exhausted {
        true => Vec::new(),
        false => tokens
            .iter()
            .map(|tokens| parse(tokens, &mut sink))
            .collect(),
    };
    let model = resolve(&definitions, &sources, &mut sink, include_missing);
    Compilation {
        model,
        diagnostics: sink.finish(&sources),
    }
}
