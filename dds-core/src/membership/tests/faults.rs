//! Requests of members and faults, at random.

use spindle_dds_transport::Rank;

use super::world::{LIMIT, World, endpoint, member};
use crate::membership::row::Text;
use crate::membership::*;

/// Faults of a world.
#[derive(Debug, Clone, Copy)]
pub(super) enum Faults {
    None,
    /// Crashes, pauses and mistaken suspicions, with this chance at each turn.
    Any(f64),
    /// Mistaken suspicions alone: of any member, so that all wedge and report, then of the leader
    /// by the next in rank, while the leader proposes.
    Takeovers,
}

impl World {
    /// Makes a request now and then: a join, a leave, or an update of endpoints and notes.
    pub(super) fn request_something(&mut self, at: usize) {
        if !self.rng.chance(0.02) {
            return;
        }
        match self.rng.below(8) {
            0 if self.nodes.len() < 7 => {
                self.born += 1;
                let newcomer = member(self.born, &mut self.rng);
                self.add_node_for(newcomer.id);
                self.joining.insert(newcomer.id, newcomer.clone());
                self.nodes[at].membership.request(Request::Join(newcomer));
            }
            1 if !self.nodes[at].leaving && self.rng.chance(0.3) => {
                self.nodes[at].leaving = true;
                self.nodes[at].membership.request(Request::Leave);
            }
            2 | 3 => {
                let put = (0..self.rng.below(3)).map(|_| {
                    let number = self.rng.below(4) as u64;
                    (number, endpoint(&mut self.rng))
                });
                let put = put.collect();
                let remove = vec![self.rng.below(4) as u64 + 4];
                let node = &mut self.nodes[at];
                node.updates += 1;
                let notes = Notes {
                    put: vec![(node.updates % 3, vec![7; at + 1].into())],
                    remove: vec![(node.updates + 1) % 3],
                };
                let update = Update {
                    member: node.id,
                    number: node.updates,
                    put,
                    remove,
                    notes,
                };
                node.membership.request(Request::Update(update));
            }
            _ => {}
        }
    }

    pub(super) fn harm(&mut self, at: usize) {
        match self.faults {
            Faults::None => {}
            Faults::Any(chance) => self.harm_at_random(at, chance),
            Faults::Takeovers => self.contest(at),
        }
    }

    fn harm_at_random(&mut self, at: usize, chance: f64) {
        // Faults are likelier in the middle of a view change.
        let proposing = self.nodes[at].membership.is_proposing();
        let chance = chance * if proposing { 20.0 } else { 1.0 };
        if !self.rng.chance(chance) {
            return;
        }
        match self.rng.below(3) {
            0 => self.crash(at),
            1 => {
                let members = self.nodes[at].membership.view().members.len();
                let low = 1 + self.rng.below(members);
                let rank = Rank(self.rng.below(low) as u16);
                self.suspect_by_mistake(at, rank);
            }
            _ => {
                // Shorter or longer than the heartbeat timeout.
                let pause = self.rng.below(2 * LIMIT as usize) as u64;
                self.nodes[at].paused_until = self.now + pause;
                self.nodes[at].disturbed = true;
            }
        }
    }

    /// The next in rank suspects the leader as soon as it could propose in its place. Others may
    /// have echoed the leader's proposal before it reaches the next in rank.
    fn contest(&mut self, at: usize) {
        let membership = &self.nodes[at].membership;
        let others: Vec<Rank> = membership.trusted_others().collect();
        let has_reported = |rank: &Rank| membership.rows.has(*rank, Text::ReportAll);
        let is_next = others
            .iter()
            .filter(|rank| **rank < membership.me())
            .count()
            == 1;
        let (rank, chance) = if membership.suspects().next().is_none() {
            (self.rng.pick(&others).copied(), 0.005)
        } else if is_next && membership.echo.is_none() && others.iter().all(has_reported) {
            (others.first().copied(), 0.5)
        } else {
            return;
        };
        if let Some(rank) = rank
            && self.rng.chance(chance)
        {
            self.suspect_by_mistake(at, rank);
        }
    }

    /// The suspected member is alive.
    fn suspect_by_mistake(&mut self, at: usize, rank: Rank) {
        let node = &mut self.nodes[at];
        if node.next.is_none() {
            node.membership
                .suspect(rank, "a mistake", &mut node.subgroups);
            node.disturbed = true;
        }
    }

    /// Divides the network once its time has come.
    pub(super) fn divide(&mut self) {
        if self.divides_at != Some(self.now) {
            return;
        }
        self.apart = self.apart_then.clone();
        for (one, left) in &self.nodes_of {
            for (other, right) in &self.nodes_of {
                if self.apart.contains(one) && !self.apart.contains(other) {
                    self.network.sever(*left, *right);
                }
            }
        }
    }
}
