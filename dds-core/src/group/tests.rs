//! Engines beside rows that no engine writes, and on networks at their latest.

use spindle_dds_transport::sim::{SimFabric, SimNetwork, SimOptions};

use super::*;
use crate::engine::{Engine, Event};
use crate::header::{Header, Kind};
use crate::layout::Layout;
use crate::limits::{DIGEST_EVERY, DIGESTS_KEPT, HEADER_LEN, MESSAGE_INDEX_MAX};
use crate::shared::{Delivery, Held, Meta};
use crate::spec::{RingSpec, SenderSpec, SubgroupSpec};
use crate::stream::Nonsense;

use Lie::{Message, Nulls};

const SUBGROUP: SubgroupId = SubgroupId(0);
const RING_MESSAGES: u32 = 4;

/// What a member was handed: (sender, writer sequence number), 0 for a farewell.
#[derive(Default)]
struct Log {
    order: Vec<(Rank, u64)>,
    stopped: Option<StopReason>,
    holds: bool,
    held: Vec<Held<SimFabric>>,
}

impl Sink<SimFabric> for Log {
    fn deliver(&mut self, delivery: &Delivery<'_, SimFabric>) {
        let number = delivery.header.writer_seq;
        self.order.push((delivery.sender, number));
        if self.holds {
            self.held.extend(delivery.hold());
        }
    }

    fn batch_end(&mut self) {}

    fn event(&mut self, event: Event) {
        match event {
            Event::SenderLeft {
                rank,
                ring: Ring::Ordered,
                ..
            } => {
                self.order.push((rank, 0));
            }
            Event::Stopped(reason) => self.stopped = Some(reason),
            Event::SenderLeft { .. } | Event::MemberLeft { .. } => {}
        }
    }

    fn is_reading(&self, _: SubgroupId) -> bool {
        true
    }
}

type Node = Engine<SimFabric, Log>;

/// All send, in both rings.
fn view(members: usize) -> ViewSpec {
    let ring = Some(RingSpec {
        messages: RING_MESSAGES,
        bytes: 128,
    });
    let ranks: Vec<Rank> = (0..members as u16).map(Rank).collect();
    let sender = |&rank: &Rank| SenderSpec {
        rank,
        rings: [ring, ring],
    };
    ViewSpec {
        view_id: 9,
        members,
        subgroups: vec![SubgroupSpec {
            senders: ranks.iter().map(sender).collect(),
            members: ranks,
            topics: vec![],
        }],
    }
}

fn network(view: &ViewSpec, seed: u64, options: SimOptions) -> SimNetwork {
    let layout = Layout::new(view).expect("a view");
    SimNetwork::new(seed, &layout.row_lens(), options)
}

fn nodes(view: &ViewSpec, network: &SimNetwork, config: EngineConfig) -> Vec<Node> {
    let ranks = (0..view.members as u16).map(Rank);
    let node = |rank| Engine::new(network.fabric(rank), view, config, Log::default());
    ranks.map(|rank| node(rank).expect("an engine")).collect()
}

fn log<R>(node: &Node, f: impl FnOnce(&mut Log) -> R) -> R {
    node.with_sink(f).expect("nobody steps")
}

fn send(node: &Node, count: usize) {
    for _ in 0..count {
        let claim = node.handle().claim(SUBGROUP, Ring::Ordered, 16);
        let meta = Meta {
            kind: Kind::Data,
            flags: 0,
            encapsulation: 1,
            writer: 0,
            timestamp: 0,
            topic: 1,
            key_hash: [0; 16],
        };
        claim.expect("room").commit(16, &meta).expect("a commit");
    }
    node.publish(SUBGROUP);
}

/// What a member claims that does not keep to the protocol.
#[derive(Clone, Copy)]
enum Lie {
    /// So many messages, all of them nulls since the last real one.
    Nulls(u64),
    /// So many messages, the last of them real.
    Message(u64),
}

/// Of three members the second tells these lies. True if the others stop at
/// the last of them and name it, false if none is refused.
fn refused(ring: Ring, lies: &[Lie]) -> bool {
    let view = view(3);
    let network = network(&view, 1, SimOptions::default());
    let nodes = nodes(&view, &network, EngineConfig::SPINDLE);
    let liar = network.fabric(Rank(1));
    let layout = Layout::new(&view).expect("a view");
    let rings = layout.columns(Rank(1), 0).expect("a member").rings;
    let columns = rings[ring.index()].as_ref().expect("a sender");
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
            node.step();
        }
        let stopped = others.map(|node| log(node, |log| log.stopped.clone()));
        if stopped == [None, None] {
            continue;
        }
        let named = StopReason::PeerNonsense {
            rank: Rank(1),
            what: Nonsense::GuardTooFar,
        };
        assert_eq!(stopped, [Some(named.clone()), Some(named)]);
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
        kind: Kind::Data,
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
fn a_guard_that_nobody_can_have_reached_is_named_and_not_followed() {
    // What the rings of both others can hold, and that both can leave.
    let reach = 2 * (u64::from(RING_MESSAGES) + 1);
    assert!(!refused(Ring::Ordered, &[Nulls(reach)]));
    assert!(!refused(Ring::Ordered, &[Message(reach)]));
    for wild in [reach + 1, 1 << 32, MESSAGE_INDEX_MAX, 1 << 48, u64::MAX] {
        assert!(refused(Ring::Ordered, &[Nulls(wild)]), "{wild}");
        assert!(refused(Ring::Ordered, &[Message(wild)]), "{wild}");
    }
    // Nor step by step: neither nulls that were followed justify others, nor
    // does one message justify more than one.
    let steps = [reach - 1, reach, reach + 1];
    assert!(refused(Ring::Ordered, &steps.map(Nulls)));
    assert!(refused(Ring::Ordered, &[Message(reach), Nulls(reach + 1)]));
    // Without nulls, what the ring holds.
    let reach = u64::from(RING_MESSAGES);
    assert!(!refused(Ring::Unordered, &[Nulls(reach)]));
    assert!(refused(Ring::Unordered, &[Nulls(reach + 1)]));
    assert!(refused(Ring::Unordered, &[1, reach, reach + 1].map(Nulls)));
}

