//! Why the system did not give what a member needs.

use std::io;
use std::path::PathBuf;

/// Why a station, a register or a row could not be had.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SetupError {
    /// The domain's directory cannot be used.
    #[error("the domain directory {} {problem}", path.display())]
    Directory {
        /// Where.
        path: PathBuf,
        /// What is wrong, and what would be right.
        problem: String,
    },
    /// Others on this host are in a view that has not this member: its own view is
    /// never put in the place of that one.
    #[error(
        "domain {domain} is at view {there} on this host, without member {id:032x}: its view \
         {view} comes too late, or is one of another group"
    )]
    Elsewhere {
        /// The domain.
        domain: u32,
        /// The view that is there.
        there: u64,
        /// This member.
        id: u128,
        /// Its view.
        view: u64,
    },
    /// A message of the join made no sense.
    #[error("process {pid} sent something that is no part of the join: {what}")]
    Nonsense {
        /// Who sent it.
        pid: u32,
        /// What was wrong with it.
        what: String,
    },
    /// Members disagree about a row's length.
    #[error("member {rank} made a row of {theirs} bytes, {ours} were agreed")]
    RowMismatch {
        /// Whose row.
        rank: u16,
        /// Length expected here.
        ours: u64,
        /// Length it has.
        theirs: u64,
    },
    /// The memory of a row could not be had.
    #[error("{wanted} bytes of shared memory for a row cannot be had: {hint} ({source})")]
    Memory {
        /// Length of the row.
        wanted: usize,
        /// What to look at.
        hint: &'static str,
        /// What the kernel said.
        source: io::Error,
    },
    /// `futex_waitv` was asked for and cannot be used.
    #[error("sleeping on futexes needs kernel 5.16; choose Auto or Event")]
    NoFutexWaitv,
    /// A system call failed that should not.
    #[error("{what}: {source}")]
    System {
        /// What was tried.
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
