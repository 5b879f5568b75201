//! What a run with a fault does when: waits until it is time, lets the fault happen,
//! waits until the others have gone on, and lets the feeds end.
//!
//! ```text
//!   Filling --so many samples--> Struck --another view--> Moved --as many more--> Ending
//!                                                           |                       ^
//!                                                 --stop: it may go on--> Resumed --ends
//! ```

use crate::clock;
use crate::fault::Fault;
use crate::options::Role;
use crate::report::Seen;

/// A fault of a run, and how far it is. Processes are known by their role.
#[derive(Debug)]
pub(crate) struct Drill {
    fault: Fault,
    at: u64,
    /// All from the start.
    crew: Vec<Member>,
    /// Who joined late.
    late: Option<Member>,
    stage: Stage,
    pub(crate) course: Course,
}

/// What happened when.
#[derive(Debug, Clone, Default)]
pub(crate) struct Course {
    /// CLOCK_MONOTONIC of the fault.
    pub(crate) at_ns: u64,
    pub(crate) view_before: u64,
    /// The first one that all who were left had.
    pub(crate) view: u64,
    /// What the one that was stopped said in the end.
    pub(crate) said: Option<String>,
}

/// Something to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    Kill(Role),
    Stop(Role),
    Continue(Role),
    Start(Role),
    /// The feeds are to end.
    End,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Member {
    role: Role,
    seen: Seen,
    /// So many samples are enough.
    enough: u64,
    ended: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Filling,
    Struck,
    Moved,
    Resumed,
    Ending,
}

impl Drill {
    /// Of a run with these processes; the fault happens after `at` samples.
    pub(crate) fn new(fault: Fault, at: u64, roles: &[Role]) -> Self {
        Self {
            fault,
            at,
            crew: roles.iter().copied().map(Member::new).collect(),
            late: None,
            stage: Stage::Filling,
            course: Course::default(),
        }
    }

    /// How far a process is.
    pub(crate) fn handle_seen(&mut self, role: Role, seen: Seen) {
        let all = self.crew.iter_mut().chain(&mut self.late);
        for member in all.filter(|member| member.role == role) {
            member.seen = seen;
        }
    }

    /// A process has ended.
    pub(crate) fn handle_end(&mut self, role: Role) {
        let all = self.crew.iter_mut().chain(&mut self.late);
        for member in all.filter(|member| member.role == role) {
            member.ended = true;
        }
    }

    /// Something that is not part of the fault went wrong: nothing more is waited for.
    pub(crate) fn give_up(&mut self) -> Option<Order> {
        let ending = std::mem::replace(&mut self.stage, Stage::Ending) == Stage::Ending;
        (!ending).then_some(Order::End)
    }

    /// The next thing to do, if it is time.
    pub(crate) fn poll_order(&mut self) -> Option<Order> {
        match self.stage {
            Stage::Filling if self.is_time() => Some(self.strike()),
            Stage::Struck if self.has_moved() => {
                self.stage = Stage::Moved;
                let views = self.left().map(|member| member.seen.view);
                self.course.view = views.min().unwrap_or(0);
                let at = self.at;
                let all = self.crew.iter_mut().chain(&mut self.late);
                all.for_each(|member| member.enough = member.seen.samples + at);
                None
            }
            Stage::Moved if self.left().all(|it| it.seen.samples >= it.enough) => {
                if let Fault::Stop(role) = self.fault {
                    self.stage = Stage::Resumed;
                    return Some(Order::Continue(role));
                }
                self.give_up()
            }
            Stage::Resumed if self.crew.iter().any(|it| self.is_victim(it) && it.ended) => {
                self.give_up()
            }
            _ => None,
        }
    }

