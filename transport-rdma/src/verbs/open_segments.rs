//! Which segments are open between me and one peer: a state machine without I/O.
//!
//! ```text
//!   me                                      peer
//!   opens the segment   --- OPEN --->       may push: it knows my copy of its row
//!   pushes, pushes      <-- OPEN ----       opens the segment
//!   drops the segment   --- OVER --->       pushes to me are discarded
//!                       <-- OVER ----       drops it, too
//!   frees its copy: no write can arrive any more
//! ```
//!
//! - Each side sends OPEN when it opens a segment, and OVER exactly once for each segment
//!   that either side has opened: when it drops it, or will not open it.
//! - A side that has sent OVER and received OVER is done: no write arrives any more, so the
//!   memory to which the peer wrote can be freed. Freed earlier, a write in flight would hit
//!   memory that is not registered, which breaks the queue pair.
//! - What a peer can make me remember is bounded: the number of segments that it has opened,
//!   has not ended, and that were not opened here.

use std::collections::BTreeMap;

use super::control_message::RemoteRow;
use crate::station::segment::SegmentKey;

/// Most segments of a peer that were not opened here.
pub(super) const UNKNOWN_MAX: usize = 4096;

/// What I have sent for a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OwnState {
    Unopened,
    Open,
    Over,
}

/// What the peer has sent for a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PeerState {
    Unopened,
    Open(RemoteRow),
    Over,
}

#[derive(Debug)]
struct Entry<T> {
    mine: OwnState,
    theirs: PeerState,
    /// Kept until the peer can write there no more.
    kept: Option<T>,
}

/// Where pushes to the peer go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Destination {
    /// The peer has not opened the segment yet: pushes wait.
    NotYet,
    To(RemoteRow),
    /// The peer has ended the segment: pushes are discarded.
    Over,
}

/// A message of the peer that the protocol does not allow.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum ProtocolViolation {
    #[error("it opened segment {}/{} twice", .0.epoch, .0.index)]
    OpenedTwice(SegmentKey),
    #[error("it ended segment {}/{}, which it had ended or never opened", .0.epoch, .0.index)]
    NotOpen(SegmentKey),
    #[error("it has opened more than {UNKNOWN_MAX} segments that are not made here")]
    TooMany,
}

/// The segments shared with one peer; `T` is kept for each that is open here.
#[derive(Debug)]
pub(super) struct OpenSegments<T> {
    entries: BTreeMap<SegmentKey, Entry<T>>,
    /// Number of entries of segments that were not opened here.
    unknown: usize,
}

impl<T> Default for OpenSegments<T> {
    fn default() -> Self {
        Self {
            entries: BTreeMap::new(),
            unknown: 0,
        }
    }
}

impl<T> OpenSegments<T> {
    /// Opens a segment, for which `kept` is kept. The caller sends OPEN.
    pub(super) fn open(&mut self, key: SegmentKey, kept: T) {
        let entry = self.entries.entry(key);
        let entry = entry.and_modify(|_| self.unknown -= 1);
        let entry = entry.or_insert(Entry {
            mine: OwnState::Unopened,
            theirs: PeerState::Unopened,
            kept: None,
        });
        debug_assert_eq!(entry.mine, OwnState::Unopened, "a segment is made once");
        (entry.mine, entry.kept) = (OwnState::Open, Some(kept));
    }

    /// What is kept for a segment that is open here.
    pub(super) fn kept(&self, key: SegmentKey) -> Option<&T> {
        self.entries.get(&key)?.kept.as_ref()
    }

    pub(super) fn destination(&self, key: SegmentKey) -> Destination {
        match self.entries.get(&key).map(|entry| entry.theirs) {
            None | Some(PeerState::Over) => Destination::Over,
            Some(PeerState::Unopened) => Destination::NotYet,
            Some(PeerState::Open(place)) => Destination::To(place),
        }
    }

    /// Ends a segment that is dropped, or will not be opened. Returns whether to send OVER,
    /// and what was kept, if the peer is done with it.
    pub(super) fn end(&mut self, key: SegmentKey) -> (bool, Option<T>) {
        let Some(entry) = self.entries.get_mut(&key) else {
            return (false, None);
        };
        if entry.mine == OwnState::Over {
            return (false, None);
        }
        entry.mine = OwnState::Over;
        (true, self.settle(key))
    }

