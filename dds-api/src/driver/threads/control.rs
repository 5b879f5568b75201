//! The control thread: installs views, and admits newcomers.
//!
//! ```text
//!   engine --Prepare-> room in the record, segments with peers and newcomers --> Engine::prepared
//!          --Decide--> record of the domain --> Engine::decided
//!          --Ended---> record, segments if they are not prepared --> Engine::install
//!   station --Ask--> Engine::request(Join) ... Prepare --> Prepared ... next view --> Welcome
//!           --StatusRequest--> figures --> Status
//!   local_endpoints --updates--> Engine::request(Update)
//!   engine --Refused--> a refusal to the newcomer, or a warning about an endpoint
//! ```
//!
//! It may wait for peers, the domain's record or a resolver: messages go on meanwhile.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::ControlFlow;
use std::sync::{Arc, Weak};
use std::time::Duration;

use spindle_dds_core::PreparedView;
use spindle_dds_core::membership::{
    self, DeliveredHistory, Member, MemberId, Refusal, Request, View,
};
use spindle_dds_transport::hybrid::Station;
use spindle_dds_transport::shm::{
    self, DecisionRefused, DomainRegistry, MemberEntry, StationEvent,
};

use crate::discovery::{self, ParticipantInfo, Types};
use crate::driver::endpoints::announced_matches::AnnouncementReader;
use crate::driver::endpoints::local_endpoints::LocalEndpoints;
use crate::driver::session::Session;
use crate::driver::threads::control_queue::ControlEvent;
use crate::driver::threads::figures;
use crate::driver::threads::memory_watch::MemoryWatch;
use crate::driver::threads::preparation::{self, ViewSegments};
use crate::driver::threads::reachability;
use crate::error::{Error, Result};
use crate::history::{HistoryService, LogService};
use crate::joining::{self, Packet};
use crate::participant::ParticipantCore;

use self::history::hand_over;

/// What the control thread works with.
pub(crate) struct ControlThread {
    pub(crate) participant: Weak<ParticipantCore>,
    pub(crate) station: Arc<Station>,
    pub(crate) register: DomainRegistry,
    pub(crate) local_endpoints: Arc<LocalEndpoints>,
    pub(crate) history: Arc<HistoryService>,
    pub(crate) logs: Arc<LogService>,
    pub(crate) announcements: AnnouncementReader,
    pub(crate) me: MemberId,
    pub(crate) subgroups: u32,
    /// How long to wait for the peers when segments are made.
    pub(crate) limit: Duration,
    /// The view that is installed, or is installed next.
    pub(crate) view: Arc<View>,
    /// Digest of the decision that made the view.
    pub(crate) digest: u64,
    /// Newcomers that have asked this participant to let them in, in their order.
    pub(crate) asked: Vec<u128>,
    /// Of newcomers that come back: the members that they were.
    pub(crate) were: BTreeMap<u128, MemberId>,
    /// What was delivered of the members that are gone.
    pub(crate) delivered: DeliveredHistory,
    /// Members of the view whose connection is lost.
    pub(crate) lost: BTreeSet<u128>,
    /// Number of the preparation of the view; 0 if it was agreed without one.
    pub(crate) preparation: u64,
    /// What is prepared for the next view.
    pub(crate) ready: Option<ViewSegments>,
    /// Why members of the view leave the group, as they have said.
    pub(crate) gave_up: BTreeMap<u128, String>,
    /// Events that came while a view was prepared.
    pub(crate) later: VecDeque<StationEvent>,
    /// For monitors.
    pub(crate) memory_watch: MemoryWatch,
}

impl ControlThread {
    /// Runs until the participant is in no group any more; then it enters it again, if that is what it
    /// is to do.
    pub(crate) fn run(self, session: &Arc<Session>) {
        let (participant, me) = (self.participant.clone(), self.me);
        self.run_in_group(session);
        if session.group_status().is_out() {
            joining::rejoin(&participant, session, me);
        }
    }

