//! Properties that need many messages: checkpoints of the digest, and wraps of the rings. And a
//! zeroed row acknowledges nothing.

#[path = "../../../dds-core/tests/view/mod.rs"]
mod view;

use spindle_dds_core::membership::{CONTROL_ROW_LEN, OutReason};
use spindle_dds_core::{
    ClaimError, CommitMeta, Delivery, DeliveryClass, Engine, EngineConfig, EngineEvent,
    MessageKind, RingSpec, SegmentLayout, SenderSpec, Sink, SubgroupId, SubgroupSpec, TopicKey,
    limits,
};
use spindle_dds_transport::sim::{NodeId, SimFabric, SimNetwork, SimOptions};
use spindle_dds_transport::{FABRIC_AREA, Rank};

const SUBGROUP: SubgroupId = SubgroupId(0);

#[derive(Default)]
struct Counter {
    delivered: u64,
    stopped: Option<OutReason>,
}

impl Sink<SimFabric> for Counter {
    fn deliver(&mut self, delivery: &Delivery<'_, SimFabric>) {
        assert_eq!(
            delivery.header.len % 7,
            (delivery.header.writer_seq % 7) as u32
        );
        self.delivered += 1;
    }

    fn batch_end(&mut self) {}

    fn event(&mut self, event: EngineEvent) {
        if let EngineEvent::Stopped(reason) = event {
            self.stopped = Some(reason);
        }
    }

    fn is_reading(&self, _: SubgroupId) -> bool {
        true
    }
}

type Node = Engine<SimFabric, Counter>;

fn group(configs: &[EngineConfig]) -> (SimNetwork, Vec<Node>) {
    let ring = Some(RingSpec {
        messages: 64,
        bytes: 4096,
    });
    let members: Vec<Rank> = (0..configs.len() as u16).map(Rank).collect();
    let subgroup = SubgroupSpec {
        subgroup: SUBGROUP,
        epoch: 9,
        base: 0,
        senders: members
            .iter()
            .map(|&rank| SenderSpec {
                rank,
                rings: [ring, None],
            })
            .collect(),
        members,
        topics: vec![TopicKey::of_name("long")],
        is_logged: false,
    };
    let control = vec![CONTROL_ROW_LEN; configs.len()];
    let (network, controls) = SimNetwork::group(1, &control, SimOptions::default());
    let lens = SegmentLayout::new(&subgroup)
        .expect("a subgroup")
        .row_lens();
    let rows: Vec<_> = (0..).map(NodeId).zip(lens).collect();
    let segment = network.open(&rows);
    let view = view::view_of(configs.len(), vec![subgroup]);
    let node = |((control, config), place): ((SimFabric, &EngineConfig), u16)| {
        let own = network.open(&[(NodeId(place.into()), FABRIC_AREA)]);
        let node = Engine::new(network.fabric(own, Rank(0)), *config, Counter::default());
        let segment = network.fabric(segment, Rank(place));
        view::begin_view(&node, &view, control, [segment]);
        node
    };
    let nodes = controls.into_iter().zip(configs).zip(0..);
    let nodes = nodes.map(node).collect();
    (network, nodes)
}

/// Sends messages until there is no room. Returns whether it sent any.
fn send_some(node: &Node, writer_seq: &mut u64) -> bool {
    let subgroup = node.handle().subgroup(SUBGROUP).expect("a subgroup");
    let mut any = false;
    loop {
        let len = ((*writer_seq + 1) % 7) as u32;
        let mut claim = match subgroup.claim(DeliveryClass::Ordered, len) {
            Ok(claim) => claim,
            Err(ClaimError::NoRoom | ClaimError::NotBegun | ClaimError::Stopped) => {
                return any;
            }
            Err(error) => panic!("{error}"),
        };
        let meta = CommitMeta {
            kind: MessageKind::Data,
            flags: 0,
            encapsulation: 1,
            writer: 0,
            timestamp: 0,
            topic: 1,
            key_hash: [0; 16],
            skipped: 0,
        };
        claim.commit(len, &meta).expect("a commit");
        *writer_seq += 1;
        any = true;
    }
}

fn run(network: &SimNetwork, nodes: &[Node], positions: u64) {
    let mut sent = vec![0; nodes.len()];
    for _ in 0..100_000 {
        for (node, sent) in nodes.iter().zip(&mut sent) {
            send_some(node, sent);
            node.step(0);
        }
        network.settle();
        let done = nodes.iter().all(|node| {
            let stopped = node.with_sink(|sink| sink.stopped.is_some());
            stopped == Some(true)
                || node
                    .position(SUBGROUP)
                    .is_some_and(|at| at.delivered_num > positions)
        });
        if done {
            return;
        }
    }
    panic!("no progress");
}

#[test]
fn members_agree_at_every_checkpoint() {
    let (network, nodes) = group(&[EngineConfig::SPINDLE; 2]);
    // Takes seconds for each checkpoint.
    let checkpoints = match std::env::var_os("SPINDLE_EXHAUSTIVE") {
        Some(_) => 3,
        None => 2,
    };
    run(&network, &nodes, checkpoints * limits::DIGEST_EVERY);
    let expected = (checkpoints - 1) * limits::DIGEST_EVERY;
    for node in &nodes {
        assert_eq!(node.with_sink(|sink| sink.stopped.clone()), Some(None));
        assert!(node.with_sink(|sink| sink.delivered) > Some(expected));
    }
}

#[test]
fn a_zeroed_row_acknowledges_nothing() {
    let (network, nodes) = group(&[EngineConfig::SPINDLE; 3]);
    // All say that they are ready: before that, no sender has room.
    for _ in 0..20 {
        for node in &nodes {
            node.step(0);
        }
        network.settle();
    }
    // Member 2 steps no more: its acknowledgements stay zero, and nothing is stable.
    let mut sent = 0;
    for _ in 0..20 {
        send_some(&nodes[0], &mut sent);
        for node in &nodes[..2] {
            node.step(0);
        }
        network.settle();
    }
    assert!(sent > 0);
    for node in &nodes[..2] {
        let position = node.position(SUBGROUP).expect("a member");
        assert_eq!((position.stable, position.delivered_num), (0, 0));
        assert_eq!(node.with_sink(|sink| sink.delivered), Some(0));
    }
}
