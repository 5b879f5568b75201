//! The bookkeeping of an epoch's rings: arrays with an entry for each message that a ring holds.
//!
//! ```text
//!   own ring               extents, ready          what threads build and commit
//!   ring of each sender    headers                 received and not delivered
//!                          holds, slots            delivered and not released
//! ```
//!
//! They are made before the view is agreed: a participant that lacks memory refuses the change, and
//! nothing has happened. Invariant: nothing writes to an array before a message needs its entry, so
//! that rings in which nothing happens take address space and no memory. The entries of a ring are
//! used from the first one on, and those of headers again from the first one whenever no message
//! waits.

use std::io;
use std::ops::Range;

use spindle_dds_transport::Rank;
use spindle_dds_transport::memory::{Arena, Zeroable};

use crate::spec::{RingSpec, SenderSpec, SubgroupSpec};
use crate::subgroup::receive_cursor::{HeaderEntry, ReceiveCursor, ReceivedHeaders};
use crate::subgroup::release_tracker::{ReleaseTracker, Slot};
use crate::subgroup::send_ring::{Extent, SendRing};

// SAFETY: it has two atomics of 64 bits and nothing else; zeros are their default values.
unsafe impl Zeroable for Extent {}
// SAFETY: as above.
unsafe impl Zeroable for Slot {}
// SAFETY: zeros are an entry without a header: the compiler has checked it below.
unsafe impl Zeroable for HeaderEntry {}

/// Zeros are no header, as no kind of message is 0. (If the compiler represented `None` in another
/// way, the evaluation would fail.)
#[cfg(not(loom))]
const _: () = {
    const ZEROS: [u8; size_of::<HeaderEntry>()] = [0; size_of::<HeaderEntry>()];
    // SAFETY: of the same size; that the bytes are valid is what is checked.
    let entry: HeaderEntry = unsafe { core::mem::transmute(ZEROS) };
    assert!(entry.header().is_none());
};

/// The memory in which a participant keeps account of the messages of a subgroup epoch.
#[derive(Debug)]
pub struct EpochMemory {
    /// What the rings and headers are parts of.
    arena: Arena,
    /// Rank of the participant in the epoch.
    me: Rank,
    senders: Vec<SenderSpec>,
    pub(crate) rings: SharedRings,
    /// By class and index of the sender.
    pub(crate) headers: [Vec<Option<ReceivedHeaders>>; 2],
}

/// What application threads share with the engine.
#[derive(Debug)]
pub(crate) struct SharedRings {
    /// Own rings, `None` where this member does not send.
    pub(super) send_rings: [Option<SendRing>; 2],
    /// Where the arrays of all rings and headers lie, in one mapping.
    pub(super) addresses: Range<usize>,
    /// By class and index of the sender.
    pub(super) release_trackers: [Box<[Option<ReleaseTracker>]>; 2],
}

impl EpochMemory {
    /// Maps the memory for the participant of this rank in an epoch. Before messages come, it takes
    /// address space only.
    ///
    /// # Errors
    /// The system has no memory or address space to map.
    pub fn new(spec: &SubgroupSpec, me: Rank) -> io::Result<Self> {
        let own = spec.senders.iter().find(|sender| sender.rank == me);
        let own = own.map_or([None; 2], |sender| sender.rings);
        let mut arena = Arena::new(bytes_of(spec, own));
        let mut send_ring = |class: usize| {
            let ring = own[class].map(|ring| SendRing::new(&ring, &mut arena));
            ring.transpose()
        };
        let send_rings = [send_ring(0)?, send_ring(1)?];
        let mut trackers = |class: usize| {
            let rings = spec.senders.iter().map(|sender| sender.rings[class]);
            let trackers = rings.map(|ring| {
                let tracker =
                    ring.map(|ring| ReleaseTracker::new(ring.messages as usize, &mut arena));
                tracker.transpose()
            });
            trackers.collect::<io::Result<Box<[_]>>>()
        };
        let release_trackers = [trackers(0)?, trackers(1)?];
        let mut headers = |class: usize| {
            let rings = spec.senders.iter().map(|sender| sender.rings[class]);
            let headers = rings.map(|ring| {
                let headers = ring.map(|ring| arena.slice(ring.messages as usize));
                headers.transpose()
            });
            headers.collect::<io::Result<Vec<_>>>()
        };
        let headers = [headers(0)?, headers(1)?];
        let addresses = arena.addresses();
        Ok(Self {
            arena,
            me,
            senders: spec.senders.clone(),
            rings: SharedRings {
                addresses,
                send_rings,
                release_trackers,
            },
            headers,
        })
    }

