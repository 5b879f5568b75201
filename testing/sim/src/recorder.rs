//! What a member is handed, and what it makes of it.

use std::collections::{BTreeMap, BTreeSet};

use spindle_dds_core::{Delivery, DeliveryClass, Event, Held, Run, Sink, StopReason, SubgroupId};
use spindle_dds_transport::Rank;
use spindle_dds_transport::sim::{Rng, SimFabric};

use crate::invariants;
use crate::plan::Plan;
use crate::violation::Finding;

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
    ring: DeliveryClass,
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
    ring: DeliveryClass,
    number: u64,
    until: usize,
}

/// What a member was handed, and what it makes of it.
pub(crate) struct Recorder {
    pub(crate) histories: BTreeMap<(SubgroupId, DeliveryClass), Vec<Record>>,
    pub(crate) loans: Vec<Loan>,
    pub(crate) stopped: Option<StopReason>,
    pub(crate) left: Vec<Rank>,
    /// First thing found wrong on the way.
    pub(crate) wrong: Option<Finding>,
    /// With messages of a batch that has not ended.
    untold: BTreeSet<SubgroupId>,
    pub(crate) new_records: Vec<(SubgroupId, DeliveryClass, Record)>,
    /// Subgroups that ended: position and digest there.
    pub(crate) ended: Vec<Ended>,
    /// By subgroup: who has which place in its lane.
    pub(crate) seats: BTreeMap<SubgroupId, Vec<Rank>>,
    rng: Rng,
    hold_chance: f64,
    hold_turns: usize,
    pub(crate) turn: usize,
    reading: bool,
}

/// The end of a lane, as a member saw it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ended {
    pub(crate) subgroup: SubgroupId,
    pub(crate) epoch: u64,
    pub(crate) end: u64,
    pub(crate) digest: u64,
}

impl Recorder {
    pub(crate) fn new(rank: Rank, plan: &Plan, rng: &mut Rng) -> Self {
        Self {
            histories: BTreeMap::new(),
            loans: Vec::new(),
            stopped: None,
            left: Vec::new(),
            wrong: None,
            untold: BTreeSet::new(),
            new_records: Vec::new(),
            ended: Vec::new(),
            seats: BTreeMap::new(),
            rng: rng.fork(),
            hold_chance: plan.hold_chance,
            hold_turns: plan.hold_turns,
            turn: 0,
            reading: plan.readers[rank.index()],
        }
    }

    /// Who has a place in the lane of a subgroup.
    fn member(&self, subgroup: SubgroupId, place: Rank) -> Rank {
        self.seats[&subgroup][place.index()]
    }

    fn record(&mut self, subgroup: SubgroupId, ring: DeliveryClass, record: Record) {
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
            self.wrong.get_or_insert_with(|| {
                let what = format!(
                    "byte {at} of message {} of member {} in subgroup {} is {byte:#04x}",
                    loan.number, loan.rank, loan.subgroup
                );
                ("M3", what)
            });
        }
    }

    /// Nothing is left to do.
    pub(crate) fn is_at_rest(&mut self) {
        if let Err(finding) = invariants::told(&self.untold) {
            self.wrong.get_or_insert(finding);
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
        let subgroup = delivery.lane.subgroup();
        self.untold.insert(subgroup);
        let sender = self.member(subgroup, delivery.sender);
        let record = Record {
            position: delivery.position,
            sender,
            number: header.writer_seq,
            len: header.len,
        };
        self.record(subgroup, delivery.ring, record);
        let held = delivery.hold();
        let keep = self.reading && self.rng.chance(self.hold_chance);
        let turns = 1 + self.rng.below(self.hold_turns);
        let loan = Loan {
            held,
            rank: sender,
            subgroup,
            ring: delivery.ring,
            number: header.writer_seq,
            until: self.turn + turns,
        };
        self.check_payload(&loan);
        if keep {
            self.loans.push(loan);
        }
    }

    /// Takes some of it, and leaves the rest.
    fn deliver_run(&mut self, run: &mut Run<'_, SimFabric>) {
        run.each(
            5,
            |next| next.writer_seq % 3 != 0,
            |delivery| self.deliver(delivery),
        );
    }

    fn batch_end(&mut self) {
        self.untold.clear();
    }

    fn event(&mut self, event: Event) {
        match event {
            Event::MemberLeft { rank } => self.left.push(rank),
            Event::SenderLeft {
                subgroup,
                ring,
                sender,
                position,
                timestamp: _,
            } => {
                // Farewells of the ordered ring are part of the order.
                let record = Record {
                    position,
                    sender: self.member(subgroup, sender),
                    number: 0,
                    len: 0,
                };
                self.histories
                    .entry((subgroup, ring))
                    .or_default()
                    .push(record);
            }
            Event::LaneEnded {
                subgroup,
                epoch,
                end,
                digest,
            } => {
                if self.untold.contains(&subgroup) {
                    self.is_at_rest();
                }
                self.ended.push(Ended {
                    subgroup,
                    epoch,
                    end,
                    digest,
                });
            }
            Event::Decide(_)
            | Event::Refused { .. }
            | Event::ViewEnded(_)
            | Event::ViewBegun(_) => {}
            Event::Stopped(reason) => self.stopped = Some(reason),
        }
    }

    fn is_reading(&self, _: SubgroupId) -> bool {
        self.reading
    }
}
