//! Where threads wait for room, or for acknowledgements.
//!
//! Each subgroup has a place of its own: who waits for one topic is not woken for
//! each acknowledgement of another, and so does not slow it down.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering, fence};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard};
use std::time::Instant;

use spindle_dds_core::SubgroupId;

use crate::monitor::WaitFigures;
use crate::time::Deadline;

/// Condition variables that cost nothing while nobody waits.
#[derive(Debug, Default)]
pub(crate) struct Room {
    waiters: AtomicUsize,
    /// Those where somebody has waited.
    places: RwLock<Vec<Arc<Place>>>,
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
    since: Instant,
    waits: Mutex<Waits>,
}

/// Waiting for room, of all threads that do.
#[derive(Debug, Default)]
struct Waits {
    times: u64,
    now: u64,
    /// Nanoseconds, of each wait that is not over less when it began.
    ns: u64,
}

/// A wait for room, while it lives.
#[derive(Debug)]
pub(crate) struct Waiting(Arc<Place>);

impl Drop for Waiting {
    fn drop(&mut self) {
        let now_ns = self.0.now_ns();
        let mut waits = self.0.waits();
        waits.now -= 1;
        waits.ns = waits.ns.wrapping_add(now_ns);
    }
}

impl Room {
    /// A thread waits for room in this subgroup, until the guard is dropped.
    pub(crate) fn waiting(&self, subgroup: SubgroupId) -> Waiting {
        let place = self.place(subgroup);
        let now_ns = place.now_ns();
        let mut waits = place.waits();
        waits.times += 1;
        waits.now += 1;
        waits.ns = waits.ns.wrapping_sub(now_ns);
        drop(waits);
        Waiting(place)
    }

    /// How threads have waited for room, by subgroup: those where somebody did.
    pub(crate) fn figures(&self) -> Vec<WaitFigures> {
        let places = self.places();
        let figures = places.iter().map(|place| {
            // First: who comes meanwhile comes later.
            let waits = place.waits();
            let now_ns = place.now_ns();
            WaitFigures {
                subgroup: place.subgroup.0,
                times: waits.times,
                ns: waits.ns.wrapping_add(waits.now.wrapping_mul(now_ns)),
                waiting: waits.now,
            }
        });
        figures.filter(|waits| waits.times > 0).collect()
    }

    /// Something changed; `changes` counts for each subgroup how often that was.
    /// Whoever waits there tries again. Takes a lock, which is held for one
    /// attempt at most, only when somebody waits for what has changed.
    pub(crate) fn notify(&self, changes: impl Fn(SubgroupId) -> u64) {
        // Pairs with the fence in `wait`: either the waiter is seen here, or
        // its attempt sees the change.
        fence(Ordering::SeqCst);
        if self.waiters.load(Ordering::SeqCst) == 0 {
            return;
        }
        for place in self.places().iter().filter(|place| place.is_occupied()) {
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
    pub(crate) fn tell(&self, subgroup: SubgroupId) {
        self.wake(|place| place.subgroup == subgroup);
    }

    /// Everybody tries again: lanes came or went, or it is over.
    pub(crate) fn notify_all(&self) {
        self.wake(|_| true);
    }

    fn wake(&self, whom: impl Fn(&Place) -> bool) {
        // As in `notify`.
        fence(Ordering::SeqCst);
        if self.waiters.load(Ordering::SeqCst) == 0 {
            return;
        }
        let places = self.places();
        let places = places.iter().filter(|place| place.is_occupied());
        places.filter(|place| whom(place)).for_each(|it| it.wake());
    }

    fn places(&self) -> RwLockReadGuard<'_, Vec<Arc<Place>>> {
        self.places.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn place(&self, subgroup: SubgroupId) -> Arc<Place> {
        let find = |places: &[Arc<Place>]| {
            let mut places = places.iter();
            places.find(|place| place.subgroup == subgroup).cloned()
        };
        if let Some(place) = find(&self.places()) {
            return place;
        }
        let mut places = self.places.write().unwrap_or_else(PoisonError::into_inner);
        find(&places).unwrap_or_else(|| {
            let place = Arc::new(Place {
                subgroup,
                waiters: AtomicUsize::new(0),
                told: AtomicU64::new(0),
                mutex: Mutex::new(()),
                changed: Condvar::new(),
                since: Instant::now(),
                waits: Mutex::default(),
            });
            places.push(place.clone());
            place
        })
    }

    /// Blocks until `attempt` gives something, or `deadline` is over. `attempt` is
    /// repeated when the subgroup has changed.
    pub(crate) fn wait<R>(
        &self,
        subgroup: SubgroupId,
        deadline: Deadline,
        mut attempt: impl FnMut() -> Option<R>,
    ) -> Option<R> {
        let place = self.place(subgroup);
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
    fn is_occupied(&self) -> bool {
        self.waiters.load(Ordering::SeqCst) != 0
    }

    fn waits(&self) -> MutexGuard<'_, Waits> {
        self.waits.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now_ns(&self) -> u64 {
        u64::try_from(self.since.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

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
        Arc::<Room>::default()
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
    fn waits_are_counted_while_they_last() {
        let room = room();
        assert_eq!(room.figures(), []);
        let waits = || room.figures()[0];
        let [first, second] = [0; 2].map(|_| room.waiting(HERE));
        assert_eq!((waits().times, waits().waiting), (2, 2));
        let before = waits().ns;
        while waits().ns <= before + 1000 {
            std::hint::spin_loop();
        }
        drop(first);
        assert_eq!((waits().times, waits().waiting), (2, 1));
        assert!(waits().ns > before + 1000);
        drop(second);
        let over = waits();
        assert_eq!((over.times, over.waiting), (2, 0));
        assert_eq!(waits(), over, "no time passes");
    }

    #[test]
    fn changes_elsewhere_wake_nobody_here() {
        let room = room();
        let (attempts, over) = (AtomicU64::new(0), AtomicUsize::new(0));
        let soon = Deadline::after(Duration::from_millis(1));
        assert_eq!(room.wait(ELSEWHERE, soon, || None::<()>), None);
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
