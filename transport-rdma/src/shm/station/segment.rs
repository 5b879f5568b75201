//! One segment on one host: rows that its members map, and the station's doorbells.

use core::sync::atomic::Ordering;
use core::time::Duration;
use std::sync::{Arc, Mutex, PoisonError};

use super::doorbell_row::WakeTarget;
use super::shared::Shared;
use super::sleep_state::PromisedWakes;
use crate::fabric::counters::PushCounters;
use crate::fabric::failures::Failures;
use crate::fabric::news::{News, SeenNews};
use crate::fabric::peers::{PeerSet, Rank};
use crate::fabric::{
    Fabric, FabricCounters, MessagePush, Park, ParkSlots, PeerFailure, Sleeper, WakeInterest,
    WakeReason,
};
use crate::fork::OwnerProcess;
use crate::memory::Region;
use crate::memory::mapping::Mapping;
use crate::sleep::{self, Fenced};
use crate::station::segment::SegmentKey;

/// A [`Fabric`] over memory that the members of a segment map.
///
/// A push copies nothing: a peer's copy of my row *is* my row. What remains is waking: a
/// fence, one load for each peer, and a system call for each that sleeps, or one for several.
/// All segments of a [`Station`](super::Station) share its sleep state.
///
/// When it is dropped, its key is forgotten: rows that arrive late for it are discarded. Its
/// rows stay mapped as long as a [`Region`] over them lives. It keeps working without its
/// station, but reports no failures then.
#[derive(Debug)]
pub struct ShmSegment {
    shared: Arc<Shared>,
    /// A child of a fork does nothing at its end.
    owner: OwnerProcess,
    key: SegmentKey,
    me: Rank,
    rows: Vec<Region>,
    /// My row of `rows`.
    own: Region,
    mappings: Vec<Arc<Mapping>>,
    wake_targets: Vec<Option<Arc<WakeTarget>>>,
    fenced: Vec<Mutex<bool>>,
    absent: PeerSet,
    /// Set in a control segment.
    failures: Option<Arc<Failures>>,
    counters: PushCounters,
    /// Where peers find its news; `None` in a control segment, which is looked at anyway.
    news_bucket: Option<u8>,
}

/// One member's row.
pub(super) struct MemberRow {
    mapping: Arc<Mapping>,
    is_real: bool,
    pub(super) wake_target: Option<Arc<WakeTarget>>,
}

impl MemberRow {
    pub(super) fn real(mapping: Arc<Mapping>) -> Self {
        Self {
            mapping,
            is_real: true,
            wake_target: None,
        }
    }

    /// A row of zeros for a member that did not come.
    pub(super) fn zeros(mapping: Arc<Mapping>) -> Self {
        Self {
            is_real: false,
            ..Self::real(mapping)
        }
    }
}

impl ShmSegment {
    pub(super) fn new(
        shared: Arc<Shared>,
        key: SegmentKey,
        me: Rank,
        rows: Vec<MemberRow>,
        failures: Option<Arc<Failures>>,
    ) -> Self {
        let ranks = (0..).map(Rank).zip(&rows);
        let absent = ranks.filter(|(_, row)| !row.is_real);
        let regions: Vec<_> = rows.iter().map(|row| row.mapping.region()).collect();
        Self {
            own: regions[me.index()].clone(),
            shared,
            owner: OwnerProcess::this(),
            key,
            me,
            rows: regions,
            // Rows of zeros never change: they count as fenced.
            fenced: rows.iter().map(|row| Mutex::new(!row.is_real)).collect(),
            absent: absent.map(|(rank, _)| rank).collect(),
            wake_targets: rows.iter().map(|row| row.wake_target.clone()).collect(),
            mappings: rows.into_iter().map(|row| row.mapping).collect(),
            news_bucket: failures.is_none().then(|| key.news_bucket()),
            failures,
            counters: PushCounters::default(),
        }
    }

    /// Its key.
    pub fn key(&self) -> SegmentKey {
        self.key
    }

    /// Members whose rows did not arrive; they read as zeros for ever.
    pub fn absent(&self) -> PeerSet {
        self.absent
    }