    fn run_in_group(mut self, session: &Session) {
        let first = self.view.clone();
        let mut flow = self.go_on(session, &first, self.digest);
        while flow.is_continue() && !session.is_stopping() {
            self.request_updates(session);
            flow = match session.control_queue().take() {
                Some(ControlEvent::Prepare(preparation)) => {
                    self.prepare_ahead(session, &preparation);
                    ControlFlow::Continue(())
                }
                Some(ControlEvent::CallOff) => {
                    self.ready = None;
                    ControlFlow::Continue(())
                }
                Some(ControlEvent::Decide(decision)) => {
                    let decided = self.decide(&decision);
                    if let Err(why) = &decided {
                        self.give_up(&self.view, &format!("it cannot record a view: {why}"));
                    }
                    session.engine().decided(decided);
                    ControlFlow::Continue(())
                }
                Some(ControlEvent::Refused { request, refusal }) => {
                    self.refused(&request, refusal);
                    ControlFlow::Continue(())
                }
                Some(ControlEvent::Ended {
                    next,
                    digest,
                    proposal,
                    expelled,
                }) => {
                    self.preparation = proposal.preparation;
                    self.delivered.view_ended(&self.view, &proposal);
                    self.say_expelled(&expelled);
                    let flow = self.go_on(session, &next, digest);
                    self.drop_gone(&expelled);
                    flow
                }
                Some(ControlEvent::Leave) => {
                    session.engine().request(Request::Leave);
                    ControlFlow::Continue(())
                }
                Some(ControlEvent::Stopped) => ControlFlow::Break(()),
                None => {
                    let later = self.later.pop_front();
                    let event = later.or_else(|| self.station.next_event(Duration::MAX));
                    let event = event
                        .and_then(|it| hand_over((&self.history, &self.logs), &self.station, it));
                    if let Some(event) = event {
                        self.handle(session, event);
                    }
                    ControlFlow::Continue(())
                }
            };
        }
        self.end(session);
    }

    fn end(self, session: &Session) {
        if let Err(error) = self.register.leave() {
            tracing::warn!(%error, "leaving a domain");
        }
        session.control_queue().close();
        // Closing the station tells the peers.
        drop(self.station);
        session.control_queue().ended();
        session.send_waiters().wake_all();
        session.stop_if_over();
    }

    /// Requests what has changed, of all endpoints at once.
    fn request_updates(&self, session: &Session) {
        for update in self.local_endpoints.take_updates() {
            session.engine().request(Request::Update(update));
        }
    }

    // From view to view.

    /// Records a decision by compare-and-set in the domain's record: a member of this host that
    /// cannot write it leaves, and the next leader decides. With members on other hosts, the
    /// majority has decided, and the record follows: a failure is a warning.
    fn decide(&self, decision: &membership::Decision) -> std::result::Result<(), String> {
        let next = &decision.next;
        let recorded = recorded(next, decision.digest);
        let recorded = recorded.map_err(|error| error.to_string())?;
        let mut hosts = self.view.members.iter().map(|member| member.host);
        let here = hosts.next();
        let one_host = hosts.all(|host| Some(host) == here);
        match self.register.decide(next.id - 1, &recorded, one_host) {
            Err(DecisionRefused::Domain(error)) if error.is_local() && !one_host => {
                tracing::warn!(view = next.id, %error, "a view is not recorded on this host");
                Ok(())
            }
            decided => decided.map_err(|error| error.to_string()),
        }
    }

