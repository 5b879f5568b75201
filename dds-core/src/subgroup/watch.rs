//! What a pass compares to find out what has changed, so that it costs what has changed and not
//! what there is.
//!
//! A subgroup may have many senders and members, few of which have news at a time. So the words of
//! other members that a pass reads are listed one behind the other, each with the value that was
//! evaluated last; only where a word differs is anything looked at. What is a least value of all
//! is kept with the one that has it: while that one stays where it is, so does the least.
//!
//! Invariants, which `check_watch` checks in debug builds after each pass:
//!
//! - A word that has its noted value has been evaluated.
//! - `waiting` has the rings of which a real message is received and not delivered.
//! - `unacknowledged` has the ordered senders that were received from since the last
//!   acknowledgement, `passed` the rings of which anything was passed since the last release.
//! - A least value is at most what its holder has now, and what all others had when it was taken;
//!   counts only rise.

use spindle_dds_transport::{Fabric, MEMBERS_MAX, Rank, RowWord};

#[cfg(debug_assertions)]
use super::SubgroupState;
use super::{Member, Sender};
use crate::ids::DeliveryClass;
#[cfg(debug_assertions)]
use crate::subgroup::handle::SubgroupHandle;

/// What the predicates of a subgroup have evaluated, and what is left to evaluate.
#[derive(Debug)]
pub(super) struct Watch {
    /// Guards of the rings of other members, less those that are fenced, by sender and class. The
    /// value is the count received.
    pub(super) guards: Vec<Guard>,
    /// `received_num` of the other members that are not fenced.
    pub(super) acks: Vec<SeenWord>,
    /// What the other members that are not fenced have persisted, where any topic has logs.
    pub(super) persisted: Vec<SeenWord>,
    /// Ordered senders, this member left out, received from since the last acknowledgement.
    pub(super) unacknowledged: SenderSet,
    /// By class: senders of which a real message waits for delivery.
    pub(super) waiting: [SenderSet; 2],
    /// By class: senders of which something was passed since the last release.
    pub(super) passed: [SenderSet; 2],
    /// The sequence number of the next message of any ordered sender but this member.
    pub(super) next_of_others: Least,
    /// Number of messages that this member must have sent for what has been received of others.
    pub(super) nulls_due: u64,
    /// A member that had not received the next message when that was last looked at; or this one.
    pub(super) behind: Rank,
    /// By class: what all members have released of the own ring.
    pub(super) released: [Least; 2],
    pub(super) reach: Reach,
    /// Whether a checkpoint of the digest is still to be compared with that of some member.
    pub(super) digests_due: bool,
    /// Whether any member is fenced.
    pub(super) any_fenced: bool,
}

/// A word of another member's row, and the value that was evaluated last.
#[derive(Debug)]
pub(super) struct SeenWord {
    word: RowWord,
    pub(super) value: u64,
    pub(super) place: Rank,
}

impl SeenWord {
    fn new<F: Fabric>(fabric: &F, place: Rank, word: usize) -> Self {
        Self {
            word: fabric.row(place).row_word(word),
            value: 0,
            place,
        }
    }

    #[inline]
    fn differs(&self) -> bool {
        self.word.load() != self.value
    }

    /// The word, if it differs from what was evaluated last. It is evaluated now.
    pub(super) fn look(&mut self) -> Option<u64> {
        let value = self.word.load();
        (std::mem::replace(&mut self.value, value) != value).then_some(value)
    }
}

/// The guard of a ring.
#[derive(Debug)]
pub(super) struct Guard {
    pub(super) seen: SeenWord,
    /// Index of the sender in the epoch's `senders`.
    pub(super) sender: u16,
    pub(super) class: DeliveryClass,
}

/// A least value, and which one has it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Least {
    pub(super) value: u64,
    /// Index of the sender, or rank of the member.
    pub(super) holder: u16,
}

impl Least {
    /// The least of these; `u64::MAX` of nothing.
    pub(super) fn of(values: impl Iterator<Item = Self>) -> Self {
        let none = Self {
            value: u64::MAX,
            holder: u16::MAX,
        };
        values.fold(none, |least, it| match it.value < least.value {
            true => it,
            false => least,
        })
    }
}

