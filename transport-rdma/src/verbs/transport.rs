//! A participant's queue pairs to its peers, and the thread that serves them.

use ::core::time::Duration;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::completion_thread::CompletionThread;
use super::device::Device;
use super::error::RdmaError;
use super::hooks::Hooks;
use super::link::Role;
use super::segment::RdmaSegment;
use super::shared::Shared;
use super::sys::Channel;
use crate::fabric::peers::PeerSet;
use crate::memory::Region;
use crate::rdma::{RdmaCounters, RdmaOptions};
use crate::sleep::eventfd::create_eventfd;
use crate::station::error::StationError;
use crate::station::segment::{SegmentKey, SegmentRequest};

/// A participant's queue pairs, one for each peer that is reached by RDMA, and the thread
/// that serves them.
#[derive(Debug)]
pub(crate) struct RdmaTransport {
    /// Dropped first.
    _thread: CompletionThread,
    shared: Arc<Shared>,
}

impl RdmaTransport {
    /// Chooses the device and tries it. `listen` is the address at which the station listens;
    /// a GID with this address is preferred. A queue pair whose peer acknowledges nothing
    /// for about `patience`, at most 3.8 s, has failed.
    pub(crate) fn open(
        options: &RdmaOptions,
        listen: IpAddr,
        patience: Duration,
        hooks: Hooks,
    ) -> Result<Self, RdmaError> {
        let device = Device::open(options, listen)?;
        let system = |what| move |source| RdmaError::System { what, source };
        let channel = Channel::new(&device.context);
        let channel = channel.map_err(system("making a completion channel"))?;
        let kick = create_eventfd().map_err(|errno| RdmaError::System {
            what: "making an event descriptor",
            source: errno.into(),
        })?;
        let io = hooks.io;
        let shared = Shared::new(device, channel, kick, patience, hooks);
        let shared = Arc::new(shared);
        Ok(Self {
            _thread: CompletionThread::start(&shared, &io)?,
            shared,
        })
    }

    /// The device, its port and its GID, for log messages.
    pub(crate) fn device(&self) -> String {
        let device = &self.shared.device;
        let (name, port, gid) = (device.context.name(), device.port.number, device.gid.index);
        let address = ::core::net::Ipv6Addr::from(device.gid.gid);
        format!("{name}, port {port}, GID {gid} ({address})")
    }

    /// Makes a queue pair for this peer and returns what the peer needs to know of it, at
    /// most 128 bytes. In a connection, the side that was called offers and the caller
    /// answers. May block for some milliseconds.
    pub(crate) fn offer(&self, peer: u128) -> Result<Vec<u8>, String> {
        let link = self.shared.add(peer, Role::Offers)?;
        link.offer(&self.shared.device)
    }

    /// Makes a queue pair for the peer's offer and connects it: from now on what the peer
    /// writes arrives here. Returns what the peer has to [`accept`](Self::accept), at most
    /// 128 bytes. My hello is sent once the peer's has arrived. May block while the kernel
    /// resolves the peer's address.
    pub(crate) fn answer(&self, peer: u128, offer: &[u8]) -> Result<Vec<u8>, String> {
        let link = self.shared.add(peer, Role::Answers)?;
        let connected = self.shared.connect(&link, offer);
        let answer = connected.and_then(|()| link.offer(&self.shared.device));
        if answer.is_err() {
            self.close(peer);
        }
        answer
    }

    /// Connects my queue pair with the peer's answer, and sends my hello. May block while the
    /// kernel resolves the peer's address.
    pub(crate) fn accept(&self, peer: u128, answer: &[u8]) -> Result<(), String> {
        let link = self.shared.link(peer).filter(|it| it.role == Role::Offers);
        let link = link.ok_or("no queue pair was offered to it")?;
        self.shared.connect(&link, answer)
    }

    /// Whether the peer's hello has arrived.
    pub(crate) fn is_proved(&self, peer: u128) -> bool {
        let link = self.shared.link(peer);
        link.is_some_and(|link| link.is_proved.load(Ordering::Acquire))
    }

    /// Closes the queue pair of a peer, in any state, with its open segments; `failed` is not
    /// called for it any more. No effect if there is none.
    pub(crate) fn close(&self, peer: u128) {
        self.shared.close(peer);
    }

    /// Opens a segment to its members in `peers`, which are reached by RDMA. `row` is mine. A
    /// member that is not connected, or has failed, gets a copy of zeros.
    pub(crate) fn segment(
        &self,
        request: &SegmentRequest,
        peers: &PeerSet,
        row: &Region,
    ) -> Result<RdmaSegment, StationError> {
        RdmaSegment::open(&self.shared, request, peers, row)
    }

    /// Discards what peers push for a segment that will not be made here. A dropped segment
    /// does this by itself.
    pub(crate) fn forget(&self, key: SegmentKey) {
        let mut state = self.shared.state();
        state.close_segment(key);
        self.shared.end_overdue(&state);
        drop(state);
        self.send_all();
    }

    fn send_all(&self) {
        for link in self.shared.links().iter() {
            let sent = link.outgoing.send(self.shared.is_asleep());
            self.shared.sent(link, sent);
        }
    }

    /// The sleeper of this process has announced this sleep word: it is sent to the peers.
    /// Called before the sleeper looks again.
    pub(crate) fn announce_sleep(&self, word: u64) {
        self.shared.announce_sleep(word);
    }

    /// The sleeper of this process is awake. Peers are not told.
    pub(crate) fn announce_awake(&self) {
        self.shared.announce_awake();
    }

    /// Upkeep: sends what could not be sent before, and doorbells to peers whose sleep words
    /// have arrived since. Never blocks.
    pub(crate) fn poll(&self) {
        self.shared.poll();
    }

    /// Counters of a peer; `None` if it has no queue pair.
    pub(crate) fn counters(&self, peer: u128) -> Option<RdmaCounters> {
        Some(self.shared.link(peer)?.outgoing.counters.read())
    }

    /// Whether all pushes to the peer are complete. For tests: it takes locks.
    pub(crate) fn is_still(&self, peer: u128) -> bool {
        let Some(link) = self.shared.link(peer) else {
            return true;
        };
        let still = link.outgoing.is_still();
        still.unwrap_or_else(|reason| {
            self.shared.fail(&link, reason);
            true
        })
    }

    #[cfg(test)]
    pub(super) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }
}
