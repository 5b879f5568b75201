//! Messages in the ring of their writer, over a simulated network.

use std::sync::OnceLock;

use spindle_dds_core::membership::CONTROL_ROW_LEN;
use spindle_dds_core::{
    CommitMeta, Delivery, Engine, EngineConfig, EngineEvent, MessageRun, RingSpec, SegmentLayout,
    SenderSpec, Sink, SubgroupId, SubgroupSpec, TopicKey,
};
use spindle_dds_transport::FABRIC_AREA;
use spindle_dds_transport::sim::{NodeId, SimFabric, SimNetwork, SimOptions};

use super::*;

#[path = "../../../../../../../dds-core/tests/view/mod.rs"]
mod view;

const SUBGROUP: SubgroupId = SubgroupId(0);
const TOPIC: TopicKey = TopicKey(7);
const WRITER: u8 = 1;
const RING_MESSAGES: u32 = 4;
const TRANSFER: TransferId = TransferId(1);

/// Delivers to one reader, as the sink of a participant does; or to none.
struct ToReader {
    port: Option<Arc<ReaderPort<SimFabric>>>,
    epoch: Arc<OnceLock<Arc<ReaderEpoch<SimFabric>>>>,
    batch: ArrivalBatch<SimFabric>,
}

impl Sink<SimFabric> for ToReader {
    fn deliver(&mut self, delivery: &Delivery<'_, SimFabric>) {
        if let (Some(port), Some(epoch)) = (&self.port, self.epoch.get()) {
            port.receive(epoch, delivery, &mut self.batch);
        }
    }

    fn deliver_run(&mut self, run: &mut MessageRun<'_, SimFabric>) {
        if let (Some(port), Some(epoch)) = (&self.port, self.epoch.get()) {
            port.append_run(epoch, TOPIC.low(), run, &mut self.batch);
        }
    }

    fn batch_end(&mut self) {
        if let (Some(port), Some(epoch)) = (&self.port, self.epoch.get()) {
            port.settle(epoch, &mut self.batch);
        }
    }

    fn event(&mut self, _: EngineEvent) {}

    fn is_reading(&self, _: SubgroupId) -> bool {
        self.port.is_some()
    }

    fn is_ready(&self, _: SubgroupId) -> bool {
        true
    }
}

/// A writer's participant, and a reader's, whose reader awaits history from the first message on.
struct World {
    network: SimNetwork,
    engines: Vec<Engine<SimFabric, ToReader>>,
    port: Arc<ReaderPort<SimFabric>>,
    written: u64,
}

fn spec() -> SubgroupSpec {
    let ring = RingSpec {
        messages: RING_MESSAGES,
        bytes: 128,
    };
    SubgroupSpec {
        subgroup: SUBGROUP,
        epoch: 1,
        base: 0,
        members: vec![Rank(0), Rank(1)],
        senders: vec![SenderSpec {
            rank: Rank(0),
            rings: [Some(ring), None],
        }],
        topics: vec![TOPIC],
        is_logged: false,
    }
}

