//! What happens to a joiner, drawn by a seed.

use super::messages::Seen;
use crate::soak::Draw;

/// How a reader ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    /// It is killed when it has so many samples, if it awaits history then.
    KilledMidway { samples: u64 },
    /// It is killed some time after it has all history.
    KilledLater,
    /// It leaves some time after it has all history.
    Leaves,
    /// It stays to the end.
    Stays,
}

/// What is to be done to a reader now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    Kill,
    Leave,
}

impl Fate {
    /// Of a joiner that is to get so many samples of history: one in three is killed midway, the
    /// first one for certain.
    pub(super) fn draw(joiner: u32, history_samples: u64, draw: &mut Draw) -> Self {
        let history = usize::try_from(history_samples).unwrap_or(usize::MAX);
        let samples = draw.below(history) as u64;
        match (joiner % 3, draw.below(2)) {
            (0, _) => Self::KilledMidway { samples },
            (_, 0) => Self::KilledLater,
            (_, _) => Self::Leaves,
        }
    }

    /// Whether it is time, for a reader that is so far and had `at_history` samples with the end of
    /// history.
    pub(super) fn due(self, seen: &Seen, at_history: u64) -> Option<End> {
        let is_later = seen.has_history && seen.samples >= at_history + LIVE_SAMPLES;
        match self {
            Self::KilledMidway { samples } => {
                let is_due = seen.has_history || seen.samples >= samples;
                is_due.then_some(End::Kill)
            }
            Self::KilledLater => is_later.then_some(End::Kill),
            Self::Leaves => is_later.then_some(End::Leave),
            Self::Stays => None,
        }
    }
}

/// For so many samples a joiner stays when it has all history.
const LIVE_SAMPLES: u64 = 1000;

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(samples: u64, has_history: bool) -> Seen {
        Seen {
            samples,
            has_history,
            ..Seen::default()
        }
    }

    #[test]
    fn a_joiner_ends_midway_or_after_some_live_samples() {
        let midway = Fate::KilledMidway { samples: 10 };
        assert_eq!(midway.due(&seen(9, false), 0), None);
        assert_eq!(midway.due(&seen(10, false), 0), Some(End::Kill));
        // It was too fast.
        assert_eq!(midway.due(&seen(9, true), 9), Some(End::Kill));
        for (fate, end) in [(Fate::KilledLater, End::Kill), (Fate::Leaves, End::Leave)] {
            assert_eq!(fate.due(&seen(5000, false), 0), None);
            assert_eq!(fate.due(&seen(5000, true), 4999), None);
            assert_eq!(fate.due(&seen(5999, true), 4999), Some(end));
        }
        assert_eq!(Fate::Stays.due(&seen(5999, true), 0), None);
    }

    #[test]
    fn all_fates_are_drawn() {
        let mut draw = Draw(3);
        let fates: Vec<Fate> = (0..30).map(|it| Fate::draw(it, 100, &mut draw)).collect();
        assert!(matches!(fates[0], Fate::KilledMidway { samples } if samples < 100));
        assert!(fates.contains(&Fate::KilledLater) && fates.contains(&Fate::Leaves));
    }
}
