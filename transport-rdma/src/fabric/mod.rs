//! The `Fabric` contract: what every backend promises, and nothing more.

pub(crate) mod counters;
pub(crate) mod failures;
pub(crate) mod news;
pub(crate) mod peers;

use serde::{Deserialize, Serialize};

use crate::fabric::news::{News, SeenNews};
use crate::fabric::peers::{PeerSet, Rank};
use crate::memory::Region;

/// Bytes at the start of every row that are reserved for the fabric, whether a backend
/// uses them or not. SST columns begin after them.
pub const FABRIC_AREA: usize = 256;

/// One-sided writes between the members of one segment.
///
/// A *segment* is a set of *rows* of memory, one for each member; a member's rank is the
/// index of its row. A member writes only its own row, through this trait, and reads local
/// copies of the other rows. A process is a member of any number of segments and has one
/// fabric for each; segments are opened and closed while it runs. A fabric knows nothing
/// of views, topics or messages.
///
/// ```text
///   member 0                              member 1
///   +--------------+   push, push_word    +--------------+
///   | row 0 (mine) | ===================> | copy of 0    |
///   | copy of 1    | <=================== | row 1 (mine) |
///   +--------------+   wake: doorbell     +--------------+
/// ```
///
/// # The contract
///
/// - **F1 (push)** [`push`](Self::push)`(range, peers)` writes the bytes of my row in
///   `range` into the copy of my row at each of `peers`. The bytes are those of some
///   moment at or after the call. No application code at the peer takes part. A push may
///   be held back until the next [`wake`](Self::wake) of the same segment, which ends a
///   batch whichever peers it names.
/// - **F1b (push of a word)** [`push_word`](Self::push_word)`(word, value, peers)` writes
///   one aligned 8-byte word with exactly the value of the call. A word that vouches for
///   other bytes (a *guard*: a ring's message count, a flag that ends a list) is pushed
///   only this way, never inside a range: a queued range could fetch a later value of the
///   guard and overtake the data that it vouches for. Words that vouch for nothing pushed
///   later (acknowledgements) may be part of a range. A word is pushed one way or the
///   other, never both: a range may carry a later value than a `push_word` behind it, and
///   the copy would go back for a while.
///   Where messages of a ring are pushed directly one after the other, a peer may see of their
///   guard's values only the last.
/// - **F2 (order)** For an ordered pair of processes, pushes take effect in call order
///   over all segments that they share. Nothing of a later push is visible before all of
///   an earlier one, and a later range carries no older bytes than an earlier one. So a
///   word that only rises at its owner, and is pushed in ranges only, never falls in a
///   copy.
/// - **F3 (no order between pairs)** PushQueue of different pairs are not ordered.
/// - **F4 (whole words)** An aligned 8-byte word is never torn. Words of one push may
///   become visible in any order. So data is pushed first, its guard in a later
///   `push_word`.
/// - **F5 (early stores)** The owner's stores may become visible at peers before they are
///   pushed, but never out of store order (shared memory does this).
/// - **F6 (failures)** [`poll`](Self::poll) reports the failure of a peer, on control
///   segments only: once on each that has the peer as a member, also if the segment is
///   opened after the failure. A push to a live peer is never dropped silently, unless
///   the peer has closed the segment. If the peer has not opened it yet, the push waits
///   until it does, and later pushes to that peer may wait behind it. After a failure it
///   is unknown which pushes landed. Once [`fence`](Self::fence) has returned, nothing
///   more of that peer becomes visible in this segment; other segments are not affected.
/// - **F7 (isolation)** The memory of a segment is out of reach of processes that are not
///   its members.
///
/// # Sleeping
///
/// A process sleeps, not a segment: all fabrics of a process share one *sleep word*, so an
/// announcement, a wake-up or a nudge on one of them holds for all.
///
/// A sleeper cannot write into the memory of others, so it announces in its own row that
/// it sleeps. [`announce_sleep`](Self::announce_sleep) stores an odd epoch and fences; the
/// sleeper then **looks for work once more**, and only then blocks (see [`Park`]). A
/// member that has pushed calls [`wake`](Self::wake), which fences, reads the epochs of
/// the peers and signals the doorbell of each that is odd. Either `wake` sees the epoch,
/// or the sleeper's second look sees the push: no wake-up is lost. (The proof is in
/// [`sleep`](crate::sleep).)
///
/// # News
///
/// A process with many segments need not look at each word of each peer. A fabric may know
/// where there is news: segments are divided into buckets, and [`news`](Self::news) returns the
/// buckets of those in which something may have changed since the last look. A batch of pushes
/// is news from its [`wake`](Self::wake) on, an acknowledgement from its
/// [`acknowledge`](Self::acknowledge) on: a look that does not name them comes before they are
/// visible, and a later one names them. This takes part in the handshake of sleeping: a look
/// after `announce_sleep` names everything for which the sleeper is not woken. Stores that are
/// visible early (F5) may be no news yet. Control segments have no news.
///
/// Two variants exist where memory is not shared. Where the epoch travels as a push, a
/// fabric that receives a new odd epoch wakes its owner by itself if it has pushed to it
/// since it woke it last; therefore a member that has pushed must go on to call
/// [`poll`](Self::poll), or announce its own sleep. Where the wake-up travels behind the
/// data, the epoch does not travel: when the wake-up arrives, a thread of the sleeper's
/// process fences, reads the epoch and wakes the sleeper.
pub trait Fabric: Send + Sync + 'static {
    /// My rank in the segment.
    fn me(&self) -> Rank;

    /// Number of members of the segment.
    fn members(&self) -> usize;

    /// A member's row: my row itself for [`me`](Self::me), a copy or a read-only mapping
    /// for the others. Panics if the rank is not in the segment.
    fn row(&self, of: Rank) -> &Region;

    /// So many words of others' rows were read without [`row`](Self::row), by
    /// [`RowWord`](crate::RowWord). For a fabric that counts what reading takes.
    #[inline]
    fn looked(&self, _words: usize) {}

    /// Stores a word of my row with release ordering. It is visible to peers once a push
    /// that covers it has landed, or earlier (F5). Any thread.
    fn store(&self, word: usize, value: u64);

    /// Stores consecutive words of my row from offset `at`, as [`store`](Self::store) does
    /// one after the other.
    fn store_words<const N: usize>(&self, at: usize, values: &[u64; N]) {
        for (value, word) in values.iter().zip((at..).step_by(8)) {
            self.store(word, *value);
        }
    }

    /// F1: pushes the bytes `at..at + len` of my row; both are multiples of 8. Never
    /// blocks on a peer. One thread at a time.
    fn push(&self, at: usize, len: usize, to: &PeerSet);

    /// F1b: stores `value` in my row as [`store`](Self::store) does, then pushes exactly
    /// this value. One thread at a time.
    fn push_word(&self, word: usize, value: u64, to: &PeerSet);

    /// PushQueue each of `ranges` (offset, length), then the word that vouches for them: as
    /// [`push`](Self::push) and [`push_word`](Self::push_word) one after the other. One
    /// thread at a time.
    fn push_guarded(&self, ranges: &[(usize, usize)], word: usize, value: u64, to: &PeerSet) {
        for (at, len) in ranges {
            self.push(*at, *len, to);
        }
        self.push_word(word, value, to);
    }

    /// Stores the words of a message's header, then pushes its payload (if any), header
    /// and guard: as [`store_words`](Self::store_words) and
    /// [`push_guarded`](Self::push_guarded) do. `peers` is the size of `to`, so that a
    /// caller that pushes to the same set again does not have it counted each time. One
    /// thread at a time.
    fn push_message<const N: usize>(
        &self,
        message: &MessagePush<'_, N>,
        to: &PeerSet,
        peers: usize,
    ) {
        debug_assert_eq!(peers, to.len());
        self.store_words(message.header, message.words);
        let ranges = [message.payload, (message.header, N * 8)];
        let ranges = &ranges[usize::from(message.payload.1 == 0)..];
        self.push_guarded(ranges, message.guard, message.count, to);
    }

    /// Ends a batch of pushes, to all peers, and wakes those of `peers` whose announced
    /// interest includes `reason`. Every batch of pushes ends with this call, even if it
    /// wakes no peer: it fences. Never blocks on a peer. One thread at a time, of all segments
    /// of a process.
    fn wake(&self, peers: &PeerSet, reason: WakeReason);

    /// Whether the rows of all members are memory that all of them map, so that fences
    /// order what they see of each other: of two members that store, call
    /// [`wake`](Self::wake) and look at each other's rows afterwards, one at least sees
    /// what the other one has stored. A member that has pushed something small, and finds
    /// that others have still to push before it is of use, may then leave it to the last
    /// of them to wake the sleepers.
    fn shares_memory(&self) -> bool {
        false
    }

    /// Ends a batch of pushes as [`wake`](Self::wake) does, but wakes no peer. Returns whether
    /// it would have woken one of `peers`; true where that is not known.
    fn would_wake(&self, peers: &PeerSet, reason: WakeReason) -> bool {
        let _ = peers;
        self.wake(&PeerSet::EMPTY, reason);
        true
    }

    /// Stores and publishes an odd sleep epoch, then fences (SeqCst). The caller must look
    /// for work once more before it blocks.
    fn announce_sleep(&self, interest: WakeInterest);

    /// Ends what [`announce_sleep`](Self::announce_sleep) began: stores and publishes an
    /// even epoch.
    fn announce_awake(&self);

    /// Called by another thread of this process that has left work for the engine (a
    /// commit, a released sample): fences, and wakes the sleeper of this process if its
    /// epoch is odd. Any thread. No system call if no thread sleeps.
    fn nudge(&self);

    /// Like [`nudge`](Self::nudge), for a caller that holds the lock under which a sleeper
    /// takes its second look; it needs no fence. A sleeper that has taken its second look
    /// has announced before, and its epoch is visible under the lock; a sleeper that
    /// takes it later sees what the caller did under the lock. (This does not cover
    /// [`ParkSlots::announce_leased`], after which no second look follows: work left at
    /// that moment may wait until the follower returns or the poller looks.)
    fn nudge_under_lock(&self) {
        self.nudge();
    }

    /// Stores a word that vouches for nothing (an acknowledgement), to be delivered to
    /// `to` soon: nudges the engine, whose next step pushes the word. Over streams the
    /// word is pushed at once if the engine sleeps. A backend with
    /// shared memory, where the store is already visible (F5), wakes `to` instead if it
    /// sleeps and waits for room. Any thread.
    fn acknowledge(&self, word: usize, value: u64, to: Rank) {
        let _ = to;
        self.store(word, value);
        self.nudge();
    }

    /// Where peers have news since the last call with the same `seen`, in any segment of this
    /// process but control segments. `None` if this is not known: anything may have changed. One
    /// thread at a time. Never blocks.
    fn news(&self, seen: &mut SeenNews) -> Option<News> {
        let _ = seen;
        None
    }

    /// The bucket of this segment in [`news`](Self::news), the same at all its members.
    fn news_bucket(&self) -> u8 {
        0
    }

    /// The next failure of a peer, each reported once, on control segments only (F6). A
    /// backend does its own upkeep here, too. Never blocks.
    fn poll(&self) -> Option<PeerFailure>;

    /// F6: once this has returned, the row of `peer` in this segment does not change any
    /// more. Wake-ups of other peers are not affected.
    fn fence(&self, peer: Rank);

    /// What this fabric has done so far.
    fn counters(&self) -> FabricCounters;
}