/// Of what the bound of other members' guards is computed.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Reach {
    /// Exclusive end of the indexes of the real messages received.
    pub(super) highest: u64,
    /// Real messages received.
    pub(super) known: u64,
    /// Real messages that can have been sent by others and are unknown here: as many at least, as
    /// what was released since it was computed makes room for more.
    pub(super) unknown: u64,
}

impl Reach {
    pub(super) fn bound(&self) -> u64 {
        self.highest.min(self.known) + self.unknown
    }

    /// Notes the receipt of real messages, the newest with this exclusive index.
    pub(super) fn receive(&mut self, messages: u64, newest: u64) {
        self.highest = self.highest.max(newest);
        self.known += messages;
    }
}

impl Watch {
    pub(super) fn new<F: Fabric>(fabric: &F, members: &[Member], senders: &[Sender]) -> Self {
        let me = fabric.me();
        let others = || (0..).zip(senders).filter(|(_, sender)| sender.rank != me);
        let guards = others().flat_map(|(at, sender)| {
            DeliveryClass::BOTH.into_iter().filter_map(move |class| {
                let cursor = sender.receive_cursors[class.index()].as_ref()?;
                Some(Guard {
                    seen: SeenWord::new(fabric, sender.rank, cursor.guard()),
                    sender: at,
                    class,
                })
            })
        });
        let ordered = || others().filter(|(_, sender)| sender.receive_cursors[0].is_some());
        let members = (0..).map(Rank).zip(members);
        let acks = members.filter(|(place, _)| *place != me);
        let logging = acks.clone();
        let persisted = logging.filter_map(|(place, member)| {
            let word = member.columns.persisted?;
            Some(SeenWord::new(fabric, place, word))
        });
        Self {
            guards: guards.collect(),
            acks: acks
                .map(|(place, member)| SeenWord::new(fabric, place, member.columns.received_num))
                .collect(),
            persisted: persisted.collect(),
            // The first acknowledgement says that nothing has been received.
            unacknowledged: ordered().map(|(at, _)| at).collect(),
            waiting: [SenderSet::default(); 2],
            passed: [SenderSet::default(); 2],
            next_of_others: Least::of(ordered().map(|(at, sender)| Least {
                value: sender.order,
                holder: at,
            })),
            nulls_due: 0,
            behind: me,
            released: [Least {
                value: 0,
                holder: 0,
            }; 2],
            reach: Reach::default(),
            digests_due: false,
            any_fenced: false,
        }
    }

    /// The first guard from index `from` on that has changed.
    #[inline]
    pub(super) fn next_guard(&self, from: usize) -> Option<usize> {
        let guards = self.guards.get(from..)?;
        let at = guards.iter().position(|it| it.seen.differs())?;
        Some(from + at)
    }

    /// The same of the acknowledgements.
    #[inline]
    pub(super) fn next_ack(&self, from: usize) -> Option<usize> {
        let acks = self.acks.get(from..)?;
        let at = acks.iter().position(SeenWord::differs)?;
        Some(from + at)
    }

    /// The member's row is no longer read.
    pub(super) fn fence(&mut self, place: Rank) {
        self.guards.retain(|it| it.seen.place != place);
        self.acks.retain(|it| it.place != place);
        self.persisted.retain(|it| it.place != place);
        self.any_fenced = true;
    }
}

/// A set of senders, by their index in the epoch.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct SenderSet([u64; MEMBERS_MAX / 64]);

impl SenderSet {
    #[inline]
    pub(super) fn insert(&mut self, at: usize) {
        self.0[at / 64] |= 1 << (at % 64);
    }

    #[inline]
    pub(super) fn remove(&mut self, at: usize) {
        self.0[at / 64] &= !(1 << (at % 64));
    }

    #[inline]
    pub(super) fn contains(&self, at: usize) -> bool {
        let word = self.0.get(at / 64);
        word.is_some_and(|word| word >> (at % 64) & 1 == 1)
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.0.iter().fold(0, |any, word| any | word) == 0
    }

