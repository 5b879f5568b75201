//! The active set: which subgroups a step has to evaluate.
//!
//! A participant may have many subgroups; few are busy at a time. A pass over the predicates of a
//! subgroup depends on three things only: the subgroup's own state, words that other members
//! write, and what threads of this participant leave there (commits, withdrawn claims, released
//! samples). So a subgroup in which a few consecutive passes changed nothing becomes *idle*: the
//! engine records the words on which it depends with their values, and a step compares those
//! words instead. For an idle subgroup with nothing in flight that is one guard per ring of each
//! other sender. Even this comparison is made only where there is news.
//!
//! ```text
//!   active --passes that change nothing--> set the idle flag, fence, record the words,
//!     ^                                    one more pass: did it change anything?
//!     |                                      yes: active      no: idle, warm
//!     |                                                          |
//!     |                                    many polls in vain: idle, cold
//!     |
//!     +--- a recorded word differs:   found by a step that changed nothing else, where the
//!     |                               fabric knows of the news; where it does not, by a full
//!     |                               step, or a brief one if it is warm, or its turn has come
//!     +--- a thread left work:        found by every step
//!     +--- changed by the engine's owner (published, wedged, fenced, ...)
//! ```
//!
//! *Where there is news.* Each recorded word is on a cache line and a page of its own: with 60
//! topics in ten processes there are some 540, and a thread takes two full steps before it sleeps.
//! So a step asks the fabric first ([`Fabric::news`]): with shared memory a participant counts its
//! batches of pushes in one place, with the bucket of the segment of each, and a peer reads one
//! cache line for each participant. A step polls the idle subgroups in the buckets that are named.
//! Threads that acknowledge count by themselves, as they do not own the engine; for their count, the
//! idle subgroups are polled that wait for releases. A step that changed something asks once in
//! [`STEPS_PER_POLL`] steps, all others ask each time. A member with many busy subgroups polls
//! nothing in vain: those are active, and evaluated anyway. What a look finds is polled in the same
//! step, since no later look finds it again. A subgroup that goes idle after a look has recorded its
//! words after it, with all that the look could have found. (Ten processes at rest took 33 ms of
//! processor time in 10 s with 60 topics and 72 ms with 150, when a full step compared all words, and
//! 17 and 25 ms since it asks first; 2 processors.)
//!
//! *Where it is not known* (a peer writes by RDMA, which no thread here sees), words are compared.
//! A thread that steps in a loop, because it spins or has enough to do,
//! takes brief steps ([`Engine::step_briefly`]). A brief step that changed nothing polls all warm
//! subgroups, where a message is likely, as there was one lately, and one cold subgroup, the next
//! one each time. A step that changed something polls an idle subgroup once every
//! [`STEPS_PER_POLL`] steps. (With four processes on two cores, one busy subgroup and 49 idle ones,
//! polls took 5 % of all processor time when each step made one, and cold subgroups were polled in
//! pairs.) So the cost of a brief step does not grow with the number of idle subgroups. What grows is
//! the number of steps until a change in one of them is found while this participant is awake. Only
//! a thread that is about to sleep, which costs far more, takes a full step, which polls all.
//!
//! *No change is missed.* A full step that reports no progress has compared all recorded words of
//! all idle subgroups, but for those of which the fabric says that they are as they were at an
//! earlier look: so the second step of a thread that goes to sleep covers all subgroups. The words are recorded before the last pass: a change that this pass did not see is a
//! difference. A thread of this participant leaves its work, fences (every nudge does), and reads
//! the idle flag; the engine sets the flag, fences, and looks for work in one more pass. Either
//! the thread sees the flag and reports its work, or that pass sees the work (checked by a loom
//! model).
//!
//! [`Engine::step_briefly`]: crate::Engine::step_briefly
//! [`Fabric::news`]: spindle_dds_transport::Fabric::news

