//! How a participant sleeps and how its peers wake it: one sleep word and one set of
//! doorbells for all its segments.
//!
//! Each station has a *doorbell row*, a small memory file that its peers map read-only:
//!
//! ```text
//!   0      sleep word: epoch, wake interest, which thread sleeps, and how
//!   128    doorbell 0: counted up by this process for its own sleeper
//!   136    doorbell 1, 2, ...: one for each peer that this station may wake; the low half
//!          wakes the peer's poller, the high half its follower
//! ```
//!
//! - By **futex** (kernel 5.16, up to 127 peers): the sleeper waits for its doorbell in the
//!   row of each peer and for doorbell 0 of its own row, in one system call. A peer that
//!   wakes it counts the doorbell up in the *peer's own* row and wakes the futex.
//! - By **event**: the sleeper polls its own event descriptor, which all peers hold; a peer
//!   that wakes it writes to that.
//!
//! The sleep word says how its owner sleeps, so a participant changes from one to the other
//! as peers come and go. A peer that connects while a thread is about to sleep cuts that
//! sleep short, because the sleeper does not wait for the new doorbell yet.
//!
//! The *poller* and one *follower* (see [`poller_role`](crate::sleep::poller_role)) may both be
//! parked; the sleep word says which of them is woken. A follower sleeps by futex only.

use core::ffi::c_void;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use core::time::Duration;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::event::{PollFd, PollFlags};
use rustix::thread::futex::{self, Wait, WaitFlags, WaitPtr, WaitvFlags};

use crate::fabric::counters::SleepCounters;
use crate::fabric::{Sleeper, WakeInterest, WakeReason};
use crate::memory::Region;
use crate::shm::doorbell::{FUTEXES_MAX, end_of, timespec};
use crate::sleep::eventfd::signal_eventfd;
use crate::sleep::{self, Fenced};

/// Length of a doorbell row, in bytes.
pub(super) const DOORBELL_ROW_LEN: usize = 4096;

const SLEEP_WORD: usize = 0;

/// In a sleep word: its owner sleeps on its event descriptor.
const BY_EVENT: u64 = 1 << 63;
/// In a sleep word: the follower sleeps.
const FOLLOWER: u64 = 1 << 62;
/// In a sleep word of a process that is awake to its peers: no thread looks at the moment,
/// and a nudge wakes the poller.
const LEASED: u64 = 1 << 61;
/// The bits that mean nothing to other backends.
const HOW: u64 = BY_EVENT | FOLLOWER | LEASED;

/// Whether a nudge wakes a sleeper that has announced this word.
const fn is_announced(word: u64) -> bool {
    word & LEASED != 0 || WakeInterest::of_sleep_word(word).is_some()
}

/// Doorbells in a row; the first is the owner's.
pub(super) const DOORBELLS: usize = 256;

const fn doorbell_at(doorbell: u16) -> usize {
    128 + doorbell as usize * 8
}
const _: () = assert!(doorbell_at(DOORBELLS as u16) <= DOORBELL_ROW_LEN);

/// What it takes to wake a peer.
#[derive(Debug)]
pub(super) struct WakeTarget {
    /// The peer's doorbell row; its sleep word is read here.
    row: Region,
    /// The peer's event descriptor.
    event: OwnedFd,
    /// Which doorbell of my row the peer waits for.
    doorbell: u16,
    /// Its sleep word at which I woke it last: once an epoch is enough.
    woken_at: AtomicU64,
}

impl WakeTarget {
    pub(super) fn new(row: Region, event: OwnedFd, doorbell: u16) -> Self {
        Self {
            row,
            event,
            doorbell,
            woken_at: AtomicU64::new(0),
        }
    }

    /// Whether the peer has announced that it sleeps.
    #[inline]
    pub(super) fn sleeps(&self, fenced: &Fenced) -> bool {
        WakeInterest::of_sleep_word(fenced.epoch(self.row.word(SLEEP_WORD))).is_some()
    }
}

