//! How a participant sleeps and how its peers wake it: one sleep word and one set of
//! doorbells for all its segments (see [`doorbell_row`](super::doorbell_row)).
//!
//! - By **futex** (kernel 5.16, up to 127 peers): the sleeper waits for its doorbell in the
//!   row of each peer and for doorbell 0 of its own row, in one system call. A peer that
//!   wakes it counts the doorbell up in the *peer's own* row and wakes the futex. Of peers
//!   that often wake it together with others (see [`heard_peers`](super::heard_peers)) it
//!   waits for the broadcast doorbell, too: such a peer wakes all of them in one system call
//!   (see [`broadcast`]).
//! - By **event**: the sleeper waits for its own event descriptor, which all peers hold, and for what
//!   arrives on streams (see [`event_slots`](crate::station::event_slots)); a peer that wakes it
//!   writes to that descriptor.
//!
//! The sleep word says how its owner sleeps, so a participant changes from one to the other
//! as peers come and go. A peer that connects while a thread is about to sleep cuts that
//! sleep short, because the sleeper does not wait for the new doorbell yet.
//!
//! The *poller* and one *follower* (see [`poller_role`](crate::sleep::poller_role)) may both be
//! parked; the sleep word, or the sets of descriptors, say which of them is woken.

use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockWriteGuard};

use rustix::thread::futex::{self, Wait, WaitvFlags};

use super::doorbell_row::{
    BROADCAST_AT, BY_EVENT, HEARD_WORD, HOW, HalfDoorbell, LEASED, PARKED_WORD, SLEEP_WORD,
    SleepMode, WakeTarget, doorbell_at, is_announced,
};
use super::heard_peers::{HEARD_MAX, HeardPeers, WokenBy};
use super::news::StationNews;
use crate::fabric::counters::SleepCounters;
use crate::fabric::peers::{PeerSet, Rank};
use crate::fabric::{Sleeper, WakeInterest, WakeReason};
use crate::memory::Region;
use crate::shm::doorbell::{FUTEXES_MAX, end_of};
use crate::sleep::eventfd::signal_eventfd;
use crate::sleep::{self, Fenced, broadcast};
use crate::station::event_slots::EventSlots;

/// A doorbell that a sleeper of this process waits for.
#[derive(Debug, Clone)]
struct WatchedDoorbell {
    /// The row of the process that counts it up.
    row: Region,
    at: usize,
    /// The number of that process; 0 for this one.
    number: u16,
}

impl WatchedDoorbell {
    /// Acquire: pairs with the release of [`HalfDoorbell`]'s count.
    fn load(&self) -> u64 {
        self.row.load(self.at)
    }

    fn load_broadcast(&self) -> u64 {
        self.row.load(BROADCAST_AT)
    }
}

/// The doorbells that a parked thread waits for, with their counts when it noted them.
#[derive(Debug, Clone)]
struct DoorbellSnapshot {
    doorbells: Arc<[WatchedDoorbell]>,
    /// Of `doorbells`, and behind them of the broadcast doorbells that are heard.
    counts: [u64; FUTEXES_MAX],
    /// Whose broadcast doorbells are heard: positions in `doorbells`.
    heard: [u8; HEARD_MAX],
    heard_len: usize,
    peers: HeardPeers,
}

impl DoorbellSnapshot {
    fn new(doorbells: &Arc<[WatchedDoorbell]>) -> Self {
        Self {
            doorbells: Arc::clone(doorbells),
            counts: [0; FUTEXES_MAX],
            heard: [0; HEARD_MAX],
            heard_len: 0,
            peers: HeardPeers::default(),
        }
    }

    fn note(&mut self, doorbells: &Arc<[WatchedDoorbell]>) {
        if !Arc::ptr_eq(&self.doorbells, doorbells) {
            self.doorbells = Arc::clone(doorbells);
        }
        for (doorbell, count) in self.doorbells.iter().zip(&mut self.counts) {
            *count = doorbell.load();
        }
        self.heard_len = 0;
        let counts = self.counts.iter_mut().skip(self.doorbells.len());
        for (number, count) in self.peers.heard().zip(counts) {
            let position = self.doorbells.iter().position(|it| it.number == number);
            if let Some(position) = position {
                *count = self.doorbells[position].load_broadcast();
                self.heard[self.heard_len] = position as u8;
                self.heard_len += 1;
            }
        }
    }

