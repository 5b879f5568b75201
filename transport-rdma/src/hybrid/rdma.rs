//! A station's queue pairs, and the peers that are reached by them.
//!
//! A queue pair is made in the handshake, as a [`TrialPair`]. If both sides find that it
//! works, pushes to the peer go over it until the peer is lost; they never change to streams.

use core::sync::atomic::{AtomicUsize, Ordering};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use super::error::HybridError;
use super::options::RdmaUse;
use crate::rdma::RdmaCounters;
use crate::tcp;
use crate::thread_settings::ThreadSettings;
use crate::verbs::{Hooks, RdmaError, RdmaTransport};

/// State shared by the threads of RDMA and those of the station.
#[derive(Default)]
struct RdmaPeers {
    /// Peers whose queue pair is on trial, with the reason if it has failed.
    trials: Mutex<BTreeMap<u128, Option<String>>>,
    /// Peers that are reached by RDMA.
    kept: Mutex<BTreeSet<u128>>,
    /// Number of these. Changed with them locked.
    kept_len: AtomicUsize,
    /// The transport that reports failures of peers.
    streams: OnceLock<Weak<tcp::StreamTransport>>,
    /// Has the handshake thread check trials again.
    recheck: OnceLock<Box<dyn Fn() + Send + Sync>>,
}

impl RdmaPeers {
    fn trials(&self) -> MutexGuard<'_, BTreeMap<u128, Option<String>>> {
        self.trials.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn kept(&self) -> MutexGuard<'_, BTreeSet<u128>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn keep(&self, peer: u128) {
        let mut kept = self.kept();
        kept.insert(peer);
        self.kept_len.store(kept.len(), Ordering::Release);
    }

    /// Returns whether it was kept.
    fn unkeep(&self, peer: u128) -> bool {
        let mut kept = self.kept();
        let was_kept = kept.remove(&peer);
        self.kept_len.store(kept.len(), Ordering::Release);
        was_kept
    }

    fn recheck(&self) {
        if let Some(recheck) = self.recheck.get() {
            recheck();
        }
    }

    fn failed(&self, peer: u128, reason: String) {
        let mut trials = self.trials();
        if let Some(failure) = trials.get_mut(&peer) {
            failure.get_or_insert(reason);
            drop(trials);
            return self.recheck();
        }
        drop(trials);
        self.fail(peer, reason);
    }

    /// A peer that is reached by RDMA has failed.
    fn fail(&self, peer: u128, reason: String) {
        if let Some(streams) = self.streams.get().and_then(Weak::upgrade) {
            streams.fail(peer, reason);
        }
    }
}

/// The RDMA part of one station.
pub(super) struct StationRdma {
    core: RdmaTransport,
    peers: Arc<RdmaPeers>,
    /// Stations on other hosts that are not reached by RDMA do not become peers.
    pub(super) required: bool,
}

impl core::fmt::Debug for StationRdma {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("StationRdma")
            .field("required", &self.required)
            .finish_non_exhaustive()
    }
}