/// A message as [`Fabric::push_message`] pushes it. Offsets are in bytes in my row.
#[derive(Debug, Clone, Copy)]
pub struct MessagePush<'a, const N: usize> {
    /// Offset and length of the payload; a length of 0 if there is none.
    pub payload: (usize, usize),
    /// Offset of the header.
    pub header: usize,
    /// The words of the header, which are stored there.
    pub words: &'a [u64; N],
    /// Offset of the guard, the word that vouches for the message.
    pub guard: usize,
    /// The guard's new value.
    pub count: u64,
}

impl<const N: usize> MessagePush<'_, N> {
    /// Number of pushes that it takes to one peer.
    #[inline]
    pub const fn pushes(&self) -> usize {
        2 + (self.payload.1 > 0) as usize
    }

    /// Number of bytes that are pushed to one peer.
    #[inline]
    pub const fn bytes(&self) -> usize {
        self.payload.1 + N * 8 + 8
    }
}

/// Blocking until woken. Backends with real time implement it; the simulator does not.
pub trait Park: Fabric {
    /// Blocks until a peer wakes this process, another thread nudges it, a peer fails, or
    /// `timeout` is over (`None`: no limit). Returns whether it was woken. To be called
    /// between `announce_sleep` with its second look and `announce_awake`. Spurious
    /// wake-ups are possible.
    fn park(&self, timeout: Option<core::time::Duration>) -> bool;
}

