//! A ring is restarted while other threads claim, commit and release.

use super::*;

impl ModelRing {
    /// A ring whose first message is published and released, so that it can be restarted.
    fn used() -> (Arc<Self>, Published) {
        let ring = Self::new();
        let mut published = Published::default();
        assert!(ring.send(1, Ordering::Release));
        assert_eq!(ring.publish(&mut published, 0), [1]);
        (ring, published)
    }

    fn restart(&self, published: &mut Published) {
        if self.send_ring.is_empty() {
            self.send_ring.restart_extents();
            if let Some(start) = self.send_ring.restart_numbers(published) {
                published.real = start;
            }
        }
    }
}

/// The ring has room for two messages: both threads find it, whatever the engine has done of its
/// restart, and both messages are published, once.
#[test]
fn loom_a_claim_finds_room_during_a_restart() {
    model(|| {
        let (ring, mut published) = ModelRing::used();
        assert!(ring.send_ring.reclaim(1));
        let senders = [2, 3].map(|value| {
            let ring = ring.clone();
            thread::spawn(move || assert!(ring.send(value, Ordering::Release), "there is room"))
        });
        ring.restart(&mut published);
        let mut values = ring.publish(&mut published, 0);
        for sender in senders {
            sender.join().unwrap();
        }
        values.extend(ring.publish(&mut published, 0));
        values.sort_unstable();
        assert_eq!(values, [2, 3]);
        assert_eq!(published.index, 3);
        assert!(ring.send_ring.reclaim(3) && ring.send_ring.is_empty());
        assert_eq!(ring.send_ring.taken(), (3, published.real as u16));
    });
}

/// Room comes back and the ring is restarted while a thread sends two messages: the first finds
/// room, and what is sent is published in order.
#[test]
fn loom_a_commit_and_a_restart_are_one_after_the_other() {
    model(|| {
        let (ring, mut published) = ModelRing::used();
        let sender = {
            let ring = ring.clone();
            thread::spawn(move || {
                assert!(ring.send(2, Ordering::Release), "there is room");
                ring.send(3, Ordering::Release)
            })
        };
        ring.send_ring.reclaim(1);
        ring.restart(&mut published);
        let mut values = ring.publish(&mut published, 0);
        // All that is published is released, and the ring is restarted again.
        ring.send_ring.reclaim(published.index);
        ring.restart(&mut published);
        let both = sender.join().unwrap();
        values.extend(ring.publish(&mut published, 0));
        assert_eq!(values, if both { vec![2, 3] } else { vec![2] });
        ring.send_ring.reclaim(published.index);
        assert!(ring.send_ring.is_empty());
    });
}

/// A thread that releases the last message, and goes on to account for it, while the engine finds
/// all released and restarts the ring, and passes one more message, which is held.
#[test]
fn loom_a_restart_and_a_late_release() {
    model(|| {
        let tracker = Arc::new(ReleaseTracker::new(2, &mut Arena::new(0)).expect("memory"));
        let column = Arc::new(AtomicU64::new(0));
        let release = |tracker: &ReleaseTracker, column: &AtomicU64| {
            tracker.release(|value| {
                assert!(column.load(Ordering::Relaxed) < value, "it only rises");
                column.store(value, Ordering::Relaxed);
            });
        };
        let pass = |real, index| {
            tracker.place(real).hold_first();
            tracker.pass_real(real, tracker.place(real), &Header::test(index, 0, 16));
            tracker.pass(index + 1);
        };
        pass(0, 0);
        let holder = {
            let (tracker, column) = (tracker.clone(), column.clone());
            thread::spawn(move || {
                if tracker.end_hold(0, tracker.passed_real()) {
                    release(&tracker, &column);
                }
            })
        };
        release(&tracker, &column);
        let restarted = tracker.released_real() == 1;
        let next = if restarted { 2 } else { 1 };
        if restarted {
            tracker.restart(2);
        }
        pass(next, 1);
        release(&tracker, &column);
        assert!(tracker.released() < 2, "the second is held");
        holder.join().unwrap();
        assert_eq!((tracker.released(), tracker.released_real()), (1, next));
        assert!(tracker.end_hold(next, tracker.passed_real()));
        release(&tracker, &column);
        assert_eq!((tracker.released(), tracker.released_real()), (2, next + 1));
        assert_eq!(column.load(Ordering::Relaxed), 2);
    });
}