impl StationRdma {
    /// Opens it if it is wanted and available. Where it is not required, a device that cannot
    /// be used causes a warning, and a missing one only a debug message.
    pub(super) fn open(
        wanted: &RdmaUse,
        listen: IpAddr,
        patience: core::time::Duration,
        wake: tcp::WakeHook,
        io: &ThreadSettings,
    ) -> Result<Option<Self>, HybridError> {
        let (options, required) = match wanted {
            RdmaUse::Off => return Ok(None),
            RdmaUse::Auto(options) => (options, false),
            RdmaUse::Required(options) => (options, true),
        };
        let peers = Arc::<RdmaPeers>::default();
        let (tells, proves) = (Arc::clone(&peers), Arc::clone(&peers));
        let hooks = Hooks {
            wake,
            failed: Box::new(move |peer, reason| tells.failed(peer, reason)),
            proved: Box::new(move |_| proves.recheck()),
            io: *io,
        };
        match RdmaTransport::open(options, listen, patience, hooks) {
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

    /// Sets the transport to which failures are reported. Called once.
    pub(super) fn serve(&self, streams: &Arc<tcp::StreamTransport>) {
        // It can only be set already if this was called before.
        let _ = self.peers.streams.set(Arc::downgrade(streams));
    }

    /// Sets what is called when a trial has made progress. Called once.
    pub(super) fn on_proof(&self, recheck: impl Fn() + Send + Sync + 'static) {
        // As in `serve`.
        let _ = self.peers.recheck.set(Box::new(recheck));
    }

    pub(super) fn core(&self) -> &RdmaTransport {
        &self.core
    }

    /// Whether a peer is reached by RDMA.
    pub(super) fn has(&self, peer: u128) -> bool {
        self.peers.kept().contains(&peer)
    }

    /// Whether any peer is. Takes no lock.
    pub(super) fn has_peers(&self) -> bool {
        self.peers.kept_len.load(Ordering::Acquire) != 0
    }

    pub(super) fn counters(&self, peer: u128) -> Option<RdmaCounters> {
        self.has(peer).then(|| self.core.counters(peer)).flatten()
    }

    /// A peer is lost or dropped: closes its queue pair.
    pub(super) fn lose(&self, peer: u128) {
        if self.peers.unkeep(peer) {
            self.core.close(peer);
        }
    }

    /// Whether all pushes are complete.
    pub(super) fn is_still(&self) -> bool {
        let kept = self.peers.kept().clone();
        kept.into_iter().all(|peer| self.core.is_still(peer))
    }
}

/// A queue pair on trial. Closed when it is dropped.
pub(super) struct TrialPair {
    rdma: Arc<StationRdma>,
    peer: u128,
    kept: bool,
}

impl core::fmt::Debug for TrialPair {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("TrialPair")
            .field("peer", &self.peer)
            .finish_non_exhaustive()
    }
}

impl TrialPair {
    /// Starts the trial of a peer; `None` if there is one already.
    pub(super) fn begin(rdma: &Arc<StationRdma>, peer: u128) -> Option<Self> {
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

    /// As [`RdmaTransport::offer`].
    pub(super) fn offer(&self) -> Result<Vec<u8>, String> {
        self.rdma.core.offer(self.peer)
    }

    /// As [`RdmaTransport::answer`].
    pub(super) fn answer(&self, offer: &[u8]) -> Result<Vec<u8>, String> {
        self.rdma.core.answer(self.peer, offer)
    }

    /// As [`RdmaTransport::accept`].
    pub(super) fn accept(&self, answer: &[u8]) -> Result<(), String> {
        self.rdma.core.accept(self.peer, answer)
    }

    /// Whether it works, once that is known.
    pub(super) fn outcome(&self) -> Option<Result<(), String>> {
        if let Some(Some(reason)) = self.rdma.peers.trials().get(&self.peer) {
            return Some(Err(reason.clone()));
        }
        self.rdma.core.is_proved(self.peer).then_some(Ok(()))
    }

    /// Keeps the queue pair: the peer is reached by it, from before `connect` makes it a
    /// peer.
    pub(super) fn keep<E>(mut self, connect: impl FnOnce() -> Result<(), E>) -> Result<(), E> {
        let (peers, peer) = (Arc::clone(&self.rdma.peers), self.peer);
        peers.keep(peer);
        if let Err(error) = connect() {
            peers.unkeep(peer);
            return Err(error);
        }
        self.kept = true;
        // A failure from here on is reported to the streams at once.
        let failed = peers.trials().remove(&peer).flatten();
        if let Some(reason) = failed {
            peers.fail(peer, reason);
        }
        Ok(())
    }
}

impl Drop for TrialPair {
    fn drop(&mut self) {
        if self.kept {
            return;
        }
        self.rdma.core.close(self.peer);
        self.rdma.peers.trials().remove(&self.peer);
    }
}