/// Which subgroups are active, by their indexes in the engine's list.
#[derive(Debug, Default)]
pub(crate) struct ActiveSet {
    /// Number of subgroups: bits at and above it are 0 in all sets.
    len: usize,
    /// Bit set of the active subgroups; all others are idle.
    active: Vec<u64>,
    /// Bit set of the idle subgroups that wait for acknowledgements.
    wants_acks: Vec<u64>,
    /// Bit set of the idle subgroups that wait for releases of their own messages.
    awaits_release: Vec<u64>,
    /// Bit set of the idle subgroups that are cold. Disjoint from `active`.
    cold: Vec<u64>,
    /// Index after the idle subgroup that was polled last in turn.
    turn: usize,
    /// Steps with progress since one of them polled an idle subgroup; below [`STEPS_PER_POLL`].
    steps_with_progress: u32,
}

/// Sets of subgroups by activity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Activity {
    /// Stepped by every step.
    Active,
    /// Idle, warm or cold.
    Idle,
    /// Idle, and active a short while ago: polled by every step without progress.
    Warm,
    /// Idle for long: polled in turn by brief steps.
    Cold,
    /// Idle, and waits for releases of its own messages.
    AwaitingRelease,
}

/// What an idle subgroup waits for.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct IdleWaits {
    /// Acknowledgements, without which it cannot proceed.
    pub(crate) wants_acks: bool,
    /// Releases of own messages, whose room comes back with them.
    pub(crate) awaits_release: bool,
}

/// Of the steps with progress, one in this many polls an idle subgroup.
pub(crate) const STEPS_PER_POLL: u32 = 4;

impl ActiveSet {
    /// Makes `len` subgroups active, and forgets all before.
    pub(crate) fn reset(&mut self, len: usize) {
        self.len = len;
        self.active.clear();
        self.active.resize(len.div_ceil(64), u64::MAX);
        if let Some(last) = self.active.last_mut()
            && !len.is_multiple_of(64)
        {
            *last = (1 << (len % 64)) - 1;
        }
        for idle in [
            &mut self.wants_acks,
            &mut self.awaits_release,
            &mut self.cold,
        ] {
            idle.clear();
            idle.resize(len.div_ceil(64), 0);
        }
    }

    pub(crate) fn set_active(&mut self, at: usize) {
        let bit = 1 << (at % 64);
        self.active[at / 64] |= bit;
        self.wants_acks[at / 64] &= !bit;
        self.awaits_release[at / 64] &= !bit;
        self.cold[at / 64] &= !bit;
    }

    /// Makes an active subgroup idle and warm.
    pub(crate) fn set_idle(&mut self, at: usize, waits: IdleWaits) {
        self.active[at / 64] &= !(1 << (at % 64));
        self.wants_acks[at / 64] |= u64::from(waits.wants_acks) << (at % 64);
        self.awaits_release[at / 64] |= u64::from(waits.awaits_release) << (at % 64);
    }

    pub(crate) fn is_idle(&self, at: usize) -> bool {
        self.active[at / 64] >> (at % 64) & 1 == 0
    }

    /// Makes a warm subgroup cold.
    pub(crate) fn set_cold(&mut self, at: usize) {
        self.cold[at / 64] |= 1 << (at % 64);
    }

    /// Whether an idle subgroup waits for acknowledgements.
    pub(crate) fn wants_acks(&self) -> bool {
        self.wants_acks.iter().any(|bits| *bits != 0)
    }

    /// Counts a step with progress. Returns whether it polls an idle subgroup nevertheless.
    pub(crate) fn should_poll_idle(&mut self) -> bool {
        self.steps_with_progress = (self.steps_with_progress + 1) % STEPS_PER_POLL;
        self.steps_with_progress == 0
    }

    /// The subgroup of this activity whose turn it is, round robin.
    #[inline]
    pub(crate) fn next_in_turn(&mut self, activity: Activity) -> Option<usize> {
        let at = self.next(self.turn, activity);
        let at = at.or_else(|| self.next(0, activity))?;
        self.turn = at + 1;
        Some(at)
    }

