//! A participant that is in no group yet: carries out what the join protocol decides.

mod views;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use spindle_dds_core::membership::{DeliveredCounts, HostId, Member, MemberId, View};
use spindle_dds_transport::hybrid::{
    CallFailureCause, HybridError, Station, StationOptions, sockets_of,
};
use spindle_dds_transport::shm::{
    self, DomainRegistry, DomainState, DoorbellChoice, EnterOutcome, MemberEntry, StationError,
    StationEvent,
};
use spindle_dds_transport::{FABRIC_AREA, Rank, SegmentKey, SegmentRequest};

use super::join_protocol::{JoinProtocol, JoinTimeouts, Known, Next, NotYet, Reached, Target};
use super::network::{self, Contact};
use super::packet::{Answer, Ask, Packet};
use super::{random_id, refused, unmade};
use crate::discovery::ParticipantInfo;
use crate::driver::CancelToken;
use crate::driver::threads::preparation::ViewSegments;
use crate::error::{Error, Result};
use crate::participant::ParticipantCore;
use crate::properties::{Doorbell, PREFER_AVAILABILITY, SECRET_FILE};
use crate::wire::Wire;

/// How long to wait for an event before checking whether the join is cancelled.
const LISTEN_FOR: Duration = Duration::from_millis(20);
/// How long an attempt to connect may take.
const CALL_WITHIN: Duration = Duration::from_secs(1);
/// A member asks once for each of its readers that match a writer of this participant.
const HISTORY_MAX: usize = 4096;

/// A participant that is joining.
pub(super) struct Newcomer {
    pub(super) station: Arc<Station>,
    pub(super) register: DomainRegistry,
    pub(super) me: Member,
    /// The member that it was before it lost its group.
    was: Option<MemberId>,
    /// What the group has delivered of that one, if it has said so.
    pub(super) delivered: Option<DeliveredCounts>,
    domain: u32,
    contacts: Vec<Contact>,
    timeouts: JoinTimeouts,
    /// Other members that may live, by the record of this host.
    present: Vec<MemberEntry>,
    /// Received parts of views, by sender, until the last part has come.
    views: BTreeMap<u128, Vec<u8>>,
    /// Refusals already warned of.
    refusals: BTreeSet<String>,
    limit: Duration,
    /// What it has prepared of a view that it may come to be in.
    ready: Option<ViewSegments>,
    /// Why it could not prepare the last one, if it could not.
    lack: Option<Error>,
    /// Events that came while a view was prepared.
    later: VecDeque<StationEvent>,
    /// Questions about history, of members that have entered the view that has this newcomer before it:
    /// answered when it is in the view, too. At most `HISTORY_MAX`.
    pub(super) history: VecDeque<StationEvent>,
    /// Whether it has come nearer to its turn since its deadline was set.
    is_nearer: bool,
}

/// A newcomer that is in its first view.
pub(super) struct Joined {
    pub(super) newcomer: Newcomer,
    pub(super) view: Arc<View>,
    /// Digest of the decision that made the view.
    pub(super) digest: u64,
    /// Number of the preparation of the view; 0 for a founder.
    pub(super) preparation: u64,
    pub(super) ready: Option<ViewSegments>,
}

impl Newcomer {
    /// Opens a station on this host, and in the network if the participant listens. `was`: the member
    /// that the participant was before it lost its group.
    pub(super) fn new(participant: &ParticipantCore, was: Option<MemberId>) -> Result<Self> {
        let config = &participant.config;
        let id = MemberId(random_id());
        let mut on_host = shm::HostOptions::new(participant.domain_id, id.0);
        on_host.directory = config.directory.clone();
        on_host.prefault = config.prefault;
        on_host.io = config.threads.io;
        on_host.doorbell = match config.doorbell {
            Doorbell::Auto => DoorbellChoice::Auto,
            Doorbell::Futex => DoorbellChoice::Futex,
            Doorbell::Event => DoorbellChoice::Event,
        };
        let network = config.network.as_ref();
        let contacts = network.map(network::contacts).transpose()?;
        let network = network.map(|network| network::options(network, config.failure_limit));
        let station = Station::open(&StationOptions {
            host: on_host,
            network: network.transpose()?,
        });
        let station = station.map_err(unmade)?;
        let host = HostId(station.host_id());
        let entry = MemberEntry::here(id.0, host.0, station.address()).map_err(refused)?;
        let info = ParticipantInfo {
            guid: participant.base.guid(),
            name: participant.name.clone(),
            subgroups: config.subgroups,
            pid: entry.pid,
            start: entry.start,
        };
        let me = Member {
            id,
            host,
            address: entry.address.clone(),
            info: info.to_bytes()?,
            updates: 0,
            endpoints: participant.local_endpoints.first().into(),
            notes: Default::default(),
        };
        let directory = config.directory.as_deref();
        let register = DomainRegistry::open(participant.domain_id, directory, entry);
        let timeouts = JoinTimeouts {
            answer: 2 * config.failure_limit,
            majority: config.prefer_availability.then_some(config.failure_limit),
        };
        Ok(Self {
            station: Arc::new(station),
            register: register.map_err(refused)?,
            me,
            was,
            delivered: None,
            domain: participant.domain_id,
            contacts: contacts.unwrap_or_default(),
            timeouts,
            present: Vec::new(),
            views: BTreeMap::new(),
            refusals: BTreeSet::new(),
            limit: config.failure_limit,
            ready: None,
            lack: None,
            later: VecDeque::new(),
            history: VecDeque::new(),
            is_nearer: false,
        })
    }

