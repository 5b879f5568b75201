//! A participant that stays, as the main process knows it.

use std::fmt;

use serde::Serialize;

use super::messages::State;

/// What happens to a participant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// It joins.
    Starting { since_ns: u64 },
    /// Nothing.
    Healthy,
    /// It has something to do that takes a while.
    Busy { since_ns: u64 },
    /// It does not run.
    Stopped { until_ns: u64 },
    /// It runs again.
    Resumed { since_ns: u64 },
}

/// A participant, and those that had its place before.
#[derive(Debug)]
pub(super) struct Process {
    /// Of the process that has its place now.
    pub(super) child: usize,
    pub(super) stage: Stage,
    pub(super) state: State,
    pub(super) heard_at_ns: u64,
    /// When its readers last took something.
    taken_at_ns: u64,
    /// How often it was stopped.
    pub(super) stops: u32,
    /// States in a whole group without a fault of its own.
    whole: u32,
    /// What it held in the first of these, when it had grown.
    first: Vec<Held>,
    first_at_ns: u64,
    last: Option<Held>,
    /// Of all processes that had this place.
    pub(super) history: Vec<(u64, State)>,
}

/// What a process holds of the system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(super) struct Held {
    descriptors: u64,
    threads: u64,
    memory_kib: u64,
}

impl Held {
    fn of(state: &State) -> Self {
        Self {
            descriptors: state.descriptors,
            threads: state.threads,
            memory_kib: state.memory_kib,
        }
    }

    /// Of each of the three: a fault of another participant may be under way in some of them.
    fn median(all: &[Self]) -> Option<Self> {
        let of = |value: fn(&Self) -> u64| {
            let mut values: Vec<u64> = all.iter().map(value).collect();
            values.sort_unstable();
            values.get(values.len() / 2).copied()
        };
        Some(Self {
            descriptors: of(|it| it.descriptors)?,
            threads: of(|it| it.threads)?,
            memory_kib: of(|it| it.memory_kib)?,
        })
    }

    fn min(self, other: Self) -> Self {
        Self {
            descriptors: self.descriptors.min(other.descriptors),
            threads: self.threads.min(other.threads),
            memory_kib: self.memory_kib.min(other.memory_kib),
        }
    }
}

impl fmt::Display for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:>4} descriptors {:>3} threads {:>7} KiB",
            self.descriptors, self.threads, self.memory_kib
        )
    }
}

/// What a process held at first and at the end, for the outcome.
#[derive(Debug, Serialize)]
pub(super) struct Balance {
    /// Seconds in between.
    seconds: u64,
    outages: u32,
    pub(super) first: Held,
    pub(super) last: Held,
}

impl Process {
    pub(super) fn new(child: usize, now_ns: u64) -> Self {
        Self {
            child,
            stage: Stage::Starting { since_ns: now_ns },
            state: State::default(),
            heard_at_ns: now_ns,
            taken_at_ns: now_ns,
            stops: 0,
            whole: 0,
            first: Vec::new(),
            first_at_ns: 0,
            last: None,
            history: Vec::new(),
        }
    }

    /// It was killed, and another process has its place.
    pub(super) fn replace(&mut self, child: usize, now_ns: u64) {
        let history = std::mem::take(&mut self.history);
        *self = Self {
            history,
            ..Self::new(child, now_ns)
        };
    }

    /// It says how it is. Returns what is wrong with that.
    pub(super) fn handle_state(&mut self, state: State, group: u32, now_ns: u64) -> Option<String> {
        if state.taken > self.state.taken {
            self.taken_at_ns = now_ns;
        }
        let lost_again = state.outages > self.state.outages && state.outages > self.stops;
        self.state = state;
        self.heard_at_ns = now_ns;
        self.history.push((now_ns, state));
        match self.stage {
            Stage::Starting { .. } if state.is_member => self.stage = Stage::Healthy,
            // It may not have noticed yet that it was out.
            Stage::Resumed { since_ns }
                if now_ns > since_ns + NOTICES_WITHIN_NS
                    && state.is_member
                    && state.members > 1 =>
            {
                self.stage = Stage::Healthy;
                self.taken_at_ns = now_ns;
            }
            _ => {}
        }
        if self.stage == Stage::Healthy && state.members == group {
            self.whole += 1;
            let held = Held::of(&state);
            if (WARM_UP_STATES..WARM_UP_STATES + FIRST_STATES).contains(&self.whole) {
                self.first.push(held);
                self.first_at_ns = now_ns;
            }
        }
        if lost_again {
            return Some("lost its group without being stopped".to_owned());
        }
        if state.gone > 0 {
            return Some(format!("{} of its samples are gone", state.gone));
        }
        None
    }

