//! A participant's place on its host: connections to its peers, one sleep state, and segments
//! that are opened and closed while the station stays.
//!
//! ```text
//!   station A                                               station B
//!   +-------------------------+   one connection a pair    +--------------+
//!   | I/O thread              |<=== hello, messages, rows =>| ...          |
//!   | sleep state: sleep word,|<--- mapped doorbell rows -->| sleep state  |
//!   |   doorbells             |                             |              |
//!   | segment (1,0) control   |<--- mapped rows ----------->| segment (1,0)|
//!   | segment (1,1)           |<--- mapped rows ----------->| segment (1,1)|
//!   +-------------------------+                             +--------------+
//! ```
//!
//! - `packet`, `address`: the protocol, and where a station listens.
//! - `state`, `shared`: a station's state, and what its threads share.
//! - `io_thread`, `packet_io`, `hello`: the background thread, its reading and writing, and
//!   the start of a connection; `connecting`: calling a peer.
//! - `row_exchange`, `segment`: making segments, and their data path; `row_prefault`: their
//!   memory.
//! - `sleep_state`: sleeping and waking; `doorbell_row`: the memory for it; `heard_peers`: by
//!   which peers several are woken at once; `news`: where peers have something new.

mod address;
mod connecting;
mod doorbell_row;
mod heard_peers;
mod packet_io;
mod sleep_state;

mod hello;
mod io_thread;
mod looks;
mod news;
mod options;
mod packet;
mod row_exchange;
mod row_prefault;
mod segment;
mod shared;
mod state;

use core::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use self::address::Address;
use self::io_thread::IoThread;
use self::packet::{PART_LEN_MAX, Packet};
use self::shared::Shared;
use crate::fabric::news::NewsBuckets;
use crate::fabric::{FailureCause, WakeReason};
use crate::fork::OwnerProcess;
use crate::library_thread::LibraryThread;
use crate::shm::domain::Domain;
use crate::shm::doorbell::{DoorbellChoice, has_futex_waitv};
use crate::shm::error::SetupError;
use crate::sleep::eventfd::signal_eventfd;
use crate::station::error::StationError;
use crate::station::event::{EventQueue, MESSAGE_LEN_MAX, QUEUE_LEN_MAX, StationEvent};
use crate::station::event_slots::ArrivingStreams;
pub use crate::station::segment::{SegmentKey, SegmentRequest};
use crate::station::traffic::StationTraffic;

pub use self::options::HostOptions;
pub use self::segment::ShmSegment;

/// A participant's place on its host; it outlives views. It has up to 255 peers and 16 guests, one
/// I/O thread, and a socket in the domain's directory until it is [closed](Self::close) or
/// dropped.
///
/// Any thread may call it. A peer that is lost stays known, with the cause, until
/// [`drop_peer`](Self::drop_peer).
#[derive(Debug)]
pub struct Station {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
    /// A child of a fork has this value, but not the thread.
    owner: OwnerProcess,
}

impl Station {
    /// Opens the station: from now on peers can connect. Waits up to 5 s for the domain's
    /// lock.
    pub fn open(options: &HostOptions) -> Result<Self, SetupError> {
        let domain = Domain::open(options.domain, options.directory.as_deref())?;
        let futexes = match (options.doorbell, has_futex_waitv()) {
            (DoorbellChoice::Event, _) => false,
            (DoorbellChoice::Futex, false) => return Err(SetupError::NoFutexWaitv),
            (_, there) => there,
        };
        let (shared, listener) = Shared::open(domain, options, futexes)?;
        let station = Self {
            shared: Arc::clone(&shared),
            thread: Mutex::new(None),
            owner: OwnerProcess::this(),
        };
        let io_thread = IoThread::new(Arc::clone(&shared), listener);
        let thread = LibraryThread::named("spindle-station")
            .spawn_with(&options.io, move || io_thread.run())
            .map_err(SetupError::system("starting the thread of a station"))
            .inspect_err(|_| shared.domain.files().remove(&shared.address.file()))?;
        *station.thread() = Some(thread);
        Ok(station)
    }

    /// Its address for stations of the same domain and directory.
    pub fn address(&self) -> Vec<u8> {
        self.shared.address.write()
    }

    /// What it has sent.
    pub fn traffic(&self) -> StationTraffic {
        self.shared.state().sent
    }

