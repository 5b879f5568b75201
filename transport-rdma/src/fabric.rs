//! The `Fabric` contract: what every backend promises, and nothing more.

use serde::{Deserialize, Serialize};

use crate::mem::Region;
use crate::peers::{PeerSet, Rank};

/// Bytes at the start of every row that belong to the fabric, whether a backend
/// has a use for them or not. Columns begin after.
pub const FABRIC_AREA: usize = 256;

/// One-sided writes between the members of one segment.
///
/// A *segment* is a set of *rows* of memory, one for each of its members, which
/// have ranks in it. A member writes only its own row, through this trait, and
/// reads its local copies of the others'. A process is a member of any number
/// of segments, with a fabric for each; they come and go while it runs. A
/// fabric knows nothing of views, topics or messages.
///
/// ```text
///   member 0                          member 1
///   +--------------+   push, word     +--------------+
///   | row 0 (mine) | ===============> | copy of 0    |
///   | copy of 1    | <=============== | row 1 (mine) |
///   +--------------+      ring        +--------------+
/// ```
///
/// # The contract
///
/// - **F1** [`push`](Self::push)`(range, peers)`: the bytes of my row in `range`, as they
///   stand at some moment at or after the call, come to stand in my row's copy
///   at each of `peers`. No application code at the peer takes part. Pushes
///   may be held back until the next [`ring`](Self::ring) of the same segment,
///   whomever it rings: it ends a batch.
/// - **F1b** [`push_word`](Self::push_word)`(word, value, peers)`: one aligned
///   8-byte word, carrying exactly the value given at the call. Every word
///   that vouches for other bytes (a ring's guard, a flag that ends a list) is
///   pushed only this way, never inside a range: a queued write that fetched a
///   later guard would overtake the data it vouches for. Words that vouch for
///   nothing pushed later (acknowledgements) may ride along in a range. A word
///   goes one way or the other, never both: a range may carry a later value
///   than a `push_word` behind it, and the copy would go back for a while.
/// - **F2** for an ordered pair of processes, pushes take effect in call order,
///   over all the segments that they share:
///   nothing of a later push is visible before all of an earlier one, and a
///   later range carries nothing older than an earlier one: a word that rises
///   at its owner and is pushed in ranges only, never falls in a copy.
/// - **F3** nothing orders pushes of different pairs.
/// - **F4** an aligned 8-byte word is never torn. Inside one push, words may
///   appear in any order. So data goes first, its guard in a later `push_word`.
/// - **F5** the owner's stores may become visible at peers before the push,
///   never out of store order (shared memory does this).
/// - **F6** failure of a peer is reported by [`poll`](Self::poll), on control
///   segments only: once on each that has the peer, also if it is opened later.
///   A push to a live peer is never dropped silently, unless that peer has
///   closed the segment; if it has not opened it yet, the push waits for that,
///   and whatever follows it may wait too. After an error it is unknown what
///   landed. [`fence`](Self::fence): once it has returned, nothing more of that
///   peer is seen in this segment; other segments go on.
/// - **F7** memory belongs to a segment and is out of reach of those who are not
///   its members.
///
/// # Sleeping
///
/// A process sleeps, not a segment: all fabrics of a process share one sleep
/// word, and what is announced, rung or nudged on one of them holds for all.
///
/// Nobody writes into another's memory, so a sleeper tells that it sleeps in its
/// own: [`announce_sleep`](Self::announce_sleep) stores an odd epoch and
/// fences; then the sleeper **looks once more**; only then it blocks (which is
/// no business of this trait: see [`Park`]). Whoever pushed calls
/// [`ring`](Self::ring), which fences, reads the epochs and rings those that
/// are odd. Either the waker sees the epoch or the sleeper's second look sees
/// the push: no wake-up is lost. On fabrics where the epoch travels as a push
/// itself, a fabric that sees a new odd epoch rings by itself when it has
/// pushed to that peer without ringing since the last one: so who has pushed goes on to
/// [`poll`](Self::poll), or announces that it sleeps itself. On fabrics where the
/// ring travels, behind the data, the epoch need not: a thread of the sleeper's
/// process takes the waker's part when the ring arrives.
pub trait Fabric: Send + Sync + 'static {
    /// My own rank in the segment.
    fn me(&self) -> Rank;

    /// Number of members of the segment.
    fn members(&self) -> usize;

    /// A member's row: the row itself for [`me`](Self::me), a copy or a
    /// read-only mapping for the others. Panics on a rank outside the segment.
    fn row(&self, of: Rank) -> &Region;

    /// Stores a word of my own row (release). Visible to peers at the latest
    /// when a push that covers it has landed; maybe at once (F5). Any thread.
    fn store(&self, word: usize, value: u64);

    /// Stores words in a row, from `at`, as [`store`](Self::store) does one after the other.
    fn store_words<const N: usize>(&self, at: usize, values: &[u64; N]) {
        for (value, word) in values.iter().zip((at..).step_by(8)) {
            self.store(word, *value);
        }
    }

    /// F1: sends the bytes `at..at + len` of my row. Both are multiples of 8.
    /// Never blocks on a peer. One thread at a time.
    fn push(&self, at: usize, len: usize, to: &PeerSet);

    /// F1b: stores `value` into my own row like [`store`](Self::store), then
    /// sends exactly this value. One thread at a time.
    fn push_word(&self, word: usize, value: u64, to: &PeerSet);

    /// A push of each of `ranges`, which are offsets and lengths, and then a push of the
    /// word that vouches for them: as [`push`](Self::push) and
    /// [`push_word`](Self::push_word) do one after the other. One thread at a time.
    fn push_guarded(&self, ranges: &[(usize, usize)], word: usize, value: u64, to: &PeerSet) {
        for (at, len) in ranges {
            self.push(*at, *len, to);
        }
        self.push_word(word, value, to);
    }

    /// Stores the words of a message's header, and pushes its payload, if there is any, its
    /// header and the guard: as [`store_words`](Self::store_words) and
    /// [`push_guarded`](Self::push_guarded) do one after the other. `peers` is how many `to`
    /// has: who pushes again and again does not have them counted each time. One thread at a
    /// time.
    fn push_message<const N: usize>(&self, message: &MessagePush<'_, N>, to: &PeerSet, peers: usize) {
        debug_assert_eq!(peers, to.len());
        self.store_words(message.header, message.words);
        let ranges = [message.payload, (message.header, N * 8)];
        let ranges = &ranges[usize::from(message.payload.1 == 0)..];
        self.push_guarded(ranges, message.guard, message.count, to);
    }

    /// Ends a batch of pushes, to whomever they went, and wakes sleepers: those
    /// of `data` whatever they sleep for, those of `acks` only if they said that
    /// they wait for acknowledgements. Whoever has pushed calls it, if only for
    /// nobody. Never blocks on a peer.
    fn wake(&self, data: &PeerSet, acks: &PeerSet);

    /// Stores and publishes an odd sleep epoch, then fences (SeqCst). The
    /// caller looks for work once more before it blocks.
    fn announce_sleep(&self, want: WakeInterest);

    /// Ends what [`announce_sleep`](Self::announce_sleep) began: stores and
    /// publishes an even epoch.
    fn announce_awake(&self);

    /// Called by another thread of this process after it has left work for
    /// the engine (a commit, a released sample): fences, and wakes the sleeper
    /// if my own epoch is odd. Any thread; no system call when nobody sleeps.
    fn nudge(&self);

    /// As [`nudge`](Self::nudge), by who owns what a sleeper takes possession of for its
    /// second look: no fence. Whoever has looked before has announced before, and this is
    /// seen; whoever looks afterwards sees what was done under it. (Not so who announces that
    /// nobody looks for a moment, see [`ParkSlots::announce_leased`], and does not look again: what
    /// is left for it in that moment may wait until it is back, or the keeper looks.)
    fn nudge_under_lock(&self) {
        self.nudge();
    }

    /// Any thread: stores a word that vouches for nothing (an acknowledgement)
    /// and lets `to` have it soon: the engine is nudged, and its next step
    /// pushes the word. Backends whose peers see stores at once (F5) ring
    /// instead, if `to` sleeps and wants acknowledgements.
    fn acknowledge(&self, word: usize, value: u64, to: Rank) {
        let _ = to;
        self.store(word, value);
        self.nudge();
    }

    /// Next failure of a peer, each reported once; of control segments only (F6).
    /// Also the place where a backend does its own upkeep. Never blocks.
    fn poll(&self) -> Option<PeerFailure>;

    /// F6: once it has returned, nothing more of `peer` is seen in this segment:
    /// its row here does not change any more. The others wake a sleeper as before.
    fn fence(&self, peer: Rank);

    /// What has been done so far.
    fn counters(&self) -> FabricCounters;
}

