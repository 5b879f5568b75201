//! Where threads wait for room, or for acknowledgements.
//!
//! Each subgroup has a place of its own: who waits for one topic is not woken for
//! each acknowledgement of another, and so does not slow it down.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering, fence};
use std::sync::{Condvar, Mutex, PoisonError};

use spindle_dds_core::SubgroupId;

use crate::time::Deadline;

/// Condition variables that cost nothing while nobody waits.
#[derive(Debug)]
pub(super) struct Room {
    waiters: AtomicUsize,
    /// In the order of the subgroups.
    places: Box<[Place]>,
}

/// Where the threads wait that are after one subgroup.
#[derive(Debug)]
struct Place {
    subgroup: SubgroupId,
    waiters: AtomicUsize,
    /// Changes of the subgroup when threads were woken last.
    told: AtomicU64,
    mutex: Mutex<()>,
    changed: Condvar,
}

impl Room {
    /// `subgroups` are in order.
    pub(super) fn new(subgroups: impl Iterator<Item = SubgroupId>) -> Self {
        let place = |subgroup| Place {
            subgroup,
            waiters: AtomicUsize::new(0),
            told: AtomicU64::new(0),
            mutex: Mutex::new(()),
            changed: Condvar::new(),
        };
        Self {
            waiters: AtomicUsize::new(0),
            places: subgroups.map(place).collect(),
        }
    }

    /// Something changed; `changes` counts for each subgroup how often that was.
    /// Whoever waits there tries again. Takes a lock, which is held for one
    /// attempt at most, only when somebody waits for what has changed.
    pub(super) fn notify(&self, changes: impl Fn(SubgroupId) -> u64) {
        // Pairs with the fence in `wait`: either the waiter is seen here, or
        // its attempt sees the change.
        fence(Ordering::SeqCst);
        if self.waiters.load(Ordering::SeqCst) == 0 {
            return;
        }
        for place in self.occupied() {
            // Who finds that somebody else has told it leaves the waking to that one,
            // who takes the lock after this change too.
            let changes = changes(place.subgroup);
            if place.told.swap(changes, Ordering::SeqCst) != changes {
                place.wake();
            }
        }
    }

    /// Whoever waits for this subgroup tries again: room came back that the engine
    /// knows nothing of.
    pub(super) fn tell(&self, subgroup: SubgroupId) {
        // As in `notify`.
        fence(Ordering::SeqCst);
        let mut places = self.occupied();
        if let Some(place) = places.find(|place| place.subgroup == subgroup) {
            place.wake();
        }
    }

    /// Everybody tries again: it is over.
    pub(super) fn notify_all(&self) {
        fence(Ordering::SeqCst);
        self.occupied().for_each(Place::wake);
    }

    fn occupied(&self) -> impl Iterator<Item = &Place> {
        let places = self.places.iter();
        places.filter(|place| place.waiters.load(Ordering::SeqCst) != 0)
    }

    /// Blocks until `attempt` gives something, or `deadline` is over. `attempt` is
    /// repeated when the subgroup has changed; of one that this participant is no
    /// member of, it never is.
    pub(super) fn wait<R>(
        &self,
        subgroup: SubgroupId,
        deadline: Deadline,
        mut attempt: impl FnMut() -> Option<R>,
    ) -> Option<R> {
        let place = self
            .places
            .binary_search_by_key(&subgroup, |place| place.subgroup);
        let Ok(place) = place.map(|at| &self.places[at]) else {
            return attempt();
        };
        place.waiters.fetch_add(1, Ordering::SeqCst);
        self.waiters.fetch_add(1, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        let result = place.wait(deadline, &mut attempt);
        self.waiters.fetch_sub(1, Ordering::SeqCst);
        place.waiters.fetch_sub(1, Ordering::SeqCst);
        result
    }
}

impl Place {
    fn wake(&self) {
        drop(self.mutex.lock().unwrap_or_else(PoisonError::into_inner));
        self.changed.notify_all();
    }

    fn wait<R>(&self, deadline: Deadline, attempt: &mut impl FnMut() -> Option<R>) -> Option<R> {
        let mut guard = self.mutex.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(result) = attempt() {
                return Some(result);
            }
            guard = match deadline.left() {
                None => return None,
                Some(None) => self
                    .changed
                    .wait(guard)
                    .unwrap_or_else(PoisonError::into_inner),
                Some(Some(left)) => {
                    let waited = self.changed.wait_timeout(guard, left);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use spindle_dds_qos::Duration;
    use std::sync::Arc;

    const HERE: SubgroupId = SubgroupId(3);
    const ELSEWHERE: SubgroupId = SubgroupId(7);

    fn room() -> Arc<Room> {
        Arc::new(Room::new([HERE, ELSEWHERE].into_iter()))
    }

    #[test]
    fn a_waiter_is_woken_or_gives_up() {
        let room = room();
        let value = Arc::new(AtomicU64::new(0));
        let soon = Deadline::after(Duration::from_millis(5));
        let nothing: Option<()> = room.wait(HERE, soon, || None);
        assert_eq!(nothing, None);
        let waiter = {
            let (room, value) = (room.clone(), value.clone());
            std::thread::spawn(move || {
                room.wait(HERE, Deadline::after(Duration::INFINITE), || {
                    let value = value.load(Ordering::SeqCst);
                    (value == 100).then_some(value)
                })
            })
        };
        for _ in 0..100 {
            value.fetch_add(1, Ordering::SeqCst);
            room.notify(|_| value.load(Ordering::SeqCst));
        }
        assert_eq!(waiter.join().unwrap(), Some(100));
    }

    #[test]
    fn changes_elsewhere_wake_nobody_here() {
        let room = room();
        let (attempts, over) = (AtomicU64::new(0), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| {
                room.wait(HERE, Deadline::after(Duration::INFINITE), || {
                    attempts.fetch_add(1, Ordering::SeqCst);
                    (over.load(Ordering::SeqCst) == 1).then_some(())
                })
            });
            while attempts.load(Ordering::SeqCst) == 0 {
                std::thread::yield_now();
            }
            for change in 1..=1000 {
                room.notify(|subgroup| if subgroup == HERE { 0 } else { change });
            }
            over.store(1, Ordering::SeqCst);
            room.notify_all();
            assert_eq!(waiter.join().unwrap(), Some(()));
        });
        // The first and the last; the system may wake a thread for no reason.
        let attempts = attempts.load(Ordering::SeqCst);
        assert!(attempts < 100, "{attempts} attempts");
    }
}
