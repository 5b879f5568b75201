//! Groups of processes, and those who mean them no good: strangers, ghosts, and a
//! member that overwrites its own row.

#[path = "../../../transport-rdma/tests/fork/mod.rs"]
mod fork;
mod ghosts;
mod hostile;
mod member;
mod strangers;
#[path = "../warnings/mod.rs"]
mod warnings;

/// How many times as long as in the suite tests are to go on.
pub(crate) fn times() -> u32 {
    let times = std::env::var("SPINDLE_TEST_TIMES").ok();
    times.and_then(|times| times.parse().ok()).unwrap_or(1)
}
