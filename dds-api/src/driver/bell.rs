//! Waking the threads that run user code, from threads that must not wait.

use std::sync::OnceLock;
use std::thread::{self, Thread};

/// The bell of one thread. Rung before there is one, it is not remembered: the
/// thread looks at everything when it starts.
#[derive(Debug, Default)]
pub(crate) struct Bell(OnceLock<Thread>);

impl Bell {
    /// Never waits; a system call only when the thread sleeps.
    pub(crate) fn ring(&self) {
        if let Some(thread) = self.0.get() {
            thread.unpark();
        }
    }

    /// The calling thread is the one to wake.
    pub(crate) fn is_mine(&self) {
        let _ = self.0.set(thread::current());
    }
}

/// The bells of a participant.
#[derive(Debug, Default)]
pub(crate) struct Bells {
    /// Of the dispatch thread, which calls listeners.
    pub(crate) listeners: Bell,
    /// Of the waking thread, which no listener holds up.
    pub(crate) wakers: Bell,
}
