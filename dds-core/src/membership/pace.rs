//! How many newcomers one view lets in: as many as the group can follow.
//!
//! Each newcomer costs all members work, and all members do it at once. So the first view lets in
//! a few; the bound doubles with each view that used it whole and was entered by all quickly, and
//! is halved by one that was not. Newcomers beyond the bound wait for a later view. A new leader
//! begins anew.

use spindle_dds_transport::{Fabric, MEMBERS_MAX};

use super::protocol::Membership;

/// Most newcomers in a view, at first.
const JOINS_AT_FIRST: usize = 4;
/// A view is entered quickly within this part of the heartbeat timeout, from its intent on.
const QUICKLY: u64 = 4;
/// A view is entered slowly beyond this part.
const SLOWLY: u64 = 2;

/// The bound on the newcomers of a view, which a leader takes along from view to view.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pace {
    joins_max: usize,
    /// The view that members are entering, if it lets in newcomers.
    entering: Option<Entering>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Entering {
    /// When it was announced first.
    since_ns: u64,
    /// Whether it has as many newcomers as the bound allowed.
    is_full: bool,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            joins_max: JOINS_AT_FIRST,
            entering: None,
        }
    }
}

impl Pace {
    /// Most newcomers in the next view.
    pub(super) fn joins_max(&self) -> usize {
        self.joins_max
    }

    /// At the end of a view: the next one has so many newcomers, and was announced first then.
    pub(super) fn announced(self, joins: usize, since_ns: u64) -> Self {
        let is_full = joins >= self.joins_max;
        let entering = (joins > 0).then_some(Entering { since_ns, is_full });
        Self { entering, ..self }
    }

    /// Whether it is not known yet how quickly the view was entered.
    pub(super) fn is_measured(&self) -> bool {
        self.entering.is_some()
    }

    /// All members have entered the view.
    pub(super) fn entered(&mut self, now: u64, timeout_ns: u64) {
        let Some(entering) = self.entering.take() else {
            return;
        };
        let took_ns = now.saturating_sub(entering.since_ns);
        if took_ns > timeout_ns / SLOWLY {
            self.joins_max = (self.joins_max / 2).max(1);
        } else if entering.is_full && took_ns <= timeout_ns / QUICKLY {
            self.joins_max = (self.joins_max * 2).min(MEMBERS_MAX);
        }
    }
}

impl<F: Fabric> Membership<F> {
    /// Goes on at the pace of the view before.
    pub fn at_pace(mut self, pace: Pace) -> Self {
        self.pace = pace;
        self
    }

    /// The pace for the next view.
    pub fn next_pace(&self) -> Pace {
        // A member that does not lead has announced none.
        let ending = self.announcer.joins_since_ns.zip(self.echo.as_ref());
        let joins = ending.map(|(since_ns, (proposal, _))| (proposal.joins.len(), since_ns));
        let (joins, since_ns) = joins.unwrap_or_default();
        self.pace.announced(joins, since_ns)
    }

    /// Learns how quickly the view was entered, once all members have begun it.
    pub(super) fn measure_pace(&mut self, now: u64) {
        let has_begun = |rank| self.rows.heartbeat(rank) > 0;
        if self.pace.is_measured() && self.trusted().iter().all(has_begun) {
            let timeout_ns = self.rules.detection.timeout_ns;
            self.pace.entered(now, timeout_ns);
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    const TIMEOUT_NS: u64 = 400;

    /// The bound after views with so many newcomers, each of which was entered after that time.
    fn after(views: &[(usize, u64)]) -> usize {
        let mut pace = Pace::default();
        for (joins, took_ns) in views {
            pace = pace.announced(*joins, 1000);
            assert_eq!(pace.is_measured(), *joins > 0);
            pace.entered(1000 + took_ns, TIMEOUT_NS);
            assert!(!pace.is_measured());
        }
        pace.joins_max()
    }

    #[test]
    fn the_bound_doubles_with_views_that_used_it_and_were_entered_quickly() {
        assert_eq!(after(&[]), 4);
        assert_eq!(after(&[(4, 100)]), 8);
        assert_eq!(after(&[(4, 100), (8, 100), (15, 100)]), 16);
        assert_eq!(after(&[(4, 101)]), 4);
        assert_eq!(after(&[(3, 0), (0, 0)]), 4);
        assert_eq!(after(&[(256, 0); 20]), MEMBERS_MAX);
    }

    #[test]
    fn the_bound_is_halved_by_views_that_were_entered_slowly() {
        assert_eq!(after(&[(4, 200)]), 4);
        assert_eq!(after(&[(4, 201)]), 2);
        assert_eq!(after(&[(1, 201), (1, 201), (1, 201), (1, 201)]), 1);
        assert_eq!(after(&[(0, 1000)]), 4);
    }
}
