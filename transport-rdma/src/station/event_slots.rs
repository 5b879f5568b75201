//! Where the poller and its follower sleep on descriptors: on the station's event descriptor, to
//! which peers of the host write, and on what arrives on streams.
//!
//! A thread of its own that read the streams would have to wake the thread that steps: two
//! wake-ups for a sample. So while a thread polls, the threads that step read the streams, and
//! those that sleep here are woken by the streams themselves. Where no thread polls (joining,
//! leaving), the thread of the streams reads.
//!
//! ```text
//!   sleepers:  event descriptor of the station, the streams   <- the follower sleeps here
//!   poller:    sleepers, if armed; an event descriptor        <- the poller sleeps here
//!              for the poller alone
//! ```
//!
//! Both are epoll sets. Any thread may read the streams, one at a time; the poller role (see
//! [`poller_role`](crate::sleep::poller_role)) says which thread is woken by what arrives:
//!
//! | the role is | `sleepers` in `poller` | what arrives wakes |
//! |---|---|---|
//! | the poller's, asleep | armed | the poller |
//! | the poller's, awake | armed or not | no thread: the poller reads before it steps, and arms before it sleeps |
//! | a follower's, asleep | not armed | the follower |
//! | a follower's, awake | not armed | no thread: the follower reads before it steps |
//! | on a lease | not armed | no thread: the poller looks within a few milliseconds |
//!
//! **No wake-up is lost.** Only the holder of the role arms and disarms, so these steps have an
//! order, that in which the role passes from thread to thread. Both sets are level-triggered: to
//! sleep on a set in which something is readable returns at once, and to arm one that is readable
//! wakes the thread that sleeps on it (`EPOLL_CTL_MOD` looks). So bytes that arrive at any moment
//! either are read by a thread that steps afterwards, or wake the thread that sleeps with the
//! role. A follower that hands the role back arms the poller's set before it does: bytes that come
//! between wake the poller, which finds the follower, sets its mark, and is woken again.
//!
//! The *station's event descriptor* remembers a wake-up for the thread that has announced its
//! sleep. The holder of the role resets it before it announces the next one: what was signalled
//! before is covered by the look that follows. A poller that is woken without the role leaves it
//! as it is. The *poller's* descriptor is reset by the poller alone, when it wakes, before it asks
//! for the role: as it notes doorbells.
//!
//! A thread that has read bytes while another one has announced its sleep wakes that one, as any
//! waker does ([`crate::sleep`]): the bytes are no longer there to wake it.

use core::cell::Cell;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use core::time::Duration;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Instant;

use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::io::Errno;

use crate::fabric::{Sleeper, WakeReason};
use crate::fork::OwnerProcess;
use crate::retry;
use crate::shm::error::SetupError;
use crate::sleep::eventfd::{create_eventfd, signal_eventfd};

/// Told the reason of a wake-up, and the counter of those that wake a thread.
pub(crate) type OnWake<'a> = &'a dyn Fn(WakeReason, &AtomicU64);

/// The streams of a station, which threads that step may read.
pub(crate) trait ArrivingStreams: core::fmt::Debug + Send + Sync {
    /// An epoll set that is readable as long as a stream is.
    fn set(&self) -> BorrowedFd<'_>;

