//! The layer above the engine: hands deliveries to readers. Never waits.

use std::fmt;
use std::sync::Arc;

use crossbeam_queue::ArrayQueue;
use spindle_dds_core::{Delivery, Event, StopReason, SubgroupId, TopicKey};
use spindle_dds_transport::{Fabric, Rank};

use super::bell::Bells;
use super::fate::Fate;
use super::inlet::Inlet;
use super::shelf::Stamp;

/// Which readers a topic has here.
pub(crate) struct Routes<F: Fabric> {
    by_subgroup: Vec<Vec<Route<F>>>,
    /// All readers: most subgroups have none.
    all: Vec<Arc<Inlet<F>>>,
}

/// The readers of one topic.
struct Route<F: Fabric> {
    /// Low half of the topic's key.
    topic: u64,
    inlets: Vec<Arc<Inlet<F>>>,
}

impl<F: Fabric> Routes<F> {
    pub(crate) fn new(subgroups: usize) -> Self {
        Self {
            by_subgroup: (0..subgroups).map(|_| Vec::new()).collect(),
            all: Vec::new(),
        }
    }

    /// A reader of a topic.
    pub(crate) fn add(&mut self, subgroup: SubgroupId, topic: TopicKey, inlet: Arc<Inlet<F>>) {
        self.all.push(inlet.clone());
        let topics = &mut self.by_subgroup[subgroup.index()];
        match topics.iter_mut().find(|route| route.topic == topic.low()) {
            Some(route) => route.inlets.push(inlet),
            None => topics.push(Route {
                topic: topic.low(),
                inlets: vec![inlet],
            }),
        }
    }

    fn of(&self, subgroup: SubgroupId, topic: u64) -> &[Arc<Inlet<F>>] {
        self.by_subgroup
            .get(subgroup.index())
            .and_then(|topics| topics.iter().find(|route| route.topic == topic))
            .map_or(&[], |route| &route.inlets)
    }

    fn of_subgroup(&self, subgroup: SubgroupId) -> impl Iterator<Item = &Arc<Inlet<F>>> {
        let topics = self.by_subgroup.get(subgroup.index()).into_iter().flatten();
        topics.flat_map(|route| &route.inlets)
    }

    fn all(&self) -> impl Iterator<Item = &Arc<Inlet<F>>> {
        self.all.iter()
    }
}

/// What the engine tells.
pub(crate) struct Sink<F: Fabric> {
    routes: Routes<F>,
    fate: Arc<Fate>,
    bells: Arc<Bells>,
    /// Members that left, for the waking thread.
    left: Arc<ArrayQueue<Rank>>,
    /// Process ids by rank, for messages.
    pids: Vec<u32>,
    /// Readers that something arrived for in this batch.
    touched: Vec<Arc<Inlet<F>>>,
}

impl<F: Fabric> fmt::Debug for Sink<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sink")
            .field("pids", &self.pids)
            .finish_non_exhaustive()
    }
}

impl<F: Fabric> Sink<F> {
    pub(crate) fn new(
        routes: Routes<F>,
        fate: Arc<Fate>,
        bells: Arc<Bells>,
        left: Arc<ArrayQueue<Rank>>,
        pids: Vec<u32>,
    ) -> Self {
        let readers = routes.all().count();
        Self {
            routes,
            fate,
            bells,
            left,
            pids,
            touched: Vec::with_capacity(readers),
        }
    }

    /// Nothing is going on. Returns whether there is more to do.
    pub(super) fn relieve(&self) -> bool {
        self.routes.all().any(|inlet| inlet.relieve())
    }

    /// Whether some ring is nearly full of samples that its readers want to
    /// stay there, and how often those have asked for samples.
    pub(super) fn tight(&self) -> Option<u64> {
        let tight = self
            .routes
            .all()
            .filter_map(|inlet| inlet.selects_if_tight());
        tight.reduce(u64::wrapping_add)
    }

    /// The same as before: nobody takes them.
    pub(super) fn neglect(&self, before: u64) {
        if self.tight() == Some(before) {
            let tight = self
                .routes
                .all()
                .filter(|inlet| inlet.selects_if_tight().is_some());
            tight.for_each(|inlet| inlet.neglect());
        }
    }
}

impl<F: Fabric> spindle_dds_core::Sink<F> for Sink<F> {
    fn deliver(&mut self, delivery: &Delivery<'_, F>) {
        for inlet in self
            .routes
            .of(delivery.lane.subgroup(), delivery.header.topic)
        {
            if inlet.accept(delivery) {
                self.touched.push(inlet.clone());
            }
        }
    }

    fn batch_end(&mut self) {
        for inlet in self.touched.drain(..) {
            inlet.settle();
        }
    }

    fn event(&mut self, event: Event) {
        match event {
            Event::MemberLeft { rank } => {
                let _ = self.left.push(rank);
                self.bells.wakers.ring();
            }
            Event::SenderLeft {
                subgroup,
                ring,
                sender,
                position,
                timestamp,
            } => {
                let stamp = Stamp {
                    position,
                    timestamp,
                };
                for inlet in self.routes.of_subgroup(subgroup) {
                    if inlet.sender_left(sender, ring, stamp) {
                        self.touched.push(inlet.clone());
                    }
                }
                // A farewell may stand at the end of a batch without messages.
                self.batch_end();
            }
            // The group is formed once: it does not go from view to view yet.
            Event::LaneEnded { .. }
            | Event::Decide(_)
            | Event::ViewEnded(_)
            | Event::ViewBegun(_) => {}
            Event::Stopped(reason) => {
                let members: Vec<String> = self
                    .pids
                    .iter()
                    .enumerate()
                    .map(|(rank, pid)| format!("member {rank} is process {pid}"))
                    .collect();
                let members = members.join(", ");
                self.fate
                    .fail(format!("the group has stopped: {reason} ({members})"));
                let dead = match reason {
                    StopReason::PeerFailed { rank, .. } | StopReason::PeerNonsense { rank, .. } => {
                        Some(rank)
                    }
                    StopReason::Disagreement { .. } | StopReason::Out(_) => None,
                };
                self.routes.all().for_each(|inlet| inlet.failed(dead));
                self.bells.listeners.ring();
            }
        }
    }

    fn is_reading(&self, subgroup: SubgroupId) -> bool {
        self.routes.of_subgroup(subgroup).next().is_some()
    }
}
