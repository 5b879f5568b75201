//! A participant's station: its place on its host and, if it has one, in a network.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::address::Address;
use super::connecting::ConnectOutcome;
use super::error::HybridError;
use super::network::Network;
use super::options::StationOptions;
use super::segment::{HybridSegment, RemoteMembers};
use crate::fabric::Fabric;
use crate::fabric::peers::{PeerSet, Rank};
use crate::memory::Region;
use crate::rdma::RdmaCounters;
use crate::shm::{self, ShmSegment};
use crate::station::error::StationError;
use crate::station::event::StationEvent;
use crate::station::segment::{SegmentKey, SegmentRequest};
use crate::station::traffic::StationTraffic;
use crate::tcp::{self, StreamCalls, StreamState};

/// The path of pushes to a peer. In JSON: `{"way": "shm"}`, `{"way": "tcp"}` or
/// `{"way": "rdma", "rdma": {...}}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "way", content = "rdma")]
pub enum PeerPath {
    /// The peer is on this host, and maps my rows.
    #[serde(rename = "shm")]
    SharedMemory,
    /// Over the peer's TCP connection.
    #[serde(rename = "tcp")]
    Stream,
    /// Over a queue pair, with its counters. Messages go over TCP.
    #[serde(rename = "rdma")]
    Rdma(Box<RdmaCounters>),
}

impl PeerPath {
    /// A short name: `shm`, `tcp` or `rdma`.
    pub fn name(&self) -> &'static str {
        match self {
            Self::SharedMemory => "shm",
            Self::Stream => "tcp",
            Self::Rdma(_) => "rdma",
        }
    }
}

/// A participant's station. On its host it reaches peers by shared memory; in a network, if
/// it is opened with one, it reaches the others by streams, or by RDMA where that is
/// available. It outlives views. Any thread may call it.
///
/// A peer that is lost stays known, with the cause, until [`drop_peer`](Self::drop_peer).
#[derive(Debug)]
pub struct Station {
    /// Dropped first: its threads signal the doorbell of `host`.
    network: Option<Network>,
    host: shm::Station,
    here: Address,
}

impl Station {
    /// Opens the station: from now on peers can connect. Waits up to 5 s for the domain's
    /// lock. Without a network it has the one thread of [`shm::Station`]; with one it has two
    /// more, and a third if there is RDMA.
    pub fn open(options: &StationOptions) -> Result<Self, HybridError> {
        let host = shm::Station::open(&options.host)?;
        let mut here = Address {
            host: host.host_id(),
            id: host.id(),
            on_host: host.address(),
            sockets: Vec::new(),
        };
        let for_host = (options.host.domain, &options.host.io);
        let network = options.network.as_ref();
        let network = network.map(|network| Network::open(network, &host, for_host, &mut here));
        let network = network.transpose()?;
        Ok(Self {
            network,
            host,
            here,
        })
    }

    /// The id of its participant.
    pub fn id(&self) -> u128 {
        self.host.id()
    }

    /// The id of its host: see [`shm::host_id`].
    pub fn host_id(&self) -> u128 {
        self.here.host
    }

    /// Whether memory is allocated when it is mapped: [`shm::HostOptions::prefault`].
    pub fn prefaults(&self) -> bool {
        self.host.prefaults()
    }

    /// Its address for other stations, on this host and in the network. At most 1024 bytes.
    pub fn address(&self) -> Vec<u8> {
        self.here.write()
    }

    /// The address at which it was told to listen, while another process has the port; it
    /// tries again once a second.
    pub fn missing_port(&self) -> Option<SocketAddr> {
        self.network.as_ref().and_then(Network::missing)
    }

    /// The address at which it listens in the network; `None` without a network.
    pub fn listening(&self) -> Option<SocketAddr> {
        self.network.as_ref().map(Network::listening)
    }

    /// Connects to the station that listens at `contact`, unless the two are connected, and
    /// returns its id. Blocks until it answers, at most until `deadline`, or 3 s longer if it
    /// has proved itself by then and the path of pushes is being selected. A station that
    /// turns out to be on this host is connected by shared memory.
    pub fn call(&self, contact: SocketAddr, deadline: Instant) -> Result<u128, HybridError> {
        let Some(network) = &self.network else {
            return Err(HybridError::Unreachable {
                contact,
                reason: "this station is open for its own host only".to_owned(),
                kind: None,
            });
        };
        match network.call(contact, deadline)? {
            ConnectOutcome::Peer(id) => Ok(id),
            ConnectOutcome::OnHost(address) => Ok(self.host.connect(&address.on_host, deadline)?),
        }
    }

