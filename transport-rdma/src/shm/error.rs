//! Errors of setting up a member's resources on this host.

use std::io;
use std::path::{Path, PathBuf};

use crate::retry::{Classified, ErrorClass};

/// Why a station, a registry or a row could not be set up.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SetupError {
    /// The domain's directory cannot be used.
    #[error("the domain directory {} {problem}", path.display())]
    Directory {
        /// Its path.
        path: PathBuf,
        /// What is wrong, and what would be right.
        problem: String,
    },
    /// The domain's directory, or a file in it, cannot be opened, or given the room that it
    /// needs, or written.
    #[error("{} cannot be {what}: {source}", path.display())]
    Record {
        /// The file.
        path: PathBuf,
        /// What was attempted.
        what: &'static str,
        /// What the kernel said.
        source: io::Error,
    },
    /// Other members of this host are in a view that does not have this member: its own
    /// view never replaces that one.
    #[error(
        "domain {domain} is at view {there} on this host, without member {id:032x}: its view \
         {view} comes too late, or is one of another group"
    )]
    Elsewhere {
        /// The domain.
        domain: u32,
        /// The view recorded on this host.
        there: u64,
        /// This member.
        id: u128,
        /// Its view.
        view: u64,
    },
    /// Another process sent something that the protocol does not allow.
    #[error("process {pid} violated the protocol: {what}")]
    ProtocolViolation {
        /// The process that sent it.
        pid: u32,
        /// What was wrong with it.
        what: String,
    },
    /// Members disagree about a row's length.
    #[error("member {rank} made a row of {theirs} bytes, {ours} were agreed")]
    RowMismatch {
        /// Rank of the row's owner.
        rank: u16,
        /// Length expected here.
        ours: u64,
        /// Length it has.
        theirs: u64,
    },
    /// The memory of a row could not be obtained.
    #[error("no shared memory for a row of {wanted} bytes: {source}: {hint}")]
    Memory {
        /// Length of the row.
        wanted: usize,
        /// What to check.
        hint: &'static str,
        /// What the kernel said.
        source: io::Error,
    },
    /// `futex_waitv` was requested and is not available.
    #[error("sleeping on futexes needs kernel 5.16; choose Auto or Event")]
    NoFutexWaitv,
    /// A system call failed unexpectedly.
    #[error("{what}: {source}")]
    System {
        /// What was attempted.
        what: &'static str,
        /// What the kernel said.
        source: io::Error,
    },
}

impl SetupError {
    /// Whether the system lacks what was asked of it: space, memory, descriptors.
    pub fn is_out_of_resources(&self) -> bool {
        match self {
            Self::Record { .. } | Self::Memory { .. } => true,
            // EAGAIN: no thread.
            Self::System { source, .. } => source.may_pass(),
            _ => false,
        }
    }

    /// Whether it is of this process, or of the file system, and says nothing of the group.
    pub fn is_local(&self) -> bool {
        match self {
            Self::Directory { .. } | Self::Record { .. } | Self::System { .. } => true,
            Self::Memory { .. } | Self::NoFutexWaitv => true,
            Self::Elsewhere { .. } | Self::ProtocolViolation { .. } | Self::RowMismatch { .. } => {
                false
            }
        }
    }

    /// What the kernel said, if it is an error of the kernel.
    fn source_of_system(&self) -> Option<&io::Error> {
        match self {
            Self::Record { source, .. }
            | Self::Memory { source, .. }
            | Self::System { source, .. } => Some(source),
            _ => None,
        }
    }

    /// An error of the file `name` of a directory, or of the directory if that is empty.
    pub(super) fn record(
        directory: &Path,
        name: &str,
        what: &'static str,
        source: impl Into<io::Error>,
    ) -> Self {
        let path = match name {
            "" => directory.to_owned(),
            name => directory.join(name),
        };
        let source = source.into();
        Self::Record { path, what, source }
    }

    /// For `map_err`.
    pub(crate) fn system<E: Into<io::Error>>(what: &'static str) -> impl Fn(E) -> Self {
        move |source| Self::System {
            what,
            source: source.into(),
        }
    }
}

impl Classified for SetupError {
    fn class(&self) -> ErrorClass {
        let source = self.source_of_system();
        source.map_or(ErrorClass::Final, Classified::class)
    }
}
