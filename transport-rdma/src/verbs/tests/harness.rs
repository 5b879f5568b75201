//! Pairs of stations over devices, and their sleepers.

use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;
use std::process::Command;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Instant;

use super::super::{Hooks, RdmaSegment, RdmaTransport};
use crate::fabric::peers::{PeerSet, Rank};
use crate::fabric::{FABRIC_AREA, WakeInterest, WakeReason};
use crate::memory::Region;
use crate::rdma::RdmaOptions;
use crate::sleep;
use crate::station::segment::{SegmentKey, SegmentRequest};

/// Longer than anything takes that happens at all.
pub(super) const AGES: Duration = Duration::from_secs(30);

/// Offset of the first byte of a row that is free.
pub(super) const AT: usize = FABRIC_AREA;

pub(super) fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let until = Instant::now() + AGES;
    while !is_so() {
        assert!(Instant::now() < until, "{what}");
        std::thread::sleep(Duration::from_micros(200));
    }
}

/// The sleep of a station.
#[derive(Debug, Default)]
pub(super) struct TestSleeper {
    word: AtomicU64,
    woken: Mutex<bool>,
    condvar: Condvar,
}

impl TestSleeper {
    /// Wakes the sleeper on behalf of a peer.
    fn wake_for_peer(&self, reason: WakeReason, counter: &AtomicU64) {
        let word = sleep::fence_before_wake().epoch(&self.word);
        if WakeInterest::of_sleep_word(word).is_some_and(|want| want.includes(reason)) {
            counter.fetch_add(1, Ordering::Relaxed);
            *self.woken.lock().unwrap_or_else(PoisonError::into_inner) = true;
            self.condvar.notify_all();
        }
    }

    pub(super) fn is_announced(&self) -> bool {
        WakeInterest::of_sleep_word(self.word.load(Ordering::Relaxed)).is_some()
    }

    /// Sleeps until woken, unless `look` finds something. False after too long.
    pub(super) fn sleep(
        &self,
        core: &RdmaTransport,
        want: WakeInterest,
        look: impl Fn() -> bool,
    ) -> bool {
        *self.woken.lock().unwrap_or_else(PoisonError::into_inner) = false;
        let epoch = (self.word.load(Ordering::Relaxed) >> 2) + 1;
        let word = want.sleep_word(epoch);
        sleep::announce(&self.word, word);
        core.announce_sleep(word);
        let mut in_time = true;
        if !look() {
            let woken = self.woken.lock().unwrap_or_else(PoisonError::into_inner);
            let slept = self
                .condvar
                .wait_timeout_while(woken, AGES, |woken| !*woken);
            in_time = !slept.unwrap_or_else(PoisonError::into_inner).1.timed_out();
        }
        self.word.store(epoch << 2, Ordering::Release);
        core.announce_awake();
        in_time
    }
}

/// A participant.
#[derive(Debug)]
pub(super) struct Station {
    pub(super) id: u128,
    pub(super) core: RdmaTransport,
    pub(super) sleeper: Arc<TestSleeper>,
    pub(super) failed: Arc<Mutex<Vec<(u128, String)>>>,
}

impl Station {
    /// Station of node `node` of the guest, from 1.
    pub(super) fn new(node: u8, patience: Duration) -> Self {
        let options = RdmaOptions {
            device: Some(format!("rxe{node}")),
            ..RdmaOptions::default()
        };
        let sleeper = Arc::<TestSleeper>::default();
        let failed = Arc::<Mutex<Vec<_>>>::default();
        let (waker, failures) = (Arc::clone(&sleeper), Arc::clone(&failed));
        let hooks = Hooks {
            wake: Box::new(move |reason, counter| waker.wake_for_peer(reason, counter)),
            failed: Box::new(move |peer, why| {
                let mut failures = failures.lock().unwrap_or_else(PoisonError::into_inner);
                failures.push((peer, why));
            }),
            proved: Box::new(|_| {}),
            io: Default::default(),
        };
        let listen = [10, 77, 0, node].into();
        Self {
            id: u128::from(node),
            core: RdmaTransport::open(&options, listen, patience, hooks).expect("a device"),
            sleeper,
            failed,
        }
    }

