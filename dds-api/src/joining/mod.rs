//! How a participant gets into the group of its domain.
//!
//! ```text
//!   newcomer                         a living member (its sponsor)
//!   look at the domain's record
//!     nobody lives: found it, be view 1
//!     else: connect, Ask ----------> does it fit? --no--> Refused
//!                                    Engine::request(Join) ... the next view has it
//!     enter that view <------------- Welcome
//! ```
//!
//! If the sponsor ends before that, another one is asked: who asks twice joins once.

mod quest;

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use spindle_dds_core::CONTROL_ROW_LEN;
use spindle_dds_core::membership::{HostId, Member, MemberId, View};
use spindle_dds_transport::Rank;
use spindle_dds_transport::shm::{
    DoorbellChoice, Entered, Entry, Event, JoinError, Register, SegmentKey, SegmentRequest,
    Station, StationError, StationOptions, host_id,
};

use crate::discovery::{PROTOCOL, ParticipantInfo};
use crate::driver::{CallOff, Control, Crew, Desk, Session, Sleepers, Start, Targets};
use crate::error::{Error, Result};
use crate::participant::ParticipantCore;
use crate::properties::{Doorbell, pin};

/// Between two looks at the domain's record.
const LOOK_AGAIN_AFTER: Duration = Duration::from_millis(2);
/// How long to wait for an event before looking whether it is called off.
const LISTEN_FOR: Duration = Duration::from_millis(20);
/// How long one member has for taking a call.
const CALL_WITHIN: Duration = Duration::from_secs(1);
/// Bytes of a view in one packet.
const PART_LEN: usize = 512 << 10;

/// What newcomers and members say to each other. The first four bytes, and all of a
/// refusal, stay as they are in any version.
#[derive(Debug)]
pub(crate) enum Packet {
    /// Let me in.
    Ask(Member),
    /// A part of the view that has the newcomer.
    Welcome { last: bool, part: Vec<u8> },
    /// No, and why.
    Refused(String),
}

impl Packet {
    pub(crate) fn write(&self) -> Vec<u8> {
        let mut out = PROTOCOL.to_le_bytes().to_vec();
        match self {
            Self::Ask(member) => {
                out.push(1);
                // As a view of its own it is checked like any other.
                if let Ok(alone) = View::first(member.clone()) {
                    out.extend(alone.to_bytes());
                }
            }
            Self::Welcome { last, part } => {
                out.extend([2, u8::from(*last)]);
                out.extend(part);
            }
            Self::Refused(reason) => {
                out.push(3);
                out.extend(reason.as_bytes());
            }
        }
        out
    }

    /// A view in as many packets as it takes.
    pub(crate) fn welcome(view: &View) -> Vec<Vec<u8>> {
        let bytes = view.to_bytes();
        let count = bytes.len().div_ceil(PART_LEN);
        let parts = bytes.chunks(PART_LEN).zip(1..);
        let packet = |(part, at): (&[u8], usize)| {
            let (last, part) = (at == count, part.to_vec());
            Self::Welcome { last, part }.write()
        };
        parts.map(packet).collect()
    }

    pub(crate) fn read(bytes: &[u8]) -> std::result::Result<Self, String> {
        let nonsense = || "it said what makes no sense".to_owned();
        let (version, rest) = bytes.split_first_chunk().ok_or_else(nonsense)?;
        let version = u32::from_le_bytes(*version);
        let (kind, rest) = rest.split_first().ok_or_else(nonsense)?;
        if version != PROTOCOL && *kind != 3 {
            return Err(format!(
                "process {} speaks version {PROTOCOL} of the protocol, the other one {version}: \
                 all participants of a domain are built with one version of Spindle DDS",
                std::process::id()
            ));
        }
        match (kind, rest) {
            (1, alone) => {
                let alone = View::from_bytes(alone).map_err(|error| error.to_string())?;
                match <[Member; 1]>::try_from(alone.members) {
                    Ok([member]) => Ok(Self::Ask(member)),
                    Err(_) => Err(nonsense()),
                }
            }
            (2, [last, part @ ..]) => Ok(Self::Welcome {
                last: *last == 1,
                part: part.to_vec(),
            }),
            (3, reason) => Ok(Self::Refused(String::from_utf8_lossy(reason).into_owned())),
            _ => Err(nonsense()),
        }
    }
}