    /// Nothing happens any more: whether what is missing is counted as lost.
    pub(super) fn uncounted(&self) -> Option<String> {
        let State {
            missing, missed, ..
        } = self.state;
        (missing != missed)
            .then(|| format!("{missing} samples are missing, {missed} are SAMPLE_LOST"))
    }

    /// What has lasted too long.
    pub(super) fn overdue(&self, now_ns: u64) -> Option<&'static str> {
        let is_over = |since_ns: u64| now_ns > since_ns + OVERDUE_NS;
        match self.stage {
            Stage::Starting { since_ns } if is_over(since_ns) => Some("does not join"),
            Stage::Busy { since_ns } if is_over(since_ns) => {
                Some("does not create and delete its endpoints")
            }
            Stage::Resumed { since_ns } if is_over(since_ns) => Some("does not come back"),
            Stage::Healthy if is_over(self.heard_at_ns) => Some("hangs"),
            Stage::Healthy if is_over(self.taken_at_ns) => Some("gets no samples"),
            _ => None,
        }
    }

    /// Nothing happens any more: notes what it holds.
    pub(super) fn note_last(&mut self) {
        let held = Held::of(&self.state);
        self.last = Some(self.last.map_or(held, |it| it.min(held)));
    }

    /// `None` if it did not live for long enough.
    pub(super) fn balance(&self, now_ns: u64) -> Option<Balance> {
        let seconds = now_ns.saturating_sub(self.first_at_ns) / 1_000_000_000;
        Some(Balance {
            seconds,
            outages: self.state.outages,
            first: Held::median(&self.first).filter(|_| seconds >= LONG_LIVED_SECONDS)?,
            last: self.last?,
        })
    }
}

impl Balance {
    /// In words, what there is more of.
    pub(super) fn excess(&self) -> Vec<String> {
        // While a participant comes back it has the memory of two sessions, and the allocator keeps
        // it, in one thread after the other: with more returns it does not grow any more.
        let sessions = u64::from(self.outages.min(RETURNS_COUNTED));
        let memory_kib = self.first.memory_kib;
        let memory_max = memory_kib * (1 + sessions) + memory_kib / 4 + MEMORY_SLACK_KIB;
        crate::resources::describe_excess(&[
            ("descriptors", self.first.descriptors, self.last.descriptors),
            ("threads", self.first.threads, self.last.threads),
            ("KiB of memory", memory_max, self.last.memory_kib),
        ])
    }
}

/// A process that has run again for so long knows whether it is in its group.
const NOTICES_WITHIN_NS: u64 = 3_000_000_000;
/// Far more than anything takes.
const OVERDUE_NS: u64 = 90_000_000_000;
/// Half a second each.
const WARM_UP_STATES: u32 = 80;
const FIRST_STATES: u32 = 40;
/// Returns that may take memory.
const RETURNS_COUNTED: u32 = 3;
/// A process that has lived for less tells nothing.
const LONG_LIVED_SECONDS: u64 = 60;
/// What the allocator keeps.
const MEMORY_SLACK_KIB: u64 = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND_NS: u64 = 1_000_000_000;

    fn state(outages: u32) -> State {
        State {
            is_member: true,
            members: 3,
            outages,
            descriptors: 50,
            threads: 5,
            memory_kib: 10_000,
            ..State::default()
        }
    }

    #[test]
    fn an_outage_without_a_stop_is_found() {
        let mut process = Process::new(0, 0);
        assert_eq!(process.handle_state(state(0), 3, 1), None);
        assert_eq!(process.stage, Stage::Healthy);
        process.stops = 1;
        assert_eq!(process.handle_state(state(1), 3, 2), None);
        assert!(process.handle_state(state(2), 3, 3).is_some());
        let mut lossy = Process::new(0, 0);
        let missing = State {
            missing: 1,
            ..state(0)
        };
        assert_eq!(lossy.uncounted(), None);
        lossy.handle_state(missing, 3, 1);
        assert!(lossy.uncounted().is_some());
        assert_eq!(lossy.overdue(SECOND_NS), None);
        assert_eq!(lossy.overdue(2 * OVERDUE_NS), Some("hangs"));
    }

    #[test]
    fn growth_is_found() {
        let mut process = Process::new(0, 0);
        for second in 0..120 {
            process.handle_state(state(0), 3, second * SECOND_NS);
        }
        let later_ns = 200 * SECOND_NS;
        let more = State {
            descriptors: 51,
            memory_kib: 20_000,
            ..state(0)
        };
        process.handle_state(more, 3, later_ns);
        process.note_last();
        let mut balance = process.balance(later_ns).expect("it is old enough");
        let expected = ["51 descriptors, not 50", "20000 KiB of memory, not 16596"];
        assert_eq!(balance.excess(), expected);
        balance.outages = 1;
        assert_eq!(balance.excess(), expected[..1]);
        assert!(process.balance(130 * SECOND_NS).is_none());
    }
}
