//! Loom models of the lock-free parts: every interleaving, every reordering
//! that the memory model allows, for a few threads and messages.
//!
//! Run by `RUSTFLAGS="--cfg loom" cargo test --release -p spindle-dds-core --lib loom`.
//! A `UnsafeCell` of loom stands for a message's bytes: it reports any access
//! that is not ordered with the write before it.

mod turns;

use std::panic::catch_unwind;

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;

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
struct DeliveryClass {
    send_ring: SendRing,
    bytes: [UnsafeCell<u64>; 8],
    /// By index: where the message lies. Written before `written`, as a header is.
    headers: [UnsafeCell<usize>; 4],
}

// SAFETY: the cells are what is being checked: loom fails the test when two
// accesses to one are not ordered.
unsafe impl Sync for DeliveryClass {}
// SAFETY: as above.
unsafe impl Send for DeliveryClass {}

impl DeliveryClass {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            send_ring: SendRing::new(&RING),
            bytes: Default::default(),
            headers: Default::default(),
        })
    }

    /// Claims, builds, commits; false without room.
    fn send(&self, value: u64, written: Ordering) -> bool {
        let Ok(reserved) = self.send_ring.reserve(16) else {
            return false;
        };
        let at = reserved.offset() as usize / 16;
        // SAFETY: the extent is mine; loom checks it.
        self.bytes[at].with_mut(|byte| unsafe { *byte = value });
        let place = self
            .send_ring
            .commit(&reserved, 16)
            .expect("indexes are left");
        // SAFETY: the header of this index is mine; loom checks it.
        self.headers[place.index as usize].with_mut(|header| unsafe { *header = at });
        self.send_ring.written_with(place, written);
        true
    }

    /// Publishes what is committed; returns the values of the real messages.
    fn publish(&self, published: &mut Published, nulls_to: u64) -> Vec<u64> {
        let mut values = Vec::new();
        while let Some(index) = self.send_ring.next_written(published) {
            // SAFETY: vouched for by `next_written`; loom checks it.
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
        let ring = DeliveryClass::new();
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

/// Who owns the engine commits, and publishes its message without handing it over if all
/// before it are published, while somebody else commits.
#[test]
fn loom_the_owner_publishes_what_it_commits() {
    model(|| {
        let ring = DeliveryClass::new();
        let sender = {
            let ring = ring.clone();
            thread::spawn(move || assert!(ring.send(1, Ordering::Release)))
        };
        let mut published = Published::default();
        let mut values = Vec::new();
        let reserved = ring.send_ring.reserve(16).expect("there is room for two");
        let at = reserved.offset() as usize / 16;
        // SAFETY: the extent is mine; loom checks it.
        ring.bytes[at].with_mut(|byte| unsafe { *byte = 2 });
        let place = ring
            .send_ring
            .commit(&reserved, 16)
            .expect("indexes are left");
        // SAFETY: the header of this index is mine; loom checks it.
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
        let ring = DeliveryClass::new();
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
        let ring = DeliveryClass::new();
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
        let ring = DeliveryClass::new();
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

/// The planted bug: without the release in `written`, the publisher may read
/// a header that is not there yet. Loom must see it.
#[test]
fn loom_finds_a_missing_release() {
    let found = catch_unwind(|| {
        model(|| {
            let ring = DeliveryClass::new();
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

/// Once the gate is closed and nobody is inside, all that was committed can be
/// published, and nothing is committed any more.
#[test]
fn loom_no_commit_slips_through_a_closed_gate() {
    model(|| {
        let (ring, gate) = (DeliveryClass::new(), Arc::new(Gate::new()));
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

/// A gate that opens again: what is committed counts from then on, and nothing in
/// between, where the guard is final.
#[test]
fn loom_a_gate_that_opens_again_loses_and_doubles_nothing() {
    model(|| {
        let (ring, gate) = (DeliveryClass::new(), Arc::new(Gate::new()));
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
            // As often as somebody looks, while it is closed.
            ring.publish(&mut published, 0);
            assert_eq!(published.index, guard);
        }
        assert!(gate.reopen(1) && gate.status() == 0);
        let sent = sender.join().unwrap();
        // Closed for good, it does not open with what opened it before.
        gate.close(2);
        assert!(!gate.is_busy() && !gate.reopen(1) && gate.status() == 2);
        ring.publish(&mut published, 0);
        assert_eq!(published.index, sent);
    });
}

#[test]
fn loom_whoever_lets_go_accounts_for_all() {
    model(|| {
        let tracker = Arc::new(ReleaseTracker::new(2));
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
                if tracker.let_go(0, tracker.passed_real()) {
                    release(&tracker, &column);
                }
            })
        };
        tracker.pass(2);
        release(&tracker, &column);
        if tracker.let_go(1, tracker.passed_real()) {
            release(&tracker, &column);
        }
        holder.join().unwrap();
        assert_eq!(tracker.released(), 2, "nothing is forgotten");
        assert_eq!(column.load(Ordering::Relaxed), 2);
    });
}

/// An epoch on its way to rest while two threads leave work in it: what each left is seen by
/// the last look, or the engine is told.
fn lay_to_rest(fence_of_engine: fn()) {
    model(move || {
        use loom::sync::atomic::{AtomicU64, fence};
        let subgroup = Arc::new((IdleFlag::new(), LeftWork::new(), [0, 0].map(AtomicU64::new)));
        let threads = [0, 1].map(|at| {
            let subgroup = subgroup.clone();
            thread::spawn(move || {
                let (rest, left_work, work) = &*subgroup;
                work[at].store(1, Ordering::Release);
                // As every nudge does.
                fence(Ordering::SeqCst);
                rest.interrupt(left_work);
            })
        });
        let (rest, left_work, work) = &*subgroup;
        rest.begin_with(fence_of_engine);
        let seen = work
            .each_ref()
            .map(|work| work.load(Ordering::Acquire) == 1);
        for thread in threads {
            thread.join().unwrap();
        }
        let told = left_work.take();
        assert_eq!(told, !rest.lasts(), "who is told finds the epoch");
        assert!(seen == [true; 2] || told, "{seen:?}");
    });
}

#[test]
fn loom_no_work_is_left_in_an_epoch_at_rest() {
    lay_to_rest(|| fence(Ordering::SeqCst));
}

/// The planted bug: without its fence the engine may miss what the thread left, and the
/// thread that the epoch is at rest. Loom must see it.
#[test]
fn loom_finds_a_rest_without_a_fence() {
    let found = catch_unwind(|| lay_to_rest(|| {}));
    assert!(found.is_err(), "a missing fence went unnoticed");
}

/// Laid to rest again while a thread that had found it awake goes its way.
#[test]
fn loom_an_epoch_rises_and_rests_again() {
    model(|| {
        use loom::sync::atomic::{AtomicU64, fence};
        let subgroup = Arc::new((IdleFlag::new(), LeftWork::new(), AtomicU64::new(0)));
        let thread = {
            let subgroup = subgroup.clone();
            thread::spawn(move || {
                let (rest, left_work, work) = &*subgroup;
                work.store(1, Ordering::Release);
                fence(Ordering::SeqCst);
                rest.interrupt(left_work);
            })
        };
        let (rest, left_work, work) = &*subgroup;
        rest.begin();
        let mut seen = work.load(Ordering::Acquire) == 1;
        rest.end();
        seen |= work.load(Ordering::Acquire) == 1;
        rest.begin();
        seen |= work.load(Ordering::Acquire) == 1;
        thread.join().unwrap();
        assert!(seen || left_work.take() && !rest.lasts());
    });
}

/// What a message holds.
struct Bytes(UnsafeCell<u64>);

// SAFETY: the cell is what is being checked: loom fails the test when two accesses to it
// are not ordered.
unsafe impl Sync for Bytes {}
// SAFETY: as above.
unsafe impl Send for Bytes {}

/// Two readers hold a message: the first lets go of it while it is handed to the second.
/// Whoever is last accounts, and what both have read is ordered before the room is used.
#[test]
fn loom_of_two_holders_one_accounts() {
    model(|| {
        let tracker = Arc::new(ReleaseTracker::new(2));
        let bytes = Arc::new(Bytes(UnsafeCell::new(0)));
        let reader = |tracker: &ReleaseTracker, bytes: &Bytes| {
            // SAFETY: nobody writes while it is held; loom checks it.
            bytes.0.with(|value| assert_eq!(unsafe { *value }, 0));
            if tracker.let_go(0, tracker.passed_real()) {
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
            // SAFETY: it is released; loom checks that nobody reads it any more.
            bytes.0.with_mut(|value| unsafe { *value = 1 });
        }
        first.join().unwrap();
        second.join().unwrap();
        assert_eq!(tracker.released(), 1, "nothing is forgotten");
    });
}

/// An epoch as an `Arc` has it: a count, and memory that is freed with the last one.
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
        self.look();
        if self.tickets.give(tickets) {
            self.drop_one();
        }
    }

    fn look(&self) {
        // SAFETY: whoever has a ticket, or a count, keeps it; loom checks that.
        self.memory.with(|freed| assert!(!unsafe { *freed }));
    }

    fn drop_one(&self) {
        if self.strong.fetch_sub(1, Ordering::Release) == 1 {
            fence(Ordering::Acquire);
            // SAFETY: nobody is left; loom checks that.
            self.memory.with_mut(|freed| unsafe { *freed = true });
        }
    }
}

/// Tickets are given back by other threads while the engine takes more, and lets go of the
/// epoch: it is freed once, after all of them.
#[test]
fn loom_tickets_keep_an_epoch_to_the_last() {
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
        // SAFETY: nobody else is left.
        subgroup.memory.with(|freed| assert!(unsafe { *freed }));
    });
}
