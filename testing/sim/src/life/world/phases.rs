//! The phases of a change of views, as they are seen at a member, and the one in which a fault is
//! likely there.
//!
//! A change passes its phases in turn, and some take longer than others. Were faults likely in all
//! of them, most would come in the first, and few changes would reach the last.

use spindle_dds_core::landmarks::view_end_steps;
use spindle_dds_transport::sim::Rng;

use super::World;

/// A phase of a change of views at a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// The member prepares the view that is announced.
    Prepares,
    /// It has wedged, and awaits that all have.
    Wedged,
    /// It has reported its counts, and awaits the proposal.
    Reported,
    /// It has proposed or echoed, and awaits the commit.
    Echoed,
    /// The next view is decided; it has not begun it.
    Installs,
    /// It has begun its view; another member has not.
    Begins,
}

/// Number of phases.
pub(super) const PHASES: usize = 6;

impl Phase {
    const ALL: [Self; PHASES] = [
        Self::Prepares,
        Self::Wedged,
        Self::Reported,
        Self::Echoed,
        Self::Installs,
        Self::Begins,
    ];
}

impl World<'_> {
    /// How many times likelier a fault is at a member now.
    pub(super) fn fault_bias(&self, at: usize) -> f64 {
        let bias = self.plan.fault_bias;
        let is_aimed = bias > 1.0 && self.phase(at).is_some_and(|it| it == self.aim(at));
        if is_aimed { bias } else { 1.0 }
    }

    /// The phase in which faults are likely at a member, in each view another one.
    fn aim(&self, at: usize) -> Phase {
        let member = &self.members[at];
        let view = member.view.as_ref().map_or(0, |view| view.id);
        let seed = self.plan.seed ^ view << 24 ^ (member.id.0 as u64) << 52;
        let phase = Rng::new(seed ^ 0xa1_5eed).below(PHASES);
        Phase::ALL[phase]
    }

    /// Counts the crash of a member by its phase.
    pub(super) fn count_crash(&mut self, at: usize) {
        if let Some(phase) = self.phase(at) {
            self.crashes[phase as usize] += 1;
        }
    }

    fn phase(&self, at: usize) -> Option<Phase> {
        let member = &self.members[at];
        let view = member.view.as_deref();
        if member.preparing.is_some() || self.branches.is_changing(view) {
            return Some(Phase::Installs);
        }
        let view = view?;
        match view_end_steps(member.control_row.as_ref()?) {
            0 if member.answering.is_some() => Some(Phase::Prepares),
            0 => self
                .is_awaited(view.id, member.branch)
                .then_some(Phase::Begins),
            1 => Some(Phase::Wedged),
            2 => Some(Phase::Reported),
            _ => Some(Phase::Echoed),
        }
    }

    /// Whether a member is to begin this view.
    fn is_awaited(&self, view: u64, branch: u64) -> bool {
        let awaits = |next: u64| next == view;
        self.members.iter().any(|member| {
            let next = member.preparing.as_ref().map(|(next, _)| next.id);
            member.is_up() && member.branch == branch && next.is_some_and(awaits)
        })
    }
}
