//! Nodes, links, and the writes in flight.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::costs::{Charge, Costs, Measure};
use super::fabric::TimedFabric;
use spindle_dds_transport::Region;
use spindle_dds_transport::{PeerSet, Rank};

/// A network in virtual time. Cheap to clone. Used by one thread, which decides the order of all
/// events.
#[derive(Clone)]
pub(crate) struct TimedNetwork {
    costs: Costs,
    /// Reads of others' rows, by node. Outside of the mutex, as they are frequent.
    looks: Arc<[AtomicU64]>,
    state: Arc<Mutex<State>>,
}

/// A write that has landed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Landed {
    /// The time.
    pub(crate) at: u64,
    /// The node.
    pub(crate) node: usize,
}

pub(super) struct State {
    nodes: Vec<Node>,
    segments: Vec<Segment>,
    flights: BinaryHeap<Reverse<Flight>>,
    /// Number of the next flight: flights due at the same time land in the order of the calls.
    number: u64,
}

struct Node {
    /// Its time, without the reads that are not counted yet.
    now: u64,
    counted_looks: u64,
    /// Times at which its links are free.
    out_free: u64,
    in_free: u64,
    /// Arrival time of the last write, by peer.
    arrival: Vec<u64>,
}

struct Segment {
    measure: Arc<dyn Measure>,
    /// Rows by reader, then by owner.
    rows: Vec<Vec<Region>>,
    /// Whether the reader has fenced the owner, by reader and owner.
    fenced: Vec<Vec<bool>>,
}

/// A write in flight: on its way to the peer's link, or queued there.
struct Flight {
    at: u64,
    number: u64,
    arrived: bool,
    wire_ns: u64,
    segment: usize,
    from: usize,
    to: usize,
    offset: usize,
    bytes: Arc<[u8]>,
}

impl Flight {
    fn key(&self) -> (u64, u64) {
        (self.at, self.number)
    }
}

impl PartialEq for Flight {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Flight {}

impl PartialOrd for Flight {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Flight {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key().cmp(&other.key())
    }
}

/// The costs of a push.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Posted {
    pub(super) writes: u64,
    pub(super) wire_bytes: u64,
    pub(super) posting_ns: u64,
}

impl TimedNetwork {
    /// A network of `nodes` nodes, at time 0.
    pub(crate) fn new(nodes: usize, costs: Costs) -> Self {
        let node = |_| Node {
            now: 0,
            counted_looks: 0,
            out_free: 0,
            in_free: 0,
            arrival: vec![0; nodes],
        };
        Self {
            costs,
            looks: (0..nodes).map(|_| AtomicU64::new(0)).collect(),
            state: Arc::new(Mutex::new(State {
                nodes: (0..nodes).map(node).collect(),
                segments: Vec::new(),
                flights: BinaryHeap::new(),
                number: 0,
            })),
        }
    }

    /// A segment of all nodes: a fabric for each, whose rank is the node. `row_lens` are the
    /// lengths of the rows; `measure` returns the charges for them.
    pub(crate) fn segment(
        &self,
        row_lens: &[usize],
        measure: Arc<dyn Measure>,
    ) -> Vec<TimedFabric> {
        let mut state = self.state();
        let nodes = state.nodes.len();
        assert_eq!(row_lens.len(), nodes, "a row for each node");
        let rows = || row_lens.iter().map(|len| Region::heap(*len));
        let rows: Vec<Vec<Region>> = (0..nodes).map(|_| rows().collect()).collect();
        let at = state.segments.len();
        let fabric = |(me, rows): (usize, &Vec<Region>)| {
            let seen = rows.iter().enumerate();
            let seen = seen.map(|(of, row)| match of == me {
                true => row.clone(),
                false => row.read_only(),
            });
            TimedFabric::new(self.clone(), (at, me), seen.collect(), measure.clone())
        };
        let fabrics = rows.iter().enumerate().map(fabric).collect();
        state.segments.push(Segment {
            measure,
            rows,
            fenced: vec![vec![false; nodes]; nodes],
        });
        fabrics
    }

