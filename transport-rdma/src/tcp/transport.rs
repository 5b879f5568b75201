//! A participant's streams to its peers: one connection to each, and one I/O thread.

use core::time::Duration;
use std::io;
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Instant;

use super::call_counters::StreamCalls;
use super::fault::Fault;
use super::incoming::Incoming;
use super::io_thread::IoThread;
use super::outgoing::Outgoing;
use super::secure::SecureChannel;
use super::shared::{PushPath, Shared, StreamHooks, StreamLink};
use super::streams::{StreamReach, Streams};
use rustix::net::sockopt;

use crate::fabric::FailureCause;
use crate::memory::Region;
use crate::push_queue::Full;
use crate::retry;
use crate::shm::error::SetupError;
use crate::station::error::StationError;
use crate::station::event::{EventQueue, MESSAGE_LEN_MAX};
use crate::station::event_slots::ArrivingStreams;
use crate::station::segment::{SegmentKey, SegmentRequest};
use crate::thread_settings::ThreadSettings;

/// Longest row, in bytes: far above any use, far below where lengths overflow.
const ROW_LEN_MAX: usize = 1 << 40;

/// Longest silence after which the kernel may be told to probe a peer.
const KEEP_IDLE_MAX: Duration = Duration::from_secs(32_767);

/// How long a station waits for its peers, and how much for each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StreamOptions {
    /// How long a peer may leave sent bytes unacknowledged, or a full stream full, before
    /// it has failed (`TCP_USER_TIMEOUT`; whole milliseconds, at least one). The kernel
    /// probes a silent peer after half of this time, but not before one second.
    pub user_timeout: Duration,
    /// How many records (ranges and words, 32 bytes of memory each) may wait for one peer
    /// before it has failed.
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

/// Progress of the streams to and from a peer. For tests and tools: reading it takes the
/// locks of both streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StreamState {
    /// Pushes to the peer are sent: it has not failed.
    pub sending: bool,
    /// Pushes of the peer are received.
    pub receiving: bool,
    /// Pushes of the peer wait for a segment to be opened here.
    pub blocked: bool,
    /// Bytes that wait to be sent.
    pub waiting: usize,
    /// Bytes that were sent.
    pub sent: u64,
    /// Bytes of the peer's stream that were received and applied, and whose wake-ups were
    /// handled.
    pub received: u64,
}

/// A connection that can be served, and is not a peer's yet.
#[derive(Debug)]
pub(crate) struct ReadyStream(Arc<StreamLink>);

/// A participant's streams: one connection to each peer, for all segments, and one thread.
/// It neither chooses the peers nor knows how the process sleeps.
#[derive(Debug)]
pub(crate) struct StreamTransport {
    options: StreamOptions,
    shared: Arc<Shared>,
    io: IoThread,
}

impl StreamTransport {
    /// Events go to `events`. The I/O thread has these settings.
    pub(crate) fn open(
        id: u128,
        options: &StreamOptions,
        events: Arc<EventQueue>,
        hooks: StreamHooks,
        thread: &ThreadSettings,
    ) -> Result<Self, StationError> {
        let stalled_max = options.user_timeout;
        let shared = Arc::new(Shared::new(id, events, hooks, stalled_max)?);
        let io = IoThread::start(&shared, thread)?;
        Ok(Self {
            options: *options,
            shared,
            io,
        })
    }

    /// Gets all that it takes to serve a peer over an authenticated connection: from then on,
    /// nothing is lacking for [`connect`](Self::connect).
    pub(crate) fn ready(
        &self,
        peer: u128,
        stream: &TcpStream,
    ) -> Result<ReadyStream, StationError> {
        let clone = || retry::repeat(|| stream.try_clone());
        let both = || {
            retry::repeat(|| prepare(stream, &self.options))?;
            Ok((clone()?, clone()?))
        };
        let set_up = SetupError::system::<io::Error>("setting up a stream");
        let (outgoing, incoming) = both().map_err(set_up)?;
        let (calls, number) = (&self.shared.calls, &self.shared.number);
        let outgoing = Outgoing::new(outgoing, self.options.waiting_max, calls, number);
        let incoming = Incoming::new(incoming, calls);
        self.shared.ready(peer, outgoing, incoming).map(ReadyStream)
    }

