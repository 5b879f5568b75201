//! The data path between processes of one host: stores, and now and then a bell.

use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, PoisonError};

use super::doorbell::{Bell, DoorbellKind, Doorbells};
use super::error::JoinError;
use super::watch::Watch;
use crate::counters::{PushCounters, SleepCounters};
use crate::event::write_event;
use crate::fabric::{Fabric, FabricCounters, Failure, Park, Ring, SLEEP_WORD, Want};
use crate::failures::Failures;
use crate::mapping::Mapping;
use crate::mem::Region;
use crate::peers::{PeerSet, Rank};
use crate::sleep;

/// A [`Fabric`] over memory that the members map.
///
/// A push copies nothing: a peer's copy of my row *is* my row. What remains is
/// the doorbell: a fence and one load a peer, and a system call for those who
/// sleep.
#[derive(Debug)]
pub struct ShmFabric {
    /// Ends first: the watching thread uses the rest.
    _watch: Watch,
    shared: Arc<Shared>,
    /// Of a member within a local group: what its peers watch.
    lifeline: Option<OwnedFd>,
}

/// What the watching thread needs too.
#[derive(Debug)]
struct Shared {
    me: Rank,
    rows: Vec<Region>,
    mappings: Vec<Arc<Mapping>>,
    fenced: Vec<Mutex<bool>>,
    /// The sleep word of each member at which I last rang it: once is enough.
    rung_at: Vec<AtomicU64>,
    doorbells: Doorbells,
    failures: Arc<Failures>,
    pushes: PushCounters,
    sleep: SleepCounters,
}

/// What a fabric is made of.
pub(super) struct Parts {
    pub(super) me: Rank,
    /// By rank; mine is writable.
    pub(super) mappings: Vec<Arc<Mapping>>,
    pub(super) bells: Vec<Bell>,
    /// Of the others.
    pub(super) lifelines: Vec<(Rank, OwnedFd)>,
}

impl ShmFabric {
    pub(super) fn new(parts: Parts) -> Result<Self, JoinError> {
        let rows: Vec<_> = parts.mappings.iter().map(Mapping::region).collect();
        let shared = Arc::new(Shared {
            me: parts.me,
            fenced: rows.iter().map(|_| Mutex::new(false)).collect(),
            rung_at: rows.iter().map(|_| AtomicU64::new(0)).collect(),
            doorbells: Doorbells::new(parts.me, rows.clone(), parts.bells),
            rows,
            mappings: parts.mappings,
            failures: Arc::default(),
            pushes: PushCounters::default(),
            sleep: SleepCounters::default(),
        });
        let waker = Arc::clone(&shared);
        let failures = Arc::clone(&shared.failures);
        let wake = move || {
            waker.wake_myself();
        };
        let watch = Watch::start(parts.lifelines, failures, wake)?;
        Ok(Self {
            _watch: watch,
            shared,
            lifeline: None,
        })
    }

    pub(super) fn set_lifeline(&mut self, lifeline: OwnedFd) {
        self.lifeline = Some(lifeline);
    }

    /// Makes the others of a [`local_group`](super::local_group) believe that
    /// this member's process has ended. Does nothing in a real group.
    pub fn feign_death(&self) {
        if let Some(lifeline) = &self.lifeline {
            // An event descriptor at 0 takes a 1.
            let _ = write_event(lifeline);
        }
    }

    /// How a member sleeps.
    pub fn doorbell(&self, member: Rank) -> DoorbellKind {
        self.shared.doorbells.kind(member)
    }
}

impl Shared {
    fn row(&self, of: Rank) -> &Region {
        &self.rows[of.index()]
    }

    /// Rings my own bell if I have announced sleep; whether I had.
    fn wake_myself(&self) -> bool {
        let fenced = sleep::before_ring();
        let epoch = fenced.epoch(self.row(self.me).word(SLEEP_WORD));
        let asleep = Want::of_sleep_word(epoch).is_some();
        if asleep {
            self.doorbells.ring(self.me);
        }
        asleep
    }
}