    /// The doorbells whose broadcasts are heard, with the counts of these.
    fn heard(&self) -> impl Iterator<Item = (&WatchedDoorbell, u64)> {
        let heard = self.heard[..self.heard_len].iter();
        let counts = &self.counts[self.doorbells.len().min(FUTEXES_MAX)..];
        let doorbells = heard.map(|&position| &self.doorbells[usize::from(position)]);
        doorbells.zip(counts.iter().copied())
    }

    /// These peers, in the form of a heard word.
    fn heard_word(&self) -> u64 {
        let numbers = self.heard().map(|(doorbell, _)| u64::from(doorbell.number));
        numbers.fold(0, |word, number| word << 8 | number)
    }

    /// Sleeps while all counts of this thread are as noted.
    fn wait(&self, sleeper: Sleeper, timeout: Option<Duration>) -> WokenBy {
        let mut waits = [Wait::new(); FUTEXES_MAX];
        let own = self.doorbells.iter().zip(&self.counts);
        let own = own.map(|(it, &count)| sleeper.wait_while(&it.row, it.at, count));
        let heard = self.heard();
        let heard = heard.map(|(it, count)| sleeper.wait_while(&it.row, BROADCAST_AT, count));
        for (wait, futex) in waits.iter_mut().zip(own.chain(heard)) {
            *wait = futex;
        }
        // Its result (woken, a doorbell changed before, timeout, signal) does not matter: the
        // doorbells tell.
        let _ = futex::waitv(
            &waits[..self.doorbells.len() + self.heard_len],
            WaitvFlags::empty(),
            timeout.map(end_of).as_ref(),
            futex::ClockId::Monotonic,
        );
        self.woken_by(sleeper)
    }

    /// Which doorbell has changed.
    fn woken_by(&self, sleeper: Sleeper) -> WokenBy {
        let changed = |count: u64, noted: u64| sleeper.half(count) != sleeper.half(noted);
        for (doorbell, count) in self.heard() {
            if changed(doorbell.load_broadcast(), count) {
                return WokenBy::Broadcast(doorbell.number);
            }
        }
        for (doorbell, &noted) in self.doorbells.iter().zip(&self.counts) {
            let count = doorbell.load();
            if changed(count, noted) {
                let (number, in_group) = (doorbell.number, sleeper.was_in_group(count));
                return match number {
                    0 => WokenBy::Itself,
                    _ => WokenBy::Peer { number, in_group },
                };
            }
        }
        WokenBy::Nothing
    }
}

#[derive(Debug)]
struct Doorbells {
    /// My own doorbell 0, and one for each connected peer.
    all: Arc<[WatchedDoorbell]>,
    poller: DoorbellSnapshot,
    follower: DoorbellSnapshot,
    /// How the two sleep, as they noted last: by event?
    poller_by_event: bool,
    follower_by_event: bool,
}

impl Doorbells {
    /// Whether there are too many doorbells for one system call.
    fn exceed_waitv(&self) -> bool {
        self.all.len() > FUTEXES_MAX
    }
}

/// The sleepers to which one call has promised a wake-up, by how they sleep.
#[derive(Debug, Default)]
pub(super) struct PromisedWakes {
    by_event: PeerSet,
    /// Poller, follower.
    alone: [PeerSet; 2],
    hearing: [PeerSet; 2],
}

impl PromisedWakes {
    pub(super) fn add(&mut self, peer: Rank, mode: SleepMode) {
        let promised = match mode {
            SleepMode::ByEvent => &mut self.by_event,
            SleepMode::Alone(sleeper) => &mut self.alone[sleeper as usize],
            SleepMode::Hearing(sleeper) => &mut self.hearing[sleeper as usize],
        };
        promised.insert(peer);
    }

    fn len(&self) -> usize {
        let sets = self.alone.iter().chain(&self.hearing);
        sets.fold(self.by_event.len(), |sum, set| sum + set.len())
    }
}

