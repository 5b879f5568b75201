//! Why a message of a writer cannot be sent now, in words: asked when a wait has ended in vain.

use spindle_dds_core::membership::{Member, View};
use spindle_dds_core::{Committed, SubgroupFigures};

use super::acceptance::Acceptor;
use super::writer_port::{Obstacle, WriterPort};
use crate::discovery::ParticipantInfo;
use crate::driver::name_troubles;

/// How often to ask for the figures of the subgroup, yielding in between: a thread that steps has
/// them, for some microseconds.
const TRIES_MAX: u32 = 50;
/// So many processes are named at most.
const NAMED_MAX: usize = 3;

impl WriterPort {
    /// What is in the way, as a sentence without a full stop.
    #[cold]
    pub(crate) fn describe(&self, obstacle: &Obstacle) -> String {
        match obstacle {
            Obstacle::NoRoom | Obstacle::Limits => match self.full_logs() {
                Some(logs) => format!("what was sent waits for a log: {logs}"),
                None => self.holders(),
            },
            Obstacle::Shut | Obstacle::Recording => match &self.logs {
                Some(logs) => logs.describe(),
                None => "the log is shut".to_owned(),
            },
            Obstacle::NotBegun => {
                let unready = self.figures().map(|figures| figures.unready);
                let unready = unready.filter(|it| !it.is_empty());
                match unready.map(|unready| self.processes(&unready)) {
                    Some(them) => format!("the group is changing, and {them} not ready for it yet"),
                    None => "the group is changing".to_owned(),
                }
            }
            Obstacle::NoView => {
                "the group has not taken notice of the writer yet: it is changing".to_owned()
            }
            Obstacle::BetweenEpochs => "the group is changing its members".to_owned(),
            Obstacle::Out => self.session().group_status().why_out(),
            Obstacle::Error(error) => error.to_string(),
        }
    }

    /// Which processes have not accepted a message, as a sentence without a full stop.
    #[cold]
    pub(crate) fn describe_unaccepted(&self, message: &Committed) -> String {
        let place = self.place();
        let (session, acceptors) = (place.session.clone(), place.acceptors.clone());
        let epoch = place.epoch.clone();
        drop(place);
        if session.group_status().is_out() {
            return session.group_status().why_out();
        }
        let view = session.view();
        let is_lacking = |it: &&Acceptor| {
            let epoch = epoch.as_ref();
            epoch.is_some_and(|epoch| !it.has_accepted(epoch, message))
        };
        let lacking = acceptors.iter().filter(is_lacking);
        let ranks = lacking.filter_map(|it| view.as_deref()?.rank(it.member));
        let ranks: Vec<u16> = ranks.map(|rank| rank.0).collect();
        if ranks.is_empty()
            && let Some(why) = self.describe_unlogged(message)
        {
            return why;
        }
        if ranks.is_empty() {
            return "not all matched readers have accepted what was written".to_owned();
        }
        let logs = self.full_logs().map(|logs| format!("; {logs}"));
        format!(
            "not all matched readers have accepted what was written: {} behind, or a reader there is \
             full{}",
            self.processes(&ranks),
            logs.unwrap_or_default()
        )
    }

    /// The logs that hold what was sent in the writer's subgroup, as there is no room on their disks.
    fn full_logs(&self) -> Option<String> {
        let session = self.session();
        let full = session.logs().troubles().holding(self.subgroup);
        name_troubles(session.view().as_deref(), &full)
    }

    fn figures(&self) -> Option<SubgroupFigures> {
        let session = self.session();
        (0..TRIES_MAX).find_map(|_| {
            let figures = session.engine().subgroup_figures(self.subgroup);
            if figures.is_none() {
                std::thread::yield_now();
            }
            figures
        })
    }

    /// The holders of what is in the ring.
    fn holders(&self) -> String {
        let known = self.figures().and_then(|figures| {
            let mut rings = figures.rings.iter();
            let ring = rings.find(|ring| ring.class == self.class)?;
            Some((ring.unreleased.clone(), figures))
        });
        let Some((unreleased, figures)) = known else {
            return "a reader does not take its samples, or holds loans of them".to_owned();
        };
        if unreleased.is_empty() {
            return "loans of this participant, neither published nor dropped, take the room"
                .to_owned();
        }
        let is_behind = |rank: &u16| {
            let at = figures.members.iter().position(|it| it == rank);
            let received = at.and_then(|at| figures.received.get(at));
            received.is_some_and(|received| *received < figures.received_num)
        };
        let (behind, holding): (Vec<u16>, Vec<u16>) = unreleased.into_iter().partition(is_behind);
        match behind.is_empty() {
            false => format!(
                "{} behind in receiving: stopped, or without a processor",
                self.processes(&behind)
            ),
            true => format!(
                "{} slow: a reader there does not take its samples, or holds loans of them",
                self.processes(&holding)
            ),
        }
    }

    /// Names the processes with these ranks in the view, with the verb.
    fn processes(&self, ranks: &[u16]) -> String {
        let view = self.session().view();
        let member = |rank: &u16| view.as_deref().and_then(|view| member_at(view, *rank));
        let names = ranks.iter().take(NAMED_MAX).map(|rank| {
            let info = member(rank).and_then(|it| ParticipantInfo::of(it).ok());
            match info.map(|info| info.pid) {
                Some(pid) if pid == std::process::id() => format!("this process ({pid})"),
                Some(pid) => format!("process {pid}"),
                None => format!("member {rank}"),
            }
        });
        let names: Vec<String> = names.collect();
        let more = match ranks.len().saturating_sub(NAMED_MAX) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let verb = if ranks.len() == 1 { "is" } else { "are" };
        format!("{}{more} {verb}", names.join(", "))
    }
}

fn member_at(view: &View, rank: u16) -> Option<&Member> {
    view.members.get(usize::from(rank))
}
