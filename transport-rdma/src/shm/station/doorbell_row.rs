//! A station's doorbell row, and waking the owner of another.
//!
//! It is a small memory file that the station's peers map read-only:
//!
//! ```text
//!   0      sleep word: epoch, wake interest, which thread sleeps, and how
//!   8      heard word: the peers whose broadcast doorbells that thread sleeps on, too
//!   16     parked word: the same of the poller, as long as it is parked, and 0 otherwise
//!   128    doorbell 0: of this process for its own sleeper
//!   136    doorbell 1, 2, ...: one for each peer that this station may wake
//!   2304   broadcast doorbell
//!   2432   news: count of batches of pushes, log of the buckets of the last 32 of them
//!   2472   news: count of acknowledgements that threads other than the engine's have stored
//! ```
//!
//! A *doorbell* has a half for each thread that sleeps: the low one for the poller, the high
//! one for the follower. A half is a count above, and in bit 0 whether the last wake-up was
//! one of several that were made together. The number of a peer's doorbell is the *number* of
//! that peer. A heard word has up to eight of them, one a byte; 0 is none. A number that is more than a
//! byte is heard of nowhere.

use core::ffi::c_void;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
use std::os::fd::OwnedFd;

use rustix::thread::futex::{self, Wait, WaitFlags, WaitPtr};

use crate::fabric::news::NEWS_LOG;
use crate::fabric::peers::PEERS_MAX;
use crate::fabric::{Sleeper, WakeInterest, WakeReason};
use crate::memory::Region;
use crate::sleep::{Fenced, broadcast};

/// Length of a doorbell row, in bytes.
pub(super) const DOORBELL_ROW_LEN: usize = 4096;

pub(super) const SLEEP_WORD: usize = 0;
pub(super) const HEARD_WORD: usize = 8;
pub(super) const PARKED_WORD: usize = 16;

/// Doorbells in a row; the first is the owner's.
pub(super) const DOORBELLS: usize = 1 + PEERS_MAX;

pub(super) const fn doorbell_at(doorbell: u16) -> usize {
    128 + doorbell as usize * 8
}

/// On cache lines of its own.
pub(super) const BROADCAST_AT: usize = doorbell_at(DOORBELLS as u16);
const _: () = assert!(BROADCAST_AT.is_multiple_of(128) && BROADCAST_AT + 128 <= DOORBELL_ROW_LEN);

/// The news block: a count, and the log behind it. On a cache line of its own, with the count of
/// acknowledgements: that line is all that a peer reads.
pub(super) const NEWS_AT: usize = BROADCAST_AT + 128;
pub(super) const ACKNOWLEDGED_WORD: usize = NEWS_AT + 8 + NEWS_LOG;
const _: () = assert!(NEWS_AT.is_multiple_of(64) && ACKNOWLEDGED_WORD + 8 <= NEWS_AT + 64);
const _: () = assert!(NEWS_AT + 128 <= DOORBELL_ROW_LEN);

/// In a sleep word: its owner sleeps on its event descriptor.
pub(super) const BY_EVENT: u64 = 1 << 63;
/// In a sleep word: the follower sleeps.
pub(super) const FOLLOWER: u64 = 1 << 62;
/// In a sleep word of a process that is awake to its peers: no thread looks at the moment,
/// and a nudge wakes the poller.
pub(super) const LEASED: u64 = 1 << 61;
/// The bits that mean nothing to other backends.
pub(super) const HOW: u64 = BY_EVENT | FOLLOWER | LEASED;

/// Whether a nudge wakes a sleeper that has announced this word.
pub(super) const fn is_announced(word: u64) -> bool {
    word & LEASED != 0 || WakeInterest::of_sleep_word(word).is_some()
}

/// Whether the peer with this number is in a heard word.
fn is_heard(heard: u64, number: u16) -> bool {
    heard.to_le_bytes().map(u16::from).contains(&number)
}

/// In a half of a doorbell: its last wake-up was one of several.
const IN_GROUP: u32 = 1;

/// One thread's half of a doorbell, for its owner, who wakes that thread.
#[derive(Debug)]
pub(super) struct HalfDoorbell<'a> {
    pub(super) row: &'a Region,
    pub(super) at: usize,
    pub(super) sleeper: Sleeper,
    /// The wake-up is one of several.
    pub(super) in_group: bool,
}

impl broadcast::Doorbell for HalfDoorbell<'_> {
    fn count_up(&self) {
        let next = |half: u32| (half & !IN_GROUP).wrapping_add(2) | u32::from(self.in_group);
        let counted = |doorbell: u64| {
            let (low, high) = (doorbell as u32, (doorbell >> 32) as u32);
            let (low, high) = match self.sleeper {
                Sleeper::Poller => (next(low), high),
                Sleeper::Follower => (low, next(high)),
            };
            Some(u64::from(high) << 32 | u64::from(low))
        };
        // Release: a thread that sees the new count sees what was stored before.
        let word = self.row.word(self.at);
        let counted = word.fetch_update(Ordering::Release, Ordering::Relaxed, counted);
        debug_assert!(counted.is_ok());
    }

    fn wake_queued(&self) {
        let all = i32::MAX as u32;
        let futex = self.sleeper.futex(self.row, self.at);
        let woken = futex::wake(futex, futex::Flags::empty(), all);
        debug_assert!(woken.is_ok(), "{woken:?}");
    }
}

