//! Engines next to rows that no engine writes, and on networks with the largest delays.

use spindle_dds_transport::FABRIC_AREA;
use spindle_dds_transport::sim::{NodeId, SegmentId, SimFabric, SimNetwork, SimOptions};

use super::*;
use crate::engine::Engine;
use crate::engine::subgroups::{SubgroupError, Subgroups};
use crate::limits::{DIGEST_EVERY, DIGESTS_KEPT, HEADER_LEN, MESSAGE_INDEX_MAX};
use crate::membership::{CONTROL_ROW_LEN, OutReason, SubgroupEnds, Touched};
use crate::sink::EngineEvent;
use crate::spec::{RingSpec, SenderSpec, SpecError};
use crate::subgroup::claim::{ClaimError, CommitMeta, Committed};
use crate::subgroup::header::{Header, MessageKind};
use crate::subgroup::held::{Delivery, Held};
use crate::subgroup::memory::EpochMemory;
use crate::subgroup::shared::Shared;

use Lie::{Message, Nulls};

mod fenced;
mod many;
mod persisted;
mod restart;
mod stop;
mod switches;
#[path = "../../tests/view/mod.rs"]
mod view;
mod waking;

const SUBGROUP: SubgroupId = SubgroupId(0);
const RING_MESSAGES: u32 = 4;

/// What a member's sink received.
#[derive(Default)]
struct Log {
    /// Sender and writer sequence number of each delivered message, in order.
    order: Vec<(Rank, u64)>,
    /// Position and digest at the end of the epoch.
    ended: Option<(u64, u64)>,
    /// Why the group has stopped, each time that is told.
    stopped: Vec<OutReason>,
    /// Whether each delivered message is held.
    holds: bool,
    /// Whether each message is skipped as unread.
    skips: bool,
    /// Whether the sink is not ready for a new epoch.
    is_full: bool,
    /// Number of `persisted` calls.
    persisted: u64,
    /// Whether what others persist is not worth waking up for.
    awaits_nothing: bool,
    /// Number of `batch_end` calls.
    upcalls: u64,
    held: Vec<Held<SimFabric>>,
}

impl Sink<SimFabric> for Log {
    fn deliver(&mut self, delivery: &Delivery<'_, SimFabric>) {
        let number = delivery.header.writer_seq;
        self.order.push((delivery.sender, number));
        if self.holds {
            self.held.push(delivery.hold());
        }
    }

    /// Takes some of the run, and leaves the rest.
    fn deliver_run(&mut self, run: &mut MessageRun<'_, SimFabric>) {
        if self.skips {
            run.skip(|_| true);
        }
        while run.peek().is_some_and(|next| next.writer_seq % 3 != 0)
            && let Some(delivery) = run.next()
        {
            self.deliver(&delivery);
        }
    }

    fn batch_end(&mut self) {
        self.upcalls += 1;
    }

    fn event(&mut self, event: EngineEvent) {
        match event {
            EngineEvent::EpochEnded { end, digest, .. } => self.ended = Some((end, digest)),
            EngineEvent::Stopped(reason) => self.stopped.push(reason),
            _ => {}
        }
    }

    fn is_reading(&self, _: SubgroupId) -> bool {
        true
    }

    fn is_ready(&self, _: SubgroupId) -> bool {
        !self.is_full
    }

    fn persisted(&mut self, subgroup: SubgroupId) {
        assert_eq!(subgroup, SUBGROUP);
        self.persisted += 1;
    }

    fn awaits_persisted(&self, _: SubgroupId) -> bool {
        !self.awaits_nothing
    }
}

type Node = Engine<SimFabric, Log>;

/// A subgroup in which every member sends by both classes.
fn spec(members: u16) -> SubgroupSpec {
    let ring = Some(RingSpec {
        messages: RING_MESSAGES,
        bytes: 128,
    });
    let places = (0..members).map(Rank);
    let sender = |rank| SenderSpec {
        rank,
        rings: [ring, ring],
    };
    SubgroupSpec {
        subgroup: SUBGROUP,
        epoch: 9,
        base: 0,
        senders: places.clone().map(sender).collect(),
        members: places.collect(),
        topics: vec![],
        is_logged: false,
    }
}

/// A network and its control segment.
fn network(members: u16, seed: u64, options: SimOptions) -> (SimNetwork, Vec<SimFabric>) {
    SimNetwork::group(seed, &vec![CONTROL_ROW_LEN; members.into()], options)
}

