//! Why a group did not come together.

use std::io;
use std::path::PathBuf;

/// Why [`join`](super::join) or [`Formation::build`](super::Formation::build)
/// failed. Nothing of the attempt is left behind.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JoinError {
    /// The domain has a living group on this host already.
    #[error(
        "domain {domain} already has a running group on this host (processes {}); \
         a second one is never founded: end it first, or use another domain",
        list(members)
    )]
    GroupExists {
        /// The domain.
        domain: u32,
        /// Process ids of the group's living members.
        members: Vec<u32>,
    },
    /// Whoever came first wants a group of another size.
    #[error(
        "domain {domain} is being formed by process {founder} for {theirs} members, \
         this process wants {ours}: give every process the same group size"
    )]
    SizeMismatch {
        /// The domain.
        domain: u32,
        /// Size wanted here.
        ours: usize,
        /// Size wanted by the founder.
        theirs: usize,
        /// Process id of the founder.
        founder: u32,
    },
    /// A group of this size is not possible.
    #[error("a group has 1 to {max} members, not {wanted}")]
    GroupSize {
        /// Size wanted.
        wanted: usize,
        /// Largest size.
        max: usize,
    },
    /// The announcement does not fit a message of the join.
    #[error("the announcement has {len} bytes, at most {max} can be exchanged")]
    AnnouncementTooLong {
        /// Its length.
        len: usize,
        /// The limit.
        max: usize,
    },
    /// Not all came in time.
    #[error("domain {domain}: a group of {wanted} did not come together in time{}", come_so_far(*come))]
    Timeout {
        /// The domain.
        domain: u32,
        /// Group size.
        wanted: usize,
        /// How many were there, as far as known here.
        come: Option<usize>,
    },
    /// The domain's directory cannot be used.
    #[error("the domain directory {} {problem}", path.display())]
    Directory {
        /// Where.
        path: PathBuf,
        /// What is wrong, and what would be right.
        problem: String,
    },
    /// A member ended while the group was being built.
    #[error("process {pid} went away while the group was being built")]
    MemberLost {
        /// Its process id.
        pid: u32,
    },
    /// A member could not build its part of the group.
    #[error("process {pid} cannot build its part of the group: {reason}")]
    MemberFailed {
        /// Its process id.
        pid: u32,
        /// Its words.
        reason: String,
    },
    /// The application called it off.
    #[error("joining domain {domain} was called off")]
    Cancelled {
        /// The domain.
        domain: u32,
    },
    /// Another member gave up before the group was formed.
    #[error("domain {domain}: another member gave up while the group was being built")]
    GivenUp {
        /// The domain.
        domain: u32,
    },
    /// The member that founds the group refused this one, or gave up.
    #[error("process {founder}, which forms the group: {reason}")]
    Refused {
        /// Process id of the founder.
        founder: u32,
        /// Its words.
        reason: String,
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
    #[error("sleeping on futexes needs kernel 5.16 and at most 128 members; choose Auto or Event")]
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

impl JoinError {
    /// For `map_err`.
    pub(super) fn system<E: Into<io::Error>>(what: &'static str) -> impl Fn(E) -> Self {
        move |source| Self::System {
            what,
            source: source.into(),
        }
    }
}

fn list(members: &[u32]) -> String {
    let members: Vec<_> = members.iter().map(u32::to_string).collect();
    members.join(", ")
}

fn come_so_far(come: Option<usize>) -> String {
    come.map_or_else(String::new, |come| format!(" ({come} came)"))
}
