//! Where an engine's subgroups find the news of other members.

use spindle_dds_transport::NewsSeen;

/// What was seen of the news, and which subgroups are in which bucket.
#[derive(Debug, Default)]
pub(super) struct SubgroupNews {
    pub(super) seen: NewsSeen,
    /// Bucket and index of each subgroup, ascending. Kept, so that it allocates only while it grows.
    index: Vec<(u8, u32)>,
    is_indexed: bool,
}

impl SubgroupNews {
    /// The list of subgroups has changed.
    pub(super) fn forget_index(&mut self) {
        self.is_indexed = false;
    }

    /// Indexes the subgroups by their buckets, unless that is done.
    #[inline]
    pub(super) fn index(&mut self, buckets: impl Iterator<Item = u8>) {
        if !self.is_indexed {
            self.index.clear();
            self.index.extend(buckets.zip(0..));
            self.index.sort_unstable();
            self.is_indexed = true;
        }
    }

    /// The first subgroup in this bucket whose index is `from` or more.
    pub(super) fn next_in(&self, bucket: u8, from: usize) -> Option<usize> {
        let wanted = (bucket, u32::try_from(from).ok()?);
        let at = self.index.partition_point(|entry| *entry < wanted);
        let (of, subgroup) = *self.index.get(at)?;
        (of == bucket).then_some(subgroup as usize)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn each_subgroup_is_found_in_its_bucket() {
        let mut news = SubgroupNews::default();
        let in_bucket = |news: &SubgroupNews, bucket| {
            let next = |from| news.next_in(bucket, from);
            std::iter::successors(next(0), |at| next(at + 1)).collect::<Vec<_>>()
        };
        assert_eq!(in_bucket(&news, 0), []);
        news.index([7, 255, 7, 0, 7].into_iter());
        assert_eq!(in_bucket(&news, 7), [0, 2, 4]);
        assert_eq!(in_bucket(&news, 255), [1]);
        assert_eq!(in_bucket(&news, 0), [3]);
        assert_eq!(in_bucket(&news, 8), []);
        news.index([1].into_iter());
        assert_eq!(in_bucket(&news, 7), [0, 2, 4], "until it is forgotten");
        news.forget_index();
        news.index([1].into_iter());
        assert_eq!(
            (in_bucket(&news, 7), in_bucket(&news, 1)),
            (vec![], vec![0])
        );
    }
}
