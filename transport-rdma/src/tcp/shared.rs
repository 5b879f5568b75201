//! What a station, its segments and its thread share: peers, links, segments.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, ErrorKind, Write};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::event::epoll::{self, CreateFlags, EventFlags};
use rustix::io::Errno;

use super::decoder::Place;
use super::incoming::{Incoming, Received};
use super::io::Source;
use super::outgoing::Outgoing;
use super::record::RecordError;
use crate::counters::SleepCounters;
use crate::eventfd::{create_eventfd, signal_eventfd};
use crate::fabric::{FailureCause, WakeReason};
use crate::failures::Control;
use crate::mem::Region;
use crate::peers::MEMBERS_MAX;
use crate::queue::Full;
use crate::segment::SegmentKey;
use crate::shm::SetupError;
use crate::station_error::StationError;
use crate::station_event::{EventQueue, LEFT, StationEvent};

/// Most peers, those that are lost and not dropped included.
const PEERS_MAX: usize = MEMBERS_MAX - 1;

/// How long the connection to a peer that was dropped is served yet.
const LEAVE_WITHIN: Duration = Duration::from_secs(2);

/// The same when the station closes: somebody waits for that.
const STOP_WITHIN: Duration = Duration::from_millis(500);

/// Why a link is one no more.
#[derive(Debug, thiserror::Error)]
pub(super) enum Fault {
    #[error("{LEFT}")]
    Left,
    #[error("{0}")]
    Unread(String),
    #[error("it ended its stream")]
    Ended,
    #[error("its stream ended inside a record")]
    EndedInside,
    #[error("its stream broke: {0}")]
    Broken(io::Error),
    #[error("it sent a record {0}")]
    NoRecord(RecordError),
    #[error("it takes too little: {waiting} records wait for it already")]
    Full { waiting: usize },
    #[error("the thread that serves the streams has ended: {0}")]
    NoThread(io::Error),
    #[error("{0}")]
    Elsewhere(String),
}

/// The two streams between me and a peer.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) number: u64,
    pub(super) peer: u128,
    pub(super) outgoing: Outgoing,
    pub(super) incoming: Incoming,
    told: AtomicBool,
    /// It was dropped; changed with the state locked.
    leaving: AtomicBool,
}

/// Wakes the sleeper of this process, if it wants to know, and counts that before.
pub(crate) type Wake = Box<dyn Fn(WakeReason, &AtomicU64) + Send + Sync>;

/// Ends what else leads to a peer that is lost, or dropped.
pub(crate) type Lost = Box<dyn Fn(u128) + Send + Sync>;

/// What a segment is to those who push to it.
#[derive(Debug)]
pub(super) struct Receiving {
    /// By rank, as all of it.
    pub(super) members: Vec<u128>,
    pub(super) copies: Vec<Region>,
    pub(super) fenced: Vec<AtomicBool>,
}

#[derive(Debug)]
pub(super) struct Peer {
    pub(super) link: Arc<Link>,
    /// Why it is lost.
    pub(super) fate: Option<FailureCause>,
}

#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) peers: BTreeMap<u128, Peer>,
    /// Those who are not there and will not come.
    absent: BTreeSet<u128>,
    /// Of these peers, by their numbers.
    pub(super) links: BTreeMap<u64, Arc<Link>>,
    next_link: u64,
    pub(super) open: BTreeMap<SegmentKey, Arc<Receiving>>,
    /// The newest epoch of which there was a segment: what is older and not open
    /// will not be opened any more.
    epoch: u64,
    /// Those of this epoch or later that will not be either.
    gone: BTreeSet<SegmentKey>,
    slots: BTreeSet<u16>,
    /// Numbers of links that were dropped, and how long they are served yet.
    leaving: Vec<(Instant, u64)>,
    /// Nobody comes any more.
    pub(super) stopped: bool,
    pub(super) controls: Vec<Control>,
}

impl State {
    /// A segment is here. False if it is already, or is over.
    pub(super) fn admit(&mut self, key: SegmentKey, receiving: Arc<Receiving>) -> bool {
        if self.is_over(key) || self.open.contains_key(&key) {
            return false;
        }
        self.epoch = self.epoch.max(key.epoch);
        let epoch = self.epoch;
        self.gone.retain(|gone| gone.epoch >= epoch);
        self.open.insert(key, receiving);
        true
    }

    fn is_over(&self, key: SegmentKey) -> bool {
        key.epoch < self.epoch || self.gone.contains(&key)
    }