    /// Allocates all of it, so that no message waits for a page. Stops if `goes_on`, which is called
    /// about every millisecond, returns false: the rest is allocated when messages come.
    pub fn prefault(&self, goes_on: impl Fn() -> bool) {
        self.arena.prefault(goes_on);
    }

    /// The addresses of all of it, for tools that show what is resident.
    pub fn addresses(&self) -> Range<usize> {
        self.rings.addresses.clone()
    }

    /// Whether it was made for the member of this rank in this epoch.
    pub(crate) fn is_of(&self, spec: &SubgroupSpec, me: Rank) -> bool {
        self.me == me && self.senders == spec.senders
    }
}

/// Bytes of all arrays.
fn bytes_of(spec: &SubgroupSpec, own: [Option<RingSpec>; 2]) -> usize {
    let messages = |ring: RingSpec| ring.messages as usize;
    let rings = spec.senders.iter().flat_map(|sender| sender.rings);
    let received = rings
        .flatten()
        .map(messages)
        .map(|messages| ReleaseTracker::bytes_of(messages) + ReceiveCursor::bytes_of(messages));
    let sent = own.into_iter().flatten().map(messages);
    sent.map(SendRing::bytes_of).chain(received).sum()
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::ids::SubgroupId;

    fn spec(messages: u32) -> SubgroupSpec {
        let ring = Some(RingSpec {
            messages,
            bytes: 1 << 20,
        });
        let sender = |rank, rings| SenderSpec {
            rank: Rank(rank),
            rings,
        };
        SubgroupSpec {
            subgroup: SubgroupId(1),
            epoch: 1,
            base: 0,
            members: (0..3).map(Rank).collect(),
            senders: vec![sender(0, [ring, ring]), sender(2, [None, ring])],
            topics: vec![],
            is_logged: false,
        }
    }

    #[test]
    fn it_has_what_the_rings_of_the_epoch_need() {
        let spec = spec(16);
        for (me, own) in [(0, [true, true]), (1, [false, false]), (2, [false, true])] {
            let memory = EpochMemory::new(&spec, Rank(me)).expect("memory");
            assert!(memory.is_of(&spec, Rank(me)) && !memory.is_of(&spec, Rank(me + 1)));
            let rings = &memory.rings;
            assert_eq!(rings.send_rings.each_ref().map(Option::is_some), own);
            for (trackers, theirs) in rings
                .release_trackers
                .iter()
                .zip([[true, false], [true; 2]])
            {
                assert_eq!(Vec::from_iter(trackers.iter().map(Option::is_some)), theirs);
            }
            for (headers, theirs) in memory.headers.iter().zip([[true, false], [true; 2]]) {
                assert_eq!(Vec::from_iter(headers.iter().map(Option::is_some)), theirs);
                assert!(headers.iter().flatten().all(|it| it.len() == 16));
                assert!(
                    headers
                        .iter()
                        .flatten()
                        .all(|it| it.iter().all(|it| it.header().is_none()))
                );
            }
        }
    }

    #[test]
    fn it_is_that_of_no_other_epoch() {
        let memory = EpochMemory::new(&spec(16), Rank(0)).expect("memory");
        assert!(!memory.is_of(&spec(32), Rank(0)));
    }

    /// Messages of a ring come from the specification, which another process has sent.
    #[cfg(not(miri))]
    #[test]
    fn more_memory_than_there_is_is_an_error() {
        let mut spec = spec(1 << 31);
        let senders = (0..u16::MAX).map(|rank| SenderSpec {
            rank: Rank(rank),
            ..spec.senders[0].clone()
        });
        spec.senders = senders.collect();
        let error = EpochMemory::new(&spec, Rank(0)).expect_err("no such memory");
        assert_eq!(error.kind(), io::ErrorKind::OutOfMemory);
    }
}
