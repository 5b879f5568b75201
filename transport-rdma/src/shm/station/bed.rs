//! Where a participant sleeps, and how peers wake it: one sleep word and one
//! set of bells, whatever the number of its segments.
//!
//! Each station has a *bell row*, a small memory file that its peers map:
//!
//! ```text
//!   0      sleep word: epoch, what the sleeper waits for, and who sleeps, and how
//!   128    bell 0: rung by this process itself
//!   136    bell 1, 2, ...: one for each peer that this station may ring; its low half is
//!          rung at keepers, its high half at guests
//! ```
//!
//! - By **futex** (kernel 5.16, up to 127 peers), the sleeper waits on its bell in
//!   each living peer's bell row and on bell 0 of its own, all at once. Whoever
//!   rings counts that bell up, in its *own* row, and wakes it.
//! - By **event**, the sleeper polls its own event descriptor, which all peers
//!   have; whoever rings writes to it.
//!
//! How it sleeps is told with every epoch, so a participant changes from one to
//! the other as peers come and go. A peer that comes while somebody is about to
//! sleep cuts that sleep short: the sleeper does not hear it yet.
//!
//! Who sleeps is a *keeper* or its *guest* (see [`duty`](crate::poller_role)). Both may be in bed:
//! the word says whose bells are rung. A guest sleeps by futex only.

use core::ffi::c_void;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use core::time::Duration;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::event::{PollFd, PollFlags};
use rustix::thread::futex::{self, Wait, WaitFlags, WaitPtr, WaitvFlags};

use crate::counters::SleepCounters;
use crate::eventfd::signal_eventfd;
use crate::fabric::{WakeReason, Sleeper, WakeInterest};
use crate::mem::Region;
use crate::shm::doorbell::{FUTEXES_MAX, end_of, timespec};
use crate::sleep::{self, Fenced};

/// Length of a bell row, in bytes.
pub(super) const BELL_ROW_LEN: usize = 4096;

const SLEEP_WORD: usize = 0;

/// In a sleep word: its owner sleeps on its event descriptor.
const BY_EVENT: u64 = 1 << 63;
/// In a sleep word: it is the guest who sleeps.
const GUEST: u64 = 1 << 62;
/// In the sleep word of who is awake: nobody looks just now, and who has left work here
/// wakes the keeper.
const AWAY: u64 = 1 << 61;
/// What is of no interest elsewhere.
const HOW: u64 = BY_EVENT | GUEST | AWAY;

/// Whether who nudges wakes a sleeper that has announced this.
const fn is_announced(epoch: u64) -> bool {
    epoch & AWAY != 0 || WakeInterest::of_sleep_word(epoch).is_some()
}

/// Bells in a row; the first is the owner's.
pub(super) const BELLS: usize = 256;

const fn bell_at(bell: u16) -> usize {
    128 + bell as usize * 8
}
const _: () = assert!(bell_at(BELLS as u16) <= BELL_ROW_LEN);

/// A peer, as far as it is rung and sleeps.
#[derive(Debug)]
pub(super) struct Contact {
    row: Region,
    event: OwnedFd,
    /// Which of my bells it hears.
    bell: u16,
    /// Its sleep word at which I last rang it: once is enough.
    rung_at: AtomicU64,
}

impl Contact {
    pub(super) fn new(row: Region, event: OwnedFd, bell: u16) -> Self {
        Self {
            row,
            event,
            bell,
            rung_at: AtomicU64::new(0),
        }
    }

    /// Whether it has announced that it sleeps.
    #[inline]
    pub(super) fn sleeps(&self, fenced: &Fenced) -> bool {
        WakeInterest::of_sleep_word(fenced.epoch(self.row.word(SLEEP_WORD))).is_some()
    }
}

/// A bell that its owner rings for me.
#[derive(Debug)]
struct Heard {
    row: Region,
    at: usize,
}

/// Bells that a sleeper hears, and what they said when it noted them.
#[derive(Debug)]
struct Listening {
    bells: Arc<[Arc<Heard>]>,
    before: [u64; FUTEXES_MAX],
}

impl Listening {
    fn new(heard: &Arc<[Arc<Heard>]>) -> Self {
        Self {
            bells: Arc::clone(heard),
            before: [0; FUTEXES_MAX],
        }
    }