    pub(super) fn dismiss(&mut self, key: SegmentKey) {
        self.open.remove(&key);
        if key.epoch >= self.epoch {
            self.gone.insert(key);
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

    /// Where what a peer pushes in a segment goes.
    fn place(&self, peer: u128, key: SegmentKey) -> Place {
        let Some(receiving) = self.open.get(&key) else {
            return match self.is_over(key) {
                true => Place::Nowhere,
                false => Place::NotYet,
            };
        };
        let rank = receiving.members.iter().position(|&member| member == peer);
        match rank {
            None => Place::NoMember,
            Some(rank) if receiving.fenced[rank].load(Ordering::Acquire) => Place::Nowhere,
            Some(rank) => Place::Copy(receiving.copies[rank].clone()),
        }
    }
}

pub(super) struct Shared {
    pub(super) id: u128,
    pub(super) epoll: OwnedFd,
    /// Gives the thread something to do.
    pub(super) kick: OwnedFd,
    wake: Wake,
    lost: Lost,
    /// Taken with the state locked, or alone.
    news: Arc<EventQueue>,
    pub(super) sleep: SleepCounters,
    state: Mutex<State>,
    /// Who is here, or lost, or that all is over.
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
        news: Arc<EventQueue>,
        wake: Wake,
        lost: Lost,
    ) -> Result<Self, StationError> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)
            .map_err(SetupError::system("making an epoll descriptor"))?;
        let kick = create_eventfd().map_err(SetupError::system("making an event descriptor"))?;
        epoll::add(&epoll, &kick, Source::Kick.token(), EventFlags::IN)
            .map_err(SetupError::system("watching an event descriptor"))?;
        Ok(Self {
            id,
            epoll,
            kick,
            wake,
            lost,
            news,
            sleep: SleepCounters::default(),
            state: Mutex::default(),
            changed: Condvar::new(),
        })
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn kick(&self) {
        // One that is full wakes it already.
        let _ = signal_eventfd(&self.kick);
    }

    /// Wakes it for the news of a failure, which is no ring.
    pub(super) fn wake(&self) {
        (self.wake)(WakeReason::Data, &AtomicU64::new(0));
    }

    /// A peer has come: its connection is served from now on.
    pub(super) fn add(
        &self,
        peer: u128,
        outgoing: Outgoing,
        incoming: Incoming,
        last_words: &[u8],
    ) -> Result<(), StationError> {
        let mut state = self.state();
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
        let number = state.next_link;
        let link = Arc::new(Link {
            number,
            peer,
            outgoing,
            incoming,
            told: AtomicBool::new(false),
            leaving: AtomicBool::new(false),
        });
        // Nobody pushes before the state is unlocked. So little always fits.
        let said = (&link.outgoing.stream).write_all(last_words);
        said.map_err(SetupError::system("ending a handshake"))?;
        // Told once when it takes bytes again, so that nobody has to ask.
        let edges = EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
        let to = Source::To(number).token();
        epoll::add(&self.epoll, &link.outgoing.stream, to, edges)
            .and_then(|()| self.listen(&link))
            .map_err(SetupError::system("watching a stream"))?;
        state.next_link += 1;
        state.links.insert(number, Arc::clone(&link));
        state.peers.insert(peer, Peer { link, fate: None });
        self.news.tell(StationEvent::Connected { id: peer });
        // Before anybody finds the peer: who sleeps from then on is not woken by this.
        self.wake();
        drop(state);
        self.changed.notify_all();
        Ok(())
    }

    /// With the state locked.
    fn listen(&self, link: &Link) -> rustix::io::Result<()> {
        let from = Source::From(link.number).token();
        match epoll::add(&self.epoll, &link.incoming.stream, from, EventFlags::IN) {
            Err(Errno::EXIST) => Ok(()),
            added => added,
        }
    }

