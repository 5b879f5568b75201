//! The steps of a run with a fault: waits until enough samples have come, injects the fault,
//! waits until the others have gone on in another view, and ends the feeds.
//!
//! ```text
//!   Filling --enough samples--> Injected --another view--> ViewChanged --as many more--> Ending
//!                                                               |                          ^
//!                                     --stop: SIGCONT --> Resumed --it is back--> Back --as many more
//! ```
//!
//! It does no I/O: the launcher tells it what happened (`handle_*`) and asks what to do
//! (`poll_action`).

use super::fault::Fault;
use super::options::Role;
use super::report::DisplayProgress;
use crate::clock;

/// A fault of a run, and how far the run is.
#[derive(Debug)]
pub(super) struct FaultSequence {
    fault: Fault,
    /// Samples before the fault, and again after it.
    samples_before: u64,
    /// How long a process is stopped at least.
    stopped_for_ns: u64,
    /// The processes that the run started with.
    processes: Vec<Process>,
    /// The display that joined.
    newcomer: Option<Process>,
    stage: Stage,
    pub(super) record: FaultRecord,
}

/// What happened when.
#[derive(Debug, Clone, Default)]
pub(super) struct FaultRecord {
    /// CLOCK_MONOTONIC of the fault.
    pub(super) injected_at_ns: u64,
    pub(super) view_before: u64,
    /// The first view after the fault that all remaining displays had reached.
    pub(super) view: u64,
    /// Samples before the fault at the process that was stopped.
    pub(super) samples_of_stopped: Option<u64>,
    /// Samples before the fault at the first display.
    pub(super) samples_of_first: u64,
    /// CLOCK_MONOTONIC when they had.
    pub(super) view_changed_at_ns: u64,
    /// CLOCK_MONOTONIC when the stopped process was resumed.
    pub(super) resumed_at_ns: u64,
    /// Time from then until all saw it in the group again.
    pub(super) back_after_ns: Option<u64>,
}

/// What the launcher has to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Action {
    Kill(Role),
    Stop(Role),
    Continue(Role),
    Start(Role),
    /// Let the feeds end.
    EndFeeds,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Process {
    role: Role,
    progress: DisplayProgress,
    /// With so many samples it has gone on for long enough.
    samples_wanted: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Filling,
    Injected,
    ViewChanged,
    Resumed,
    Back,
    Ending,
}

impl FaultSequence {
    /// For a run of these processes, with the fault after `samples_before` samples. A process that
    /// is stopped is so for `stopped_for_ms` at least.
    pub(super) fn new(
        fault: Fault,
        samples_before: u64,
        stopped_for_ms: u64,
        roles: &[Role],
    ) -> Self {
        Self {
            fault,
            samples_before,
            stopped_for_ns: stopped_for_ms.saturating_mul(1_000_000),
            processes: roles.iter().copied().map(Process::new).collect(),
            newcomer: None,
            stage: Stage::Filling,
            record: FaultRecord::default(),
        }
    }

    /// How far a process is.
    pub(super) fn handle_progress(&mut self, role: Role, progress: DisplayProgress) {
        for process in self.all_mut().filter(|process| process.role == role) {
            process.progress = progress;
        }
    }

    /// Ends the run: because it is complete, or because something else went wrong.
    pub(super) fn end(&mut self) -> Option<Action> {
        let before = std::mem::replace(&mut self.stage, Stage::Ending);
        (before != Stage::Ending).then_some(Action::EndFeeds)
    }

    /// The next thing to do, if its time has come.
    pub(super) fn poll_action(&mut self) -> Option<Action> {
        match self.stage {
            Stage::Filling if self.is_filled() => Some(self.inject()),
            Stage::Injected if self.has_view_changed() => {
                self.stage = Stage::ViewChanged;
                let views = self.remaining().map(|process| process.progress.view);
                self.record.view = views.min().unwrap_or(0);
                self.record.view_changed_at_ns = clock::monotonic_ns();
                self.want_more();
                None
            }
            Stage::ViewChanged if self.remaining().all(Process::has_gone_on) => {
                let Fault::Stop(role) = self.fault else {
                    return self.end();
                };
                let now_ns = clock::monotonic_ns();
                if now_ns < self.record.injected_at_ns + self.stopped_for_ns {
                    return None;
                }
                self.stage = Stage::Resumed;
                self.record.resumed_at_ns = now_ns;
                Some(Action::Continue(role))
            }
            Stage::Resumed if self.is_victim_back() => {
                self.stage = Stage::Back;
                let now_ns = clock::monotonic_ns();
                self.record.back_after_ns = Some(now_ns - self.record.resumed_at_ns);
                self.want_more();
                None
            }
            Stage::Back if self.processes.iter().all(Process::has_gone_on) => self.end(),
            _ => None,
        }
    }

