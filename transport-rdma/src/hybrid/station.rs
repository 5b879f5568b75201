//! A participant's place on its host, and in a network if it has one there.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::address::Address;
use super::calling::Reached;
use super::error::HybridError;
use super::network::Network;
use super::options::StationOptions;
use super::segment::{Away, HybridSegment};
use crate::fabric::Fabric;
use crate::mem::Region;
use crate::peers::{PeerSet, Rank};
use crate::rdma::RdmaCounters;
use crate::segment::{SegmentKey, SegmentRequest};
use crate::shm::{self, ShmSegment};
use crate::station_error::StationError;
use crate::station_event::StationEvent;
use crate::tcp::{self, StreamState};

/// How what is pushed to a peer goes. In JSON: `{"way": "shm"}`, `{"way": "tcp"}` or
/// `{"way": "rdma", "rdma": {...}}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "way", content = "rdma")]
pub enum PeerPath {
    /// It is on this host, and maps my rows.
    #[serde(rename = "shm")]
    SharedMemory,
    /// By its connection, over TCP.
    #[serde(rename = "tcp")]
    Stream,
    /// By a queue pair, and what has been done on that. Messages go over TCP.
    #[serde(rename = "rdma")]
    Rdma(Box<RdmaCounters>),
}

impl PeerPath {
    /// One word for it: `shm`, `tcp` or `rdma`.
    pub fn name(&self) -> &'static str {
        match self {
            Self::SharedMemory => "shm",
            Self::Stream => "tcp",
            Self::Rdma(_) => "rdma",
        }
    }
}

/// A participant's place: on its host, where it reaches peers by shared memory, and,
/// if it is opened for that, in a network, where it reaches the others by streams, and
/// where it can be had by RDMA.
/// It outlives views. Any thread may call it.
///
/// A peer that is lost stays known, with the cause, until [`drop_peer`](Self::drop_peer).
#[derive(Debug)]
pub struct Station {
    /// Ends first: its threads ring the bell of `host`.
    network: Option<Network>,
    host: shm::Station,
    here: Address,
}

impl Station {
    /// Opens it: from here on peers can connect. Waits up to 5 s for the domain's
    /// lock. Without a network, it has the one thread of [`shm::Station`]; with one, two
    /// more, and a third if there is RDMA.
    pub fn open(options: &StationOptions) -> Result<Self, HybridError> {
        let host = shm::Station::open(&options.host)?;
        let mut here = Address {
            host: host.host_id()?,
            id: host.id(),
            on_host: host.address(),
            sockets: Vec::new(),
        };
        let domain = options.host.domain;
        let network = options.network.as_ref();
        let network = network.map(|network| Network::open(network, &host, domain, &mut here));
        let network = network.transpose()?;
        Ok(Self {
            network,
            host,
            here,
        })
    }

    /// Its participant.
    pub fn id(&self) -> u128 {
        self.host.id()
    }

    /// Where others reach it: on its host, which is named, and in the network. At
    /// most 1024 bytes.
    pub fn address(&self) -> Vec<u8> {
        self.here.write()
    }

    /// Where it is told to listen, as long as that port is another's: it tries once a second
    /// to listen there too.
    pub fn missing_port(&self) -> Option<SocketAddr> {
        self.network.as_ref().and_then(Network::missing)
    }

    /// Where it listens in the network; `None` if it has no part in one.
    pub fn listening(&self) -> Option<SocketAddr> {
        self.network.as_ref().map(Network::listening)
    }

    /// Calls whoever listens at `contact`, unless the two are connected, and gives
    /// its id. Blocks until it has answered, at most until `deadline`, or 3 s longer if it
    /// has proved itself by then and settles how pushes go. One that turns
    /// out to be on the same host is connected by shared memory.
    pub fn call(&self, contact: SocketAddr, deadline: Instant) -> Result<u128, HybridError> {
        let Some(network) = &self.network else {
            let reason = "this station is open for its own host only".to_owned();
            return Err(HybridError::Unreachable { contact, reason });
        };
        match network.call(contact, deadline)? {
            Reached::Peer(id) => Ok(id),
            Reached::OnHost(address) => Ok(self.host.connect(&address.on_host, deadline)?),
        }
    }

    /// Connects to the station with this [`address`](Self::address), unless the two
    /// are connected, and gives its id. Blocks as [`call`](Self::call) does. If both call,
    /// there is one connection.
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

    /// The way to a member elsewhere.
    fn network(&self, id: u128) -> Result<&Network, HybridError> {
        self.network.as_ref().ok_or(HybridError::NoNetwork { id })
    }

    fn read(&self, address: &[u8]) -> Result<Address, HybridError> {
        let nonsense = || StationError::Address(String::from_utf8_lossy(address).into_owned());
        Ok(Address::read(address).ok_or_else(nonsense)?)
    }

    /// Says where a member is that is going to call: on another host, segments with
    /// it [wait](Self::segments) for its connection. Does not block.
    pub fn expect_peer(&self, address: &[u8]) -> Result<(), HybridError> {
        let member = self.read(address)?;
        if member.host != self.here.host {
            self.network(member.id)?.expect_peer(member.id);
        }
        Ok(())
    }

    /// Sends a message of at most [`MESSAGE_LEN_MAX`](crate::MESSAGE_LEN_MAX) bytes to
    /// a peer that is connected. Does not wait until it is taken.
    pub fn send(&self, to: u128, bytes: &[u8]) -> Result<(), HybridError> {
        match &self.network {
            Some(network) if network.streams.has(to) => network.streams.send(to, bytes)?,
            _ => self.host.send(to, bytes)?,
        }
        Ok(())
    }

