//! What a step looks at that a thread takes before it sleeps, with many subgroups at rest.

mod view;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use spindle_dds_core::membership::CONTROL_ROW_LEN;
use spindle_dds_core::{
    CommitMeta, Delivery, DeliveryClass, Engine, EngineConfig, EngineEvent, MessageKind, RingSpec,
    SegmentLayout, SenderSpec, Sink, SubgroupId, SubgroupSpec, TopicKey,
};
use spindle_dds_transport::sim::{NodeId, SimFabric, SimNetwork, SimOptions};
use spindle_dds_transport::{
    FABRIC_AREA, Fabric, FabricCounters, News, PeerFailure, PeerSet, Rank, Region, SeenNews,
    WakeInterest, WakeReason,
};

const MEMBERS: u16 = 10;

/// More steps than it takes until all subgroups are idle.
const STEPS: usize = 20;

/// A fabric that counts how often rows of others are looked at, but for control segments.
struct Counted {
    fabric: SimFabric,
    looks: Option<Arc<AtomicU64>>,
}

impl Fabric for Counted {
    fn me(&self) -> Rank {
        self.fabric.me()
    }

    fn members(&self) -> usize {
        self.fabric.members()
    }

    fn row(&self, of: Rank) -> &Region {
        if let Some(looks) = self.looks.as_ref().filter(|_| of != self.me()) {
            looks.fetch_add(1, Ordering::Relaxed);
        }
        self.fabric.row(of)
    }

    fn store(&self, word: usize, value: u64) {
        self.fabric.store(word, value);
    }

    fn push(&self, at: usize, len: usize, to: &PeerSet) {
        self.fabric.push(at, len, to);
    }

    fn push_word(&self, word: usize, value: u64, to: &PeerSet) {
        self.fabric.push_word(word, value, to);
    }

    fn wake(&self, peers: &PeerSet, reason: WakeReason) {
        self.fabric.wake(peers, reason);
    }

    fn announce_sleep(&self, want: WakeInterest) {
        self.fabric.announce_sleep(want);
    }

    fn announce_awake(&self) {
        self.fabric.announce_awake();
    }

    fn nudge(&self) {
        self.fabric.nudge();
    }

    fn news(&self, seen: &mut SeenNews) -> Option<News> {
        self.fabric.news(seen)
    }

