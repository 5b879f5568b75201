//! What happens every few seconds, drawn by a seed.

use serde::Serialize;

/// Something that happens to one participant, or to all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Fault {
    /// A process is stopped for longer than the heartbeat timeout, and goes on.
    Stop,
    /// A process is killed, and another one starts in its place.
    Kill,
    /// One more participant joins, and leaves.
    JoinAndLeave,
    /// A writer and a reader are created at a participant, and deleted.
    Endpoints,
    /// The same with no descriptor left to open.
    Descriptors,
    /// The directory is full while one more participant joins.
    FullDirectory,
    /// Threads that are always busy, more than there are processors.
    Hog,
}

impl Fault {
    pub(super) const ALL: [Self; 7] = [
        Self::Stop,
        Self::Kill,
        Self::JoinAndLeave,
        Self::Endpoints,
        Self::Descriptors,
        Self::FullDirectory,
        Self::Hog,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Stop => "stopped",
            Self::Kill => "killed",
            Self::JoinAndLeave => "one joins and leaves",
            Self::Endpoints => "endpoints come and go",
            Self::Descriptors => "no descriptors",
            Self::FullDirectory => "directory full",
            Self::Hog => "processors busy",
        }
    }
}

/// SplitMix64.
#[derive(Debug)]
pub(crate) struct Draw(pub(crate) u64);

impl Draw {
    /// A number below `end`.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut drawn = self.0;
        drawn = (drawn ^ (drawn >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        drawn = (drawn ^ (drawn >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        drawn ^= drawn >> 31;
        (drawn % end.max(1) as u64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_draws_the_same_again_and_all_faults() {
        let draws = |seed| {
            let mut draw = Draw(seed);
            [(); 200].map(|()| draw.below(Fault::ALL.len()))
        };
        assert_eq!(draws(1), draws(1));
        assert_ne!(draws(1), draws(2));
        assert!((0..Fault::ALL.len()).all(|it| draws(1).contains(&it)));
    }
}
