//! State shared by a station's stream transport, its segments and its I/O thread: peers,
//! links, open segments.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, ErrorKind, Write};
use std::net::TcpStream;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::{Duration, Instant};

use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::io::Errno;

use super::call_counters::StreamCallCounters;
use super::decoder::RowTarget;
use super::due_links::DueLinks;
use super::fault::Fault;
use super::incoming::{Incoming, Received};
use super::outgoing::{Outgoing, Urgency};
use super::secure::SecureChannel;
use super::send_queue::BatchEnd;
use super::source::Source;
use super::stalled::StalledLinks;
use crate::fabric::counters::SleepCounters;
use crate::fabric::failures::Control;
use crate::fabric::news::NewsBuckets;
use crate::fabric::peers::PEERS_MAX;
use crate::fabric::{FailureCause, WakeReason};
use crate::memory::Region;
use crate::push_queue::Full;
use crate::retry::{self, Classified};
use crate::shm::error::SetupError;
use crate::sleep::eventfd::{create_eventfd, signal_eventfd};
use crate::station::error::StationError;
use crate::station::event::{EventQueue, StationEvent};
use crate::station::event_slots::{ArrivingStreams, OnWake, rewatch};
use crate::station::segment::SegmentKey;

/// How long the connection to a dropped peer is still served.
const LEAVE_WITHIN: Duration = Duration::from_secs(2);

/// The same when the station closes, which blocks its caller.
const STOP_WITHIN: Duration = Duration::from_millis(500);

/// The connection with one peer: a stream in each direction.
#[derive(Debug)]
pub(super) struct StreamLink {
    pub(super) number: u64,
    pub(super) peer: u128,
    pub(super) outgoing: Outgoing,
    pub(super) incoming: Incoming,
    told: AtomicBool,
    /// The peer was dropped. Changed with the state locked.
    leaving: AtomicBool,
}

/// Wakes the sleeper of this process if it wants to be woken for this reason, and counts it
/// first.
pub(crate) type WakeHook = Box<dyn Fn(WakeReason, &AtomicU64) + Send + Sync>;

/// What streams call at their station.
pub(crate) struct StreamHooks {
    pub(crate) wake: WakeHook,
    /// Bytes of peers were written into copies of rows of segments with these buckets; called
    /// before a wake-up for them.
    pub(crate) landed: Box<dyn Fn(&NewsBuckets) + Send + Sync>,
    /// A peer is lost or dropped: its other paths are closed.
    pub(crate) lost: Box<dyn Fn(u128) + Send + Sync>,
    /// Pushes to some peer go by streams, or those to none do any more. Called with the state
    /// locked.
    pub(crate) used: Box<dyn Fn(bool) + Send + Sync>,
}

/// An open segment, as the receiving side needs it.
#[derive(Debug)]
pub(super) struct IncomingSegment {
    /// All three by rank.
    pub(super) members: Vec<u128>,
    pub(super) copies: Vec<Region>,
    pub(super) fenced: Vec<AtomicBool>,
}

#[derive(Debug)]
pub(super) struct Peer {
    pub(super) link: Arc<StreamLink>,
    /// Why it is lost, if it is.
    pub(super) fate: Option<FailureCause>,
    /// How pushes to it go.
    pushes_by: PushPath,
    /// Whether its connection is encrypted.
    pub(super) encrypted: bool,
}

/// How pushes to a peer go. Messages go over streams in any case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PushPath {
    Stream,
    Rdma,
}

/// Most bytes that are read from one stream before the next one is served.
const BUFFER_LEN: usize = 1 << 18;

/// Most streams that are found readable at a time.
const EVENTS_MAX: usize = 64;