/// A doorbell that a sleeper of this process waits for.
#[derive(Debug)]
struct Doorbell {
    /// The row of the process that counts it up.
    row: Region,
    at: usize,
}

/// The doorbells that a parked thread waits for, with their counts when it noted them.
#[derive(Debug)]
struct DoorbellSnapshot {
    doorbells: Arc<[Arc<Doorbell>]>,
    counts: [u64; FUTEXES_MAX],
}

impl DoorbellSnapshot {
    fn new(doorbells: &Arc<[Arc<Doorbell>]>) -> Self {
        Self {
            doorbells: Arc::clone(doorbells),
            counts: [0; FUTEXES_MAX],
        }
    }

    fn note(&mut self, doorbells: &Arc<[Arc<Doorbell>]>) {
        if !Arc::ptr_eq(&self.doorbells, doorbells) {
            self.doorbells = Arc::clone(doorbells);
        }
        for (doorbell, count) in self.doorbells.iter().zip(&mut self.counts) {
            // Acquire: pairs with the increment in `signal_doorbell`.
            *count = doorbell.row.load(doorbell.at);
        }
    }
}

#[derive(Debug)]
struct Doorbells {
    /// My own doorbell 0, and one for each connected peer.
    all: Arc<[Arc<Doorbell>]>,
    poller: DoorbellSnapshot,
    follower: DoorbellSnapshot,
    /// The poller sleeps on its event descriptor.
    by_event: bool,
}

impl Doorbells {
    /// Whether there are too many doorbells for one system call.
    fn exceed_waitv(&self) -> bool {
        self.all.len() > FUTEXES_MAX
    }
}

/// The sleep of one participant.
#[derive(Debug)]
pub(super) struct SleepState {
    /// My doorbell row.
    row: Region,
    event: Arc<OwnedFd>,
    /// Futexes are used: the kernel can wait for many, and the options allow it.
    futexes: bool,
    doorbells: Mutex<Doorbells>,
    /// My event descriptor has been read since I announced.
    event_read: AtomicBool,
    /// My sleep word at which I was last woken on behalf of a peer on another host.
    woken_for_remote_at: AtomicU64,
    pub(super) counters: SleepCounters,
}

impl SleepState {
    pub(super) fn new(row: Region, event: Arc<OwnedFd>, futexes: bool) -> Self {
        let own = Doorbell {
            row: row.clone(),
            at: doorbell_at(0),
        };
        let all: Arc<[_]> = [Arc::new(own)].into();
        Self {
            row,
            event,
            futexes,
            doorbells: Mutex::new(Doorbells {
                poller: DoorbellSnapshot::new(&all),
                follower: DoorbellSnapshot::new(&all),
                all,
                by_event: false,
            }),
            event_read: AtomicBool::new(false),
            woken_for_remote_at: AtomicU64::new(0),
            counters: SleepCounters::default(),
        }
    }

    fn doorbells(&self) -> MutexGuard<'_, Doorbells> {
        self.doorbells
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// A peer has connected; it wakes this participant by `doorbell` of its `row`.
    pub(super) fn add_peer(&self, row: &Region, doorbell: u16) {
        let (row, at) = (row.clone(), doorbell_at(doorbell));
        self.change(|all| all.push(Arc::new(Doorbell { row, at })));
    }

    /// The peer with this doorbell row is gone: its doorbell is waited for no longer.
    pub(super) fn remove_peer(&self, row: &Region) {
        self.change(|all| all.retain(|doorbell| doorbell.row.address() != row.address()));
    }

    fn change(&self, change: impl FnOnce(&mut Vec<Arc<Doorbell>>)) {
        let mut doorbells = self.doorbells();
        let mut all = doorbells.all.to_vec();
        change(&mut all);
        doorbells.all = all.into();
        drop(doorbells);
        // A thread that has noted the old set must note the new one.
        self.wake(Sleeper::Follower);
        self.wake(Sleeper::Poller);
    }

    fn word(&self) -> &AtomicU64 {
        self.row.word(SLEEP_WORD)
    }

