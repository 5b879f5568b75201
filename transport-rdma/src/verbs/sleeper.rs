//! Whether a peer sleeps, as far as I know, and whether it is to be rung.
//!
//! The peer writes its sleep word into a line of my memory when it announces itself. It
//! may be on its way when I look, and then nobody would look when it comes: so what was
//! pushed without a ring is remembered, until I see a word that is new, or announce that
//! I sleep myself. Then the doorbell goes out whatever I see.
//!
//! ```text
//!   I                                            the peer
//!   pushed, no ring: UNRUNG := kind              word := odd, to my line
//!   look at the line: old                        looks once more, sleeps
//!   ...
//!   step again: new word in the line?  ring      woken
//!   or: announce that I sleep:         ring      woken, or awake
//! ```

use core::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use crate::fabric::{WakeInterest, WakeReason};

/// One peer's.
#[derive(Debug, Default)]
pub(super) struct Sleeper {
    /// What was pushed without a ring: 0, or a ring's number plus one.
    unrung: AtomicU8,
    /// Its sleep word at which I last rang it: once is enough.
    rung_at: AtomicU64,
}

impl Sleeper {
    /// Something was pushed that the peer may have to be woken for.
    pub(super) fn note(&self, ring: WakeReason) {
        self.unrung.fetch_max(ring as u8 + 1, Ordering::SeqCst);
    }

    /// Whether to ring, and for what: `word` is what stands in the peer's line, `asleep`
    /// that I have announced that I sleep. Says it once.
    pub(super) fn due(&self, word: u64, asleep: bool) -> Option<WakeReason> {
        let ring = noted(self.unrung.load(Ordering::SeqCst))?;
        let wants = WakeInterest::of_sleep_word(word).is_some_and(|want| want.includes(ring));
        let sees = wants && self.rung_at.load(Ordering::Relaxed) != word;
        if !sees && !asleep {
            return None;
        }
        // Somebody else may have taken it, or noted more, which the word may not want.
        let ring = noted(self.unrung.swap(0, Ordering::SeqCst))?;
        if wants {
            self.rung_at.store(word, Ordering::Relaxed);
        }
        Some(ring)
    }
}

/// What was noted.
fn noted(unrung: u8) -> Option<WakeReason> {
    match unrung {
        0 => None,
        1 => Some(WakeReason::Acks),
        _ => Some(WakeReason::Data),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sleeper_is_rung_once_for_each_time_it_sleeps() {
        let sleeper = Sleeper::default();
        let word = |epoch| WakeInterest::Data.sleep_word(epoch);
        assert_eq!(sleeper.due(word(1), true), None, "nothing was pushed");
        sleeper.note(WakeReason::Data);
        assert_eq!(sleeper.due(0, false), None, "it is awake");
        assert_eq!(sleeper.due(word(1), false), Some(WakeReason::Data));
        sleeper.note(WakeReason::Data);
        assert_eq!(sleeper.due(word(1), false), None, "it was rung");
        assert_eq!(
            sleeper.due(word(2), false),
            Some(WakeReason::Data),
            "it slept again"
        );
        assert_eq!(
            sleeper.due(word(3), false),
            None,
            "nothing was pushed since"
        );
    }

    #[test]
    fn who_goes_to_sleep_rings_whatever_it_sees() {
        let sleeper = Sleeper::default();
        sleeper.note(WakeReason::Acks);
        assert_eq!(sleeper.due(0, true), Some(WakeReason::Acks));
        assert_eq!(sleeper.due(0, true), None);
    }

    /// A doorbell for acknowledgements does not wake who wants data only: it is not rung
    /// for that word.
    #[test]
    fn a_ring_that_is_not_wanted_does_not_count() {
        let sleeper = Sleeper::default();
        let word = WakeInterest::Data.sleep_word(1);
        sleeper.note(WakeReason::Acks);
        assert_eq!(sleeper.due(word, false), None, "not wanted");
        assert_eq!(sleeper.due(word, true), Some(WakeReason::Acks));
        sleeper.note(WakeReason::Data);
        assert_eq!(sleeper.due(word, false), Some(WakeReason::Data));
        let both = WakeInterest::DataAndAcks.sleep_word(2);
        sleeper.note(WakeReason::Acks);
        assert_eq!(sleeper.due(both, false), Some(WakeReason::Acks));
    }
}