    /// The segment in which the participant's threads sleep between two views.
    pub(super) fn sleep_segment(&self) -> Result<Wire> {
        let request = SegmentRequest {
            key: SegmentKey { epoch: 0, index: 0 },
            members: vec![self.me.id.0],
            me: Rank(0),
            row_lens: vec![FABRIC_AREA],
            control: false,
        };
        let made = self.station.segment(&request, Instant::now());
        made.map_err(unmade)
    }

    /// Runs until the participant is in a view, as a member or as the founder. Fails if it is not let
    /// in within `timeout`, which begins anew whenever it comes nearer to its turn.
    pub(super) fn enter(mut self, timeout: Duration, cancel: &CancelToken) -> Result<Joined> {
        let mut deadline = Instant::now() + timeout;
        let alone = View::first(self.me.clone());
        let alone = alone.map_err(|error| Error::BadParameter(error.to_string()))?;
        let labels = self.contacts.iter().map(|it| it.label.clone()).collect();
        let mut protocol = JoinProtocol::new(labels, self.timeouts);
        let since = Instant::now();
        loop {
            if std::mem::take(&mut self.is_nearer) {
                deadline = Instant::now() + timeout;
            }
            self.go_on(deadline, cancel, &protocol)?;
            let now = since.elapsed();
            // To look at all members of the record takes time, which a member may need that is
            // about to let this newcomer in.
            if !protocol.is_awaiting(now) {
                self.read_record(&mut protocol)?;
            }
            let wait = match protocol.next(now) {
                Next::Found => {
                    let entered = self
                        .register
                        .enter_ignoring(protocol.dead())
                        .map_err(refused)?;
                    if entered == EnterOutcome::Founded {
                        self.warn_if_alone(&protocol);
                        return Ok(self.joined(alone, 0, 0));
                    }
                    Duration::ZERO
                }
                Next::Connect(target) => {
                    let reached = self.reach(target, deadline)?;
                    let now = since.elapsed();
                    // An attempt cut short by the deadline says less than one before it.
                    let counts = Instant::now() < deadline || !protocol.has_tried(target);
                    if counts && let Some(id) = protocol.reached(now, target, reached) {
                        self.ask(&mut protocol, now, id);
                    }
                    Duration::ZERO
                }
                Next::Ask(id) => {
                    self.ask(&mut protocol, now, id);
                    Duration::ZERO
                }
                Next::Wait(time) => time.min(LISTEN_FOR),
                Next::GiveUp => return Err(self.no_common_secret(&protocol)),
            };
            let later = self.later.pop_front();
            if let Some(event) = later.or_else(|| self.station.next_event(wait))
                && let Some(welcome) = self.handle(&mut protocol, since.elapsed(), event)?
            {
                let (view, digest, preparation) = welcome;
                return Ok(self.joined(view, digest, preparation));
            }
        }
    }

    fn joined(mut self, view: View, digest: u64, preparation: u64) -> Joined {
        Joined {
            ready: self.ready.take(),
            newcomer: self,
            view: Arc::new(view),
            digest,
            preparation,
        }
    }

    /// Fails if the join is cancelled, or its deadline is over.
    fn go_on(
        &self,
        deadline: Instant,
        cancel: &CancelToken,
        protocol: &JoinProtocol,
    ) -> Result<()> {
        let domain = self.domain;
        if cancel.is_cancelled() {
            let text = format!("joining domain {domain} was called off");
            return Err(Error::AlreadyDeleted(text));
        }
        if Instant::now() >= deadline {
            let report = protocol.report();
            let mut text =
                format!("no member of domain {domain} let this participant in: {report}");
            if let (Some(port), Some(at)) = (self.station.missing_port(), self.station.listening())
            {
                text += &format!(
                    "; it is to listen at {port}, which is taken, and listens at {at} until then"
                );
            }
            return Err(Error::Timeout(text));
        }
        Ok(())
    }

