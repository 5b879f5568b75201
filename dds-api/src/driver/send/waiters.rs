//! Threads that wait for ring space, for acknowledgements, or for the next subgroup epoch; and what waits
//! for that with no thread: samples of writers, and futures.
//!
//! Each subgroup has a condition variable of its own, so that an acknowledgement in one
//! subgroup does not wake the threads that wait in others. What waits with no thread is told by the
//! thread that would wake others, before it wakes them: it sends the samples that wait.

use std::fmt;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering, fence};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, Weak};
use std::time::Instant;

use spindle_dds_core::SubgroupId;

use crate::monitor::WaitFigures;
use crate::time::Deadline;

/// What waits for changes of a subgroup without a thread: samples that are to be sent, or a future.
pub(crate) trait SubgroupObserver: Send + Sync {
    /// The subgroup has changed. Does not block, calls no user code, and is called without a lock.
    fn subgroup_changed(&self);
}

/// All that waits. Waking costs one load while nothing does.
#[derive(Debug, Default)]
pub(crate) struct SendWaiters {
    /// Threads and observers that wait now, in any subgroup.
    count: AtomicUsize,
    /// Those of them that wait for single members to accept a message.
    accepting: AtomicUsize,
    /// Subgroups in which a thread has waited.
    subgroups: RwLock<Vec<Arc<SubgroupWaiters>>>,
}

/// What waits in one subgroup.
struct SubgroupWaiters {
    subgroup: SubgroupId,
    /// Threads and observers that wait now.
    count: AtomicUsize,
    /// The observers among them.
    observers: Mutex<Vec<Weak<dyn SubgroupObserver>>>,
    /// The subgroup's count of changes at the last wake-up.
    last_change: AtomicU64,
    mutex: Mutex<()>,
    changed: Condvar,
    /// Where its times begin.
    since: Instant,
    waits: Mutex<WaitTimes>,
}

/// How long threads have waited for room, summed over the threads.
#[derive(Debug, Default)]
struct WaitTimes {
    times: u64,
    /// Waits that are not over.
    now: u64,
    /// Sum of the waits that are over, minus the begin of each that is not; wrapping.
    ns: u64,
}

/// Records a wait for room, from its creation until it is dropped.
#[derive(Debug)]
pub(crate) struct WaitRecord(Arc<SubgroupWaiters>);

/// An observer is told of changes, until this is dropped.
#[derive(Debug)]
pub(crate) struct ObserverRecord {
    all: Arc<SendWaiters>,
    waiters: Arc<SubgroupWaiters>,
    observer: Weak<dyn SubgroupObserver>,
}

/// While it exists, what waits is told also of each release of a single member.
#[derive(Debug)]
pub(crate) struct AcceptanceWait(Arc<SendWaiters>);

impl Drop for AcceptanceWait {
    fn drop(&mut self) {
        self.0.accepting.fetch_sub(1, Ordering::SeqCst);
    }
}

impl fmt::Debug for SubgroupWaiters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SubgroupWaiters")
            .field("subgroup", &self.subgroup)
            .field("count", &self.count)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for dyn SubgroupObserver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SubgroupObserver")
    }
}

