//! Times of single writes, and the order that the contract guarantees.

use std::sync::Arc;

use super::{Charge, Costs, Measure, TimedFabric, TimedNetwork};
use spindle_dds_transport::{FABRIC_AREA, Fabric};
use spindle_dds_transport::{PeerSet, Rank};

const COSTS: Costs = Costs {
    post_first_ns: 1000,
    post_next_ns: 200,
    look_ns: 50,
    latency_ns: 1700,
    slope_ps: 180,
    slope_bytes: 4096,
    wire_ps: 80,
};

const ROW_LEN: usize = 1 << 16;
const AT: usize = FABRIC_AREA;

fn group(members: usize, measure: Arc<dyn Measure>) -> (TimedNetwork, Vec<TimedFabric>) {
    let network = TimedNetwork::new(members, COSTS);
    let fabrics = network.segment(&vec![ROW_LEN; members], measure);
    (network, fabrics)
}

fn as_pushed() -> Arc<dyn Measure> {
    Arc::new(|_: Rank, _: usize, len: usize| Charge::Write(len as u64))
}

fn to(ranks: &[u16]) -> PeerSet {
    ranks.iter().copied().map(Rank).collect()
}

/// Times and nodes of all writes in flight, in the order in which they land.
fn landings(network: &TimedNetwork) -> Vec<(u64, usize)> {
    let mut landings = Vec::new();
    while network.due().is_some() {
        landings.extend(network.land().map(|landed| (landed.at, landed.node)));
    }
    landings
}

#[test]
fn a_write_takes_its_latency() {
    let check = |len: usize, latency: u64| {
        let (network, fabrics) = group(2, as_pushed());
        fabrics[0].push(AT, len, &to(&[1]));
        assert_eq!(landings(&network), [(1000 + latency, 1)], "{len} bytes");
        assert_eq!(network.now(0), 1000, "the writer does not wait for it");
    };
    check(8, 1701);
    check(4096, 1700 + 737);
    check(20_480, 1700 + 737 + 1310 + 1);
}

#[test]
fn posting_is_serial() {
    let (network, fabrics) = group(4, as_pushed());
    fabrics[0].push(AT, 8, &to(&[0, 1, 2, 3]));
    fabrics[0].push_word(AT + 8, 5, &to(&[1]));
    assert_eq!(network.now(0), 1000 + 200 + 200 + 1000);
    let times = [2701, 2901, 3101, 4101];
    let found: Vec<u64> = landings(&network).into_iter().map(|(at, _)| at).collect();
    assert_eq!(found, times);
    let spent = fabrics[0].spent();
    assert_eq!(
        (spent.requests, spent.writes, spent.posting_ns),
        (2, 4, 2400)
    );
    assert_eq!(spent.wire_bytes, 4 * 8);
}

#[test]
fn writes_of_a_node_share_its_link() {
    let (network, fabrics) = group(3, as_pushed());
    fabrics[0].push(AT, 40_000, &to(&[1, 2]));
    // The second is posted 200 ns after the first, which has the link for 3200.
    let latency = COSTS.latency(40_000);
    assert_eq!(
        landings(&network),
        [(1000 + latency, 1), (1000 + 3200 + latency, 2)]
    );
}

#[test]
fn writes_into_a_node_share_its_link() {
    let (network, fabrics) = group(3, as_pushed());
    fabrics[0].push(AT, 40_000, &to(&[2]));
    fabrics[1].push(AT, 40_000, &to(&[2]));
    let first = 1000 + COSTS.latency(40_000);
    assert_eq!(landings(&network), [(first, 2), (first + 3200, 2)]);
}

#[test]
fn pairs_keep_their_order() {
    let (network, fabrics) = group(2, as_pushed());
    fabrics[0].store(AT, 1);
    fabrics[0].push(AT, 40_000, &to(&[1]));
    fabrics[0].push_word(AT + 40_000, 1, &to(&[1]));
    fabrics[0].store(AT, 2);
    fabrics[0].store(AT + 40_000, 2);
    let row = || fabrics[1].row(Rank(0));
    let seen = |at| row().load(at);
    while network.due().is_some() {
        network.land();
        assert!(seen(AT + 40_000) <= seen(AT), "the guard landed first");
    }
    // Pushes carry the values of the time of the call.
    assert_eq!((seen(AT), seen(AT + 40_000)), (1, 1));
}

#[test]
fn a_riding_push_is_free_and_lands_with_the_write_before() {
    let measure = Arc::new(|_: Rank, at: usize, len: usize| match at {
        AT => Charge::Write(100 * len as u64),
        _ => Charge::Rides,
    });
    let (network, fabrics) = group(2, measure);
    fabrics[0].push(AT, 8, &to(&[1]));
    fabrics[0].push(AT + 8, 64, &to(&[1]));
    assert_eq!(network.now(0), 1000);
    let at = 1000 + COSTS.latency(800);
    assert_eq!(landings(&network), [(at, 1), (at, 1)]);
    let spent = fabrics[0].spent();
    assert_eq!(
        (spent.requests, spent.writes, spent.wire_bytes),
        (1, 1, 800)
    );
    assert_eq!(fabrics[0].counters().bytes_pushed, 72);
}

#[test]
fn reads_and_work_take_time() {
    let (network, fabrics) = group(3, as_pushed());
    for rank in [0, 1, 2, 1].map(Rank) {
        let _ = fabrics[0].row(rank);
    }
    assert_eq!(network.now(0), 150, "one's own row costs nothing");
    assert_eq!(network.spend(0, 7), 157);
    network.wait_until(0, 100);
    assert_eq!(network.now(0), 157, "time does not go back");
    network.wait_until(0, 1000);
    assert_eq!((network.now(0), network.now(1)), (1000, 0));
    assert_eq!(fabrics[0].spent().looking_ns, 150);
}

#[test]
fn no_write_lands_after_a_fence() {
    let (network, fabrics) = group(2, as_pushed());
    fabrics[0].push_word(AT, 3, &to(&[1]));
    fabrics[1].fence(Rank(0));
    assert_eq!(landings(&network), []);
    assert_eq!(fabrics[1].row(Rank(0)).load(AT), 0);
}

#[test]
fn work_that_words_represent_takes_time() {
    struct Tenfold;
    impl Measure for Tenfold {
        fn push(&self, _: Rank, _: usize, len: usize) -> Charge {
            Charge::Write(len as u64)
        }
        fn rise(&self, word: usize, by: u64) -> u64 {
            if word == AT { 10 * by } else { 0 }
        }
    }
    let (network, fabrics) = group(2, Arc::new(Tenfold));
    fabrics[0].store(AT, 5);
    fabrics[0].store(AT, 7);
    fabrics[0].store(AT, 6);
    fabrics[0].store(AT + 8, 100);
    assert_eq!((network.now(0), fabrics[0].spent().rising_ns), (70, 70));
}
