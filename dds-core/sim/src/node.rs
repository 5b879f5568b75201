//! A member of the simulated world: its engine, its applications, its recorder.

use std::collections::{BTreeMap, VecDeque};

use spindle_dds_core::{
    AckWait, Claim, ClaimError, Delivery, Engine, Event, Held, Kind, Meta, Outcome, Ring, Sink,
    StopReason, SubgroupId,
};
use spindle_dds_transport::sim::{Rng, SimFabric};
use spindle_dds_transport::{Fabric, Rank, Want};

use crate::plan::Plan;

/// Mistakes of a driver around the engine that the harness must find.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Blunder {
    /// Goes to sleep without looking once more: a doorbell is lost.
    NoSecondLook,
    /// Sleeps for data alone though somebody waits for acknowledgements.
    WantsTooLittle,
}

/// A message as it was committed: what every delivery is compared with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SentMessage {
    /// Number of the message within its sender, subgroup and ring, from 1.
    pub number: u64,
    /// Payload bytes.
    pub len: u32,
}

/// The payload of a message: a function of who sent it and which it is, so
/// that bytes of another message are told at once.
pub(crate) fn payload_byte(
    rank: Rank,
    subgroup: SubgroupId,
    ring: Ring,
    number: u64,
    at: usize,
) -> u8 {
    let seed = u64::from(rank.0) << 48 | u64::from(subgroup.0) << 40 | (ring.index() as u64) << 36;
    let word = (seed ^ number)
        .wrapping_mul(0x9e37_79b9_7f4a_7c15)
        .rotate_left(23);
    (word >> (at % 8 * 8)) as u8 ^ at as u8
}

/// One delivery as a member saw it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record {
    /// Where in the order, or in its sender's ring.
    pub position: u64,
    /// Who sent it.
    pub sender: Rank,
    /// Writer sequence number; 0 is the farewell of its sender.
    pub number: u64,
    /// Payload bytes.
    pub len: u32,
}

/// A sample that an application holds in its sender's ring.
pub(crate) struct Loan {
    held: Held<SimFabric>,
    rank: Rank,
    subgroup: SubgroupId,
    ring: Ring,
    number: u64,
    until: usize,
}

/// What a member was handed, and what it makes of it.
pub(crate) struct Recorder {
    pub(crate) histories: BTreeMap<(SubgroupId, Ring), Vec<Record>>,
    pub(crate) loans: Vec<Loan>,
    pub(crate) stopped: Option<StopReason>,
    pub(crate) left: Vec<Rank>,
    /// First thing found wrong with a payload.
    pub(crate) corrupt: Option<String>,
    pub(crate) new_records: Vec<(SubgroupId, Ring, Record)>,
    rng: Rng,
    hold_chance: f64,
    hold_turns: usize,
    pub(crate) turn: usize,
    reading: bool,
}

impl Recorder {
    fn record(&mut self, subgroup: SubgroupId, ring: Ring, record: Record) {
        self.histories
            .entry((subgroup, ring))
            .or_default()
            .push(record);
        self.new_records.push((subgroup, ring, record));
    }

    fn check_payload(&mut self, loan: &Loan) {
        let bytes = loan.held.bytes();
        let wrong = bytes.iter().enumerate().find(|(at, byte)| {
            **byte != payload_byte(loan.rank, loan.subgroup, loan.ring, loan.number, *at)
        });
        if let Some((at, byte)) = wrong {
            self.corrupt.get_or_insert_with(|| {
                format!(
                    "byte {at} of message {} of member {} in subgroup {} is {byte:#04x}",
                    loan.number, loan.rank, loan.subgroup
                )
            });
        }
    }

    /// Gives back what has been held long enough; reads it once more before.
    pub(crate) fn return_loans(&mut self, all: bool) {
        let turn = self.turn;
        let (due, kept) = core::mem::take(&mut self.loans)
            .into_iter()
            .partition::<Vec<_>, _>(|loan| all || loan.until <= turn);
        self.loans = kept;
        for loan in due {
            self.check_payload(&loan);
        }
    }
}

impl Sink<SimFabric> for Recorder {
    fn deliver(&mut self, delivery: &Delivery<'_, SimFabric>) {
        let header = delivery.header;
        let record = Record {
            position: delivery.position,
            sender: delivery.sender,
            number: header.writer_seq,
            len: header.len,
        };
        self.record(delivery.subgroup, delivery.ring, record);
        let Some(held) = delivery.hold() else { return };
        let keep = self.reading && self.rng.chance(self.hold_chance);
        let turns = 1 + self.rng.below(self.hold_turns);
        let loan = Loan {
            held,
            rank: delivery.sender,
            subgroup: delivery.subgroup,
            ring: delivery.ring,
            number: header.writer_seq,
            until: self.turn + turns,
        };
        self.check_payload(&loan);
        if keep {
            self.loans.push(loan);
        }
    }

