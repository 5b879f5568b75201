//! Waking the dispatch thread from threads that must not wait.

use std::sync::OnceLock;
use std::thread::{self, Thread};

/// The bell of a participant's dispatch thread. Rung before there is one, it
/// is not remembered: the thread looks at everything when it starts.
#[derive(Debug, Default)]
pub(crate) struct DispatchBell(OnceLock<Thread>);

impl DispatchBell {
    /// Never waits; a system call only when the thread sleeps.
    pub(crate) fn ring(&self) {
        if let Some(thread) = self.0.get() {
            thread.unpark();
        }
    }

    /// The calling thread is the dispatch thread.
    pub(crate) fn is_mine(&self) {
        let _ = self.0.set(thread::current());
    }
}
