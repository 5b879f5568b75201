//! Lanes at rest: what a step need not look into.
//!
//! A participant may have many lanes of which few are busy. What a pass over the
//! predicates of a lane does depends on three things only: the lane's own state, words
//! that other members write, and what threads of this participant leave there (commits,
//! withdrawn claims, released samples). So a lane that a few passes in a row have moved
//! nothing in is laid to *rest*: the words on which it depends are noted with their
//! values, and a step compares those instead. At rest with nothing in flight that is one
//! guard for each ring of each other sender.
//!
//! ```text
//!   awake --passes that move nothing--> resting = true, fence, note the words,
//!     ^                                 one pass more: moved something?
//!     |                                   yes: awake      no: at rest
//!     +--- a noted word differs: looked at by each step that has moved nothing else,
//!     |                          and by one step in a few of those that have
//!     +--- stirred by a thread:  looked at by every step
//!     +--- changed by whoever owns the engine (published, wedged, fenced, ...)
//! ```
//!
//! *Why not a word in each row that senders raise with every push.* It would have to stand
//! in another segment than the lane's (which segment, while a view begins and lanes go on?),
//! cost a push, or a line, a batch, and be raised by acknowledging threads that do not
//! own the engine. Comparing what is here anyway needs nothing of the fabric: F1 to F7
//! say when a word changes, and nobody has to say it again.
//!
//! *Nobody is overslept.* A step that says that nothing moved has compared all words of
//! all lanes at rest, so the second look of who goes to sleep is a look at all lanes. The
//! words are noted before the last pass: a change that this pass did not see is a
//! difference. A thread of this participant leaves its work, fences (every nudge does) and
//! looks at `resting`; the engine raises `resting`, fences, and looks for work in one more
//! pass. Either the thread sees the flag, and stirs, or that pass sees the work (a model of
//! loom checks it).

use crate::sync::{AtomicBool, Ordering, fence};

/// Whether the engine has laid a lane to rest: between it and the threads that leave work
/// in the lane.
#[derive(Debug)]
pub(crate) struct Rest(AtomicBool);

/// Whether a lane at rest was stirred: one for all lanes of a participant.
#[derive(Debug)]
pub(crate) struct Stirred(AtomicBool);

impl Rest {
    pub(crate) fn new() -> Self {
        Self(AtomicBool::new(false))
    }

    /// The engine looks once more after this, and then no more.
    pub(crate) fn begin(&self) {
        self.begin_with(|| fence(Ordering::SeqCst));
    }

    /// [`Self::begin`] with a fence of the caller's: loom's planted bug.
    pub(crate) fn begin_with(&self, fence: impl FnOnce()) {
        self.0.store(true, Ordering::Relaxed);
        fence();
    }

    /// The engine looks at each step again.
    pub(crate) fn end(&self) {
        self.0.store(false, Ordering::Relaxed);
    }

    /// Whether it lasts: nobody has interrupted it.
    pub(crate) fn lasts(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Work was left in the lane, and a sequentially consistent fence came after. Whether
    /// the engine has to be nudged to see it.
    pub(crate) fn interrupt(&self, stirred: &Stirred) -> bool {
        // Who finds that somebody else has interrupted it leaves the rest to that one: the
        // engine has still to begin the pass that comes of it.
        let resting = self.0.load(Ordering::Relaxed);
        if resting {
            self.0.store(false, Ordering::Relaxed);
            // Release: pairs with the acquire in `take`; the engine finds the lane.
            stirred.0.store(true, Ordering::Release);
        }
        resting
    }
}

impl Stirred {
    pub(crate) fn new() -> Self {
        Self(AtomicBool::new(false))
    }

    /// Whether lanes were stirred since this was asked last.
    pub(crate) fn take(&self) -> bool {
        // Without a write to a shared line where nothing was.
        self.0.load(Ordering::Relaxed) && self.0.swap(false, Ordering::AcqRel)
    }
}

/// Which lanes are awake, by their places in the engine's list.
#[derive(Debug, Default)]
pub(crate) struct Rota {
    lanes: usize,
    awake: Vec<u64>,
    /// Of those at rest, the ones that wait for acknowledgements.
    wanting: Vec<u64>,
    steps: u32,
}

/// How many steps that move something come to one that looks at lanes at rest as well.
const STEPS_A_LOOK: u32 = 16;

impl Rota {
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
        self.wanting.clear();
        self.wanting.resize(lanes.div_ceil(64), 0);
    }

    pub(crate) fn wake(&mut self, at: usize) {
        self.awake[at / 64] |= 1 << (at % 64);
        self.wanting[at / 64] &= !(1 << (at % 64));
    }

    pub(crate) fn lay(&mut self, at: usize, wants_acks: bool) {
        self.awake[at / 64] &= !(1 << (at % 64));
        self.wanting[at / 64] |= u64::from(wants_acks) << (at % 64);
    }

    /// Whether a lane at rest waits for acknowledgements.
    pub(crate) fn wants_acks(&self) -> bool {
        self.wanting.iter().any(|lanes| *lanes != 0)
    }

    /// Counts a step. Whether it looks at lanes at rest, whatever it moves.
    pub(crate) fn is_due(&mut self) -> bool {
        self.steps = self.steps.wrapping_add(1);
        self.steps.is_multiple_of(STEPS_A_LOOK)
    }

    /// The first lane from `from` on that is awake, or at rest.
    pub(crate) fn next(&self, from: usize, awake: bool) -> Option<usize> {
        let mut at = from;
        while at < self.lanes {
            let lanes = self.awake[at / 64] ^ if awake { 0 } else { u64::MAX };
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

    fn all(rota: &Rota, awake: bool) -> Vec<usize> {
        let first = rota.next(0, awake);
        std::iter::successors(first, |at| rota.next(at + 1, awake)).collect()
    }

    #[test]
    fn each_lane_is_awake_or_at_rest() {
        for lanes in [0, 1, 63, 64, 65, 128, 200] {
            let mut rota = Rota::default();
            rota.wake_all(lanes);
            assert_eq!(all(&rota, true), (0..lanes).collect::<Vec<_>>());
            assert_eq!(all(&rota, false), []);
            let lay: Vec<_> = (0..lanes).filter(|at| at % 3 != 1).collect();
            lay.iter().for_each(|&at| rota.lay(at, false));
            assert_eq!(all(&rota, false), lay);
            assert_eq!(all(&rota, true).len() + lay.len(), lanes);
        }
    }

    #[test]
    fn who_wakes_wants_for_itself() {
        let mut rota = Rota::default();
        rota.wake_all(70);
        rota.lay(69, true);
        rota.lay(3, false);
        assert!(rota.wants_acks());
        rota.wake(69);
        assert!(!rota.wants_acks());
        assert_eq!(all(&rota, false), [3]);
    }
}