    /// Begins the next view.
    fn go_on(&mut self, session: &Session, next: &Arc<View>, digest: u64) -> ControlFlow<()> {
        // The first view has no view before it.
        let is_first = std::mem::replace(&mut self.view, next.clone()).id == next.id;
        self.digest = digest;
        let members = next.members.iter().map(|it| it.id.0);
        let newcomers: Vec<u128> = members.filter(|id| self.asked.contains(id)).collect();
        self.welcome(&newcomers);
        self.asked.retain(|id| !newcomers.contains(id));
        self.tell_waiting(&[]);
        if next.rank(self.me).is_none() {
            // The next event says why.
            return ControlFlow::Continue(());
        }
        // Recorded first: participants that start on this host must find the view.
        let noted = self.record(next, digest, is_first);
        let segments = noted.and_then(|()| self.segments(next, self.preparation));
        let installed = segments.and_then(|segments| {
            session.prepare(self.announcements.read(next, &self.local_endpoints));
            // What came while the view was prepared is there when it begins: the next one has it all.
            self.request_updates(session);
            let installed = session.engine().install(PreparedView {
                view: next.clone(),
                control: segments.control,
                subgroups: segments.subgroups,
            });
            installed.map_err(|error| Error::Error(error.to_string()))
        });
        if let Err(error) = installed {
            let text = format!("view {} of the group cannot be entered: {error}", next.id);
            self.give_up(next, &text);
            session.fail(&text);
            return ControlFlow::Break(());
        }
        session.send_waiters().wake_all();
        ControlFlow::Continue(())
    }

    /// Brings the domain's record up to date. A failure of this host's file system is a warning:
    /// the view is decided, and the next one is recorded as a whole. But the first view of a
    /// newcomer must be there, for newcomers after it.
    fn record(&self, next: &View, digest: u64, is_first: bool) -> Result<()> {
        match self.register.record(&recorded(next, digest)?) {
            Err(error) if error.is_local() && !is_first => {
                tracing::warn!(view = next.id, %error, "a view is not recorded on this host");
                Ok(())
            }
            noted => noted.map_err(|error| Error::Error(error.to_string())),
        }
    }

    /// The segments of a view that is agreed.
    fn segments(&mut self, next: &View, preparation: u64) -> Result<ViewSegments> {
        let ready = self.ready.take();
        if preparation == 0 {
            drop(ready);
            let (station, limit) = (&self.station, self.limit);
            return preparation::make(station, self.me, next, 0, limit, &mut || {});
        }
        let is_it = |it: &ViewSegments| (it.view, it.preparation) == (next.id, preparation);
        let lost = || Error::Error("what was prepared for it is gone".to_owned());
        ready.filter(is_it).ok_or_else(lost)
    }

    // Peers.

    fn handle(&mut self, session: &Session, event: StationEvent) {
        match event {
            StationEvent::Connected { .. } => {}
            StationEvent::Closed { id, .. } => self.closed(id),
            StationEvent::Message { from, bytes } => match Packet::read(&bytes) {
                Ok(Packet::Ask(ask)) if ask.member.id.0 == from => {
                    self.asked_by(session, ask.member, ask.was);
                }
                Ok(Packet::GivesUp(reason)) => drop(self.gave_up.insert(from, reason)),
                Ok(Packet::StatusRequest) => self.tell(session, from),
                // Late answers to what was asked before this participant was in a view.
                Ok(
                    Packet::Prepare { .. }
                    | Packet::Prepared { .. }
                    | Packet::Delivered(_)
                    | Packet::Welcome { .. }
                    | Packet::Refused { .. }
                    | Packet::NotYet(_)
                    | Packet::Waits { .. }
                    | Packet::Status { .. }
                    // Handed over before.
                    | Packet::History(_)
                    | Packet::Log(_)
                    | Packet::LogNotice(_),
                ) => {}
                Ok(Packet::Ask(_)) => {
                    let why = "it asks on behalf of another participant";
                    self.refuse(from, Error::Error(why.to_owned()));
                }
                Err(reason) => self.refuse(from, Error::Error(reason)),
            },
        }
    }

    /// The connection to a peer is lost.
    fn closed(&mut self, id: u128) {
        self.asked.retain(|asked| *asked != id);
        self.were.remove(&id);
        if self.view.rank(MemberId(id)).is_some() {
            self.lost.insert(id);
        } else {
            self.station.drop_peer(id);
        }
    }

    /// A newcomer asks to be let in.
    fn asked_by(&mut self, session: &Session, newcomer: Member, was: Option<MemberId>) {
        let id = newcomer.id.0;
        if let Some(was) = was {
            self.were.insert(id, was);
        }
        if let Err(error) = self.fits(&newcomer) {
            return self.refuse(id, error);
        }
        if self.view.rank(newcomer.id).is_some() {
            return self.welcome(&[id]);
        }
        if !self.asked.contains(&id) {
            self.asked.push(id);
            session.control_queue().count_join_request();
        }
        session.engine().request(Request::Join(newcomer));
    }

