//! `spindle idl`.

use std::path::PathBuf;
use std::process::ExitCode;

use spindle_dds_idl::{Options, compile};

/// What can be done with IDL files.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    /// Compile files as one, as a build.rs does, and list what is wrong with them
    /// as `file:line:column: message`.
    Check {
        /// The files.
        #[arg(required = true)]
        files: Vec<PathBuf>,
        /// Look for included files here too.
        #[arg(short = 'I', value_name = "DIR")]
        include: Vec<PathBuf>,
        /// Define a macro.
        #[arg(short = 'D', value_name = "NAME[=VALUE]")]
        define: Vec<String>,
    },
}

/// Findings go to the standard error, where compilers put them.
pub(crate) fn run(command: &Command) -> ExitCode {
    let Command::Check {
        files,
        include,
        define,
    } = command;
    let options = Options {
        include_dirs: include.clone(),
        defines: define.iter().map(|text| definition(text)).collect(),
    };
    let compilation = compile(files, &options);
    for diagnostic in &compilation.diagnostics {
        eprint!("{}", diagnostic.render());
    }
    match compilation.ok() {
        Ok(_) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

fn definition(text: &str) -> (String, Option<String>) {
    match text.split_once('=') {
        Some((name, value)) => (name.to_owned(), Some(value.to_owned())),
        None => (text.to_owned(), None),
    }
}
