//! Which segments are open between me and one peer, as a state machine without I/O.
//!
//! ```text
//!   me                                      peer
//!   makes the segment   --- OPEN --->       may push: its pushes have a place
//!   pushes, pushes      <-- OPEN ----       makes the segment
//!   drops the segment   --- OVER --->       pushes to me are discarded
//!                       <-- OVER ----       drops it, too
//!   frees its copy: nothing comes for it any more
//! ```
//!
//! - Each side says OPEN when it makes a segment, and OVER exactly once for each that
//!   either has opened: when it drops it, or will not make it.
//! - So who has said OVER and has heard it is done: nothing more comes, and what the peer
//!   wrote to can be taken away. Before that, a write on its way would find it missing,
//!   which breaks the queue pair.
//! - What a peer makes me remember is bounded: so many segments that I have not made, and
//!   of which it has not said OVER, even if I have.

use std::collections::BTreeMap;

use super::message::Place;
use crate::segment::SegmentKey;

/// Most segments of a peer that were not made here.
pub(super) const UNKNOWN_MAX: usize = 4096;

/// What I have said of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mine {
    Nothing,
    Open,
    Over,
}

/// What the peer has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Theirs {
    Nothing,
    Open(Place),
    Over,
}

#[derive(Debug)]
struct Entry<T> {
    mine: Mine,
    theirs: Theirs,
    /// What is kept until the peer writes there no more.
    kept: Option<T>,
}

/// Where pushes to the peer go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// It has not made the segment yet.
    NotYet,
    To(Place),
    /// It wants them no more.
    Over,
}

/// What a peer has said makes no sense.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum Nonsense {
    #[error("it opened segment {}/{} twice", .0.epoch, .0.index)]
    OpenedTwice(SegmentKey),
    #[error("it ended segment {}/{}, which it had ended or nobody had opened", .0.epoch, .0.index)]
    NotOpen(SegmentKey),
    #[error("it has opened more than {UNKNOWN_MAX} segments that are not made here")]
    TooMany,
}

/// The segments of one peer; what is kept for each is `T`.
#[derive(Debug)]
pub(super) struct Ledger<T> {
    entries: BTreeMap<SegmentKey, Entry<T>>,
    /// Entries of segments that were not made here.
    unknown: usize,
}

impl<T> Default for Ledger<T> {
    fn default() -> Self {
        Self {
            entries: BTreeMap::new(),
            unknown: 0,
        }
    }
}

impl<T> Ledger<T> {
    /// I have made a segment, for which `kept` is kept: OPEN is to be said.
    pub(super) fn open(&mut self, key: SegmentKey, kept: T) {
        let entry = self.entries.entry(key);
        let entry = entry.and_modify(|_| self.unknown -= 1);
        let entry = entry.or_insert(Entry {
            mine: Mine::Nothing,
            theirs: Theirs::Nothing,
            kept: None,
        });
        debug_assert_eq!(entry.mine, Mine::Nothing, "a segment is made once");
        (entry.mine, entry.kept) = (Mine::Open, Some(kept));
    }

    /// What is kept of a segment that I have made.
    pub(super) fn kept(&self, key: SegmentKey) -> Option<&T> {
        self.entries.get(&key)?.kept.as_ref()
    }

    pub(super) fn way(&self, key: SegmentKey) -> Way {
        match self.entries.get(&key).map(|entry| entry.theirs) {
            None | Some(Theirs::Over) => Way::Over,
            Some(Theirs::Nothing) => Way::NotYet,
            Some(Theirs::Open(place)) => Way::To(place),
        }
    }

    /// A segment that I had made is dropped, or one is not going to be made: whether OVER
    /// is to be said. What was kept is given back if the peer is done with it.
    pub(super) fn end(&mut self, key: SegmentKey) -> (bool, Option<T>) {
        let Some(entry) = self.entries.get_mut(&key) else {
            return (false, None);
        };
        if entry.mine == Mine::Over {
            return (false, None);
        }
        entry.mine = Mine::Over;
        (true, self.settle(key))
    }

    /// Those that the peer has opened and that `is_over` says will not be made.
    pub(super) fn overdue(&self, is_over: impl Fn(SegmentKey) -> bool) -> Vec<SegmentKey> {
        let waiting = self
            .entries
            .iter()
            .filter(|(_, it)| it.mine == Mine::Nothing);
        let keys = waiting.map(|(&key, _)| key);
        keys.filter(|&key| is_over(key)).collect()
    }