    /// Connects to the station with this [`address`](Self::address), unless the two are
    /// connected, and returns its id. Blocks as [`call`](Self::call) does. If both sides
    /// call, there is one connection.
    pub fn connect(&self, address: &[u8], deadline: Instant) -> Result<u128, HybridError> {
        let target = self.read(address)?;
        if target.id == self.id() {
            return Err(HybridError::ThisStation);
        }
        if target.host == self.here.host {
            return Ok(self.host.connect(&target.on_host, deadline)?);
        }
        self.network(target.id)?.connect(&target, deadline)
    }

    /// Starts to connect to the station with this address if it is on this host: see
    /// [`shm::Station::begin_connecting`].
    pub fn begin_connecting(&self, address: &[u8]) {
        if let Ok(target) = self.read(address)
            && target.host == self.here.host
        {
            self.host.begin_connecting(&target.on_host);
        }
    }

    /// The network part, for reaching member `id`.
    fn network(&self, id: u128) -> Result<&Network, HybridError> {
        self.network.as_ref().ok_or(HybridError::NoNetwork { id })
    }

    fn read(&self, address: &[u8]) -> Result<Address, HybridError> {
        let nonsense = || StationError::Address(String::from_utf8_lossy(address).into_owned());
        Ok(Address::read(address).ok_or_else(nonsense)?)
    }

    /// Declares that the member with this address is going to call. If it is on another host,
    /// segments with it [wait](Self::segments) for its connection. Does not block.
    pub fn expect_peer(&self, address: &[u8]) -> Result<(), HybridError> {
        let member = self.read(address)?;
        if member.host != self.here.host {
            self.network(member.id)?.expect_peer(member.id);
        }
        Ok(())
    }

    /// Queues a message of at most [`MESSAGE_LEN_MAX`](crate::MESSAGE_LEN_MAX) bytes for a
    /// connected peer. Does not wait until it is sent.
    pub fn send(&self, to: u128, bytes: &[u8]) -> Result<(), HybridError> {
        match &self.network {
            Some(network) if network.streams.has(to) => network.streams.send(to, bytes)?,
            _ => self.host.send(to, bytes)?,
        }
        Ok(())
    }

    /// What it has sent to stations of its host.
    pub fn traffic(&self) -> StationTraffic {
        self.host.traffic()
    }

    /// The next event, of any peer; `None` if there is none before `timeout` is over, or
    /// [`interrupt`](Self::interrupt) was called since the last call. A thread in a
    /// segment's [`park`](crate::Park::park) is woken by events, too.
    pub fn next_event(&self, timeout: Duration) -> Option<StationEvent> {
        self.host.next_event(timeout)
    }

    /// Makes [`next_event`](Self::next_event) return without an event, now or at its next
    /// call. Any thread; takes a short lock.
    pub fn interrupt(&self) {
        self.host.interrupt();
    }

    /// [`segments`](Self::segments) for one segment.
    pub fn segment(
        &self,
        request: &SegmentRequest,
        deadline: Instant,
    ) -> Result<HybridSegment, HybridError> {
        let made = self.segments(core::slice::from_ref(request), deadline)?;
        let [segment] = <[_; 1]>::try_from(made).expect("one for one");
        Ok(segment)
    }

    /// Makes segments, in this order, all or none. Blocks for members on this host as
    /// [`shm::Station::segments`] does, and until each member on another host is connected or
    /// lost, or `deadline` is over. Members on other hosts must be connected or
    /// [expected](Self::expect_peer). Rows of members that are missing by then are zeros for
    /// ever, and each control segment that has such a member reports it.
    pub fn segments(
        &self,
        requests: &[SegmentRequest],
        deadline: Instant,
    ) -> Result<Vec<HybridSegment>, HybridError> {
        self.segments_watching(requests, deadline, &mut || {})
    }

