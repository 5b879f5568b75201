//! A member of the simulated world: its engine and its applications.

use std::collections::{BTreeSet, VecDeque};

use spindle_dds_core::{
    AckWait, Claim, ClaimError, DeliveryClass, Engine, Kind, Meta, Outcome, SubgroupId,
    SubgroupSpec,
};
use spindle_dds_transport::sim::{Rng, SimFabric};
use spindle_dds_transport::{Fabric, Rank, WakeInterest};

use crate::plan::Plan;
use crate::recorder::{Recorder, SentMessage, payload_byte};
use crate::violation::Finding;

/// Mistakes of a driver around the engine that the harness must find.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Blunder {
    /// Goes to sleep without looking once more: a doorbell is lost.
    NoSecondLook,
    /// Sleeps for data alone though somebody waits for acknowledgements.
    WantsTooLittle,
    /// Ends a lane where its own counts do, and not those of all. (In lives, which have the
    /// real membership, see `PlantedBug::OwnTrim`.)
    OwnTrim,
}

/// Sends in one ring of one subgroup.
pub(crate) struct App {
    subgroup: SubgroupId,
    ring: DeliveryClass,
    len_max: u32,
    left: usize,
    number: u64,
    /// Claims under construction, each until a turn.
    claims: VecDeque<(Claim<SimFabric>, usize)>,
    /// A message that was built for a lane that has been wedged meanwhile.
    carried: Option<Carried>,
    waiting: Option<(u32, AckWait)>,
    /// The engine made room since it looked last.
    room: bool,
    pub(crate) sent: Vec<SentMessage>,
}

/// One of the ways to step an engine.
type Stepped = fn(&Engine<SimFabric, Recorder>, u64) -> Option<Outcome>;

/// A message on its way from a claim to one of the next lane.
struct Carried {
    claim: Claim<SimFabric>,
    used: u32,
    meta: Meta,
    _waiting: AckWait,
}

/// A member.
pub(crate) struct Node {
    pub(crate) rank: Rank,
    pub(crate) engine: Engine<SimFabric, Recorder>,
    pub(crate) apps: Vec<App>,
    pub(crate) mode: Mode,
    pub(crate) left: bool,
    /// It does not go on in the next lanes, and may not know it.
    pub(crate) expelled: bool,
    /// Its process has ended.
    pub(crate) dead: bool,
    /// Whose rows it does not read any more.
    suspects: BTreeSet<Rank>,
    /// Steps that it still takes after it has left.
    late_steps: u32,
    /// Its time.
    steps: u64,
    rng: Rng,
    blunder: Option<Blunder>,
}

/// Where a member's polling thread is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Steps when its turn comes.
    Awake,
    /// Found nothing: about to announce that it sleeps.
    Idle(WakeInterest),
    /// Has announced it, and has to look once more.
    Announced(WakeInterest),
    /// Blocked until rung.
    Asleep,
}

impl Node {
    pub(crate) fn new(control: SimFabric, plan: &Plan, rng: &mut Rng) -> Self {
        let rank = control.me();
        let recorder = Recorder::new(rank, plan, rng);
        let mut apps = Vec::new();
        for group in &plan.groups {
            let Some(sender) = group.senders.iter().find(|sender| sender.rank == rank) else {
                continue;
            };
            apps.extend(DeliveryClass::BOTH.map(|ring| App {
                subgroup: group.subgroup,
                ring,
                len_max: group.len_max,
                left: sender.messages[ring.index()],
                number: 0,
                claims: VecDeque::new(),
                carried: None,
                waiting: None,
                room: false,
                sent: Vec::new(),
            }));
        }
        Self {
            rank,
            engine: Engine::new(control, plan.config, recorder),
            apps,
            mode: Mode::Awake,
            left: false,
            expelled: false,
            dead: false,
            suspects: BTreeSet::new(),
            late_steps: 100,
            steps: 0,
            rng: rng.fork(),
            blunder: plan.blunder,
        }
    }

    /// Whether it takes part in what is to come.
    pub(crate) fn is_present(&self) -> bool {
        !(self.left || self.expelled || self.dead)
    }

    /// The next lane of a subgroup is here: who waited for the old one goes on.
    pub(crate) fn add_lane(
        &mut self,
        spec: &SubgroupSpec,
        segment: SimFabric,
    ) -> Result<(), Finding> {
        let seats = spec.members.clone();
        let subgroup = spec.subgroup;
        self.engine
            .with_sink(|sink| sink.seats.insert(subgroup, seats));
        self.engine
            .add_lane(spec, segment)
            .map_err(|error| ("X0", error.to_string()))?;
        for app in self.apps.iter_mut().filter(|app| app.subgroup == subgroup) {
            app.room = true;
        }
        self.engine.handle().fabric().nudge();
        Ok(())
    }

    /// Takes somebody for failed.
    pub(crate) fn suspect(&mut self, rank: Rank) {
        if rank != self.rank && self.suspects.insert(rank) {
            self.engine.with_lanes(|lanes| lanes.fence(rank));
        }
    }

    /// Whether its applications have nothing more to do.
    pub(crate) fn is_done(&self) -> bool {
        self.apps
            .iter()
            .all(|app| app.left == 0 && app.claims.is_empty() && app.carried.is_none())
    }