/// The sleep of one participant.
#[derive(Debug)]
pub(super) struct SleepState {
    /// My doorbell row.
    row: Region,
    slots: EventSlots,
    /// Futexes are used: the kernel can wait for many, and the options allow it.
    futexes: bool,
    doorbells: Mutex<Doorbells>,
    /// The connected peers: those that may sleep on my broadcast doorbell.
    listeners: RwLock<Vec<Arc<WakeTarget>>>,
    /// My sleep word at which I was last woken on behalf of a peer on another host.
    woken_for_remote_at: AtomicU64,
    pub(super) counters: SleepCounters,
    /// Where my peers on this host have news, and I.
    pub(super) news: StationNews,
}

impl SleepState {
    pub(super) fn new(row: Region, slots: EventSlots, futexes: bool) -> Self {
        let own = WatchedDoorbell {
            row: row.clone(),
            at: doorbell_at(0),
            number: 0,
        };
        let all: Arc<[_]> = [own].into();
        Self {
            news: StationNews::new(&row),
            row,
            slots,
            futexes,
            doorbells: Mutex::new(Doorbells {
                poller: DoorbellSnapshot::new(&all),
                follower: DoorbellSnapshot::new(&all),
                all,
                poller_by_event: false,
                follower_by_event: false,
            }),
            listeners: RwLock::default(),
            woken_for_remote_at: AtomicU64::new(0),
            counters: SleepCounters::default(),
        }
    }

    fn doorbells(&self) -> MutexGuard<'_, Doorbells> {
        self.doorbells
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn listeners(&self) -> RwLockWriteGuard<'_, Vec<Arc<WakeTarget>>> {
        self.listeners
            .write()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// A peer has connected.
    pub(super) fn add_peer(&self, peer: &Arc<WakeTarget>) {
        self.news.add_peer(&peer.row);
        self.listeners().push(Arc::clone(peer));
        let doorbell = WatchedDoorbell {
            row: peer.row.clone(),
            at: doorbell_at(peer.their_doorbell),
            number: peer.doorbell,
        };
        self.change(|all| all.push(doorbell));
    }

    /// The peer with this doorbell row is gone: its doorbell is waited for no longer.
    pub(super) fn remove_peer(&self, row: &Region) {
        let is_other = |of: &Region| of.address() != row.address();
        self.news.remove_peer(row);
        self.listeners().retain(|peer| is_other(&peer.row));
        self.change(|all| all.retain(|doorbell| is_other(&doorbell.row)));
    }