    /// The id of its participant.
    pub fn id(&self) -> u128 {
        self.shared.id()
    }

    /// Connects to the station at an address, unless the two are connected, and returns its
    /// id. Blocks until it answers, at most until `deadline`. A station that answers too late
    /// takes this one for lost.
    pub fn connect(&self, address: &[u8], deadline: Instant) -> Result<u128, StationError> {
        let target = Address::read(address)
            .ok_or_else(|| StationError::Address(String::from_utf8_lossy(address).into_owned()))?;
        connecting::connect(&self.shared, &target, deadline)
    }

    /// Starts to connect to the station at an address, for a later [`connect`](Self::connect),
    /// which tells how it went: so several stations answer at the same time. Does not block.
    pub fn begin_connecting(&self, address: &[u8]) {
        if let Some(target) = Address::read(address) {
            connecting::begin(&self.shared, &target);
        }
    }

    /// Queues a message of at most [`MESSAGE_LEN_MAX`] bytes for a connected peer. Does not
    /// wait until it is sent.
    pub fn send(&self, to: u128, bytes: &[u8]) -> Result<(), StationError> {
        if bytes.len() > MESSAGE_LEN_MAX {
            let (len, max) = (bytes.len(), MESSAGE_LEN_MAX);
            return Err(StationError::TooLong { len, max });
        }
        let mut state = self.shared.state();
        let Some(connection) = state.connection_to(to) else {
            let cause = state.fate_of(to).map(ToString::to_string);
            let reason = cause.unwrap_or_else(|| "it is not connected".into());
            return Err(StationError::Unreachable { id: to, reason });
        };
        if connection.is_full() || connection.out_len + bytes.len() > QUEUE_LEN_MAX {
            let waiting = connection.out_len;
            return Err(StationError::Full { id: to, waiting });
        }
        let mut rest = bytes;
        loop {
            let (bytes, after) = rest.split_at(rest.len().min(PART_LEN_MAX));
            let last = after.is_empty();
            connection.put(Packet::Part { last, bytes }.write(), Vec::new());
            if last {
                break;
            }
            rest = after;
        }
        drop(state);
        self.shared.kick();
        Ok(())
    }

    /// The next event; `None` if there is none before `timeout` is over, or
    /// [`interrupt`](Self::interrupt) was called since the last call. A thread in a
    /// segment's [`park`](crate::Park::park) is woken by events, too.
    pub fn next_event(&self, timeout: Duration) -> Option<StationEvent> {
        self.shared.events().next(timeout)
    }

    /// Makes [`next_event`](Self::next_event) return without an event, now or at its next
    /// call. Any thread; takes a short lock.
    pub fn interrupt(&self) {
        self.shared.events().interrupt();
    }

    /// [`segments`](Self::segments) for one segment.
    pub fn segment(
        &self,
        request: &SegmentRequest,
        deadline: Instant,
    ) -> Result<ShmSegment, StationError> {
        let made = self.segments(core::slice::from_ref(request), deadline)?;
        let [segment] = <[_; 1]>::try_from(made).expect("one for one");
        Ok(segment)
    }

    /// Makes segments, in this order, in one exchange with their members. Blocks until each
    /// member has handed over its rows or is lost, or `deadline` is over. Rows of members
    /// that are missing by then are zeros for ever, and each control segment of the call
    /// that has such a member reports it, whichever of its rows is missing.
    ///
    /// After an error none of them is open here; the other members wait for this one.
    pub fn segments(
        &self,
        requests: &[SegmentRequest],
        deadline: Instant,
    ) -> Result<Vec<ShmSegment>, StationError> {
        self.segments_watching(requests, deadline, &mut || {})
    }

    /// [`segments`](Self::segments), which calls `watch` every 10 ms while it waits: it may
    /// [give up](Self::give_up) members.
    pub fn segments_watching(
        &self,
        requests: &[SegmentRequest],
        deadline: Instant,
        watch: &mut dyn FnMut(),
    ) -> Result<Vec<ShmSegment>, StationError> {
        row_exchange::segments(&self.shared, requests, deadline, watch)
    }

    /// Discards what peers have handed over for a segment that will not be made here. A
    /// dropped segment does this by itself.
    pub fn forget(&self, key: SegmentKey) {
        self.shared.forget(key);
    }