#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) peers: BTreeMap<u128, Peer>,
    /// Peers that are not connected and will not be.
    absent: BTreeSet<u128>,
    /// The links of the peers, by number.
    pub(super) links: BTreeMap<u64, Arc<StreamLink>>,
    next_link: u64,
    pub(super) open: BTreeMap<SegmentKey, Arc<IncomingSegment>>,
    /// The newest epoch in which a segment was opened. An older segment that is not open
    /// will not be opened any more.
    epoch: u64,
    /// Segments of this epoch or later that will not be opened any more.
    closed: BTreeSet<SegmentKey>,
    /// No segment of an earlier epoch is waited for.
    exchanges_from: u64,
    slots: BTreeSet<u16>,
    /// Links of dropped peers, by number, and how long they are still served.
    leaving: Vec<(Instant, u64)>,
    /// No peer is added any more.
    pub(super) stopped: bool,
    pub(super) controls: Vec<Control>,
}

impl State {
    /// Registers an open segment. False if it is open already, or over.
    pub(super) fn open_segment(
        &mut self,
        key: SegmentKey,
        incoming_segment: Arc<IncomingSegment>,
    ) -> bool {
        if self.is_over(key) || self.open.contains_key(&key) {
            return false;
        }
        self.epoch = self.epoch.max(key.epoch);
        let epoch = self.epoch;
        self.closed.retain(|gone| gone.epoch >= epoch);
        self.open.insert(key, incoming_segment);
        true
    }

    fn has_pushes(&self) -> bool {
        let mut peers = self.peers.values();
        peers.any(|peer| peer.pushes_by == PushPath::Stream)
    }

    fn is_over(&self, key: SegmentKey) -> bool {
        key.epoch < self.epoch || self.closed.contains(&key)
    }

    pub(super) fn close_segment(&mut self, key: SegmentKey) {
        self.open.remove(&key);
        if key.epoch >= self.epoch {
            self.closed.insert(key);
        }
    }

    pub(super) fn take_slot(&mut self) -> Option<u16> {
        let free = (0..=u16::MAX).find(|slot| !self.slots.contains(slot))?;
        self.slots.insert(free);
        Some(free)
    }

    pub(super) fn return_slot(&mut self, slot: u16) {
        self.slots.remove(&slot);
    }

    /// Where the bytes of a peer in a segment go.
    fn target(&self, peer: u128, key: SegmentKey) -> RowTarget {
        let Some(incoming_segment) = self.open.get(&key) else {
            return match self.is_over(key) {
                true => RowTarget::Discard,
                false => RowTarget::NotOpenYet,
            };
        };
        let rank = incoming_segment
            .members
            .iter()
            .position(|&member| member == peer);
        match rank {
            None => RowTarget::NotAMember,
            Some(rank) if incoming_segment.fenced[rank].load(Ordering::Acquire) => {
                RowTarget::Discard
            }
            Some(rank) => RowTarget::Copy(incoming_segment.copies[rank].clone()),
        }
    }
}

pub(super) struct Shared {
    pub(super) id: u128,
    /// The I/O thread sleeps on it.
    pub(super) epoll: OwnedFd,
    /// The streams from peers, an epoll set.
    streams: OwnedFd,
    /// What is read goes here first. Locked from reading until what was read is handled: messages
    /// keep their order.
    read: Mutex<Vec<u8>>,
    /// The event descriptor that wakes the I/O thread.
    pub(super) kick: OwnedFd,
    hooks: StreamHooks,
    /// Used with the state locked, or alone.
    events: Arc<EventQueue>,
    pub(super) sleep: SleepCounters,
    pub(super) stalled: StalledLinks,
    pub(super) due: DueLinks,
    pub(super) calls: Arc<StreamCallCounters>,
    /// Number of streams to peers.
    pub(super) number: Arc<AtomicUsize>,
    state: Mutex<State>,
    /// Signalled when a peer is added or lost, or the transport stops.
    changed: Condvar,
}

impl core::fmt::Debug for Shared {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Shared")
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}

