//! Doorbells: how a member sleeps, and how the others wake it.
//!
//! Two mechanisms; each member says at the join which one it sleeps on, and
//! the others ring that one.
//!
//! - **Futex** (kernel 5.16, at most 128 members): the sleeper waits on one
//!   bell word in each member's row, all at once (`futex_waitv`). Whoever rings
//!   bumps the word in its *own* row, which the sleeper has mapped read-only,
//!   and wakes it. There are 16 bell words a row, chosen by the sleeper's rank,
//!   so that a ring wakes nobody else in groups of up to 16.
//! - **Event**: the sleeper polls its own event descriptor, handed to all at
//!   the join; whoever rings writes to it.
//!
//! Both remember a ring that comes before the sleeper blocks. Who is fenced is
//! not listened to any more: the kernel waits on no word of a frozen row.

use core::ffi::c_void;
use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;
use std::iter;
use std::os::fd::OwnedFd;
use std::sync::{Mutex, PoisonError};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::thread::futex::{self, Wait, WaitFlags, WaitPtr, WaitvFlags};

use super::error::JoinError;
use crate::event::write_event;
use crate::fabric::{DOORBELL_WORD, FABRIC_AREA};
use crate::mem::Region;
use crate::peers::{MEMBERS_MAX, Rank};

/// Most futexes that one call waits for.
pub(super) const FUTEXES_MAX: usize = 128;

/// Bell words in a row.
const BELLS: usize = (FABRIC_AREA - DOORBELL_WORD) / 8;
const _: () = assert!(BELLS == 16 && DOORBELL_WORD.is_multiple_of(8));

/// The word that wakes `sleeper`, in the row of whoever rings.
const fn bell_at(sleeper: Rank) -> usize {
    DOORBELL_WORD + sleeper.index() % BELLS * 8
}

/// Which doorbell a member wants to sleep on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DoorbellChoice {
    /// Futexes where the kernel has `futex_waitv` and the group is small
    /// enough, event descriptors otherwise.
    #[default]
    Auto,
    /// Futexes, or an error.
    Futex,
    /// Event descriptors.
    Event,
}

/// Which doorbell a member sleeps on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DoorbellKind {
    /// `futex_waitv` on words in the others' rows.
    Futex,
    /// `poll` on an event descriptor.
    Event,
}

impl DoorbellKind {
    /// Decides for a group on this kernel.
    pub(super) fn choose(choice: DoorbellChoice, members: usize) -> Result<Self, JoinError> {
        Self::choose_if(choice, members <= FUTEXES_MAX && has_futex_waitv())
    }

    fn choose_if(choice: DoorbellChoice, futexes: bool) -> Result<Self, JoinError> {
        match (choice, futexes) {
            (DoorbellChoice::Event, _) | (DoorbellChoice::Auto, false) => Ok(Self::Event),
            (DoorbellChoice::Auto | DoorbellChoice::Futex, true) => Ok(Self::Futex),
            (DoorbellChoice::Futex, false) => Err(JoinError::NoFutexWaitv),
        }
    }
}

/// Waiting for nothing is an invalid argument where the call exists.
pub(super) fn has_futex_waitv() -> bool {
    let nothing = futex::waitv(&[], WaitvFlags::empty(), None, futex::ClockId::Monotonic);
    nothing == Err(Errno::INVAL)
}

/// What a member sleeps on, as the others know it.
#[derive(Debug)]
pub(super) struct Bell {
    pub(super) kind: DoorbellKind,
    pub(super) event: OwnedFd,
}

/// The bells of all members, and the bed of one.
#[derive(Debug)]
pub(super) struct Doorbells {
    me: Rank,
    rows: Vec<Region>,
    bells: Vec<Bell>,
    /// Whose row I do not listen to any more.
    deaf_to: Vec<AtomicBool>,
    /// My bell word in each row before I announced.
    before: Mutex<[u64; MEMBERS_MAX]>,
    /// My event descriptor has been read since I announced.
    rung: AtomicBool,
}

impl Doorbells {
    pub(super) fn new(me: Rank, rows: Vec<Region>, bells: Vec<Bell>) -> Self {
        Self {
            me,
            deaf_to: rows.iter().map(|_| AtomicBool::new(false)).collect(),
            rows,
            bells,
            before: Mutex::new([0; MEMBERS_MAX]),
            rung: AtomicBool::new(false),
        }
    }

    /// The kind that `member` sleeps on.
    pub(super) fn kind(&self, member: Rank) -> DoorbellKind {
        self.bells[member.index()].kind
    }

    /// From my next sleep on, `peer` does not wake me by a futex.
    pub(super) fn ignore(&self, peer: Rank) {
        self.deaf_to[peer.index()].store(true, Ordering::Relaxed);
    }