    /// [`segments`](Self::segments), which calls `watch` every 10 ms while it waits for members on
    /// this host: it may [give up](Self::give_up) members.
    pub fn segments_watching(
        &self,
        requests: &[SegmentRequest],
        deadline: Instant,
        watch: &mut dyn FnMut(),
    ) -> Result<Vec<HybridSegment>, HybridError> {
        for request in requests {
            if let Some(problem) = tcp::problem(request, self.id()) {
                return Err(StationError::segment(request.key, problem).into());
            }
        }
        let away = requests.iter().map(|request| self.away(request));
        let away: Vec<PeerSet> = away.collect();
        let parts = requests.iter().zip(&away);
        let parts: Vec<_> = parts.map(|(whole, away)| on_host(whole, away)).collect();
        let made = self.host.segments_watching(&parts, deadline, watch)?;
        if let Some(network) = &self.network {
            let all = requests.iter().flat_map(SegmentRequest::peers);
            let away = all.map(|(_, id)| id).filter(|&id| network.has(id));
            let away = away.collect::<Vec<_>>();
            for request in requests {
                network.streams.wait_for(&away, request.key, deadline)?;
            }
        }
        let whole = requests.iter().zip(&away).zip(made);
        let segments = whole.map(|((request, away), part)| self.join(request, away, part));
        let segments = segments.collect::<Result<_, _>>()?;
        if let Some(network) = &self.network {
            network.streams.opened();
        }
        Ok(segments)
    }

    /// The members that are not reached by shared memory.
    fn away(&self, request: &SegmentRequest) -> PeerSet {
        let Some(network) = &self.network else {
            return PeerSet::EMPTY;
        };
        let away = request.peers().filter(|&(_, id)| network.has(id));
        away.map(|(rank, _)| rank).collect()
    }

    fn join(
        &self,
        request: &SegmentRequest,
        away: &PeerSet,
        part: ShmSegment,
    ) -> Result<HybridSegment, HybridError> {
        let rdma = self.network.as_ref().and_then(|it| it.rdma.clone());
        let Some(network) = self.network.as_ref().filter(|_| !away.is_empty()) else {
            return Ok(HybridSegment {
                host: part,
                remote: None,
                rdma,
            });
        };
        let by_rdma = request.peers().filter(|&(_, id)| network.is_by_rdma(id));
        let by_rdma: PeerSet = by_rdma.map(|(rank, _)| rank).collect();
        let verbs = match &rdma {
            Some(rdma) if !by_rdma.is_empty() => {
                let row = part.row(part.me());
                Some(rdma.core().segment(request, &by_rdma, row)?)
            }
            _ => None,
        };
        let copies = verbs.as_ref().map_or(&[][..], |verbs| verbs.copies());
        let (mut rows, mut on_host, mut whole) = (Vec::new(), Vec::new(), Vec::new());
        for (rank, &len) in (0..).map(Rank).zip(&request.row_lens) {
            if away.contains(rank) {
                let copy = copies.iter().find(|(of, _)| *of == rank);
                rows.push(copy.map_or_else(|| Region::heap(len), |(_, copy)| copy.clone()));
                on_host.push(None);
                continue;
            }
            let local = Rank(whole.len() as u16);
            rows.push(part.row(local).clone());
            on_host.push(Some(local));
            whole.push(rank);
        }
        let reach = tcp::StreamReach {
            not_by_network: whole.iter().copied().collect(),
            by_rdma,
        };
        let streams = network.streams.streams(request, &rows, &reach)?;
        for rank in away.without(&by_rdma).iter() {
            rows[rank.index()] = rows[rank.index()].read_only();
        }
        let remote = RemoteMembers {
            me: request.me,
            streams,
            verbs,
            rows,
            whole,
            on_host,
        };
        Ok(HybridSegment {
            host: part,
            remote: Some(remote),
            rdma,
        })
    }

    /// Discards what peers have handed over or push for a segment that will not be made
    /// here. A dropped segment does this by itself.
    pub fn forget(&self, key: SegmentKey) {
        self.host.forget(key);
        if let Some(network) = &self.network {
            network.streams.forget(key);
            if let Some(rdma) = &network.rdma {
                rdma.core().forget(key);
            }
        }
    }

