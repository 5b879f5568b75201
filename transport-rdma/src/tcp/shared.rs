//! What a station, its segments and its thread share: peers, links, segments.

use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, ErrorKind};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::event::epoll::{self, CreateFlags, EventFlags};

use super::decoder::Place;
use super::incoming::Incoming;
use super::io::Source;
use super::outgoing::Outgoing;
use super::queue::Full;
use super::record::RecordError;
use crate::counters::SleepCounters;
use crate::event::{create_event, write_event};
use crate::fabric::{FailureCause, Ring};
use crate::failures::Control;
use crate::mem::Region;
use crate::news::{Event, News};
use crate::segment::SegmentKey;
use crate::shm::JoinError;
use crate::station_error::StationError;

/// Why a link is one no more.
#[derive(Debug, thiserror::Error)]
pub(super) enum Fault {
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
}

/// The two streams between me and a peer.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) number: u64,
    pub(super) peer: u128,
    pub(super) outgoing: Outgoing,
    pub(super) incoming: Incoming,
    told: AtomicBool,
}

/// Wakes the sleeper of this process, if it wants to know, and counts that before.
pub(crate) type Wake = Box<dyn Fn(Ring, &AtomicU64) + Send + Sync>;

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
    /// How long a peer's stream may go on after mine to it has ended.
    pub(super) patience: Duration,
    pub(super) epoll: OwnedFd,
    /// Gives the thread something to do.
    pub(super) kick: OwnedFd,
    pub(super) stopped: AtomicBool,
    wake: Wake,
    /// Taken with the state locked, or alone.
    news: Arc<News>,
    pub(super) sleep: SleepCounters,
    state: Mutex<State>,
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
        patience: Duration,
        news: Arc<News>,
        wake: Wake,
    ) -> Result<Self, StationError> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)
            .map_err(JoinError::system("making an epoll descriptor"))?;
        let kick = create_event().map_err(JoinError::system("making an event descriptor"))?;
        epoll::add(&epoll, &kick, Source::Kick.token(), EventFlags::IN)
            .map_err(JoinError::system("watching an event descriptor"))?;
        Ok(Self {
            id,
            patience,
            epoll,
            kick,
            stopped: AtomicBool::new(false),
            wake,
            news,
            sleep: SleepCounters::default(),
            state: Mutex::default(),
        })
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn kick(&self) {
        // One that is full wakes it already.
        let _ = write_event(&self.kick);
    }

    /// Wakes it for the news of a failure, which is no ring.
    pub(super) fn wake(&self) {
        (self.wake)(Ring::Data, &AtomicU64::new(0));
    }

    /// A peer has come: its streams are served from now on.
    pub(super) fn add(
        &self,
        peer: u128,
        outgoing: Outgoing,
        incoming: Incoming,
    ) -> Result<(), StationError> {
        let mut state = self.state();
        if state.peers.contains_key(&peer) {
            let reason = "it is connected, or was lost".to_owned();
            return Err(StationError::Refused { id: peer, reason });
        }
        let number = state.next_link;
        let link = Arc::new(Link {
            number,
            peer,
            outgoing,
            incoming,
            told: AtomicBool::new(false),
        });
        // Told once when it takes bytes again, so that nobody has to ask.
        let edges = EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
        let to = Source::To(number).token();
        epoll::add(&self.epoll, &link.outgoing.stream, to, edges)
            .and_then(|()| self.listen(&link))
            .map_err(JoinError::system("watching a stream"))?;
        state.next_link += 1;
        state.links.insert(number, Arc::clone(&link));
        state.peers.insert(peer, Peer { link, fate: None });
        self.news.tell(Event::Connected { id: peer });
        drop(state);
        self.wake();
        Ok(())
    }

    /// With the state locked.
    fn listen(&self, link: &Link) -> rustix::io::Result<()> {
        let from = Source::From(link.number).token();
        epoll::add(&self.epoll, &link.incoming.stream, from, EventFlags::IN)
    }

    /// A peer goes. Its streams end; segments keep its rows as they are.
    pub(super) fn drop_peer(&self, id: u128) {
        let mut state = self.state();
        let Some(Peer { link, .. }) = state.peers.remove(&id) else {
            return;
        };
        self.news.forget(id);
        drop(state);
        link.told.store(true, Ordering::Release);
        link.incoming.close();
        link.outgoing.close();
        let mut state = self.state();
        state.links.remove(&link.number);
        // It may not be watched for the moment.
        let _ = epoll::delete(&self.epoll, &link.incoming.stream);
        let _ = epoll::delete(&self.epoll, &link.outgoing.stream);
    }

    pub(super) fn link(&self, number: u64) -> Option<Arc<Link>> {
        self.state().links.get(&number).cloned()
    }

    /// The peer has failed: told once. What of its stream is still on its way
    /// may land.
    pub(super) fn fail(&self, link: &Link, fault: &Fault) {
        link.outgoing.close();
        if link.told.swap(true, Ordering::AcqRel) {
            return;
        }
        let cause = FailureCause::Unreachable(fault.to_string());
        let mut state = self.state();
        Control::tell_all(&mut state.controls, link.peer, &cause);
        if let Some(peer) = state.peers.get_mut(&link.peer) {
            peer.fate = Some(cause.clone());
            let id = link.peer;
            self.news.tell(Event::Closed { id, cause });
        }
        drop(state);
        self.wake();
    }

    /// Takes what has come from a peer, if it is not waiting.
    pub(super) fn receive(&self, link: &Link, buffer: &mut [u8]) {
        let place = |key| self.state().place(link.peer, key);
        let received = link
            .incoming
            .receive(buffer, place, |ring| self.answer(ring));
        if let Err(fault) = received {
            self.fail(link, &fault);
        }
        if link.incoming.is_closed() || link.incoming.is_waiting() {
            // It is not watched if it has been dropped meanwhile.
            let _ = epoll::delete(&self.epoll, &link.incoming.stream);
        }
    }

    /// Those whose streams wait for a segment look whether it is there.
    pub(super) fn resume(&self) {
        let links: Vec<_> = self.state().links.values().cloned().collect();
        for link in links.iter().filter(|link| link.incoming.is_waiting()) {
            let place = |key| self.state().place(link.peer, key);
            let resumed = link.incoming.resume(place, |ring| self.answer(ring));
            if let Err(fault) = resumed {
                self.fail(link, &fault);
            }
            let state = self.state();
            let goes_on = !link.incoming.is_closed() && !link.incoming.is_waiting();
            if goes_on
                && state.links.contains_key(&link.number)
                && let Err(errno) = self.listen(link)
            {
                drop(state);
                self.fail(link, &Fault::Broken(errno.into()));
            }
        }
    }

    fn answer(&self, ring: Ring) {
        (self.wake)(ring, &self.sleep.rings);
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

    /// The stream to a peer takes bytes again, or has ended. If it has, the
    /// peer's own ends soon, and its last words are still in it: whether that
    /// is to be waited for, and no failure was told. They are not waited for
    /// where they wait themselves for a segment to be opened.
    pub(super) fn go_on(&self, link: &Link, ended: bool) -> bool {
        match link.outgoing.stream.take_error() {
            Ok(Some(error)) if !is_end(&error) => self.fail(link, &Fault::Broken(error)),
            Ok(None) if !ended => self.sent(link, link.outgoing.send_again()),
            Ok(_) => {
                link.outgoing.close();
                if link.incoming.is_waiting() {
                    self.fail(link, &Fault::Ended);
                }
                return !link.incoming.is_closed() && !link.told.load(Ordering::Acquire);
            }
            Err(error) => self.fail(link, &Fault::Broken(error)),
        }
        false
    }
}

/// Whether a write fails like this because the peer has closed the stream.
fn is_end(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::ConnectionReset | ErrorKind::BrokenPipe
    )
}
