//! The state of the network: nodes, segments and pairs of nodes.

use super::link::{InFlight, SimLink};
use super::options::SimOptions;
use super::rng::{self, Rng};
use super::segment::Segment;
use crate::fabric::FailureCause;
use crate::fabric::news::NewsBuckets;

/// A process as the network knows it.
#[derive(Debug, Default)]
pub(super) struct Node {
    pub(super) epoch: u64,
    pub(super) sleep_word: u64,
    /// It was woken since it announced sleep.
    pub(super) is_woken: bool,
    pub(super) crashed: bool,
    /// Peers whose failure it was told of.
    pub(super) failed: Vec<(usize, FailureCause)>,
    /// Doorbells sent to peers.
    pub(super) peer_wakes: u64,
    pub(super) sleeps: u64,
    pub(super) nudges: u64,
    /// The latest of its operations that is visible through shared memory.
    pub(super) newest_shown: u64,
    /// It knows where its peers have news.
    pub(super) knows_news: bool,
    /// The news since it last looked.
    pub(super) news: NewsBuckets,
}

/// The failure of a node that another one is still to be told of.
#[derive(Debug)]
pub(super) struct PendingFailure {
    pub(super) told: usize,
    pub(super) failed: usize,
    pub(super) cause: FailureCause,
}

#[derive(Debug)]
pub(super) struct State {
    pub(super) nodes: Vec<Node>,
    /// In the order in which they were agreed on; indices are stable.
    pub(super) segments: Vec<Segment>,
    /// By sender and receiver.
    pub(super) links: Vec<Vec<SimLink>>,
    pub(super) failing: Vec<PendingFailure>,
    pub(super) rng: Rng,
    pub(super) seed: u64,
    pub(super) options: SimOptions,
    pub(super) steps: u64,
    pub(super) operations: u64,
    pub(super) trace: u64,
}

impl State {
    pub(super) fn new(seed: u64, nodes: usize, options: SimOptions) -> Self {
        let mut state = Self {
            nodes: Vec::new(),
            segments: Vec::new(),
            links: Vec::new(),
            failing: Vec::new(),
            rng: Rng::new(seed),
            seed,
            options,
            steps: 0,
            operations: 0,
            trace: seed,
        };
        for _ in 0..nodes {
            state.add_node();
        }
        state
    }

    /// Adds a node, which learns which nodes have crashed and which sleep.
    pub(super) fn add_node(&mut self) -> usize {
        let added = self.nodes.len();
        // Not drawn: a run goes on as it would without this.
        let chance = rng::mix(self.seed ^ added as u64) as f64 / u64::MAX as f64;
        self.nodes.push(Node {
            knows_news: chance < self.options.known_news,
            ..Node::default()
        });
        self.links.push(Vec::new());
        for other in 0..=added {
            let (mut from, mut to) = (self.draw_link(), self.draw_link());
            from.sleep_word = self.nodes[other].sleep_word;
            if self.nodes[other].crashed {
                from.close();
                to.close();
                self.fail(added, other, FailureCause::ProcessEnded);
            }
            self.links[added].push(to);
            if other != added {
                self.links[other].push(from);
            }
        }
        added
    }

    fn draw_link(&mut self) -> SimLink {
        let shared = self.rng.chance(self.options.shared_pairs);
        SimLink::new(
            shared,
            !shared && self.rng.chance(self.options.held_batches),
        )
    }

    pub(super) fn link(&mut self, from: usize, to: usize) -> &mut SimLink {
        &mut self.links[from][to]
    }

    pub(super) fn others(&self, me: usize) -> impl Iterator<Item = usize> + use<> {
        (0..self.nodes.len()).filter(move |&peer| peer != me)
    }

    /// All ordered pairs.
    pub(super) fn pairs(&self) -> impl Iterator<Item = (usize, usize)> + use<> {
        let count = self.nodes.len();
        (0..count).flat_map(move |from| (0..count).map(move |to| (from, to)))
    }

    /// Whether all pairs of members of a segment share memory.
    pub(super) fn shares_memory(&self, segment: usize) -> bool {
        let nodes = &self.segments[segment].nodes;
        let mut pairs = nodes
            .iter()
            .flat_map(|from| nodes.iter().map(move |to| (from, to)));
        pairs.all(|(from, to)| from == to || self.links[*from][*to].shared)
    }

    /// Adds an event to the hash of the run.
    pub(super) fn note(&mut self, event: &[u64]) {
        for &word in event {
            self.trace = rng::mix(self.trace ^ word).wrapping_add(word);
        }
    }

    pub(super) fn enqueue(&mut self, from: usize, to: usize, piece: InFlight) {
        let operation = self.operations;
        self.link(from, to).enqueue(operation, piece);
    }

    /// Sends a push, which may be held back until the sender's next `wake`.
    pub(super) fn post(&mut self, from: usize, to: usize, piece: InFlight) {
        let operation = self.operations;
        self.link(from, to).post(operation, piece);
    }
}
