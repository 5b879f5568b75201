//! The control thread: installs views, and admits newcomers.
//!
//! ```text
//!   engine --Decide--> record of the domain --> Engine::decided
//!          --Ended---> record, segments with the peers --> Engine::install
//!   station --Ask--> Engine::request(Join) ... next view --> Welcome
//!           --StatusRequest--> figures --> Status
//!   local_endpoints --updates--> Engine::request(Update)
//!   engine --Refused--> a refusal to the newcomer, or a warning about an endpoint
//! ```
//!
//! It may wait for peers, the domain's record or a resolver: messages go on meanwhile.

use std::collections::{BTreeSet, VecDeque};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use spindle_dds_core::membership::{self, CONTROL_ROW_LEN, Member, MemberId, Request, View};
use spindle_dds_core::{PreparedView, SegmentLayout, SubgroupId};
use spindle_dds_transport::hybrid::{HybridError, Station};
use spindle_dds_transport::library_thread::LibraryThread;
use spindle_dds_transport::shm::{
    self, DecisionRefused, DomainRegistry, MemberEntry, StationEvent,
};
use spindle_dds_transport::{Rank, SegmentKey, SegmentRequest};

use crate::discovery::{self, ParticipantInfo, Types};
use crate::driver::endpoints::announced_matches::AnnouncementReader;
use crate::driver::endpoints::local_endpoints::LocalEndpoints;
use crate::driver::session::Session;
use crate::driver::threads::control_queue::ControlEvent;
use crate::driver::threads::figures;
use crate::driver::threads::reachability;
use crate::error::{Error, Result};
use crate::joining::Packet;
use crate::wire::Wire;

/// The index of the control segment among the segments of a view.
const CONTROL_INDEX: u32 = u32::MAX;
/// How long to wait for newcomers before checking whether they live.
const LOOK_AGAIN_AFTER: Duration = Duration::from_millis(10);

/// What the control thread works with.
pub(crate) struct ControlThread {
    pub(crate) station: Arc<Station>,
    pub(crate) register: DomainRegistry,
    pub(crate) local_endpoints: Arc<LocalEndpoints>,
    pub(crate) announcements: AnnouncementReader,
    pub(crate) me: MemberId,
    pub(crate) subgroups: u32,
    /// How long to wait for the peers when segments are made.
    pub(crate) limit: Duration,
    /// The view that is installed, or is installed next.
    pub(crate) view: Arc<View>,
    /// Digest of the decision that made the view.
    pub(crate) digest: u64,
    /// Newcomers that have asked this participant to let them in.
    pub(crate) asked: BTreeSet<u128>,
    /// Members of the view whose connection is lost.
    pub(crate) lost: BTreeSet<u128>,
    /// Events that came while a view was prepared.
    pub(crate) later: VecDeque<StationEvent>,
}

