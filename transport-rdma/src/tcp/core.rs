//! A participant's streams to its peers.

use core::time::Duration;
use std::io;
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Instant;

use super::incoming::Incoming;
use super::io::IoThread;
use super::outgoing::Outgoing;
use super::shared::{Fault, Lost, Shared, Wake};
use super::streams::{Reach, Streams};
use rustix::net::sockopt;

use crate::fabric::FailureCause;
use crate::mem::Region;
use crate::queue::Full;
use crate::segment::{SegmentKey, SegmentRequest};
use crate::shm::SetupError;
use crate::station_error::StationError;
use crate::station_event::{EventQueue, MESSAGE_LEN_MAX};

/// Longest row: far above any use, far below where lengths overflow.
const ROW_LEN_MAX: usize = 1 << 40;

/// Longest time the kernel takes before it asks a silent peer.
const KEEP_IDLE_MAX: Duration = Duration::from_secs(32_767);

/// How patient a station is with its peers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StreamOptions {
    /// How long a peer may leave sent bytes without an acknowledgement, or a
    /// full stream full, before it has failed (`TCP_USER_TIMEOUT`; whole
    /// milliseconds, at least one). One that is silent is asked after half of it, at
    /// the earliest after a second.
    pub user_timeout: Duration,
    /// How many records (ranges and words, of 32 bytes each here) may wait for
    /// one peer before it has failed.
    pub waiting_max: usize,
}

impl Default for StreamOptions {
    /// Ten seconds, 65536 records.
    fn default() -> Self {
        Self {
            user_timeout: Duration::from_secs(10),
            waiting_max: 1 << 16,
        }
    }
}

/// How far the stream to and from a peer has come. For tests and tools: it
/// takes their locks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StreamState {
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

/// A participant's streams: one connection to each peer, for all segments, and one
/// thread. Who the peers are, and where it sleeps, is the business of others.
#[derive(Debug)]
pub(crate) struct Core {
    options: StreamOptions,
    shared: Arc<Shared>,
    io: IoThread,
}

impl Core {
    /// What happens goes to `news`. The thread that serves the streams calls `wake`.
    /// Whoever finds that a peer is lost, or drops it, calls `lost` before anybody knows.
    pub(crate) fn open(
        id: u128,
        options: &StreamOptions,
        news: Arc<EventQueue>,
        wake: Wake,
        lost: Lost,
    ) -> Result<Self, StationError> {
        let shared = Arc::new(Shared::new(id, news, wake, lost)?);
        let io = IoThread::start(&shared)?;
        Ok(Self {
            options: *options,
            shared,
            io,
        })
    }

    /// A peer: the connection with it, over which they know each other. Nothing has
    /// been read of what follows that. It is a peer here before `last_words` are sent.
    pub(crate) fn connect(
        &self,
        peer: u128,
        stream: &TcpStream,
        last_words: &[u8],
    ) -> Result<(), StationError> {
        let both = || {
            prepare(stream, &self.options)?;
            Ok((stream.try_clone()?, stream.try_clone()?))
        };
        let set_up = SetupError::system::<io::Error>("setting up a stream");
        let (outgoing, incoming) = both().map_err(set_up)?;
        let outgoing = Outgoing::new(outgoing, self.options.waiting_max);
        let incoming = Incoming::new(incoming);
        self.shared.add(peer, outgoing, incoming, last_words)
    }

    /// Sends a message to a peer that is connected. Does not wait until it is taken.
    pub(crate) fn send(&self, to: u128, bytes: &[u8]) -> Result<(), StationError> {
        if bytes.len() > MESSAGE_LEN_MAX {
            let (len, max) = (bytes.len(), MESSAGE_LEN_MAX);
            return Err(StationError::TooLong { len, max });
        }
        let unreachable = |reason: String| Err(StationError::Unreachable { id: to, reason });
        let state = self.shared.state();
        let link = match state.peers.get(&to) {
            None => return unreachable("it is not connected".to_owned()),
            Some(peer) => match &peer.fate {
                Some(cause) => return unreachable(cause.to_string()),
                None => Arc::clone(&peer.link),
            },
        };
        drop(state);
        let sent = link.outgoing.send_message(bytes);
        let full = |full: Full| StationError::Full {
            id: to,
            waiting: full.waiting,
        };
        self.shared.sent(&link, sent.map_err(full)?);
        Ok(())
    }

    /// Waits until each of these is connected, or was and is lost, or `deadline` is
    /// over.
    pub(crate) fn wait_for(&self, peers: &[u128], deadline: Instant) -> Result<(), StationError> {
        self.shared.wait_for(peers, deadline)
    }

    /// Nobody waits for a peer that is not connected.
    pub(crate) fn give_up(&self, peer: u128) {
        self.shared.give_up(peer);
    }

    /// Why a peer is lost, `None` within if it is not; `None` if there is no such peer.
    pub(crate) fn fate_of(&self, peer: u128) -> Option<Option<FailureCause>> {
        Some(self.shared.state().peers.get(&peer)?.fate.clone())
    }

    /// A peer that is reached by other means as well is lost on those.
    pub(crate) fn fail(&self, peer: u128, reason: String) {
        let state = self.shared.state();
        let link = state.peers.get(&peer).map(|peer| Arc::clone(&peer.link));
        drop(state);
        if let Some(link) = link {
            self.shared.fail(&link, &Fault::Elsewhere(reason));
        }
    }

    /// Closes it: the peers are told, and given half a second to hear it. Once is enough.
    pub(crate) fn close(&self) {
        self.io.stop();
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
        reach: &Reach,
    ) -> Result<Streams, StationError> {
        Streams::open(&self.shared, request, rows, reach)
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

    pub(crate) fn link(&self, id: u128) -> Option<StreamState> {
        let link = Arc::clone(&self.shared.state().peers.get(&id)?.link);
        let (waiting, sent) = link.outgoing.progress();
        Some(StreamState {
            sending: !link.outgoing.is_closed(),
            receiving: !link.incoming.is_closed(),
            blocked: link.incoming.is_waiting(),
            waiting,
            sent,
            received: link.incoming.received(),
        })
    }
}

/// The kernel gives up a peer that acknowledges nothing for so long, also where
/// nothing is sent: then it asks, from half of that time on.
fn prepare(stream: &TcpStream, options: &StreamOptions) -> io::Result<()> {
    stream.set_nonblocking(true)?;
    stream.set_nodelay(true)?;
    let patience = options.user_timeout.max(Duration::from_millis(1));
    // The kernel takes a signed number.
    let millis = i32::try_from(patience.as_millis()).unwrap_or(i32::MAX) as u32;
    sockopt::set_tcp_user_timeout(stream, millis)?;
    let second = Duration::from_secs(1);
    sockopt::set_tcp_keepidle(stream, (patience / 2).clamp(second, KEEP_IDLE_MAX))?;
    sockopt::set_tcp_keepintvl(stream, second)?;
    sockopt::set_socket_keepalive(stream, true)?;
    Ok(())
}

/// What is wrong with a request.
pub(crate) fn problem(request: &SegmentRequest, id: u128) -> Option<String> {
    let long = request.row_lens.iter().find(|&&len| len > ROW_LEN_MAX);
    let long = long.map(|len| format!("a row of {len} bytes; at most 2^40 are possible"));
    request.problem(id).or(long)
}