    pub(super) fn costs(&self) -> &Costs {
        &self.costs
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn look(&self, node: usize, words: u64) {
        // Only one thread: no atomic read-modify-write is needed.
        let looks = &self.looks[node];
        looks.store(looks.load(Ordering::Relaxed) + words, Ordering::Relaxed);
    }

    /// A node's time.
    pub(crate) fn now(&self, node: usize) -> u64 {
        self.spend(node, 0)
    }

    /// A node's processor is busy for `ns`. Returns the time after that.
    pub(crate) fn spend(&self, node: usize, ns: u64) -> u64 {
        let mut state = self.state();
        let node = self.count_looks(&mut state, node);
        node.now += ns;
        node.now
    }

    /// A node is idle until `at`; its time never goes back.
    pub(crate) fn wait_until(&self, node: usize, at: u64) {
        let mut state = self.state();
        let node = self.count_looks(&mut state, node);
        node.now = node.now.max(at);
    }

    fn count_looks<'a>(&self, state: &'a mut State, at: usize) -> &'a mut Node {
        let looks = self.looks[at].load(Ordering::Relaxed);
        let node = &mut state.nodes[at];
        node.now += (looks - node.counted_looks) * self.costs.look_ns;
        node.counted_looks = looks;
        node
    }

    /// The time of the next event, for which [`land`](Self::land) is called.
    pub(crate) fn due(&self) -> Option<u64> {
        self.state().flights.peek().map(|next| next.0.at)
    }

    /// Performs the next event: a write arrives at a link, or lands. Returns where it landed.
    pub(crate) fn land(&self) -> Option<Landed> {
        self.state().land()
    }

    /// Posts a write of `bytes` at `offset` of the own row to each peer.
    pub(super) fn post(
        &self,
        (segment, me): (usize, usize),
        offset: usize,
        bytes: Arc<[u8]>,
        to: &PeerSet,
    ) -> Posted {
        let mut state = self.state();
        let charge = state.segments[segment]
            .measure
            .push(Rank(me as u16), offset, bytes.len());
        self.count_looks(&mut state, me);
        let mut posted = Posted::default();
        let peers = to.iter_behind(Rank(me as u16)).map(Rank::index);
        let peers = peers.filter(|peer| *peer != me);
        for (nth, peer) in peers.enumerate() {
            let (at, wire_ns) = match charge {
                Charge::Write(len) => {
                    let cost = self.costs.post(nth);
                    posted.writes += 1;
                    posted.wire_bytes += len;
                    posted.posting_ns += cost;
                    state.nodes[me].take_up(peer, cost, len, &self.costs)
                }
                Charge::Rides => (state.nodes[me].arrival[peer], 0),
            };
            state.fly(Flight {
                at,
                number: 0,
                arrived: false,
                wire_ns,
                segment,
                from: me,
                to: peer,
                offset,
                bytes: bytes.clone(),
            });
        }
        posted
    }

    pub(super) fn fence(&self, segment: usize, reader: usize, peer: usize) {
        if reader != peer {
            self.state().segments[segment].fenced[reader][peer] = true;
        }
    }
}

impl Node {
    /// Hands a write to the NIC after `cost`. Returns when it arrives at the peer's link, and how
    /// long it occupies a link.
    fn take_up(&mut self, peer: usize, cost: u64, len: u64, costs: &Costs) -> (u64, u64) {
        self.now += cost;
        let (begin, wire_ns) = (self.now.max(self.out_free), costs.wire(len));
        self.out_free = begin + wire_ns;
        // F2: a small write does not overtake a large one.
        let arrival = self.arrival[peer].max(begin + costs.latency(len));
        self.arrival[peer] = arrival;
        (arrival, wire_ns)
    }
}

impl State {
    fn fly(&mut self, mut flight: Flight) {
        flight.number = self.number;
        self.number += 1;
        self.flights.push(Reverse(flight));
    }

    fn land(&mut self) -> Option<Landed> {
        let Reverse(mut flight) = self.flights.pop()?;
        if !flight.arrived {
            // It lands on arrival, unless other writes occupy the link.
            let node = &mut self.nodes[flight.to];
            let landing = flight.at.max(node.in_free + flight.wire_ns);
            node.in_free = landing;
            if landing > flight.at {
                (flight.at, flight.arrived) = (landing, true);
                self.flights.push(Reverse(flight));
                return None;
            }
        }
        let segment = &self.segments[flight.segment];
        if segment.fenced[flight.to][flight.from] {
            return None;
        }
        segment.rows[flight.to][flight.from].copy_in(flight.offset, &flight.bytes);
        Some(Landed {
            at: flight.at,
            node: flight.to,
        })
    }
}

impl fmt::Debug for TimedNetwork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TimedNetwork")
            .field("costs", &self.costs)
            .finish_non_exhaustive()
    }
}
