//! Options of a simulated network.

use super::rng::Rng;

/// Probabilities of a simulated network. With any values it stays within the contract.
#[derive(Debug, Clone, PartialEq)]
pub struct SimOptions {
    /// An ordered pair of nodes behaves like shared memory (stores become visible early, in
    /// order), not like a queue of one-sided writes.
    pub shared_pairs: f64,
    /// A queued range is fetched at the call, with all that is queued before it, not word by
    /// word when it lands.
    pub early_fetch: f64,
    /// A pair of queued writes holds pushes back until the next `wake` in a segment of both
    /// nodes.
    pub held_batches: f64,
    /// A pair stalls after something of it has landed.
    pub stalls: f64,
    /// Longest stall, in steps of the network.
    pub stall_steps_max: usize,
    /// A sleeper is woken without cause, at each step.
    pub spurious_wakes: f64,
    /// A node knows where its peers have news.
    pub known_news: f64,
}

impl Default for SimOptions {
    fn default() -> Self {
        Self {
            shared_pairs: 0.5,
            early_fetch: 0.25,
            held_batches: 0.0,
            stalls: 0.05,
            stall_steps_max: 200,
            spurious_wakes: 0.002,
            known_news: 0.75,
        }
    }
}

impl SimOptions {
    /// Options drawn at random, extreme values included: each run explores one corner.
    pub fn swarm(rng: &mut Rng) -> Self {
        let among = |rng: &mut Rng, values: &[f64]| values[rng.below(values.len())];
        Self {
            shared_pairs: among(rng, &[0.0, 0.3, 0.5, 0.8, 1.0]),
            early_fetch: among(rng, &[0.0, 0.25, 1.0]),
            held_batches: among(rng, &[0.0, 0.5, 1.0]),
            stalls: among(rng, &[0.0, 0.02, 0.2]),
            stall_steps_max: [10, 200, 2000][rng.below(3)],
            spurious_wakes: among(rng, &[0.0, 0.0, 0.002, 0.05]),
            known_news: Self::default().known_news,
        }
    }
}