    fn change(&self, change: impl FnOnce(&mut Vec<WatchedDoorbell>)) {
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

    pub(super) fn slots(&self) -> &EventSlots {
        &self.slots
    }

    /// Peers are reached by streams, or none is.
    pub(super) fn set_streams(&self, has_streams: bool) {
        self.sleep_as_said(self.slots.set_streams(has_streams));
    }

    /// One more thread of this process polls, or one less.
    pub(super) fn set_polled(&self, is_polled: bool) {
        self.sleep_as_said(self.slots.set_polled(is_polled));
    }

    fn sleep_as_said(&self, is_changed: bool) {
        if is_changed {
            self.wake(Sleeper::Follower);
            self.wake(Sleeper::Poller);
        }
    }

    /// Whether threads sleep by event.
    fn is_by_event(&self, doorbells: &Doorbells) -> bool {
        !self.futexes || doorbells.exceed_waitv() || self.slots.reads()
    }

    /// One thread at a time, like all calls of the sleeper.
    pub(super) fn announce_sleep(&self, interest: WakeInterest) {
        self.slots.begin_epoch();
        // Noted before the epoch is announced, so that no wake-up falls between.
        let (by_event, heard) = self.note_poller_doorbells();
        if by_event {
            self.slots.arm_poller(true);
        }
        self.announce(interest, how(Sleeper::Poller, by_event), heard);
    }

    fn announce(&self, interest: WakeInterest, how: u64, heard: u64) {
        // Before the sleep word: see `WakeTarget::promise`.
        self.row.store(HEARD_WORD, heard);
        let epoch = ((self.word().load(Ordering::Relaxed) & !HOW) >> 2) + 1;
        sleep::announce(self.word(), interest.sleep_word(epoch) | how);
        self.counters.sleeps.fetch_add(1, Ordering::Relaxed);
    }

    /// Notes the poller's doorbells and decides how it sleeps; true by event. Returns its
    /// heard word, too.
    fn note_poller_doorbells(&self) -> (bool, u64) {
        let mut doorbells = self.doorbells();
        let doorbells = &mut *doorbells;
        doorbells.poller_by_event = self.is_by_event(doorbells);
        doorbells.poller.note(&doorbells.all);
        (doorbells.poller_by_event, doorbells.poller.heard_word())
    }

    /// Notes the poller's doorbells without an announcement: a follower has the role.
    pub(super) fn note_doorbells(&self) {
        self.note_poller_doorbells();
    }

    pub(super) fn announce_follower(&self, interest: WakeInterest) {
        self.slots.begin_epoch();
        let mut doorbells = self.doorbells();
        let doorbells = &mut *doorbells;
        let by_event = self.is_by_event(doorbells);
        doorbells.follower_by_event = by_event;
        doorbells.follower.note(&doorbells.all);
        let heard = doorbells.follower.heard_word();
        self.announce(interest, how(Sleeper::Follower, by_event), heard);
    }

    pub(super) fn announce_poller(&self, interest: WakeInterest) -> bool {
        self.slots.begin_epoch();
        let doorbells = self.doorbells();
        let by_event = self.is_by_event(&doorbells);
        let waits_for_all = doorbells.poller_by_event == by_event
            && (by_event || Arc::ptr_eq(&doorbells.poller.doorbells, &doorbells.all));
        if waits_for_all {
            if by_event {
                self.slots.arm_poller(true);
            }
            let heard = doorbells.poller.heard_word();
            self.announce(interest, how(Sleeper::Poller, by_event), heard);
        }
        waits_for_all
    }

    pub(super) fn announce_follower_awake(&self) {
        self.slots.arm_poller(false);
        self.announce_awake();
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

    /// Wakes sleepers as this thread has promised; `target` finds what it takes.
    pub(super) fn wake_promised<'a>(
        &self,
        promised: &PromisedWakes,
        fenced: &Fenced,
        target: impl Fn(Rank) -> Option<&'a WakeTarget>,
    ) {
        let sleepers = promised.len();
        if sleepers == 0 {
            return;
        }
        let in_group = sleepers > 1;
        let wake_one = |how: u64, peer: Rank| {
            if let Some(peer) = target(peer) {
                self.signal_doorbell(how, peer.doorbell, &peer.event, in_group);
            }
        };
        let mut calls = promised.by_event.len() as u64;
        promised
            .by_event
            .iter()
            .for_each(|it| wake_one(BY_EVENT, it));
        for sleeper in [Sleeper::Poller, Sleeper::Follower] {
            let alone = &promised.alone[sleeper as usize];
            alone.iter().for_each(|it| wake_one(sleeper.how(), it));
            let broadcast = HalfDoorbell {
                row: &self.row,
                at: BROADCAST_AT,
                sleeper,
                in_group,
            };
            calls += alone.len() as u64;
            calls += broadcast::wake_promised(
                &promised.hearing[sleeper as usize],
                &broadcast,
                || self.are_all_promised(sleeper, fenced),
                |it| wake_one(sleeper.how(), it),
            );
        }
        let SleepCounters {
            peer_wakes,
            wake_calls,
            ..
        } = &self.counters;
        peer_wakes.fetch_add(sleepers as u64, Ordering::Relaxed);
        wake_calls.fetch_add(calls, Ordering::Relaxed);
    }

    /// Whether all that sleep on this half of my broadcast doorbell have been promised a wake-up.
    /// Not if a peer comes or goes at this moment: the caller does not wait for that.
    fn are_all_promised(&self, sleeper: Sleeper, fenced: &Fenced) -> bool {
        let listeners = self.listeners.try_read();
        listeners.is_ok_and(|all| !all.iter().any(|it| it.is_unpromised(sleeper, fenced)))
    }

    /// Whether a sleeper of this process has announced. The caller holds the lock under
    /// which the sleeper looks.
    #[inline]
    pub(super) fn has_announced(&self) -> bool {
        is_announced(sleep::epoch_under_lock(self.word()))
    }

    /// Whether a thread of this process has announced its sleep. Fences.
    pub(super) fn is_asleep(&self) -> bool {
        let word = sleep::fence_before_wake().epoch(self.word());
        WakeInterest::of_sleep_word(word).is_some()
    }

    /// Wakes the sleeper of this process if it has announced; returns whether it had.
    pub(super) fn wake_myself(&self) -> bool {
        let word = sleep::fence_before_wake().epoch(self.word());
        let wakes = is_announced(word);
        if word & LEASED != 0 {
            self.wake(Sleeper::Poller);
        } else if wakes {
            self.signal_own_doorbell(word);
        }
        wakes
    }

    /// Wakes this thread of the process, or keeps it from going to sleep, whatever was
    /// announced.
    pub(super) fn wake(&self, sleeper: Sleeper) {
        let doorbells = self.doorbells();
        let by_event = match sleeper {
            Sleeper::Poller => doorbells.poller_by_event,
            Sleeper::Follower => doorbells.follower_by_event,
        };
        drop(doorbells);
        match by_event {
            true => self.slots.wake(sleeper),
            false => self.signal_own_doorbell(sleeper.how()),
        }
    }

    /// Wakes the sleeper of this process if it has announced an interest that `includes`
    /// accepts; returns whether it had.
    pub(super) fn wake_myself_if(&self, includes: impl Fn(WakeInterest) -> bool) -> bool {
        let word = sleep::fence_before_wake().epoch(self.word());
        let asleep = WakeInterest::of_sleep_word(word).is_some_and(includes);
        if asleep {
            self.signal_own_doorbell(word);
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
            self.signal_own_doorbell(word);
        }
    }

    /// Wakes the thread of this process that announced `word`.
    fn signal_own_doorbell(&self, word: u64) {
        self.signal_doorbell(word, 0, self.slots.event(), false);
    }

    /// Wakes the thread that announced `word`. One system call.
    fn signal_doorbell(&self, word: u64, doorbell: u16, event: &OwnedFd, in_group: bool) {
        if word & BY_EVENT != 0 {
            let signalled = signal_eventfd(event);
            debug_assert!(signalled.is_ok(), "{signalled:?}");
            return;
        }
        broadcast::signal(&HalfDoorbell {
            row: &self.row,
            at: doorbell_at(doorbell),
            sleeper: Sleeper::of(word),
            in_group,
        });
    }

    /// Blocks until a noted doorbell has changed, a signal comes, or `timeout` is over.
    pub(super) fn park(&self, sleeper: Sleeper, timeout: Option<Duration>) -> bool {
        let doorbells = self.doorbells();
        let (noted, by_event) = match sleeper {
            Sleeper::Poller => (&doorbells.poller, doorbells.poller_by_event),
            Sleeper::Follower => (&doorbells.follower, doorbells.follower_by_event),
        };
        if by_event != self.is_by_event(&doorbells) {
            return true;
        }
        if by_event {
            drop(doorbells);
            return self
                .slots
                .park(sleeper, timeout, |reason| self.wants(reason));
        }
        if !Arc::ptr_eq(&doorbells.all, &noted.doorbells) {
            return true;
        }
        // The `Arc` keeps the rows mapped, whatever happens to the peers meanwhile.
        let noted = noted.clone();
        drop(doorbells);
        let heard = noted.heard_word();
        let hears_as_poller = sleeper == Sleeper::Poller && heard != 0;
        if hears_as_poller {
            self.row.store(PARKED_WORD, heard);
        }
        let woken_by = noted.wait(sleeper, timeout);
        if hears_as_poller {
            self.row.store(PARKED_WORD, 0);
        }
        if !noted.peers.ignores(woken_by) {
            let mut doorbells = self.doorbells();
            let noted = match sleeper {
                Sleeper::Poller => &mut doorbells.poller,
                Sleeper::Follower => &mut doorbells.follower,
            };
            noted.peers.note(woken_by);
        }
        woken_by != WokenBy::Nothing
    }

    /// Whether the thread that has announced its sleep wants to be woken for this reason. A thread
    /// that sleeps while another one is awake with the role looks for itself.
    fn wants(&self, reason: WakeReason) -> bool {
        let word = sleep::fence_before_wake().epoch(self.word());
        WakeInterest::of_sleep_word(word).is_none_or(|it| it.includes(reason))
    }
}

/// How a thread sleeps, in a sleep word. By event, the sets of descriptors say which thread it is.
fn how(sleeper: Sleeper, by_event: bool) -> u64 {
    match by_event {
        true => BY_EVENT,
        false => sleeper.how(),
    }
}

#[cfg(test)]
mod tests;
