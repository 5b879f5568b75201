//! A participant's row on its host: connections to its peers, one bed to sleep
//! in, and segments that come and go while it stays.
//!
//! ```text
//!   station A                                             station B
//!   +-----------------------+    one connection a pair    +--------------+
//!   | background thread     |<=== hello, messages, rows =>| ...          |
//!   | bed: sleep word, bells|<--- mapped doorbell rows ------>| bed          |
//!   |                       |                             |              |
//!   | segment (1,0) control |<--- mapped rows ----------->| segment (1,0)|
//!   | segment (1,1)         |<--- mapped rows ----------->| segment (1,1)|
//!   +-----------------------+                             +--------------+
//! ```
//!
//! - `packet`, `address`: what stations say, and where they listen.
//! - `state`, `shared`: what a station knows, and who shares it.
//! - `io_thread`, `dialogue`, `reception`: the background thread, what it reads and
//!   writes, and what a hello makes; `calling`: calling others.
//! - `exchange`, `segment`: making segments; their data path. `prefault`: their memory.
//! - `bed`: sleeping and waking.

mod address;
mod connecting;
mod packet_io;
mod sleep_state;

mod hello;
mod io_thread;
mod packet;
mod row_exchange;
mod row_prefault;
mod segment;
mod shared;
mod state;

use core::sync::atomic::AtomicU64;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use self::address::Address;
use self::io_thread::IoThread;
use self::packet::{PART_LEN_MAX, Packet};
use self::shared::Shared;
use crate::eventfd::signal_eventfd;
use crate::fabric::{FailureCause, WakeReason};
pub use crate::segment::{SegmentKey, SegmentRequest};
use crate::shm::domain::Domain;
use crate::shm::doorbell::{DoorbellChoice, has_futex_waitv};
use crate::shm::error::SetupError;
use crate::station_error::StationError;
use crate::station_event::{EventQueue, MESSAGE_LEN_MAX, QUEUE_LEN_MAX, StationEvent};

pub(super) use self::address::sweep_sockets;
pub use self::segment::ShmSegment;

/// How to open a [`Station`].
#[derive(Debug, Clone)]
pub struct HostOptions {
    /// The domain.
    pub domain: u32,
    /// This participant: drawn at random, never used again.
    pub id: u128,
    /// Where the domain is recorded, as for [`DomainRegistry::open`](super::DomainRegistry::open).
    pub directory: Option<PathBuf>,
    /// How it sleeps. `Auto` and `Futex` fall back to events while it has more
    /// than 127 peers.
    pub doorbell: DoorbellChoice,
    /// Rows have all their memory when a segment opens: no page of them is missing when it
    /// is used first. Opening takes longer by that, but not beyond its deadline: what is not
    /// there by then comes soon after. Needs Linux 5.14.
    pub prefault: bool,
}

impl HostOptions {
    /// The defaults for a participant of a domain.
    pub fn new(domain: u32, id: u128) -> Self {
        Self {
            domain,
            id,
            directory: None,
            doorbell: DoorbellChoice::Auto,
            prefault: false,
        }
    }
}

/// A participant's row on its host; outlives views. It has up to 255 peers,
/// one background thread, and a socket in the domain's directory until it is
/// [closed](Self::close) or dropped.
///
/// Any thread may call it. A peer that is lost stays known, with the cause,
/// until [`drop_peer`](Self::drop_peer).
#[derive(Debug)]
pub struct Station {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
    /// A child of a fork has this but not the thread.
    process: u32,
}

impl Station {
    /// Opens it: from here on peers can connect. Waits up to 5 s for the
    /// domain's lock.
    pub fn open(options: &HostOptions) -> Result<Self, SetupError> {
        let domain = Domain::open(options.domain, options.directory.as_deref())?;
        let futexes = match (options.doorbell, has_futex_waitv()) {
            (DoorbellChoice::Event, _) => false,
            (DoorbellChoice::Futex, false) => return Err(SetupError::NoFutexWaitv),
            (_, there) => there,
        };
        let (shared, listener) = Shared::open(Arc::new(domain), options, futexes)?;
        let station = Self {
            shared: Arc::clone(&shared),
            thread: Mutex::new(None),
            process: std::process::id(),
        };
        let io_thread = IoThread::new(Arc::clone(&shared), listener);
        let thread = thread::Builder::new()
            .name("spindle-station".into())
            .spawn(move || io_thread.run())
            .map_err(SetupError::system("starting the thread of a station"))
            .inspect_err(|_| shared.domain.remove(&shared.address.file()))?;
        *station.thread() = Some(thread);
        Ok(station)
    }

    /// Where others of the same domain and directory reach it.
    pub fn address(&self) -> Vec<u8> {
        self.shared.address.write()
    }

    /// Its participant.
    pub fn id(&self) -> u128 {
        self.shared.id()
    }

    /// Connects to the station at an address, unless the two are connected, and
    /// gives its id. Blocks until it has answered, at most until `deadline`. One
    /// that answers too late takes this station for lost.
    pub fn connect(&self, address: &[u8], deadline: Instant) -> Result<u128, StationError> {
        let target = Address::read(address)
            .ok_or_else(|| StationError::Address(String::from_utf8_lossy(address).into_owned()))?;
        connecting::connect(&self.shared, &target, deadline)
    }