impl Fabric for ShmFabric {
    fn me(&self) -> Rank {
        self.shared.me
    }

    fn members(&self) -> usize {
        self.shared.rows.len()
    }

    fn row(&self, of: Rank) -> &Region {
        self.shared.row(of)
    }

    fn store(&self, word: usize, value: u64) {
        self.shared.row(self.shared.me).store(word, value);
    }

    fn push(&self, at: usize, len: usize, to: &PeerSet) {
        debug_assert!(at.is_multiple_of(8) && len.is_multiple_of(8));
        debug_assert!(self.shared.row(self.shared.me).contains(at, len));
        self.shared.pushes.pushed(to.len() as u64, len);
    }

    fn push_word(&self, word: usize, value: u64, to: &PeerSet) {
        self.store(word, value);
        self.shared.pushes.word_pushed(to.len() as u64);
    }

    fn ring(&self, data: &PeerSet, acks: &PeerSet) {
        let shared = &*self.shared;
        let fenced = sleep::before_ring();
        for peer in data.union(acks).iter().filter(|&peer| peer != shared.me) {
            let epoch = fenced.epoch(shared.row(peer).word(SLEEP_WORD));
            let ring = if data.contains(peer) {
                Ring::Data
            } else {
                Ring::Acks
            };
            let wanted = Want::of_sleep_word(epoch).is_some_and(|want| want.answers(ring));
            // Rung once in this epoch, it looks after it has woken: that look,
            // or the one after its next announcement, sees all I have stored.
            let rung_at = &shared.rung_at[peer.index()];
            if wanted && rung_at.swap(epoch, Ordering::Relaxed) != epoch {
                shared.doorbells.ring(peer);
                shared.sleep.rings.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    fn announce_sleep(&self, want: Want) {
        let shared = &*self.shared;
        shared.doorbells.before_sleep();
        let word = shared.row(shared.me).word(SLEEP_WORD);
        let epoch = (word.load(Ordering::Relaxed) >> 2) + 1;
        sleep::announce(word, want.sleep_word(epoch));
        shared.sleep.sleeps.fetch_add(1, Ordering::Relaxed);
    }

    fn announce_awake(&self) {
        let word = self.shared.row(self.shared.me).word(SLEEP_WORD);
        word.store(word.load(Ordering::Relaxed) & !3, Ordering::Release);
    }

    fn nudge(&self) {
        if self.shared.wake_myself() {
            self.shared.sleep.nudges.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn acknowledge(&self, word: usize, value: u64, to: Rank) {
        // My peers see the store at once: no need for my engine to push it.
        self.store(word, value);
        if to == self.shared.me {
            let epoch = sleep::before_ring().epoch(self.shared.row(to).word(SLEEP_WORD));
            if Want::of_sleep_word(epoch) == Some(Want::DataAndAcks) {
                self.shared.doorbells.ring(to);
            }
        } else {
            self.ring(&PeerSet::EMPTY, &[to].into_iter().collect());
        }
    }

    fn poll(&self) -> Option<Failure> {
        self.shared.failures.take()
    }

    fn fence(&self, peer: Rank) {
        let shared = &*self.shared;
        // Held until it is done, so that a second caller does not return before.
        let fenced = &shared.fenced[peer.index()];
        let mut fenced = fenced.lock().unwrap_or_else(PoisonError::into_inner);
        if peer == shared.me || core::mem::replace(&mut *fenced, true) {
            return;
        }
        shared.doorbells.ignore(peer);
        if let Err(error) = shared.mappings[peer.index()].freeze() {
            // No memory for the copy. The row stays readable, and the peer is
            // expelled: nobody gives it room to write in.
            tracing::error!(%peer, %error, "the row of an expelled member cannot be frozen");
        }
    }

    fn counters(&self) -> FabricCounters {
        self.shared.pushes.read(&self.shared.sleep)
    }
}

impl Park for ShmFabric {
    fn park(&self, timeout: Option<Duration>) -> bool {
        self.shared.doorbells.park(timeout)
    }
}
