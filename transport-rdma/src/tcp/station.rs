//! A participant's streams to its peers, its one bed, and its segments.

use core::time::Duration;
use std::io;
use std::net::TcpStream;
use std::sync::Arc;

use super::incoming::Incoming;
use super::io::IoThread;
use super::outgoing::Outgoing;
use super::segment::TcpSegment;
use super::shared::{Link, Shared, Wake};
use super::sleeper::Sleeper;
use super::streams::Streams;
use crate::mem::Region;
use crate::news::News;
use crate::peers::PeerSet;
use crate::segment::{SegmentKey, SegmentRequest};
use crate::shm::JoinError;
use crate::station_error::StationError;

/// Longest row: far above any use, far below where lengths overflow.
const ROW_LEN_MAX: usize = 1 << 40;

/// How patient a station is with its peers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StationOptions {
    /// How long a peer may leave sent bytes without an acknowledgement, or a
    /// full stream full, before it has failed (`TCP_USER_TIMEOUT`; whole
    /// milliseconds, at least one).
    pub user_timeout: Duration,
    /// How many records (ranges and words, of 32 bytes each here) may wait for
    /// one peer before it has failed.
    pub waiting_max: usize,
}

impl Default for StationOptions {
    /// Ten seconds, 65536 records.
    fn default() -> Self {
        Self {
            user_timeout: Duration::from_secs(10),
            waiting_max: 1 << 16,
        }
    }
}

/// How far the streams to and from a peer have come. For tests and tools: it
/// takes their locks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LinkState {
    /// Pushes to the peer are sent: it has not failed.
    pub sending: bool,
    /// What the peer pushes is received.
    pub receiving: bool,
    /// What the peer pushes has to wait for a segment to be opened here.
    pub blocked: bool,
    /// Bytes of stream that wait to be sent.
    pub waiting: usize,
    /// Bytes of stream that were sent.
    pub sent: u64,
    /// Bytes of the peer's stream that were received and applied, and their
    /// rings answered.
    pub received: u64,
}

/// What is the same for those who sleep by streams alone, and for others.
#[derive(Debug)]
pub(crate) struct Core {
    options: StationOptions,
    shared: Arc<Shared>,
    io: IoThread,
}

impl Core {
    /// The thread that serves the streams calls `wake`.
    pub(crate) fn open(
        id: u128,
        options: &StationOptions,
        news: Arc<News>,
        wake: Wake,
    ) -> Result<Self, StationError> {
        let shared = Arc::new(Shared::new(id, options.user_timeout, news, wake)?);
        let io = IoThread::start(&shared)?;
        Ok(Self {
            options: *options,
            shared,
            io,
        })
    }

    pub(crate) fn id(&self) -> u128 {
        self.shared.id
    }

    pub(crate) fn connect(
        &self,
        peer: u128,
        outgoing: TcpStream,
        incoming: TcpStream,
    ) -> Result<(), StationError> {
        if peer == self.id() {
            let reason = "it is this station itself".to_owned();
            return Err(StationError::Refused { id: peer, reason });
        }
        prepare(&outgoing, &incoming, &self.options)
            .map_err(JoinError::system("setting up a stream"))?;
        let outgoing = Outgoing::new(outgoing, self.options.waiting_max);
        self.shared.add(peer, outgoing, Incoming::new(incoming))
    }

    /// Whether there is a peer of this id, or was, before it was dropped.
    pub(crate) fn has(&self, peer: u128) -> bool {
        self.shared.state().peers.contains_key(&peer)
    }

    /// The part of a segment that goes by streams. See [`Streams::open`].
    pub(crate) fn streams(
        &self,
        request: &SegmentRequest,
        rows: &[Region],
        elsewhere: &PeerSet,
    ) -> Result<Streams, StationError> {
        Streams::open(&self.shared, request, rows, elsewhere)
    }

    /// Those who push in segments that are new wait no longer.
    pub(crate) fn opened(&self) {
        self.shared.kick();
    }

    pub(crate) fn forget(&self, key: SegmentKey) {
        self.shared.state().dismiss(key);
        self.shared.kick();
    }

    pub(crate) fn drop_peer(&self, id: u128) {
        self.shared.drop_peer(id);
    }

    pub(crate) fn link(&self, id: u128) -> Option<LinkState> {
        let link = Arc::clone(&self.shared.state().peers.get(&id)?.link);
        let (waiting, sent) = link.outgoing.progress();
        Some(LinkState {
            sending: !link.outgoing.is_closed(),
            receiving: !link.incoming.is_closed(),
            blocked: link.incoming.is_waiting(),
            waiting,
            sent,
            received: link.incoming.received(),
        })
    }
}