    /// The peer says OPEN.
    pub(super) fn hear_open(&mut self, key: SegmentKey, place: Place) -> Result<(), Nonsense> {
        if let Some(entry) = self.entries.get_mut(&key) {
            if entry.theirs != Theirs::Nothing {
                return Err(Nonsense::OpenedTwice(key));
            }
            entry.theirs = Theirs::Open(place);
            return Ok(());
        }
        if self.unknown >= UNKNOWN_MAX {
            return Err(Nonsense::TooMany);
        }
        self.unknown += 1;
        let entry = Entry {
            mine: Mine::Nothing,
            theirs: Theirs::Open(place),
            kept: None,
        };
        self.entries.insert(key, entry);
        Ok(())
    }

    /// The peer says OVER. Gives back what was kept, if I am done with it, too.
    pub(super) fn hear_over(&mut self, key: SegmentKey) -> Result<Option<T>, Nonsense> {
        match self.entries.get_mut(&key) {
            Some(entry) if entry.theirs != Theirs::Over => entry.theirs = Theirs::Over,
            _ => return Err(Nonsense::NotOpen(key)),
        }
        Ok(self.settle(key))
    }

    /// Forgets a segment of which both have said that it is over.
    fn settle(&mut self, key: SegmentKey) -> Option<T> {
        let entry = self.entries.get(&key)?;
        if (entry.mine, entry.theirs) != (Mine::Over, Theirs::Over) {
            return None;
        }
        let kept = self.entries.remove(&key)?.kept;
        self.unknown -= usize::from(kept.is_none());
        kept
    }

    /// How many there are.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeSet, VecDeque};

    use super::super::message::Message;
    use super::super::sys::Remote;
    use super::*;
    use crate::sim::Rng;

    fn key(index: u32) -> SegmentKey {
        SegmentKey { epoch: 1, index }
    }

    fn place(at: u64) -> Place {
        Place {
            to: Remote {
                address: at,
                key: 1,
            },
            len: 512,
        }
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        let mut ledger = Ledger::<()>::default();
        assert_eq!(ledger.hear_over(key(1)), Err(Nonsense::NotOpen(key(1))));
        ledger.hear_open(key(1), place(0)).expect("the first");
        let again = ledger.hear_open(key(1), place(0));
        assert_eq!(again, Err(Nonsense::OpenedTwice(key(1))));
        ledger.hear_over(key(1)).expect("it was open");
        let again = ledger.hear_open(key(1), place(0));
        assert_eq!(again, Err(Nonsense::OpenedTwice(key(1))));
        assert_eq!(ledger.hear_over(key(1)), Err(Nonsense::NotOpen(key(1))));
        assert_eq!(ledger.end(key(1)), (true, None));
        assert_eq!((ledger.end(key(1)), ledger.len()), ((false, None), 0));
    }

    #[test]
    fn what_a_peer_makes_me_remember_is_bounded() {
        let mut ledger = Ledger::<()>::default();
        for index in 0..UNKNOWN_MAX as u32 {
            ledger.hear_open(key(index), place(0)).expect("room");
        }
        let more = key(UNKNOWN_MAX as u32);
        assert_eq!(ledger.hear_open(more, place(0)), Err(Nonsense::TooMany));
        ledger.open(key(7), ());
        ledger.hear_open(more, place(0)).expect("room again");
        let next = key(UNKNOWN_MAX as u32 + 1);
        assert_eq!(ledger.hear_open(next, place(0)), Err(Nonsense::TooMany));
        assert_eq!(ledger.end(more), (true, None));
        let full = ledger.hear_open(next, place(0));
        assert_eq!(full, Err(Nonsense::TooMany), "the peer has not ended it");
        ledger.hear_over(more).expect("it was open");
        ledger.hear_open(next, place(0)).expect("room again");
        assert_eq!(
            ledger.overdue(|key| key.index < 9).len(),
            8,
            "all but the one made"
        );
    }

    /// One of two participants, and the way to the other.
    struct Side {
        ledger: Ledger<u64>,
        sent: VecDeque<Message>,
        made: BTreeSet<u32>,
        gone: BTreeSet<u32>,
        /// Places that the peer may write to: never to be missing.
        memory: BTreeSet<u64>,
        overs: BTreeSet<u32>,
        frees_early: bool,
    }