    /// A peer goes, and is told so; segments keep its rows as they are. The
    /// connection is read for a while after the farewell: closed before the peer has
    /// taken that, with something of the peer's unread, it would be reset.
    pub(super) fn drop_peer(&self, id: u128) {
        (self.lost)(id);
        let mut state = self.state();
        state.absent.remove(&id);
        let Some(Peer { link, .. }) = state.peers.remove(&id) else {
            return;
        };
        self.news.forget(id);
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

    /// Nothing is left of a connection.
    fn remove(&self, link: &Link) {
        let mut state = self.state();
        state.links.remove(&link.number);
        state.leaving.retain(|&(_, number)| number != link.number);
        // It may not be watched for the moment.
        let _ = epoll::delete(&self.epoll, &link.incoming.stream);
        let _ = epoll::delete(&self.epoll, &link.outgoing.stream);
        drop(state);
        link.outgoing.close();
        link.incoming.end();
    }

    /// Removes those who have had their time to go; when the next one has.
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

    /// From here on nobody comes; those who are there are told, and have less time.
    pub(super) fn stop(&self) {
        self.state().stopped = true;
        let links: Vec<_> = self.state().links.values().cloned().collect();
        for link in links {
            self.sent(&link, link.outgoing.end_batch());
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

    pub(super) fn link(&self, number: u64) -> Option<Arc<Link>> {
        self.state().links.get(&number).cloned()
    }

    /// Nobody waits for this one.
    pub(super) fn give_up(&self, id: u128) {
        self.state().absent.insert(id);
        self.changed.notify_all();
    }

    /// Waits until each of these has been here, or will not come, or `deadline` is over.
    pub(super) fn wait_for(&self, ids: &[u128], deadline: Instant) -> Result<(), StationError> {
        let mut state = self.state();
        loop {
            if state.stopped {
                return Err(StationError::Closed);
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

    /// The peer has failed: told once. What of its stream is still on its way
    /// may land.
    pub(super) fn fail(&self, link: &Link, fault: &Fault) {
        // Before it is closed: the other thread sees an end then.
        let told = link.told.swap(true, Ordering::AcqRel);
        link.outgoing.close();
        if told {
            return;
        }
        (self.lost)(link.peer);
        let cause = FailureCause::Unreachable(fault.to_string());
        let mut state = self.state();
        Control::tell_all(&mut state.controls, link.peer, &cause);
        if let Some(peer) = state.peers.get_mut(&link.peer) {
            peer.fate = Some(cause.clone());
            let id = link.peer;
            self.news.tell(StationEvent::Closed { id, cause });
        }
        drop(state);
        self.changed.notify_all();
        self.wake();
    }

    /// Takes what has come from a peer, if it is not waiting.
    pub(super) fn receive(&self, link: &Link, buffer: &mut [u8]) {
        if link.leaving.load(Ordering::Acquire) {
            if link.incoming.discard(buffer) {
                self.remove(link);
            }
            return;
        }
        let place = |key| self.state().place(link.peer, key);
        let handle = |received| self.handle(link, received);
        link.incoming.receive(buffer, place, handle);
        let stuck = link.incoming.is_stuck();
        if stuck && link.outgoing.is_closed() {
            self.fail(link, &Fault::Ended);
        }
        if stuck || link.incoming.is_closed() {
            let _state = self.state();
            if !link.leaving.load(Ordering::Acquire) {
                // It may not be watched for the moment.
                let _ = epoll::delete(&self.epoll, &link.incoming.stream);
            }
        }
    }

    /// Those whose streams wait for a segment look whether it is there.
    pub(super) fn resume(&self) {
        let links: Vec<_> = self.state().links.values().cloned().collect();
        for link in links.iter().filter(|link| link.incoming.is_waiting()) {
            let place = |key| self.state().place(link.peer, key);
            let handle = |received| self.handle(link, received);
            link.incoming.resume(place, handle);
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

    fn handle(&self, link: &Link, received: Received) {
        for message in received.messages {
            self.deliver(link, message);
        }
        if let Some(ring) = received.ring {
            (self.wake)(ring, &self.sleep.peer_wakes);
        }
        if let Some(fault) = received.fault {
            self.fail(link, &fault);
        }
    }

    fn deliver(&self, link: &Link, message: Vec<u8>) {
        let state = self.state();
        let delivered = match link.leaving.load(Ordering::Acquire) {
            true => return,
            false => self.news.deliver(link.peer, message),
        };
        drop(state);
        match delivered {
            Ok(()) => self.wake(),
            Err(reason) => self.fail(link, &Fault::Unread(reason)),
        }
    }

    /// What came of putting something into a queue: whether it is full enough
    /// to be sent.
    pub(super) fn put(&self, link: &Link, put: Result<bool, Full>) {
        match put {
            Ok(false) => {}
            Ok(true) => self.sent(link, link.outgoing.send()),
            Err(Full { waiting }) => self.fail(link, &Fault::Full { waiting }),
        }
    }

    /// What came of sending.
    pub(super) fn sent(&self, link: &Link, sent: io::Result<()>) {
        match sent {
            Ok(()) => {}
            // The I/O thread is told so too, and waits for its last words.
            Err(error) if is_end(&error) => link.outgoing.close(),
            Err(error) => self.fail(link, &Fault::Broken(error)),
        }
    }

    /// The stream to a peer takes bytes again, or has ended. If it has, the peer's
    /// own has too, and its last words are still in it.
    pub(super) fn go_on(&self, link: &Link, ended: bool) {
        match link.outgoing.stream.take_error() {
            Ok(Some(error)) if !is_end(&error) => self.fail(link, &Fault::Broken(error)),
            Ok(None) if !ended => self.sent(link, link.outgoing.send_again()),
            Ok(_) => {
                link.outgoing.close();
                if link.incoming.is_stuck() {
                    self.fail(link, &Fault::Ended);
                }
            }
            Err(error) => self.fail(link, &Fault::Broken(error)),
        }
    }
}

/// Whether a write fails like this because the peer has closed the stream.
fn is_end(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::ConnectionReset | ErrorKind::BrokenPipe
    )
}