    /// What it sent in a ring.
    pub(crate) fn sent(&self, subgroup: SubgroupId, ring: DeliveryClass) -> &[SentMessage] {
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
        if self.apps[at].carried.is_some() {
            return self.carry_on(plan, at);
        }
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
        let handle = self.engine.handle();
        let lane = handle.lane(app.subgroup);
        // Less than half of a ring where all messages take the same.
        let slot = lane.as_ref().and_then(|it| it.message_len_max(app.ring));
        let fits = slot.map_or(app.len_max, |slot| app.len_max.min(slot as u32));
        let len_max = if small { fits.min(40) } else { fits };
        let len = match &app.waiting {
            Some((len, _)) => *len,
            None => self.rng.below(len_max as usize + 1) as u32,
        };
        let Some(lane) = lane else {
            return;
        };
        let claim = match lane.claim(app.ring, len) {
            Err(ClaimError::NoRoom) => {
                let wait = app
                    .waiting
                    .take()
                    .map_or_else(|| handle.waiting_for_acks(), |wait| wait.1);
                app.waiting = Some((len, wait));
                // Once more, now that the engine knows.
                lane.claim(app.ring, len)
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
            skipped: 0,
        };
        self.commit(plan, at, claim, used, meta);
    }

    fn commit(&mut self, plan: &Plan, at: usize, claim: Claim<SimFabric>, used: u32, meta: Meta) {
        let publishes = self.rng.chance(plan.self_publish);
        let app = &mut self.apps[at];
        let mut claim = claim;
        let index = match publishes {
            true => self.engine.send(&mut claim, used, &meta),
            false => claim.finish(used, &meta),
        };
        match index {
            Ok(_) => {
                app.number = meta.timestamp as u64;
                app.sent.push(SentMessage {
                    number: app.number,
                    len: used,
                });
                if !publishes {
                    claim.lane().nudge();
                }
            }
            Err(ClaimError::Wedged) => {
                app.carried = Some(Carried {
                    claim,
                    used,
                    meta,
                    _waiting: self.engine.handle().waiting_for_acks(),
                });
            }
            Err(_) => {}
        }
    }

    /// What was built for a lane that has ended is copied into the next one.
    fn carry_on(&mut self, plan: &Plan, at: usize) {
        let app = &mut self.apps[at];
        let Some(lane) = self.engine.handle().lane(app.subgroup) else {
            return;
        };
        let Some(mut carried) = app.carried.take() else {
            return;
        };
        let len = carried.claim.bytes().len() as u32;
        match lane.claim(app.ring, len) {
            Ok(mut claim) => {
                claim.bytes().copy_from_slice(carried.claim.bytes());
                self.commit(plan, at, claim, carried.used, carried.meta);
            }
            Err(error) => {
                app.carried = Some(carried);
                if error == ClaimError::NoRoom {
                    // Its own claims may take the room that it waits for.
                    app.left += app.claims.len();
                    app.claims.clear();
                }
            }
        }
    }

    /// The polling thread's turn.
    pub(crate) fn poll(&mut self, rung: bool) {
        let handle = self.engine.handle();
        let fabric = handle.fabric();
        self.mode = match self.mode {
            Mode::Awake => match self.step(Engine::step_briefly) {
                Some(outcome) if !outcome.progress => Mode::Idle(outcome.want),
                _ => Mode::Awake,
            },
            Mode::Idle(want) => {
                let want = Blunder::announced(self.blunder, want);
                fabric.announce_sleep(want);
                Mode::Announced(want)
            }
            Mode::Announced(_) if self.blunder == Some(Blunder::NoSecondLook) => Mode::Asleep,
            Mode::Announced(announced) => match self.step(Engine::step) {
                Some(outcome)
                    if !outcome.progress
                        && Blunder::covers(self.blunder, announced, outcome.want) =>
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

    fn step(&mut self, step: Stepped) -> Option<Outcome> {
        let handle = self.engine.handle();
        while let Some(failure) = handle.fabric().poll() {
            self.suspect(failure.peer);
        }
        let outcome = step(&self.engine, self.steps);
        self.steps += 1;
        if outcome.is_some_and(|outcome| !outcome.progress) {
            self.engine.with_sink(Recorder::is_at_rest);
        }
        if outcome.is_some_and(|outcome| outcome.room) {
            self.apps.iter_mut().for_each(|app| app.room = true);
        }
        outcome
    }

    pub(crate) fn step_after_leaving(&mut self) {
        if self.late_steps > 0 {
            self.late_steps -= 1;
            self.step(Engine::step);
        }
    }

    /// Tries to leave.
    pub(crate) fn leave(&mut self) {
        self.left |= self.engine.leave();
        self.engine.handle().fabric().nudge();
    }
}

impl Blunder {
    /// What a driver says that it wants to be woken for, instead of `want`.
    pub(crate) fn announced(blunder: Option<Self>, want: WakeInterest) -> WakeInterest {
        match blunder {
            Some(Self::WantsTooLittle) => WakeInterest::Data,
            _ => want,
        }
    }

    /// Whether what was announced is all that is wanted now.
    pub(crate) fn covers(
        blunder: Option<Self>,
        announced: WakeInterest,
        wanted: WakeInterest,
    ) -> bool {
        announced == wanted
            || announced == WakeInterest::DataAndAcks
            || blunder == Some(Self::WantsTooLittle)
    }
}
