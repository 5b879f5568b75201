//! Loom models of the lock-free parts: all interleavings, and all reorderings
//! that the memory model allows, for a few threads and messages.
//!
//! Run by `RUSTFLAGS="--cfg loom" cargo test --release -p spindle-dds-core --lib loom`.
//! An `UnsafeCell` of loom represents a message's bytes: it reports any access
//! that is not ordered with the write before it.

mod engine_lock;
mod persisted;
mod restart;

use std::panic::catch_unwind;

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;
use spindle_dds_transport::memory::Arena;

use crate::spec::RingSpec;
use crate::subgroup::gate::Gate;
use crate::subgroup::handle::TicketCount;
use crate::subgroup::header::Header;
use crate::subgroup::idle_flag::{IdleFlag, LeftWork};
use crate::subgroup::release_tracker::ReleaseTracker;
use crate::subgroup::send_ring::{Published, SendRing};
use crate::sync::{AtomicU64, Ordering, fence};

const RING: RingSpec = RingSpec {
    messages: 2,
    bytes: 128,
};

fn model(check: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(check);
}

/// A ring, and for each granule of its payload the number that was written there.
struct ModelRing {
    send_ring: SendRing,
    bytes: [UnsafeCell<u64>; 8],
    /// By message index: the granule of its payload. Written before `written`, as a header is.
    headers: [UnsafeCell<usize>; 4],
}

// SAFETY: the cells are what is being checked: loom fails the test when two
// accesses to one are not ordered.
unsafe impl Sync for ModelRing {}
// SAFETY: as above.
unsafe impl Send for ModelRing {}

impl ModelRing {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            send_ring: SendRing::new(&RING, &mut Arena::new(0)).expect("memory"),
            bytes: Default::default(),
            headers: Default::default(),
        })
    }

    /// Claims, writes and commits a message. Returns false without room.
    fn send(&self, value: u64, written: Ordering) -> bool {
        let Ok(reserved) = self.send_ring.reserve(16) else {
            return false;
        };
        let at = reserved.offset() as usize / 16;
        // SAFETY: the extent is reserved by this thread; loom checks it.
        self.bytes[at].with_mut(|byte| unsafe { *byte = value });
        let place = self
            .send_ring
            .commit(&reserved, 16)
            .expect("indexes are left");
        // SAFETY: the index was taken by this thread; loom checks it.
        self.headers[place.index as usize].with_mut(|header| unsafe { *header = at });
        self.send_ring.written_with(place, written);
        true
    }

    /// Publishes committed messages. Returns the values of those that are no nulls.
    fn publish(&self, published: &mut Published, nulls_to: u64) -> Vec<u64> {
        let mut values = Vec::new();
        while let Some(index) = self.send_ring.next_written(published) {
            // SAFETY: `next_written` returns an index only after its header was written; loom
            // checks it.
            let at = self.headers[index as usize].with(|header| unsafe { *header });
            // SAFETY: as above.
            values.push(self.bytes[at].with(|byte| unsafe { *byte }));
            *published = Published {
                index: index + 1,
                real: published.real + 1,
            };
        }
        published.index += self.send_ring.fill_nulls(published, nulls_to);
        values
    }
}

#[test]
fn loom_claim_commit_publish() {
    model(|| {
        let ring = ModelRing::new();
        let senders = [1, 2].map(|value| {
            let ring = ring.clone();
            thread::spawn(move || assert!(ring.send(value, Ordering::Release)))
        });
        let mut published = Published::default();
        let mut values = ring.publish(&mut published, 0);
        for sender in senders {
            sender.join().unwrap();
        }
        values.extend(ring.publish(&mut published, 0));
        values.sort_unstable();
        assert_eq!(values, [1, 2]);
        assert_eq!(published, Published { index: 2, real: 2 });
    });
}

