//! The control thread: goes from view to view, and lets newcomers in.
//!
//! ```text
//!   engine --Decide--> record of the domain --> Engine::decided
//!          --Ended---> record, segments with the peers --> Engine::install
//!   station --Ask--> Engine::request(Join) ... next view --> Welcome
//!           --StatusRequest--> how this participant stands --> Told
//!   local_endpoints --updates--> Engine::request(Update)
//!   engine --Refused--> a newcomer is told, an endpoint is warned of
//! ```
//!
//! What it waits for is nobody's business but its own: messages go on meanwhile.

use std::collections::{BTreeSet, VecDeque};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use spindle_dds_core::membership::{self, CONTROL_ROW_LEN, Member, MemberId, Request, View};
use spindle_dds_core::{PreparedView, SegmentLayout, SubgroupId};
use spindle_dds_transport::hybrid::{HybridError, Station};
use spindle_dds_transport::shm::{self, DomainRegistry, MemberEntry, StationEvent};
use spindle_dds_transport::{Rank, SegmentKey, SegmentRequest};

use crate::discovery::{self, ParticipantInfo, Types};
use crate::driver::endpoints::local_endpoints::LocalEndpoints;
use crate::driver::session::Session;
use crate::driver::threads::control_queue::ControlEvent;
use crate::driver::threads::figures;
use crate::driver::threads::reachability;
use crate::error::{Error, Result};
use crate::joining::Packet;
use crate::wire::Wire;

/// The control segment's number among those of a view.
const CONTROL_LANE: u32 = u32::MAX;
/// How long to wait for newcomers before looking whether they live.
const LOOK_AGAIN_AFTER: Duration = Duration::from_millis(10);

/// What the control thread works with.
pub(crate) struct ControlThread {
    pub(crate) station: Arc<Station>,
    pub(crate) register: DomainRegistry,
    pub(crate) local_endpoints: Arc<LocalEndpoints>,
    pub(crate) me: MemberId,
    pub(crate) subgroups: u32,
    /// How long to wait for the peers when segments are made.
    pub(crate) limit: Duration,
    /// The view that is there, or comes next.
    pub(crate) view: Arc<View>,
    /// Of the decision that made it.
    pub(crate) digest: u64,
    /// Those who asked this participant to be let in.
    pub(crate) asked: BTreeSet<u128>,
    /// Members that are lost, and that the view still has.
    pub(crate) lost: BTreeSet<u128>,
    /// What came while a view was prepared.
    pub(crate) later: VecDeque<StationEvent>,
}

