//! Ranks of members in a view, and sets of them.

use core::fmt;

/// Most members a view can have.
pub const MEMBERS_MAX: usize = 256;

/// Most peers of a station: the other members of a view, and sixteen guests. These are monitors,
/// and newcomers that ask to be let in: also one that a full group refuses is to be told why.
pub(crate) const PEERS_MAX: usize = MEMBERS_MAX - 1 + 16;

/// Position of a member in a view: 0 is the oldest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rank(pub u16);

impl Rank {
    /// The rank as an index into per-member arrays.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Display for Rank {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// A set of ranks, copied by value.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct PeerSet([u64; MEMBERS_MAX / 64]);

impl PeerSet {
    /// The empty set.
    pub const EMPTY: Self = Self([0; MEMBERS_MAX / 64]);

    /// The set with the members whose bits are set; rank 0 is the lowest bit of the first
    /// word.
    pub const fn from_words(words: [u64; MEMBERS_MAX / 64]) -> Self {
        Self(words)
    }

    /// The words that [`from_words`](Self::from_words) takes.
    #[inline]
    pub const fn words(&self) -> [u64; MEMBERS_MAX / 64] {
        self.0
    }

    /// Adds a member; ranks at or above [`MEMBERS_MAX`] are a programming error.
    pub fn insert(&mut self, rank: Rank) {
        self.0[rank.index() / 64] |= 1 << (rank.index() % 64);
    }

    /// Removes a member.
    pub fn remove(&mut self, rank: Rank) {
        self.0[rank.index() / 64] &= !(1 << (rank.index() % 64));
    }

    /// Whether `rank` is in the set.
    pub fn contains(&self, rank: Rank) -> bool {
        rank.index() < MEMBERS_MAX && self.0[rank.index() / 64] >> (rank.index() % 64) & 1 == 1
    }

    /// Whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.0 == [0; MEMBERS_MAX / 64]
    }

    /// Number of members.
    #[inline]
    pub fn len(&self) -> usize {
        // Bit by bit: most sets are small, and not every target has a popcount instruction.
        let mut len = 0;
        for mut word in self.0 {
            while word != 0 {
                word &= word - 1;
                len += 1;
            }
        }
        len
    }

    /// One of the words of [`words`](Self::words).
    #[inline]
    pub(crate) const fn word(&self, at: usize) -> u64 {
        self.0[at]
    }

    /// The union of both sets.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        Self(core::array::from_fn(|i| self.0[i] | other.0[i]))
    }

    /// Members of this set that are not in `other`.
    #[must_use]
    pub fn without(&self, other: &Self) -> Self {
        Self(core::array::from_fn(|i| self.0[i] & !other.0[i]))
    }

    /// The members in ascending order, beginning behind `me` and wrapping around; `me` last,
    /// if it is in the set. Pushes go out in this order: if it were the same everywhere, all
    /// members would load the link of the same member at a time.
    pub fn iter_behind(&self, me: Rank) -> impl Iterator<Item = Rank> + use<> {
        let behind = move |rank: &Rank| *rank > me;
        let others = self.iter().filter(move |rank| !behind(rank));
        self.iter().filter(behind).chain(others)
    }

    /// The members in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = Rank> + use<> {
        let (words, mut at) = (self.0, 0);
        let mut word = words[0];
        core::iter::from_fn(move || {
            while word == 0 {
                at += 1;
                word = *words.get(at)?;
            }
            let bit = word.trailing_zeros();
            word &= word - 1;
            Some(Rank((at * 64) as u16 + bit as u16))
        })
    }
}

impl FromIterator<Rank> for PeerSet {
    fn from_iter<I: IntoIterator<Item = Rank>>(ranks: I) -> Self {
        let mut set = Self::EMPTY;
        for rank in ranks {
            set.insert(rank);
        }
        set
    }
}

impl fmt::Debug for PeerSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set()
            .entries(self.iter().map(|rank| rank.0))
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_contains_what_was_inserted() {
        let ranks = [0, 1, 63, 64, 127, 128, 255].map(Rank);
        let mut set: PeerSet = ranks.into_iter().collect();
        assert_eq!(set.iter().collect::<Vec<_>>(), ranks);
        assert_eq!(set.len(), ranks.len());
        set.remove(Rank(64));
        assert!(!set.contains(Rank(64)) && set.contains(Rank(63)));
        assert!(set.without(&set).is_empty());
        assert_eq!(set.union(&PeerSet::EMPTY), set);
    }

    #[test]
    fn iteration_begins_behind_each_member() {
        let set: PeerSet = [0, 1, 63, 64, 255].map(Rank).into_iter().collect();
        let behind = |me: u16| set.iter_behind(Rank(me)).map(|rank| rank.0);
        assert!(behind(1).eq([63, 64, 255, 0, 1]));
        assert!(behind(2).eq([63, 64, 255, 0, 1]));
        assert!(behind(255).eq([0, 1, 63, 64, 255]));
    }
}