    fn note(&mut self, heard: &Arc<[Arc<Heard>]>) {
        if !Arc::ptr_eq(&self.bells, heard) {
            self.bells = Arc::clone(heard);
        }
        for (heard, before) in self.bells.iter().zip(&mut self.before) {
            // Acquire: pairs with the bump in `ring_bell`.
            *before = heard.row.load(heard.at);
        }
    }
}

#[derive(Debug)]
struct Bedding {
    /// My own bell, and those of the peers that there are.
    heard: Arc<[Arc<Heard>]>,
    keeper: Listening,
    guest: Listening,
    /// The keeper sleeps on its event descriptor.
    by_event: bool,
}

impl Bedding {
    /// Whether there are too many bells for one call.
    fn is_crowded(&self) -> bool {
        self.heard.len() > FUTEXES_MAX
    }
}

/// One participant's.
#[derive(Debug)]
pub(super) struct Bed {
    row: Region,
    event: Arc<OwnedFd>,
    /// The kernel can wait for many futexes, and I want it to.
    futexes: bool,
    bedding: Mutex<Bedding>,
    /// My event descriptor has been read since I announced.
    rung: AtomicBool,
    /// My sleep word at which I was last woken on behalf of who is elsewhere.
    answered_at: AtomicU64,
    pub(super) counters: SleepCounters,
}

impl Bed {
    pub(super) fn new(row: Region, event: Arc<OwnedFd>, futexes: bool) -> Self {
        let own = Heard {
            row: row.clone(),
            at: bell_at(0),
        };
        let heard: Arc<[_]> = [Arc::new(own)].into();
        Self {
            row,
            event,
            futexes,
            bedding: Mutex::new(Bedding {
                keeper: Listening::new(&heard),
                guest: Listening::new(&heard),
                heard,
                by_event: false,
            }),
            rung: AtomicBool::new(false),
            answered_at: AtomicU64::new(0),
            counters: SleepCounters::default(),
        }
    }

    fn bedding(&self) -> MutexGuard<'_, Bedding> {
        self.bedding.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A peer has come, in whose row this is my bell.
    pub(super) fn hear(&self, row: &Region, bell: u16) {
        let (row, at) = (row.clone(), bell_at(bell));
        self.change(|heard| heard.push(Arc::new(Heard { row, at })));
    }

    /// A peer rings no more.
    pub(super) fn unhear(&self, row: &Region) {
        self.change(|heard| heard.retain(|heard| heard.row.address() != row.address()));
    }

    fn change(&self, change: impl FnOnce(&mut Vec<Arc<Heard>>)) {
        let mut bedding = self.bedding();
        let mut heard = bedding.heard.to_vec();
        change(&mut heard);
        bedding.heard = heard.into();
        drop(bedding);
        // Whoever has noted the old ones looks again.
        self.wake(Sleeper::Follower);
        self.wake(Sleeper::Poller);
    }

    fn word(&self) -> &AtomicU64 {
        self.row.word(SLEEP_WORD)
    }

    /// One thread at a time, as all of the sleeper's calls.
    pub(super) fn announce_sleep(&self, want: WakeInterest) {
        self.rung.store(false, Ordering::Relaxed);
        // Before the epoch is announced.
        let by_event = self.make_bed();
        self.announce(want, if by_event { BY_EVENT } else { 0 });
    }

    fn announce(&self, want: WakeInterest, how: u64) {
        let epoch = ((self.word().load(Ordering::Relaxed) & !HOW) >> 2) + 1;
        sleep::announce(self.word(), want.sleep_word(epoch) | how);
        self.counters.sleeps.fetch_add(1, Ordering::Relaxed);
    }

    fn make_bed(&self) -> bool {
        let mut bedding = self.bedding();
        let bedding = &mut *bedding;
        bedding.by_event = !self.futexes || bedding.is_crowded();
        bedding.keeper.note(&bedding.heard);
        bedding.by_event
    }

    /// The keeper sleeps on after this, whoever has the duty.
    pub(super) fn note_doorbells(&self) {
        self.rung.store(false, Ordering::Relaxed);
        self.make_bed();
    }

    pub(super) fn has_follower_slot(&self) -> bool {
        let bedding = self.bedding();
        self.futexes && !bedding.is_crowded() && !bedding.by_event
    }

    pub(super) fn announce_follower(&self, want: WakeInterest) -> bool {
        let mut bedding = self.bedding();
        let bedding = &mut *bedding;
        if !self.futexes || bedding.is_crowded() {
            return false;
        }
        bedding.guest.note(&bedding.heard);
        self.announce(want, GUEST);
        true
    }

