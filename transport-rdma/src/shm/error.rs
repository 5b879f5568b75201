//! Errors of setting up a member's resources on this host.

use std::io;
use std::path::PathBuf;

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
    #[error("{wanted} bytes of shared memory for a row cannot be obtained: {hint} ({source})")]
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
    /// For `map_err`.
    pub(crate) fn system<E: Into<io::Error>>(what: &'static str) -> impl Fn(E) -> Self {
        move |source| Self::System {
            what,
            source: source.into(),
        }
    }
}
