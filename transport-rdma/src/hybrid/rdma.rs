//! A station's queue pairs, and which of its peers they lead to.
//!
//! A peer's queue pair is made in the handshake, as a [`Pair`]. If both find that it
//! works, the peer goes by it from then on, until it is lost: there is no way back to
//! streams.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use super::error::HybridError;
use super::options::RdmaUse;
use crate::rdma::RdmaCounters;
use crate::tcp;
use crate::verbs::{Core, Hooks, RdmaError};

/// What the threads of RDMA and those of the station share.
#[derive(Default)]
struct Peers {
    /// Whose queue pair is being made, and why it has failed.
    trials: Mutex<BTreeMap<u128, Option<String>>>,
    /// Who goes by RDMA.
    kept: Mutex<BTreeSet<u128>>,
    /// Who is told of failures.
    streams: OnceLock<Weak<tcp::Core>>,
    /// Looks at trials again.
    look: OnceLock<Box<dyn Fn() + Send + Sync>>,
}

impl Peers {
    fn trials(&self) -> MutexGuard<'_, BTreeMap<u128, Option<String>>> {
        self.trials.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn kept(&self) -> MutexGuard<'_, BTreeSet<u128>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn look(&self) {
        if let Some(look) = self.look.get() {
            look();
        }
    }

    fn failed(&self, peer: u128, reason: String) {
        let mut trials = self.trials();
        if let Some(failure) = trials.get_mut(&peer) {
            failure.get_or_insert(reason);
            drop(trials);
            return self.look();
        }
        drop(trials);
        self.fail(peer, reason);
    }

    /// One that goes by RDMA is lost.
    fn fail(&self, peer: u128, reason: String) {
        if let Some(streams) = self.streams.get().and_then(Weak::upgrade) {
            streams.fail(peer, reason);
        }
    }
}

/// The way by RDMA of one station.
pub(super) struct Rdma {
    core: Core,
    peers: Arc<Peers>,
    /// Who does not go by RDMA is no peer.
    pub(super) required: bool,
}

impl core::fmt::Debug for Rdma {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Rdma")
            .field("required", &self.required)
            .finish_non_exhaustive()
    }
}

impl Rdma {
    /// If it is wanted and can be had. Where it need not be, a device that cannot be used
    /// is warned of once, and none at all is not worth a word.
    pub(super) fn open(
        wanted: &RdmaUse,
        listen: IpAddr,
        patience: core::time::Duration,
        wake: tcp::Wake,
    ) -> Result<Option<Self>, HybridError> {
        let (options, required) = match wanted {
            RdmaUse::Off => return Ok(None),
            RdmaUse::Auto(options) => (options, false),
            RdmaUse::Required(options) => (options, true),
        };
        let peers = Arc::<Peers>::default();
        let (tells, proves) = (Arc::clone(&peers), Arc::clone(&peers));
        let hooks = Hooks {
            wake,
            failed: Box::new(move |peer, reason| tells.failed(peer, reason)),
            proved: Box::new(move |_| proves.look()),
        };
        match Core::open(options, listen, patience, hooks) {
            Ok(core) => {
                let device = core.device();
                tracing::info!(device, "other hosts are reached by RDMA where they have it");
                Ok(Some(Self {
                    core,
                    peers,
                    required,
                }))
            }
            Err(error) if required => Err(error.into()),
            Err(error @ (RdmaError::NoDevice | RdmaError::NotBuilt)) => {
                tracing::debug!(%error, "other hosts are reached by streams");
                Ok(None)
            }
            Err(error) => {
                tracing::warn!(%error, "other hosts are reached by streams, not by RDMA");
                Ok(None)
            }
        }
    }

    /// Whom it tells of failures, and who closes what is lost. Once.
    pub(super) fn serve(&self, streams: &Arc<tcp::Core>) {
        // It was set before only if this was called before.
        let _ = self.peers.streams.set(Arc::downgrade(streams));
    }

    /// Called when something is known of a trial. Once.
    pub(super) fn on_proof(&self, look: impl Fn() + Send + Sync + 'static) {
        // As in `serve`.
        let _ = self.peers.look.set(Box::new(look));
    }

    pub(super) fn core(&self) -> &Core {
        &self.core
    }

    /// Whether a peer goes by RDMA.
    pub(super) fn has(&self, peer: u128) -> bool {
        self.peers.kept().contains(&peer)
    }

    pub(super) fn counters(&self, peer: u128) -> Option<RdmaCounters> {
        self.has(peer).then(|| self.core.counters(peer)).flatten()
    }

    /// A peer is lost or dropped, or goes.
    pub(super) fn lose(&self, peer: u128) {
        if self.peers.kept().remove(&peer) {
            self.core.close(peer);
        }
    }

    /// Whether all that was pushed is done.
    pub(super) fn is_still(&self) -> bool {
        let kept = self.peers.kept().clone();
        kept.into_iter().all(|peer| self.core.is_still(peer))
    }
}

/// A queue pair on trial. Closed when it is dropped.
pub(super) struct Pair {
    rdma: Arc<Rdma>,
    peer: u128,
    kept: bool,
}

impl core::fmt::Debug for Pair {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Pair")
            .field("peer", &self.peer)
            .finish_non_exhaustive()
    }
}

impl Pair {
    /// The only one of this peer; `None` if there is one.
    pub(super) fn begin(rdma: &Arc<Rdma>, peer: u128) -> Option<Self> {
        let mut trials = rdma.peers.trials();
        if trials.contains_key(&peer) {
            return None;
        }
        trials.insert(peer, None);
        Some(Self {
            rdma: Arc::clone(rdma),
            peer,
            kept: false,
        })
    }

    /// As [`Core::offer`].
    pub(super) fn offer(&self) -> Result<Vec<u8>, String> {
        self.rdma.core.offer(self.peer)
    }

    /// As [`Core::answer`].
    pub(super) fn answer(&self, offer: &[u8]) -> Result<Vec<u8>, String> {
        self.rdma.core.answer(self.peer, offer)
    }

    /// As [`Core::accept`].
    pub(super) fn accept(&self, answer: &[u8]) -> Result<(), String> {
        self.rdma.core.accept(self.peer, answer)
    }

    /// Whether it works, as far as that is known.
    pub(super) fn outcome(&self) -> Option<Result<(), String>> {
        if let Some(Some(reason)) = self.rdma.peers.trials().get(&self.peer) {
            return Some(Err(reason.clone()));
        }
        self.rdma.core.is_proved(self.peer).then_some(Ok(()))
    }

    /// The peer goes by it, before anybody can know that by `connect`, which makes it
    /// a peer.
    pub(super) fn keep<E>(mut self, connect: impl FnOnce() -> Result<(), E>) -> Result<(), E> {
        let (peers, peer) = (Arc::clone(&self.rdma.peers), self.peer);
        peers.kept().insert(peer);
        if let Err(error) = connect() {
            peers.kept().remove(&peer);
            return Err(error);
        }
        self.kept = true;
        // What fails from here on is told to the streams at once.
        let failed = peers.trials().remove(&peer).flatten();
        if let Some(reason) = failed {
            peers.fail(peer, reason);
        }
        Ok(())
    }
}

impl Drop for Pair {
    fn drop(&mut self) {
        if self.kept {
            return;
        }
        self.rdma.core.close(self.peer);
        self.rdma.peers.trials().remove(&self.peer);
    }
}