    /// Sends a message of at most [`MESSAGE_LEN_MAX`] bytes to a peer that is
    /// connected. Does not wait until it is taken.
    pub fn send(&self, to: u128, bytes: &[u8]) -> Result<(), StationError> {
        if bytes.len() > MESSAGE_LEN_MAX {
            let (len, max) = (bytes.len(), MESSAGE_LEN_MAX);
            return Err(StationError::TooLong { len, max });
        }
        let mut state = self.shared.state();
        let Some(link) = state.link_of(to) else {
            let cause = state.fate_of(to).map(ToString::to_string);
            let reason = cause.unwrap_or_else(|| "it is not connected".into());
            return Err(StationError::Unreachable { id: to, reason });
        };
        if link.is_full() || link.out_len + bytes.len() > QUEUE_LEN_MAX {
            let waiting = link.out_len;
            return Err(StationError::Full { id: to, waiting });
        }
        let mut rest = bytes;
        loop {
            let (bytes, after) = rest.split_at(rest.len().min(PART_LEN_MAX));
            let last = after.is_empty();
            link.put(Packet::Part { last, bytes }.write(), Vec::new());
            if last {
                break;
            }
            rest = after;
        }
        drop(state);
        self.shared.kick();
        Ok(())
    }

    /// What happened next; `None` if nothing does before `timeout` is over, or
    /// somebody has said [`interrupt`](Self::interrupt) since the last call. Who sleeps in a segment's [`park`](crate::Park::park) is woken by events too.
    pub fn next_event(&self, timeout: Duration) -> Option<StationEvent> {
        self.shared.news().next(timeout)
    }

    /// Has [`next_event`](Self::next_event) return without an event, now or when it is
    /// called next: there is something else to do. Any thread, at once but for a short lock.
    pub fn interrupt(&self) {
        self.shared.news().interrupt();
    }

    /// [`segments`](Self::segments) for one.
    pub fn segment(
        &self,
        request: &SegmentRequest,
        deadline: Instant,
    ) -> Result<ShmSegment, StationError> {
        let made = self.segments(core::slice::from_ref(request), deadline)?;
        let [segment] = <[_; 1]>::try_from(made).expect("one for one");
        Ok(segment)
    }

    /// Makes segments, in this order, in one exchange with their members: blocks
    /// until each has handed over its rows, is lost, or `deadline` is over. Rows
    /// of members of whom there is none by then are zeros for ever, and each
    /// control segment among these reports such a member, whichever row it is.
    ///
    /// An error leaves none of them, here. The others wait for this member then.
    pub fn segments(
        &self,
        requests: &[SegmentRequest],
        deadline: Instant,
    ) -> Result<Vec<ShmSegment>, StationError> {
        row_exchange::segments(&self.shared, requests, deadline)
    }

    /// Throws away what others have handed over for a segment that will not be
    /// made here. A segment that is dropped does it by itself.
    pub fn forget(&self, key: SegmentKey) {
        self.shared.forget(key);
    }

    /// Says that a member that is not connected will not come: until
    /// [`drop_peer`](Self::drop_peer), no segments wait for it, and their control
    /// segment reports it with this reason. Does nothing to one that is connected.
    pub fn give_up(&self, id: u128, reason: &str) {
        let cause = FailureCause::Unreachable(reason.to_owned());
        self.shared.state().absent.insert(id, cause);
        self.shared.notify();
    }

    /// Whether nobody can be at an address any more: its station has closed, and taken its
    /// socket from the directory. The socket of who was killed stays for a while. One look
    /// at the directory.
    pub fn has_closed(&self, address: &[u8]) -> bool {
        let target = Address::read(address);
        target.is_some_and(|it| self.shared.domain.lacks(&it.file()))
    }

    /// Closes the connection to a peer and forgets it: it does not wake this
    /// participant any more, and may come back. What it had said is thrown away.
    /// Segments stay as they are; they report it no more.
    pub fn drop_peer(&self, id: u128) {
        self.shared.state().drop_peer(id, &self.shared.sleep);
        self.shared.kick();
    }

    /// Tells the peers that it closes, and ends it: whoever waits in a call of it
    /// gives up with [`StationError::Closed`]. Segments work on, but are told of
    /// no failures. Once is enough; a station that is dropped does it by itself.
    pub fn close(&self) {
        if self.process != std::process::id() {
            return;
        }
        let Some(thread) = self.thread().take() else {
            return;
        };
        self.shared.domain.remove(&self.shared.address.file());
        self.shared.state().stopped = true;
        self.shared.news().end();
        self.shared.kick();
        self.shared.notify();
        // It has nothing to say if it panicked.
        let _ = thread.join();
    }

    fn thread(&self) -> MutexGuard<'_, Option<JoinHandle<()>>> {
        self.thread.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Where other parts of a station tell what happens to them.
    /// Whether there is a peer of this id that lives.
    pub(crate) fn has(&self, id: u128) -> bool {
        self.shared.state().link_of(id).is_some()
    }

    pub(crate) fn news(&self) -> &Arc<EventQueue> {
        self.shared.news()
    }

    /// What tells its host from others, and the station's row there: see [`host_id`](crate::shm::host_id).
    pub(crate) fn host_id(&self) -> Result<u128, SetupError> {
        self.shared.domain.host_id()
    }

    /// For those who receive on behalf of this participant by other means: wakes
    /// its sleeper, if it wants to know, and counts that before.
    pub(crate) fn waker(&self) -> impl Fn(WakeReason, &AtomicU64) + Send + Sync + use<> {
        let shared = Arc::clone(&self.shared);
        move |reason, wakes| shared.sleep.wake_for_remote(reason, wakes)
    }

    /// For tests: makes other stations of this process believe that the process
    /// of this one has ended. Does nothing to other processes.
    pub fn pretend_process_ended(&self) {
        // An event descriptor at 0 takes a 1.
        let _ = signal_eventfd(&*self.shared.last_sign);
    }
}

impl Drop for Station {
    fn drop(&mut self) {
        self.close();
    }
}