fn open(network: &SimNetwork, spec: &SubgroupSpec) -> SegmentId {
    let lens = SegmentLayout::new(spec).expect("a subgroup").row_lens();
    let nodes = spec.members.iter().map(|rank| NodeId(rank.index()));
    network.open(&nodes.zip(lens).collect::<Vec<_>>())
}

/// Engines in a view of one subgroup, and the subgroup's segment.
struct World {
    network: SimNetwork,
    nodes: Vec<Node>,
    segment: SegmentId,
}

impl World {
    fn new(members: u16, config: EngineConfig) -> Self {
        Self::of(&spec(members), config)
    }

    /// The members of this subgroup, after all have announced that they are ready.
    fn of(spec: &SubgroupSpec, config: EngineConfig) -> Self {
        let world = Self::starting(spec, config, |_| Log::default());
        for _ in 0..2 {
            world.network.settle();
            for node in &world.nodes {
                node.step(0);
            }
        }
        world.network.settle();
        world
    }

    /// The members of this subgroup, before they announce that they are ready.
    fn starting(spec: &SubgroupSpec, config: EngineConfig, log: impl Fn(usize) -> Log) -> Self {
        Self::starting_on(spec, config, SimOptions::default(), log)
    }

    /// The same on a network with these options.
    fn starting_on(
        spec: &SubgroupSpec,
        config: EngineConfig,
        options: SimOptions,
        log: impl Fn(usize) -> Log,
    ) -> Self {
        let members = spec.members.len();
        let (network, controls) = network(members as u16, 1, options);
        let segment = open(&network, spec);
        let view = view::view_of(members, vec![spec.clone()]);
        let node = |(control, place): (SimFabric, u16)| {
            let own = network.open(&[(NodeId(place.into()), FABRIC_AREA)]);
            let log = log(place.into());
            let node = Engine::new(network.fabric(own, Rank(0)), config, log);
            let mine = network.fabric(segment, Rank(place));
            view::begin_view(&node, &view, control, [mine]);
            node
        };
        Self {
            nodes: controls.into_iter().zip(0..).map(node).collect(),
            network,
            segment,
        }
    }

    /// Opens the next epoch of the subgroup at its members.
    fn go_on(&mut self, spec: &SubgroupSpec) {
        self.segment = open(&self.network, spec);
        for (rank, place) in spec.members.iter().zip(0..) {
            let segment = self.network.fabric(self.segment, Rank(place));
            let node = &self.nodes[rank.index()];
            let memory = EpochMemory::new(spec, Rank(place)).expect("memory");
            subgroups(node, |subgroups| subgroups.open(spec, segment, memory)).expect("a subgroup");
        }
        let all: Vec<usize> = spec.members.iter().map(|rank| rank.index()).collect();
        self.run(&all);
    }

    fn run(&self, nodes: &[usize]) {
        for _ in 0..10 {
            self.network.settle();
            for &at in nodes {
                self.nodes[at].step(0);
            }
        }
    }
}