/// See [`Fabric::push_message`].
#[derive(Debug, Clone, Copy)]
pub struct MessagePush<'a, const N: usize> {
    /// Where its payload stands in my row, and how many bytes that has.
    pub payload: (usize, usize),
    /// Where its header stands.
    pub header: usize,
    /// What is stored there.
    pub words: &'a [u64; N],
    /// Where the word stands that vouches for it.
    pub guard: usize,
    /// Its value.
    pub count: u64,
}

impl<const N: usize> MessagePush<'_, N> {
    /// How many pushes it takes.
    #[inline]
    pub const fn pushes(&self) -> usize {
        2 + (self.payload.1 > 0) as usize
    }

    /// How many bytes are pushed.
    #[inline]
    pub const fn bytes(&self) -> usize {
        self.payload.1 + N * 8 + 8
    }
}

/// Blocking until rung: backends with real time have it, the simulator not.
pub trait Park: Fabric {
    /// Blocks until somebody rings or nudges, a peer fails, or `timeout` is
    /// over (`None`: no limit). Returns whether it was rung. To be called
    /// between `announce_sleep` (and the second look) and `announce_awake`.
    /// May wake without cause.
    fn park(&self, timeout: Option<core::time::Duration>) -> bool;
}

/// Who of a process sleeps. See [`duty`](crate::poller_role).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sleeper {
    /// The thread that is always there. What [`Park`] and [`Fabric::announce_sleep`] say
    /// is said of it.
    Keeper,
    /// A thread that has taken its duty for a while.
    Guest,
}

