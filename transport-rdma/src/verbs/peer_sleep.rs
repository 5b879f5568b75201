//! Whether a peer sleeps, as far as I know, and whether to send it a doorbell.
//!
//! The peer writes its sleep word into a line of my memory when it announces its sleep. The
//! word may be in flight when I look, and nothing would make me look again when it arrives.
//! So a push without a doorbell is remembered until I see a new sleep word, or announce my
//! own sleep; then the doorbell is sent, whatever I see.
//!
//! ```text
//!   I                                                the peer
//!   pushed, no doorbell: UNSENT := reason            word := odd, to my line
//!   look at the line: old                            looks once more, sleeps
//!   ...
//!   next poll: new word in the line?   doorbell      woken
//!   or: I announce my own sleep:       doorbell      woken, or awake
//! ```

use core::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use crate::fabric::{WakeInterest, WakeReason};

/// The state of one peer.
#[derive(Debug, Default)]
pub(super) struct PeerSleep {
    /// The reason of pushes without a doorbell: 0, or the number of the reason plus one.
    unsent: AtomicU8,
    /// Its sleep word at which I sent the last doorbell: one an epoch is enough.
    sent_at: AtomicU64,
}

impl PeerSleep {
    /// Notes that the peer may have to be woken for something pushed.
    pub(super) fn note(&self, reason: WakeReason) {
        self.unsent.fetch_max(reason as u8 + 1, Ordering::SeqCst);
    }

    /// Whether to send a doorbell, and for what. `word` is the peer's sleep word, `asleep`
    /// whether this process has announced its sleep. Returns a reason once.
    pub(super) fn due(&self, word: u64, asleep: bool) -> Option<WakeReason> {
        let reason = noted(self.unsent.load(Ordering::SeqCst))?;
        let wants =
            WakeInterest::of_sleep_word(word).is_some_and(|interest| interest.includes(reason));
        let sees = wants && self.sent_at.load(Ordering::Relaxed) != word;
        if !sees && !asleep {
            return None;
        }
        // Another thread may have taken it, or noted a greater reason.
        let reason = noted(self.unsent.swap(0, Ordering::SeqCst))?;
        if wants {
            self.sent_at.store(word, Ordering::Relaxed);
        }
        Some(reason)
    }
}

/// The reason that was noted.
fn noted(unsent: u8) -> Option<WakeReason> {
    match unsent {
        0 => None,
        1 => Some(WakeReason::Room),
        2 => Some(WakeReason::Stability),
        _ => Some(WakeReason::Data),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_gets_one_doorbell_each_time_it_sleeps() {
        let sleeper = PeerSleep::default();
        let word = |epoch| WakeInterest::Data.sleep_word(epoch);
        assert_eq!(sleeper.due(word(1), true), None, "nothing was pushed");
        sleeper.note(WakeReason::Data);
        assert_eq!(sleeper.due(0, false), None, "it is awake");
        assert_eq!(sleeper.due(word(1), false), Some(WakeReason::Data));
        sleeper.note(WakeReason::Data);
        assert_eq!(sleeper.due(word(1), false), None, "it got its doorbell");
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
    fn a_process_that_goes_to_sleep_sends_the_doorbell_anyway() {
        let sleeper = PeerSleep::default();
        sleeper.note(WakeReason::Stability);
        assert_eq!(sleeper.due(0, true), Some(WakeReason::Stability));
        assert_eq!(sleeper.due(0, true), None);
    }

    /// A doorbell for acknowledgements does not wake a peer that waits for data only: it does
    /// not count as sent for that sleep word.
    #[test]
    fn a_doorbell_that_does_not_wake_does_not_count() {
        let sleeper = PeerSleep::default();
        let word = WakeInterest::Data.sleep_word(1);
        sleeper.note(WakeReason::Stability);
        assert_eq!(sleeper.due(word, false), None, "not wanted");
        assert_eq!(sleeper.due(word, true), Some(WakeReason::Stability));
        sleeper.note(WakeReason::Data);
        assert_eq!(sleeper.due(word, false), Some(WakeReason::Data));
        let both = WakeInterest::Room.sleep_word(2);
        sleeper.note(WakeReason::Stability);
        assert_eq!(sleeper.due(both, false), Some(WakeReason::Stability));
    }
}
