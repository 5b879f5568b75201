use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::thread;

use super::*;
use crate::fabric::WakeInterest;

const LONG: Option<Duration> = Some(Duration::from_secs(20));
const AT_ONCE: Option<Duration> = Some(Duration::ZERO);

/// One stream; each byte is a wake-up.
#[derive(Debug)]
struct Bytes {
    set: OwnedFd,
    stream: Mutex<UnixStream>,
    is_own: AtomicBool,
    woken: AtomicU64,
}

impl ArrivingStreams for Bytes {
    fn set(&self) -> BorrowedFd<'_> {
        self.set.as_fd()
    }

    fn receive(&self, on_wake: OnWake<'_>) {
        let mut bytes = [0; 16];
        let read = self.stream.lock().expect("no panic").read(&mut bytes);
        for byte in &bytes[..read.unwrap_or(0)] {
            let reason = match byte {
                b'd' => WakeReason::Data,
                _ => WakeReason::Room,
            };
            on_wake(reason, &self.woken);
        }
    }

    fn receive_and_wake(&self) {
        self.receive(&|_, woken| {
            woken.fetch_add(1, Ordering::Relaxed);
        });
    }

    fn set_read_by_own_thread(&self, is_own: bool) {
        self.is_own.store(is_own, Ordering::Relaxed);
    }
}

/// Slots with a stream to which the returned end writes, used by a thread that polls.
fn slots() -> (EventSlots, Arc<Bytes>, UnixStream) {
    let event = Arc::new(create_eventfd().expect("an event descriptor"));
    let slots = EventSlots::open(event).expect("sets");
    let (stream, peer) = UnixStream::pair().expect("a pair");
    stream.set_nonblocking(true).expect("set");
    let set = epoll::create(CreateFlags::CLOEXEC).expect("a set");
    epoll::add(&set, &stream, EventData::new_u64(0), EventFlags::IN).expect("watched");
    let bytes = Arc::new(Bytes {
        set,
        stream: Mutex::new(stream),
        is_own: AtomicBool::new(true),
        woken: AtomicU64::new(0),
    });
    let streams: Arc<dyn ArrivingStreams> = bytes.clone();
    slots.add_streams(&streams).expect("watched");
    (slots, bytes, peer)
}

fn used_slots() -> (EventSlots, Arc<Bytes>, UnixStream) {
    let (slots, bytes, peer) = slots();
    assert!(!slots.set_polled(true), "there are no streams");
    assert!(slots.set_streams(true));
    assert!(slots.reads() && !bytes.is_own.load(Ordering::Relaxed));
    (slots, bytes, peer)
}

fn all(_: WakeReason) -> bool {
    true
}

#[test]
fn streams_are_read_by_their_own_thread_unless_a_thread_polls() {
    let (slots, bytes, mut peer) = used_slots();
    assert!(!slots.set_polled(true), "two threads poll");
    assert!(!slots.set_polled(false), "one does");
    assert!(slots.set_polled(false));
    assert!(!slots.reads() && bytes.is_own.load(Ordering::Relaxed));
    peer.write_all(b"d").expect("written");
    slots.receive();
    slots.arm_poller(true);
    assert!(!slots.park(Sleeper::Poller, AT_ONCE, all));
    assert!(!slots.park(Sleeper::Follower, AT_ONCE, all));
    assert_eq!(bytes.woken.load(Ordering::Relaxed), 0);
    assert!(slots.set_polled(true));
    assert!(slots.park(Sleeper::Poller, LONG, all), "what came before");
    assert!(slots.set_streams(false));
    assert!(bytes.is_own.load(Ordering::Relaxed));
}

#[test]
fn what_arrives_wakes_the_thread_with_the_role() {
    let (slots, bytes, mut peer) = used_slots();
    for sleeper in [Sleeper::Poller, Sleeper::Follower, Sleeper::Poller] {
        slots.begin_epoch();
        slots.arm_poller(sleeper == Sleeper::Poller);
        peer.write_all(b"d").expect("written");
        if sleeper == Sleeper::Follower {
            assert!(
                !slots.park(Sleeper::Poller, AT_ONCE, all),
                "without the role"
            );
        }
        assert!(slots.park(sleeper, LONG, all));
        assert!(!slots.park(sleeper, AT_ONCE, all), "it was read");
        slots.wake(Sleeper::Follower);
        assert!(slots.park(sleeper, LONG, all), "the event of the station");
        assert!(slots.park(sleeper, AT_ONCE, all), "until the next epoch");
        slots.begin_epoch();
        assert!(!slots.park(sleeper, AT_ONCE, all));
    }
    assert_eq!(bytes.woken.load(Ordering::Relaxed), 3);
}

#[test]
fn the_poller_is_woken_by_its_own_event_once() {
    let (slots, _bytes, _peer) = used_slots();
    slots.arm_poller(false);
    slots.wake(Sleeper::Poller);
    assert!(!slots.park(Sleeper::Follower, AT_ONCE, all));
    assert!(slots.park(Sleeper::Poller, LONG, all));
    assert!(!slots.park(Sleeper::Poller, AT_ONCE, all));
}

#[test]
fn what_is_not_wanted_is_read_and_wakes_no_thread() {
    let (slots, bytes, mut peer) = used_slots();
    let wanted = |reason| WakeInterest::Data.includes(reason);
    for sleeper in [Sleeper::Poller, Sleeper::Follower] {
        slots.arm_poller(sleeper == Sleeper::Poller);
        peer.write_all(b"rr").expect("written");
        assert!(!slots.park(sleeper, Some(Duration::from_millis(1)), wanted));
        assert_eq!(bytes.woken.load(Ordering::Relaxed), 0);
    }
    thread::scope(|scope| {
        let parked = scope.spawn(|| slots.park(Sleeper::Follower, LONG, wanted));
        for byte in [b"r", b"r", b"d"] {
            peer.write_all(byte).expect("written");
        }
        assert!(parked.join().expect("no panic"));
    });
    assert_eq!(bytes.woken.load(Ordering::Relaxed), 1);
}

/// The poller is parked all the while.
#[test]
fn arming_a_set_that_is_readable_wakes_the_poller() {
    let (slots, _bytes, mut peer) = used_slots();
    slots.arm_poller(false);
    thread::scope(|scope| {
        let parked = scope.spawn(|| slots.park(Sleeper::Poller, LONG, all));
        peer.write_all(b"d").expect("written");
        slots.arm_poller(true);
        assert!(parked.join().expect("no panic"));
    });
}
