//! How views follow each other: as many newcomers in one as the group can follow, and a pause where
//! requests come faster than views.
//!
//! Each newcomer costs all members work, and all members do it at once. So the first view lets in
//! a few; the bound doubles with each view that used it whole and was entered by all quickly, and
//! is halved by one that was not. But half as many newcomers as there are members are always let in: a
//! view costs each member time for all others anyway, so that fewer would cost the group more.
//! Newcomers beyond the bound wait for a later view. A new leader begins anew.
//!
//! A view takes in all requests that are there when it is announced, however many: that costs little
//! more than a view for one of them. So a leader announces the next view once all members have entered
//! the present one. Where they had requests then already, more are under way, as programs create
//! endpoints one after the other, or many processes start: the leader waits as long again as the last
//! view took. Where there were none, it announces a view for the first request at once.

use spindle_dds_transport::{Fabric, MEMBERS_MAX};

use super::protocol::Membership;
use super::row::Text;

/// Most newcomers in a view, at first.
const JOINS_AT_FIRST: usize = 4;
/// A view is entered quickly within this part of the heartbeat timeout, from its intent on.
const QUICKLY: u64 = 4;
/// A view is entered slowly beyond this part.
const SLOWLY: u64 = 2;
/// A leader pauses for this part at most.
const PAUSE_MAX: u64 = 8;

/// The bound on the newcomers of a view, which a leader takes along from view to view.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pace {
    joins_max: usize,
    /// The view that members are entering, if this leader has announced it.
    entering: Option<Entering>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Entering {
    /// When it was announced first.
    since_ns: u64,
    /// Whether it has newcomers.
    has_newcomers: bool,
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
    /// Most newcomers in the next view of a group of so many members.
    pub(super) fn joins_max(&self, members: usize) -> usize {
        self.joins_max.max(members / 2)
    }

    /// At the end of a view of so many members: the next one has so many newcomers, and was announced
    /// first then.
    pub(super) fn announced(self, members: usize, joins: usize, since_ns: u64) -> Self {
        let entering = Some(Entering {
            since_ns,
            has_newcomers: joins > 0,
            is_full: joins >= self.joins_max(members),
        });
        Self { entering, ..self }
    }

    /// At the end of a view that this member did not announce.
    pub(super) fn not_announced(self) -> Self {
        let entering = None;
        Self { entering, ..self }
    }

    /// Whether it is not known yet how quickly the view was entered.
    pub(super) fn is_measured(&self) -> bool {
        self.entering.is_some()
    }

    /// All members have entered the view. Returns how long it has taken.
    pub(super) fn entered(&mut self, now: u64, timeout_ns: u64) -> u64 {
        let Some(entering) = self.entering.take() else {
            return 0;
        };
        let took_ns = now.saturating_sub(entering.since_ns);
        if entering.has_newcomers {
            if took_ns > timeout_ns / SLOWLY {
                self.joins_max = (self.joins_max / 2).max(1);
            } else if entering.is_full && took_ns <= timeout_ns / QUICKLY {
                self.joins_max = (self.joins_max * 2).min(MEMBERS_MAX);
            }
        }
        took_ns
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
        match (self.announcer.announced_since_ns, &self.echo) {
            (Some(since_ns), Some((proposal, _))) => {
                let (members, joins) = (self.view.members.len(), proposal.joins.len());
                self.pace.announced(members, joins, since_ns)
            }
            _ => self.pace.not_announced(),
        }
    }

    /// Whether the next view may be announced: all members have begun this one, and a pause is over.
    /// Learns how quickly they have.
    pub(super) fn keeps_pace(&mut self, now: u64) -> bool {
        if self.pace.is_measured() {
            let has_begun = |rank| self.rows.heartbeat(rank) > 0;
            if !self.trusted().iter().all(has_begun) {
                return false;
            }
            let timeout_ns = self.rules.detection.timeout_ns;
            let took_ns = self.pace.entered(now, timeout_ns);
            let asks = |rank| self.rows.len(rank, Text::Request) > 0;
            if self.trusted().iter().any(asks) {
                let pause_ns = took_ns.min(timeout_ns / PAUSE_MAX);
                self.announcer.pauses_until_ns = Some(now.saturating_add(pause_ns));
            }
        }
        match self.announcer.pauses_until_ns {
            Some(until_ns) if now < until_ns => false,
            _ => {
                self.announcer.pauses_until_ns = None;
                true
            }
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
            pace = pace.announced(1, *joins, 1000);
            assert!(pace.is_measured());
            assert_eq!(pace.entered(1000 + took_ns, TIMEOUT_NS), *took_ns);
            assert!(!pace.is_measured());
        }
        pace.joins_max(1)
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
        let pace = Pace::default();
        assert_eq!((pace.joins_max(8), pace.joins_max(60)), (4, 30));
    }
}