impl Shared {
    pub(super) fn new(
        id: u128,
        events: Arc<EventQueue>,
        hooks: StreamHooks,
        stalled_max: Duration,
    ) -> Result<Self, StationError> {
        let set = || {
            retry::repeat(|| epoll::create(CreateFlags::CLOEXEC))
                .map_err(SetupError::system("making an epoll descriptor"))
        };
        let (epoll, streams) = (set()?, set()?);
        let kick = create_eventfd().map_err(SetupError::system("making an event descriptor"))?;
        epoll::add(&epoll, &kick, Source::Kick.token(), EventFlags::IN)
            .map_err(SetupError::system("watching an event descriptor"))?;
        epoll::add(&epoll, &streams, Source::Streams.token(), EventFlags::IN)
            .map_err(SetupError::system("watching the streams"))?;
        Ok(Self {
            id,
            epoll,
            streams,
            read: Mutex::new(vec![0; BUFFER_LEN]),
            kick,
            hooks,
            events,
            sleep: SleepCounters::default(),
            stalled: StalledLinks::new(stalled_max),
            due: DueLinks::default(),
            calls: Arc::default(),
            number: Arc::default(),
            state: Mutex::default(),
            changed: Condvar::new(),
        })
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn kick(&self) {
        // A full event descriptor is readable already.
        let _ = signal_eventfd(&self.kick);
    }

    /// Wakes the sleeper for an event of this station. Not counted as a wake-up by a peer.
    pub(super) fn wake(&self) {
        (self.hooks.wake)(WakeReason::Data, &AtomicU64::new(0));
    }

    /// A link that can be served, and is not yet: nothing but its ends is watched.
    pub(super) fn ready(
        &self,
        peer: u128,
        outgoing: Outgoing,
        incoming: Incoming,
    ) -> Result<Arc<StreamLink>, StationError> {
        let mut state = self.state();
        let number = state.next_link;
        state.next_link += 1;
        drop(state);
        let link = StreamLink {
            number,
            peer,
            outgoing,
            incoming,
            told: AtomicBool::new(false),
            leaving: AtomicBool::new(false),
        };
        // Edge-triggered: reported once when the stream becomes writable again.
        let edges = EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
        let (to, from) = (Source::To(number).token(), Source::From(number).token());
        let watch = |set, stream: &TcpStream, token, flags| {
            retry::repeat(|| epoll::add(set, stream, token, flags))
        };
        watch(&self.epoll, &link.outgoing.stream, to, edges)
            .and_then(|()| {
                watch(
                    &self.streams,
                    &link.incoming.stream,
                    from,
                    EventFlags::empty(),
                )
            })
            .map_err(SetupError::system("watching a stream"))?;
        Ok(Arc::new(link))
    }

    /// Adds a peer: its connection is served from now on.
    pub(super) fn add(
        &self,
        link: Arc<StreamLink>,
        pushes_by: PushPath,
        final_frame: &[u8],
        channel: Option<Box<SecureChannel>>,
    ) -> Result<(), StationError> {
        let encrypted = channel.is_some();
        if let Some(channel) = channel {
            link.outgoing.encrypt(channel.sealer);
            link.incoming.decrypt(channel.opener);
        }
        let mut state = self.state();
        let (peer, number) = (link.peer, link.number);
        let refuse = |reason: String| Err(StationError::Refused { id: peer, reason });
        if state.stopped {
            return Err(StationError::Closed);
        }
        if state.peers.contains_key(&peer) {
            return refuse("it is connected, or was lost".to_owned());
        }
        if state.peers.len() >= PEERS_MAX {
            return refuse(format!("this station has {PEERS_MAX} peers already"));
        }
        let from = Source::From(number).token();
        let listen = || epoll::modify(&self.streams, &link.incoming.stream, from, EventFlags::IN);
        retry::repeat(listen).map_err(SetupError::system("watching a stream"))?;
        // Last, as the peer takes the two for connected then. No push comes before the state is
        // unlocked, so these few bytes always fit.
        retry::repeat(|| (&link.outgoing.stream).write_all(final_frame))
            .map_err(SetupError::system("ending a handshake"))?;
        state.links.insert(number, Arc::clone(&link));
        let added = Peer {
            link,
            fate: None,
            pushes_by,
            encrypted,
        };
        state.peers.insert(peer, added);
        if pushes_by == PushPath::Stream {
            (self.hooks.used)(true);
        }
        self.events.push(StationEvent::Connected { id: peer });
        // Before the peer is visible: a thread that finds it and sleeps is not woken for it.
        self.wake();
        drop(state);
        self.changed.notify_all();
        Ok(())
    }

    /// Watches the incoming stream. Called with the state locked.
    fn listen(&self, link: &StreamLink) -> rustix::io::Result<()> {
        let from = Source::From(link.number).token();
        let add = || epoll::add(&self.streams, &link.incoming.stream, from, EventFlags::IN);
        match retry::repeat(add) {
            Err(Errno::EXIST) => Ok(()),
            added => added,
        }
    }

    /// Drops a peer, which is told so; segments keep its rows as they are. The connection
    /// is read for a while after the final record: closed earlier, with bytes of the peer
    /// unread, it would be reset, and the peer might not get that record.
    pub(super) fn drop_peer(&self, id: u128) {
        (self.hooks.lost)(id);
        let mut state = self.state();
        state.absent.remove(&id);
        let Some(Peer { link, .. }) = state.peers.remove(&id) else {
            return;
        };
        if !state.has_pushes() {
            (self.hooks.used)(false);
        }
        self.events.forget(id);
        link.told.store(true, Ordering::Release);
        link.leaving.store(true, Ordering::Release);
        let until = Instant::now() + LEAVE_WITHIN;
        state.leaving.push((until, link.number));
        let watched = self.listen(&link);
        drop(state);
        self.changed.notify_all();
        link.incoming.close();
        self.sent(&link, link.outgoing.leave());
        if watched.is_err() {
            self.remove(&link);
        }
        self.kick();
    }

    /// Removes a link with all that is left of it.
    fn remove(&self, link: &StreamLink) {
        let mut state = self.state();
        state.links.remove(&link.number);
        state.leaving.retain(|&(_, number)| number != link.number);
        // They may be unwatched at the moment.
        let _ = epoll::delete(&self.streams, &link.incoming.stream);
        let _ = epoll::delete(&self.epoll, &link.outgoing.stream);
        drop(state);
        link.outgoing.close();
        link.incoming.end();
    }

    /// Removes the links whose time is over; returns when the next one is due.
    pub(super) fn remove_overdue(&self) -> Option<Duration> {
        let now = Instant::now();
        let state = self.state();
        let overdue = state.leaving.iter().filter(|(until, _)| *until <= now);
        let overdue = overdue.filter_map(|(_, number)| state.links.get(number).cloned());
        let overdue: Vec<_> = overdue.collect();
        drop(state);
        overdue.iter().for_each(|link| self.remove(link));
        let next = self.state().leaving.iter().map(|&(until, _)| until).min();
        next.map(|until| until.saturating_duration_since(now))
    }

    /// Adds no more peers; tells those that there are, and gives them less time.
    pub(super) fn stop(&self) {
        self.state().stopped = true;
        let links: Vec<_> = self.state().links.values().cloned().collect();
        for link in links {
            self.sent(&link, link.outgoing.send());
            self.drop_peer(link.peer);
        }
        let soon = Instant::now() + STOP_WITHIN;
        for (until, _) in &mut self.state().leaving {
            *until = soon.min(*until);
        }
        self.changed.notify_all();
        self.kick();
    }

    /// Whether the thread has nothing left to do.
    pub(super) fn is_over(&self) -> bool {
        let state = self.state();
        state.stopped && state.leaving.is_empty()
    }

    pub(super) fn link(&self, number: u64) -> Option<Arc<StreamLink>> {
        self.state().links.get(&number).cloned()
    }

    /// Calls wait no longer for this peer.
    pub(super) fn give_up(&self, id: u128) {
        self.state().absent.insert(id);
        self.changed.notify_all();
    }

    /// Waits until each of these is known or given up, or `deadline` is over.
    pub(super) fn wait_for(
        &self,
        ids: &[u128],
        key: SegmentKey,
        deadline: Instant,
    ) -> Result<(), StationError> {
        let mut state = self.state();
        loop {
            if state.stopped {
                return Err(StationError::Closed);
            }
            if key.epoch < state.exchanges_from {
                return Err(StationError::segment(key, "it is not needed any more"));
            }
            let left = deadline.saturating_duration_since(Instant::now());
            let settled = |id: &u128| state.peers.contains_key(id) || state.absent.contains(id);
            if ids.iter().all(settled) || left.is_zero() {
                return Ok(());
            }
            let waited = self.changed.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Ends waiting for segments of epochs before this one, now and later.
    pub(super) fn end_exchanges_before(&self, epoch: u64) {
        let mut state = self.state();
        state.exchanges_from = state.exchanges_from.max(epoch);
        drop(state);
        self.changed.notify_all();
    }

    /// A peer has failed; reported once. Bytes of its stream that are still on their way
    /// may land.
    pub(super) fn fail(&self, link: &StreamLink, fault: &Fault) {
        // Before the stream is closed, which the I/O thread sees as an end.
        let told = link.told.swap(true, Ordering::AcqRel);
        link.outgoing.close();
        if told {
            return;
        }
        (self.hooks.lost)(link.peer);
        let cause = FailureCause::Unreachable(fault.to_string());
        let mut state = self.state();
        Control::tell_all(&mut state.controls, link.peer, &cause);
        if let Some(peer) = state.peers.get_mut(&link.peer) {
            peer.fate = Some(cause.clone());
            let id = link.peer;
            self.events.push(StationEvent::Closed { id, cause });
        }
        drop(state);
        self.changed.notify_all();
        self.wake();
    }

    fn buffer(&self) -> MutexGuard<'_, Vec<u8>> {
        self.read.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads what has arrived from all peers. Called by the I/O thread.
    pub(super) fn receive_all(&self) {
        self.read_all(&mut self.buffer(), &self.hooks.wake);
    }

    fn read_all(&self, buffer: &mut [u8], on_wake: OnWake<'_>) {
        let mut events = [const {
            Event {
                flags: EventFlags::empty(),
                data: EventData::new_u64(0),
            }
        }; EVENTS_MAX];
        let at_once = Timespec::default();
        // An error means that no more is found at this moment.
        let found = epoll::wait(&self.streams, &mut events[..], Some(&at_once)).unwrap_or(0);
        for event in &events[..found] {
            if let Source::From(number) = Source::of(event.data)
                && let Some(link) = self.link(number)
            {
                self.receive_from(&link, buffer, on_wake);
            }
        }
    }

    /// Reads from a peer, unless its stream waits for a segment.
    fn receive_from(&self, link: &StreamLink, buffer: &mut [u8], on_wake: OnWake<'_>) {
        if link.leaving.load(Ordering::Acquire) {
            if link.incoming.discard(buffer) {
                self.remove(link);
            }
            return;
        }
        let target = |key| self.state().target(link.peer, key);
        let handle = |received| self.handle(link, received, on_wake);
        link.incoming.receive(buffer, target, handle);
        let stuck = link.incoming.is_stuck();
        if stuck && link.outgoing.is_closed() {
            self.fail(link, &Fault::Ended);
        }
        if stuck || link.incoming.is_closed() {
            let _state = self.state();
            if !link.leaving.load(Ordering::Acquire) {
                // It may be unwatched at the moment.
                let _ = epoll::delete(&self.streams, &link.incoming.stream);
            }
        }
    }

    /// Applies what waits for segments that are open by now.
    pub(super) fn resume(&self) {
        let links: Vec<_> = self.state().links.values().cloned().collect();
        let _buffer = self.buffer();
        for link in links.iter().filter(|link| link.incoming.is_waiting()) {
            let target = |key| self.state().target(link.peer, key);
            let handle = |received| self.handle(link, received, &self.hooks.wake);
            link.incoming.resume(target, handle);
            let state = self.state();
            let goes_on = !link.incoming.is_closed() && !link.incoming.is_stuck();
            if goes_on
                && state.links.contains_key(&link.number)
                && let Err(errno) = self.listen(link)
            {
                drop(state);
                self.fail(link, &Fault::Broken(errno.into()));
            }
        }
    }

    fn handle(&self, link: &StreamLink, received: Received, on_wake: OnWake<'_>) {
        for message in received.messages {
            self.deliver(link, message, on_wake);
        }
        if !received.landed.is_empty() {
            (self.hooks.landed)(&received.landed);
        }
        if let Some(reason) = received.wake {
            on_wake(reason, &self.sleep.peer_wakes);
        }
        if let Some(fault) = received.fault {
            self.fail(link, &fault);
        }
    }

    fn deliver(&self, link: &StreamLink, message: Vec<u8>, on_wake: OnWake<'_>) {
        let state = self.state();
        let delivered = match link.leaving.load(Ordering::Acquire) {
            true => return,
            false => self.events.deliver(link.peer, message),
        };
        drop(state);
        match delivered {
            // Not counted as a wake-up by a peer.
            Ok(()) => on_wake(WakeReason::Data, &AtomicU64::new(0)),
            Err(reason) => self.fail(link, &Fault::UnreadMessages(reason)),
        }
    }

    /// Handles the result of appending to a queue: true if it should be sent now.
    pub(super) fn put(&self, link: &StreamLink, put: Result<bool, Full>) {
        match put {
            Ok(false) => {}
            Ok(true) => self.sent(link, link.outgoing.send()),
            Err(Full { waiting }) => self.fail(link, &Fault::Overflow { waiting }),
        }
    }

    /// Ends a batch of pushes to a peer.
    pub(super) fn end_batch(&self, link: &StreamLink, urgency: Urgency) {
        match link.outgoing.end_batch(urgency) {
            BatchEnd::Over => {}
            BatchEnd::Send => self.sent(link, link.outgoing.send()),
            BatchEnd::HandOver => {
                if self.due.add(link.number) {
                    self.kick();
                }
            }
        }
    }

    /// Handles the result of sending.
    pub(super) fn sent(&self, link: &StreamLink, sent: io::Result<()>) {
        match sent {
            Ok(()) => {}
            // The I/O thread is told, too; it still reads the peer's last records.
            Err(error) if is_end(&error) => link.outgoing.close(),
            Err(error) if error.may_pass() => {
                self.stalled.add(link.number);
                self.kick();
            }
            Err(error) => self.fail(link, &Fault::Broken(error)),
        }
    }

    /// The stream to a peer is writable again, or has ended. If it has ended, the peer's
    /// stream has ended, too, and its last records are still to be read.
    pub(super) fn go_on(&self, link: &StreamLink, ended: bool) {
        // Where the kernel does not tell, writing and reading find out.
        match link.outgoing.stream.take_error().unwrap_or(None) {
            Some(error) if !is_end(&error) => self.fail(link, &Fault::Broken(error)),
            None if !ended => self.sent(link, link.outgoing.send_again()),
            _ => {
                link.outgoing.close();
                if link.incoming.is_stuck() {
                    self.fail(link, &Fault::Ended);
                }
            }
        }
    }
}

impl ArrivingStreams for Shared {
    fn set(&self) -> BorrowedFd<'_> {
        self.streams.as_fd()
    }

    fn receive(&self, on_wake: OnWake<'_>) {
        self.read_all(&mut self.buffer(), on_wake);
    }

    fn receive_and_wake(&self) {
        let mut buffer = match self.read.try_lock() {
            Ok(buffer) => buffer,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return,
        };
        self.read_all(&mut buffer, &self.hooks.wake);
    }

    fn set_read_by_own_thread(&self, is_own: bool) {
        let flags = match is_own {
            true => EventFlags::IN,
            false => EventFlags::empty(),
        };
        let token = Source::Streams.token();
        rewatch(&self.epoll, self.streams.as_fd(), token, flags);
    }
}

/// Whether this write error means that the peer has closed the stream.
fn is_end(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::ConnectionReset | ErrorKind::BrokenPipe
    )
}