impl ControlThread {
    /// Runs until the participant is in no group any more.
    pub(crate) fn run(mut self, session: &Session) {
        let first = self.view.clone();
        let mut flow = self.go_on(session, &first, self.digest);
        while flow.is_continue() && !session.is_stopping() {
            for update in self.local_endpoints.take_updates() {
                session.engine().request(Request::Update(update));
            }
            flow = match session.control_queue().take() {
                Some(ControlEvent::Decide(decision)) => {
                    session.engine().decided(self.decide(&decision));
                    ControlFlow::Continue(())
                }
                Some(ControlEvent::Refused { request, why }) => {
                    self.refused(&request, &why);
                    ControlFlow::Continue(())
                }
                Some(ControlEvent::Ended {
                    next,
                    digest,
                    expelled,
                }) => {
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

    /// Prepares the next view with its members, and begins it.
    fn go_on(&mut self, session: &Session, next: &Arc<View>, digest: u64) -> ControlFlow<()> {
        let before = std::mem::replace(&mut self.view, next.clone());
        let is_new = |member: &Member| before.rank(member.id).is_none();
        // The first view has no view before it.
        let anybody_new = before.id == next.id || next.members.iter().any(is_new);
        self.digest = digest;
        let newcomers: Vec<u128> = next.members.iter().map(|it| it.id.0).collect();
        for id in newcomers.iter().filter(|id| self.asked.contains(id)) {
            self.welcome(*id);
        }
        self.asked.retain(|id| !newcomers.contains(id));
        if next.rank(self.me).is_none() {
            // The next event says why.
            return ControlFlow::Continue(());
        }
        // Recorded first: participants that start on this host must find the view.
        let noted = self.record(next, digest, before.id == next.id);
        let prepared = noted.and_then(|()| match anybody_new {
            true => self.prepare_and_welcome(next),
            false => self.prepare(next),
        });
        let installed = prepared.and_then(|prepared| {
            session.prepare(self.announcements.read(next, &self.local_endpoints));
            let installed = session.engine().install(prepared);
            installed.map_err(|error| Error::Error(error.to_string()))
        });
        if let Err(error) = installed {
            let text = format!("view {} of the group cannot be entered: {error}", next.id);
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

    /// Prepares a view with newcomers. A newcomer that asks meanwhile is welcomed: its sponsor may
    /// have failed before it could say so. A newcomer of this host that has died or closed without
    /// connecting is given up.
    fn prepare_and_welcome(&mut self, next: &Arc<View>) -> Result<PreparedView<Wire>> {
        let is_over = AtomicBool::new(false);
        let (prepared, later) = thread::scope(|scope| {
            let this = &*self;
            let welcomes = LibraryThread::named("spindle-welcome")
                .spawn_scoped(scope, || this.welcome_until(&is_over))
                .map_err(|error| Error::OutOfResources(format!("starting a thread: {error}")))?;
            let prepared = this.prepare(next);
            is_over.store(true, Ordering::Release);
            this.station.interrupt();
            let later = welcomes.join().unwrap_or_default();
            prepared.map(|prepared| (prepared, later))
        })?;
        self.later.extend(later);
        Ok(prepared)
    }

    /// Returns the other events that came.
    fn welcome_until(&self, is_over: &AtomicBool) -> Vec<StationEvent> {
        let mut later = Vec::new();
        while !is_over.load(Ordering::Acquire) {
            let Some(event) = self.station.next_event(LOOK_AGAIN_AFTER) else {
                self.give_up_gone();
                continue;
            };
            if let StationEvent::Message { from, bytes } = &event
                && let Ok(Packet::Ask(ask)) = Packet::read(bytes)
                && ask.member.id.0 == *from
                && self.view.rank(ask.member.id).is_some()
            {
                self.welcome(*from);
                continue;
            }
            later.push(event);
        }
        later
    }

    /// Gives up members of this host that have died or closed before they were connected.
    fn give_up_gone(&self) {
        let entries = self.view.members.iter().filter_map(|it| entry(it).ok());
        for member in entries {
            if self.register.is_known_dead(&member) {
                self.station.give_up(member.id, "its process ended");
            } else if self.station.has_closed(&member.address) {
                self.station.give_up(member.id, "it has closed");
            }
        }
    }

    fn prepare(&self, next: &Arc<View>) -> Result<PreparedView<Wire>> {
        let deadline = Instant::now() + self.limit;
        let me = next.rank(self.me).unwrap_or(Rank(0));
        // A member that is not reached is not waited for: the view will suspect it.
        let unreached = |member: &Member, error: &HybridError| {
            tracing::warn!(%error, "a member cannot be reached");
            self.station.give_up(member.id.0, &error.to_string());
        };
        for member in next.members.iter().filter(|member| member.id != self.me) {
            if let Err(error) = self.station.expect_peer(&member.address) {
                unreached(member, &error);
            }
        }
        // Of two members, the one that joined later connects.
        for member in &next.members[..me.index()] {
            if let Err(error) = self.station.connect(&member.address, deadline) {
                unreached(member, &error);
            }
        }
        let ids = |ranks: &[Rank]| {
            let ids = ranks.iter().map(|rank| next.members[rank.index()].id.0);
            ids.collect::<Vec<_>>()
        };
        let all: Vec<Rank> = (0..next.members.len() as u16).map(Rank).collect();
        let mut requests = vec![SegmentRequest {
            key: SegmentKey {
                epoch: next.id,
                index: CONTROL_INDEX,
            },
            members: ids(&all),
            me,
            row_lens: vec![CONTROL_ROW_LEN; all.len()],
            control: true,
        }];
        // A newcomer enters only subgroup epochs that begin with this view.
        for spec in next.subgroups.iter().filter(|spec| spec.epoch == next.id) {
            let Some(place) = spec.members.iter().position(|rank| *rank == me) else {
                continue;
            };
            let layout =
                SegmentLayout::new(spec).map_err(|error| Error::Error(error.to_string()))?;
            requests.push(SegmentRequest {
                key: SegmentKey {
                    epoch: next.id,
                    index: spec.subgroup.0,
                },
                members: ids(&spec.members),
                me: Rank(place as u16),
                row_lens: layout.row_lens(),
                control: false,
            });
        }
        let segments = self.station.segments(&requests, deadline);
        let segments = segments.map_err(|error| Error::Error(error.to_string()))?;
        let mut segments = segments.into_iter();
        let control = segments.next();
        let subgroups = requests[1..].iter().map(|it| SubgroupId(it.key.index));
        Ok(PreparedView {
            view: next.clone(),
            control: control.ok_or_else(|| Error::Error("no control segment".to_owned()))?,
            subgroups: subgroups.zip(segments).collect(),
        })
    }

    // Peers.

    /// Logs the members that the view that has ended expelled.
    fn say_expelled(&self, expelled: &[(MemberId, String)]) {
        for (id, reason) in expelled {
            let members = &self.view.members;
            let member = members.iter().find(|member| member.id == *id);
            let info = member.and_then(|member| ParticipantInfo::of(member).ok());
            let pid = info.map(|info| info.pid);
            tracing::warn!(pid, reason, "a participant is out of the group");
        }
    }

    /// Drops peers that are lost and not in the view any more, or were expelled. A member that has
    /// left closes its station by itself.
    fn drop_gone(&mut self, expelled: &[(MemberId, String)]) {
        let lost = std::mem::take(&mut self.lost);
        for id in lost {
            match self.view.rank(MemberId(id)) {
                Some(_) => drop(self.lost.insert(id)),
                None => self.station.drop_peer(id),
            }
        }
        for (id, _) in expelled {
            self.station.drop_peer(id.0);
        }
    }

    fn handle(&mut self, session: &Session, event: StationEvent) {
        match event {
            StationEvent::Connected { .. } => {}
            StationEvent::Closed { id, .. } => self.closed(id),
            StationEvent::Message { from, bytes } => match Packet::read(&bytes) {
                Ok(Packet::Ask(ask)) if ask.member.id.0 == from => {
                    self.asked_by(session, ask.member);
                }
                Ok(Packet::StatusRequest) => self.tell(session, from),
                // Late answers to what was asked before this participant was in a view.
                Ok(
                    Packet::Welcome { .. }
                    | Packet::Refused(_)
                    | Packet::NotYet(_)
                    | Packet::Status { .. },
                ) => {}
                Ok(Packet::Ask(_)) => self.refuse(from, "it asks on behalf of another participant"),
                Err(reason) => self.refuse(from, &reason),
            },
        }
    }

    /// The connection to a peer is lost.
    fn closed(&mut self, id: u128) {
        self.asked.remove(&id);
        if self.view.rank(MemberId(id)).is_some() {
            self.lost.insert(id);
        } else {
            self.station.drop_peer(id);
        }
    }

    /// A newcomer asks to be let in.
    fn asked_by(&mut self, session: &Session, newcomer: Member) {
        let id = newcomer.id.0;
        if let Err(error) = self.fits(&newcomer) {
            return self.refuse(id, &error.to_string());
        }
        if self.view.rank(newcomer.id).is_some() {
            return self.welcome(id);
        }
        if !self.asked.contains(&id)
            && let Err(error) = self.make_room(&newcomer)
        {
            return self.refuse(id, &error.to_string());
        }
        if self.asked.insert(id) {
            session.control_queue().count_join_request();
        }
        session.engine().request(Request::Join(newcomer));
    }

    /// Gets the room in the domain's record that a view with the newcomer needs.
    fn make_room(&self, newcomer: &Member) -> Result<()> {
        let room = self.register.make_room(&entry(newcomer)?);
        room.map_err(|error| Error::OutOfResources(error.to_string()))
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
        for endpoint in newcomer.endpoints.values() {
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
    fn refused(&mut self, request: &Request, why: &str) {
        match request {
            Request::Update(update) => self.local_endpoints.refused(update, why),
            Request::Join(newcomer) => {
                self.asked.remove(&newcomer.id.0);
                self.refuse(newcomer.id.0, why);
            }
            // A leave is never refused.
            Request::Leave => {}
        }
    }

    fn welcome(&self, id: u128) {
        for packet in Packet::welcome(&self.view, self.digest) {
            self.send(id, &packet);
        }
    }

    /// Sends the figures of this participant.
    fn tell(&self, session: &Session, to: u128) {
        let figures = figures::of(session, &self.local_endpoints, self.me);
        match serde_json::to_vec(&figures) {
            Ok(bytes) => {
                for packet in Packet::status(&bytes) {
                    // The monitor may have gone meanwhile.
                    let _ = self.station.send(to, &packet);
                }
            }
            Err(error) => self.refuse(to, &error.to_string()),
        }
    }

    fn refuse(&self, id: u128, reason: &str) {
        self.send(id, &Packet::Refused(reason.to_owned()).write());
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
fn entry(member: &Member) -> Result<MemberEntry> {
    let info = ParticipantInfo::of(member)?;
    Ok(MemberEntry {
        id: member.id.0,
        host: member.host.0,
        pid: info.pid,
        start: info.start,
        address: member.address.clone(),
    })
}

#[cfg(test)]
mod tests;
