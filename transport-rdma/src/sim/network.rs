//! The face of the simulator: a network that is stepped by hand.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::fabric::SimFabric;
use super::options::SimOptions;
use super::state::State;
use crate::peers::Rank;

/// A network between the members of one view, in one process, on no time but
/// its own steps. Clones are the same network.
///
/// The harness owns the order of everything: it steps members and network in
/// turn, as its own generator says. The same seed, options and calls give the
/// same run; [`SimNetwork::trace_hash`] tells whether two runs were the same.
#[derive(Debug, Clone)]
pub struct SimNetwork(Arc<Mutex<State>>);

impl SimNetwork {
    /// A network whose members have rows of these lengths in bytes, all zero.
    pub fn new(seed: u64, row_lens: &[usize], options: SimOptions) -> Self {
        Self(Arc::new(Mutex::new(State::new(seed, row_lens, options))))
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        // A panic under the lock is a failed assertion of the caller's: let it
        // be seen, not hidden behind a second one.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A member's fabric. More than one for a rank are the same fabric.
    pub fn fabric(&self, rank: Rank) -> SimFabric {
        let mut rows = self.state().members[rank.index()].rows.clone();
        for (of, row) in rows.iter_mut().enumerate() {
            if of != rank.index() {
                *row = row.read_only();
            }
        }
        SimFabric::new(self.clone(), rank, rows)
    }

    /// Lands one pending piece, of a random pair: a word or some words of a
    /// push, a store that shows early, a doorbell, the news of a failure.
    /// False when nothing is pending (or all that is, is held).
    pub fn step(&self) -> bool {
        self.state().step()
    }

    /// How much is on its way.
    pub fn pending(&self) -> usize {
        self.state().pending()
    }

    /// Lands everything, held links included: nothing stays on its way.
    pub fn settle(&self) {
        self.state().settle();
    }

    /// Whether somebody rang this member (or its own threads, or a failure)
    /// since it announced sleep. Takes the ring.
    pub fn rung(&self, rank: Rank) -> bool {
        core::mem::take(&mut self.state().members[rank.index()].rung)
    }

    /// Whether its sleep epoch is odd.
    pub fn is_asleep(&self, rank: Rank) -> bool {
        self.state().is_asleep(rank.index())
    }

    /// The member's process ends. What it had sent may land wholly, partly or
    /// not at all; nothing reaches it any more; each other member is told once
    /// by `poll`, sooner or later. Its fabric ignores calls from now on.
    pub fn crash(&self, rank: Rank) {
        self.state().crash(rank.index());
    }

    /// The two lose each other, alive: what was on its way may land in part,
    /// nothing sent later does, and each is told once.
    pub fn sever(&self, a: Rank, b: Rank) {
        self.state().sever(a.index(), b.index());
    }

    /// Holds back what goes from one member to another, or lets it go on. (A
    /// doorbell or a fence in shared memory still brings the stores along.)
    pub fn hold(&self, from: Rank, to: Rank, held: bool) {
        self.state().hold(from.index(), to.index(), held);
    }

    /// A hash over all that was stored, pushed, landed and rung so far.
    pub fn trace_hash(&self) -> u64 {
        self.state().trace
    }
}