    pub(super) fn announce_poller(&self, want: WakeInterest) -> bool {
        let bedding = self.bedding();
        let hears_all = Arc::ptr_eq(&bedding.keeper.bells, &bedding.heard) && !bedding.by_event;
        if hears_all {
            self.announce(want, 0);
        }
        hears_all
    }

    pub(super) fn announce_awake(&self) {
        let awake = self.word().load(Ordering::Relaxed) & !(HOW | 3);
        self.word().store(awake, Ordering::Release);
    }

    /// Awake, so that no peer rings; but who nudges wakes the keeper. Fences as an
    /// announcement does.
    pub(super) fn announce_leased(&self) {
        let awake = self.word().load(Ordering::Relaxed) & !(HOW | 3);
        sleep::announce(self.word(), awake | AWAY);
    }

    /// What was announced last, without how it is slept.
    pub(super) fn sleep_word(&self) -> u64 {
        self.word().load(Ordering::Relaxed) & !HOW
    }

    /// Wakes a peer if it sleeps and `wanted` says that it is to be woken.
    pub(super) fn ring(&self, peer: &Contact, fenced: &Fenced, wanted: impl Fn(WakeInterest) -> bool) {
        let epoch = fenced.epoch(peer.row.word(SLEEP_WORD));
        let asks = WakeInterest::of_sleep_word(epoch).is_some_and(wanted);
        // Rung once in this epoch, it looks after it has woken: that look,
        // or the one after its next announcement, sees all I have stored.
        if asks && peer.rung_at.swap(epoch, Ordering::Relaxed) != epoch {
            self.ring_bell(epoch, peer.bell, &peer.event);
            self.counters.peer_wakes.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Whether my own sleeper has announced, for who has the lock that it looks under.
    #[inline]
    pub(super) fn has_announced(&self) -> bool {
        is_announced(sleep::seen_by_owner(self.word()))
    }

    /// Wakes my own sleeper if it has announced; whether it had.
    pub(super) fn wake_myself(&self) -> bool {
        let epoch = sleep::before_ring().epoch(self.word());
        let wakes = is_announced(epoch);
        if wakes {
            self.ring_bell(epoch, 0, &self.event);
        }
        wakes
    }

    /// Wakes who sleeps, whatever was announced, or has it not go to sleep.
    pub(super) fn wake(&self, who: Sleeper) {
        let how = match who {
            Sleeper::Follower => GUEST,
            Sleeper::Poller if self.bedding().by_event => BY_EVENT,
            Sleeper::Poller => 0,
        };
        self.ring_bell(how, 0, &self.event);
    }

    pub(super) fn wake_myself_if(&self, wanted: impl Fn(WakeInterest) -> bool) -> bool {
        let epoch = sleep::before_ring().epoch(self.word());
        let asleep = WakeInterest::of_sleep_word(epoch).is_some_and(wanted);
        if asleep {
            self.ring_bell(epoch, 0, &self.event);
        }
        asleep
    }

    /// Takes the part of somebody who is reached by other means and has rung:
    /// wakes my own sleeper, once for each time it sleeps; whether it did.
    pub(super) fn answer(&self, ring: WakeReason, counter: &AtomicU64) {
        let epoch = sleep::before_ring().epoch(self.word());
        let asks = WakeInterest::of_sleep_word(epoch).is_some_and(|want| want.answers(ring));
        let rings = asks && self.answered_at.swap(epoch, Ordering::Relaxed) != epoch;
        if rings {
            // Who has woken finds that it was rung.
            counter.fetch_add(1, Ordering::Relaxed);
            self.ring_bell(epoch, 0, &self.event);
        }
    }

    /// One system call.
    fn ring_bell(&self, epoch: u64, bell: u16, event: &OwnedFd) {
        let rung = if epoch & BY_EVENT != 0 {
            signal_eventfd(event)
        } else {
            let (at, who) = (bell_at(bell), Sleeper::of(epoch));
            // Release: what I stored before is seen by whoever sees the bump. (A low half
            // that is full rings the high one, too: once in four billion.)
            self.row.word(at).fetch_add(who.wake(), Ordering::Release);
            let all = i32::MAX as u32;
            futex::wake(who.futex(&self.row, at), futex::Flags::empty(), all).map(drop)
        };
        debug_assert!(rung.is_ok(), "{rung:?}");
    }

    /// Blocks until rung since its bells were noted, a signal, or the time is over.
    pub(super) fn park(&self, who: Sleeper, timeout: Option<Duration>) -> bool {
        let bedding = self.bedding();
        let listening = match who {
            Sleeper::Poller if bedding.by_event => {
                drop(bedding);
                return self.park_on_event(timeout);
            }
            Sleeper::Poller => &bedding.keeper,
            Sleeper::Follower => &bedding.guest,
        };
        if !Arc::ptr_eq(&bedding.heard, &listening.bells) {
            return true;
        }
        // Holds on to their rows, whatever becomes of the peers meanwhile.
        let (bells, before) = (Arc::clone(&listening.bells), listening.before);
        drop(bedding);
        park_on_futexes(who, &bells, &before, timeout)
    }

    fn park_on_event(&self, timeout: Option<Duration>) -> bool {
        if !self.rung.load(Ordering::Relaxed) {
            let mut fds = [PollFd::new(&self.event, PollFlags::IN)];
            let _ = rustix::event::poll(&mut fds, timeout.map(timespec).as_ref());
            let mut count = [0; 8];
            if rustix::io::read(&self.event, &mut count).is_ok() {
                self.rung.store(true, Ordering::Relaxed);
            }
        }
        self.rung.load(Ordering::Relaxed)
    }
}

/// Whose bells: which half of each.
impl Sleeper {
    fn of(epoch: u64) -> Self {
        match epoch & GUEST {
            0 => Self::Keeper,
            _ => Self::Guest,
        }
    }

    fn ring(self) -> u64 {
        match self {
            Self::Keeper => 1,
            Self::Guest => 1 << 32,
        }
    }

    fn half(self, bell: u64) -> u64 {
        match self {
            Self::Keeper => bell & u64::from(u32::MAX),
            Self::Guest => bell >> 32,
        }
    }

    fn futex(self, row: &Region, at: usize) -> &AtomicU32 {
        match self {
            Self::Keeper => row.futex(at),
            Self::Guest => row.futex_high(at),
        }
    }
}

fn park_on_futexes(
    who: Sleeper,
    listening: &[Arc<Heard>],
    before: &[u64; FUTEXES_MAX],
    timeout: Option<Duration>,
) -> bool {
    let mut waits = [Wait::new(); FUTEXES_MAX];
    for (wait, (heard, before)) in waits.iter_mut().zip(listening.iter().zip(before)) {
        wait.val = who.half(*before);
        wait.uaddr = WaitPtr::new(who.futex(&heard.row, heard.at).as_ptr().cast::<c_void>());
        wait.flags = WaitFlags::SIZE_U32;
    }
    // Whatever it returns (woken, a bell that has changed before, the end of
    // the time, a signal): the bells tell.
    let _ = futex::waitv(
        &waits[..listening.len()],
        WaitvFlags::empty(),
        timeout.map(end_of).as_ref(),
        futex::ClockId::Monotonic,
    );
    // Acquire: pairs with the bump in `ring_bell`.
    let mut each = listening.iter().zip(before);
    each.any(|(heard, &before)| who.half(heard.row.load(heard.at)) != who.half(before))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shm::descriptor;
    use std::thread;

    fn bed(futexes: bool) -> Bed {
        let event = Arc::new(descriptor::event().expect("an event descriptor"));
        Bed::new(Region::heap(BELL_ROW_LEN), event, futexes)
    }

    /// `ringer` as a peer that `sleeper` hears by a bell.
    fn contact(ringer: &Bed, sleeper: &Bed, bell: u16) -> Contact {
        sleeper.hear(&ringer.row, bell);
        let event = sleeper.event.try_clone().expect("a copy");
        Contact::new(sleeper.row.clone(), event, bell)
    }

    const LONG: Option<Duration> = Some(Duration::from_secs(20));

    #[test]
    fn whoever_is_heard_wakes_a_sleeper_once_for_each_sleep() {
        for futexes in [true, false] {
            let (sleeper, ringer) = (bed(futexes), bed(true));
            let contact = contact(&ringer, &sleeper, 3);
            for sleeps in 1..=3 {
                sleeper.announce_sleep(WakeInterest::Data);
                for _ in 0..2 {
                    ringer.wake(&contact, &sleep::before_ring(), |_| true);
                }
                assert_eq!(ringer.counters.peer_wakes.load(Ordering::Relaxed), sleeps);
                assert!(sleeper.park(Sleeper::Poller, LONG));
                sleeper.announce_awake();
            }
            ringer.wake(&contact, &sleep::before_ring(), |_| true);
            assert_eq!(
                ringer.counters.peer_wakes.load(Ordering::Relaxed),
                3,
                "rung awake"
            );
        }
    }

    #[test]
    fn whoever_comes_cuts_short_the_sleep_of_who_does_not_hear_it_yet() {
        let (sleeper, ringer) = (bed(true), bed(true));
        thread::scope(|scope| {
            sleeper.announce_sleep(WakeInterest::Data);
            let parked = scope.spawn(|| sleeper.park(Sleeper::Poller, LONG));
            // Most likely it sleeps by now; if not, it will not.
            thread::sleep(Duration::from_millis(20));
            contact(&ringer, &sleeper, 1);
            assert!(parked.join().expect("no panic"));
        });
        sleeper.announce_awake();
        sleeper.announce_sleep(WakeInterest::Data);
        contact(&ringer, &sleeper, 2);
        // Its own bell was rung; but for that, it would look who is there.
        assert!(sleeper.park(Sleeper::Poller, LONG));
    }

    #[test]
    fn how_it_sleeps_goes_with_the_number_of_peers() {
        let (sleeper, ringer) = (bed(true), bed(true));
        let mut contacts = Vec::new();
        for bell in 1..=FUTEXES_MAX as u16 {
            contacts.push(contact(&ringer, &sleeper, bell));
            sleeper.announce_sleep(WakeInterest::Data);
            let by_event = sleeper.word().load(Ordering::Relaxed) & BY_EVENT != 0;
            assert_eq!(by_event, usize::from(bell) == FUTEXES_MAX, "{bell}");
            let last = contacts.last().expect("one");
            ringer.ring(last, &sleep::before_ring(), |_| true);
            assert!(sleeper.park(Sleeper::Poller, LONG), "{bell}");
            sleeper.announce_awake();
            assert_eq!(sleeper.word().load(Ordering::Relaxed) & (BY_EVENT | 3), 0);
        }
        assert!(!sleeper.announce_follower(WakeInterest::Data), "too many bells");
        sleeper.unhear(&ringer.row);
        sleeper.announce_sleep(WakeInterest::Data);
        assert_eq!(sleeper.word().load(Ordering::Relaxed) & BY_EVENT, 0);
        assert!(sleeper.announce_follower(WakeInterest::Data));
    }

    /// Both are in bed; who has announced last is rung, and only that one wakes.
    #[test]
    fn who_has_the_duty_is_rung() {
        let (sleeper, ringer) = (bed(true), bed(true));
        let contact = contact(&ringer, &sleeper, 3);
        let ring = || ringer.wake(&contact, &sleep::before_ring(), |_| true);
        let nobody = Some(Duration::ZERO);
        sleeper.announce_sleep(WakeInterest::Data);
        assert!(sleeper.announce_follower(WakeInterest::Data));
        ring();
        assert!(!sleeper.park(Sleeper::Poller, nobody));
        assert!(sleeper.park(Sleeper::Follower, LONG));
        // Given back: the keeper has been in bed all the while.
        assert!(sleeper.announce_follower(WakeInterest::Data));
        assert!(sleeper.announce_poller(WakeInterest::Data));
        ring();
        assert!(!sleeper.park(Sleeper::Follower, nobody));
        assert!(sleeper.park(Sleeper::Poller, LONG));
        sleeper.note_doorbells();
        sleeper.announce_leased();
        ring();
        assert!(!sleeper.park(Sleeper::Poller, nobody), "awake to its peers");
        assert!(sleeper.has_announced(), "as who owns the engine sees");
        assert!(sleeper.wake_myself(), "but who nudges wakes the keeper");
        assert!(sleeper.park(Sleeper::Poller, LONG));
    }

    #[test]
    fn a_keeper_that_does_not_hear_a_newcomer_is_not_announced() {
        let (sleeper, ringer) = (bed(true), bed(true));
        sleeper.announce_sleep(WakeInterest::Data);
        contact(&ringer, &sleeper, 1);
        assert!(!sleeper.announce_poller(WakeInterest::Data));
        assert!(
            sleeper.park(Sleeper::Poller, LONG),
            "it is woken, and notes its bells"
        );
        sleeper.note_doorbells();
        assert!(sleeper.announce_poller(WakeInterest::Data));
    }
}
