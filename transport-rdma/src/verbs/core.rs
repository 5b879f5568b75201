//! A participant's queue pairs to its peers.

use ::core::time::Duration;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::device::Device;
use super::error::RdmaError;
use super::link::Role;
use super::segment::Segment;
use super::shared::Shared;
use super::sys::Channel;
use super::thread::Thread;
use crate::eventfd::create_eventfd;
use crate::mem::Region;
use crate::peers::PeerSet;
use crate::rdma::{RdmaCounters, RdmaOptions};
use crate::segment::{SegmentKey, SegmentRequest};
use crate::station_error::StationError;
use crate::tcp::Wake;

/// What is told to those who use it: without a lock held, by any thread. They return soon.
pub(crate) struct Hooks {
    /// Takes the part of a peer that has rung: wakes the sleeper of this process, if it
    /// wants to know, and counts that before.
    pub(crate) wake: Wake,
    /// The queue pair of a peer has failed, and why: once for each, unless it was closed
    /// before. To be closed then.
    pub(crate) failed: Box<dyn Fn(u128, String) + Send + Sync>,
    /// The peer's hello has come over its queue pair: it works in that direction.
    pub(crate) proved: Box<dyn Fn(u128) + Send + Sync>,
}

/// A participant's queue pairs, one for each peer that comes by RDMA, and the thread
/// that serves them.
#[derive(Debug)]
pub(crate) struct Core {
    /// Ends first.
    _thread: Thread,
    shared: Arc<Shared>,
}

impl Core {
    /// Chooses the device and tries it. `listen` is where the station listens: of several
    /// GIDs, that of this address is taken. A queue pair whose peer acknowledges nothing
    /// for about `patience`, or 3.8 s if that is less, has failed.
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
        let shared = Shared::new(device, channel, kick, patience, hooks);
        let shared = Arc::new(shared);
        Ok(Self {
            _thread: Thread::start(&shared)?,
            shared,
        })
    }

    /// The device, its port and its GID, in words.
    pub(crate) fn device(&self) -> String {
        let device = &self.shared.device;
        let (name, port, gid) = (device.context.name(), device.port.number, device.gid.index);
        let address = ::core::net::Ipv6Addr::from(device.gid.gid);
        format!("{name}, port {port}, GID {gid} ({address})")
    }

    /// The first word of two: a queue pair for this peer, and what it has to know of it,
    /// at most 128 bytes. One of the two offers, the other answers: in a connection, who
    /// was called and who has called. May block for some milliseconds.
    pub(crate) fn offer(&self, peer: u128) -> Result<Vec<u8>, String> {
        let link = self.shared.add(peer, Role::Offers)?;
        link.offer(&self.shared.device)
    }

    /// The second word: from the peer's offer on, what it writes arrives here. Gives what
    /// the peer has to [`accept`](Self::accept), at most 128 bytes. My hello is sent when
    /// the peer's has come. May block while the kernel finds the way to the peer.
    pub(crate) fn answer(&self, peer: u128, offer: &[u8]) -> Result<Vec<u8>, String> {
        let link = self.shared.add(peer, Role::Answers)?;
        let connected = self.shared.connect(&link, offer);
        let answer = connected.and_then(|()| link.offer(&self.shared.device));
        if answer.is_err() {
            self.close(peer);
        }
        answer
    }

    /// The peer has answered my offer: the queue pair is up, and my hello is sent. May
    /// block while the kernel finds the way to the peer.
    pub(crate) fn accept(&self, peer: u128, answer: &[u8]) -> Result<(), String> {
        let link = self.shared.link(peer).filter(|it| it.role == Role::Offers);
        let link = link.ok_or("no queue pair was offered to it")?;
        self.shared.connect(&link, answer)
    }

    /// Whether the peer's hello has come.
    pub(crate) fn is_proved(&self, peer: u128) -> bool {
        let link = self.shared.link(peer);
        link.is_some_and(|link| link.is_proved.load(Ordering::Acquire))
    }

    /// Ends the queue pair of a peer, in whatever state. What it had open goes with it;
    /// `failed` is not called for it any more. Does nothing if there is none.
    pub(crate) fn close(&self, peer: u128) {
        self.shared.close(peer);
    }

    /// Opens a segment with those of its members that are `peers`, which come by RDMA.
    /// `row` is mine. Who is not connected, or has failed, has a copy of zeros.
    pub(crate) fn segment(
        &self,
        request: &SegmentRequest,
        peers: &PeerSet,
        row: &Region,
    ) -> Result<Segment, StationError> {
        Segment::open(&self.shared, request, peers, row)
    }

    /// Throws away what peers push for a segment that will not be made here. One that is
    /// dropped does it by itself.
    pub(crate) fn forget(&self, key: SegmentKey) {
        let mut state = self.shared.state();
        state.dismiss(key);
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

    /// My sleeper has announced itself with this word: the peers are told. Before the
    /// sleeper looks again.
    pub(crate) fn announce_sleep(&self, word: u64) {
        self.shared.announce_sleep(word);
    }

    /// My sleeper is awake. Nobody is told.
    pub(crate) fn announce_awake(&self) {
        self.shared.announce_awake();
    }

    /// Upkeep: sends what could not be sent before, and doorbells to those that were
    /// seen to sleep since. Never blocks.
    pub(crate) fn poll(&self) {
        self.shared.poll();
    }

    /// What was done for a peer; `None` if it has no queue pair.
    pub(crate) fn counters(&self, peer: u128) -> Option<RdmaCounters> {
        Some(self.shared.link(peer)?.outgoing.counters.read())
    }

    /// Whether all that was pushed to the peer is done. For tests: it takes locks.
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