    /// One thread at a time, like all calls of the sleeper.
    pub(super) fn announce_sleep(&self, interest: WakeInterest) {
        self.event_read.store(false, Ordering::Relaxed);
        // Noted before the epoch is announced, so that no wake-up falls between.
        let by_event = self.note_poller_doorbells();
        self.announce(interest, if by_event { BY_EVENT } else { 0 });
    }

    fn announce(&self, interest: WakeInterest, how: u64) {
        let epoch = ((self.word().load(Ordering::Relaxed) & !HOW) >> 2) + 1;
        sleep::announce(self.word(), interest.sleep_word(epoch) | how);
        self.counters.sleeps.fetch_add(1, Ordering::Relaxed);
    }

    /// Notes the poller's doorbells and decides how it sleeps; true by event.
    fn note_poller_doorbells(&self) -> bool {
        let mut doorbells = self.doorbells();
        let doorbells = &mut *doorbells;
        doorbells.by_event = !self.futexes || doorbells.exceed_waitv();
        doorbells.poller.note(&doorbells.all);
        doorbells.by_event
    }

    /// Notes the poller's doorbells without an announcement: a follower has the role.
    pub(super) fn note_doorbells(&self) {
        self.event_read.store(false, Ordering::Relaxed);
        self.note_poller_doorbells();
    }

    pub(super) fn has_follower_slot(&self) -> bool {
        let doorbells = self.doorbells();
        self.futexes && !doorbells.exceed_waitv() && !doorbells.by_event
    }

    pub(super) fn announce_follower(&self, interest: WakeInterest) -> bool {
        let mut doorbells = self.doorbells();
        let doorbells = &mut *doorbells;
        if !self.futexes || doorbells.exceed_waitv() {
            return false;
        }
        doorbells.follower.note(&doorbells.all);
        self.announce(interest, FOLLOWER);
        true
    }

    pub(super) fn announce_poller(&self, interest: WakeInterest) -> bool {
        let doorbells = self.doorbells();
        let waits_for_all =
            Arc::ptr_eq(&doorbells.poller.doorbells, &doorbells.all) && !doorbells.by_event;
        if waits_for_all {
            self.announce(interest, 0);
        }
        waits_for_all
    }

    pub(super) fn announce_awake(&self) {
        let awake = self.word().load(Ordering::Relaxed) & !(HOW | 3);
        self.word().store(awake, Ordering::Release);
    }

    /// Awake to peers, which do not wake it; a nudge wakes the poller. Fences as an
    /// announcement of sleep does.
    pub(super) fn announce_leased(&self) {
        let awake = self.word().load(Ordering::Relaxed) & !(HOW | 3);
        sleep::announce(self.word(), awake | LEASED);
    }

    /// The last announcement, without the bits of this backend.
    pub(super) fn sleep_word(&self) -> u64 {
        self.word().load(Ordering::Relaxed) & !HOW
    }

