//! Where threads wait for room, or for acknowledgements.

use std::sync::atomic::{AtomicUsize, Ordering, fence};
use std::sync::{Condvar, Mutex, PoisonError};

use crate::time::Deadline;

/// A condition variable that costs nothing while nobody waits.
#[derive(Debug, Default)]
pub(super) struct Room {
    waiters: AtomicUsize,
    mutex: Mutex<()>,
    changed: Condvar,
}

impl Room {
    /// Something changed: whoever waits tries again. Takes the lock, which is
    /// held for one attempt at most, only when somebody waits.
    pub(super) fn notify(&self) {
        // Pairs with the fence in `wait`: either the waiter is seen here, or
        // its attempt sees the change.
        fence(Ordering::SeqCst);
        if self.waiters.load(Ordering::SeqCst) != 0 {
            drop(self.mutex.lock().unwrap_or_else(PoisonError::into_inner));
            self.changed.notify_all();
        }
    }

    /// Blocks until `attempt` gives something, or `deadline` is over.
    pub(super) fn wait<R>(
        &self,
        deadline: Deadline,
        mut attempt: impl FnMut() -> Option<R>,
    ) -> Option<R> {
        self.waiters.fetch_add(1, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        let mut guard = self.mutex.lock().unwrap_or_else(PoisonError::into_inner);
        let result = loop {
            if let Some(result) = attempt() {
                break Some(result);
            }
            guard = match deadline.left() {
                None => break None,
                Some(None) => self
                    .changed
                    .wait(guard)
                    .unwrap_or_else(PoisonError::into_inner),
                Some(Some(left)) => {
                    let waited = self.changed.wait_timeout(guard, left);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
            };
        };
        drop(guard);
        self.waiters.fetch_sub(1, Ordering::SeqCst);
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use spindle_dds_qos::Duration;
    use std::sync::Arc;

    #[test]
    fn a_waiter_is_woken_or_gives_up() {
        let room = Arc::new(Room::default());
        let value = Arc::new(AtomicUsize::new(0));
        let nothing: Option<()> = room.wait(Deadline::after(Duration::from_millis(5)), || None);
        assert_eq!(nothing, None);
        let waiter = {
            let (room, value) = (room.clone(), value.clone());
            std::thread::spawn(move || {
                room.wait(Deadline::after(Duration::INFINITE), || {
                    let value = value.load(Ordering::SeqCst);
                    (value == 100).then_some(value)
                })
            })
        };
        for _ in 0..100 {
            value.fetch_add(1, Ordering::SeqCst);
            room.notify();
        }
        assert_eq!(waiter.join().unwrap(), Some(100));
    }
}