    /// Reads what has arrived, and calls `on_wake` for each wake-up among it. Waits while another
    /// thread reads.
    fn receive(&self, on_wake: OnWake<'_>);

    /// Reads what has arrived, and wakes the sleeper of this process if it wants to be woken for
    /// that. Leaves it to another thread that reads.
    fn receive_and_wake(&self);

    /// Whether its own thread reads.
    fn set_read_by_own_thread(&self, is_own: bool);
}

/// The descriptors in the sets.
const STREAMS: u64 = 0;
const EVENT: u64 = 1;
const SLEEPERS: u64 = 2;
const POLLER_EVENT: u64 = 3;

/// Descriptors in a set that a thread sleeps on.
const EVENTS_MAX: usize = 2;

#[derive(Debug)]
pub(crate) struct EventSlots {
    sleepers: OwnedFd,
    poller: OwnedFd,
    /// The station's, which its peers hold.
    event: Arc<OwnedFd>,
    poller_event: OwnedFd,
    /// A child of a fork shares the sets with its parent, and does nothing to them.
    owner: OwnerProcess,
    streams: OnceLock<Weak<dyn ArrivingStreams>>,
    usage: Mutex<Usage>,
    /// Threads that step read the streams, and sleep here.
    reads: AtomicBool,
    /// `sleepers` wakes the poller. Written by the holder of the role.
    is_armed: AtomicBool,
    /// The station's event descriptor was seen readable since it was reset.
    is_signalled: AtomicBool,
}

#[derive(Debug, Default)]
struct Usage {
    /// Threads that poll: one for each session.
    pollers: u32,
    /// Peers are reached by streams.
    has_streams: bool,
}

impl Usage {
    fn reads(&self) -> bool {
        self.pollers > 0 && self.has_streams
    }
}

impl EventSlots {
    /// Of a station with this event descriptor.
    pub(crate) fn open(event: Arc<OwnedFd>) -> Result<Self, SetupError> {
        let set = || {
            retry::repeat(|| epoll::create(CreateFlags::CLOEXEC))
                .map_err(SetupError::system("making an epoll descriptor"))
        };
        let (sleepers, poller) = (set()?, set()?);
        let poller_event = retry::repeat(create_eventfd)
            .map_err(SetupError::system("making an event descriptor"))?;
        let add = |to: &OwnedFd, fd: BorrowedFd<'_>, number, flags| {
            retry::repeat(|| epoll::add(to, fd, EventData::new_u64(number), flags))
                .map_err(SetupError::system("watching a descriptor"))
        };
        add(&sleepers, event.as_fd(), EVENT, EventFlags::IN)?;
        add(&poller, sleepers.as_fd(), SLEEPERS, EventFlags::empty())?;
        add(&poller, poller_event.as_fd(), POLLER_EVENT, EventFlags::IN)?;
        Ok(Self {
            sleepers,
            poller,
            event,
            poller_event,
            owner: OwnerProcess::this(),
            streams: OnceLock::new(),
            usage: Mutex::default(),
            reads: AtomicBool::new(false),
            is_armed: AtomicBool::new(false),
            is_signalled: AtomicBool::new(false),
        })
    }

    /// The station has these streams. Called once.
    pub(crate) fn add_streams(&self, streams: &Arc<dyn ArrivingStreams>) -> Result<(), SetupError> {
        let token = EventData::new_u64(STREAMS);
        let add = || epoll::add(&self.sleepers, streams.set(), token, EventFlags::empty());
        retry::repeat(add).map_err(SetupError::system("watching the streams"))?;
        // It can only be set already if this was called before.
        let _ = self.streams.set(Arc::downgrade(streams));
        Ok(())
    }

    /// The station's event descriptor.
    pub(crate) fn event(&self) -> &OwnedFd {
        &self.event
    }

    fn usage(&self) -> MutexGuard<'_, Usage> {
        self.usage.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn streams(&self) -> Option<Arc<dyn ArrivingStreams>> {
        self.streams.get().and_then(Weak::upgrade)
    }

    /// Whether threads that step read the streams, and sleep here.
    #[inline]
    pub(crate) fn reads(&self) -> bool {
        self.reads.load(Ordering::Acquire)
    }

    /// One more thread polls, or one less. Returns whether threads sleep in another way from now
    /// on: then the caller wakes them.
    pub(crate) fn set_polled(&self, is_polled: bool) -> bool {
        self.change(|usage| {
            usage.pollers = match is_polled {
                true => usage.pollers + 1,
                false => usage.pollers.saturating_sub(1),
            }
        })
    }

    /// Peers are reached by streams, or none is. As [`set_polled`](Self::set_polled).
    pub(crate) fn set_streams(&self, has_streams: bool) -> bool {
        self.change(|usage| usage.has_streams = has_streams)
    }

    fn change(&self, change: impl FnOnce(&mut Usage)) -> bool {
        let mut usage = self.usage();
        let before = usage.reads();
        change(&mut usage);
        let reads = usage.reads();
        if reads == before || self.owner.is_inherited() {
            return false;
        }
        let Some(streams) = self.streams() else {
            return false;
        };
        let flags = match reads {
            true => EventFlags::IN,
            false => EventFlags::empty(),
        };
        let token = EventData::new_u64(STREAMS);
        rewatch(&self.sleepers, streams.set(), token, flags);
        // Release: pairs with the acquire of a thread that goes to sleep.
        self.reads.store(reads, Ordering::Release);
        // While locked, so that the last change is the last call.
        streams.set_read_by_own_thread(!reads);
        true
    }

    /// Reads what has arrived, unless another thread does, and wakes the sleeper of this
    /// process if it wants that. Called before a step.
    #[inline]
    pub(crate) fn receive(&self) {
        if self.reads() {
            self.receive_now();
        }
    }

    fn receive_now(&self) {
        if !self.owner.is_inherited()
            && let Some(streams) = self.streams()
        {
            streams.receive_and_wake();
        }
    }

    /// The holder of the role announces a sleep next: what was signalled for earlier ones is void.
    pub(crate) fn begin_epoch(&self) {
        if self.is_signalled.load(Ordering::Relaxed) && !self.owner.is_inherited() {
            self.is_signalled.store(false, Ordering::Relaxed);
            // An error means that it is at 0.
            let _ = rustix::io::read(&self.event, &mut [0; 8]);
        }
    }