/// Gets into the domain's group, or founds it. Blocks until it is in, or `call_off`
/// is said.
pub(crate) fn join(participant: &ParticipantCore, call_off: &CallOff) -> Result<Arc<Session>> {
    let config = &participant.config;
    warn_of_unused_pins(participant);
    // Before anybody is promised anything.
    let crew = Crew::muster()?;
    let roll = &participant.roll;
    let newcomer = Newcomer::new(participant)?;
    let joined = newcomer.enter(Instant::now() + config.join_timeout, call_off)?;
    let Joined {
        newcomer,
        view,
        early,
    } = joined;
    let Newcomer {
        station,
        register,
        me,
        ..
    } = newcomer;
    let bed = SegmentRequest {
        key: SegmentKey { epoch: 0, lane: 0 },
        members: vec![me.id.0],
        me: Rank(0),
        row_lens: vec![CONTROL_ROW_LEN],
        control: false,
    };
    let bed = station.segment(&bed, Instant::now()).map_err(unmade)?;
    let desk = Arc::new(Desk::new(station.clone()));
    let start = Start {
        id: me.id,
        limit: config.failure_limit,
        first: view.clone(),
    };
    let bells = participant.bells().clone();
    let session = Session::new(
        bed,
        start,
        roll.clone(),
        participant.fate.clone(),
        bells,
        desk,
    );
    // Listeners are called from now on, and use what contains their entities.
    participant.enable_contained();
    roll.enter(me.id, &session)?;
    let control = Control {
        station,
        register,
        roll: roll.clone(),
        me: me.id,
        subgroups: config.subgroups,
        limit: config.failure_limit,
        view,
        early,
        asked: BTreeSet::new(),
        lost: BTreeSet::new(),
    };
    let targets = Targets::new(participant.weak(), roll.clone());
    let sleepers = Sleepers::new(roll.clone());
    session.begin(
        crew,
        config.wait,
        control,
        |session| targets.run(session),
        |session| sleepers.run(session),
    );
    session.wait_begun()?;
    Ok(session)
}

/// A participant that is in no group yet.
struct Newcomer {
    station: Arc<Station>,
    register: Register,
    me: Member,
    domain: u32,
    /// How long a sponsor may take.
    patience: Duration,
}

/// One that is in its first view.
struct Joined {
    newcomer: Newcomer,
    view: Arc<View>,
    /// What others said that is none of a newcomer's business.
    early: Vec<Event>,
}

impl Newcomer {
    fn new(participant: &ParticipantCore) -> Result<Self> {
        let config = &participant.config;
        let id = MemberId(random_id());
        let host = HostId(host_id(config.directory.as_deref()).map_err(refused)?);
        let mut options = StationOptions::new(participant.domain_id, id.0);
        options.directory = config.directory.clone();
        options.doorbell = match config.doorbell {
            Doorbell::Auto => DoorbellChoice::Auto,
            Doorbell::Futex => DoorbellChoice::Futex,
            Doorbell::Event => DoorbellChoice::Event,
        };
        let station = Station::open(&options).map_err(refused)?;
        let entry = Entry::here(id.0, host.0, station.address()).map_err(refused)?;
        let info = ParticipantInfo {
            guid: participant.base.guid(),
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
            endpoints: participant.roll.first()?,
        };
        let directory = config.directory.as_deref();
        let register = Register::open(participant.domain_id, directory, entry);
        Ok(Self {
            station: Arc::new(station),
            register: register.map_err(refused)?,
            me,
            domain: participant.domain_id,
            patience: 2 * config.failure_limit,
        })
    }

    fn enter(self, deadline: Instant, call_off: &CallOff) -> Result<Joined> {
        let alone = View::first(self.me.clone());
        let alone = alone.map_err(|error| Error::BadParameter(error.to_string()))?;
        let mut early = Vec::new();
        let mut last = "nobody answered".to_owned();
        loop {
            let entered = self.register.enter().map_err(refused)?;
            let Entered::Present(members) = entered else {
                let view = Arc::new(alone);
                return Ok(self.joined(view, early));
            };
            for sponsor in members.iter().filter(|it| it.id != self.me.id.0) {
                match self.ask(sponsor, deadline, call_off, &mut early)? {
                    Ok(view) => return Ok(self.joined(Arc::new(view), early)),
                    Err(reason) => last = reason,
                }
                self.go_on(deadline, call_off, &last)?;
            }
            self.go_on(deadline, call_off, &last)?;
            thread::sleep(LOOK_AGAIN_AFTER);
        }
    }