/// The owner of the engine commits, and publishes its message directly if all before it are
/// published, while another thread commits.
#[test]
fn loom_the_owner_publishes_its_own_commit() {
    model(|| {
        let ring = ModelRing::new();
        let sender = {
            let ring = ring.clone();
            thread::spawn(move || assert!(ring.send(1, Ordering::Release)))
        };
        let mut published = Published::default();
        let mut values = Vec::new();
        let reserved = ring.send_ring.reserve(16).expect("there is room for two");
        let at = reserved.offset() as usize / 16;
        // SAFETY: the extent is reserved by this thread; loom checks it.
        ring.bytes[at].with_mut(|byte| unsafe { *byte = 2 });
        let place = ring
            .send_ring
            .commit(&reserved, 16)
            .expect("indexes are left");
        // SAFETY: the index was taken by this thread; loom checks it.
        ring.headers[place.index as usize].with_mut(|header| unsafe { *header = at });
        if place.index == published.index {
            values.push(2);
            published = Published { index: 1, real: 1 };
        } else {
            ring.send_ring.written(place);
        }
        values.extend(ring.publish(&mut published, 0));
        sender.join().unwrap();
        values.extend(ring.publish(&mut published, 0));
        let expected = if place.index == 0 { [2, 1] } else { [1, 2] };
        assert_eq!(values, expected);
        assert_eq!(published, Published { index: 2, real: 2 });
    });
}

#[test]
fn loom_nulls_and_commits_share_the_order() {
    model(|| {
        let ring = ModelRing::new();
        let sender = {
            let ring = ring.clone();
            thread::spawn(move || assert!(ring.send(7, Ordering::Release)))
        };
        let mut published = Published::default();
        let mut values = ring.publish(&mut published, 2);
        let nulls_first = published.index == 2 && published.real == 0;
        sender.join().unwrap();
        values.extend(ring.publish(&mut published, 2));
        assert_eq!(values, [7], "sent once, nulls or not");
        assert_eq!(published.real, 1);
        assert_eq!(published.index, if nulls_first { 3 } else { 2 });
    });
}

#[test]
fn loom_room_comes_back_after_the_readers() {
    model(|| {
        let ring = ModelRing::new();
        let mut published = Published::default();
        assert!(ring.send(1, Ordering::Release) && ring.send(2, Ordering::Release));
        ring.publish(&mut published, 0);
        let sender = {
            let ring = ring.clone();
            thread::spawn(move || {
                // Overwrites the bytes of message 0, if it finds room.
                ring.send(3, Ordering::Release)
            })
        };
        ring.send_ring.reclaim(1);
        let sent = sender.join().unwrap();
        let values = ring.publish(&mut published, 0);
        assert_eq!(values, if sent { vec![3] } else { vec![] });
    });
}

#[test]
fn loom_a_withdrawn_claim_leaves_no_trace() {
    model(|| {
        let ring = ModelRing::new();
        let other = {
            let ring = ring.clone();
            thread::spawn(move || {
                let reserved = ring.send_ring.reserve(16).expect("there is room for two");
                ring.send_ring.withdraw(&reserved);
            })
        };
        assert!(ring.send(5, Ordering::Release));
        other.join().unwrap();
        let mut published = Published::default();
        assert_eq!(ring.publish(&mut published, 0), [5]);
        ring.send_ring.reclaim(1);
        assert!(ring.send_ring.is_empty());
    });
}

/// A mutant: without the release in `written`, the publisher may read
/// a header that is not there yet. Loom must find it.
#[test]
fn loom_finds_a_missing_release() {
    let found = catch_unwind(|| {
        model(|| {
            let ring = ModelRing::new();
            let sender = {
                let ring = ring.clone();
                thread::spawn(move || assert!(ring.send(1, Ordering::Relaxed)))
            };
            ring.publish(&mut Published::default(), 0);
            sender.join().unwrap();
        });
    });
    assert!(found.is_err(), "a relaxed `written` went unnoticed");
}

/// Once the gate is closed and no thread is inside, all committed messages can be
/// published, and none is committed any more.
#[test]
fn loom_no_commit_slips_through_a_closed_gate() {
    model(|| {
        let (ring, gate) = (ModelRing::new(), Arc::new(Gate::new()));
        let sender = {
            let (ring, gate) = (ring.clone(), gate.clone());
            thread::spawn(move || {
                let (status, _inside) = gate.enter();
                status == 0 && ring.send(7, Ordering::Release)
            })
        };
        gate.close(1);
        let mut published = Published::default();
        let final_guard = (!gate.is_busy()).then(|| {
            ring.publish(&mut published, 0);
            published.index
        });
        let sent = sender.join().unwrap();
        if let Some(guard) = final_guard {
            assert_eq!(guard, u64::from(sent));
        }
        assert!(!gate.is_busy());
    });
}

