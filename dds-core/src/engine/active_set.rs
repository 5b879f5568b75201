//! Subgroups at rest: what a step need not look into.
//!
//! A participant may have many lanes of which few are busy. What a pass over the
//! predicates of a lane does depends on three things only: the lane's own state, words
//! that other members write, and what threads of this participant leave there (commits,
//! withdrawn claims, released samples). So a lane that a few passes in a row have moved
//! nothing in is laid to *rest*: the words on which it depends are noted with their
//! values, and a step compares those instead. At rest with nothing in flight that is one
//! guard for each ring of each other sender. And even that not in all lanes at each step:
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
//! *What lanes at rest cost.* Who steps again and again, because it spins or has enough to
//! do, takes brief steps ([`Engine::step_briefly`]). Where something may come any moment, as
//! it has of late, it looks each time that it has moved nothing: such a lane only dozes. Of those
//! that are fast asleep it looks at one, and at another the next time, however many there
//! are. Who moves something looks at one of all that rest, every few steps: each of their words
//! stands on a line and a page of its own. (Of four processes on two cores that had one busy
//! lane and 49 at rest, looks were 5 % of all processor time when each step had one, and lanes
//! fast asleep were looked at in pairs.) So what a step costs does not grow with them; what grows
//! is how many steps it takes to find that one of them has news, while this participant is awake.
//! Only who is about to sleep, which costs far more, takes a whole step.
//!
//! *Why not a word in each row that senders raise with every push.* Who has many lanes busy
//! would find it raised at each look, and compare all words for it. Raised only for lanes that
//! somebody has at rest, it needs a word by which each member tells the others of its
//! rest, and, where that travels, an answer before it counts. And it would have to stand in
//! another segment than the lane's (which segment, while a view begins and lanes go on?),
//! cost a push, or a line, a batch, and be raised by acknowledging threads that do not
//! own the engine. Comparing what is here anyway needs nothing of the fabric: F1 to F7
//! say when a word changes, and nobody has to say it again.
//!
//! *No change is missed.* A whole step that says that nothing moved has compared all words of
//! all lanes at rest, so the second look of who goes to sleep is a look at all lanes. The
//! words are noted before the last pass: a change that this pass did not see is a
//! difference. A thread of this participant leaves its work, fences (every nudge does) and
//! looks at `resting`; the engine raises `resting`, fences, and looks for work in one more
//! pass. Either the thread sees the flag, and stirs, or that pass sees the work (a model of
//! loom checks it).
//!
//! [`Engine::step_briefly`]: crate::Engine::step_briefly

/// Which lanes are awake, by their places in the engine's list.
#[derive(Debug, Default)]
pub(crate) struct ActiveSet {
    lanes: usize,
    awake: Vec<u64>,
    /// Of those at rest, the ones that wait for acknowledgements.
    wanting: Vec<u64>,
    /// Of those at rest, the ones that are fast asleep.
    asleep: Vec<u64>,
    /// Behind the lane whose turn was last.
    turn: usize,
    /// Steps that have moved something since one of them looked at a lane at rest.
    worked: u32,
}

/// Where lanes stand between awake and at rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Awake,
    /// Of both kinds.
    Resting,
    Dozing,
    Asleep,
}

/// Of the steps that have moved something, one in so many looks at a lane at rest.
pub(crate) const STEPS_A_LOOK: u32 = 4;
/// Looks in vain until a lane that dozes is fast asleep: who spins takes some tenths of a
/// millisecond for them.
pub(crate) const LOOKS_TO_SLEEP: u32 = 1024;

impl ActiveSet {
    /// All lanes are awake; there are so many.
    pub(crate) fn wake_all(&mut self, lanes: usize) {
        self.lanes = lanes;
        self.awake.clear();
        self.awake.resize(lanes.div_ceil(64), u64::MAX);
        if let Some(last) = self.awake.last_mut()
            && !lanes.is_multiple_of(64)
        {
            *last = (1 << (lanes % 64)) - 1;
        }
        for of_resting in [&mut self.wanting, &mut self.asleep] {
            of_resting.clear();
            of_resting.resize(lanes.div_ceil(64), 0);
        }
    }

