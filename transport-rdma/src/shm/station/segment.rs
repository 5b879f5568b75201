//! One segment on one host: rows that its members map, and the station's bells.

use core::sync::atomic::Ordering;
use core::time::Duration;
use std::sync::{Arc, Mutex, PoisonError};

use super::bed::Contact;
use super::shared::Shared;
use crate::counters::PushCounters;
use crate::fabric::{ParkSlots, Fabric, FabricCounters, PeerFailure, MessagePush, Park, Sleeper, WakeInterest};
use crate::failures::Failures;
use crate::mapping::Mapping;
use crate::mem::Region;
use crate::peers::{PeerSet, Rank};
use crate::segment::SegmentKey;
use crate::sleep::{self, Fenced};

/// A [`Fabric`] over memory that the members of a segment map.
///
/// A push copies nothing: a peer's copy of my row *is* my row. What remains is
/// the doorbell: a fence and one load a peer, and a system call for those who
/// sleep. All segments of a [`Station`](super::Station) share its sleep.
///
/// Dropped, it forgets its key: what comes late for it is thrown away. Its rows
/// stay mapped for as long as a [`Region`] over them lives, and it works on
/// without its station, but is told of no failures then.
#[derive(Debug)]
pub struct ShmSegment {
    shared: Arc<Shared>,
    key: SegmentKey,
    me: Rank,
    rows: Vec<Region>,
    /// Of these, mine.
    own: Region,
    mappings: Vec<Arc<Mapping>>,
    contacts: Vec<Option<Arc<Contact>>>,
    fenced: Vec<Mutex<bool>>,
    absent: PeerSet,
    /// Of a control segment.
    failures: Option<Arc<Failures>>,
    counters: PushCounters,
}

/// One member's row.
pub(super) struct Place {
    mapping: Arc<Mapping>,
    is_real: bool,
    pub(super) contact: Option<Arc<Contact>>,
}

impl Place {
    pub(super) fn real(mapping: Arc<Mapping>) -> Self {
        Self {
            mapping,
            is_real: true,
            contact: None,
        }
    }