    fn no_common_secret(&self, protocol: &JoinProtocol) -> Error {
        Error::NotAllowedBySecurity(format!(
            "no participant of domain {} has the secret of this one (property {SECRET_FILE}): {}",
            self.domain,
            protocol.report()
        ))
    }

    fn warn_if_alone(&self, protocol: &JoinProtocol) {
        if !self.contacts.is_empty() && !protocol.has_majority() {
            tracing::warn!(
                property = PREFER_AVAILABILITY,
                domain = self.domain,
                asked = protocol.report(),
                "the domain is founded without a majority of its contacts: there may be another \
                 group, and the two never become one"
            );
        }
    }

    /// Reads the record of this host.
    fn read_record(&mut self, protocol: &mut JoinProtocol) -> Result<()> {
        self.present = match self.register.living_members().map_err(refused)? {
            DomainState::Empty => Vec::new(),
            DomainState::Present(entries) => entries,
        };
        let me = self.me.id.0;
        self.present.retain(|entry| entry.id != me);
        let host = self.me.host.0;
        let known = self.present.iter().map(|entry| Known {
            id: entry.id,
            here: entry.host == host,
            label: label(entry, host),
        });
        protocol.record_read(known.collect());
        Ok(())
    }

    /// Connects to a target. Fails if this participant lacks something for that.
    fn reach(&mut self, target: Target, deadline: Instant) -> Result<Reached> {
        let until = deadline.min(Instant::now() + CALL_WITHIN);
        let reached = match target {
            Target::Contact(at) => self.station.call(self.contacts[at].at, until),
            // A founder is connected, or its connection is lost.
            Target::Founder(_) => return Ok(Reached::Unreachable("it is lost".to_owned())),
            Target::Recorded(id) => {
                let Some(entry) = self.present.iter().find(|entry| entry.id == id) else {
                    return Ok(Reached::Unreachable("it is gone".to_owned()));
                };
                self.reach_member(entry, until)
            }
        };
        Ok(match reached {
            Ok(id) => Reached::Peer(id),
            Err(HybridError::ThisStation) => Reached::Myself,
            Err(HybridError::Join(error) | HybridError::Station(StationError::System(error)))
                if error.is_out_of_resources() =>
            {
                return Err(refused(error));
            }
            Err(error) => {
                self.warn_if_refused(&error);
                if let Target::Recorded(id) = target {
                    // The record may not name it any more the next time.
                    self.station.drop_peer(id);
                }
                let has_other_secret = error.call_failure() == CallFailureCause::Secret;
                let said = match error {
                    HybridError::Unreachable { reason, .. } => reason,
                    HybridError::Refused { reason, .. } => {
                        format!("it refuses the connection: {reason}")
                    }
                    error => error.to_string(),
                };
                match has_other_secret {
                    true => Reached::OtherSecret(said),
                    false => Reached::Unreachable(said),
                }
            }
        })
    }

    /// Warns at once, so that users need not wait for the timeout to learn of a wrong secret.
    fn warn_if_refused(&mut self, error: &HybridError) {
        if matches!(error, HybridError::Refused { .. }) && self.refusals.insert(error.to_string()) {
            tracing::warn!(domain = self.domain, %error, "joining goes on");
        }
    }

    /// Connects to a recorded member. On another host, any participant at its address will do.
    fn reach_member(
        &self,
        entry: &MemberEntry,
        until: Instant,
    ) -> std::result::Result<u128, HybridError> {
        if entry.host == self.me.host.0 {
            return self.station.connect(&entry.address, until);
        }
        let mut last = Err(HybridError::NoNetwork { id: entry.id });
        for at in sockets_of(&entry.address) {
            last = self.station.call(at, until);
            if last.is_ok() {
                break;
            }
        }
        last
    }

    fn ask(&self, protocol: &mut JoinProtocol, now: Duration, id: u128) {
        let missing = protocol.missing();
        let missing = self.present.iter().filter(|it| missing.contains(&it.id));
        let ask = Packet::Ask(Ask {
            member: self.me.clone(),
            founds: protocol.founds(),
            was: self.was,
            missing: missing.cloned().collect(),
        });
        if let Err(error) = self.station.send(id, &ask.write()) {
            // If the connection is lost, an event says why.
            protocol.lost(now, id, &error.to_string());
        }
    }