    /// The first subgroup of this activity at or after `from`.
    #[inline]
    pub(crate) fn next(&self, from: usize, activity: Activity) -> Option<usize> {
        let mut at = from;
        while at < self.len {
            let (active, cold) = (self.active[at / 64], self.cold[at / 64]);
            let bits = match activity {
                Activity::Active => active,
                Activity::Idle => !active,
                Activity::Warm => !(active | cold),
                Activity::Cold => cold,
                Activity::AwaitingRelease => self.awaits_release[at / 64],
            };
            let left = bits >> (at % 64);
            if left != 0 {
                at += left.trailing_zeros() as usize;
                return (at < self.len).then_some(at);
            }
            at = (at / 64 + 1) * 64;
        }
        None
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    const NOTHING: IdleWaits = IdleWaits {
        wants_acks: false,
        awaits_release: false,
    };
    const BOTH: IdleWaits = IdleWaits {
        wants_acks: true,
        awaits_release: true,
    };

    fn all(set: &ActiveSet, activity: Activity) -> Vec<usize> {
        let first = set.next(0, activity);
        std::iter::successors(first, |at| set.next(at + 1, activity)).collect()
    }

    #[test]
    fn each_subgroup_is_active_warm_or_cold() {
        for len in [0, 1, 63, 64, 65, 128, 200] {
            let mut set = ActiveSet::default();
            set.reset(len);
            assert_eq!(all(&set, Activity::Active), (0..len).collect::<Vec<_>>());
            assert_eq!(all(&set, Activity::Idle), []);
            let idle: Vec<_> = (0..len).filter(|at| at % 3 != 1).collect();
            idle.iter().for_each(|&at| set.set_idle(at, NOTHING));
            assert_eq!(all(&set, Activity::Idle), idle);
            assert_eq!(all(&set, Activity::Warm), idle);
            assert_eq!(all(&set, Activity::Active).len() + idle.len(), len);
            let (cold, warm): (Vec<_>, Vec<_>) = idle.iter().partition(|at| **at % 3 == 0);
            cold.iter().for_each(|at| set.set_cold(*at));
            assert_eq!(all(&set, Activity::Idle), idle);
            assert_eq!(all(&set, Activity::Warm), warm);
            assert_eq!(all(&set, Activity::Cold), cold);
            cold.iter().for_each(|&at| set.set_active(at));
            cold.iter().for_each(|&at| set.set_idle(at, NOTHING));
            assert_eq!(all(&set, Activity::Warm), idle, "idle again is warm");
        }
    }

    #[test]
    fn each_cold_subgroup_gets_its_turn() {
        for len in [1, 2, 3, 64, 65, 200] {
            let mut set = ActiveSet::default();
            set.reset(len);
            for at in 0..len {
                set.set_idle(at, NOTHING);
                set.set_cold(at);
            }
            let polled: Vec<_> = (0..2 * len)
                .map_while(|_| set.next_in_turn(Activity::Cold))
                .collect();
            let expected: Vec<_> = (0..len).chain(0..len).collect();
            assert_eq!(polled, expected);
        }
    }

    #[test]
    fn an_active_subgroup_gets_no_turn() {
        let mut set = ActiveSet::default();
        set.reset(70);
        assert_eq!(set.next_in_turn(Activity::Idle), None);
        set.set_idle(69, NOTHING);
        set.set_idle(3, NOTHING);
        let turns = [0; 3].map(|_| set.next_in_turn(Activity::Idle));
        assert_eq!(turns, [Some(3), Some(69), Some(3)]);
        assert_eq!(set.next_in_turn(Activity::Cold), None);
        set.set_active(3);
        let turns = [0; 2].map(|_| set.next_in_turn(Activity::Idle));
        assert_eq!(turns, [Some(69), Some(69)]);
    }

    #[test]
    fn one_in_some_steps_with_progress_polls_an_idle_subgroup() {
        let mut set = ActiveSet::default();
        let polls = (0..3 * STEPS_PER_POLL).filter(|_| set.should_poll_idle());
        assert_eq!(polls.count(), 3);
    }

    #[test]
    fn an_active_subgroup_is_not_counted_as_waiting_for_acks() {
        let mut set = ActiveSet::default();
        set.reset(70);
        set.set_idle(69, BOTH);
        set.set_idle(3, NOTHING);
        assert!(set.wants_acks());
        assert_eq!(all(&set, Activity::AwaitingRelease), [69]);
        assert!(set.is_idle(3) && set.is_idle(69) && !set.is_idle(4));
        set.set_active(69);
        assert_eq!(all(&set, Activity::AwaitingRelease), []);
        assert!(!set.wants_acks());
        assert_eq!(all(&set, Activity::Idle), [3]);
    }
}
