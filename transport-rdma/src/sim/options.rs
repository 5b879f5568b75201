//! What a simulated network is like, and the bugs that can be planted in it.

use super::rng::Rng;

/// Probabilities of a simulated network. All of its freedom is within the
/// contract, whatever the values; `planted` alone breaks it.
#[derive(Debug, Clone, PartialEq)]
pub struct SimOptions {
    /// That an ordered pair of nodes behaves like shared memory (stores show
    /// early, in order), and not like a queue of one-sided writes.
    pub shared_pairs: f64,
    /// That a queued range is fetched at the call (with all that is queued
    /// before it) and not word by word when it lands.
    pub early_fetch: f64,
    /// That a pair of queued writes holds pushes back until the next ring of a segment
    /// that both are in.
    pub held_batches: f64,
    /// That a pair stands still for a while after something of it has landed.
    pub stalls: f64,
    /// Longest stall, in steps of the network.
    pub stall_steps_max: usize,
    /// At each step: that a sleeper is woken without cause.
    pub spurious_wakes: f64,
    /// A bug that breaks the contract, to show that a checker notices.
    pub planted: Option<PlantedBug>,
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
            planted: None,
        }
    }
}

impl SimOptions {
    /// Options drawn at random, extremes included: one run explores one corner.
    pub fn swarm(rng: &mut Rng) -> Self {
        let among = |rng: &mut Rng, values: &[f64]| values[rng.below(values.len())];
        Self {
            shared_pairs: among(rng, &[0.0, 0.3, 0.5, 0.8, 1.0]),
            early_fetch: among(rng, &[0.0, 0.25, 1.0]),
            held_batches: among(rng, &[0.0, 0.5, 1.0]),
            stalls: among(rng, &[0.0, 0.02, 0.2]),
            stall_steps_max: [10, 200, 2000][rng.below(3)],
            spurious_wakes: among(rng, &[0.0, 0.0, 0.002, 0.05]),
            planted: None,
        }
    }

    /// The same network with a bug in it.
    #[must_use]
    pub fn plant(mut self, bug: PlantedBug) -> Self {
        self.planted = Some(bug);
        self
    }
}

/// A way to break the contract.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlantedBug {
    /// F1: now and then a push never lands though nobody failed.
    LostPush,
    /// F1b: a word push fetches its value when it lands: a guard arrives with
    /// a later value than the data before it.
    LateWord,
    /// F1b, F4: a range and the word push after it become one push, in which
    /// words land in any order.
    MergedPush,
    /// F2: pushes of one pair overtake each other.
    Overtaking,
    /// F2: pushes of one pair in different segments overtake each other.
    OvertakingSegments,
    /// F4: half of a word lands before the other half.
    TornWord,
    /// F5: stores to shared memory show out of order.
    StoresOutOfOrder,
    /// F6: writes of a fenced peer still land.
    FenceLeaks,
    /// Who has fenced a peer is not rung any more, by anybody.
    FenceDeafens,
    /// Who has fenced a peer finds itself rung whenever it goes to sleep.
    FenceKeepsAwake,
    /// F6: a fence in one segment stops all segments of the pair.
    FenceTooWide,
    /// F6: what arrives for a segment before it is opened there is lost.
    UnopenedLost,
    /// F6: a failure is reported twice.
    FailureTwice,
    /// F6: a control segment says nothing of who failed before it was opened.
    OldFailuresUntold,
    /// Shared memory: neither the waker nor the sleeper fences, so the waker
    /// reads an old epoch while its own stores are still on their way.
    RingWithoutFence,
    /// Queued writes: the sleep epoch is stored but never sent.
    SleepNotAnnounced,
    /// Queued writes: nobody rings the sleeper whose epoch arrives after the
    /// pushes that it has not seen.
    EpochNotAnswered,
    /// Acknowledgements ring those who sleep for data alone.
    AcksRingAll,
}

impl PlantedBug {
    /// All of them.
    pub const ALL: [Self; 18] = [
        Self::LostPush,
        Self::LateWord,
        Self::MergedPush,
        Self::Overtaking,
        Self::OvertakingSegments,
        Self::TornWord,
        Self::StoresOutOfOrder,
        Self::FenceLeaks,
        Self::FenceDeafens,
        Self::FenceKeepsAwake,
        Self::FenceTooWide,
        Self::UnopenedLost,
        Self::FailureTwice,
        Self::OldFailuresUntold,
        Self::RingWithoutFence,
        Self::SleepNotAnnounced,
        Self::EpochNotAnswered,
        Self::AcksRingAll,
    ];
}