    /// To be called before the epoch is announced.
    pub(super) fn before_sleep(&self) {
        self.rung.store(false, Ordering::Relaxed);
        if self.kind(self.me) == DoorbellKind::Futex {
            let mut before = self.before.lock().unwrap_or_else(PoisonError::into_inner);
            for (row, before) in self.rows.iter().zip(before.iter_mut()) {
                // Acquire: pairs with the bump in `ring`.
                *before = row.load(bell_at(self.me));
            }
        }
    }

    /// Wakes `sleeper`, which may be myself. One system call.
    pub(super) fn ring(&self, sleeper: Rank) {
        let bell = &self.bells[sleeper.index()];
        let rung = match bell.kind {
            DoorbellKind::Event => write_event(&bell.event),
            DoorbellKind::Futex => {
                let mine = &self.rows[self.me.index()];
                // Release: what I stored before is seen by whoever sees the bump.
                mine.word(bell_at(sleeper)).fetch_add(1, Ordering::Release);
                futex::wake(
                    mine.futex(bell_at(sleeper)),
                    futex::Flags::empty(),
                    i32::MAX as u32,
                )
                .map(drop)
            }
        };
        debug_assert!(rung.is_ok(), "{rung:?}");
    }

    /// Blocks until rung since `before_sleep`, a signal, or the time is over.
    pub(super) fn park(&self, timeout: Option<Duration>) -> bool {
        match self.kind(self.me) {
            DoorbellKind::Futex => self.park_on_futexes(timeout),
            DoorbellKind::Event => self.park_on_event(timeout),
        }
    }

    fn park_on_futexes(&self, timeout: Option<Duration>) -> bool {
        let before = *self.before.lock().unwrap_or_else(PoisonError::into_inner);
        let bell = bell_at(self.me);
        let mut waits = [Wait::new(); FUTEXES_MAX];
        let mut count = 0;
        let heard = iter::zip(&self.rows, before)
            .zip(&self.deaf_to)
            .filter(|(_, deaf)| !deaf.load(Ordering::Relaxed));
        for (wait, ((row, before), _)) in waits.iter_mut().zip(heard) {
            count += 1;
            // The futex is the low half: the bell counts up from its low end.
            wait.val = before & u64::from(u32::MAX);
            wait.uaddr = WaitPtr::new(row.futex(bell).as_ptr().cast::<c_void>());
            wait.flags = WaitFlags::SIZE_U32;
        }
        let until = timeout.map(end_of);
        // Whatever it returns (woken, a bell that has changed before, the end
        // of the time, a signal): the bells tell.
        let _ = futex::waitv(
            // My own row is among them: I am never fenced.
            &waits[..count],
            WaitvFlags::empty(),
            until.as_ref(),
            futex::ClockId::Monotonic,
        );
        // Acquire: pairs with the bump in `ring`.
        self.rows
            .iter()
            .zip(before)
            .any(|(row, before)| row.load(bell) != before)
    }

    fn park_on_event(&self, timeout: Option<Duration>) -> bool {
        let event = &self.bells[self.me.index()].event;
        if !self.rung.load(Ordering::Relaxed) {
            let mut fds = [PollFd::new(event, PollFlags::IN)];
            let _ = rustix::event::poll(&mut fds, timeout.map(timespec).as_ref());
            let mut count = [0; 8];
            if rustix::io::read(event, &mut count).is_ok() {
                self.rung.store(true, Ordering::Relaxed);
            }
        }
        self.rung.load(Ordering::Relaxed)
    }
}

const FOREVER: Timespec = Timespec {
    tv_sec: i64::MAX / 2,
    tv_nsec: 0,
};

/// The moment on the monotonic clock when a wait from now on ends.
pub(super) fn end_of(timeout: Duration) -> Timespec {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.checked_add(timespec(timeout)).unwrap_or(FOREVER)
}

pub(super) fn timespec(duration: Duration) -> Timespec {
    Timespec::try_from(duration).unwrap_or(FOREVER)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_choice_falls_back_only_where_it_may() {
        use DoorbellChoice::{Auto, Event, Futex};
        let choose = |choice, futexes| DoorbellKind::choose_if(choice, futexes).ok();
        for futexes in [false, true] {
            assert_eq!(choose(Event, futexes), Some(DoorbellKind::Event));
        }
        assert_eq!(choose(Auto, true), Some(DoorbellKind::Futex));
        assert_eq!(choose(Futex, true), Some(DoorbellKind::Futex));
        assert_eq!(choose(Auto, false), Some(DoorbellKind::Event));
        assert_eq!(choose(Futex, false), None);
        let crowd = DoorbellKind::choose(Auto, FUTEXES_MAX + 1).ok();
        assert_eq!(crowd, Some(DoorbellKind::Event));
    }
}