impl World {
    fn new(aside_bytes: usize) -> Self {
        let (port, _) = port(&Settings {
            aside_bytes,
            ..Settings::default()
        });
        let port = Arc::new(port);
        let rows = [CONTROL_ROW_LEN; 2];
        let (network, controls) = SimNetwork::group(1, &rows, SimOptions::default());
        let lens = SegmentLayout::new(&spec()).expect("a subgroup").row_lens();
        let rows: Vec<_> = (0..).map(NodeId).zip(lens).collect();
        let segment = network.open(&rows);
        let view = view::view_of(2, vec![spec()]);
        let reader_epoch = Arc::<OnceLock<_>>::default();
        let engine = |control: SimFabric| {
            let rank = control.me();
            let own = network.open(&[(NodeId(rank.index()), FABRIC_AREA)]);
            let sink = ToReader {
                port: (rank == Rank(1)).then(|| port.clone()),
                epoch: reader_epoch.clone(),
                batch: ArrivalBatch::new(),
            };
            let engine = Engine::new(network.fabric(own, Rank(0)), EngineConfig::SPINDLE, sink);
            let part = network.fabric(segment, rank);
            view::begin_view(&engine, &view, control, [part]);
            engine
        };
        let engines: Vec<_> = controls.into_iter().map(engine).collect();
        let handle = engines[1].handle().subgroup(SUBGROUP).expect("a subgroup");
        let writer = MatchedWriter {
            rank: Rank(0),
            number: WRITER.into(),
            member: MemberId(1),
            class: DeliveryClass::Ordered,
            handle: handle_of(WRITER),
            autodispose: false,
            is_rekeyed: false,
        };
        let old = port.last_epoch();
        let sizes = [RING_MESSAGES as usize];
        let epoch = old.follow(&handle, vec![writer], Vec::new(), &sizes, Some(TRANSFER));
        let epoch = Arc::new(epoch);
        old.set_next(epoch.clone());
        port.enter_next_epoch();
        assert!(reader_epoch.set(epoch).is_ok());
        let world = Self {
            network,
            engines,
            port,
            written: 0,
        };
        world.rest();
        world
    }

    fn rest(&self) {
        for _ in 0..20 {
            for engine in &self.engines {
                engine.step(0);
            }
            self.network.settle();
        }
    }

    /// Writes the next sample, if the ring has room. The first ten were written before the reader came.
    fn write(&mut self) -> bool {
        let handle = self.engines[0].handle().subgroup(SUBGROUP);
        let handle = handle.expect("a subgroup");
        let Ok(mut claim) = handle.claim(DeliveryClass::Ordered, 16) else {
            return false;
        };
        let meta = CommitMeta {
            kind: Data,
            flags: 0,
            encapsulation: Encapsulation::CDR_LE.0,
            writer: WRITER.into(),
            timestamp: 0,
            topic: TOPIC.low(),
            key_hash: [1; 16],
            skipped: if self.written == 0 { 10 } else { 0 },
        };
        self.engines[0]
            .send(&mut claim, 16, &meta)
            .expect("a commit");
        self.written += 1;
        self.rest();
        true
    }

    fn transfer(&self) {
        let mut history = records(data(WRITER, 1..11));
        let offer = self.port.offer_history(TRANSFER, &mut history);
        assert_eq!(offer, HistoryOffer::Taken);
        assert!(self.port.end_history(TRANSFER, &end_of(&[(WRITER, 10)])));
        self.rest();
    }

    fn take(&self) -> Vec<u64> {
        let query = Query {
            max: usize::MAX,
            masks: StateMasks::ANY,
            whose: Whose::Any,
        };
        let items = self.port.select(Access::Take, &query);
        let taken = items.iter().map(|(info, _)| info.writer_sequence).collect();
        if !items.is_empty() {
            self.port.return_loan(items);
        }
        self.rest();
        taken
    }
}

#[test]
fn what_is_kept_aside_leaves_its_ring() {
    let mut world = World::new(1 << 20);
    for number in 0..25 * RING_MESSAGES {
        assert!(world.write(), "{number} of {RING_MESSAGES} in the ring");
    }
    assert!(world.take().is_empty() && !world.port.is_full());
    world.transfer();
    assert_eq!(world.take(), Vec::from_iter(1..111));
    // From now on samples stay in the ring, until they are taken.
    for _ in 0..RING_MESSAGES {
        assert!(world.write());
    }
    assert_eq!(world.take(), Vec::from_iter(111..115));
    assert_eq!(world.port.with_statuses(|it| it.lost.read().0), 0);
}

#[test]
fn what_does_not_fit_aside_holds_its_writer_back() {
    let mut world = World::new(1000);
    while world.write() {
        assert!(world.written < 100, "what is kept aside is bounded");
    }
    let written = world.written;
    assert!(written > u64::from(RING_MESSAGES), "some is kept aside");
    assert!(world.port.is_full() && world.take().is_empty());
    world.transfer();
    assert_eq!(world.take(), Vec::from_iter(1..written + 11));
    assert!(world.write() && !world.port.is_full());
    assert_eq!(world.take(), [written + 11]);
}
