//! What a backend provides to the suite: members, a way to run them, faults.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use spindle_dds_transport::sim::{NodeId, Rng, SegmentId, SimFabric, SimNetwork, SimOptions};
use spindle_dds_transport::{Fabric, FailureCause, Park, PeerSet, Rank, WakeReason};

/// A violation of a clause.
#[derive(Debug)]
pub(crate) struct Violation(pub(crate) String);

impl core::fmt::Display for Violation {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        self.0.fmt(f)
    }
}

pub(crate) type Outcome<T = ()> = Result<T, Violation>;

/// Fails the clause unless the condition holds.
macro_rules! ensure {
    ($condition:expr, $($message:tt)+) => {
        if !$condition {
            return Err($crate::harness::Violation(format!($($message)+)));
        }
    };
}
pub(crate) use ensure;

/// The result of one call of an actor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Turn {
    /// It did something.
    Busy,
    /// It found nothing to do: call again.
    Idle,
    /// It has announced sleep and looked again: call it when it is woken.
    Asleep,
    /// It has finished.
    Done,
}

/// How a sleep has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sleep {
    /// By a wake-up.
    Woken,
    /// By the timeout.
    Through,
    /// Without a wake-up, before the timeout.
    CutShort,
}

type Step<'a, F> = Box<dyn FnMut(&F) -> Outcome<Turn> + Send + 'a>;

/// An actor of a member: a function that is called until it has finished.
pub(crate) struct Actor<'a, F> {
    pub(crate) rank: Rank,
    pub(crate) step: Step<'a, F>,
}

impl<'a, F> Actor<'a, F> {
    pub(crate) fn new(rank: usize, step: impl FnMut(&F) -> Outcome<Turn> + Send + 'a) -> Self {
        Self {
            rank: Rank(rank as u16),
            step: Box::new(step),
        }
    }
}

/// Ends a batch, waking no member.
pub(crate) fn end_batch(fabric: &impl Fabric) {
    fabric.wake(&PeerSet::EMPTY, WakeReason::Data);
}

/// A group of members over one backend; its fabrics are of a control segment.
pub(crate) trait Harness: Sync {
    type F: Fabric;

    fn fabric(&self, rank: usize) -> &Self::F;

    /// Runs the actors against each other until all have finished.
    fn run(&self, actors: Vec<Actor<'_, Self::F>>) -> Outcome;

    /// Blocks a member that has announced sleep until it is woken, or a short time is over, in
    /// which all pushes land.
    fn sleep(&self, rank: usize) -> Sleep;

    /// Returns when all pushes have landed.
    fn settle(&self);

    /// Ends a member's process.
    fn kill(&self, rank: usize);

    /// Whether this is the cause that others must be told.
    fn is_death(&self, cause: &FailureCause) -> bool {
        *cause == FailureCause::ProcessEnded
    }

    /// About how often a test repeats itself.
    fn rounds(&self) -> u64;
}

/// A group whose members can be in additional segments.
pub(crate) trait Segments: Harness {
    type Segment: Copy + Send + Sync;

    /// Agrees on an additional segment of these members, in this order, with rows as long as
    /// those of the group.
    fn agree(&self, members: &[usize], control: bool) -> Self::Segment;

    /// Opens the segment for the member with this rank in it.
    fn open(&self, segment: Self::Segment, rank: usize) -> Self::F;
}

/// The simulator: actors and network take turns by the seed.
pub(crate) struct SimGroup {
    network: SimNetwork,
    fabrics: Vec<SimFabric>,
    seed: u64,
}

impl SimGroup {
    pub(crate) fn new(seed: u64, members: usize, row_len: usize, options: SimOptions) -> Self {
        let (network, fabrics) = SimNetwork::group(seed, &vec![row_len; members], options);
        Self {
            network,
            fabrics,
            seed,
        }
    }
}

impl Harness for SimGroup {
    type F = SimFabric;

    fn fabric(&self, rank: usize) -> &SimFabric {
        &self.fabrics[rank]
    }

