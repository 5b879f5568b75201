//! The engine over the fabrics that run in real time: each member sends through
//! rings that are much too small, sleeps when there is nothing to do, and
//! receives the same messages, whole and in the same order.

// The crate under test has neither clock nor threads; this test needs both.
#![allow(clippy::disallowed_types, clippy::disallowed_methods)]

mod stations;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use spindle_dds_core::{
    ClaimError, CommitMeta, Delivery, DeliveryClass, Engine, EngineEvent, EngineHandle,
    MessageKind, RingSpec, SenderSpec, Sink, SubgroupId, SubgroupSpec, TopicKey,
};
use spindle_dds_transport::{Fabric, Park, Rank, WakeInterest};

const SUBGROUP: SubgroupId = SubgroupId(0);
const MESSAGES: u32 = 400;

type Received = Arc<Mutex<Vec<(Rank, u32)>>>;

/// Records sender and index of each message, and checks each byte.
struct Reader(Received);

impl<F: Fabric> Sink<F> for Reader {
    fn deliver(&mut self, delivery: &Delivery<'_, F>) {
        let held = delivery.hold();
        let (head, rest) = held.bytes().split_first_chunk().expect("four bytes");
        let index = u32::from_le_bytes(*head);
        assert_eq!(rest.len(), len_of(index) - 4, "{index}");
        assert!(rest.iter().all(|&byte| byte == index as u8), "{index}");
        let mut received = self.0.lock().expect("no panic");
        received.push((delivery.sender, index));
    }

    fn batch_end(&mut self) {}

    fn event(&mut self, event: EngineEvent) {
        if let EngineEvent::Stopped(reason) = event {
            panic!("{reason}");
        }
    }

    fn is_reading(&self, _: SubgroupId) -> bool {
        true
    }
}

fn len_of(index: u32) -> usize {
    4 + (index as usize * 7919) % 3000
}

fn subgroup(members: usize) -> SubgroupSpec {
    let ring = Some(RingSpec {
        messages: 16,
        bytes: 1 << 13,
    });
    let ranks = || (0..members as u16).map(Rank);
    let rings = [ring, None];
    SubgroupSpec {
        subgroup: SUBGROUP,
        epoch: 1,
        base: 0,
        members: ranks().collect(),
        senders: ranks().map(|rank| SenderSpec { rank, rings }).collect(),
        topics: vec![TopicKey::of_name("fabrics")],
        is_logged: false,
    }
}

/// Commits the next message, if there is room.
fn send<F: Fabric>(handle: &EngineHandle<F>, index: u32) -> bool {
    let len = len_of(index) as u32;
    let subgroup = handle.subgroup(SUBGROUP).expect("a subgroup");
    let mut claim = match subgroup.claim(DeliveryClass::Ordered, len) {
        Ok(claim) => claim,
        Err(ClaimError::NoRoom | ClaimError::NotBegun) => return false,
        Err(error) => panic!("{error}"),
    };
    let (head, rest) = claim.bytes().split_at_mut(4);
    head.copy_from_slice(&index.to_le_bytes());
    rest.fill(index as u8);
    let meta = CommitMeta {
        kind: MessageKind::Data,
        flags: 0,
        encapsulation: 1,
        writer: 0,
        timestamp: 0,
        topic: TopicKey::of_name("fabrics").low(),
        key_hash: [0; 16],
        skipped: 0,
    };
    claim.commit(len, &meta).expect("a commit");
    true
}

/// Runs one member until all members have received all messages.
fn take_part<F: Park>(
    node: &Engine<F, Reader>,
    members: usize,
    through: &AtomicUsize,
    wake_all: impl Fn(),
) {
    let handle = node.handle();
    let fabric = handle.fabric();
    let all = u64::from(MESSAGES) * members as u64;
    let (mut sent, mut done) = (0, false);
    while through.load(Ordering::SeqCst) < members {
        let mut busy = false;
        while sent < MESSAGES && send(&handle, sent) {
            sent += 1;
            busy = true;
        }
        let outcome = node.step(0).expect("no other thread steps");
        if !done && handle.counters().delivered == all {
            done = true;
            through.fetch_add(1, Ordering::SeqCst);
            wake_all();
        }
        if busy || outcome.progress {
            continue;
        }
        // A thread that waits for room waits for acknowledgements.
        let want = if sent < MESSAGES {
            WakeInterest::Room
        } else {
            outcome.want
        };
        fabric.announce_sleep(want);
        let second = node.step(0).expect("no other thread steps");
        let over = through.load(Ordering::SeqCst) >= members;
        if !over && !second.progress && second.want == outcome.want {
            fabric.park(None);
        }
        fabric.announce_awake();
    }
}

/// Ends the other members' threads when one of them panics.
struct Alarm<'a, W: Fn()>(&'a AtomicUsize, W);

impl<W: Fn()> Drop for Alarm<'_, W> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.store(usize::MAX, Ordering::SeqCst);
            (self.1)();
        }
    }
}

fn check(hosts: &[usize]) {
    let histories: Vec<Received> = hosts.iter().map(|_| Received::default()).collect();
    let sink = |rank: usize| Reader(Arc::clone(&histories[rank]));
    let (_stations, nodes) = stations::engines(hosts, &[subgroup(hosts.len())], sink);
    let through = AtomicUsize::new(0);
    let wake_all = || nodes.iter().for_each(|node| node.handle().fabric().nudge());
    thread::scope(|scope| {
        for node in &nodes {
            scope.spawn(|| {
                let _alarm = Alarm(&through, wake_all);
                take_part(node, hosts.len(), &through, wake_all);
            });
        }
    });
    let histories: Vec<_> = histories
        .iter()
        .map(|seen| seen.lock().expect("no panic"))
        .collect();
    for history in &histories {
        assert!(**history == *histories[0], "two orders");
        for sender in (0..nodes.len() as u16).map(Rank) {
            let of_one = history.iter().filter(|(from, _)| *from == sender);
            assert!(of_one.map(|(_, index)| *index).eq(0..MESSAGES), "{sender}");
        }
    }
}

#[test]
fn one_order_over_shared_memory() {
    check(&[0, 0, 0]);
}

/// Two segments for each member, in the same streams.
#[test]
fn one_order_over_streams() {
    check(&[0, 1, 2]);
}

#[test]
fn one_order_over_hybrid_paths() {
    check(&[0, 1, 1, 0]);
}