    /// My latest announcement, in the format of [`WakeInterest::sleep_word`].
    pub(crate) fn sleep_word(&self) -> u64 {
        self.shared.sleep.sleep_word()
    }

    /// Whether a thread of this process has announced its sleep, in which peers wake it. Fences: one that
    /// announces later looks at what was stored before.
    pub(crate) fn is_asleep(&self) -> bool {
        self.shared.sleep.is_asleep()
    }

    /// A nudge that may wait for a millisecond: a role on a lease does not wake the poller.
    pub(crate) fn nudge_sleeper(&self) {
        let sleep = &self.shared.sleep;
        if sleep.wake_myself_if(|_| true) {
            sleep.counters.nudges.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Wakes the peers whose interest includes this reason. First all are found, so that
    /// several can be woken by one system call.
    #[cold]
    fn wake_sleepers(&self, peers: &PeerSet, reason: WakeReason, fenced: &Fenced) {
        // `None` for myself and for absent members.
        let target = |peer: Rank| self.wake_targets.get(peer.index())?.as_deref();
        let mut promised = PromisedWakes::default();
        for peer in peers.iter() {
            if let Some(mode) = target(peer).and_then(|it| it.promise(fenced, reason)) {
                promised.add(peer, mode);
            }
        }
        self.shared.sleep.wake_promised(&promised, fenced, target);
    }

    /// Says that there is news, and fences.
    #[inline]
    fn fence_for_wake(&self) -> Fenced {
        match self.news_bucket {
            Some(bucket) => self.shared.sleep.news.raise_before_wake(bucket),
            None => sleep::fence_before_wake(),
        }
    }

    /// Wakes the peers that sleep, if there are any.
    #[inline]
    fn wake_fenced(&self, peers: &PeerSet, reason: WakeReason, fenced: &Fenced) {
        // Only words of the set that can have a member are read.
        for (at, wake_targets) in self.wake_targets.chunks(64).enumerate() {
            let mut left = peers.word(at);
            while left != 0 {
                let bit = left.trailing_zeros();
                left &= left - 1;
                // `None` for myself and for absent members.
                if let Some(Some(wake_target)) = wake_targets.get(bit as usize)
                    && wake_target.sleeps(fenced)
                {
                    return self.wake_sleepers(peers, reason, fenced);
                }
            }
        }
    }

    /// Wakes the sleeper of this process, if it has announced.
    fn wake_myself(&self) {
        let sleep = &self.shared.sleep;
        if sleep.wake_myself() {
            sleep.counters.nudges.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[inline]
    fn own_row(&self) -> &Region {
        &self.own
    }
}

impl Drop for ShmSegment {
    fn drop(&mut self) {
        if !self.owner.is_inherited() {
            self.shared.forget(self.key);
        }
    }
}

impl Fabric for ShmSegment {
    #[inline]
    fn me(&self) -> Rank {
        self.me
    }

    fn members(&self) -> usize {
        self.rows.len()
    }

    #[inline]
    fn row(&self, of: Rank) -> &Region {
        &self.rows[of.index()]
    }

    #[inline]
    fn store(&self, word: usize, value: u64) {
        self.own_row().store(word, value);
    }

    #[inline]
    fn store_words<const N: usize>(&self, at: usize, values: &[u64; N]) {
        self.own_row().store_words(at, values);
    }

    fn push(&self, at: usize, len: usize, to: &PeerSet) {
        debug_assert!(at.is_multiple_of(8) && len.is_multiple_of(8));
        debug_assert!(self.own_row().contains(at, len));
        self.counters.pushed(to.len() as u64, len);
    }

    fn push_word(&self, word: usize, value: u64, to: &PeerSet) {
        self.store(word, value);
        self.counters.word_pushed(to.len() as u64);
    }

    #[inline]
    fn push_guarded(&self, ranges: &[(usize, usize)], word: usize, value: u64, to: &PeerSet) {
        self.store(word, value);
        self.counters.pushed_guarded(to.len() as u64, ranges);
    }

    #[inline]
    fn push_message<const N: usize>(
        &self,
        message: &MessagePush<'_, N>,
        to: &PeerSet,
        peers: usize,
    ) {
        debug_assert_eq!(peers, to.len());
        let row = self.own_row();
        row.store_words(message.header, message.words);
        row.store(message.guard, message.count);
        let (pushes, bytes) = (message.pushes() - 1, message.bytes());
        self.counters.pushed_all(peers as u64, pushes, bytes);
    }

    #[inline]
    fn wake(&self, peers: &PeerSet, reason: WakeReason) {
        self.wake_fenced(peers, reason, &self.fence_for_wake());
    }

    fn shares_memory(&self) -> bool {
        true
    }

    fn would_wake(&self, peers: &PeerSet, reason: WakeReason) -> bool {
        let fenced = self.fence_for_wake();
        let target = |peer: Rank| self.wake_targets.get(peer.index())?.as_deref();
        let mut targets = peers.iter().filter_map(target);
        targets.any(|it| it.would_be_promised(&fenced, reason))
    }

    fn announce_sleep(&self, interest: WakeInterest) {
        self.shared.sleep.announce_sleep(interest);
    }

    fn announce_awake(&self) {
        self.shared.sleep.announce_awake();
    }

    fn nudge(&self) {
        self.wake_myself();
    }

    #[inline]
    fn nudge_under_lock(&self) {
        if self.shared.sleep.has_announced() {
            self.wake_myself();
        }
    }

    fn acknowledge(&self, word: usize, value: u64, to: Rank) {
        // Peers see the store at once; my engine need not push it.
        self.store(word, value);
        if to == self.me {
            let waits_for_room = |interest: WakeInterest| interest.includes(WakeReason::Room);
            self.shared.sleep.wake_myself_if(waits_for_room);
        } else {
            // Not `wake`: the engine's thread may raise its own news at the same time.
            let fenced = self.shared.sleep.news.raise_acknowledged_before_wake();
            self.wake_fenced(&[to].into_iter().collect(), WakeReason::Room, &fenced);
        }
    }

    fn news(&self, seen: &mut SeenNews) -> Option<News> {
        Some(self.shared.sleep.news.look(seen))
    }

    fn news_bucket(&self) -> u8 {
        self.key.news_bucket()
    }

    fn poll(&self) -> Option<PeerFailure> {
        self.failures.as_ref()?.take()
    }

    fn fence(&self, peer: Rank) {
        // Locked until the row is frozen, so that a second caller does not return earlier.
        let fenced = &self.fenced[peer.index()];
        let mut fenced = fenced.lock().unwrap_or_else(PoisonError::into_inner);
        if peer == self.me || core::mem::replace(&mut *fenced, true) {
            return;
        }
        if let Err(error) = self.mappings[peer.index()].freeze() {
            // No memory for the copy. The row stays readable, and the peer is expelled, so
            // nothing that it writes is used.
            tracing::error!(%peer, %error, "the row of an expelled member cannot be frozen");
        }
    }

    fn counters(&self) -> FabricCounters {
        self.counters.read(&self.shared.sleep.counters)
    }
}

impl Park for ShmSegment {
    fn park(&self, timeout: Option<Duration>) -> bool {
        self.shared.sleep.park(Sleeper::Poller, timeout)
    }
}

impl ParkSlots for ShmSegment {
    fn set_polled(&self, is_polled: bool) {
        self.shared.sleep.set_polled(is_polled);
    }

    #[inline]
    fn receive(&self) {
        self.shared.sleep.slots().receive();
    }

    fn note_doorbells(&self) {
        self.shared.sleep.note_doorbells();
    }

    fn announce_follower_awake(&self) {
        self.shared.sleep.announce_follower_awake();
    }

    fn announce_follower(&self, interest: WakeInterest) {
        self.shared.sleep.announce_follower(interest);
    }

    fn announce_poller(&self, interest: WakeInterest) -> bool {
        self.shared.sleep.announce_poller(interest)
    }

    fn announce_leased(&self) {
        self.shared.sleep.announce_leased();
    }

    fn park_follower(&self, timeout: Option<Duration>) -> bool {
        self.shared.sleep.park(Sleeper::Follower, timeout)
    }

    fn wake_poller(&self) {
        self.shared.sleep.wake(Sleeper::Poller);
    }
}