    /// Ends waiting for segments of epochs before this one, now and later: making them fails.
    /// Segments that are made stay. Any thread; takes a short lock.
    pub fn end_exchanges_before(&self, epoch: u64) {
        self.shared.state().end_exchanges_before(epoch);
        self.shared.notify();
    }

    /// Declares that a member that is not connected will not come. Until
    /// [`drop_peer`](Self::drop_peer), no segment waits for it, and control segments report
    /// it with this reason. No effect on a connected peer.
    pub fn give_up(&self, id: u128, reason: &str) {
        let cause = FailureCause::Unreachable(reason.to_owned());
        self.shared.state().absent.insert(id, cause);
        self.shared.notify();
    }

    /// Whether the station of this address has closed: it has removed its socket from the
    /// directory. (The socket of a killed process stays for a while.) One look at the
    /// directory.
    pub fn has_closed(&self, address: &[u8]) -> bool {
        let target = Address::read(address);
        target.is_some_and(|it| self.shared.domain.lacks(&it.file()))
    }

    /// Closes the connection to a peer and forgets the peer: it does not wake this
    /// participant any more, and may connect again. Its messages that were not taken are
    /// discarded. Segments stay as they are, but do not report it any more.
    pub fn drop_peer(&self, id: u128) {
        self.shared.state().drop_peer(id, &self.shared.sleep);
        self.shared.kick();
    }

    /// Tells the peers that the station closes, and closes it. Threads that block in a call
    /// return [`StationError::Closed`]. Segments keep working, but report no failures any
    /// more. Idempotent; dropping a station closes it.
    pub fn close(&self) {
        if self.owner.is_inherited() {
            return;
        }
        let Some(thread) = self.thread().take() else {
            return;
        };
        self.shared
            .domain
            .files()
            .remove(&self.shared.address.file());
        self.shared.state().stopped = true;
        self.shared.events().end();
        self.shared.kick();
        self.shared.notify();
        // A panic was reported by its hook.
        let _ = thread.join();
    }

    fn thread(&self) -> MutexGuard<'_, Option<JoinHandle<()>>> {
        self.thread.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a peer of this id is connected.
    pub(crate) fn has(&self, id: u128) -> bool {
        self.shared.state().connection_to(id).is_some()
    }

    pub(crate) fn events(&self) -> &Arc<EventQueue> {
        self.shared.events()
    }

    /// Whether memory is allocated when it is mapped: [`HostOptions::prefault`].
    pub fn prefaults(&self) -> bool {
        self.shared.prefaults()
    }

    /// The id of its host: see [`host_id`](crate::shm::host_id).
    pub(crate) fn host_id(&self) -> u128 {
        self.shared.domain.host_id()
    }

    /// For backends that receive on behalf of this participant: wakes its sleeper if it wants
    /// to be woken for the reason, and counts it first.
    pub(crate) fn waker(&self) -> impl Fn(WakeReason, &AtomicU64) + Send + Sync + use<> {
        let shared = Arc::clone(&self.shared);
        move |reason, wakes| shared.sleep.wake_for_remote(reason, wakes)
    }

    /// For backends that receive on behalf of this participant: notes the buckets of segments
    /// into whose copies they have written, before they wake its sleeper.
    pub(crate) fn landing(&self) -> impl Fn(&NewsBuckets) + Send + Sync + use<> {
        let shared = Arc::clone(&self.shared);
        move |buckets| shared.sleep.news.note_landed(buckets)
    }

    /// For backends that receive on behalf of this participant: threads that step read these streams,
    /// and sleep on them. Called once.
    pub(crate) fn add_streams(&self, streams: &Arc<dyn ArrivingStreams>) -> Result<(), SetupError> {
        self.shared.sleep.slots().add_streams(streams)
    }

    /// Told whether there are peers whose pushes arrive on these streams.
    pub(crate) fn stream_user(&self) -> impl Fn(bool) + Send + Sync + use<> {
        let shared = Arc::clone(&self.shared);
        move |is_used| shared.sleep.set_streams(is_used)
    }

    /// For tests: makes other stations of this process believe that the process of this one
    /// has ended. No effect in other processes.
    pub fn pretend_process_ended(&self) {
        // An event descriptor at 0 accepts a 1.
        let _ = signal_eventfd(&*self.shared.local_lifeline);
    }
}

impl Drop for Station {
    fn drop(&mut self) {
        self.close();
    }
}