    pub(crate) fn wake(&mut self, at: usize) {
        let lane = 1 << (at % 64);
        self.awake[at / 64] |= lane;
        self.wanting[at / 64] &= !lane;
        self.asleep[at / 64] &= !lane;
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

    /// Whether a lane at rest waits for acknowledgements.
    pub(crate) fn wants_acks(&self) -> bool {
        self.wanting.iter().any(|lanes| *lanes != 0)
    }

    /// A step has moved something: whether it looks at a lane at rest all the same.
    pub(crate) fn is_time_to_look(&mut self) -> bool {
        self.worked = (self.worked + 1) % STEPS_A_LOOK;
        self.worked == 0
    }

    /// The lane whose turn it is, of this kind.
    pub(crate) fn take_turn(&mut self, kind: Kind) -> Option<usize> {
        let at = self.next(self.turn, kind).or_else(|| self.next(0, kind))?;
        self.turn = at + 1;
        Some(at)
    }

    /// The first lane of a kind from `from` on.
    pub(crate) fn next(&self, from: usize, kind: Kind) -> Option<usize> {
        let mut at = from;
        while at < self.lanes {
            let (awake, asleep) = (self.awake[at / 64], self.asleep[at / 64]);
            let lanes = match kind {
                Kind::Awake => awake,
                Kind::Resting => !awake,
                Kind::Dozing => !(awake | asleep),
                Kind::Asleep => asleep,
            };
            let left = lanes >> (at % 64);
            if left != 0 {
                at += left.trailing_zeros() as usize;
                return (at < self.lanes).then_some(at);
            }
            at = (at / 64 + 1) * 64;
        }
        None
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn all(rota: &ActiveSet, kind: Kind) -> Vec<usize> {
        let first = rota.next(0, kind);
        std::iter::successors(first, |at| rota.next(at + 1, kind)).collect()
    }

    #[test]
    fn each_lane_is_awake_or_dozes_or_is_asleep() {
        for lanes in [0, 1, 63, 64, 65, 128, 200] {
            let mut rota = ActiveSet::default();
            rota.wake_all(lanes);
            assert_eq!(all(&rota, Kind::Awake), (0..lanes).collect::<Vec<_>>());
            assert_eq!(all(&rota, Kind::Resting), []);
            let lay: Vec<_> = (0..lanes).filter(|at| at % 3 != 1).collect();
            lay.iter().for_each(|&at| rota.lay(at, false));
            assert_eq!(all(&rota, Kind::Resting), lay);
            assert_eq!(all(&rota, Kind::Dozing), lay);
            assert_eq!(all(&rota, Kind::Awake).len() + lay.len(), lanes);
            let (asleep, dozing): (Vec<_>, Vec<_>) = lay.iter().partition(|at| **at % 3 == 0);
            asleep.iter().for_each(|at| rota.put_to_sleep(*at));
            assert_eq!(all(&rota, Kind::Resting), lay);
            assert_eq!(all(&rota, Kind::Dozing), dozing);
            assert_eq!(all(&rota, Kind::Asleep), asleep);
            asleep.iter().for_each(|&at| rota.wake(at));
            asleep.iter().for_each(|&at| rota.lay(at, false));
            assert_eq!(
                all(&rota, Kind::Dozing),
                lay,
                "who comes to rest again dozes"
            );
        }
    }

    #[test]
    fn who_is_asleep_has_its_turn() {
        for lanes in [1, 2, 3, 64, 65, 200] {
            let mut rota = ActiveSet::default();
            rota.wake_all(lanes);
            for at in 0..lanes {
                rota.lay(at, false);
                rota.put_to_sleep(at);
            }
            let seen: Vec<_> = (0..2 * lanes)
                .map_while(|_| rota.take_turn(Kind::Asleep))
                .collect();
            let expected: Vec<_> = (0..lanes).chain(0..lanes).collect();
            assert_eq!(seen, expected);
        }
    }

    #[test]
    fn who_is_awake_has_no_turn() {
        let mut rota = ActiveSet::default();
        rota.wake_all(70);
        assert_eq!(rota.take_turn(Kind::Resting), None);
        rota.lay(69, false);
        rota.lay(3, false);
        let turns = [0; 3].map(|_| rota.take_turn(Kind::Resting));
        assert_eq!(turns, [Some(3), Some(69), Some(3)]);
        assert_eq!(rota.take_turn(Kind::Asleep), None);
        rota.wake(3);
        let turns = [0; 2].map(|_| rota.take_turn(Kind::Resting));
        assert_eq!(turns, [Some(69), Some(69)]);
    }

    #[test]
    fn who_works_looks_now_and_then() {
        let mut rota = ActiveSet::default();
        let looks = (0..3 * STEPS_A_LOOK).filter(|_| rota.is_time_to_look());
        assert_eq!(looks.count(), 3);
    }

    #[test]
    fn who_wakes_wants_for_itself() {
        let mut rota = ActiveSet::default();
        rota.wake_all(70);
        rota.lay(69, true);
        rota.lay(3, false);
        assert!(rota.wants_acks());
        rota.wake(69);
        assert!(!rota.wants_acks());
        assert_eq!(all(&rota, Kind::Resting), [3]);
    }
}