    /// What it waits for.
    pub(crate) fn missing(&self) -> &'static str {
        match self.stage {
            Stage::Filling => "the group was not complete, or not enough samples came",
            Stage::Struck => "the fault happened, but the group did not go on to another view",
            Stage::Moved => "the group has another view, but not enough samples followed",
            Stage::Resumed => "the one that was stopped went on, and did not end",
            Stage::Ending => "the feeds were to end",
        }
    }

    /// Whether the end of this process, and in which way, belongs to the fault.
    pub(crate) fn expects_end(&self, role: Role) -> bool {
        match self.fault {
            Fault::Kill(victim) => victim == role && self.stage != Stage::Filling,
            Fault::Stop(victim) => {
                victim == role && matches!(self.stage, Stage::Resumed | Stage::Ending)
            }
            Fault::Join => false,
        }
    }

    fn is_victim(&self, member: &Member) -> bool {
        match self.fault {
            Fault::Kill(role) | Fault::Stop(role) => member.role == role,
            Fault::Join => false,
        }
    }

    /// Displays that are not the victim.
    fn left(&self) -> impl Iterator<Item = &Member> {
        self.crew
            .iter()
            .filter(|it| matches!(it.role, Role::Display(_)) && !self.is_victim(it))
            .chain(&self.late)
    }

    /// Whether everybody is there and heard, and the samples have come.
    fn is_time(&self) -> bool {
        let mut watched = self.crew.iter().filter(|it| match self.fault {
            Fault::Join => it.role == Role::Display(0),
            _ => self.is_victim(it),
        });
        watched.all(|it| it.seen.samples >= self.at)
            && self.crew.iter().all(|it| it.seen.samples > 0)
            && self.left().all(|it| it.seen.members == self.crew.len())
    }

    fn strike(&mut self) -> Order {
        self.stage = Stage::Struck;
        let views = self.crew.iter().map(|member| member.seen.view);
        self.course.view_before = views.max().unwrap_or(0);
        self.course.at_ns = clock::monotonic_ns();
        match self.fault {
            Fault::Kill(role) => Order::Kill(role),
            Fault::Stop(role) => Order::Stop(role),
            Fault::Join => {
                let displays = self.left().count();
                let role = Role::Display(displays as u16);
                self.late = Some(Member::new(role));
                Order::Start(role)
            }
        }
    }

    fn has_moved(&self) -> bool {
        let members = match self.fault {
            Fault::Join => self.crew.len() + 1,
            _ => self.crew.len() - 1,
        };
        self.left().all(|it| {
            it.seen.view > self.course.view_before
                && it.seen.members == members
                && it.seen.samples > 0
        })
    }
}

impl Member {
    fn new(role: Role) -> Self {
        Self {
            role,
            seen: Seen::default(),
            enough: 0,
            ended: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FEED: Role = Role::Feed(0);
    const DISPLAYS: [Role; 2] = [Role::Display(0), Role::Display(1)];

    fn seen(samples: u64, view: u64, members: usize) -> Seen {
        Seen {
            samples,
            view,
            members,
        }
    }

    fn drill(fault: Fault) -> Drill {
        let mut drill = Drill::new(fault, 10, &[DISPLAYS[0], DISPLAYS[1], FEED]);
        drill.handle_seen(FEED, seen(5, 0, 0));
        drill.handle_seen(DISPLAYS[0], seen(12, 3, 3));
        assert_eq!(drill.poll_order(), None);
        drill.handle_seen(DISPLAYS[1], seen(11, 3, 3));
        drill
    }

    #[test]
    fn who_was_stopped_goes_on_when_the_others_have() {
        let victim = DISPLAYS[0];
        let mut drill = drill(Fault::Stop(victim));
        assert_eq!(drill.poll_order(), Some(Order::Stop(victim)));
        drill.handle_seen(DISPLAYS[1], seen(12, 4, 2));
        assert_eq!(drill.poll_order(), None);
        drill.handle_seen(DISPLAYS[1], seen(21, 4, 2));
        assert_eq!(drill.poll_order(), None);
        assert!(!drill.expects_end(victim));
        drill.handle_seen(DISPLAYS[1], seen(22, 4, 2));
        assert_eq!(drill.poll_order(), Some(Order::Continue(victim)));
        assert!(drill.expects_end(victim) && !drill.expects_end(DISPLAYS[1]));
        assert_eq!(drill.poll_order(), None);
        drill.handle_end(victim);
        assert_eq!(drill.poll_order(), Some(Order::End));
        assert_eq!(drill.give_up(), None);
        assert_eq!((drill.course.view_before, drill.course.view), (3, 4));
    }

    #[test]
    fn who_joins_has_to_see_samples_too() {
        let mut drill = drill(Fault::Join);
        let late = Role::Display(2);
        assert_eq!(drill.poll_order(), Some(Order::Start(late)));
        for role in DISPLAYS {
            drill.handle_seen(role, seen(20, 4, 4));
        }
        assert_eq!(drill.poll_order(), None);
        drill.handle_seen(late, seen(1, 4, 4));
        assert_eq!(drill.poll_order(), None);
        for role in DISPLAYS {
            drill.handle_seen(role, seen(40, 4, 4));
        }
        assert_eq!(drill.poll_order(), None);
        drill.handle_seen(late, seen(11, 4, 4));
        assert_eq!(drill.poll_order(), Some(Order::End));
    }
}