fn log<R>(node: &Node, f: impl FnOnce(&mut Log) -> R) -> R {
    node.with_sink(f).expect("no step is under way")
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

fn send(node: &Node, count: usize) -> Option<Committed> {
    let subgroup = node.handle().subgroup(SUBGROUP).expect("a subgroup");
    let claim = || subgroup.claim(DeliveryClass::Ordered, 16).expect("room");
    let before = count.checked_sub(1)?;
    for _ in 0..before {
        claim().commit(16, &META).expect("a commit");
    }
    let mut last = claim();
    let index = node.send(&mut last, 16, &META).expect("a commit");
    Some(last.committed(index))
}

/// What a member that violates the protocol claims to have sent.
#[derive(Clone, Copy)]
enum Lie {
    /// This many messages, all of them nulls since the last real one.
    Nulls(u64),
    /// This many messages, the last of them real.
    Message(u64),
}

/// Of three members, the second makes these claims. True if the others suspect it at the last one,
/// false if no claim is refused. No nulls beyond `reach` are sent in answer.
fn refused(class: DeliveryClass, lies: &[Lie], reach: u64) -> bool {
    let World {
        network,
        nodes,
        segment,
    } = World::new(3, EngineConfig::SPINDLE);
    let liar = network.fabric(segment, Rank(1));
    let layout = SegmentLayout::new(&spec(3)).expect("a subgroup");
    let rings = layout.columns(Rank(1)).rings;
    let columns = rings[class.index()].as_ref().expect("a sender");
    let to: PeerSet = [Rank(0), Rank(2)].into_iter().collect();
    let mut real = 0;
    let others = [&nodes[0], &nodes[2]];
    for (at, &lie) in lies.iter().enumerate() {
        let (Nulls(guard) | Message(guard)) = lie;
        if matches!(lie, Message(_)) {
            let header = columns.header(real);
            for (word, value) in (header..).step_by(8).zip(message(guard - 1).to_words()) {
                liar.store(word, value);
            }
            liar.push(header, HEADER_LEN, &to);
            real += 1;
        }
        let nulls = others.map(|node| node.handle().counters().nulls);
        liar.push_word(columns.guard, guard, &to);
        network.settle();
        for node in others {
            node.step(0);
        }
        let suspects = others.map(Engine::suspects);
        if suspects.iter().all(Vec::is_empty) {
            for node in others {
                assert!(
                    node.handle().counters().nulls <= reach,
                    "{guard} is followed"
                );
            }
            continue;
        }
        let named = vec![(Rank(1), ProtocolViolation::GuardTooFar.to_string())];
        assert_eq!(suspects, [named.clone(), named]);
        assert_eq!(nulls, others.map(|node| node.handle().counters().nulls));
        assert_eq!(at + 1, lies.len(), "refused at {guard}");
        return true;
    }
    false
}

fn message(index: u64) -> Header {
    Header {
        index,
        offset: 0,
        len: 0,
        kind: MessageKind::Data,
        flags: 0,
        encapsulation: 1,
        writer: 0,
        writer_seq: 1,
        timestamp: 0,
        topic: 1,
        key_hash: [0; 16],
    }
}

#[test]
fn a_guard_beyond_the_bound_is_suspected_and_not_followed() {
    // The rings of both others hold `reach` messages: a guard up to there is followed. Another
    // member may have followed it further.
    let reach = 2 * u64::from(RING_MESSAGES);
    let blamed = reach + SLACK;
    let ordered = |lies: &[Lie]| refused(DeliveryClass::Ordered, lies, reach);
    for guard in [reach, reach + 1, blamed] {
        assert!(!ordered(&[Nulls(guard)]));
        assert!(!ordered(&[Message(guard)]));
    }
    for wild in [blamed + 1, 1 << 32, MESSAGE_INDEX_MAX, 1 << 48, u64::MAX] {
        assert!(ordered(&[Nulls(wild)]), "{wild}");
        assert!(ordered(&[Message(wild)]), "{wild}");
    }
    // Neither step by step: nulls that were followed do not justify more nulls, and one real
    // message does not justify more than one.
    assert!(ordered(&[reach - 1, reach, blamed + 1].map(Nulls)));
    assert!(ordered(&[Message(reach), Nulls(blamed + 1)]));
    // Without nulls, the ring's capacity is the bound.
    let reach = u64::from(RING_MESSAGES);
    let unordered = |lies: &[Lie]| refused(DeliveryClass::Unordered, lies, 0);
    assert!(!unordered(&[Nulls(reach)]));
    assert!(unordered(&[Nulls(reach + 1)]));
    assert!(unordered(&[1, reach, reach + 1].map(Nulls)));
}

/// By this much, a member may exceed the bound before it is suspected.
const SLACK: u64 = 2 * 3 * RING_MESSAGES as u64;

#[test]
fn an_acknowledgement_of_unsent_messages_is_suspected() {
    let reach = 2 * u64::from(RING_MESSAGES) + SLACK;
    let check = |received_num: u64, expected: Option<ProtocolViolation>| {
        let World {
            network,
            nodes,
            segment,
        } = World::new(3, EngineConfig::SPINDLE);
        let layout = SegmentLayout::new(&spec(3)).expect("a subgroup");
        let word = layout.columns(Rank(1)).received_num;
        network.forge(segment, Rank(1), word, received_num);
        network.settle();
        for node in [&nodes[0], &nodes[2]] {
            node.step(0);
            let named = expected.map(|what| (Rank(1), what.to_string()));
            assert_eq!(node.suspects(), Vec::from_iter(named));
        }
    };
    check((reach + 1) * 3, None);
    for wild in [(reach + 1) * 3 + 1, 1 << 40, u64::MAX] {
        check(wild, Some(ProtocolViolation::AcknowledgedTooMuch));
    }
}

/// Room that comes back is reported even if the same step finds a fault.
#[test]
fn room_is_reported_in_a_step_that_finds_a_fault() {
    let world = World::new(3, EngineConfig::SPINDLE);
    log(&world.nodes[2], |log| log.holds = true);
    send(&world.nodes[0], RING_MESSAGES as usize);
    world.run(&[0, 1, 2]);
    let held = log(&world.nodes[2], |log| std::mem::take(&mut log.held));
    assert_eq!(held.len(), RING_MESSAGES as usize);
    drop(held);
    world.network.settle();
    world.nodes[2].step(0);
    let layout = SegmentLayout::new(&spec(3)).expect("a subgroup");
    let ring = layout.columns(Rank(1)).rings[DeliveryClass::Ordered.index()];
    let guard = ring.as_ref().expect("a sender").guard;
    world.network.forge(world.segment, Rank(1), guard, 1 << 40);
    world.network.settle();
    let outcome = world.nodes[0].step(0).expect("no other step is under way");
    assert!(outcome.room, "{outcome:?}");
    assert_eq!(world.nodes[0].suspects().len(), 1);
}

/// Three members, of which the first sends, in a ring of eight messages.
fn one_sender() -> World {
    let ring = RingSpec {
        messages: 8,
        bytes: 256,
    };
    let mut spec = spec(3);
    spec.senders = vec![SenderSpec {
        rank: Rank(0),
        rings: [Some(ring), None],
    }];
    World::of(&spec, EngineConfig::SPINDLE)
}

/// A batch of any size takes one push each for payload, headers and guard, and one more for each
/// ring that wraps.
#[test]
fn a_batch_is_three_pushes_a_peer() {
    let world = one_sender();
    world.run(&[0, 1, 2]);
    let pushes = || {
        let subgroup = world.nodes[0]
            .handle()
            .subgroup(SUBGROUP)
            .expect("a subgroup");
        let counters = subgroup.fabric().counters();
        [counters.pushes, counters.word_pushes].map(|pushes| pushes / 2)
    };
    let mut sent = 0;
    for (batch, ranges) in [(1, 2), (4, 2), (6, 3), (2, 2), (5, 4)] {
        let before = pushes();
        send(&world.nodes[0], batch);
        let [after_ranges, after_words] = pushes();
        let cost = [after_ranges - before[0], after_words - before[1]];
        assert_eq!(cost, [ranges, 1], "{batch} after {sent}");
        sent += batch;
        world.run(&[0, 1, 2]);
        assert_eq!(log(&world.nodes[2], |log| log.order.len()), sent);
    }
}

/// The guard of the only sender is enough for a reader.
#[test]
fn a_guard_implies_the_senders_own_receipt() {
    let world = one_sender();
    send(&world.nodes[0], 2);
    world.network.settle();
    world.nodes[1].step(0);
    world.network.settle();
    world.nodes[2].step(0);
    let taken = log(&world.nodes[2], |log| log.order.clone());
    assert_eq!(taken, [(Rank(0), 1), (Rank(0), 2)]);
}

/// No delivery waits for the acknowledgement of nulls, and nulls are not acknowledged before a real
/// message follows.
#[test]
fn nulls_are_not_acknowledged() {
    let World { network, nodes, .. } = World::new(4, EngineConfig::SPINDLE);
    let step_all = || {
        network.settle();
        nodes.iter().for_each(|node| {
            node.step(0);
        });
    };
    let delivered = || {
        let of = |node| log(node, |log| log.order.len());
        nodes.iter().map(of).collect::<Vec<_>>()
    };
    // The counts received by the second member, as another member sees them.
    let second_has = |member: usize| {
        let subgroup = nodes[member]
            .handle()
            .subgroup(SUBGROUP)
            .expect("a subgroup");
        let layout = SegmentLayout::new(&spec(4)).expect("a subgroup");
        let columns = layout.columns(Rank(1));
        [0, 2, 3].map(|sender| subgroup.fabric.row(Rank(1)).load(columns.received(sender)))
    };
    step_all();
    for round in 1..=3 {
        let before = round as u64 - 1;
        send(&nodes[3], 1);
        step_all();
        assert_eq!(delivered(), [round - 1; 4], "nulls are on their way");
        step_all();
        assert_eq!(delivered(), [round; 4]);
        network.settle();
        assert_eq!(second_has(1), [before + 1; 3]);
        assert_eq!(second_has(2), [before, before, before + 1]);
        // The acknowledgement goes with the next release.
        step_all();
    }
}

/// A subgroup's state with its digest, outside of an engine.
struct Order {
    subgroup: Arc<SubgroupHandle<SimFabric>>,
    group: SubgroupState<SimFabric>,
}

impl Order {
    fn new(spec: &SubgroupSpec, segment: SimFabric) -> Self {
        let layout = SegmentLayout::new(spec).expect("a subgroup");
        let config = EngineConfig::SPINDLE;
        let EpochMemory { rings, headers, .. } =
            EpochMemory::new(spec, segment.me()).expect("memory");
        let shared = Arc::new(Shared::new());
        let subgroup = SubgroupHandle::new(segment, spec, &layout, rings, shared, config);
        let subgroup = Arc::new(subgroup.expect("a subgroup"));
        let group = SubgroupState::new(subgroup.clone(), spec.clone(), &layout, headers);
        Self { subgroup, group }
    }

    /// Takes this many checkpoints in one step.
    fn take_checkpoints(&mut self, count: u64) {
        let Self { subgroup, group } = self;
        let mut pushes = Pushes::new(subgroup.shared.clone());
        pushes.address(&group.others, group.peers);
        let mut context = Context {
            config: &EngineConfig::SPINDLE,
            pushes: &mut pushes,
            seqs: &mut WriterSeqs::default(),
            sink: &mut Log::default(),
        };
        for number in 0..count {
            group.digest.add(number * DIGEST_EVERY, 0, 7, 1);
            group.checkpoint((number + 1) * DIGEST_EVERY, subgroup, &mut context);
        }
        pushes.flush(&subgroup.fabric);
    }

    /// Polls the idle epoch.
    fn poll(&mut self) -> PollResult {
        let mut pushes = Pushes::new(self.subgroup.shared.clone());
        self.group.poll(&Context {
            config: &EngineConfig::SPINDLE,
            pushes: &mut pushes,
            seqs: &mut WriterSeqs::default(),
            sink: &mut Log::default(),
        })
    }
}

/// Independent of the order in which pushes become visible, a checkpoint is never taken for the
/// next one in its slot.
#[test]
fn many_checkpoints_in_one_step_are_no_disagreement() {
    let spec = spec(2);
    for (seed, shared_pairs) in (0..40).flat_map(|seed| [(seed, 0.0), (seed, 1.0)]) {
        let options = SimOptions {
            shared_pairs,
            early_fetch: 0.0,
            ..SimOptions::default()
        };
        let (network, _controls) = network(2, seed, options);
        let segment = open(&network, &spec);
        let [mut ahead, mut behind] =
            [Rank(0), Rank(1)].map(|place| Order::new(&spec, network.fabric(segment, place)));
        behind.take_checkpoints(DIGESTS_KEPT);
        ahead.take_checkpoints(2 * DIGESTS_KEPT + 3);
        while network.step() {
            let subgroup = behind.subgroup.clone();
            let compared = behind.group.compare_digests(&subgroup);
            assert_eq!(compared, Ok(()), "seed {seed}, shared {shared_pairs}");
        }
    }
}

/// Members with different orders detect it at the next checkpoint.
#[test]
fn different_orders_are_detected_by_their_digests() {
    let spec = spec(2);
    let (network, _controls) = network(2, 1, SimOptions::default());
    let segment = open(&network, &spec);
    let [mut one, mut other] =
        [Rank(0), Rank(1)].map(|place| Order::new(&spec, network.fabric(segment, place)));
    one.group.digest.add(0, 0, 7, 2);
    one.take_checkpoints(1);
    other.take_checkpoints(1);
    network.settle();
    let subgroup = one.subgroup.clone();
    let trouble = one
        .group
        .compare_digests(&subgroup)
        .expect_err("they differ");
    assert_eq!(trouble.place, Rank(1));
    let cause = crate::engine::views::describe(trouble.what);
    let begins = format!("its order up to position {DIGEST_EVERY} has digest");
    assert!(cause.starts_with(&begins), "{cause}");
}

/// A word that the next pass compares ends the idle state: here another member's next checkpoint.
#[test]
fn a_checkpoint_of_another_member_ends_the_idle_state() {
    let spec = spec(2);
    let (network, _controls) = network(2, 1, SimOptions::default());
    let segment = open(&network, &spec);
    let [mut one, mut other] =
        [Rank(0), Rank(1)].map(|place| Order::new(&spec, network.fabric(segment, place)));
    one.take_checkpoints(1);
    network.settle();
    one.group.enter_idle();
    assert_eq!(one.poll(), PollResult::Unchanged);
    other.take_checkpoints(1);
    network.settle();
    assert_eq!(one.poll(), PollResult::Changed);
}

/// Messages of two senders that are released together are released each at its own sender.
#[test]
fn messages_of_many_senders_are_released_together() {
    let world = World::new(3, EngineConfig::SPINDLE);
    for node in &world.nodes {
        log(node, |log| log.holds = true);
    }
    let ring = RING_MESSAGES as usize;
    for round in 0..3 {
        for _ in 0..ring {
            send(&world.nodes[0], 1);
            send(&world.nodes[1], 1);
            send(&world.nodes[2], 1);
            world.run(&[0, 1, 2]);
        }
        for node in &world.nodes {
            let mut held = log(node, |log| std::mem::take(&mut log.held));
            assert_eq!(held.len(), 3 * ring, "round {round}");
            // Runs of one sender, and of two in turn.
            held[ring..].sort_by_key(Held::sender);
            Held::release_all(held);
        }
        world.run(&[0, 1, 2]);
        let counters = world.nodes[0].handle().counters();
        let delivered = (round + 1) * 3 * ring as u64;
        assert_eq!(
            (counters.delivered, counters.delivered_bytes),
            (delivered, 16 * delivered)
        );
    }
}

/// Positions count from where the epoch begins in the subgroup's order.
#[test]
fn positions_go_on_from_the_base_of_the_epoch() {
    let spec = SubgroupSpec {
        base: 100,
        ..spec(2)
    };
    let world = World::of(&spec, EngineConfig::SPINDLE);
    send(&world.nodes[0], 1);
    world.run(&[0, 1]);
    for node in &world.nodes {
        let position = node.position(SUBGROUP).expect("a member");
        assert_eq!((position.stable, position.delivered_num), (101, 101));
    }
}

/// Each writer of a member has sequence numbers of its own, and the numbers that it skips.
#[test]
fn sequence_numbers_are_of_one_writer() {
    let world = World::new(2, EngineConfig::SPINDLE);
    let node = &world.nodes[0];
    let subgroup = node.handle().subgroup(SUBGROUP).expect("a subgroup");
    for (writer, skipped) in [(5, 0), (9, 0), (9, 2), (5, 0)] {
        let claim = || subgroup.claim(DeliveryClass::Ordered, 16).expect("room");
        let meta = CommitMeta {
            writer,
            skipped,
            ..META
        };
        node.send(&mut claim(), 16, &meta).expect("a commit");
        world.run(&[0, 1]);
    }
    let numbers = log(&world.nodes[1], |log| log.order.clone());
    let numbers: Vec<u64> = numbers.into_iter().map(|(_, number)| number).collect();
    let first = numbers[0];
    assert_eq!(numbers, [0, 0, 3, 1].map(|after| first + after));
}

/// The tickets that were taken at once, and those of each message, are all given back.
#[test]
fn the_memory_of_an_epoch_goes_with_its_engine_and_its_messages() {
    let world = World::new(2, EngineConfig::SPINDLE);
    let handle = |node: &Node| node.handle().subgroup(SUBGROUP).expect("a subgroup");
    let epoch = Arc::downgrade(&handle(&world.nodes[1]));
    log(&world.nodes[1], |log| log.holds = true);
    send(&world.nodes[0], 2);
    world.run(&[0, 1]);
    let held = log(&world.nodes[1], |log| std::mem::take(&mut log.held));
    assert_eq!(held.len(), 2);
    drop(world);
    assert!(epoch.upgrade().is_some(), "messages are held");
    drop(held);
    assert!(epoch.upgrade().is_none());
}

fn subgroups<R>(node: &Node, change: impl FnOnce(&mut Subgroups<'_, SimFabric, Log>) -> R) -> R {
    change(&mut Subgroups::new(node.participant(), &mut node.state()))
}

fn this() -> Touched {
    Touched::Only([SUBGROUP].into_iter().collect())
}

fn wedge(node: &Node) -> bool {
    subgroups(node, |subgroups| subgroups.wedge(&this()))
}

fn freeze(node: &Node) -> Result<Vec<u64>, (Rank, String)> {
    let trims = subgroups(node, |subgroups| subgroups.freeze(&this()))?;
    Ok(trims.into_iter().next().expect("wedged").counts)
}

fn finish(node: &Node, trim: &[u64]) -> Result<(), SubgroupError> {
    subgroups(node, |subgroups| subgroups.finish(SUBGROUP, trim))
}

fn fence(node: &Node, member: u16) {
    subgroups(node, |subgroups| subgroups.fence(Rank(member)));
}

/// Member 2 is expelled after some of its messages have arrived at member 0 only, and continues
/// without noticing.
#[test]
fn an_epoch_ends_the_same_at_all_that_go_on_without_an_expelled_member() {
    let mut world = World::new(3, EngineConfig::SPINDLE);
    send(&world.nodes[0], 2);
    send(&world.nodes[2], 1);
    world.run(&[0, 1, 2]);
    // In flight: two messages of member 2, which member 1 will not receive, and one of member 1,
    // which comes after a hole of member 2.
    subgroups(&world.nodes[1], |subgroups| subgroups.fence(Rank(2)));
    send(&world.nodes[2], 2);
    world.network.settle();
    world.nodes[0].step(0);
    let receipt = send(&world.nodes[1], 3).expect("sent");
    let old = world.nodes[1]
        .handle()
        .subgroup(SUBGROUP)
        .expect("a subgroup");
    let mut open = old.claim(DeliveryClass::Ordered, 16).expect("room");
    open.bytes().fill(7);
    fence(&world.nodes[0], 2);

    // In a wedged epoch, commits are refused and leave the claim open.
    for at in [0, 1] {
        let node = &world.nodes[at];
        let frozen = subgroups(node, |subgroups| subgroups.freeze(&this()));
        assert_eq!(frozen, Ok(vec![]), "not wedged yet");
        assert!(wedge(node) && wedge(node));
    }
    assert_eq!(open.commit(16, &META), Err(ClaimError::Wedged));
    assert_eq!(
        old.claim(DeliveryClass::Ordered, 1).expect_err("wedged"),
        ClaimError::Wedged
    );
    world.run(&[0, 1, 2]);
    assert!(!old.is_acknowledged(&receipt), "not before it ends");

    let counts = [0, 1].map(|at| freeze(&world.nodes[at]));
    let [first, second] = counts.map(|counts| counts.expect("wedged"));
    assert!(first[2] > second[2], "{first:?} {second:?}");
    assert_eq!(first[..2], second[..2]);
    let trim: Vec<u64> = (first.iter().zip(&second))
        .map(|(a, b)| *a.min(b))
        .collect();
    for at in [0, 1] {
        let node = &world.nodes[at];
        let beyond = finish(node, &[99, 99, 99]);
        assert_eq!(beyond, Err(SubgroupError::NotReceived(SUBGROUP)));
        assert_eq!(finish(node, &trim), Ok(()));
        assert!(node.handle().subgroup(SUBGROUP).is_none());
    }
    assert!(old.is_acknowledged(&receipt));
    let orders = [0, 1, 2].map(|at| log(&world.nodes[at], |log| log.order.clone()));
    assert_eq!(orders[0], orders[1]);
    assert!(orders[0].starts_with(&orders[2]) && orders[2].len() < orders[0].len());
    let of_second = |order: &[(Rank, u64)]| order.iter().filter(|at| at.0 == Rank(1)).count();
    assert_eq!(of_second(&orders[0]), 3);
    let ended = [0, 1].map(|at| log(&world.nodes[at], |log| log.ended).expect("it ended"));
    assert_eq!(ended[0], ended[1]);

    // The next epoch, of two members, begins at the position where this one ended.
    let mut next = spec(2);
    (next.epoch, next.base) = (10, ended[0].0);
    assert_eq!(next.base, spec(3).end(&trim));
    world.go_on(&next);
    let subgroup = world.nodes[1]
        .handle()
        .subgroup(SUBGROUP)
        .expect("a subgroup");
    assert!(
        subgroup.is_acknowledged(&receipt),
        "it knows of its predecessors"
    );
    let mut claim = subgroup.claim(DeliveryClass::Ordered, 16).expect("room");
    claim.bytes().copy_from_slice(open.bytes());
    drop(open);
    let sent = world.nodes[1].send(&mut claim, 16, &META);
    let receipt = claim.committed(sent.expect("a commit"));
    world.run(&[0, 1]);
    assert!(subgroup.is_acknowledged(&receipt));
    for at in [0, 1] {
        let order = log(&world.nodes[at], |log| log.order.clone());
        assert_eq!(order.last(), Some(&(Rank(1), 4)), "numbers go on");
        assert!(
            world.nodes[at]
                .position(SUBGROUP)
                .expect("a subgroup")
                .delivered_num
                > next.base
        );
    }
    let open = |spec: &SubgroupSpec, memory| {
        let segment = world.network.fabric(world.segment, Rank(0));
        subgroups(&world.nodes[0], |subgroups| {
            subgroups.open(spec, segment, memory).err()
        })
    };
    let memory = |rank| EpochMemory::new(&next, Rank(rank)).expect("memory");
    let occupied = open(&next, memory(0));
    let is_before = matches!(occupied, Some(SpecError::Occupied(_)));
    assert!(is_before, "the epoch before has not ended");
    let other = SubgroupSpec {
        subgroup: SubgroupId(SUBGROUP.0 + 1),
        ..next.clone()
    };
    let foreign = open(&other, memory(1));
    let is_foreign = matches!(foreign, Some(SpecError::Memory(_)));
    assert!(is_foreign, "the memory of another member");
}

/// A release while an epoch is wedged is acknowledged when the epoch reopens.
#[test]
fn room_comes_back_in_an_epoch_that_reopens() {
    let world = World::new(2, EngineConfig::SPINDLE);
    log(&world.nodes[1], |log| log.holds = true);
    send(&world.nodes[0], 1);
    world.run(&[0, 1]);
    let subgroup = world.nodes[0]
        .handle()
        .subgroup(SUBGROUP)
        .expect("a subgroup");
    assert_eq!(subgroup.released(DeliveryClass::Ordered), 0);
    assert!(world.nodes.iter().all(wedge));
    drop(log(&world.nodes[1], |log| core::mem::take(&mut log.held)));
    for node in &world.nodes {
        subgroups(node, |subgroups| {
            subgroups
                .split()
                .0
                .iter_mut()
                .for_each(SubgroupState::reopen)
        });
    }
    world.run(&[0, 1]);
    assert!(subgroup.released(DeliveryClass::Ordered) >= 1);
}

/// A fault found while an epoch ends fences the member; the others continue without it.
#[test]
fn a_fault_found_at_the_end_of_an_epoch_is_a_suspicion() {
    let world = World::new(2, EngineConfig::SPINDLE);
    let (honest, liar) = (
        &world.nodes[0],
        world.network.fabric(world.segment, Rank(1)),
    );
    let columns = SegmentLayout::new(&spec(2)).expect("a subgroup");
    let guard = columns.columns(Rank(1)).rings[0]
        .as_ref()
        .expect("a sender");
    assert!(wedge(honest));
    liar.push_word(guard.guard, 1 << 40, &[Rank(0)].into_iter().collect());
    world.network.settle();
    let named = Err((Rank(1), ProtocolViolation::GuardTooFar.to_string()));
    assert_eq!(freeze(honest), named);
    fence(honest, 1);
    assert_eq!(freeze(honest), Ok(vec![0, 0]));
    assert_eq!(finish(honest, &[0, 0]), Ok(()));
    let none = finish(honest, &[0, 0]);
    assert_eq!(none, Err(SubgroupError::NotOpen(SUBGROUP)));
}

/// After the counts are reported, nothing more is received or acknowledged: a suspected member may
/// still be alive and sending.
#[test]
fn what_comes_after_the_freeze_is_not_acknowledged() {
    let world = World::new(3, EngineConfig::SPINDLE);
    let [honest, _, late] = &world.nodes[..] else {
        unreachable!("three members")
    };
    for node in &world.nodes[..2] {
        fence(node, 2);
        assert!(wedge(node));
    }
    world.network.settle();
    let frozen = freeze(honest).expect("wedged");
    send(late, 2);
    world.run(&[0, 2]);
    assert_eq!(freeze(honest), Ok(frozen.clone()));
    let subgroup = honest.handle().subgroup(SUBGROUP).expect("a subgroup");
    let layout = SegmentLayout::new(&spec(3)).expect("a subgroup");
    let told = subgroup
        .fabric
        .row(Rank(0))
        .load(layout.columns(Rank(0)).received(2));
    assert_eq!(told, frozen[2]);
    assert_eq!(log(late, |log| log.order.len()), 0);
}

#[test]
fn an_epoch_of_a_view_begins_when_all_are_ready_for_it() {
    let world = World::starting(&spec(3), EngineConfig::SPINDLE, |place| Log {
        is_full: place == 2,
        ..Log::default()
    });
    let handle = |node: &Node| node.handle().subgroup(SUBGROUP).expect("a subgroup");
    let opened: Vec<_> = world.nodes.iter().map(handle).collect();
    let room = |class| [0, 1, 2].map(|at: usize| opened[at].claim(class, 16).is_ok());
    world.run(&[0, 1, 2]);
    assert_eq!(room(DeliveryClass::Ordered), [false; 3], "member 2 is not");
    assert_eq!(
        room(DeliveryClass::Unordered),
        [true; 3],
        "no thread waits for that"
    );
    log(&world.nodes[2], |log| log.is_full = false);
    world.run(&[2]);
    assert_eq!(
        room(DeliveryClass::Ordered),
        [false, false, true],
        "it knows first"
    );
    let changes = opened[0].changes();
    world.run(&[0, 1]);
    assert_eq!(room(DeliveryClass::Ordered), [true; 3]);
    assert!(
        opened[0].changes() > changes,
        "a waiting thread sees a change"
    );
    // From then on it has room as messages are released.
    log(&world.nodes[2], |log| log.is_full = true);
    send(&world.nodes[0], 1);
    world.run(&[0, 1, 2]);
    assert_eq!(log(&world.nodes[2], |log| log.order.len()), 1);
}