/// While the gate is closed, the guard does not change; after it opens again, commits count.
#[test]
fn loom_a_gate_that_opens_again_neither_loses_nor_repeats_a_message() {
    model(|| {
        let (ring, gate) = (ModelRing::new(), Arc::new(Gate::new()));
        let sender = {
            let (ring, gate) = (ring.clone(), gate.clone());
            thread::spawn(move || {
                let mut sent = 0;
                for _ in 0..2 {
                    let (status, _inside) = gate.enter();
                    sent += u64::from(status == 0 && ring.send(7, Ordering::Release));
                }
                sent
            })
        };
        gate.close(1);
        let mut published = Published::default();
        if !gate.is_busy() {
            ring.publish(&mut published, 0);
            let guard = published.index;
            // Publishing again changes nothing while the gate is closed.
            ring.publish(&mut published, 0);
            assert_eq!(published.index, guard);
        }
        assert!(gate.reopen(1) && gate.status() == 0);
        let sent = sender.join().unwrap();
        // Once the status has risen, the gate does not reopen from the lower one.
        gate.close(2);
        assert!(!gate.is_busy() && !gate.reopen(1) && gate.status() == 2);
        ring.publish(&mut published, 0);
        assert_eq!(published.index, sent);
    });
}

#[test]
fn loom_each_release_accounts_for_all_before_it() {
    model(|| {
        let tracker = Arc::new(ReleaseTracker::new(2, &mut Arena::new(0)).expect("memory"));
        let column = Arc::new(AtomicU64::new(0));
        let release = |tracker: &ReleaseTracker, column: &AtomicU64| {
            tracker.release(|value| {
                assert!(
                    column.load(Ordering::Relaxed) < value,
                    "the column only rises"
                );
                column.store(value, Ordering::Relaxed);
            });
        };
        for real in 0..2 {
            tracker.place(real).hold_first();
            tracker.pass_real(real, tracker.place(real), &Header::test(real, 0, 16));
        }
        let holder = {
            let (tracker, column) = (tracker.clone(), column.clone());
            thread::spawn(move || {
                if tracker.end_hold(0, tracker.passed_real()) {
                    release(&tracker, &column);
                }
            })
        };
        tracker.pass(2);
        release(&tracker, &column);
        if tracker.end_hold(1, tracker.passed_real()) {
            release(&tracker, &column);
        }
        holder.join().unwrap();
        assert_eq!(tracker.released(), 2, "all messages are released");
        assert_eq!(column.load(Ordering::Relaxed), 2);
    });
}

/// A subgroup becomes idle while two threads leave work in it: the last pass sees the work of
/// each, or the engine is told.
fn become_idle(fence_of_engine: fn()) {
    model(move || {
        use loom::sync::atomic::{AtomicU64, fence};
        let subgroup = Arc::new((IdleFlag::new(), LeftWork::new(), [0, 0].map(AtomicU64::new)));
        let threads = [0, 1].map(|at| {
            let subgroup = subgroup.clone();
            thread::spawn(move || {
                let (idle, left_work, work) = &*subgroup;
                work[at].store(1, Ordering::Release);
                // As every nudge does.
                fence(Ordering::SeqCst);
                idle.interrupt(left_work);
            })
        });
        let (idle, left_work, work) = &*subgroup;
        idle.begin_with(fence_of_engine);
        let seen = work
            .each_ref()
            .map(|work| work.load(Ordering::Acquire) == 1);
        for thread in threads {
            thread.join().unwrap();
        }
        let told = left_work.take();
        assert_eq!(
            told,
            !idle.lasts(),
            "an engine that is told finds the subgroup"
        );
        assert!(seen == [true; 2] || told, "{seen:?}");
    });
}

#[test]
fn loom_no_work_is_missed_in_an_idle_subgroup() {
    become_idle(|| fence(Ordering::SeqCst));
}

/// A mutant: without its fence the engine may miss the thread's work, and the thread the idle
/// flag. Loom must find it.
#[test]
fn loom_finds_an_idle_flag_without_a_fence() {
    let found = catch_unwind(|| become_idle(|| {}));
    assert!(found.is_err(), "a missing fence went unnoticed");
}