    /// What it waits for.
    pub(super) fn describe_stage(&self) -> &'static str {
        match self.stage {
            Stage::Filling => "the group was not complete, or too few samples came",
            Stage::Injected => "the fault was injected, but no other view followed",
            Stage::ViewChanged => "the group has another view, but too few samples followed",
            Stage::Resumed => "the stopped process was resumed, and did not come back",
            Stage::Back => "the stopped process has come back, but too few samples followed",
            Stage::Ending => "the feeds were told to end",
        }
    }

    /// Whether the end of this process, and the way in which it ends, belong to the fault.
    pub(super) fn expects_end(&self, role: Role) -> bool {
        match self.fault {
            Fault::Kill(victim) => victim == role && self.stage != Stage::Filling,
            Fault::Stop(_) | Fault::Join => false,
        }
    }

    /// Waits for as many samples more as there were before the fault.
    fn want_more(&mut self) {
        let more = self.samples_before;
        self.all_mut()
            .for_each(|it| it.samples_wanted = it.progress.samples + more);
    }

    fn all_mut(&mut self) -> impl Iterator<Item = &mut Process> {
        self.processes.iter_mut().chain(&mut self.newcomer)
    }

    fn is_victim(&self, process: &Process) -> bool {
        match self.fault {
            Fault::Kill(role) | Fault::Stop(role) => process.role == role,
            Fault::Join => false,
        }
    }

    /// Whether the stopped process says that it is in the group again, and all displays see a whole
    /// group.
    fn is_victim_back(&self) -> bool {
        self.processes.iter().all(|it| {
            let is_back = !self.is_victim(it) || it.progress.returns > 0;
            is_back && (is_feed(it) || it.progress.members == self.processes.len())
        })
    }

    /// The displays that go on after the fault.
    fn remaining(&self) -> impl Iterator<Item = &Process> {
        self.processes
            .iter()
            .filter(|it| !is_feed(it) && !self.is_victim(it))
            .chain(&self.newcomer)
    }

    /// Whether the group is complete, every process has got or sent samples, and enough have
    /// come: at the victim, or at the first display if one is to join.
    fn is_filled(&self) -> bool {
        let mut counted = self.processes.iter().filter(|it| match self.fault {
            Fault::Join => it.role == Role::Display(0),
            _ => self.is_victim(it),
        });
        counted.all(|it| it.progress.samples >= self.samples_before)
            && self.processes.iter().all(|it| it.progress.samples > 0)
            && self
                .remaining()
                .all(|it| it.progress.members == self.processes.len())
    }

    fn inject(&mut self) -> Action {
        self.stage = Stage::Injected;
        let views = self.processes.iter().map(|process| process.progress.view);
        self.record.view_before = views.max().unwrap_or(0);
        self.record.injected_at_ns = clock::monotonic_ns();
        let first = self.processes.iter().find(|it| it.role == Role::Display(0));
        self.record.samples_of_first = first.map_or(0, |it| it.progress.samples);
        if let Fault::Stop(_) = self.fault {
            let victim = self.processes.iter().find(|it| self.is_victim(it));
            self.record.samples_of_stopped = victim.map(|it| it.progress.samples);
        }
        match self.fault {
            Fault::Kill(role) => Action::Kill(role),
            Fault::Stop(role) => Action::Stop(role),
            Fault::Join => {
                let displays = self.remaining().count();
                let role = Role::Display(displays as u16);
                self.newcomer = Some(Process::new(role));
                Action::Start(role)
            }
        }
    }

    /// Whether all remaining displays have a later view, of the right size, and samples.
    fn has_view_changed(&self) -> bool {
        let members = match self.fault {
            Fault::Join => self.processes.len() + 1,
            _ => self.processes.len() - 1,
        };
        self.remaining().all(|it| {
            it.progress.view > self.record.view_before
                && it.progress.members == members
                && it.progress.samples > 0
        })
    }
}