    /// Segments that the peer has opened and that, by `is_over`, will not be opened here.
    pub(super) fn overdue(&self, is_over: impl Fn(SegmentKey) -> bool) -> Vec<SegmentKey> {
        let waiting = self
            .entries
            .iter()
            .filter(|(_, it)| it.mine == OwnState::Unopened);
        let keys = waiting.map(|(&key, _)| key);
        keys.filter(|&key| is_over(key)).collect()
    }

    /// Handles OPEN from the peer.
    pub(super) fn peer_opened(
        &mut self,
        key: SegmentKey,
        place: RemoteRow,
    ) -> Result<(), ProtocolViolation> {
        if let Some(entry) = self.entries.get_mut(&key) {
            if entry.theirs != PeerState::Unopened {
                return Err(ProtocolViolation::OpenedTwice(key));
            }
            entry.theirs = PeerState::Open(place);
            return Ok(());
        }
        if self.unknown >= UNKNOWN_MAX {
            return Err(ProtocolViolation::TooMany);
        }
        self.unknown += 1;
        let entry = Entry {
            mine: OwnState::Unopened,
            theirs: PeerState::Open(place),
            kept: None,
        };
        self.entries.insert(key, entry);
        Ok(())
    }

    /// Handles OVER from the peer. Returns what was kept, if this side is done with it, too.
    pub(super) fn peer_ended(&mut self, key: SegmentKey) -> Result<Option<T>, ProtocolViolation> {
        match self.entries.get_mut(&key) {
            Some(entry) if entry.theirs != PeerState::Over => entry.theirs = PeerState::Over,
            _ => return Err(ProtocolViolation::NotOpen(key)),
        }
        Ok(self.settle(key))
    }

    /// Forgets a segment for which both sides have sent OVER.
    fn settle(&mut self, key: SegmentKey) -> Option<T> {
        let entry = self.entries.get(&key)?;
        if (entry.mine, entry.theirs) != (OwnState::Over, PeerState::Over) {
            return None;
        }
        let kept = self.entries.remove(&key)?.kept;
        self.unknown -= usize::from(kept.is_none());
        kept
    }

    /// Number of entries.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeSet, VecDeque};

    use super::super::control_message::ControlMessage;
    use super::super::sys::Remote;
    use super::*;
    use crate::sim::Rng;

    fn key(index: u32) -> SegmentKey {
        SegmentKey { epoch: 1, index }
    }

    fn place(at: u64) -> RemoteRow {
        RemoteRow {
            to: Remote {
                address: at,
                key: 1,
            },
            len: 512,
        }
    }

    #[test]
    fn messages_out_of_protocol_are_refused() {
        let mut segments = OpenSegments::<()>::default();
        assert_eq!(
            segments.peer_ended(key(1)),
            Err(ProtocolViolation::NotOpen(key(1)))
        );
        segments.peer_opened(key(1), place(0)).expect("the first");
        let again = segments.peer_opened(key(1), place(0));
        assert_eq!(again, Err(ProtocolViolation::OpenedTwice(key(1))));
        segments.peer_ended(key(1)).expect("it was open");
        let again = segments.peer_opened(key(1), place(0));
        assert_eq!(again, Err(ProtocolViolation::OpenedTwice(key(1))));
        assert_eq!(
            segments.peer_ended(key(1)),
            Err(ProtocolViolation::NotOpen(key(1)))
        );
        assert_eq!(segments.end(key(1)), (true, None));
        assert_eq!((segments.end(key(1)), segments.len()), ((false, None), 0));
    }

    #[test]
    fn what_a_peer_makes_me_remember_is_bounded() {
        let mut segments = OpenSegments::<()>::default();
        for index in 0..UNKNOWN_MAX as u32 {
            segments.peer_opened(key(index), place(0)).expect("room");
        }
        let more = key(UNKNOWN_MAX as u32);
        assert_eq!(
            segments.peer_opened(more, place(0)),
            Err(ProtocolViolation::TooMany)
        );
        segments.open(key(7), ());
        segments.peer_opened(more, place(0)).expect("room again");
        let next = key(UNKNOWN_MAX as u32 + 1);
        assert_eq!(
            segments.peer_opened(next, place(0)),
            Err(ProtocolViolation::TooMany)
        );
        assert_eq!(segments.end(more), (true, None));
        let full = segments.peer_opened(next, place(0));
        assert_eq!(
            full,
            Err(ProtocolViolation::TooMany),
            "the peer has not ended it"
        );
        segments.peer_ended(more).expect("it was open");
        segments.peer_opened(next, place(0)).expect("room again");
        assert_eq!(
            segments.overdue(|key| key.index < 9).len(),
            8,
            "all but the one made"
        );
    }