    /// What arrives wakes the poller from now on, or does not. Called by the holder of the role.
    #[inline]
    pub(crate) fn arm_poller(&self, is_armed: bool) {
        if self.is_armed.load(Ordering::Relaxed) != is_armed {
            self.rearm_poller(is_armed);
        }
    }

    fn rearm_poller(&self, is_armed: bool) {
        if self.owner.is_inherited() {
            return;
        }
        let flags = match is_armed {
            true => EventFlags::IN,
            false => EventFlags::empty(),
        };
        let token = EventData::new_u64(SLEEPERS);
        match rewatch(&self.poller, self.sleepers.as_fd(), token, flags) {
            true => self.is_armed.store(is_armed, Ordering::Relaxed),
            // It tries again before it sleeps.
            false => self.wake(Sleeper::Poller),
        }
    }

    /// Wakes this thread, or keeps it from going to sleep, whichever has the role.
    pub(crate) fn wake(&self, sleeper: Sleeper) {
        let signalled = match sleeper {
            Sleeper::Poller => signal_eventfd(&self.poller_event),
            Sleeper::Follower => signal_eventfd(&*self.event),
        };
        debug_assert!(signalled.is_ok(), "{signalled:?}");
    }

    /// Blocks until the thread is woken, something arrives whose wake-up is `wanted`, a signal
    /// comes, or `timeout` is over. Returns whether it was woken.
    pub(crate) fn park(
        &self,
        sleeper: Sleeper,
        timeout: Option<Duration>,
        wanted: impl Fn(WakeReason) -> bool,
    ) -> bool {
        if self.owner.is_inherited() {
            return false;
        }
        let end = timeout.and_then(|it| Instant::now().checked_add(it));
        let mut left = timeout;
        let woken = Cell::new(false);
        loop {
            match self.wait(sleeper, left) {
                Ok(found) => {
                    woken.set(found.event);
                    if found.streams
                        && let Some(streams) = self.streams()
                    {
                        streams.receive(&|reason, wakes| {
                            if wanted(reason) {
                                wakes.fetch_add(1, Ordering::Relaxed);
                                woken.set(true);
                            }
                        });
                    }
                }
                Err(_) => return false,
            }
            left = end.map(|end| end.saturating_duration_since(Instant::now()));
            if woken.get() || left == Some(Duration::ZERO) {
                return woken.get();
            }
        }
    }

    fn wait(&self, sleeper: Sleeper, timeout: Option<Duration>) -> Result<Found, Errno> {
        let mut found = Found::default();
        let numbers = match sleeper {
            Sleeper::Follower => ready(&self.sleepers, timeout)?,
            Sleeper::Poller => {
                let numbers = ready(&self.poller, timeout)?;
                if numbers.contains(&Some(POLLER_EVENT)) {
                    let _ = rustix::io::read(&self.poller_event, &mut [0; 8]);
                    found.event = true;
                }
                match numbers.contains(&Some(SLEEPERS)) {
                    true => ready(&self.sleepers, Some(Duration::ZERO))?,
                    false => return Ok(found),
                }
            }
        };
        found.streams = numbers.contains(&Some(STREAMS));
        if numbers.contains(&Some(EVENT)) {
            self.is_signalled.store(true, Ordering::Relaxed);
            found.event = true;
        }
        Ok(found)
    }
}

/// Changes for what a set watches a descriptor that is in it. Repeated while an error may pass;
/// false if it does not.
pub(crate) fn rewatch(
    set: &OwnedFd,
    watched: BorrowedFd<'_>,
    token: EventData,
    flags: EventFlags,
) -> bool {
    let changed = retry::repeat(|| epoll::modify(set, watched, token, flags));
    if let Err(errno) = changed {
        tracing::error!(%errno, "a descriptor is not watched as it should be");
    }
    changed.is_ok()
}

/// What a thread has found when it woke.
#[derive(Debug, Default)]
struct Found {
    event: bool,
    streams: bool,
}

/// Waits for a set; returns the numbers of the descriptors that are readable.
fn ready(set: &OwnedFd, timeout: Option<Duration>) -> Result<[Option<u64>; EVENTS_MAX], Errno> {
    // A timeout that the kernel cannot take is practically for ever.
    let timeout = timeout.and_then(|it| Timespec::try_from(it).ok());
    let mut events = [const {
        Event {
            flags: EventFlags::empty(),
            data: EventData::new_u64(0),
        }
    }; EVENTS_MAX];
    let len = epoll::wait(set, &mut events[..], timeout.as_ref())?;
    let mut numbers = [None; EVENTS_MAX];
    for (number, event) in numbers.iter_mut().zip(&events[..len]) {
        *number = Some(event.data.u64());
    }
    Ok(numbers)
}

#[cfg(test)]
mod tests;