    /// Adds a peer, of whose connection nothing beyond the handshake has been read. The peer is
    /// known here before `final_frame` is sent. With a channel, all that follows is encrypted.
    pub(crate) fn connect(
        &self,
        ready: ReadyStream,
        pushes_by: PushPath,
        final_frame: &[u8],
        channel: Option<Box<SecureChannel>>,
    ) -> Result<(), StationError> {
        self.shared.add(ready.0, pushes_by, final_frame, channel)
    }

    /// Its streams, which threads that step may read.
    pub(crate) fn arriving(&self) -> Arc<dyn ArrivingStreams> {
        self.shared.clone()
    }

    /// Whether the connection to a peer is encrypted.
    pub(crate) fn is_encrypted(&self, peer: u128) -> bool {
        let state = self.shared.state();
        state.peers.get(&peer).is_some_and(|peer| peer.encrypted)
    }

    /// Queues a message for a connected peer. Does not wait until it is sent.
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

    /// Waits until each of these peers is connected or lost, or `deadline` is over,
    /// or the segment with this key is not needed any more, which is an error.
    pub(crate) fn wait_for(
        &self,
        peers: &[u128],
        key: SegmentKey,
        deadline: Instant,
    ) -> Result<(), StationError> {
        self.shared.wait_for(peers, key, deadline)
    }

    /// Ends waiting for segments of epochs before this one, now and later.
    pub(crate) fn end_exchanges_before(&self, epoch: u64) {
        self.shared.end_exchanges_before(epoch);
    }

    /// Calls do not wait for this peer any more if it is not connected.
    pub(crate) fn give_up(&self, peer: u128) {
        self.shared.give_up(peer);
    }

    /// `None` if there is no such peer; else why it is lost, or `None` within if it is not.
    pub(crate) fn fate_of(&self, peer: u128) -> Option<Option<FailureCause>> {
        Some(self.shared.state().peers.get(&peer)?.fate.clone())
    }

    /// A peer that is reached by RDMA as well has failed there.
    pub(crate) fn fail(&self, peer: u128, reason: String) {
        let state = self.shared.state();
        let link = state.peers.get(&peer).map(|peer| Arc::clone(&peer.link));
        drop(state);
        if let Some(link) = link {
            self.shared.fail(&link, &Fault::OtherPath(reason));
        }
    }

    /// Closes all streams. Peers are told, and have half a second to read it. Idempotent.
    pub(crate) fn close(&self) {
        self.io.stop();
    }

    /// Whether a peer of this id is known: connected, or lost and not dropped yet.
    pub(crate) fn has(&self, peer: u128) -> bool {
        self.shared.state().peers.contains_key(&peer)
    }

    /// Opens the part of a segment that goes over streams. See [`Streams::open`].
    pub(crate) fn streams(
        &self,
        request: &SegmentRequest,
        rows: &[Region],
        reach: &StreamReach,
    ) -> Result<Streams, StationError> {
        Streams::open(&self.shared, request, rows, reach)
    }

    /// New segments are open: pushes that waited for them are applied.
    pub(crate) fn opened(&self) {
        self.shared.kick();
    }

    pub(crate) fn forget(&self, key: SegmentKey) {
        self.shared.state().close_segment(key);
        self.shared.kick();
    }

    pub(crate) fn drop_peer(&self, id: u128) {
        self.shared.drop_peer(id);
    }

    /// System calls of all streams so far.
    pub(crate) fn calls(&self) -> StreamCalls {
        self.shared.calls.read()
    }

    pub(crate) fn link(&self, id: u128) -> Option<StreamState> {
        let link = Arc::clone(&self.shared.state().peers.get(&id)?.link);
        let (waiting, sent) = link.outgoing.progress();
        self.shared.sent(&link, link.outgoing.send());
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

/// The kernel gives up a peer that acknowledges nothing for the user timeout, also while
/// nothing is sent: it sends probes from half of that time on.
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

/// What is wrong with a request, if anything.
pub(crate) fn problem(request: &SegmentRequest, id: u128) -> Option<String> {
    let long = request.row_lens.iter().find(|&&len| len > ROW_LEN_MAX);
    let long = long.map(|len| format!("a row of {len} bytes; at most 2^40 are possible"));
    request.problem(id).or(long)
}