    /// In the place of one that did not come.
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
        places: Vec<Place>,
        failures: Option<Arc<Failures>>,
    ) -> Self {
        let ranks = (0..).map(Rank).zip(&places);
        let absent = ranks.filter(|(_, place)| !place.is_real);
        let rows: Vec<_> = places.iter().map(|place| place.mapping.region()).collect();
        Self {
            own: rows[me.index()].clone(),
            shared,
            key,
            me,
            rows,
            // Zeros stand still as they are.
            fenced: places
                .iter()
                .map(|place| Mutex::new(!place.is_real))
                .collect(),
            absent: absent.map(|(rank, _)| rank).collect(),
            contacts: places.iter().map(|place| place.contact.clone()).collect(),
            mappings: places.into_iter().map(|place| place.mapping).collect(),
            failures,
            counters: PushCounters::default(),
        }
    }

    /// Which one it is.
    pub fn key(&self) -> SegmentKey {
        self.key
    }

    /// Those whose rows did not come: they are zeros here for ever.
    pub fn absent(&self) -> PeerSet {
        self.absent
    }

    /// What I have announced last of my sleep, as [`WakeInterest::sleep_word`] has it.
    pub(crate) fn sleep_word(&self) -> u64 {
        self.shared.bed.sleep_word()
    }

    /// A nudge that can wait for a millisecond: nobody is woken for it who is away.
    pub(crate) fn nudge_sleeper(&self) {
        let bed = &self.shared.bed;
        if bed.wake_myself_if(|_| true) {
            bed.counters.nudges.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Wakes a peer if there is what it sleeps for: data, or acknowledgements, which it may not
    /// wait for.
    #[cold]
    fn wake(&self, contact: &Contact, fenced: &Fenced, is_data: bool) {
        let wanted = |want| is_data || want == WakeInterest::DataAndAcks;
        self.shared.bed.ring(contact, fenced, wanted);
    }

    /// Wakes my own sleeper, if it has announced.
    fn wake_myself(&self) {
        let bed = &self.shared.bed;
        if bed.wake_myself() {
            bed.counters.nudges.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[inline]
    fn own_row(&self) -> &Region {
        &self.own
    }
}

impl Drop for ShmSegment {
    fn drop(&mut self) {
        self.shared.forget(self.key);
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
    fn push_message<const N: usize>(&self, message: &MessagePush<'_, N>, to: &PeerSet, peers: usize) {
        debug_assert_eq!(peers, to.len());
        let row = self.own_row();
        row.store_words(message.header, message.words);
        row.store(message.guard, message.count);
        let (pushes, bytes) = (message.pushes() - 1, message.bytes());
        self.counters.pushed_all(peers as u64, pushes, bytes);
    }

    #[inline]
    fn wake(&self, data: &PeerSet, acks: &PeerSet) {
        let fenced = sleep::before_ring();
        // Those who have contacts, and no more words than that takes.
        for (at, contacts) in self.contacts.chunks(64).enumerate() {
            let data = data.word(at);
            let mut peers = data | acks.word(at);
            while peers != 0 {
                let bit = peers.trailing_zeros();
                peers &= peers - 1;
                // Nobody is there for me and for those who never were.
                if let Some(Some(contact)) = contacts.get(bit as usize)
                    && contact.sleeps(&fenced)
                {
                    self.wake(contact, &fenced, data >> bit & 1 == 1);
                }
            }
        }
    }

    fn announce_sleep(&self, want: WakeInterest) {
        self.shared.bed.announce_sleep(want);
    }

    fn announce_awake(&self) {
        self.shared.bed.announce_awake();
    }

    fn nudge(&self) {
        self.wake_myself();
    }

    #[inline]
    fn nudge_under_lock(&self) {
        if self.shared.bed.has_announced() {
            self.wake_myself();
        }
    }

    fn acknowledge(&self, word: usize, value: u64, to: Rank) {
        // My peers see the store at once: no need for my engine to push it.
        self.store(word, value);
        if to == self.me {
            let wants_acks = |want| want == WakeInterest::DataAndAcks;
            self.shared.bed.wake_myself_if(wants_acks);
        } else {
            self.wake(&PeerSet::EMPTY, &[to].into_iter().collect());
        }
    }

    fn poll(&self) -> Option<PeerFailure> {
        self.failures.as_ref()?.take()
    }

    fn fence(&self, peer: Rank) {
        // Held until it is done, so that a second caller does not return before.
        let fenced = &self.fenced[peer.index()];
        let mut fenced = fenced.lock().unwrap_or_else(PoisonError::into_inner);
        if peer == self.me || core::mem::replace(&mut *fenced, true) {
            return;
        }
        if let Err(error) = self.mappings[peer.index()].freeze() {
            // No memory for the copy. The row stays readable, and the peer is
            // expelled: nobody gives it room to write in.
            tracing::error!(%peer, %error, "the row of an expelled member cannot be frozen");
        }
    }

    fn counters(&self) -> FabricCounters {
        self.counters.read(&self.shared.bed.counters)
    }
}

impl Park for ShmSegment {
    fn park(&self, timeout: Option<Duration>) -> bool {
        self.shared.bed.park(Sleeper::Poller, timeout)
    }
}

impl ParkSlots for ShmSegment {
    fn has_follower_slot(&self) -> bool {
        self.shared.bed.has_follower_slot()
    }

    fn note_doorbells(&self) {
        self.shared.bed.note_doorbells();
    }

    fn announce_follower(&self, want: WakeInterest) -> bool {
        self.shared.bed.announce_follower(want)
    }

    fn announce_poller(&self, want: WakeInterest) -> bool {
        self.shared.bed.announce_poller(want)
    }

    fn announce_leased(&self) {
        self.shared.bed.announce_leased();
    }

    fn park_follower(&self, timeout: Option<Duration>) -> bool {
        self.shared.bed.park(Sleeper::Follower, timeout)
    }

    fn wake_poller(&self) {
        self.shared.bed.wake(Sleeper::Poller);
    }
}