    /// Whether a newcomer is compatible with the members.
    fn fits(&self, newcomer: &Member) -> Result<()> {
        let info = ParticipantInfo::of(newcomer)?;
        if info.subgroups != self.subgroups {
            return Err(Error::Error(format!(
                "process {} has spindle.subgroups {}, process {} has {}: give all the same",
                info.pid,
                info.subgroups,
                std::process::id(),
                self.subgroups
            )));
        }
        reachability::check(&self.view, newcomer)?;
        let mut types = Types::default();
        let others = newcomer.endpoints.values();
        for endpoint in others.filter(|it| it.log.is_none()) {
            match discovery::Entry::from_group(endpoint, &newcomer.notes, &mut types) {
                Ok(entry) => self.local_endpoints.check(&entry)?,
                Err(why) => {
                    let text = format!("an endpoint of process {} makes no sense: {why}", info.pid);
                    return Err(Error::Error(text));
                }
            }
        }
        Ok(())
    }

    /// The group has refused a request for good.
    fn refused(&mut self, request: &Request, refusal: Refusal) {
        let why = match refusal.is_lack {
            true => Error::OutOfResources(refusal.reason),
            false => Error::Error(refusal.reason),
        };
        match request {
            Request::Update(update) => self.local_endpoints.refused(update, &why),
            Request::Join(newcomer) => {
                self.asked.retain(|asked| *asked != newcomer.id.0);
                self.refuse(newcomer.id.0, why);
            }
            // A leave is never refused.
            Request::Leave => {}
        }
    }

    fn welcome(&self, newcomers: &[u128]) {
        if newcomers.is_empty() {
            return;
        }
        let packets = Packet::welcome(&self.view, self.digest, self.preparation);
        for id in newcomers {
            if let Some(was) = self.were.get(id)
                && let Some(counts) = self.delivered.of(*was)
            {
                let counts = Packet::Delivered(counts.clone());
                self.send(*id, &counts.write());
            }
            packets.iter().for_each(|packet| self.send(*id, packet));
        }
    }

    /// Sends the figures of this participant.
    fn tell(&mut self, session: &Session, to: u128) {
        let memory = self
            .memory_watch
            .figures(session, &self.local_endpoints, self.ready.as_ref());
        let mismatches = self.announcements.mismatches(&self.local_endpoints);
        let memory_and_logs = (memory, self.logs.figures());
        let own = &self.local_endpoints;
        let figures = figures::of(session, own, self.me, memory_and_logs, mismatches);
        match serde_json::to_vec(&figures) {
            Ok(bytes) => {
                for packet in Packet::status(&bytes) {
                    // The monitor may have gone meanwhile.
                    let _ = self.station.send(to, &packet);
                }
            }
            Err(error) => self.refuse(to, Error::Error(error.to_string())),
        }
    }

    fn refuse(&self, id: u128, why: Error) {
        self.send(id, &Packet::refused(why));
    }

    fn send(&self, id: u128, bytes: &[u8]) {
        if let Err(error) = self.station.send(id, bytes) {
            tracing::warn!(%error, "a newcomer is not reached");
        }
    }
}

/// A view for the domain's record.
fn recorded(view: &View, digest: u64) -> Result<shm::ViewDecision> {
    let members = view.members.iter().map(entry).collect::<Result<_>>()?;
    Ok(shm::ViewDecision {
        view: view.id,
        digest,
        members,
    })
}

/// A member for the domain's record.
pub(crate) fn entry(member: &Member) -> Result<MemberEntry> {
    let info = ParticipantInfo::of(member)?;
    Ok(MemberEntry {
        id: member.id.0,
        host: member.host.0,
        pid: info.pid,
        start: info.start,
        address: member.address.clone(),
    })
}

mod admission;
mod ahead;
mod history;
#[cfg(test)]
mod tests;