    /// The senders that are in either set.
    #[inline]
    pub(super) fn union(self, other: Self) -> Self {
        Self(core::array::from_fn(|at| self.0[at] | other.0[at]))
    }

    /// Empties the set and returns what was in it.
    #[inline]
    pub(super) fn take(&mut self) -> Self {
        core::mem::take(self)
    }

    /// The first sender of the set at or after `from`.
    #[inline]
    pub(super) fn next(&self, from: usize) -> Option<usize> {
        let mut at = from / 64;
        let mut word = self.0.get(at)? & (u64::MAX << (from % 64));
        while word == 0 {
            at += 1;
            word = *self.0.get(at)?;
        }
        Some(at * 64 + word.trailing_zeros() as usize)
    }

    /// The senders in ascending order.
    #[inline]
    pub(super) fn iter(self) -> impl Iterator<Item = usize> {
        let mut from = 0;
        core::iter::from_fn(move || {
            let at = self.next(from)?;
            from = at + 1;
            Some(at)
        })
    }
}

impl FromIterator<u16> for SenderSet {
    fn from_iter<I: IntoIterator<Item = u16>>(senders: I) -> Self {
        let mut set = Self::default();
        senders.into_iter().for_each(|at| set.insert(at.into()));
        set
    }
}

impl core::fmt::Debug for SenderSet {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

/// A plain evaluation of all senders comes to what is kept.
#[cfg(debug_assertions)]
impl<F: Fabric> SubgroupState<F> {
    pub(super) fn check_watch(&self, handle: &SubgroupHandle<F>) {
        let me = handle.fabric.me();
        let mut guards = self.watch.guards.iter();
        let mut least = u64::MAX;
        let mut nulls = 0;
        for (at, sender) in self.senders.iter().enumerate() {
            for (class, cursor) in sender.receive_cursors.iter().enumerate() {
                let waits = cursor.as_ref().is_some_and(|it| it.waiting() > 0);
                assert_eq!(self.watch.waiting[class].contains(at), waits);
                let Some(cursor) = cursor else { continue };
                if sender.rank != me && !self.members[sender.rank.index()].fenced {
                    let guard = guards.next().map(|it| (it.sender, it.seen.value));
                    assert_eq!(guard, Some((at as u16, cursor.count())));
                }
            }
            if let Some(count) = self.count(sender) {
                least = least.min(count * handle.ordered + sender.order);
                if sender.rank != me {
                    nulls = nulls.max(self.nulls_wanted(handle, sender.order, count));
                }
            }
        }
        assert_eq!((guards.count(), self.watch.nulls_due), (0, nulls));
        assert!(self.ordered.is_empty() || self.received(handle) == least);
        let (kept, reach) = (self.watch.reach, self.reach(handle));
        assert_eq!((kept.highest, kept.known), (reach.highest, reach.known));
        assert!(kept.unknown <= reach.unknown);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_set_has_what_was_inserted_in_ascending_order() {
        let senders = [0, 1, 63, 64, 127, 128, 255];
        let mut set: SenderSet = senders.into_iter().rev().collect();
        assert!(set.iter().eq(senders.map(usize::from)));
        assert_eq!(
            (set.next(2), set.next(64), set.next(256)),
            (Some(63), Some(64), None)
        );
        assert!(set.contains(255) && !set.contains(254) && !set.contains(usize::from(u16::MAX)));
        set.remove(64);
        assert!(!set.contains(64) && set.contains(128) && !set.is_empty());
        assert_eq!(set.take().iter().count(), senders.len() - 1);
        assert!(set.is_empty() && set.iter().next().is_none());
    }

    #[test]
    fn the_first_of_equal_values_is_the_least() {
        let values = [5, 3, 4, 3].into_iter().zip(0..);
        let least = Least::of(values.map(|(value, holder)| Least { value, holder }));
        assert_eq!((least.value, least.holder), (3, 1));
        assert_eq!(Least::of(std::iter::empty()).value, u64::MAX);
    }
}