    /// What happened next, here or elsewhere; `None` if nothing does before `timeout`
    /// is over, or somebody has said [`interrupt`](Self::interrupt) since the last
    /// call. Who sleeps in a segment's [`park`](crate::Park::park) is woken by events too.
    pub fn next_event(&self, timeout: Duration) -> Option<StationEvent> {
        self.host.next_event(timeout)
    }

    /// Has [`next_event`](Self::next_event) return without an event, now or when it is
    /// called next: there is something else to do. Any thread, at once but for a short lock.
    pub fn interrupt(&self) {
        self.host.interrupt();
    }

    /// [`segments`](Self::segments) for one.
    pub fn segment(
        &self,
        request: &SegmentRequest,
        deadline: Instant,
    ) -> Result<HybridSegment, HybridError> {
        let made = self.segments(core::slice::from_ref(request), deadline)?;
        let [segment] = <[_; 1]>::try_from(made).expect("one for one");
        Ok(segment)
    }

    /// Makes segments, in this order, all or none: blocks for the host's members as
    /// [`shm::Station::segments`] does, and until each member elsewhere is connected,
    /// or lost, or `deadline` is over. Who is elsewhere was connected or
    /// [introduced](Self::expect_peer) before. Members of whom there is none by then have
    /// rows of zeros for ever, and each control segment that has one reports it.
    pub fn segments(
        &self,
        requests: &[SegmentRequest],
        deadline: Instant,
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
        let made = self.host.segments(&parts, deadline)?;
        if let Some(network) = &self.network {
            let all = requests.iter().flat_map(SegmentRequest::peers);
            let away = all.map(|(_, id)| id).filter(|&id| network.has(id));
            network
                .streams
                .wait_for(&away.collect::<Vec<_>>(), deadline)?;
        }
        let whole = requests.iter().zip(&away).zip(made);
        let segments = whole.map(|((request, away), part)| self.join(request, away, part));
        let segments = segments.collect::<Result<_, _>>()?;
        if let Some(network) = &self.network {
            network.streams.opened();
        }
        Ok(segments)
    }

    /// Those who are not reached by shared memory.
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
                away: None,
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
            let seat = Rank(whole.len() as u16);
            rows.push(part.row(seat).clone());
            on_host.push(Some(seat));
            whole.push(rank);
        }
        let reach = tcp::Reach {
            elsewhere: whole.iter().copied().collect(),
            besides: by_rdma,
        };
        let streams = network.streams.streams(request, &rows, &reach)?;
        for rank in away.without(&by_rdma).iter() {
            rows[rank.index()] = rows[rank.index()].read_only();
        }
        let away = Away {
            me: request.me,
            streams,
            verbs,
            rows,
            whole,
            on_host,
        };
        Ok(HybridSegment {
            host: part,
            away: Some(away),
            rdma,
        })
    }

    /// Throws away what others have handed over or push for a segment that will
    /// not be made here. A segment that is dropped does it by itself.
    pub fn forget(&self, key: SegmentKey) {
        self.host.forget(key);
        if let Some(network) = &self.network {
            network.streams.forget(key);
            if let Some(rdma) = &network.rdma {
                rdma.core().forget(key);
            }
        }
    }

    /// Says that a member that is not connected will not come: until
    /// [`drop_peer`](Self::drop_peer), no segments wait for it, and their control
    /// segment reports it, on this host with this reason. Does nothing to one that is
    /// connected.
    pub fn give_up(&self, id: u128, reason: &str) {
        match &self.network {
            Some(network) if network.has(id) => network.streams.give_up(id),
            _ => self.host.give_up(id, reason),
        }
    }

    /// Whether a member is known to have closed its station, by its address: that of a
    /// member of this host. One look at the domain's directory.
    pub fn has_closed(&self, address: &[u8]) -> bool {
        let member = Address::read(address).filter(|it| it.host == self.here.host);
        member.is_some_and(|it| self.host.has_closed(&it.on_host))
    }

    /// Closes the connection to a peer, wherever it is, which is told that it is on
    /// purpose, and forgets it: it may come back. What it had said is thrown away.
    /// Segments keep its rows as they are, and report it no more.
    pub fn drop_peer(&self, id: u128) {
        self.host.drop_peer(id);
        if let Some(network) = &self.network {
            network.drop_peer(id);
        }
    }

    /// Tells the peers that it closes, and ends it: whoever waits in a call of it
    /// gives up. Segments to members elsewhere stand still then; the others work on,
    /// but are told of no failures. Once is enough; a station that is dropped does it
    /// by itself.
    pub fn close(&self) {
        if let Some(network) = &self.network {
            network.close();
        }
        self.host.close();
    }

    /// How what is pushed to a peer goes; `None` if it is not connected, or lost.
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

    /// Whether all that was pushed by RDMA has landed. For tests: it takes locks.
    pub fn is_still(&self) -> bool {
        let rdma = self.network.as_ref().and_then(|it| it.rdma.as_ref());
        rdma.is_none_or(|rdma| rdma.is_still())
    }

    /// How far the stream of a peer has come; `None` if it is not elsewhere.
    pub fn stream_state(&self, id: u128) -> Option<StreamState> {
        self.network.as_ref()?.streams.link(id)
    }

    /// For tests: makes other stations of this process believe that the process
    /// of this one has ended. Does nothing to other processes.
    pub fn pretend_process_ended(&self) {
        self.host.pretend_process_ended();
    }
}

/// The part of a segment that is on my host, with ranks of its own.
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