/// The two threads of a process that can sleep in its fabrics. See
/// [`poller_role`](crate::sleep::poller_role).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sleeper {
    /// The polling thread, which exists as long as its fabrics. [`Park`] and
    /// [`Fabric::announce_sleep`] speak of this one.
    Poller,
    /// An application thread that has taken the polling role while it waits.
    Follower,
}

/// A second slot to sleep in, for a follower beside the poller, and receiving by the threads that
/// step.
///
/// The sleep word is written by the thread that holds the polling role, so only one thread
/// at a time calls `announce_sleep`, `announce_awake` and the announcements here.
pub trait ParkSlots: Park {
    /// One more thread of the process polls from now on: it steps, or sleeps here, until this is
    /// called with `false`. While there is one, threads that step [receive](Self::receive), and
    /// threads that sleep here are woken by what arrives on streams. Otherwise a thread of the
    /// backend receives.
    fn set_polled(&self, is_polled: bool);

    /// Applies what has arrived on streams, unless another thread does at this moment. To be called
    /// before a step by each thread that steps with the polling role or beside its holder. Never
    /// blocks.
    fn receive(&self);

    /// Notes the state of the poller's doorbells without announcing anything: a wake-up
    /// from now on keeps `park` from blocking. For a poller that does not hold the role.
    fn note_doorbells(&self);