    pub(super) fn failures(&self) -> Vec<(u128, String)> {
        let failed = self.failed.lock();
        failed.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Makes a segment of the two stations.
    pub(super) fn segment(&self, key: SegmentKey) -> Half {
        self.segment_of(key, ROW_LEN)
    }

    /// The same, with rows of this length.
    pub(super) fn segment_of(&self, key: SegmentKey, len: usize) -> Half {
        let me = Rank(self.id as u16 - 1);
        let request = SegmentRequest {
            key,
            members: vec![1, 2],
            me,
            row_lens: vec![len; 2],
            control: false,
        };
        let to = [Rank(1 - me.0)].into_iter().collect();
        let row = Region::heap(len);
        let segment = self.core.segment(&request, &to, &row).expect("a segment");
        let (_, copy) = segment.copies()[0].clone();
        Half {
            segment,
            row,
            copy,
            to,
            peer: Rank(1 - me.0),
        }
    }
}

const ROW_LEN: usize = 1 << 16;

/// One station's side of a segment.
#[derive(Debug)]
pub(super) struct Half {
    pub(super) segment: RdmaSegment,
    pub(super) row: Region,
    pub(super) copy: Region,
    pub(super) to: PeerSet,
    pub(super) peer: Rank,
}

impl Half {
    pub(super) fn push_word(&self, at: usize, value: u64) {
        self.row.store(at, value);
        self.segment.push_word(at, value, &self.to);
    }

    pub(super) fn wake_peer(&self) {
        self.segment.wake(&self.to, WakeReason::Data);
    }

    /// Pushes a word, and wakes the peer.
    pub(super) fn say(&self, at: usize, value: u64) {
        self.push_word(at, value);
        self.wake_peer();
    }

    /// Waits for the peer's word.
    pub(super) fn hear(&self, at: usize, value: u64) {
        wait_until("the word comes", || self.copy.load(at) == value);
    }
}

pub(super) fn connect(a: &Station, b: &Station) {
    let offer = a.core.offer(b.id).expect("an offer");
    let answer = b.core.answer(a.id, &offer).expect("an answer");
    a.core.accept(b.id, &answer).expect("accepted");
    wait_until("both say hello", || {
        a.core.is_proved(b.id) && b.core.is_proved(a.id)
    });
}

/// Two connected stations.
pub(super) fn pair() -> (Station, Station) {
    let patience = Duration::from_secs(10);
    let (a, b) = (Station::new(1, patience), Station::new(2, patience));
    connect(&a, &b);
    (a, b)
}

pub(super) fn key(epoch: u64, index: u32) -> SegmentKey {
    SegmentKey { epoch, index }
}

/// Runs a command of the guest; returns its output.
pub(super) fn run(command: &str) -> String {
    let done = Command::new("sh").args(["-c", command]).output();
    let done = done.expect("a shell");
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{command}: {said}");
    String::from_utf8_lossy(&done.stdout).into_owned()
}

/// Drops some packets between nodes while this lives; there is one at a time.
pub(super) struct Firewall;

impl Firewall {
    fn dropping(which: &str) -> Self {
        run("nft add table bridge t && \
             nft 'add chain bridge t f { type filter hook forward priority 0; }'");
        run(&format!("nft 'add rule bridge t f {which} drop'"));
        Self
    }

    /// All packets from one node to the other.
    pub(super) fn between(from: u8, to: u8) -> Self {
        Self::dropping(&format!("iifname p{from} oifname p{to}"))
    }

    /// All packets of RDMA.
    pub(super) fn against_rdma() -> Self {
        Self::dropping("udp dport 4791")
    }

    /// The first request for the hardware address of a neighbour, which is not known yet.
    pub(super) fn against_first_question() -> Self {
        let firewall = Self::dropping("ether type arp numgen inc mod 1000 == 0");
        run("ip neigh flush all");
        firewall
    }
}

impl Drop for Firewall {
    fn drop(&mut self) {
        run("nft delete table bridge t");
    }
}

/// Loses or delays the packets that a node sends while this lives.
pub(super) struct Netem {
    node: u8,
}

impl Netem {
    pub(super) fn on(node: u8, how: &str) -> Self {
        run("modprobe sch_netem");
        run(&format!("tc qdisc add dev n{node} root netem {how}"));
        Self { node }
    }
}

impl Drop for Netem {
    fn drop(&mut self) {
        run(&format!("tc qdisc del dev n{} root", self.node));
    }
}
