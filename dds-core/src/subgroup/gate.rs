//! Whether an epoch takes commits, and whether one is under way.
//!
//! A committing thread counts itself, then looks at the status; the thread that closes the
//! gate sets the status, then looks at the count. So either the commit is
//! refused, or the closer finds it under way (a model of loom checks it).

use crate::sync::{AtomicU32, Ordering};

/// A status that rises, but for reopening, and those who passed while it was low.
#[derive(Debug)]
pub(crate) struct Gate {
    status: AtomicU32,
    inside: AtomicU32,
}

/// A commit that is under way, until this is dropped.
#[derive(Debug)]
pub(crate) struct Inside<'a>(&'a Gate);

impl Gate {
    /// An open one: the status is 0.
    pub(crate) fn new() -> Self {
        Self {
            status: AtomicU32::new(0),
            inside: AtomicU32::new(0),
        }
    }

    /// The status. What was done before it was set is visible.
    #[inline]
    pub(crate) fn status(&self) -> u32 {
        self.status.load(Ordering::Acquire)
    }

    /// Goes in; the status as it is then. Who is not to be inside at that status
    /// drops the result.
    pub(crate) fn enter(&self) -> (u32, Inside<'_>) {
        // SeqCst, both: pairs with `close` and `is_busy`.
        self.inside.fetch_add(1, Ordering::SeqCst);
        order_seq_cst();
        (self.status.load(Ordering::SeqCst), Inside(self))
    }

    /// The status rises, or stays. Whether it rose.
    pub(crate) fn close(&self, status: u32) -> bool {
        self.status.fetch_max(status, Ordering::SeqCst) < status
    }

    /// Opens the gate again, if this is its status. Whether it was.
    pub(crate) fn reopen(&self, status: u32) -> bool {
        let opened = self
            .status
            .compare_exchange(status, 0, Ordering::SeqCst, Ordering::SeqCst);
        opened.is_ok()
    }

    /// The end of an [`Inside`] that was forgotten.
    pub(crate) fn leave(&self) {
        // SeqCst: what was done inside is visible to a thread that finds the gate empty.
        self.inside.fetch_sub(1, Ordering::SeqCst);
    }

    /// Whether a commit is under way. To be asked after `close`.
    pub(crate) fn is_busy(&self) -> bool {
        order_seq_cst();
        self.inside.load(Ordering::SeqCst) != 0
    }
}

/// Loom takes SeqCst accesses for AcqRel ones, and knows fences only; elsewhere
/// the accesses themselves have one order.
fn order_seq_cst() {
    #[cfg(loom)]
    loom::sync::atomic::fence(Ordering::SeqCst);
}

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        self.0.leave();
    }
}
