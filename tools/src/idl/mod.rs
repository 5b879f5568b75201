//! `spindle idl`.

mod print;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::{fs, io};

use spindle_dds_idl::emit::{EmitOptions, emit};
use spindle_dds_idl::model::Model;
use spindle_dds_idl::{Encoding, Options, compile};

/// The commands for IDL files.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    /// Compile files together, as a build.rs does, and list errors as `file:line:column: message`.
    Check {
        #[command(flatten)]
        input: Input,
    },
    /// Compile files together, and write the Rust code that a build.rs writes to its OUT_DIR: to
    /// read it, or for builds without a build.rs.
    Generate {
        #[command(flatten)]
        input: Input,
        #[command(flatten)]
        output: Output,
    },
    /// Compile files together, and print the types: extensibility, member ids, keys, bounds and
    /// defaults; the sizes of samples in XCDR1 and XCDR2, the offsets of members that are the same
    /// in all samples (else `-`), and the TypeIdentifiers of XTypes.
    Print {
        #[command(flatten)]
        input: Input,
    },
}

/// The input files.
#[derive(Debug, clap::Args)]
pub(crate) struct Input {
    /// The files.
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// Also search this directory for included files.
    #[arg(short = 'I', value_name = "DIR")]
    include: Vec<PathBuf>,
    /// Define a macro.
    #[arg(short = 'D', value_name = "NAME[=VALUE]")]
    define: Vec<String>,
    /// The encoding of all files: utf-8 or iso-8859-1; auto takes a file that is not in UTF-8 for
    /// ISO 8859-1, with a warning.
    #[arg(long, value_name = "NAME", default_value_t = Encoding::Auto)]
    encoding: Encoding,
}

/// The output. The options are those of `spindle_dds_idl::Builder`.
#[derive(Debug, clap::Args)]
pub(crate) struct Output {
    /// Write to this file instead of the standard output.
    #[arg(short, long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Path of the runtime in the generated code.
    #[arg(long, value_name = "PATH", default_value = "::spindle_dds::idl")]
    runtime_path: String,
    /// Take the types of an IDL module from a Rust path.
    #[arg(long, value_name = "MODULE=PATH", value_parser = assignment)]
    extern_module: Vec<(String, String)>,
    /// Take a `native` type from a Rust path.
    #[arg(long, value_name = "NAME=PATH", value_parser = assignment)]
    native: Vec<(String, String)>,
    /// Do not derive serde's traits.
    #[arg(long)]
    no_serde: bool,
}

/// Prints findings to the standard error, as compilers do.
pub(crate) fn run(command: &Command) -> ExitCode {
    let outcome = match command {
        Command::Check { input } => input.compile().map(|_| ()),
        Command::Generate { input, output } => {
            input.compile().and_then(|model| output.write(&model))
        }
        Command::Print { input } => input
            .compile()
            .and_then(|model| put(None, &print::text(&model))),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(Reported) => ExitCode::FAILURE,
    }
}

/// An error that has been printed.
struct Reported;

impl Input {
    fn compile(&self) -> Result<Model, Reported> {
        let options = Options {
            include_dirs: self.include.clone(),
            defines: self.define.iter().map(|text| definition(text)).collect(),
            encoding: self.encoding,
        };
        let compilation = compile(&self.files, &options);
        for diagnostic in &compilation.diagnostics {
            eprint!("{}", diagnostic.render());
        }
        match compilation.ok() {
            Ok(_) => Ok(compilation.model),
            Err(_) => Err(Reported),
        }
    }
}

impl Output {
    fn write(&self, model: &Model) -> Result<(), Reported> {
        let options = EmitOptions {
            runtime_path: self.runtime_path.clone(),
            extern_modules: self.extern_module.iter().cloned().collect(),
            natives: self.native.iter().cloned().collect(),
            serde: !self.no_serde,
        };
        let text = emit(model, &options).map_err(|error| {
            eprintln!("error: {error}");
            Reported
        })?;
        put(self.out.as_deref(), &text)
    }
}

/// Writes to a file, or to the standard output.
fn put(out: Option<&Path>, text: &str) -> Result<(), Reported> {
    let written = match out {
        Some(path) => fs::write(path, text),
        None => io::Write::write_all(&mut io::stdout(), text.as_bytes()),
    };
    match written {
        Ok(()) => Ok(()),
        // The reader of the pipe has ended.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        Err(error) => {
            let place = out.unwrap_or_else(|| Path::new("the standard output"));
            eprintln!("error: cannot write {}: {error}", place.display());
            Err(Reported)
        }
    }
}

fn definition(text: &str) -> (String, Option<String>) {
    match text.split_once('=') {
        Some((name, value)) => (name.to_owned(), Some(value.to_owned())),
        None => (text.to_owned(), None),
    }
}

fn assignment(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((module, path)) => Ok((module.to_owned(), path.to_owned())),
        None => Err(format!(
            "`{text}` has no `=`; expected something like `a::b=::other::b`"
        )),
    }
}