/// Which half of each doorbell wakes which thread.
impl Sleeper {
    pub(super) fn of(sleep_word: u64) -> Self {
        match sleep_word & FOLLOWER {
            0 => Self::Poller,
            _ => Self::Follower,
        }
    }

    /// The thread, in a sleep word.
    pub(super) fn how(self) -> u64 {
        match self {
            Self::Poller => 0,
            Self::Follower => FOLLOWER,
        }
    }

    /// Its half of a doorbell.
    pub(super) fn half(self, doorbell: u64) -> u32 {
        match self {
            Self::Poller => doorbell as u32,
            Self::Follower => (doorbell >> 32) as u32,
        }
    }

    /// Whether the last wake-up by a doorbell was one of several.
    pub(super) fn was_in_group(self, doorbell: u64) -> bool {
        self.half(doorbell) & IN_GROUP != 0
    }

    fn futex(self, row: &Region, at: usize) -> &AtomicU32 {
        match self {
            Self::Poller => row.futex(at),
            Self::Follower => row.futex_high(at),
        }
    }

    /// For sleeping while its half of a doorbell has this count.
    pub(super) fn wait_while(self, row: &Region, at: usize, count: u64) -> Wait {
        let mut wait = Wait::new();
        wait.val = u64::from(self.half(count));
        wait.uaddr = WaitPtr::new(self.futex(row, at).as_ptr().cast::<c_void>());
        wait.flags = WaitFlags::SIZE_U32;
        wait
    }
}

/// How a peer sleeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SleepMode {
    /// On its event descriptor.
    ByEvent,
    /// On my doorbell for it.
    Alone(Sleeper),
    /// On that, and on my broadcast doorbell.
    Hearing(Sleeper),
}

/// What it takes to wake a peer.
#[derive(Debug)]
pub(super) struct WakeTarget {
    /// The peer's doorbell row; its sleep word is read here.
    pub(super) row: Region,
    /// The peer's event descriptor.
    pub(super) event: OwnedFd,
    /// Which doorbell of my row the peer sleeps on: the peer's number at this station.
    pub(super) doorbell: u16,
    /// Which doorbell of its row is mine: my number at the peer's station.
    pub(super) their_doorbell: u16,
    /// Its sleep word at which I woke it last: once an epoch is enough.
    woken_at: AtomicU64,
}

impl WakeTarget {
    pub(super) fn new(row: Region, event: OwnedFd, doorbell: u16, their_doorbell: u16) -> Self {
        Self {
            row,
            event,
            doorbell,
            their_doorbell,
            woken_at: AtomicU64::new(0),
        }
    }

    /// Whether the peer has announced that it sleeps.
    #[inline]
    pub(super) fn sleeps(&self, fenced: &Fenced) -> bool {
        WakeInterest::of_sleep_word(fenced.epoch(self.row.word(SLEEP_WORD))).is_some()
    }

    /// Promises the peer a wake-up if it sleeps with an interest that includes this reason, and
    /// has been promised none in this epoch: see [`broadcast`].
    pub(super) fn promise(&self, fenced: &Fenced, reason: WakeReason) -> Option<SleepMode> {
        let word = fenced.epoch(self.row.word(SLEEP_WORD));
        let wanted = WakeInterest::of_sleep_word(word).is_some_and(|it| it.includes(reason));
        (wanted && broadcast::promise(word, &self.woken_at)).then(|| self.mode(word))
    }

    /// Whether [`promise`](Self::promise) would promise the peer a wake-up.
    pub(super) fn would_be_promised(&self, fenced: &Fenced, reason: WakeReason) -> bool {
        let word = fenced.epoch(self.row.word(SLEEP_WORD));
        let wanted = WakeInterest::of_sleep_word(word).is_some_and(|it| it.includes(reason));
        wanted && self.woken_at.load(Ordering::Relaxed) != word
    }

    /// How the peer sleeps that has announced this word.
    fn mode(&self, word: u64) -> SleepMode {
        // Acquire: pairs with the release of the announcement, before which the heard word was
        // stored. If it is a later one, the peer has woken since, and looked.
        fence(Ordering::Acquire);
        let heard = self.row.load(HEARD_WORD);
        match word & BY_EVENT != 0 {
            true => SleepMode::ByEvent,
            false if is_heard(heard, self.their_doorbell) => SleepMode::Hearing(Sleeper::of(word)),
            false => SleepMode::Alone(Sleeper::of(word)),
        }
    }

    /// Whether the peer's thread sleeps on my broadcast doorbell and has been promised no
    /// wake-up.
    pub(super) fn is_unpromised(&self, sleeper: Sleeper, fenced: &Fenced) -> bool {
        let word = fenced.epoch(self.row.word(SLEEP_WORD));
        let is_asleep = WakeInterest::of_sleep_word(word).is_some();
        if is_asleep && self.mode(word) == SleepMode::Hearing(sleeper) {
            return self.woken_at.load(Ordering::Relaxed) != word;
        }
        let is_announced = is_asleep && Sleeper::of(word) == Sleeper::Poller;
        // A poller that is parked while a follower has its role: peers do not wake it.
        sleeper == Sleeper::Poller
            && !is_announced
            && is_heard(self.row.load(PARKED_WORD), self.their_doorbell)
    }
}