impl Drop for ObserverRecord {
    fn drop(&mut self) {
        let mut observers = self.waiters.observers();
        let is_it = |it: &Weak<_>| it.ptr_eq(&self.observer);
        if let Some(at) = observers.iter().position(is_it) {
            observers.swap_remove(at);
        }
        drop(observers);
        self.waiters.count.fetch_sub(1, Ordering::SeqCst);
        self.all.count.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Drop for WaitRecord {
    fn drop(&mut self) {
        let now_ns = self.0.now_ns();
        let mut waits = self.0.waits();
        waits.now -= 1;
        waits.ns = waits.ns.wrapping_add(now_ns);
    }
}

impl SendWaiters {
    /// The calling thread waits for room in this subgroup until the guard is dropped.
    pub(crate) fn record_wait(&self, subgroup: SubgroupId) -> WaitRecord {
        let waiters = self.of_subgroup(subgroup);
        let now_ns = waiters.now_ns();
        let mut waits = waiters.waits();
        waits.times += 1;
        waits.now += 1;
        waits.ns = waits.ns.wrapping_sub(now_ns);
        drop(waits);
        WaitRecord(waiters)
    }

    /// Something waits for changes until the guard is dropped: also for a release of a single member.
    pub(crate) fn wait_for_acceptance(self: &Arc<Self>) -> AcceptanceWait {
        self.accepting.fetch_add(1, Ordering::SeqCst);
        AcceptanceWait(self.clone())
    }

    /// Whether anything waits for a release of a single member.
    pub(crate) fn has_acceptance_waits(&self) -> bool {
        self.accepting.load(Ordering::Relaxed) != 0
    }

    /// An observer waits in this subgroup until the record is dropped. What has changed before is not
    /// told: the caller tries again.
    pub(crate) fn observe(
        self: &Arc<Self>,
        subgroup: SubgroupId,
        observer: Weak<dyn SubgroupObserver>,
    ) -> ObserverRecord {
        let waiters = self.of_subgroup(subgroup);
        waiters.observers().push(observer.clone());
        waiters.count.fetch_add(1, Ordering::SeqCst);
        self.count.fetch_add(1, Ordering::SeqCst);
        // As in `wait`.
        fence(Ordering::SeqCst);
        ObserverRecord {
            all: self.clone(),
            waiters,
            observer,
        }
    }

    /// How long threads have waited for room, for each subgroup in which one has.
    pub(crate) fn figures(&self) -> Vec<WaitFigures> {
        let subgroups = self.subgroups();
        let figures = subgroups.iter().map(|waiters| {
            // Before the time is read: a wait that begins later has a later begin.
            let waits = waiters.waits();
            let now_ns = waiters.now_ns();
            WaitFigures {
                subgroup: waiters.subgroup.0,
                times: waits.times,
                ns: waits.ns.wrapping_add(waits.now.wrapping_mul(now_ns)),
                waiting: waits.now,
            }
        });
        figures.filter(|waits| waits.times > 0).collect()
    }

    /// Wakes the threads of the subgroups that have changed, which then try again, after what waits
    /// without a thread was told. `changes` gives the number of changes of a subgroup. Takes a lock,
    /// which is held for at most one attempt, only if something waits for a subgroup that has changed.
    pub(crate) fn wake_changed(&self, changes: impl Fn(SubgroupId) -> u64) {
        // Pairs with the fence in `wait`: either the waiter is seen here, or
        // its attempt sees the change.
        fence(Ordering::SeqCst);
        if self.count.load(Ordering::SeqCst) == 0 {
            return;
        }
        self.wake_those(|waiters| {
            // If another thread has stored this count, it does the waking: it takes the lock
            // after this change, too.
            let changes = changes(waiters.subgroup);
            waiters.last_change.swap(changes, Ordering::SeqCst) != changes
        });
    }

    /// Wakes the threads of one subgroup, after a change that the engine does not know.
    pub(crate) fn wake_subgroup(&self, subgroup: SubgroupId) {
        self.wake(|waiters| waiters.subgroup == subgroup);
    }

    /// Wakes all threads: subgroup epochs began or ended, or the participant stops.
    pub(crate) fn wake_all(&self) {
        self.wake(|_| true);
    }

    fn wake(&self, concerns: impl Fn(&SubgroupWaiters) -> bool) {
        // As in `wake_changed`.
        fence(Ordering::SeqCst);
        if self.count.load(Ordering::SeqCst) == 0 {
            return;
        }
        self.wake_those(concerns);
    }

    /// Some, which something waits in, at a time: what is sent takes locks, and this one may not be
    /// held meanwhile.
    fn wake_those(&self, concerns: impl Fn(&SubgroupWaiters) -> bool) {
        let mut at = 0;
        while let Some(waiters) = self.next_waiters(&mut at) {
            if concerns(&waiters) {
                waiters.tell_observers();
                waiters.wake();
            }
        }
    }

    /// The next subgroup from index `at` on in which something waits.
    fn next_waiters(&self, at: &mut usize) -> Option<Arc<SubgroupWaiters>> {
        let subgroups = self.subgroups();
        let mut rest = subgroups.iter().skip(*at);
        rest.find(|waiters| {
            *at += 1;
            waiters.has_any()
        })
        .cloned()
    }

    fn subgroups(&self) -> RwLockReadGuard<'_, Vec<Arc<SubgroupWaiters>>> {
        self.subgroups
            .read()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn of_subgroup(&self, subgroup: SubgroupId) -> Arc<SubgroupWaiters> {
        let find = |subgroups: &[Arc<SubgroupWaiters>]| {
            let mut subgroups = subgroups.iter();
            subgroups
                .find(|waiters| waiters.subgroup == subgroup)
                .cloned()
        };
        if let Some(waiters) = find(&self.subgroups()) {
            return waiters;
        }
        let mut subgroups = self
            .subgroups
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        find(&subgroups).unwrap_or_else(|| {
            let waiters = Arc::new(SubgroupWaiters {
                subgroup,
                count: AtomicUsize::new(0),
                observers: Mutex::default(),
                last_change: AtomicU64::new(0),
                mutex: Mutex::new(()),
                changed: Condvar::new(),
                since: Instant::now(),
                waits: Mutex::default(),
            });
            subgroups.push(waiters.clone());
            waiters
        })
    }

    /// Blocks until `attempt` gives something, or until `deadline`. `attempt` is repeated
    /// whenever the subgroup has changed.
    pub(crate) fn wait<R>(
        &self,
        subgroup: SubgroupId,
        deadline: Deadline,
        mut attempt: impl FnMut() -> Option<R>,
    ) -> Option<R> {
        let waiters = self.of_subgroup(subgroup);
        waiters.count.fetch_add(1, Ordering::SeqCst);
        self.count.fetch_add(1, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        let result = waiters.wait(deadline, &mut attempt);
        self.count.fetch_sub(1, Ordering::SeqCst);
        waiters.count.fetch_sub(1, Ordering::SeqCst);
        result
    }
}

impl SubgroupWaiters {
    fn has_any(&self) -> bool {
        self.count.load(Ordering::SeqCst) != 0
    }

    fn observers(&self) -> MutexGuard<'_, Vec<Weak<dyn SubgroupObserver>>> {
        let observers = self.observers.lock();
        observers.unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells what waits without a thread.
    fn tell_observers(&self) {
        let observers: Vec<_> = self.observers().iter().filter_map(Weak::upgrade).collect();
        observers.iter().for_each(|it| it.subgroup_changed());
    }

    fn waits(&self) -> MutexGuard<'_, WaitTimes> {
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

    fn send_waiters() -> Arc<SendWaiters> {
        Arc::default()
    }

    #[test]
    fn a_waiter_is_woken_or_gives_up() {
        let waiters = send_waiters();
        let value = Arc::new(AtomicU64::new(0));
        let soon = Deadline::after(Duration::from_millis(5));
        let nothing: Option<()> = waiters.wait(HERE, soon, || None);
        assert_eq!(nothing, None);
        let waiter = {
            let (waiters, value) = (waiters.clone(), value.clone());
            std::thread::spawn(move || {
                waiters.wait(HERE, Deadline::after(Duration::INFINITE), || {
                    let value = value.load(Ordering::SeqCst);
                    (value == 100).then_some(value)
                })
            })
        };
        for _ in 0..100 {
            value.fetch_add(1, Ordering::SeqCst);
            waiters.wake_changed(|_| value.load(Ordering::SeqCst));
        }
        assert_eq!(waiter.join().unwrap(), Some(100));
    }

    #[test]
    fn waits_are_counted_while_they_last() {
        let waiters = send_waiters();
        assert_eq!(waiters.figures(), []);
        let waits = || waiters.figures()[0];
        let [first, second] = [0; 2].map(|_| waiters.record_wait(HERE));
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
    fn changes_of_one_subgroup_wake_no_thread_of_another() {
        let waiters = send_waiters();
        let (attempts, over) = (AtomicU64::new(0), AtomicUsize::new(0));
        let soon = Deadline::after(Duration::from_millis(1));
        assert_eq!(waiters.wait(ELSEWHERE, soon, || None::<()>), None);
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| {
                waiters.wait(HERE, Deadline::after(Duration::INFINITE), || {
                    attempts.fetch_add(1, Ordering::SeqCst);
                    (over.load(Ordering::SeqCst) == 1).then_some(())
                })
            });
            while attempts.load(Ordering::SeqCst) == 0 {
                std::thread::yield_now();
            }
            for change in 1..=1000 {
                waiters.wake_changed(|subgroup| if subgroup == HERE { 0 } else { change });
            }
            over.store(1, Ordering::SeqCst);
            waiters.wake_all();
            assert_eq!(waiter.join().unwrap(), Some(()));
        });
        // The first and the last; the system may wake a thread for no reason.
        let attempts = attempts.load(Ordering::SeqCst);
        assert!(attempts < 100, "{attempts} attempts");
    }
}
