//! A station's news for its peers on its host, and its looks at theirs: see
//! [`sleep::news`](crate::sleep::news).

use core::sync::atomic::{AtomicU8, AtomicU64, Ordering, fence};
use std::sync::{PoisonError, RwLock, RwLockWriteGuard};

use super::doorbell_row::{ACKNOWLEDGED_WORD, NEWS_AT, NEWS_LOG};
use crate::fabric::news::{NEWS_BUCKETS, News, NewsBuckets, NewsSeen, PeerNews};
use crate::memory::Region;
use crate::sleep::news::{NewsBlock, look, raise_before_wake};
use crate::sleep::{Fenced, fence_before_wake};

/// The news block in a doorbell row.
struct Block<'a> {
    count: &'a AtomicU64,
    log: &'a [AtomicU8; NEWS_LOG],
}

impl<'a> Block<'a> {
    #[inline]
    fn of(row: &'a Region) -> Self {
        let (count, log) = row.word_and_bytes(NEWS_AT);
        Self { count, log }
    }
}

/// Of a peer's row only relaxed loads are made: it is mapped read-only.
impl NewsBlock for Block<'_> {
    const ENTRIES: u64 = NEWS_LOG as u64;

    #[inline]
    fn own_count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    #[inline]
    fn count(&self) -> u64 {
        let count = self.count.load(Ordering::Relaxed);
        fence(Ordering::Acquire);
        count
    }

    #[inline]
    fn set_count(&self, count: u64) {
        self.count.store(count, Ordering::Release);
    }

    #[inline]
    fn entry(&self, at: u64) -> u8 {
        let bucket = self.log[at as usize].load(Ordering::Relaxed);
        fence(Ordering::Acquire);
        bucket
    }

    #[inline]
    fn set_entry(&self, at: u64, bucket: u8) {
        self.log[at as usize].store(bucket, Ordering::Release);
    }
}

/// What a station tells its peers, and what it has of them.
#[derive(Debug)]
pub(super) struct StationNews {
    /// My doorbell row.
    own: Region,
    /// The doorbell rows of the connected peers.
    peers: RwLock<Vec<Region>>,
    /// The number of that set, from 1. Changed with the set locked.
    set: AtomicU64,
    /// Buckets in which bytes from other hosts have landed since the last look.
    landed: [AtomicU64; NEWS_BUCKETS / 64],
}

impl StationNews {
    pub(super) fn new(own: Region) -> Self {
        Self {
            own,
            peers: RwLock::default(),
            set: AtomicU64::new(1),
            landed: Default::default(),
        }
    }

    fn change(&self) -> RwLockWriteGuard<'_, Vec<Region>> {
        let peers = self.peers.write().unwrap_or_else(PoisonError::into_inner);
        // What a peer has stored and not told counts as news once it has gone.
        self.set.fetch_add(1, Ordering::Release);
        peers
    }

    pub(super) fn add_peer(&self, row: &Region) {
        self.change().push(row.clone());
    }

    pub(super) fn remove_peer(&self, row: &Region) {
        let is_other = |of: &Region| of.address() != row.address();
        self.change().retain(is_other);
    }

    /// Tells peers that a batch in this bucket has ended, and fences.
    #[inline]
    pub(super) fn raise_before_wake(&self, bucket: u8) -> Fenced {
        raise_before_wake(&Block::of(&self.own), bucket)
    }

    /// Tells peers that an acknowledgement was stored, and fences. Any thread.
    #[inline]
    pub(super) fn raise_acknowledged_before_wake(&self) -> Fenced {
        let acknowledged = self.own.word(ACKNOWLEDGED_WORD);
        // Release: a peer that sees the count sees the acknowledgement.
        acknowledged.fetch_add(1, Ordering::Release);
        fence_before_wake()
    }

    /// Bytes from other hosts have landed.
    pub(super) fn note_landed(&self, buckets: &NewsBuckets) {
        for (word, buckets) in self.landed.iter().zip(buckets.words()) {
            if buckets != 0 {
                // Release: a look that finds the bucket sees the bytes.
                word.fetch_or(buckets, Ordering::Release);
            }
        }
    }

    /// What has changed since the last look. One thread at a time.
    pub(super) fn look(&self, seen: &mut NewsSeen) -> News {
        let mut news = News::default();
        if self.set.load(Ordering::Acquire) != seen.set {
            news = News::ALL;
            self.note_peers(seen);
        }
        for peer in &mut seen.peers {
            let found = |bucket| news.buckets.insert(bucket);
            if !look(&Block::of(&peer.row), &mut peer.batches, found) {
                news.buckets = NewsBuckets::ALL;
            }
            let acknowledgements = peer.row.load(ACKNOWLEDGED_WORD);
            news.acknowledged |= acknowledgements != peer.acknowledgements;
            peer.acknowledgements = acknowledgements;
        }
        self.take_landed(&mut news);
        news
    }

    #[inline]
    fn take_landed(&self, news: &mut News) {
        let mut taken = [0; NEWS_BUCKETS / 64];
        for (word, taken) in self.landed.iter().zip(&mut taken) {
            // The load avoids a write where nothing has landed.
            if word.load(Ordering::Relaxed) != 0 {
                *taken = word.swap(0, Ordering::Acquire);
            }
        }
        news.buckets.add(&NewsBuckets::from_words(taken));
    }

    /// Notes the present set of peers, unless it is being changed at this moment.
    #[cold]
    fn note_peers(&self, seen: &mut NewsSeen) {
        let Ok(peers) = self.peers.try_read() else {
            return;
        };
        seen.set = self.set.load(Ordering::Relaxed);
        let unseen = |row: &Region| PeerNews {
            row: row.clone(),
            batches: 0,
            acknowledgements: 0,
        };
        seen.peers.clear();
        seen.peers.extend(peers.iter().map(unseen));
    }
}
