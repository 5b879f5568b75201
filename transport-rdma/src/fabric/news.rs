//! News: in which segments words of peers may have changed since a process last looked.

use crate::memory::Region;

/// Number of buckets into which segments are divided.
pub const NEWS_BUCKETS: usize = 256;

/// A set of buckets of segments: see [`Fabric::news`](super::Fabric::news).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct NewsBuckets([u64; NEWS_BUCKETS / 64]);

impl NewsBuckets {
    /// All buckets.
    pub const ALL: Self = Self([u64::MAX; NEWS_BUCKETS / 64]);

    /// Adds a bucket.
    #[inline]
    pub fn insert(&mut self, bucket: u8) {
        self.0[usize::from(bucket) / 64] |= 1 << (bucket % 64);
    }

    /// Whether a bucket is in the set.
    #[inline]
    pub fn contains(&self, bucket: u8) -> bool {
        self.0[usize::from(bucket) / 64] >> (bucket % 64) & 1 == 1
    }

    /// Whether no bucket is in the set.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0 == [0; NEWS_BUCKETS / 64]
    }

    /// Adds the buckets of another set.
    pub fn add(&mut self, more: &Self) {
        for (word, more) in self.0.iter_mut().zip(more.0) {
            *word |= more;
        }
    }

    /// The buckets in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = u8> + use<> {
        (0..).zip(self.0).flat_map(|(at, mut word): (u8, u64)| {
            core::iter::from_fn(move || {
                let bit = word.trailing_zeros() as u8;
                (word != 0).then(|| {
                    word &= word - 1;
                    at * 64 + bit
                })
            })
        })
    }

    pub(crate) const fn from_words(words: [u64; NEWS_BUCKETS / 64]) -> Self {
        Self(words)
    }

    pub(crate) const fn words(&self) -> [u64; NEWS_BUCKETS / 64] {
        self.0
    }
}

/// What a look at the news has found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct News {
    /// The buckets of the segments in which a peer has ended a batch of pushes.
    pub buckets: NewsBuckets,
    /// Whether a peer has stored an acknowledgement by
    /// [`Fabric::acknowledge`](super::Fabric::acknowledge), in any segment.
    pub acknowledged: bool,
}

impl News {
    /// Anything may have changed.
    pub const ALL: Self = Self {
        buckets: NewsBuckets::ALL,
        acknowledged: true,
    };

    /// Whether nothing has changed.
    #[inline]
    pub fn is_empty(&self) -> bool {
        !self.acknowledged && self.buckets.is_empty()
    }
}

/// How far a process has seen the news of its peers. Begins with nothing seen.
#[derive(Debug, Default)]
pub struct NewsSeen {
    pub(crate) peers: Vec<PeerNews>,
    /// The number of the set of peers that is in `peers`; 0 for none.
    pub(crate) set: u64,
}

/// How far the news of one peer was seen.
#[derive(Debug)]
pub(crate) struct PeerNews {
    /// The peer's row that has its news.
    pub(crate) row: Region,
    pub(crate) batches: u64,
    pub(crate) acknowledgements: u64,
}

impl NewsSeen {
    /// The next look finds that anything may have changed.
    pub(crate) fn forget(&mut self) {
        self.set = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_has_the_buckets_that_were_added() {
        let mut set = NewsBuckets::default();
        assert!(set.is_empty());
        for bucket in [255, 0, 64, 63, 128] {
            set.insert(bucket);
        }
        assert_eq!(set.iter().collect::<Vec<_>>(), [0, 63, 64, 128, 255]);
        assert!(set.contains(64) && !set.contains(65));
        assert_eq!(NewsBuckets::ALL.iter().count(), NEWS_BUCKETS);
        set.add(&NewsBuckets::ALL);
        assert_eq!(set, NewsBuckets::ALL);
        assert!(!News::ALL.is_empty() && News::default().is_empty());
    }
}