    /// Wakes a peer if it sleeps with an interest that `includes` accepts.
    pub(super) fn wake_peer(
        &self,
        peer: &WakeTarget,
        fenced: &Fenced,
        includes: impl Fn(WakeInterest) -> bool,
    ) {
        let word = fenced.epoch(peer.row.word(SLEEP_WORD));
        let wanted = WakeInterest::of_sleep_word(word).is_some_and(includes);
        // Once an epoch is enough: the woken thread's next look, or the one after its next
        // announcement, sees all that I have stored until now.
        if wanted && peer.woken_at.swap(word, Ordering::Relaxed) != word {
            self.signal_doorbell(word, peer.doorbell, &peer.event);
            self.counters.peer_wakes.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Whether a sleeper of this process has announced. The caller holds the lock under
    /// which the sleeper looks.
    #[inline]
    pub(super) fn has_announced(&self) -> bool {
        is_announced(sleep::epoch_under_lock(self.word()))
    }

    /// Wakes the sleeper of this process if it has announced; returns whether it had.
    pub(super) fn wake_myself(&self) -> bool {
        let word = sleep::fence_before_wake().epoch(self.word());
        let wakes = is_announced(word);
        if wakes {
            self.signal_doorbell(word, 0, &self.event);
        }
        wakes
    }

    /// Wakes this thread of the process, or keeps it from going to sleep, whatever was
    /// announced.
    pub(super) fn wake(&self, sleeper: Sleeper) {
        let how = match sleeper {
            Sleeper::Follower => FOLLOWER,
            Sleeper::Poller if self.doorbells().by_event => BY_EVENT,
            Sleeper::Poller => 0,
        };
        self.signal_doorbell(how, 0, &self.event);
    }

    /// Wakes the sleeper of this process if it has announced an interest that `includes`
    /// accepts; returns whether it had.
    pub(super) fn wake_myself_if(&self, includes: impl Fn(WakeInterest) -> bool) -> bool {
        let word = sleep::fence_before_wake().epoch(self.word());
        let asleep = WakeInterest::of_sleep_word(word).is_some_and(includes);
        if asleep {
            self.signal_doorbell(word, 0, &self.event);
        }
        asleep
    }

    /// Wakes the sleeper of this process on behalf of a peer on another host, at most once
    /// an epoch, and counts it.
    pub(super) fn wake_for_remote(&self, reason: WakeReason, wakes: &AtomicU64) {
        let word = sleep::fence_before_wake().epoch(self.word());
        let wanted = WakeInterest::of_sleep_word(word).is_some_and(|it| it.includes(reason));
        if wanted && self.woken_for_remote_at.swap(word, Ordering::Relaxed) != word {
            // Counted first: the woken thread may read the counter.
            wakes.fetch_add(1, Ordering::Relaxed);
            self.signal_doorbell(word, 0, &self.event);
        }
    }

    /// Wakes the thread that announced `word`. One system call.
    fn signal_doorbell(&self, word: u64, doorbell: u16, event: &OwnedFd) {
        let signalled = if word & BY_EVENT != 0 {
            signal_eventfd(event)
        } else {
            let (at, sleeper) = (doorbell_at(doorbell), Sleeper::of(word));
            // Release: a thread that sees the new count sees what I stored before. (A low
            // half that overflows carries into the high half and wakes that, too: once in
            // four billion wake-ups.)
            self.row
                .word(at)
                .fetch_add(sleeper.increment(), Ordering::Release);
            let all = i32::MAX as u32;
            futex::wake(sleeper.futex(&self.row, at), futex::Flags::empty(), all).map(drop)
        };
        debug_assert!(signalled.is_ok(), "{signalled:?}");
    }

    /// Blocks until a noted doorbell has changed, a signal comes, or `timeout` is over.
    pub(super) fn park(&self, sleeper: Sleeper, timeout: Option<Duration>) -> bool {
        let doorbells = self.doorbells();
        let noted = match sleeper {
            Sleeper::Poller if doorbells.by_event => {
                drop(doorbells);
                return self.park_on_event(timeout);
            }
            Sleeper::Poller => &doorbells.poller,
            Sleeper::Follower => &doorbells.follower,
        };
        if !Arc::ptr_eq(&doorbells.all, &noted.doorbells) {
            return true;
        }
        // The `Arc` keeps the rows mapped, whatever happens to the peers meanwhile.
        let (waits, counts) = (Arc::clone(&noted.doorbells), noted.counts);
        drop(doorbells);
        park_on_futexes(sleeper, &waits, &counts, timeout)
    }

    fn park_on_event(&self, timeout: Option<Duration>) -> bool {
        if !self.event_read.load(Ordering::Relaxed) {
            let mut fds = [PollFd::new(&self.event, PollFlags::IN)];
            let _ = rustix::event::poll(&mut fds, timeout.map(timespec).as_ref());
            let mut count = [0; 8];
            if rustix::io::read(&self.event, &mut count).is_ok() {
                self.event_read.store(true, Ordering::Relaxed);
            }
        }
        self.event_read.load(Ordering::Relaxed)
    }
}

/// Which half of each doorbell wakes which thread.
impl Sleeper {
    fn of(sleep_word: u64) -> Self {
        match sleep_word & FOLLOWER {
            0 => Self::Poller,
            _ => Self::Follower,
        }
    }

    fn increment(self) -> u64 {
        match self {
            Self::Poller => 1,
            Self::Follower => 1 << 32,
        }
    }

    fn half(self, doorbell: u64) -> u64 {
        match self {
            Self::Poller => doorbell & u64::from(u32::MAX),
            Self::Follower => doorbell >> 32,
        }
    }

    fn futex(self, row: &Region, at: usize) -> &AtomicU32 {
        match self {
            Self::Poller => row.futex(at),
            Self::Follower => row.futex_high(at),
        }
    }
}

fn park_on_futexes(
    sleeper: Sleeper,
    doorbells: &[Arc<Doorbell>],
    counts: &[u64; FUTEXES_MAX],
    timeout: Option<Duration>,
) -> bool {
    let mut waits = [Wait::new(); FUTEXES_MAX];
    for (wait, (doorbell, count)) in waits.iter_mut().zip(doorbells.iter().zip(counts)) {
        let futex = sleeper.futex(&doorbell.row, doorbell.at);
        wait.val = sleeper.half(*count);
        wait.uaddr = WaitPtr::new(futex.as_ptr().cast::<c_void>());
        wait.flags = WaitFlags::SIZE_U32;
    }
    // Its result (woken, a doorbell changed before, timeout, signal) does not matter: the
    // doorbells tell.
    let _ = futex::waitv(
        &waits[..doorbells.len()],
        WaitvFlags::empty(),
        timeout.map(end_of).as_ref(),
        futex::ClockId::Monotonic,
    );
    // Acquire: pairs with the increment in `signal_doorbell`.
    let mut each = doorbells.iter().zip(counts);
    each.any(|(it, &count)| sleeper.half(it.row.load(it.at)) != sleeper.half(count))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shm::descriptor;
    use std::thread;

    fn sleep_state(futexes: bool) -> SleepState {
        let event = Arc::new(descriptor::event().expect("an event descriptor"));
        SleepState::new(Region::heap(DOORBELL_ROW_LEN), event, futexes)
    }

    /// `waker` as a peer that `sleeper` doorbell by a doorbell.
    fn wake_target(waker: &SleepState, sleeper: &SleepState, doorbell: u16) -> WakeTarget {
        sleeper.add_peer(&waker.row, doorbell);
        let event = sleeper.event.try_clone().expect("a copy");
        WakeTarget::new(sleeper.row.clone(), event, doorbell)
    }

    const LONG: Option<Duration> = Some(Duration::from_secs(20));

    #[test]
    fn a_peer_wakes_a_sleeper_once_an_epoch() {
        for futexes in [true, false] {
            let (sleeper, waker) = (sleep_state(futexes), sleep_state(true));
            let wake_target = wake_target(&waker, &sleeper, 3);
            for sleeps in 1..=3 {
                sleeper.announce_sleep(WakeInterest::Data);
                for _ in 0..2 {
                    waker.wake_peer(&wake_target, &sleep::fence_before_wake(), |_| true);
                }
                assert_eq!(waker.counters.peer_wakes.load(Ordering::Relaxed), sleeps);
                assert!(sleeper.park(Sleeper::Poller, LONG));
                sleeper.announce_awake();
            }
            waker.wake_peer(&wake_target, &sleep::fence_before_wake(), |_| true);
            assert_eq!(
                waker.counters.peer_wakes.load(Ordering::Relaxed),
                3,
                "awake"
            );
        }
    }

    #[test]
    fn a_new_peer_cuts_short_a_sleep_that_does_not_wait_for_its_doorbell() {
        let (sleeper, waker) = (sleep_state(true), sleep_state(true));
        thread::scope(|scope| {
            sleeper.announce_sleep(WakeInterest::Data);
            let parked = scope.spawn(|| sleeper.park(Sleeper::Poller, LONG));
            // It probably sleeps by now; if not, it must not fall asleep.
            thread::sleep(Duration::from_millis(20));
            wake_target(&waker, &sleeper, 1);
            assert!(parked.join().expect("no panic"));
        });
        sleeper.announce_awake();
        sleeper.announce_sleep(WakeInterest::Data);
        wake_target(&waker, &sleeper, 2);
        // Its own doorbell was signalled.
        assert!(sleeper.park(Sleeper::Poller, LONG));
    }

    #[test]
    fn more_peers_than_futexes_change_sleep_to_the_event_descriptor() {
        let (sleeper, waker) = (sleep_state(true), sleep_state(true));
        let mut wake_targets = Vec::new();
        for doorbell in 1..=FUTEXES_MAX as u16 {
            wake_targets.push(wake_target(&waker, &sleeper, doorbell));
            sleeper.announce_sleep(WakeInterest::Data);
            let by_event = sleeper.word().load(Ordering::Relaxed) & BY_EVENT != 0;
            assert_eq!(by_event, usize::from(doorbell) == FUTEXES_MAX, "{doorbell}");
            let last = wake_targets.last().expect("one");
            waker.wake_peer(last, &sleep::fence_before_wake(), |_| true);
            assert!(sleeper.park(Sleeper::Poller, LONG), "{doorbell}");
            sleeper.announce_awake();
            assert_eq!(sleeper.word().load(Ordering::Relaxed) & (BY_EVENT | 3), 0);
        }
        assert!(
            !sleeper.announce_follower(WakeInterest::Data),
            "too many doorbells"
        );
        sleeper.remove_peer(&waker.row);
        sleeper.announce_sleep(WakeInterest::Data);
        assert_eq!(sleeper.word().load(Ordering::Relaxed) & BY_EVENT, 0);
        assert!(sleeper.announce_follower(WakeInterest::Data));
    }

    /// Both are parked; only the thread that announced last is woken.
    #[test]
    fn the_thread_that_announced_last_is_woken() {
        let (sleeper, waker) = (sleep_state(true), sleep_state(true));
        let wake_target = wake_target(&waker, &sleeper, 3);
        let wake = || waker.wake_peer(&wake_target, &sleep::fence_before_wake(), |_| true);
        let at_once = Some(Duration::ZERO);
        sleeper.announce_sleep(WakeInterest::Data);
        assert!(sleeper.announce_follower(WakeInterest::Data));
        wake();
        assert!(!sleeper.park(Sleeper::Poller, at_once));
        assert!(sleeper.park(Sleeper::Follower, LONG));
        // The role is handed back: the poller has been parked all the while.
        assert!(sleeper.announce_follower(WakeInterest::Data));
        assert!(sleeper.announce_poller(WakeInterest::Data));
        wake();
        assert!(!sleeper.park(Sleeper::Follower, at_once));
        assert!(sleeper.park(Sleeper::Poller, LONG));
        sleeper.note_doorbells();
        sleeper.announce_leased();
        wake();
        assert!(
            !sleeper.park(Sleeper::Poller, at_once),
            "awake to its peers"
        );
        assert!(sleeper.has_announced(), "seen under the engine's lock");
        assert!(sleeper.wake_myself(), "a nudge wakes the poller");
        assert!(sleeper.park(Sleeper::Poller, LONG));
    }

    #[test]
    fn a_poller_that_does_not_wait_for_a_new_peer_is_not_announced() {
        let (sleeper, waker) = (sleep_state(true), sleep_state(true));
        sleeper.announce_sleep(WakeInterest::Data);
        wake_target(&waker, &sleeper, 1);
        assert!(!sleeper.announce_poller(WakeInterest::Data));
        assert!(
            sleeper.park(Sleeper::Poller, LONG),
            "woken, and notes its doorbells"
        );
        sleeper.note_doorbells();
        assert!(sleeper.announce_poller(WakeInterest::Data));
    }
}
