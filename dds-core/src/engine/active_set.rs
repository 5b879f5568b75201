//! Subgroups at rest: what a step need not look into.
//!
//! A participant may have many epochs of which few are busy. What a pass over the
//! predicates of an epoch does depends on three things only: the epoch's own state, words
//! that other members write, and what threads of this participant leave there (commits,
//! withdrawn claims, released samples). So an epoch that a few passes in a row have moved
//! nothing in is laid to *rest*: the words on which it depends are noted with their
//! values, and a step compares those instead. At rest with nothing in flight that is one
//! guard for each ring of each other sender. And even that not in all epochs at each step:
//! see below.
//!
//! ```text
//!   awake --passes that move nothing--> resting = true, fence, note the words,
//!     ^                                 one pass more: moved something?
//!     |                                   yes: awake      no: at rest, dozing
//!     |                                                     |
//!     |                                 many looks in vain: at rest, fast asleep
//!     |
//!     +--- a noted word differs: looked at by a whole step that has moved nothing else;
//!     |                          by a brief one, where it dozes, or it is its turn
//!     +--- stirred by a thread:  looked at by every step
//!     +--- changed by the owner of the engine (published, wedged, fenced, ...)
//! ```
//!
//! *What epochs at rest cost.* Who steps again and again, because it spins or has enough to
//! do, takes brief steps ([`Engine::step_briefly`]). Where something may come any moment, as
//! it has of late, it looks each time that it has moved nothing: such an epoch only dozes. Of those
//! that are fast asleep it looks at one, and at another the next time, however many there
//! are. Who moves something looks at one of all that rest, every few steps: each of their words
//! stands on a line and a page of its own. (Of four processes on two cores that had one busy
//! epoch and 49 at rest, looks were 5 % of all processor time when each step had one, and epochs
//! fast asleep were looked at in pairs.) So what a step costs does not grow with them; what grows
//! is how many steps it takes to find that one of them has news, while this participant is awake.
//! Only who is about to sleep, which costs far more, takes a whole step.
//!
//! *Why not a word in each row that senders raise with every push.* Who has many epochs busy
//! would find it raised at each look, and compare all words for it. Raised only for epochs that
//! somebody has at rest, it needs a word by which each member tells the others of its
//! rest, and, where that travels, an answer before it counts. And it would have to stand in
//! another segment than the epoch's (which segment, while a view begins and epochs go on?),
//! cost a push, or a line, a batch, and be raised by acknowledging threads that do not
//! own the engine. Comparing what is here anyway needs nothing of the fabric: F1 to F7
//! say when a word changes, and nobody has to say it again.
//!
//! *No change is missed.* A whole step that says that nothing moved has compared all words of
//! all epochs at rest, so the second look of who goes to sleep is a look at all epochs. The
//! words are noted before the last pass: a change that this pass did not see is a
//! difference. A thread of this participant leaves its work, fences (every nudge does) and
//! looks at `resting`; the engine raises `resting`, fences, and looks for work in one more
//! pass. Either the thread sees the flag, and stirs, or that pass sees the work (a model of
//! loom checks it).
//!
//! [`Engine::step_briefly`]: crate::Engine::step_briefly

/// Which epochs are awake, by their places in the engine's list.
#[derive(Debug, Default)]
pub(crate) struct ActiveSet {
    subgroups: usize,
    awake: Vec<u64>,
    /// Of those at rest, the ones that wait for acknowledgements.
    wanting: Vec<u64>,
    /// Of those at rest, the ones that are fast asleep.
    asleep: Vec<u64>,
    /// Behind the epoch whose turn was last.
    turn: usize,
    /// Steps that have moved something since one of them looked at an epoch at rest.
    worked: u32,
}

/// Where epochs stand between awake and at rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Awake,
    /// Of both kinds.
    Resting,
    Dozing,
    Asleep,
}

/// Of the steps that have moved something, one in so many looks at an epoch at rest.
pub(crate) const STEPS_A_LOOK: u32 = 4;
/// Looks in vain until an epoch that dozes is fast asleep: who spins takes some tenths of a
/// millisecond for them.
pub(crate) const LOOKS_TO_SLEEP: u32 = 1024;

impl ActiveSet {
    /// All epochs are awake; there are so many.
    pub(crate) fn wake_all(&mut self, subgroups: usize) {
        self.subgroups = subgroups;
        self.awake.clear();
        self.awake.resize(subgroups.div_ceil(64), u64::MAX);
        if let Some(last) = self.awake.last_mut()
            && !subgroups.is_multiple_of(64)
        {
            *last = (1 << (subgroups % 64)) - 1;
        }
        for of_resting in [&mut self.wanting, &mut self.asleep] {
            of_resting.clear();
            of_resting.resize(subgroups.div_ceil(64), 0);
        }
    }

    pub(crate) fn wake(&mut self, at: usize) {
        let subgroup = 1 << (at % 64);
        self.awake[at / 64] |= subgroup;
        self.wanting[at / 64] &= !subgroup;
        self.asleep[at / 64] &= !subgroup;
    }

    /// It is at rest, and dozes.
    pub(crate) fn lay(&mut self, at: usize, wants_acks: bool) {
        self.awake[at / 64] &= !(1 << (at % 64));
        self.wanting[at / 64] |= u64::from(wants_acks) << (at % 64);
    }

