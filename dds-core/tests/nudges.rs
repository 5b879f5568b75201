//! Work is visible before the nudge for it: a thread that wakes looks at once.

// The crate under test has no locks; the recorded calls need one.
#![allow(clippy::disallowed_types)]

mod view;

use std::sync::{Arc, Mutex};

use spindle_dds_core::membership::CONTROL_ROW_LEN;
use spindle_dds_core::{
    Claim, ClaimError, CommitMeta, Delivery, DeliveryClass, Engine, EngineConfig, EngineEvent,
    MessageKind, RingSpec, SegmentLayout, SenderSpec, Sink, SubgroupId, SubgroupSpec, TopicKey,
};
use spindle_dds_transport::sim::{NodeId, SimFabric, SimNetwork, SimOptions};
use spindle_dds_transport::{
    FABRIC_AREA, Fabric, FabricCounters, PeerFailure, PeerSet, Rank, Region, WakeInterest,
    WakeReason,
};

const SUBGROUP: SubgroupId = SubgroupId(0);

/// A call of a fabric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Call {
    Store,
    PushWord,
    Nudge,
    NudgeUnderLock,
}

/// The calls of one member, in all its segments.
type Calls = Arc<Mutex<Vec<Call>>>;

/// A fabric that records its calls.
struct Noted {
    fabric: SimFabric,
    calls: Calls,
}

impl Noted {
    fn note(&self, call: Call) {
        self.calls.lock().expect("no panic").push(call);
    }
}

impl Fabric for Noted {
    fn me(&self) -> Rank {
        self.fabric.me()
    }

    fn members(&self) -> usize {
        self.fabric.members()
    }

    fn row(&self, of: Rank) -> &Region {
        self.fabric.row(of)
    }

    fn store(&self, word: usize, value: u64) {
        self.note(Call::Store);
        self.fabric.store(word, value);
    }

    fn push(&self, at: usize, len: usize, to: &PeerSet) {
        self.fabric.push(at, len, to);
    }

    fn push_word(&self, word: usize, value: u64, to: &PeerSet) {
        self.note(Call::PushWord);
        self.fabric.push_word(word, value, to);
    }

    fn wake(&self, peers: &PeerSet, reason: WakeReason) {
        self.fabric.wake(peers, reason);
    }

    fn shares_memory(&self) -> bool {
        self.fabric.shares_memory()
    }

    fn would_wake(&self, peers: &PeerSet, reason: WakeReason) -> bool {
        self.fabric.would_wake(peers, reason)
    }

    fn announce_sleep(&self, want: WakeInterest) {
        self.fabric.announce_sleep(want);
    }

    fn announce_awake(&self) {
        self.fabric.announce_awake();
    }

    fn nudge(&self) {
        self.note(Call::Nudge);
        self.fabric.nudge();
    }

    fn nudge_under_lock(&self) {
        self.note(Call::NudgeUnderLock);
        self.fabric.nudge_under_lock();
    }

    fn poll(&self) -> Option<PeerFailure> {
        self.fabric.poll()
    }

    fn fence(&self, peer: Rank) {
        self.fabric.fence(peer);
    }

    fn counters(&self) -> FabricCounters {
        self.fabric.counters()
    }
}

/// Ignores all deliveries.
struct Ignore {
    /// Whether topics are read here.
    reads: bool,
}