    /// Returns the view that has this newcomer, the digest of the decision that made it, and the
    /// number of its preparation.
    fn handle(
        &mut self,
        protocol: &mut JoinProtocol,
        now: Duration,
        event: StationEvent,
    ) -> Result<Option<(View, u64, u64)>> {
        let (from, bytes) = match event {
            StationEvent::Connected { .. } => return Ok(None),
            StationEvent::Closed { id, cause } => {
                self.views.remove(&id);
                self.station.drop_peer(id);
                protocol.lost(now, id, &cause.to_string());
                return Ok(None);
            }
            StationEvent::Message { from, bytes } => (from, bytes),
        };
        match Packet::read(&bytes) {
            Ok(Packet::Ask(ask)) => {
                self.read_record(protocol)?;
                let said = protocol.asked(now, from, ask.founds);
                self.send(from, &Packet::NotYet(self.answer(said, &ask.missing)));
            }
            Ok(Packet::NotYet(answer)) => {
                let dead: Vec<u128> = answer.dead.into_iter().collect();
                let said = NotYet {
                    promises: answer.promises,
                    is_out: answer.is_out,
                    reason: answer.reason,
                };
                protocol.not_yet(now, from, said, &dead);
            }
            Ok(Packet::Welcome {
                digest,
                preparation,
                last,
                part,
            }) => {
                let is_welcome = protocol.is_welcome_by(from);
                let view = self.take_part(from, is_welcome, last, part);
                return Ok(view.map(|view| (view, digest, preparation)));
            }
            Ok(Packet::Delivered(counts)) if protocol.is_welcome_by(from) => {
                self.delivered = Some(counts);
            }
            Ok(Packet::Prepare { number, last, part }) => {
                let is_welcome = protocol.is_welcome_by(from);
                if let Some(view) = self.take_part(from, is_welcome, last, part) {
                    let lack = self.prepare(from, &view, number);
                    let view = view.id;
                    self.send(from, &Packet::Prepared { view, number, lack });
                }
            }
            Ok(Packet::Waits { ahead }) => self.is_nearer |= protocol.waits(now, from, ahead),
            Ok(Packet::Refused { is_lack, reason }) if protocol.is_asking(from) => {
                return Err(match self.lack.take() {
                    // In its own words, if it is this participant that lacks something.
                    Some(Error::OutOfResources(lack)) => Error::OutOfResources(lack),
                    _ if is_lack => Error::OutOfResources(reason),
                    _ => Error::Error(reason),
                });
            }
            Err(reason) if protocol.is_asking(from) => return Err(Error::Error(reason)),
            Ok(Packet::StatusRequest) => {
                self.refuse(from, "it is in no group yet".to_owned());
            }
            Ok(Packet::History(_) | Packet::Log(_) | Packet::LogNotice(_)) => {
                if self.history.len() < HISTORY_MAX {
                    self.history
                        .push_back(StationEvent::Message { from, bytes });
                }
            }
            Ok(
                Packet::Delivered(_)
                | Packet::GivesUp(_)
                | Packet::Prepared { .. }
                | Packet::Refused { .. }
                | Packet::Status { .. },
            ) => {}
            Err(reason) => self.refuse(from, reason),
        }
        Ok(None)
    }

    /// Answers another newcomer: what this host knows of the members that it is missing.
    fn answer(&self, said: NotYet, missing: &[MemberEntry]) -> Answer {
        let here = sockets_of(&self.me.address);
        let is_dead = |entry: &&MemberEntry| {
            // A member that listened only at addresses that are now this participant's has ended.
            let sockets = sockets_of(&entry.address);
            let replaced = !sockets.is_empty() && sockets.iter().all(|at| here.contains(at));
            entry.id != self.me.id.0 && (replaced || self.register.is_known_dead(entry))
        };
        let dead = missing.iter().filter(is_dead).map(|entry| entry.id);
        Answer {
            promises: said.promises,
            is_out: said.is_out,
            dead: dead.collect::<BTreeSet<_>>(),
            reason: said.reason,
        }
    }

    fn refuse(&self, to: u128, reason: String) {
        let is_lack = false;
        self.send(to, &Packet::Refused { is_lack, reason });
    }

    fn send(&self, to: u128, packet: &Packet) {
        if let Err(error) = self.station.send(to, &packet.write()) {
            tracing::debug!(%error, "another newcomer is not reached");
        }
    }
}

/// A member's name in messages for users.
fn label(entry: &MemberEntry, host: u128) -> String {
    let pid = entry.pid;
    match sockets_of(&entry.address).first() {
        Some(at) if entry.host != host => format!("process {pid} at {at}"),
        _ if entry.host != host => format!("process {pid} of another host"),
        _ => format!("process {pid}"),
    }
}