impl Process {
    fn new(role: Role) -> Self {
        Self {
            role,
            progress: DisplayProgress::default(),
            samples_wanted: 0,
        }
    }

    fn has_gone_on(&self) -> bool {
        self.progress.has_history && self.progress.samples >= self.samples_wanted
    }
}

fn is_feed(process: &Process) -> bool {
    matches!(process.role, Role::Feed(_))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FEED: Role = Role::Feed(0);
    const DISPLAYS: [Role; 2] = [Role::Display(0), Role::Display(1)];

    fn progress(samples: u64, view: u64, members: usize) -> DisplayProgress {
        DisplayProgress {
            samples,
            view,
            members,
            returns: 0,
            has_history: true,
        }
    }

    /// Ten samples before the fault have just come.
    fn filled(fault: Fault) -> FaultSequence {
        let roles = [DISPLAYS[0], DISPLAYS[1], FEED];
        let mut sequence = FaultSequence::new(fault, 10, 0, &roles);
        sequence.handle_progress(FEED, progress(5, 0, 0));
        sequence.handle_progress(DISPLAYS[0], progress(12, 3, 3));
        assert_eq!(sequence.poll_action(), None);
        sequence.handle_progress(DISPLAYS[1], progress(11, 3, 3));
        sequence
    }

    #[test]
    fn a_stopped_display_is_resumed_when_the_others_have_gone_on() {
        let victim = DISPLAYS[0];
        let mut sequence = filled(Fault::Stop(victim));
        assert_eq!(sequence.poll_action(), Some(Action::Stop(victim)));
        sequence.handle_progress(DISPLAYS[1], progress(12, 4, 2));
        assert_eq!(sequence.poll_action(), None);
        sequence.handle_progress(DISPLAYS[1], progress(21, 4, 2));
        assert_eq!(sequence.poll_action(), None);
        sequence.handle_progress(DISPLAYS[1], progress(22, 4, 2));
        assert_eq!(sequence.poll_action(), Some(Action::Continue(victim)));
        assert!(!sequence.expects_end(victim));
        // The others see it before it says that it is back.
        sequence.handle_progress(DISPLAYS[1], progress(25, 5, 3));
        assert_eq!(sequence.poll_action(), None);
        let back = DisplayProgress {
            returns: 1,
            ..progress(14, 5, 3)
        };
        sequence.handle_progress(victim, back);
        assert_eq!(sequence.poll_action(), None);
        for (role, samples) in [(FEED, 15), (DISPLAYS[1], 35), (victim, 24)] {
            assert_eq!(sequence.poll_action(), None);
            sequence.handle_progress(role, DisplayProgress { samples, ..back });
        }
        assert_eq!(sequence.poll_action(), Some(Action::EndFeeds));
        assert_eq!(sequence.end(), None);
        let record = &sequence.record;
        assert_eq!((record.view_before, record.view), (3, 4));
        assert_eq!(record.samples_of_stopped, Some(12));
        assert!(record.back_after_ns.is_some());
    }

    #[test]
    fn a_newcomer_has_to_get_samples_too() {
        let mut sequence = filled(Fault::Join);
        let newcomer = Role::Display(2);
        assert_eq!(sequence.poll_action(), Some(Action::Start(newcomer)));
        for role in DISPLAYS {
            sequence.handle_progress(role, progress(20, 4, 4));
        }
        assert_eq!(sequence.poll_action(), None);
        sequence.handle_progress(newcomer, progress(1, 4, 4));
        assert_eq!(sequence.poll_action(), None);
        for role in DISPLAYS {
            sequence.handle_progress(role, progress(40, 4, 4));
        }
        assert_eq!(sequence.poll_action(), None);
        let awaits_history = DisplayProgress {
            has_history: false,
            ..progress(11, 4, 4)
        };
        sequence.handle_progress(newcomer, awaits_history);
        assert_eq!(sequence.poll_action(), None);
        sequence.handle_progress(newcomer, progress(11, 4, 4));
        assert_eq!(sequence.poll_action(), Some(Action::EndFeeds));
    }
}
