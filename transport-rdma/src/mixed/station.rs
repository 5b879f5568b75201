//! A station on a host, and streams from it to other hosts.

use std::net::TcpStream;
use std::time::Instant;

use super::segment::MixedSegment;
use crate::fabric::Fabric;
use crate::mem::Region;
use crate::peers::{PeerSet, Rank};
use crate::segment::{SegmentKey, SegmentRequest};
use crate::shm::{self, JoinError, ShmSegment};
use crate::tcp::{self, LinkState};

/// Why an operation of a [`Station`] failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MixedError {
    /// The station on the host could not be opened.
    #[error(transparent)]
    Join(#[from] JoinError),
    /// Something of the host's part failed.
    #[error(transparent)]
    Host(#[from] shm::StationError),
    /// Something of the part that goes by streams failed.
    #[error(transparent)]
    Streams(#[from] tcp::StationError),
}

/// A participant's place on its host and in a network: peers that are connected
/// by streams are reached by these, all others are members of the host.
#[derive(Debug)]
pub struct Station {
    /// Ends first: its thread rings the bell of `host`.
    streams: tcp::Core,
    host: shm::Station,
}

impl Station {
    /// Opens it. Waits up to 5 s for the domain's lock.
    pub fn open(
        host: &shm::StationOptions,
        streams: &tcp::StationOptions,
    ) -> Result<Self, MixedError> {
        let host = shm::Station::open(host)?;
        let streams = tcp::Core::open(host.id(), streams, Box::new(host.waker()))?;
        Ok(Self { streams, host })
    }

    /// The part on its host: for connecting and for messages there.
    pub fn host(&self) -> &shm::Station {
        &self.host
    }

    /// Its participant.
    pub fn id(&self) -> u128 {
        self.host.id()
    }

    /// A peer elsewhere, as in [`tcp::Station::connect`].
    pub fn connect(
        &self,
        peer: u128,
        outgoing: TcpStream,
        incoming: TcpStream,
    ) -> Result<(), MixedError> {
        Ok(self.streams.connect(peer, outgoing, incoming)?)
    }

    /// Makes segments, in this order, all or none: blocks for the host's members as
    /// [`shm::Station::segments`] does, and for nobody else.
    pub fn segments(
        &self,
        requests: &[SegmentRequest],
        deadline: Instant,
    ) -> Result<Vec<MixedSegment>, MixedError> {
        for request in requests {
            if let Some(problem) = tcp::problem(request, self.id()) {
                return Err(tcp::StationError::segment(request.key, problem).into());
            }
        }
        let away = requests.iter().map(|request| self.away(request));
        let away: Vec<PeerSet> = away.collect();
        let parts = requests.iter().zip(&away);
        let parts: Vec<_> = parts.map(|(whole, away)| on_host(whole, away)).collect();
        let made = self.host.segments(&parts, deadline)?;
        let whole = requests.iter().zip(&away).zip(made);
        let segments = whole.map(|((request, away), part)| self.join(request, away, part));
        let segments = segments.collect::<Result<_, _>>()?;
        self.streams.opened();
        Ok(segments)
    }

    /// Those who are reached by streams.
    fn away(&self, request: &SegmentRequest) -> PeerSet {
        let peers = request.peers();
        let away = peers.filter(|&(_, id)| self.streams.has(id));
        away.map(|(rank, _)| rank).collect()
    }

    fn join(
        &self,
        request: &SegmentRequest,
        away: &PeerSet,
        part: ShmSegment,
    ) -> Result<MixedSegment, MixedError> {
        let (mut rows, mut on_host, mut whole) = (Vec::new(), Vec::new(), Vec::new());
        for (rank, &len) in (0..).map(Rank).zip(&request.row_lens) {
            if away.contains(rank) {
                rows.push(Region::heap(len));
                on_host.push(None);
                continue;
            }
            let seat = Rank(whole.len() as u16);
            rows.push(part.row(seat).clone());
            on_host.push(Some(seat));
            whole.push(rank);
        }
        let elsewhere = whole.iter().copied().collect();
        let streams = self.streams.streams(request, &rows, &elsewhere)?;
        for rank in away.iter() {
            rows[rank.index()] = rows[rank.index()].read_only();
        }
        Ok(MixedSegment {
            me: request.me,
            rows,
            streams,
            host: part,
            whole,
            on_host,
        })
    }

    /// Throws away what others have handed over or push for a segment that will
    /// not be made here.
    pub fn forget(&self, key: SegmentKey) {
        self.host.forget(key);
        self.streams.forget(key);
    }

    /// Ends the connection to a peer, wherever it is, and forgets it.
    pub fn drop_peer(&self, id: u128) {
        self.host.drop_peer(id);
        self.streams.drop_peer(id);
    }

    /// How far the streams of a peer have come; `None` if it is on my host.
    pub fn link(&self, id: u128) -> Option<LinkState> {
        self.streams.link(id)
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