    impl Side {
        fn new(frees_early: bool) -> Self {
            Self {
                ledger: Ledger::default(),
                sent: VecDeque::new(),
                made: BTreeSet::new(),
                gone: BTreeSet::new(),
                memory: BTreeSet::new(),
                overs: BTreeSet::new(),
                frees_early,
            }
        }

        fn make(&mut self, index: u32) {
            if self.made.contains(&index) || self.gone.contains(&index) {
                return;
            }
            let at = u64::from(index) * 8;
            self.made.insert(index);
            self.memory.insert(at);
            self.ledger.open(key(index), at);
            let (key, place) = (key(index), place(at));
            self.sent.push_back(Message::Open { key, place });
        }

        fn end(&mut self, index: u32) {
            self.made.remove(&index);
            self.gone.insert(index);
            let (says, kept) = self.ledger.end(key(index));
            if says {
                assert!(self.overs.insert(index), "OVER once");
                self.sent.push_back(Message::Over { key: key(index) });
            }
            self.free(kept);
            if self.frees_early {
                self.memory.remove(&(u64::from(index) * 8));
            }
        }

        fn free(&mut self, kept: Option<u64>) {
            if let Some(at) = kept {
                self.memory.remove(&at);
            }
        }

        fn hear(&mut self, message: Message) {
            match message {
                Message::Open { key, place } => {
                    self.ledger.hear_open(key, place).expect("sense");
                    if self.gone.contains(&key.index) {
                        self.end(key.index);
                    }
                }
                Message::Over { key } => {
                    let kept = self.ledger.hear_over(key).expect("sense");
                    self.free(kept);
                }
                Message::Hello => {}
            }
        }
    }

    /// Whether a peer ever wrote to what was taken away, in one run.
    fn writes_nowhere(seed: u64, frees_early: bool) -> bool {
        const LANES: usize = 12;
        let rng = &mut Rng::new(seed);
        let mut sides = [Side::new(frees_early), Side::new(frees_early)];
        // Writes on their way, behind and before messages: `None` stands for a message.
        let mut ways: [VecDeque<Option<u64>>; 2] = Default::default();
        let mut lost = false;
        for turn in 0..2000 {
            let (at, index) = (rng.below(2), rng.below(LANES) as u32);
            let (before, last) = (sides[at].sent.len(), turn > 1000);
            match rng.below(5) {
                0 if !last => sides[at].make(index),
                1 if last || rng.chance(0.2) => sides[at].end(index),
                2 | 3 if sides[at].made.contains(&index) => {
                    if let Way::To(place) = sides[at].ledger.way(key(index)) {
                        ways[at].push_back(Some(place.to.address));
                    }
                }
                _ => match ways[1 - at].pop_front() {
                    Some(Some(address)) => lost |= !sides[at].memory.contains(&address),
                    Some(None) => {
                        let message = sides[1 - at].sent.pop_front().expect("as many");
                        sides[at].hear(message);
                    }
                    None => {}
                },
            }
            let more = sides[at].sent.len().saturating_sub(before);
            ways[at].extend(core::iter::repeat_n(None, more));
        }
        for _ in 0..3 {
            for at in 0..2 {
                (0..LANES as u32).for_each(|index| sides[at].end(index));
                let waiting = sides[at].sent.len();
                let queued = ways[at].iter().filter(|it| it.is_none()).count();
                ways[at].extend(core::iter::repeat_n(None, waiting - queued));
                while let Some(next) = ways[at].pop_front() {
                    match next {
                        Some(address) => lost |= !sides[1 - at].memory.contains(&address),
                        None => {
                            let message = sides[at].sent.pop_front().expect("as many");
                            sides[1 - at].hear(message);
                        }
                    }
                }
            }
        }
        for side in &sides {
            assert_eq!(side.ledger.len(), 0, "seed {seed}: all is settled");
            assert!(frees_early || side.memory.is_empty(), "seed {seed}: a leak");
        }
        lost
    }

    #[test]
    fn nobody_writes_to_what_was_taken_away() {
        assert!((0..300).all(|seed| !writes_nowhere(seed, false)));
        let noticed = (0..300).filter(|&seed| writes_nowhere(seed, true)).count();
        assert!(noticed > 100, "the planted bug shows: {noticed}");
    }
}
