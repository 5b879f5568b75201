//! Why a command fails.

use std::io;
use std::path::{Path, PathBuf};

use spindle_dds::log::{LogError, MendError};

/// Reasons for a command to fail.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failure {
    /// What is wrong has been printed.
    #[error("logs are damaged or different")]
    Found,
    #[error("cannot write: {0}")]
    Output(io::Error),
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    #[error("{}: {error}", .path.display())]
    Directory { path: PathBuf, error: io::Error },
    #[error("{}: {error}", .path.display())]
    Log { path: PathBuf, error: LogError },
    #[error("{}: it cannot be mended: {error}", .path.display())]
    Mend { path: PathBuf, error: MendError },
    #[error("{}: a participant writes these logs: it has to end first", .0.display())]
    InUse(PathBuf),
    #[error("{0}")]
    Selection(String),
}

impl Failure {
    /// Of a directory that cannot be read or written.
    pub(super) fn directory(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |error| Self::Directory { path, error }
    }

    /// Of a log.
    pub(super) fn log(path: &Path) -> impl FnOnce(LogError) -> Self {
        let path = path.to_owned();
        move |error| Self::Log { path, error }
    }
}