    /// One of two participants, and what it has sent to the other.
    struct Side {
        segments: OpenSegments<u64>,
        sent: VecDeque<ControlMessage>,
        made: BTreeSet<u32>,
        closed: BTreeSet<u32>,
        /// Copies to which the peer may write: they must not be freed.
        memory: BTreeSet<u64>,
        overs: BTreeSet<u32>,
    }

    impl Side {
        fn new() -> Self {
            Self {
                segments: OpenSegments::default(),
                sent: VecDeque::new(),
                made: BTreeSet::new(),
                closed: BTreeSet::new(),
                memory: BTreeSet::new(),
                overs: BTreeSet::new(),
            }
        }

        fn make(&mut self, index: u32) {
            if self.made.contains(&index) || self.closed.contains(&index) {
                return;
            }
            let at = u64::from(index) * 8;
            self.made.insert(index);
            self.memory.insert(at);
            self.segments.open(key(index), at);
            let (key, place) = (key(index), place(at));
            self.sent.push_back(ControlMessage::Open { key, place });
        }

        fn end(&mut self, index: u32) {
            self.made.remove(&index);
            self.closed.insert(index);
            let (says, kept) = self.segments.end(key(index));
            if says {
                assert!(self.overs.insert(index), "OVER once");
                self.sent
                    .push_back(ControlMessage::Over { key: key(index) });
            }
            self.free(kept);
        }

        fn free(&mut self, kept: Option<u64>) {
            if let Some(at) = kept {
                self.memory.remove(&at);
            }
        }

        fn hear(&mut self, message: ControlMessage) {
            match message {
                ControlMessage::Open { key, place } => {
                    self.segments.peer_opened(key, place).expect("sense");
                    if self.closed.contains(&key.index) {
                        self.end(key.index);
                    }
                }
                ControlMessage::Over { key } => {
                    let kept = self.segments.peer_ended(key).expect("sense");
                    self.free(kept);
                }
                ControlMessage::Hello => {}
            }
        }
    }

    /// Whether in one run a write arrives for memory that was freed.
    fn write_hits_freed_memory(seed: u64) -> bool {
        const SEGMENTS: usize = 12;
        let rng = &mut Rng::new(seed);
        let mut sides = [Side::new(), Side::new()];
        // Writes in flight, in order with messages: `None` stands for a message.
        let mut in_flight: [VecDeque<Option<u64>>; 2] = Default::default();
        let mut lost = false;
        for turn in 0..2000 {
            let (at, index) = (rng.below(2), rng.below(SEGMENTS) as u32);
            let (before, last) = (sides[at].sent.len(), turn > 1000);
            match rng.below(5) {
                0 if !last => sides[at].make(index),
                1 if last || rng.chance(0.2) => sides[at].end(index),
                2 | 3 if sides[at].made.contains(&index) => {
                    if let Destination::To(place) = sides[at].segments.destination(key(index)) {
                        in_flight[at].push_back(Some(place.to.address));
                    }
                }
                _ => match in_flight[1 - at].pop_front() {
                    Some(Some(address)) => lost |= !sides[at].memory.contains(&address),
                    Some(None) => {
                        let message = sides[1 - at].sent.pop_front().expect("as many");
                        sides[at].hear(message);
                    }
                    None => {}
                },
            }
            let more = sides[at].sent.len().saturating_sub(before);
            in_flight[at].extend(core::iter::repeat_n(None, more));
        }
        for _ in 0..3 {
            for at in 0..2 {
                (0..SEGMENTS as u32).for_each(|index| sides[at].end(index));
                let waiting = sides[at].sent.len();
                let queued = in_flight[at].iter().filter(|it| it.is_none()).count();
                in_flight[at].extend(core::iter::repeat_n(None, waiting - queued));
                while let Some(next) = in_flight[at].pop_front() {
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
            assert_eq!(side.segments.len(), 0, "seed {seed}: all is settled");
            assert!(side.memory.is_empty(), "seed {seed}: a leak");
        }
        lost
    }

    #[test]
    fn no_write_arrives_for_freed_memory() {
        for seed in 0..300 {
            assert!(!write_hits_freed_memory(seed), "seed {seed}");
        }
    }
}