#[test]
fn a_farewell_comes_after_the_last_message_however_few_are_taken_at_once() {
    let config = EngineConfig {
        receive_batching: false,
        ..EngineConfig::SPINDLE
    };
    let view = view(2);
    let network = network(&view, 1, SimOptions::default());
    let nodes = nodes(&view, &network, config);
    send(&nodes[1], 3);
    assert!(nodes[1].leave());
    network.settle();
    for _ in 0..10 {
        nodes[0].step();
    }
    let expected = [1, 2, 3, 0].map(|number| (Rank(1), number));
    assert_eq!(log(&nodes[0], |log| log.order.clone()), expected);
}

#[test]
fn who_holds_messages_of_others_does_not_leave() {
    let view = view(2);
    let network = network(&view, 1, SimOptions::default());
    let nodes = nodes(&view, &network, EngineConfig::SPINDLE);
    log(&nodes[0], |log| log.holds = true);
    send(&nodes[1], 1);
    for _ in 0..10 {
        network.settle();
        for node in &nodes {
            node.step();
        }
    }
    assert_eq!(log(&nodes[0], |log| log.held.len()), 1);
    assert!(
        !nodes[0].leave(),
        "its sender would write over what is held"
    );
    let held = log(&nodes[0], |log| core::mem::take(&mut log.held));
    drop(held);
    assert!(nodes[0].leave());
    assert!(nodes[1].leave(), "who has left is waited for no more");
}

/// A group with its digest, outside of an engine.
struct Order {
    shared: Arc<Shared<SimFabric>>,
    group: Group,
}

impl Order {
    fn new(view: &ViewSpec, fabric: SimFabric) -> Self {
        let layout = Layout::new(view).expect("a view");
        let shared = Arc::new(Shared::new(fabric, layout, view));
        let group = Group::new(&shared, view, 0).expect("a member");
        Self { shared, group }
    }

    /// Runs `f` as a step does: what it pushes goes out at the end.
    fn step<R>(&mut self, f: impl FnOnce(&mut Group, &mut Context<'_, SimFabric, Log>) -> R) -> R {
        let mut pushes = Pushes::new(true);
        pushes.address(&self.group.others);
        let result = f(
            &mut self.group,
            &mut Context {
                shared: &self.shared,
                config: &EngineConfig::SPINDLE,
                pushes: &mut pushes,
                seqs: &mut WriterSeqs::default(),
                sink: &mut Log::default(),
            },
        );
        pushes.flush(&self.shared.fabric);
        result
    }

    /// Takes so many checkpoints in one step.
    fn take_checkpoints(&mut self, count: u64) {
        let shared = self.shared.clone();
        let group_shared = shared.groups[0].as_ref().expect("a member");
        self.step(|group, context| {
            for number in 0..count {
                group.digest.add(number * DIGEST_EVERY, 0, 7, 1);
                group.checkpoint((number + 1) * DIGEST_EVERY, group_shared, context);
            }
        });
    }
}

/// However late it lands, and however early it shows, a checkpoint is never
/// taken for the one that uses its place after it.
#[test]
fn many_checkpoints_in_one_step_are_no_disagreement() {
    let view = view(2);
    for (seed, shared_pairs) in (0..40).flat_map(|seed| [(seed, 0.0), (seed, 1.0)]) {
        let options = SimOptions {
            shared_pairs,
            early_fetch: 0.0,
            ..SimOptions::default()
        };
        let network = network(&view, seed, options);
        let [mut ahead, mut behind] =
            [Rank(0), Rank(1)].map(|rank| Order::new(&view, network.fabric(rank)));
        behind.take_checkpoints(DIGESTS_KEPT);
        ahead.take_checkpoints(2 * DIGESTS_KEPT + 3);
        while network.step() {
            let compared = behind.step(|group, context| group.compare_digests(context));
            assert_eq!(compared, Ok(()), "seed {seed}, shared {shared_pairs}");
        }
    }
}