impl ControlThread {
    /// Until the participant is in no group any more.
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
        // The peers are told that it closes.
        drop(self.station);
        session.control_queue().ended();
        session.send_waiters().wake_all();
        session.stop_if_over();
    }

    // From view to view.

    /// The compare-and-set in the domain's record; with members on other hosts, the
    /// majority has decided, and the record follows.
    fn decide(&self, decision: &membership::Decision) -> std::result::Result<(), String> {
        let next = &decision.next;
        let recorded = recorded(next, decision.digest);
        let recorded = recorded.map_err(|error| error.to_string())?;
        let mut hosts = self.view.members.iter().map(|member| member.host);
        let here = hosts.next();
        let one_host = hosts.all(|host| Some(host) == here);
        let decided = self.register.decide(next.id - 1, &recorded, one_host);
        decided.map_err(|error| error.to_string())
    }

    /// Prepares the next view with its members, and begins it.
    fn go_on(&mut self, session: &Session, next: &Arc<View>, digest: u64) -> ControlFlow<()> {
        let before = std::mem::replace(&mut self.view, next.clone());
        let is_new = |member: &Member| before.rank(member.id).is_none();
        // My own first view is what there is before it.
        let anybody_new = before.id == next.id || next.members.iter().any(is_new);
        self.digest = digest;
        let newcomers: Vec<u128> = next.members.iter().map(|it| it.id.0).collect();
        for id in newcomers.iter().filter(|id| self.asked.contains(id)) {
            self.welcome(*id);
        }
        self.asked.retain(|id| !newcomers.contains(id));
        if next.rank(self.me).is_none() {
            // What has become of it comes next.
            return ControlFlow::Continue(());
        }
        // First: who comes to this host, or back to it, has to know.
        let noted = recorded(next, digest).and_then(|recorded| {
            let noted = self.register.record(&recorded);
            noted.map_err(|error| Error::Error(error.to_string()))
        });
        let prepared = noted.and_then(|()| match anybody_new {
            true => self.prepare_and_welcome(next),
            false => self.prepare(next),
        });
        let installed = prepared.and_then(|prepared| {
            let installed = session.engine().install(prepared);
            installed.map_err(|error| Error::Error(error.to_string()))
        });
        if let Err(error) = installed {
            let text = format!("view {} of the group cannot be entered: {error}", next.id);
            session.group_status().fail(text);
            session.notifier().listeners.ring();
            return ControlFlow::Break(());
        }
        session.send_waiters().wake_all();
        ControlFlow::Continue(())
    }

    /// Prepares it with the newcomers in it. Who asks meanwhile is welcomed: whoever let
    /// it in may have failed before it could say so. Who has died on this host, or closed,
    /// and never called, is given up.
    fn prepare_and_welcome(&mut self, next: &Arc<View>) -> Result<PreparedView<Wire>> {
        let is_over = AtomicBool::new(false);
        let (prepared, later) = thread::scope(|scope| {
            let this = &*self;
            let welcomes = thread::Builder::new()
                .name("spindle-welcome".to_owned())
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

    /// Returns what else came.
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

    /// Those of this host who have died, or closed, before they were in the view.
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
        // Who is not reached is not waited for: the others will hear of it in the view.
        let unreached = |member: &Member, error: &HybridError| {
            tracing::warn!(%error, "a member cannot be reached");
            self.station.give_up(member.id.0, &error.to_string());
        };
        for member in next.members.iter().filter(|member| member.id != self.me) {
            if let Err(error) = self.station.expect_peer(&member.address) {
                unreached(member, &error);
            }
        }
        // Whoever came later calls.
        for member in &next.members[..me.index()] {
            if let Err(error) = self.station.connect(&member.address, deadline) {
                unreached(member, &error);
            }
        }
        let ids = |ranks: &[Rank]| {
            let ids = ranks.iter().map(|rank| next.members[rank.index()].id.0);
            ids.collect::<Vec<_>>()
        };
        let everybody: Vec<Rank> = (0..next.members.len() as u16).map(Rank).collect();
        let mut requests = vec![SegmentRequest {
            key: SegmentKey {
                epoch: next.id,
                index: CONTROL_LANE,
            },
            members: ids(&everybody),
            me,
            row_lens: vec![CONTROL_ROW_LEN; everybody.len()],
            control: true,
        }];
        // A newcomer enters epochs that are as new as itself.
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

    /// Of the view that has ended.
    fn say_expelled(&self, expelled: &[(MemberId, String)]) {
        for (id, reason) in expelled {
            let members = &self.view.members;
            let member = members.iter().find(|member| member.id == *id);
            let info = member.and_then(|member| ParticipantInfo::of(member).ok());
            let pid = info.map(|info| info.pid);
            tracing::warn!(pid, reason, "a participant is out of the group");
        }
    }

    /// Whoever is not in the view any more and is lost, or was expelled, is forgotten.
    /// Who has left closes its station by itself.
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
                // Somebody asked before is late.
                Ok(
                    Packet::Welcome { .. }
                    | Packet::Refused(_)
                    | Packet::NotYet(_)
                    | Packet::Told { .. },
                ) => {}
                Ok(Packet::Ask(_)) => self.refuse(from, "it asks for somebody else"),
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

    /// Somebody wants to be let in.
    fn asked_by(&mut self, session: &Session, newcomer: Member) {
        let id = newcomer.id.0;
        if let Err(error) = self.fits(&newcomer) {
            return self.refuse(id, &error.to_string());
        }
        if self.view.rank(newcomer.id).is_some() {
            return self.welcome(id);
        }
        if self.asked.insert(id) {
            session.control_queue().count_join_request();
        }
        session.engine().request(Request::Join(newcomer));
    }

    /// Whether a newcomer is like those who are there.
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

    /// The group does not do what it was asked for, and will not.
    fn refused(&mut self, request: &Request, why: &str) {
        match request {
            Request::Update(update) => self.local_endpoints.refused(update, why),
            Request::Join(newcomer) => {
                self.asked.remove(&newcomer.id.0);
                self.refuse(newcomer.id.0, why);
            }
            // Nobody is kept.
            Request::Leave => {}
        }
    }

    fn welcome(&self, id: u128) {
        for packet in Packet::welcome(&self.view, self.digest) {
            self.send(id, &packet);
        }
    }

    /// How this participant stands.
    fn tell(&self, session: &Session, to: u128) {
        let figures = figures::of(session, &self.local_endpoints, self.me);
        match serde_json::to_vec(&figures) {
            Ok(bytes) => {
                for packet in Packet::told(&bytes) {
                    // Who has gone meanwhile has no need to know.
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