impl Drop for Core {
    /// The streams end: what they take at once is sent, the rest is lost.
    fn drop(&mut self) {
        if !self.io.is_mine() {
            return;
        }
        let end = |link: &Link| self.shared.sent(link, link.outgoing.end_batch());
        let links: Vec<_> = self.shared.state().links.values().cloned().collect();
        for link in links {
            end(&link);
            self.shared.drop_peer(link.peer);
        }
    }
}

fn prepare(outgoing: &TcpStream, incoming: &TcpStream, options: &StationOptions) -> io::Result<()> {
    outgoing.set_nonblocking(true)?;
    incoming.set_nonblocking(true)?;
    outgoing.set_nodelay(true)?;
    let millis = options.user_timeout.as_millis().max(1);
    // The kernel takes a signed number.
    let millis = i32::try_from(millis).unwrap_or(i32::MAX) as u32;
    rustix::net::sockopt::set_tcp_user_timeout(outgoing, millis)?;
    Ok(())
}

/// A participant's place in a network: a stream to and a stream from each peer,
/// for all segments, one bed to sleep in, and one thread. Any thread may call it;
/// nothing here blocks.
///
/// A peer that is lost stays known, with the cause, until
/// [`drop_peer`](Self::drop_peer).
#[derive(Debug)]
pub struct Station {
    core: Core,
    sleeper: Arc<Sleeper>,
}

impl Station {
    /// Opens it for a participant, whose id is drawn at random and never used again.
    pub fn open(id: u128, options: &StationOptions) -> Result<Self, StationError> {
        let sleeper = Arc::new(Sleeper::default());
        let woken = Arc::clone(&sleeper);
        let core = Core::open(
            id,
            options,
            Arc::default(),
            Box::new(move |ring, rings| woken.wake(ring, rings)),
        )?;
        Ok(Self { core, sleeper })
    }

    /// Its participant.
    pub fn id(&self) -> u128 {
        self.core.id()
    }

    /// A peer: the stream that I write, and the one that it writes, connected and
    /// authenticated. Who connects to whom, and how they know each other, is
    /// settled before; nothing has been left unread in them.
    pub fn connect(
        &self,
        peer: u128,
        outgoing: TcpStream,
        incoming: TcpStream,
    ) -> Result<(), StationError> {
        self.core.connect(peer, outgoing, incoming)
    }

    /// Opens segments, in this order, all or none. Nobody is asked: members of
    /// whom there is none, or who are lost, have rows of zeros, and each control
    /// segment reports them. Epochs only rise: what is older than the newest one
    /// here and not open is over.
    pub fn segments(&self, requests: &[SegmentRequest]) -> Result<Vec<TcpSegment>, StationError> {
        let segments = requests.iter().map(|request| self.make(request));
        let segments = segments.collect::<Result<_, _>>()?;
        self.core.opened();
        Ok(segments)
    }

    fn make(&self, request: &SegmentRequest) -> Result<TcpSegment, StationError> {
        if let Some(problem) = problem(request, self.id()) {
            return Err(StationError::segment(request.key, problem));
        }
        let lens = request.row_lens.iter();
        let mut rows: Vec<_> = lens.map(|&len| Region::heap(len)).collect();
        let streams = self.core.streams(request, &rows, &PeerSet::EMPTY)?;
        for (rank, _) in request.peers() {
            rows[rank.index()] = rows[rank.index()].read_only();
        }
        Ok(TcpSegment {
            me: request.me,
            rows,
            streams,
            shared: Arc::clone(&self.core.shared),
            sleeper: Arc::clone(&self.sleeper),
        })
    }

    /// Throws away what others push in a segment that will not be opened here:
    /// until then, nothing that follows it is read.
    pub fn forget(&self, key: SegmentKey) {
        self.core.forget(key);
    }

    /// Ends the streams to and from a peer and forgets it. Segments keep its rows
    /// as they are, and report it no more.
    pub fn drop_peer(&self, id: u128) {
        self.core.drop_peer(id);
    }

    /// How far the streams of a peer have come; `None` if there is no such peer.
    pub fn link(&self, id: u128) -> Option<LinkState> {
        self.core.link(id)
    }
}

/// What is wrong with a request.
pub(crate) fn problem(request: &SegmentRequest, id: u128) -> Option<String> {
    let long = request.row_lens.iter().find(|&&len| len > ROW_LEN_MAX);
    let long = long.map(|len| format!("a row of {len} bytes; at most 2^40 are possible"));
    request.problem(id).or(long)
}
