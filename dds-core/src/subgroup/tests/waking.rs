//! Which members are woken for acknowledgements and nulls.

use super::*;

/// A group whose members sleep whenever they have nothing to do, as drivers do.
pub(super) struct Sleepers(pub(super) World);

impl Sleepers {
    /// `shared`: all members share memory.
    fn new(members: u16, shared: bool) -> Self {
        Self::of(&spec(members), shared)
    }

    /// The members of this subgroup.
    pub(super) fn of(spec: &SubgroupSpec, shared: bool) -> Self {
        let options = SimOptions {
            shared_pairs: f64::from(u8::from(shared)),
            ..SimOptions::default()
        };
        let config = EngineConfig::default();
        let world = World::starting_on(spec, config, options, |_| Log::default());
        world.run(&(0..spec.members.len()).collect::<Vec<_>>());
        let sleepers = Self(world);
        sleepers.sleep_all();
        sleepers
    }

    /// Lets all sleep.
    pub(super) fn sleep_all(&self) {
        (0..self.0.nodes.len()).for_each(|at| self.sleep(at));
        self.run();
    }

    fn sleep(&self, at: usize) {
        let node = &self.0.nodes[at];
        let handle = node.handle();
        let step = || node.step(0).expect("no step is under way");
        loop {
            let outcome = step();
            if outcome.progress {
                continue;
            }
            handle.fabric().announce_sleep(outcome.want);
            let again = step();
            if !again.progress && again.want <= outcome.want {
                return;
            }
            handle.fabric().announce_awake();
        }
    }

    /// Lets each member that is woken work until it sleeps, one at a time, until none is woken.
    pub(super) fn run(&self) {
        let members = 0..self.0.nodes.len();
        loop {
            let woken = |at: &usize| self.0.network.take_wakeup(NodeId(*at));
            let woken: Vec<usize> = members.clone().filter(woken).collect();
            if woken.is_empty() && !self.0.network.step() {
                return;
            }
            for at in woken {
                self.0.nodes[at].handle().fabric().announce_awake();
                self.sleep(at);
            }
        }
    }

    fn hold_all(&self) {
        let nodes = || (0..self.0.nodes.len()).map(NodeId);
        for (from, to) in nodes().flat_map(|from| nodes().map(move |to| (from, to))) {
            self.0.network.hold(from, to, true);
        }
    }

    fn wakes(&self) -> u64 {
        let nodes = self.0.nodes.iter();
        let wakes = nodes.map(|node| node.handle().fabric().counters().peer_wakes);
        wakes.sum()
    }

    /// One member sends, and all work until they sleep. Returns how often a member woke another.
    fn send(&self, from: usize) -> u64 {
        let before = self.wakes();
        send(&self.0.nodes[from], 1);
        self.run();
        self.wakes() - before
    }

    fn delivered(&self) -> Vec<usize> {
        let nodes = self.0.nodes.iter();
        nodes.map(|node| log(node, |it| it.order.len())).collect()
    }
}

/// Once for the message, and all but the last one once when it is stable.
#[test]
fn a_message_wakes_each_member_twice_at_most() {
    for members in [3, 4, 7, 10] {
        let sleepers = Sleepers::new(members, true);
        for (from, sent) in (0..usize::from(members)).zip(1..) {
            let wakes = sleepers.send(from);
            let others = u64::from(members) - 1;
            // A sender that its own message wakes needs no peer for it.
            let expected = 2 * others - 1..=2 * others;
            assert!(expected.contains(&wakes), "{wakes} of {members}");
            assert_eq!(sleepers.delivered(), vec![sent; members.into()]);
        }
    }
}

/// Stores are seen as late as shared memory allows: by the fence of the flush.
#[test]
fn the_last_member_looks_again_after_its_fence() {
    for members in [3, 4, 7, 10] {
        let sleepers = Sleepers::new(members, true);
        sleepers.hold_all();
        for (from, sent) in (0..usize::from(members)).zip(1..) {
            sleepers.send(from);
            assert_eq!(sleepers.delivered(), vec![sent; members.into()]);
        }
    }
}

/// No fence orders what they see of each other.
#[test]
fn members_without_shared_memory_leave_no_wake_up_to_others() {
    for members in [3, 4, 7] {
        let sleepers = Sleepers::new(members, false);
        for (from, sent) in (0..usize::from(members)).zip(1..) {
            sleepers.send(from);
            assert_eq!(sleepers.delivered(), vec![sent; members.into()]);
        }
    }
}