    fn batch_end(&mut self) {}

    fn event(&mut self, event: Event) {
        match event {
            Event::MemberLeft { rank } => self.left.push(rank),
            Event::SenderLeft {
                subgroup,
                ring,
                rank,
                position,
                timestamp: _,
            } => {
                // Farewells of the ordered ring are part of the order.
                let record = Record {
                    position,
                    sender: rank,
                    number: 0,
                    len: 0,
                };
                self.histories
                    .entry((subgroup, ring))
                    .or_default()
                    .push(record);
            }
            Event::Stopped(reason) => self.stopped = Some(reason),
        }
    }

    fn is_reading(&self, _: SubgroupId) -> bool {
        self.reading
    }
}

/// Sends in one ring of one subgroup.
pub(crate) struct App {
    subgroup: SubgroupId,
    ring: Ring,
    len_max: u32,
    left: usize,
    number: u64,
    /// Claims under construction, each until a turn.
    claims: VecDeque<(Claim<SimFabric>, usize)>,
    waiting: Option<(u32, AckWait<SimFabric>)>,
    /// The engine made room since it looked last.
    room: bool,
    pub(crate) sent: Vec<SentMessage>,
}

/// A member.
pub(crate) struct Node {
    pub(crate) rank: Rank,
    pub(crate) engine: Engine<SimFabric, Recorder>,
    pub(crate) apps: Vec<App>,
    pub(crate) mode: Mode,
    pub(crate) left: bool,
    /// Steps that it still takes after it has left.
    late_steps: u32,
    rng: Rng,
    blunder: Option<Blunder>,
}

/// Where a member's polling thread is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Steps when its turn comes.
    Awake,
    /// Found nothing: about to announce that it sleeps.
    Idle(Want),
    /// Has announced it, and has to look once more.
    Announced(Want),
    /// Blocked until rung.
    Asleep,
}

impl Node {
    pub(crate) fn new(rank: Rank, fabric: SimFabric, plan: &Plan, rng: &mut Rng) -> Option<Self> {
        let recorder = Recorder {
            histories: BTreeMap::new(),
            loans: Vec::new(),
            stopped: None,
            left: Vec::new(),
            corrupt: None,
            new_records: Vec::new(),
            rng: rng.fork(),
            hold_chance: plan.hold_chance,
            hold_turns: plan.hold_turns,
            turn: 0,
            reading: plan.readers[rank.index()],
        };
        let mut apps = Vec::new();
        for (at, (spec, group)) in plan.view.subgroups.iter().zip(&plan.groups).enumerate() {
            let mine = spec.senders.iter().position(|sender| sender.rank == rank);
            for ring in Ring::BOTH {
                let Some(left) = mine.map(|mine| group.messages[mine][ring.index()]) else {
                    continue;
                };
                apps.push(App {
                    subgroup: SubgroupId(at as u32),
                    ring,
                    len_max: group.len_max,
                    left,
                    number: 0,
                    claims: VecDeque::new(),
                    waiting: None,
                    room: false,
                    sent: Vec::new(),
                });
            }
        }
        Some(Self {
            rank,
            engine: Engine::new(fabric, &plan.view, plan.config, recorder).ok()?,
            apps,
            mode: Mode::Awake,
            left: false,
            late_steps: 100,
            rng: rng.fork(),
            blunder: plan.blunder,
        })
    }

    /// Whether its applications have nothing more to do.
    pub(crate) fn is_done(&self) -> bool {
        self.apps
            .iter()
            .all(|app| app.left == 0 && app.claims.is_empty())
    }

    /// What it sent in a ring.
    pub(crate) fn sent(&self, subgroup: SubgroupId, ring: Ring) -> &[SentMessage] {
        let app = self
            .apps
            .iter()
            .find(|app| app.subgroup == subgroup && app.ring == ring);
        app.map_or(&[], |app| &app.sent)
    }

    /// One of its applications does something.
    pub(crate) fn act(&mut self, plan: &Plan, turn: usize) {
        if self.apps.is_empty() || self.left {
            return;
        }
        let at = self.rng.below(self.apps.len());
        let due = self.apps[at]
            .claims
            .iter()
            .position(|(_, until)| *until <= turn);
        match due {
            Some(claim) if self.rng.chance(0.7) => self.finish_claim(plan, at, claim),
            _ => self.begin_claim(plan, at, turn),
        }
    }

