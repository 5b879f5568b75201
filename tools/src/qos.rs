//! `spindle qos`.

use std::path::PathBuf;
use std::process::ExitCode;

use spindle_dds_qos::{QosProvider, Severity};

/// The commands for files of QoS profiles.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    /// Read files together, as a participant does, and list errors and unsupported settings as
    /// `file:line:column: message`.
    Check {
        /// The files.
        #[arg(required = true)]
        files: Vec<PathBuf>,
    },
}

/// Prints findings to the standard error, as compilers do.
pub(crate) fn run(command: &Command) -> ExitCode {
    let Command::Check { files } = command;
    let provider = match QosProvider::from_files(files) {
        Ok(provider) => provider,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::FAILURE;
        }
    };
    let remarks = provider.check();
    for remark in &remarks {
        eprintln!("{remark}");
    }
    match remarks
        .iter()
        .any(|remark| remark.severity == Severity::Error)
    {
        false => ExitCode::SUCCESS,
        true => ExitCode::FAILURE,
    }
}
