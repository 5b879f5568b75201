//! Groups of processes under attack: unknown processes that connect, dead processes that leave
//! sockets or records, a member that overwrites its own row, and surroundings that fail: full
//! file systems, removed directories, killed containers, resources that end, clocks that step.
//! And processes that fork or handle signals.

mod clocks;
mod failing_logs;
#[path = "../../../transport-rdma/tests/fork/mod.rs"]
mod fork;
mod forked;
mod ghosts;
mod hostile;
#[path = "../../../transport-rdma/tests/inside/mod.rs"]
mod inside;
mod member;
mod peer;
mod resources;
mod scene;
mod signals;
mod stopped;
mod strangers;
mod surroundings;
mod threads;
#[path = "../warnings/mod.rs"]
mod warnings;
mod writes;

/// By how much the tests run longer than in the suite.
pub(crate) fn times() -> u32 {
    let times = std::env::var("SPINDLE_TEST_TIMES").ok();
    times.and_then(|times| times.parse().ok()).unwrap_or(1)
}