    fn begin_claim(&mut self, plan: &Plan, at: usize, turn: usize) {
        let app = &mut self.apps[at];
        // A blocked application looks again when its engine says that there is room.
        if app.left == 0 || app.waiting.is_some() && !app.room {
            return;
        }
        let small = self.rng.chance(0.8);
        let len_max = if small {
            app.len_max.min(40)
        } else {
            app.len_max
        };
        let len = match &app.waiting {
            Some((len, _)) => *len,
            None => self.rng.below(len_max as usize + 1) as u32,
        };
        let handle = self.engine.handle();
        let claim = match handle.claim(app.subgroup, app.ring, len) {
            Err(ClaimError::NoRoom) => {
                let wait = app
                    .waiting
                    .take()
                    .map_or_else(|| handle.waiting_for_acks(), |wait| wait.1);
                app.waiting = Some((len, wait));
                // Once more, now that the engine knows.
                handle.claim(app.subgroup, app.ring, len)
            }
            other => other,
        };
        app.room = false;
        if let Ok(claim) = claim {
            app.waiting = None;
            let hold = if self.rng.chance(0.2) {
                self.rng.below(plan.hold_turns)
            } else {
                0
            };
            app.left -= 1;
            app.claims.push_back((claim, turn + hold));
        }
    }

    fn finish_claim(&mut self, plan: &Plan, at: usize, claim: usize) {
        let app = &mut self.apps[at];
        let Some((mut claim, _)) = app.claims.remove(claim) else {
            return;
        };
        if self.rng.chance(plan.withdraw_chance) {
            // Built, and thrown away: no trace of it may show.
            claim.bytes().fill(0xee);
            return;
        }
        let number = app.number + 1;
        let whole = claim.bytes().len() as u32;
        let used = if self.rng.chance(0.3) {
            self.rng.below(whole as usize + 1) as u32
        } else {
            whole
        };
        for (i, byte) in claim.bytes().iter_mut().enumerate() {
            *byte = payload_byte(self.rank, app.subgroup, app.ring, number, i);
        }
        let meta = Meta {
            kind: Kind::Data,
            flags: 0,
            encapsulation: 1,
            writer: at as u32,
            timestamp: number as i64,
            topic: 7,
            key_hash: [number as u8; 16],
        };
        if claim.commit(used, &meta).is_ok() {
            app.number = number;
            app.sent.push(SentMessage { number, len: used });
            if self.rng.chance(plan.self_publish) {
                let subgroup = app.subgroup;
                self.engine.publish(subgroup);
            } else {
                self.engine.handle().fabric().nudge();
            }
        }
    }

    /// The polling thread's turn.
    pub(crate) fn poll(&mut self, rung: bool) {
        let handle = self.engine.handle();
        let fabric = handle.fabric();
        self.mode = match self.mode {
            Mode::Awake => match self.step() {
                Some(outcome) if !outcome.progress => Mode::Idle(outcome.want),
                _ => Mode::Awake,
            },
            Mode::Idle(want) => {
                let want = if self.blunder == Some(Blunder::WantsTooLittle) {
                    Want::Data
                } else {
                    want
                };
                fabric.announce_sleep(want);
                Mode::Announced(want)
            }
            Mode::Announced(_) if self.blunder == Some(Blunder::NoSecondLook) => Mode::Asleep,
            Mode::Announced(announced) => match self.step() {
                Some(outcome)
                    if !outcome.progress && covers(announced, outcome.want, self.blunder) =>
                {
                    Mode::Asleep
                }
                _ => {
                    fabric.announce_awake();
                    Mode::Awake
                }
            },
            Mode::Asleep if rung => {
                fabric.announce_awake();
                Mode::Awake
            }
            Mode::Asleep => Mode::Asleep,
        };
    }

    fn step(&mut self) -> Option<Outcome> {
        let outcome = self.engine.step();
        if outcome.is_some_and(|outcome| outcome.room) {
            self.apps.iter_mut().for_each(|app| app.room = true);
        }
        outcome
    }

    pub(crate) fn step_after_leaving(&mut self) {
        if self.late_steps > 0 {
            self.late_steps -= 1;
            self.step();
        }
    }

    /// Tries to leave.
    pub(crate) fn leave(&mut self) {
        self.left |= self.engine.leave();
        self.engine.handle().fabric().nudge();
    }
}

fn covers(announced: Want, wanted: Want, blunder: Option<Blunder>) -> bool {
    announced == wanted
        || announced == Want::DataAndAcks
        || blunder == Some(Blunder::WantsTooLittle)
}