    /// Ends waiting for segments of epochs before this one, now and later: making them fails.
    /// Segments that are made stay. Any thread; takes short locks.
    pub fn end_exchanges_before(&self, epoch: u64) {
        self.host.end_exchanges_before(epoch);
        if let Some(network) = &self.network {
            network.streams.end_exchanges_before(epoch);
        }
    }

    /// Declares that a member that is not connected will not come. Until
    /// [`drop_peer`](Self::drop_peer), no segment waits for it, and control segments report
    /// it (with this reason, on this host). No effect on a connected peer.
    pub fn give_up(&self, id: u128, reason: &str) {
        match &self.network {
            Some(network) if network.has(id) => network.streams.give_up(id),
            _ => self.host.give_up(id, reason),
        }
    }

    /// Whether a member of this host is known, by its address, to have closed its station.
    /// One look at the domain's directory.
    pub fn has_closed(&self, address: &[u8]) -> bool {
        let member = Address::read(address).filter(|it| it.host == self.here.host);
        member.is_some_and(|it| self.host.has_closed(&it.on_host))
    }

    /// Closes the connection to a peer, which is told that this is on purpose, and forgets
    /// the peer: it may connect again. Its messages that were not taken are discarded.
    /// Segments keep its rows as they are, and do not report it any more.
    pub fn drop_peer(&self, id: u128) {
        self.host.drop_peer(id);
        if let Some(network) = &self.network {
            network.drop_peer(id);
        }
    }

    /// Tells the peers that the station closes, and closes it; threads that block in a call
    /// of it return. Segments get nothing from members on other hosts any more; on this host
    /// they keep working, but report no failures. Idempotent; dropping a station closes it.
    pub fn close(&self) {
        if let Some(network) = &self.network {
            network.close();
        }
        self.host.close();
    }

    /// The path of pushes to a peer; `None` if it is not connected, or lost.
    pub fn path(&self, id: u128) -> Option<PeerPath> {
        if let Some(network) = &self.network
            && network.streams.has(id)
        {
            let lives = network.streams.fate_of(id)?.is_none();
            let rdma = network.rdma.as_ref();
            let counters = rdma.and_then(|rdma| rdma.counters(id));
            let by_rdma = counters.map(|counters| PeerPath::Rdma(Box::new(counters)));
            return lives.then(|| by_rdma.unwrap_or(PeerPath::Stream));
        }
        self.host.has(id).then_some(PeerPath::SharedMemory)
    }

    /// Whether all that goes to a peer over the network is encrypted: by RDMA it is not. False if
    /// the peer is on this host.
    pub fn is_encrypted(&self, id: u128) -> bool {
        let network = self.network.as_ref();
        network.is_some_and(|network| network.is_encrypted(id))
    }

    /// Whether all pushes by RDMA have landed. For tests: it takes locks.
    pub fn is_still(&self) -> bool {
        let rdma = self.network.as_ref().and_then(|it| it.rdma.as_ref());
        rdma.is_none_or(|rdma| rdma.is_still())
    }

    /// Progress of the streams to and from a peer; `None` if it is not on another host.
    pub fn stream_state(&self, id: u128) -> Option<StreamState> {
        self.network.as_ref()?.streams.link(id)
    }

    /// System calls of its streams to other hosts so far; zeros without a network.
    pub fn stream_calls(&self) -> StreamCalls {
        let network = self.network.as_ref();
        network.map(|it| it.streams.calls()).unwrap_or_default()
    }

    /// For tests: makes other stations of this process believe that the process of this one
    /// has ended. No effect in other processes.
    pub fn pretend_process_ended(&self) {
        self.host.pretend_process_ended();
    }
}

/// The part of a segment that is on this host, with ranks of its own.
fn on_host(whole: &SegmentRequest, away: &PeerSet) -> SegmentRequest {
    let here = |rank: usize| !away.contains(Rank(rank as u16));
    let ranks = || (0..whole.members.len()).filter(|&rank| here(rank));
    SegmentRequest {
        key: whole.key,
        members: ranks().map(|rank| whole.members[rank]).collect(),
        me: Rank(ranks().take_while(|&rank| rank < whole.me.index()).count() as u16),
        row_lens: ranks().map(|rank| whole.row_lens[rank]).collect(),
        control: whole.control,
    }
}