    fn joined(self, view: Arc<View>, early: Vec<Event>) -> Joined {
        Joined {
            newcomer: self,
            view,
            early,
        }
    }

    /// Whether there is still time.
    fn go_on(&self, deadline: Instant, call_off: &CallOff, last: &str) -> Result<()> {
        let domain = self.domain;
        if call_off.is_said() {
            let text = format!("joining domain {domain} was called off");
            return Err(Error::AlreadyDeleted(text));
        }
        if Instant::now() >= deadline {
            let text = format!("no member of domain {domain} let this participant in: {last}");
            return Err(Error::Timeout(text));
        }
        Ok(())
    }

    /// Asks one member. The inner error says why it did not let this one in.
    fn ask(
        &self,
        sponsor: &Entry,
        deadline: Instant,
        call_off: &CallOff,
        early: &mut Vec<Event>,
    ) -> Result<std::result::Result<View, String>> {
        let call_until = deadline.min(Instant::now() + CALL_WITHIN);
        if let Err(error) = self.station.connect(&sponsor.address, call_until) {
            // It may be gone by the next look.
            self.station.drop_peer(sponsor.id);
            return Ok(Err(error.to_string()));
        }
        let ask = Packet::Ask(self.me.clone()).write();
        if let Err(error) = self.station.send(sponsor.id, &ask) {
            return Ok(Err(error.to_string()));
        }
        let patience = Instant::now() + self.patience;
        let mut views: BTreeMap<u128, Vec<u8>> = BTreeMap::new();
        loop {
            let silent = format!("process {} did not answer", sponsor.pid);
            self.go_on(deadline, call_off, &silent)?;
            if Instant::now() >= patience {
                return Ok(Err(silent));
            }
            let (from, bytes) = match self.station.next_event(LISTEN_FOR) {
                Some(Event::Message { from, bytes }) => (from, bytes),
                Some(Event::Closed { id, cause }) => {
                    self.station.drop_peer(id);
                    if id == sponsor.id {
                        return Ok(Err(cause.to_string()));
                    }
                    continue;
                }
                Some(Event::Connected { .. }) | None => continue,
            };
            match Packet::read(&bytes) {
                // Whoever knows this one already has a view by then.
                Ok(Packet::Ask(_)) => early.push(Event::Message { from, bytes }),
                Ok(Packet::Welcome { last, part }) => {
                    views.entry(from).or_default().extend(part);
                    if last && let Some(view) = self.view(&views.remove(&from).unwrap_or_default())
                    {
                        return Ok(Ok(view));
                    }
                }
                Ok(Packet::Refused(reason)) | Err(reason) if from == sponsor.id => {
                    return Err(Error::Error(reason));
                }
                Ok(Packet::Refused(_)) | Err(_) => {}
            }
        }
    }

    fn view(&self, bytes: &[u8]) -> Option<View> {
        let view = View::from_bytes(bytes).ok()?;
        view.rank(self.me.id).is_some().then_some(view)
    }
}

/// Never drawn before, by anybody.
fn random_id() -> u128 {
    let draw = || {
        let mut hasher = RandomState::new().build_hasher();
        hasher.write_u32(std::process::id());
        hasher.write_i64(crate::time::source_timestamp());
        u128::from(hasher.finish())
    };
    draw() << 64 | draw()
}

/// A profile may be shared by participants that have different topics; but it may be a
/// misspelled name too.
fn warn_of_unused_pins(participant: &ParticipantCore) {
    let entities = participant.entities();
    for name in participant.config.pins.keys() {
        if !entities.topics.iter().any(|topic| topic.name == *name) {
            tracing::warn!(
                property = pin(name),
                "the participant has no topic of this name yet: the property has no effect"
            );
        }
    }
}

fn refused(error: JoinError) -> Error {
    let text = error.to_string();
    match error {
        JoinError::Memory { .. } => Error::OutOfResources(text),
        JoinError::NoFutexWaitv => Error::Unsupported(text),
        _ => Error::Error(text),
    }
}

fn unmade(error: StationError) -> Error {
    match error {
        StationError::System(error) => refused(error),
        error => Error::Error(error.to_string()),
    }
}
