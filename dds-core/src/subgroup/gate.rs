//! Whether an epoch takes commits, and whether one is under way.
//!
//! Invariant: a committing thread counts itself, then reads the status; the thread that closes the
//! gate sets the status, then reads the count. So either the commit is refused, or the closing
//! thread finds it under way. A loom model checks it.

use crate::sync::{AtomicU32, Ordering};

/// A status, and the number of commits that entered while it was low.
#[derive(Debug)]
pub(crate) struct Gate {
    /// Rises, except for `reopen`. 0 is open.
    status: AtomicU32,
    /// Commits under way.
    inside: AtomicU32,
}

/// A commit under way, until this is dropped.
#[derive(Debug)]
pub(crate) struct Inside<'a>(&'a Gate);

impl Gate {
    /// Creates an open gate, with status 0.
    pub(crate) fn new() -> Self {
        Self {
            status: AtomicU32::new(0),
            inside: AtomicU32::new(0),
        }
    }

    /// The status. Writes before it was set are visible to the caller.
    #[inline]
    pub(crate) fn status(&self) -> u32 {
        self.status.load(Ordering::Acquire)
    }

    /// Enters, and returns the status at that time. The caller drops the result if the status does
    /// not allow to be inside.
    pub(crate) fn enter(&self) -> (u32, Inside<'_>) {
        // SeqCst on both: pairs with `close` and `is_busy`.
        self.inside.fetch_add(1, Ordering::SeqCst);
        order_seq_cst();
        (self.status.load(Ordering::SeqCst), Inside(self))
    }

    /// Raises the status; a lower one has no effect. Returns whether it rose.
    pub(crate) fn close(&self, status: u32) -> bool {
        self.status.fetch_max(status, Ordering::SeqCst) < status
    }

    /// Opens the gate if this is its status. Returns whether it was.
    pub(crate) fn reopen(&self, status: u32) -> bool {
        let opened = self
            .status
            .compare_exchange(status, 0, Ordering::SeqCst, Ordering::SeqCst);
        opened.is_ok()
    }

    /// Ends an [`Inside`] that was forgotten.
    pub(crate) fn leave(&self) {
        // SeqCst: a thread that finds the gate empty sees what was done inside.
        self.inside.fetch_sub(1, Ordering::SeqCst);
    }

    /// Whether a commit is under way. Called after `close`.
    pub(crate) fn is_busy(&self) -> bool {
        order_seq_cst();
        self.inside.load(Ordering::SeqCst) != 0
    }
}

/// Loom treats SeqCst accesses as AcqRel and supports SeqCst fences only; elsewhere SeqCst accesses
/// have a single order themselves.
fn order_seq_cst() {
    #[cfg(loom)]
    loom::sync::atomic::fence(Ordering::SeqCst);
}

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        self.0.leave();
    }
}