    fn run(&self, mut actors: Vec<Actor<'_, SimFabric>>) -> Outcome {
        let mut rng = Rng::new(!self.seed);
        // Speed of the network relative to the members.
        let haste = [0.2, 0.5, 0.9][rng.below(3)];
        let mut last = vec![Turn::Busy; actors.len()];
        while last.iter().any(|&turn| turn != Turn::Done) {
            if rng.chance(haste) && self.network.step() {
                last.iter_mut()
                    .filter(|turn| **turn == Turn::Idle)
                    .for_each(|t| *t = Turn::Busy);
            }
            for (actor, turn) in actors.iter().zip(&mut last) {
                if *turn == Turn::Asleep && self.network.take_wakeup(NodeId(actor.rank.index())) {
                    *turn = Turn::Busy;
                }
            }
            let awake: Vec<_> = (0..actors.len())
                .filter(|&at| matches!(last[at], Turn::Busy | Turn::Idle))
                .collect();
            if last.iter().all(|&turn| turn != Turn::Busy) && self.network.pending() == 0 {
                let done = last.iter().all(|&turn| turn == Turn::Done);
                ensure!(done, "all wait and nothing is on its way: {last:?}");
            }
            if let Some(&at) = rng.pick(&awake) {
                let Actor { rank, step } = &mut actors[at];
                let fabric = &self.fabrics[rank.index()];
                let before = self.network.trace_hash();
                let mut turn = step(fabric)?;
                end_batch(fabric);
                // The fence may have brought what the step did not find.
                if turn == Turn::Idle && self.network.trace_hash() != before {
                    turn = Turn::Busy;
                }
                if matches!(turn, Turn::Busy | Turn::Done) {
                    last.iter_mut()
                        .filter(|t| **t == Turn::Idle)
                        .for_each(|t| *t = Turn::Busy);
                }
                last[at] = turn;
            }
        }
        Ok(())
    }

    fn sleep(&self, rank: usize) -> Sleep {
        self.network.settle();
        match self.network.take_wakeup(NodeId(rank)) {
            true => Sleep::Woken,
            false => Sleep::Through,
        }
    }

    fn settle(&self) {
        self.fabrics.iter().for_each(end_batch);
        self.network.settle();
    }

    fn kill(&self, rank: usize) {
        self.network.crash(NodeId(rank));
    }

    fn rounds(&self) -> u64 {
        40
    }
}

impl Segments for SimGroup {
    type Segment = SegmentId;

    fn agree(&self, members: &[usize], control: bool) -> SegmentId {
        let row_len = self.fabrics[0].row(Rank(0)).len();
        let rows: Vec<_> = members.iter().map(|&at| (NodeId(at), row_len)).collect();
        match control {
            true => self.network.open_control(&rows),
            false => self.network.open(&rows),
        }
    }

    fn open(&self, segment: SegmentId, rank: usize) -> SimFabric {
        self.network.fabric(segment, Rank(rank as u16))
    }
}

/// Sleeps until woken; false if that takes far too long.
fn is_woken(fabric: &impl Park) -> bool {
    let end = Instant::now() + Duration::from_secs(20);
    while !fabric.park(Some(end.saturating_duration_since(Instant::now()))) {
        if Instant::now() >= end {
            return false;
        }
    }
    true
}

/// Runs actors as threads, which sleep in the kernel.
pub(crate) fn run_threads<F: Park>(fabrics: &[F], actors: Vec<Actor<'_, F>>) -> Outcome {
    let failed = AtomicBool::new(false);
    let act = |mut actor: Actor<'_, F>| {
        let fabric = &fabrics[actor.rank.index()];
        while !failed.load(Ordering::SeqCst) {
            let mut turn = (actor.step)(fabric);
            end_batch(fabric);
            if matches!(turn, Ok(Turn::Asleep)) && !is_woken(fabric) {
                turn = Err(Violation(format!("{} sleeps for ever", actor.rank)));
            }
            match turn {
                Ok(Turn::Busy | Turn::Asleep) => {}
                Ok(Turn::Idle) => thread::yield_now(),
                Ok(Turn::Done) => return Ok(()),
                Err(violation) => {
                    failed.store(true, Ordering::SeqCst);
                    fabrics.iter().for_each(Fabric::nudge);
                    return Err(violation);
                }
            }
        }
        Ok(())
    };
    thread::scope(|scope| {
        let act = &act;
        let threads: Vec<_> = actors
            .into_iter()
            .map(|actor| scope.spawn(move || act(actor)))
            .collect();
        threads
            .into_iter()
            .try_for_each(|thread| thread.join().expect("no panic"))
    })
}

pub(crate) fn park_for_a_while(fabric: &impl Park) -> Sleep {
    let (start, limit) = (Instant::now(), Duration::from_millis(20));
    match fabric.park(Some(limit)) {
        true => Sleep::Woken,
        false if start.elapsed() >= limit => Sleep::Through,
        false => Sleep::CutShort,
    }
}