    /// Like `announce_awake`, for a follower that has just taken the polling role, while the poller is
    /// parked and stays so.
    fn announce_follower_awake(&self);

    /// Like `announce_sleep`, for a follower, which looks once more and then calls
    /// `park_follower`.
    fn announce_follower(&self, interest: WakeInterest);

    /// Like `announce_sleep`, on behalf of the poller, which has been parked all the
    /// while: the follower takes the second look for it. Returns false, and announces
    /// nothing, if the poller does not wait for all that may wake it, because peers have
    /// connected since; then the poller has to be woken.
    #[must_use]
    fn announce_poller(&self, interest: WakeInterest) -> bool;

    /// Announces that the process is awake, so peers do not wake it, while no thread looks
    /// at the moment: the follower holds the role on a lease. A nudge wakes the poller.
    /// Fences as an announcement of sleep does.
    fn announce_leased(&self);

    /// Blocks the follower as `park` does the poller.
    fn park_follower(&self, timeout: Option<core::time::Duration>) -> bool;

    /// Wakes the poller, or keeps it from going to sleep, whichever thread holds the role.
    fn wake_poller(&self);
}

/// What a sleeper wants to be woken for. A greater interest includes all lesser ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum WakeInterest {
    /// Pushes that carry something new to receive.
    Data,
    /// Acknowledgements too: a message that has been received waits for stability.
    Stability,
    /// Releases too: a thread waits for room in a ring, or for an acknowledgement.
    Room,
}

impl WakeInterest {
    /// The sleep word for an epoch: in bits 0 and 1 the interest, which is 0 for an owner
    /// that is awake, and the epoch in the bits above.
    pub const fn sleep_word(self, epoch: u64) -> u64 {
        epoch << 2 | (self as u64 + 1)
    }

    /// The interest in a sleep word; `None` if its owner is awake.
    pub const fn of_sleep_word(word: u64) -> Option<Self> {
        match word & 3 {
            1 => Some(Self::Data),
            2 => Some(Self::Stability),
            3 => Some(Self::Room),
            _ => None,
        }
    }

    /// Whether a sleeper with this interest is woken for `reason`.
    pub(crate) const fn includes(self, reason: WakeReason) -> bool {
        self as u8 + reason as u8 >= 2
    }
}

/// Why a sleeper is woken; the greater reason wakes more sleepers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum WakeReason {
    /// A release, or readiness for messages: wakes only those that wait for room.
    Room,
    /// An acknowledgement, of receipt or by a log: wakes those that wait for stability, or for room.
    Stability,
    /// Something new to receive: wakes every sleeper.
    Data,
}

/// The failure of a peer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeerFailure {
    /// Its rank in the segment.
    pub peer: Rank,
    /// How the failure was detected.
    pub cause: FailureCause,
}

/// How a failure was detected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FailureCause {
    /// The kernel reports that the process has ended.
    #[error("its process ended")]
    ProcessEnded,
    /// The fabric could not reach it.
    #[error("the fabric cannot reach it: {0}")]
    Unreachable(String),
}

/// Counters of one fabric since it was made: pushes of its segment; wake-ups, sleeps and
/// nudges of its process.
///
/// Where memory is shared nothing is sent. What would be sent is counted all the same, so
/// that figures of backends can be compared.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FabricCounters {
    /// Calls of `push`, times the peers of each.
    pub pushes: u64,
    /// Calls of `push_word`, times the peers of each.
    pub word_pushes: u64,
    /// Bytes of both, times the peers of each.
    pub bytes_pushed: u64,
    /// Sleepers woken: peers woken by this process; where wake-ups travel behind the data,
    /// wake-ups of this process on behalf of its peers.
    pub peer_wakes: u64,
    /// System calls by which it woke peers in shared memory: one may wake several of them.
    #[serde(default)]
    pub wake_calls: u64,
    /// Times that the process went to sleep.
    pub sleeps: u64,
    /// Times that a thread of the process woke its sleeper.
    pub nudges: u64,
}