/// A subgroup becomes idle a second time while a thread that found it active goes on.
#[test]
fn loom_a_subgroup_becomes_idle_twice() {
    model(|| {
        use loom::sync::atomic::{AtomicU64, fence};
        let subgroup = Arc::new((IdleFlag::new(), LeftWork::new(), AtomicU64::new(0)));
        let thread = {
            let subgroup = subgroup.clone();
            thread::spawn(move || {
                let (idle, left_work, work) = &*subgroup;
                work.store(1, Ordering::Release);
                fence(Ordering::SeqCst);
                idle.interrupt(left_work);
            })
        };
        let (idle, left_work, work) = &*subgroup;
        idle.begin();
        let mut seen = work.load(Ordering::Acquire) == 1;
        idle.end();
        seen |= work.load(Ordering::Acquire) == 1;
        idle.begin();
        seen |= work.load(Ordering::Acquire) == 1;
        thread.join().unwrap();
        assert!(seen || left_work.take() && !idle.lasts());
    });
}

/// The bytes of a message.
struct Bytes(UnsafeCell<u64>);

// SAFETY: the cell is what is being checked: loom fails the test when two accesses to it
// are not ordered.
unsafe impl Sync for Bytes {}
// SAFETY: as above.
unsafe impl Send for Bytes {}

/// Two readers hold a message: the first releases it while the second receives it. The last of
/// them accounts for it, and the reads of both are ordered before the room is used again.
#[test]
fn loom_the_last_of_two_holders_accounts() {
    model(|| {
        let tracker = Arc::new(ReleaseTracker::new(2, &mut Arena::new(0)).expect("memory"));
        let bytes = Arc::new(Bytes(UnsafeCell::new(0)));
        let reader = |tracker: &ReleaseTracker, bytes: &Bytes| {
            // SAFETY: nothing is written while the message is held; loom checks it.
            bytes.0.with(|value| assert_eq!(unsafe { *value }, 0));
            if tracker.end_hold(0, tracker.passed_real()) {
                tracker.release(|_| ());
            }
        };
        tracker.place(0).hold_first();
        let first = {
            let (tracker, bytes) = (tracker.clone(), bytes.clone());
            thread::spawn(move || reader(&tracker, &bytes))
        };
        tracker.place(0).hold();
        let second = {
            let (tracker, bytes) = (tracker.clone(), bytes.clone());
            thread::spawn(move || reader(&tracker, &bytes))
        };
        tracker.pass_real(0, tracker.place(0), &Header::test(0, 0, 16));
        tracker.pass(1);
        tracker.release(|_| ());
        if tracker.released() == 1 {
            // SAFETY: the message is released; loom checks that no thread reads it any more.
            bytes.0.with_mut(|value| unsafe { *value = 1 });
        }
        first.join().unwrap();
        second.join().unwrap();
        assert_eq!(tracker.released(), 1, "all messages are released");
    });
}

/// A subgroup handle in an `Arc`: a count, and memory that is freed with the last one.
struct Counted {
    tickets: TicketCount,
    strong: AtomicU64,
    memory: UnsafeCell<bool>,
}

// SAFETY: the cell is what is being checked, as above.
unsafe impl Sync for Counted {}
// SAFETY: as above.
unsafe impl Send for Counted {}

impl Counted {
    fn take(&self, tickets: u64) {
        if self.tickets.take(tickets) {
            self.strong.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn give(&self, tickets: u64) {
        self.assert_not_freed();
        if self.tickets.give(tickets) {
            self.drop_one();
        }
    }

    fn assert_not_freed(&self) {
        // SAFETY: a ticket or a count keeps the memory; loom checks it.
        self.memory.with(|freed| assert!(!unsafe { *freed }));
    }

    fn drop_one(&self) {
        if self.strong.fetch_sub(1, Ordering::Release) == 1 {
            fence(Ordering::Acquire);
            // SAFETY: this was the last count; loom checks it.
            self.memory.with_mut(|freed| unsafe { *freed = true });
        }
    }
}

/// Other threads give back tickets while the engine takes more, and drops the handle: it is
/// freed once, after all of them.
#[test]
fn loom_tickets_keep_a_handle_to_the_last() {
    model(|| {
        let subgroup = Arc::new(Counted {
            tickets: TicketCount::new(),
            strong: AtomicU64::new(1),
            memory: UnsafeCell::new(false),
        });
        subgroup.take(2);
        let holder = |tickets| {
            let subgroup = Arc::clone(&subgroup);
            thread::spawn(move || subgroup.give(tickets))
        };
        let first = holder(2);
        subgroup.take(2);
        let second = holder(1);
        subgroup.give(1);
        subgroup.drop_one();
        first.join().expect("no panic");
        second.join().expect("no panic");
        // SAFETY: all other threads have been joined.
        subgroup.memory.with(|freed| assert!(unsafe { *freed }));
    });
}
