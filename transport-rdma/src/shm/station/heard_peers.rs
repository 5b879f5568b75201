//! Which peers' broadcast doorbells a thread sleeps on, beside the doorbells of all peers.
//!
//! Each doorbell that a thread sleeps on costs it about a quarter of what a waker saves by
//! not waking that thread separately (0.3 µs and 1.3 µs where this was measured). So a
//! broadcast doorbell is worth its price if it ends more than every fourth or fifth sleep,
//! and a station hears the broadcasts of those peers only that wake it so often together
//! with others. There is no option: with one reader of a topic, or with many writers that
//! take turns, no peer comes to be heard, and with one writer of many readers it does within
//! two samples. A further gain: a peer that does not hear a broadcast does not hinder it
//! when it is not concerned.
//!
//! A peer has a score. A wake-up that is one of several, or a broadcast, raises it by
//! [`RISE`]; every other sleep lowers it by one. So it rises in the long run if more than
//! one sleep in five ends like this. A peer that is heard but woke the thread by its own
//! doorbell gains nothing: it could not broadcast.

/// Most peers that are heard at a time. More than that cannot each end every fifth sleep.
pub(super) const HEARD_MAX: usize = 4;

/// The numbers of peers beyond this one do not fit into a heard word.
const NUMBER_MAX: u16 = u8::MAX as u16;

const RISE: u8 = 4;
/// The score from which on a peer is heard.
const HEARD_FROM: u8 = 8;
const SCORE_MAX: u8 = 12;

/// How a sleep has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WokenBy {
    /// A timeout, a signal, or a change before it began.
    Nothing,
    /// This process.
    Itself,
    /// A peer, by the thread's own doorbell.
    Peer {
        /// The number of the peer.
        number: u16,
        /// It woke others, too.
        in_group: bool,
    },
    /// The broadcast doorbell of the peer with this number.
    Broadcast(u16),
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Score {
    /// 0: no peer.
    number: u16,
    score: u8,
}

impl Score {
    fn is_heard(&self) -> bool {
        self.score >= HEARD_FROM
    }
}

/// The scores of the peers that woke a thread together with others of late.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct HeardPeers([Score; HEARD_MAX]);

impl HeardPeers {
    /// The numbers of the peers whose broadcasts are worth hearing.
    pub(super) fn heard(&self) -> impl Iterator<Item = u16> + '_ {
        let heard = self.0.iter().filter(|it| it.is_heard());
        heard.map(|it| it.number)
    }

    /// Whether the end of a sleep changes nothing.
    pub(super) fn ignores(&self, woken_by: WokenBy) -> bool {
        let is_alone = !matches!(
            woken_by,
            WokenBy::Peer { in_group: true, .. } | WokenBy::Broadcast(_)
        );
        is_alone && self.0.iter().all(|it| it.score == 0)
    }

    /// A sleep has ended.
    pub(super) fn note(&mut self, woken_by: WokenBy) {
        let (number, by_broadcast) = match woken_by {
            WokenBy::Broadcast(number) => (number, true),
            WokenBy::Peer {
                number,
                in_group: true,
            } => (number, false),
            _ => (0, false),
        };
        // A heard word has a byte for each number.
        let number = if number <= NUMBER_MAX { number } else { 0 };
        let mut is_noted = number == 0;
        for it in &mut self.0 {
            let gains = it.score > 0 && it.number == number;
            is_noted |= gains;
            it.score = match gains && (by_broadcast || !it.is_heard()) {
                true => (it.score + RISE).min(SCORE_MAX),
                false => it.score.saturating_sub(1),
            };
        }
        let least = self.0.iter_mut().min_by_key(|it| it.score);
        if let Some(least) = least
            && !is_noted
            && !least.is_heard()
        {
            let score = RISE;
            *least = Score { number, score };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn in_group(number: u16) -> WokenBy {
        WokenBy::Peer {
            number,
            in_group: true,
        }
    }

    fn heard_after(sleeps: impl IntoIterator<Item = WokenBy>) -> Vec<u16> {
        let mut peers = HeardPeers::default();
        sleeps.into_iter().for_each(|it| peers.note(it));
        peers.heard().collect()
    }

    #[test]
    fn a_peer_that_wakes_several_again_and_again_is_heard_at_once() {
        assert_eq!(heard_after([in_group(3)]), []);
        assert_eq!(heard_after([in_group(3); 2]), [3]);
        let broadcasts = [WokenBy::Broadcast(3); 100];
        assert_eq!(
            heard_after([in_group(3); 2].into_iter().chain(broadcasts)),
            [3]
        );
    }

    #[test]
    fn a_peer_whose_number_does_not_fit_into_a_heard_word_is_not_heard() {
        assert_eq!(heard_after([in_group(NUMBER_MAX); 2]), [NUMBER_MAX]);
        assert_eq!(heard_after([in_group(NUMBER_MAX + 1); 2]), []);
    }

    #[test]
    fn a_peer_that_wakes_no_others_is_not_heard() {
        let alone = WokenBy::Peer {
            number: 3,
            in_group: false,
        };
        let mut peers = HeardPeers::default();
        for woken_by in [alone, WokenBy::Itself, WokenBy::Nothing].repeat(20) {
            assert!(peers.ignores(woken_by));
            peers.note(woken_by);
            assert_eq!(peers.heard().count(), 0);
        }
        assert!(!peers.ignores(in_group(3)));
    }

    /// What is left of peers that wake several by turns, and broadcast if they are heard.
    fn heard_by_turns(peers: u16) -> Vec<u16> {
        let mut scores = HeardPeers::default();
        for number in (1..=peers).cycle().take(1000) {
            let is_heard = scores.heard().any(|it| it == number);
            scores.note(match is_heard {
                true => WokenBy::Broadcast(number),
                false => in_group(number),
            });
        }
        let mut heard: Vec<_> = scores.heard().collect();
        heard.sort_unstable();
        heard
    }

    #[test]
    fn peers_that_take_turns_are_heard_only_if_each_ends_many_sleeps() {
        for peers in 1..=4 {
            assert_eq!(heard_by_turns(peers), (1..=peers).collect::<Vec<_>>());
        }
        for peers in 5..=20 {
            assert_eq!(heard_by_turns(peers), [], "{peers}");
        }
    }

    #[test]
    fn a_peer_that_broadcasts_no_longer_is_not_heard_any_more() {
        for rest in [WokenBy::Nothing, WokenBy::Itself, in_group(7)] {
            let before = [in_group(3); 2]
                .into_iter()
                .chain([WokenBy::Broadcast(3); 9]);
            assert_eq!(heard_after(before.clone()), [3]);
            let after = before.chain([rest; 6]);
            assert!(!heard_after(after).contains(&3), "{rest:?}");
        }
    }
}