    fn news_bucket(&self) -> u8 {
        self.fabric.news_bucket()
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

/// Counts deliveries.
struct Counting(Arc<AtomicU64>);

impl<F: Fabric> Sink<F> for Counting {
    fn deliver(&mut self, _: &Delivery<'_, F>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    fn batch_end(&mut self) {}

    fn event(&mut self, _: EngineEvent) {}

    fn is_reading(&self, _: SubgroupId) -> bool {
        true
    }
}

/// Members that all send in all subgroups, at rest.
struct World {
    network: SimNetwork,
    engines: Vec<Engine<Counted, Counting>>,
    /// Looks of the last member, and what it has delivered.
    looks: Arc<AtomicU64>,
    delivered: Arc<AtomicU64>,
}

fn subgroup(at: u32) -> SubgroupSpec {
    let ring = Some(RingSpec {
        messages: 4,
        bytes: 128,
    });
    let ranks = || (0..MEMBERS).map(Rank);
    let rings = [ring, None];
    SubgroupSpec {
        subgroup: SubgroupId(at),
        epoch: 1,
        base: 0,
        members: ranks().collect(),
        senders: ranks().map(|rank| SenderSpec { rank, rings }).collect(),
        topics: vec![TopicKey(at.into())],
        is_logged: false,
    }
}

impl World {
    fn at_rest(subgroups: u32, known_news: bool) -> Self {
        let options = SimOptions {
            shared_pairs: 1.0,
            known_news: f64::from(u8::from(known_news)),
            stalls: 0.0,
            ..SimOptions::default()
        };
        let rows = [CONTROL_ROW_LEN; MEMBERS as usize];
        let (network, controls) = SimNetwork::group(1, &rows, options);
        let subgroups: Vec<_> = (0..subgroups).map(subgroup).collect();
        let open = |spec: &SubgroupSpec| {
            let lens = SegmentLayout::new(spec).expect("a subgroup").row_lens();
            let rows: Vec<_> = (0..).map(NodeId).zip(lens).collect();
            network.open(&rows)
        };
        let segments: Vec<_> = subgroups.iter().map(open).collect();
        let view = view::view_of(MEMBERS.into(), subgroups);
        let (looks, delivered) = (Arc::<AtomicU64>::default(), Arc::<AtomicU64>::default());
        let engine = |control: SimFabric| {
            let rank = control.me();
            let is_last = rank == Rank(MEMBERS - 1);
            let counted = |fabric| Counted {
                fabric,
                looks: is_last.then(|| looks.clone()),
            };
            let own = network.open(&[(NodeId(rank.index()), FABRIC_AREA)]);
            let own = counted(network.fabric(own, Rank(0)));
            let of_last = if is_last {
                delivered.clone()
            } else {
                Arc::default()
            };
            let engine = Engine::new(own, EngineConfig::SPINDLE, Counting(of_last));
            let parts = segments.iter().map(|at| counted(network.fabric(*at, rank)));
            let control = Counted {
                fabric: control,
                looks: None,
            };
            view::begin_view(&engine, &view, control, parts);
            engine
        };
        let engines = controls.into_iter().map(engine).collect();
        let world = Self {
            network,
            engines,
            looks,
            delivered,
        };
        world.rest();
        world
    }

    fn rest(&self) {
        for _ in 0..STEPS {
            for engine in &self.engines {
                engine.step(0);
            }
            self.network.settle();
        }
    }

    /// How many rows the last member looks at in a full step, and whether that makes progress.
    fn looks_of_a_step(&self) -> (u64, bool) {
        self.looks.store(0, Ordering::Relaxed);
        let outcome = self.engines.last().and_then(|it| it.step(0));
        let progress = outcome.expect("no other thread steps").progress;
        (self.looks.load(Ordering::Relaxed), progress)
    }

    /// The first member publishes in a subgroup.
    fn publish(&self, subgroup: u32) {
        let meta = CommitMeta {
            kind: MessageKind::Data,
            flags: 0,
            encapsulation: 1,
            writer: 0,
            timestamp: 0,
            topic: subgroup.into(),
            key_hash: [0; 16],
            skipped: 0,
        };
        let engine = &self.engines[0];
        let handle = engine.handle().subgroup(SubgroupId(subgroup));
        let handle = handle.expect("a subgroup");
        let mut claim = handle.claim(DeliveryClass::Ordered, 16).expect("room");
        engine.send(&mut claim, 16, &meta).expect("a commit");
        self.network.settle();
    }
}

#[test]
fn where_news_are_known_a_step_at_rest_looks_at_no_row() {
    for subgroups in [60, 300] {
        let known = World::at_rest(subgroups, true);
        assert_eq!(known.looks_of_a_step(), (0, false), "{subgroups}");
        // One word of each other member: 540 of 60 subgroups, 2,700 of 300.
        let unknown = World::at_rest(subgroups, false);
        let all = u64::from(subgroups) * u64::from(MEMBERS - 1);
        assert_eq!(unknown.looks_of_a_step(), (all, false));
    }
}

#[test]
fn a_step_finds_the_one_subgroup_that_has_news() {
    let world = World::at_rest(60, true);
    for subgroup in [0, 59, 7, 7] {
        let before = world.delivered.load(Ordering::Relaxed);
        world.publish(subgroup);
        let (_, progress) = world.looks_of_a_step();
        assert!(progress, "{subgroup}");
        world.rest();
        assert_eq!(world.delivered.load(Ordering::Relaxed), before + 1);
        assert_eq!(world.looks_of_a_step(), (0, false));
    }
}

/// A step that delivers in one subgroup does not always look elsewhere. What comes meanwhile in
/// another one is found by a later step, though no member tells of it again.
#[test]
fn news_that_come_beside_other_progress_are_found() {
    let world = World::at_rest(12, true);
    let last = world.engines.last().expect("members");
    for round in 0..6 {
        let (busy, quiet) = (round % 2, 6 + round);
        // It becomes active, so that the next message there is progress of the next step.
        world.publish(busy);
        last.step(0);
        world.publish(busy);
        world.publish(quiet);
        while last.step(0).is_some_and(|step| step.progress) {}
        let received = last.has_received(SubgroupId(quiet), 0);
        assert_eq!(received, Some(true), "round {round}");
        world.rest();
    }
}