impl<F: Fabric> Sink<F> for Ignore {
    fn deliver(&mut self, _: &Delivery<'_, F>) {}

    fn batch_end(&mut self) {}

    fn event(&mut self, _: EngineEvent) {}

    fn is_reading(&self, _: SubgroupId) -> bool {
        self.reads
    }
}

const META: CommitMeta = CommitMeta {
    kind: MessageKind::Data,
    flags: 0,
    encapsulation: 1,
    writer: 0,
    timestamp: 0,
    topic: 1,
    key_hash: [0; 16],
    skipped: 0,
};

/// Two members that both may send, and the calls of the first. `reads`: whether they read the
/// topic.
fn pair(reads: bool, config: EngineConfig) -> (SimNetwork, [Engine<Noted, Ignore>; 2], Calls) {
    let ring = Some(RingSpec {
        messages: 4,
        bytes: 128,
    });
    let ranks = || (0..2).map(Rank);
    let rings = [ring, None];
    let spec = SubgroupSpec {
        subgroup: SUBGROUP,
        epoch: 1,
        base: 0,
        members: ranks().collect(),
        senders: ranks().map(|rank| SenderSpec { rank, rings }).collect(),
        topics: vec![TopicKey(1)],
        is_logged: false,
    };
    let options = SimOptions::default();
    let (network, controls) = SimNetwork::group(1, &[CONTROL_ROW_LEN; 2], options);
    let lens = SegmentLayout::new(&spec).expect("a subgroup").row_lens();
    let rows: Vec<_> = (0..).map(NodeId).zip(lens).collect();
    let segment = network.open(&rows);
    let view = view::view_of(2, vec![spec]);
    let all = [Calls::default(), Calls::default()];
    let mut controls = controls.into_iter();
    let engines = all.each_ref().map(|calls| {
        let noted = |fabric| Noted {
            fabric,
            calls: calls.clone(),
        };
        let control = noted(controls.next().expect("two members"));
        let segment = noted(network.fabric(segment, control.me()));
        let own = network.open(&[(NodeId(control.me().index()), FABRIC_AREA)]);
        let own = noted(network.fabric(own, Rank(0)));
        let engine = Engine::new(own, config, Ignore { reads });
        view::begin_view(&engine, &view, control, [segment]);
        engine
    });
    for _ in 0..2 {
        for engine in &engines {
            engine.step(0);
        }
        network.settle();
    }
    let [calls, _] = all;
    (network, engines, calls)
}

fn claim(engine: &Engine<Noted, Ignore>) -> Claim<Noted> {
    let subgroup = engine.handle().subgroup(SUBGROUP).expect("a subgroup");
    subgroup.claim(DeliveryClass::Ordered, 16).expect("room")
}

/// The calls of a member of two while it sends a message by `send`.
fn calls(reads: bool, send: impl FnOnce(&Engine<Noted, Ignore>, Claim<Noted>)) -> Vec<Call> {
    let (_network, [engine, _other], calls) = pair(reads, EngineConfig::SPINDLE);
    let claim = claim(&engine);
    calls.lock().expect("no panic").clear();
    send(&engine, claim);
    let calls = calls.lock().expect("no panic");
    calls.clone()
}

/// Asserts that one nudge follows all calls that make the message visible.
fn check(calls: &[Call], publication: Call, nudge: Call) {
    let (last, before) = calls.split_last().expect("calls");
    assert_eq!(*last, nudge, "{calls:?}");
    assert!(before.contains(&publication), "{calls:?}");
    let nudges = |call: &Call| matches!(call, Call::Nudge | Call::NudgeUnderLock);
    assert!(!before.iter().any(nudges), "{calls:?}");
}

#[test]
fn the_owner_of_the_engine_nudges_after_it_has_published() {
    let sent = calls(true, |engine, mut claim| {
        engine.send(&mut claim, 16, &META).expect("a commit");
    });
    check(&sent, Call::PushWord, Call::NudgeUnderLock);
}

/// A sender that finds no room steps the engine itself.
#[test]
fn a_member_that_only_sends_does_not_nudge_for_its_own_messages() {
    let fill = |engine: &Engine<Noted, Ignore>, mut claim: Claim<Noted>| {
        let refused = loop {
            engine.send(&mut claim, 16, &META).expect("a commit");
            if let Err(refused) = claim.renew(16) {
                break refused;
            }
        };
        assert_eq!(refused, ClaimError::NoRoom);
        let outcome = engine.step(0).expect("no other thread steps");
        assert_eq!(outcome.want, WakeInterest::Data);
        let _waiting = engine.handle().waiting_for_acks();
        let outcome = engine.step(0).expect("no other thread steps");
        assert_eq!(outcome.want, WakeInterest::Room);
    };
    let sent = calls(false, fill);
    let (last, before) = sent.split_last().expect("calls");
    assert_eq!(*last, Call::Nudge, "for the thread that waits");
    let nudges = |call: &Call| matches!(call, Call::Nudge | Call::NudgeUnderLock);
    assert!(!before.iter().any(nudges), "{sent:?}");
}

/// Without nulls of the other member, only acknowledgements show that the message was received.
#[test]
fn without_nulls_the_sender_is_woken_for_acknowledgements() {
    let config = EngineConfig {
        null_sends: false,
        ..EngineConfig::SPINDLE
    };
    let (_network, [engine, _other], calls) = pair(false, config);
    let mut claim = claim(&engine);
    engine.send(&mut claim, 16, &META).expect("a commit");
    let sent = calls.lock().expect("no panic").clone();
    assert_eq!(sent.last(), Some(&Call::NudgeUnderLock), "{sent:?}");
}

/// Another thread holds the engine's lock: it publishes, or a thread that is woken.
#[test]
fn a_thread_without_the_lock_nudges_after_its_commit() {
    let sent = calls(false, |engine, mut claim| {
        let committed = engine.with_sink(|_| engine.send(&mut claim, 16, &META));
        committed.expect("no thread steps").expect("a commit");
        assert!(engine.handle().has_left_commits());
    });
    check(&sent, Call::Store, Call::Nudge);
}