/// Places to sleep for two: backends that can tell those who ring whom to wake have them.
/// The sleep word is written by whoever has the duty, and so one thread at a time calls
/// `announce_sleep`, `announce_awake`, and what announces here.
pub trait ParkSlots: Park {
    /// Whether a guest can be woken by all that ring now, and the keeper beside it.
    fn has_follower_slot(&self) -> bool;

    /// Notes the keeper's bells, without announcing anything: rung from now on, it does not
    /// sleep. For a keeper that has not the duty.
    fn note_doorbells(&self);

    /// Like `announce_sleep` for the guest, who looks once more and then calls
    /// `park_follower`. False, and nothing is announced, where it cannot be woken by all that
    /// ring: too many peers, or none of the system calls that it takes.
    #[must_use]
    fn announce_follower(&self, want: WakeInterest) -> bool;

    /// Like `announce_sleep` for the keeper, who has been asleep all the while: the guest
    /// looks once more in its place. False, and nothing is announced, where the keeper
    /// does not hear all that ring, as peers came since: it has to be woken.
    #[must_use]
    fn announce_poller(&self, want: WakeInterest) -> bool;

    /// Awake to peers, who do not ring; but a nudge wakes the keeper. Fences, as an
    /// announcement of sleep does.
    fn announce_leased(&self);

    /// Blocks the guest as `park` does the keeper.
    fn park_follower(&self, timeout: Option<core::time::Duration>) -> bool;

    /// Wakes the keeper, whoever has the duty, or has it not go to sleep.
    fn wake_poller(&self);
}

/// What a sleeper wants to be woken for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WakeInterest {
    /// Only pushes that carry something new to receive.
    Data,
    /// Acknowledgements too: somebody waits for room, or for stability.
    DataAndAcks,
}

impl WakeInterest {
    /// The sleep word for a given epoch number: bit 0 asleep, bit 1 wants
    /// acknowledgements, the epoch above.
    pub const fn sleep_word(self, epoch: u64) -> u64 {
        epoch << 2 | 1 | (matches!(self, Self::DataAndAcks) as u64) << 1
    }

    /// What a sleep word asks for; `None` when its owner is awake.
    pub const fn of_sleep_word(word: u64) -> Option<Self> {
        match word & 3 {
            1 => Some(Self::Data),
            3 => Some(Self::DataAndAcks),
            _ => None,
        }
    }

    /// Whether who wants this is woken by that.
    pub(crate) fn includes(self, reason: WakeReason) -> bool {
        reason == WakeReason::Data || self == Self::DataAndAcks
    }
}

/// What a ring is about: data wakes all sleepers, acknowledgements those who
/// wait for them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum WakeReason {
    Acks,
    Data,
}

/// A peer is gone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeerFailure {
    /// Who.
    pub peer: Rank,
    /// How it is known.
    pub cause: FailureCause,
}

/// How a failure is known.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FailureCause {
    /// The kernel says that the process has ended.
    #[error("its process ended")]
    ProcessEnded,
    /// The fabric could not reach it.
    #[error("the fabric cannot reach it: {0}")]
    Unreachable(String),
}

/// Counters of one fabric since it was made: pushes are those of its segment,
/// rings, sleeps and nudges those of the process.
///
/// Where memory is shared, nothing is sent: what would be is counted all the same, so that
/// figures can be compared.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FabricCounters {
    /// Calls of `push`, times the peers of each.
    pub pushes: u64,
    /// Calls of `push_word`, times the peers of each.
    pub word_pushes: u64,
    /// Bytes sent by both.
    pub bytes_pushed: u64,
    /// Doorbells rung at sleepers: by this member at others, or, where rings
    /// travel, here on behalf of the others.
    pub peer_wakes: u64,
    /// Times the process went to sleep.
    pub sleeps: u64,
    /// Times its own threads woke it.
    pub nudges: u64,
}
