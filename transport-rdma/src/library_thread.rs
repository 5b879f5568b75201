//! How the library starts its threads: named, and with all signals blocked that an application may
//! want to handle.
//!
//! A signal for a process goes to any of its threads that does not block it. A program that blocks
//! SIGTERM and reads a signalfd must get it there, and a handler of the application must not run on
//! the thread that has the heartbeat. Signals that the running instruction causes (a bad address,
//! an illegal instruction, `abort`) are not blocked: a blocked one ends the process without its
//! handler.

use std::io;
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::mpsc;
use std::thread::{self, JoinHandle, Scope, ScopedJoinHandle};

use crate::thread_settings::ThreadSettings;

/// Signals that a thread raises itself.
const SYNCHRONOUS: [libc::c_int; 7] = [
    libc::SIGSEGV,
    libc::SIGBUS,
    libc::SIGILL,
    libc::SIGFPE,
    libc::SIGTRAP,
    libc::SIGSYS,
    libc::SIGABRT,
];

/// A thread of the library that is to be started. No other way to start one is used in the crates
/// of the product.
#[derive(Debug)]
pub struct LibraryThread(thread::Builder);

impl LibraryThread {
    /// A thread of this name. Linux shows its first 15 bytes.
    pub fn named(name: &str) -> Self {
        Self(thread::Builder::new().name(name.to_owned()))
    }

    /// With this many bytes of stack.
    #[must_use]
    pub fn stack_size(self, bytes: usize) -> Self {
        Self(self.0.stack_size(bytes))
    }

    /// Starts it.
    ///
    /// # Errors
    /// When the system has no thread, or no memory for it.
    pub fn spawn<T: Send + 'static>(
        self,
        run: impl FnOnce() -> T + Send + 'static,
    ) -> io::Result<JoinHandle<T>> {
        with_signals_blocked(|| self.0.spawn(run))
    }

    /// Starts it with settings, which it has before it runs `run`.
    ///
    /// # Errors
    /// As for [`spawn`](Self::spawn); or the system refuses the settings. Then the thread has ended
    /// without calling `run`.
    pub fn spawn_with(
        self,
        settings: &ThreadSettings,
        run: impl FnOnce() + Send + 'static,
    ) -> io::Result<JoinHandle<()>> {
        if settings.is_empty() {
            return self.spawn(run);
        }
        let (settings, (sender, applied)) = (*settings, mpsc::channel());
        let thread = self.spawn(move || {
            let result = settings.apply();
            let is_applied = result.is_ok();
            // The starter waits for it.
            let _ = sender.send(result);
            if is_applied {
                run();
            }
        })?;
        let ended = |_| Err(io::Error::other("it has ended"));
        match applied.recv().unwrap_or_else(ended) {
            Ok(()) => Ok(thread),
            Err(error) => {
                // A panic was reported by its hook.
                let _ = thread.join();
                Err(error)
            }
        }
    }

    /// Starts it in a scope, which it does not outlive.
    ///
    /// # Errors
    /// As for [`spawn`](Self::spawn).
    pub fn spawn_scoped<'scope, T: Send + 'scope>(
        self,
        scope: &'scope Scope<'scope, '_>,
        run: impl FnOnce() -> T + Send + 'scope,
    ) -> io::Result<ScopedJoinHandle<'scope, T>> {
        with_signals_blocked(|| self.0.spawn_scoped(scope, run))
    }
}

/// A thread inherits the signal mask of the one that starts it: so the mask is set before it runs
/// any code. Signals that come meanwhile are handled when the mask is restored.
fn with_signals_blocked<R>(start: impl FnOnce() -> R) -> R {
    let _restored = Restored(change_mask(libc::SIG_BLOCK, &asynchronous()));
    start()
}

/// Restores the calling thread's signal mask, if it was changed.
struct Restored(Option<libc::sigset_t>);

impl Drop for Restored {
    fn drop(&mut self) {
        if let Some(before) = &self.0 {
            change_mask(libc::SIG_SETMASK, before);
        }
    }
}

/// All signals but those of [`SYNCHRONOUS`].
fn asynchronous() -> libc::sigset_t {
    let mut set = MaybeUninit::uninit();
    // SAFETY: `set` has room for a set, which the call initializes.
    unsafe { libc::sigfillset(set.as_mut_ptr()) };
    // SAFETY: initialized by the call above, which cannot fail.
    let mut set = unsafe { set.assume_init() };
    for signal in SYNCHRONOUS {
        // SAFETY: an initialized set, and the number of a signal.
        unsafe { libc::sigdelset(&raw mut set, signal) };
    }
    set
}

/// Changes the calling thread's mask; returns the mask before, or `None` if it is unchanged.
fn change_mask(how: libc::c_int, set: &libc::sigset_t) -> Option<libc::sigset_t> {
    let mut before = MaybeUninit::uninit();
    // SAFETY: both point to sets that live during the call; the second one may be uninitialized.
    let failed = unsafe { libc::pthread_sigmask(how, ptr::from_ref(set), before.as_mut_ptr()) };
    // SAFETY: initialized by the call, as it has not failed.
    (failed == 0).then(|| unsafe { before.assume_init() })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The signals, of the first 64, that the calling thread blocks.
    fn blocked() -> Vec<libc::c_int> {
        let nothing = MaybeUninit::<libc::sigset_t>::zeroed();
        // SAFETY: no signals, as a set of zeros.
        let nothing = unsafe { nothing.assume_init() };
        let mask = change_mask(libc::SIG_BLOCK, &nothing).expect("a mask");
        // SAFETY: an initialized set, and numbers of signals.
        let is_blocked = |signal| unsafe { libc::sigismember(&raw const mask, signal) } == 1;
        (1..=64).filter(|signal| is_blocked(*signal)).collect()
    }

    #[test]
    fn a_thread_blocks_what_an_application_may_handle_and_its_starter_is_as_before() {
        let before = blocked();
        let inside = LibraryThread::named("spindle-test").spawn(blocked);
        let inside = inside.expect("a thread").join().expect("it ends");
        for signal in [libc::SIGTERM, libc::SIGINT, libc::SIGUSR1, libc::SIGALRM] {
            assert!(inside.contains(&signal), "{signal} of {inside:?}");
        }
        for signal in SYNCHRONOUS {
            assert!(!inside.contains(&signal), "{signal} of {inside:?}");
        }
        assert_eq!(blocked(), before);
        let scoped = thread::scope(|scope| {
            let thread = LibraryThread::named("spindle-test").spawn_scoped(scope, blocked);
            thread.expect("a thread").join().expect("it ends")
        });
        assert_eq!(scoped, inside);
        assert_eq!(blocked(), before);
    }
}