    /// One that dozes falls asleep.
    pub(crate) fn put_to_sleep(&mut self, at: usize) {
        self.asleep[at / 64] |= 1 << (at % 64);
    }

    /// Whether an epoch at rest waits for acknowledgements.
    pub(crate) fn wants_acks(&self) -> bool {
        self.wanting.iter().any(|subgroups| *subgroups != 0)
    }

    /// A step has moved something: whether it looks at an epoch at rest all the same.
    pub(crate) fn is_time_to_look(&mut self) -> bool {
        self.worked = (self.worked + 1) % STEPS_A_LOOK;
        self.worked == 0
    }

    /// The epoch whose turn it is, of this kind.
    pub(crate) fn take_turn(&mut self, kind: Kind) -> Option<usize> {
        let at = self.next(self.turn, kind).or_else(|| self.next(0, kind))?;
        self.turn = at + 1;
        Some(at)
    }

    /// The first epoch of a kind from `from` on.
    pub(crate) fn next(&self, from: usize, kind: Kind) -> Option<usize> {
        let mut at = from;
        while at < self.subgroups {
            let (awake, asleep) = (self.awake[at / 64], self.asleep[at / 64]);
            let subgroups = match kind {
                Kind::Awake => awake,
                Kind::Resting => !awake,
                Kind::Dozing => !(awake | asleep),
                Kind::Asleep => asleep,
            };
            let left = subgroups >> (at % 64);
            if left != 0 {
                at += left.trailing_zeros() as usize;
                return (at < self.subgroups).then_some(at);
            }
            at = (at / 64 + 1) * 64;
        }
        None
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn all(active_set: &ActiveSet, kind: Kind) -> Vec<usize> {
        let first = active_set.next(0, kind);
        std::iter::successors(first, |at| active_set.next(at + 1, kind)).collect()
    }

    #[test]
    fn each_epoch_is_awake_or_dozes_or_is_asleep() {
        for subgroups in [0, 1, 63, 64, 65, 128, 200] {
            let mut active_set = ActiveSet::default();
            active_set.wake_all(subgroups);
            assert_eq!(
                all(&active_set, Kind::Awake),
                (0..subgroups).collect::<Vec<_>>()
            );
            assert_eq!(all(&active_set, Kind::Resting), []);
            let lay: Vec<_> = (0..subgroups).filter(|at| at % 3 != 1).collect();
            lay.iter().for_each(|&at| active_set.lay(at, false));
            assert_eq!(all(&active_set, Kind::Resting), lay);
            assert_eq!(all(&active_set, Kind::Dozing), lay);
            assert_eq!(all(&active_set, Kind::Awake).len() + lay.len(), subgroups);
            let (asleep, dozing): (Vec<_>, Vec<_>) = lay.iter().partition(|at| **at % 3 == 0);
            asleep.iter().for_each(|at| active_set.put_to_sleep(*at));
            assert_eq!(all(&active_set, Kind::Resting), lay);
            assert_eq!(all(&active_set, Kind::Dozing), dozing);
            assert_eq!(all(&active_set, Kind::Asleep), asleep);
            asleep.iter().for_each(|&at| active_set.wake(at));
            asleep.iter().for_each(|&at| active_set.lay(at, false));
            assert_eq!(
                all(&active_set, Kind::Dozing),
                lay,
                "who comes to rest again dozes"
            );
        }
    }

    #[test]
    fn who_is_asleep_has_its_turn() {
        for subgroups in [1, 2, 3, 64, 65, 200] {
            let mut active_set = ActiveSet::default();
            active_set.wake_all(subgroups);
            for at in 0..subgroups {
                active_set.lay(at, false);
                active_set.put_to_sleep(at);
            }
            let seen: Vec<_> = (0..2 * subgroups)
                .map_while(|_| active_set.take_turn(Kind::Asleep))
                .collect();
            let expected: Vec<_> = (0..subgroups).chain(0..subgroups).collect();
            assert_eq!(seen, expected);
        }
    }

    #[test]
    fn who_is_awake_has_no_turn() {
        let mut active_set = ActiveSet::default();
        active_set.wake_all(70);
        assert_eq!(active_set.take_turn(Kind::Resting), None);
        active_set.lay(69, false);
        active_set.lay(3, false);
        let turns = [0; 3].map(|_| active_set.take_turn(Kind::Resting));
        assert_eq!(turns, [Some(3), Some(69), Some(3)]);
        assert_eq!(active_set.take_turn(Kind::Asleep), None);
        active_set.wake(3);
        let turns = [0; 2].map(|_| active_set.take_turn(Kind::Resting));
        assert_eq!(turns, [Some(69), Some(69)]);
    }

    #[test]
    fn who_works_looks_now_and_then() {
        let mut active_set = ActiveSet::default();
        let looks = (0..3 * STEPS_A_LOOK).filter(|_| active_set.is_time_to_look());
        assert_eq!(looks.count(), 3);
    }

    #[test]
    fn who_wakes_wants_for_itself() {
        let mut active_set = ActiveSet::default();
        active_set.wake_all(70);
        active_set.lay(69, true);
        active_set.lay(3, false);
        assert!(active_set.wants_acks());
        active_set.wake(69);
        assert!(!active_set.wants_acks());
        assert_eq!(all(&active_set, Kind::Resting), [3]);
    }
}
