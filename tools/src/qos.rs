//! `spindle qos`.

use std::path::PathBuf;
use std::process::ExitCode;

use spindle_dds_qos::{QosProvider, Severity};

/// What can be done with files of QoS profiles.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    /// Read files as one, as a participant does, and list what is wrong with them,
    /// and what is not supported yet, as `file:line:column: message`.
    Check {
        /// The files.
        #[arg(required = true)]
        files: Vec<PathBuf>,
    },
}

/// Findings go to the standard error, where compilers put them.
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
