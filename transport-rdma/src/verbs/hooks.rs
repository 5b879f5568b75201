//! Callbacks of the RDMA transport, and the settings of its thread.

use crate::tcp::WakeHook;
use crate::thread_settings::ThreadSettings;

/// Callbacks to the station. Called by any thread, without a lock held; they return soon.
pub(crate) struct Hooks {
    /// Wakes the sleeper of this process on behalf of a peer, if it wants to be woken for
    /// this reason, and counts it first.
    pub(crate) wake: WakeHook,
    /// The queue pair of a peer has failed, with the reason. Called once for each, unless it
    /// was closed before; the callee closes it.
    pub(crate) failed: Box<dyn Fn(u128, String) + Send + Sync>,
    /// The peer's hello was received over its queue pair: this direction works.
    pub(crate) proved: Box<dyn Fn(u128) + Send + Sync>,
    /// How its thread is scheduled.
    pub(crate) io: ThreadSettings,
}
