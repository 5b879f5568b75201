//! The way of two who have proved themselves: how their pushes are going to go.
//!
//! The one called offers a queue pair, or none; the caller answers with its own, and
//! each finds out whether a word of the other comes over it. Then the caller gives its
//! verdict, and the one called has the last one. What may block, a thread of its own
//! does meanwhile.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use super::door::{Answer, Connection, Phase, Role, Shared, State};
use super::handshake::{Frame, Verdict};
use super::keeper::{End, say};
use super::rdma::Pair;
use crate::station_error::StationError;

/// How long a queue pair has to show that it works.
const PROVE_WITHIN: Duration = Duration::from_millis(1500);

/// Why not, for who has none: no more than that.
const NONE: &str = "";

const TOO_LATE: &str = "nothing of the other's came through its queue pair in time: look at the \
                        firewall (UDP port 4791), and at GID index and MTU on both sides";

/// How far the two on a connection have come.
#[derive(Debug, Default)]
pub(super) struct Way {
    /// My queue pair, unless a thread has it for the moment.
    pair: Option<Pair>,
    /// What that thread has come to.
    done: Option<Done>,
    /// Until then the queue pair has time to show that it works.
    prove_by: Option<Instant>,
    mine: Option<Verdict>,
    theirs: Option<Verdict>,
}

/// What is done to a queue pair.
#[derive(Debug)]
enum Step {
    Offer,
    Answer(Vec<u8>),
    Accept(Vec<u8>),
}

/// What has come of it: of the first two, what the other is told.
#[derive(Debug)]
enum Done {
    Offered(Result<Vec<u8>, String>),
    Answered(Result<Vec<u8>, String>),
    Accepted(Result<(), String>),
}

impl Step {
    fn take(&self, pair: &Pair) -> Done {
        match self {
            Self::Offer => Done::Offered(pair.offer()),
            Self::Answer(offer) => Done::Answered(pair.answer(offer)),
            Self::Accept(answer) => Done::Accepted(pair.accept(answer)),
        }
    }

    fn fail(&self, reason: String) -> Done {
        match self {
            Self::Offer => Done::Offered(Err(reason)),
            Self::Answer(_) => Done::Answered(Err(reason)),
            Self::Accept(_) => Done::Accepted(Err(reason)),
        }
    }
}

impl Way {
    /// When it has to be looked at again.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.prove_by.filter(|_| self.mine.is_none())
    }

    /// My verdict, if it is a new one.
    fn decide(&mut self) -> Option<Verdict> {
        if self.mine.is_some() {
            return None;
        }
        let outcome = self.pair.as_ref().and_then(Pair::outcome);
        let late = self.prove_by.is_some_and(|end| end <= Instant::now());
        self.mine = outcome.or_else(|| late.then(|| Err(TOO_LATE.to_owned())));
        self.mine.clone()
    }
}

/// The caller has proved itself: it is offered a queue pair, if there is one to be had.
pub(super) fn begin(
    shared: &Arc<Shared>,
    connection: &mut Connection,
    number: u64,
) -> Result<(), End> {
    match my_pair(shared, connection)? {
        Some(pair) => work(shared, connection, number, pair, Step::Offer),
        None => offer(shared, connection, Vec::new())?,
    }
    Ok(())
}

/// A queue pair for whoever is there, if this station has any.
fn my_pair(shared: &Shared, connection: &Connection) -> Result<Option<Pair>, End> {
    let (Some(rdma), Some(other)) = (&shared.rdma, connection.talk.other()) else {
        return Ok(None);
    };
    let pair = Pair::begin(rdma, other.id);
    pair.map(Some).ok_or_else(|| End::Refuse {
        already: true,
        reason: format!("member {:032x} is being connected", other.id),
    })
}

/// With my proof before.
fn offer(shared: &Shared, connection: &mut Connection, offer: Vec<u8>) -> Result<(), End> {
    connection.phase = Phase::Offer;
    let proof = connection.talk.proof(&shared.me);
    say(connection, &[proof, Frame::Offer(offer).write()].concat())
}

/// The other's queue pair, or that it has none.
pub(super) fn hear_offer(
    shared: &Arc<Shared>,
    connection: &mut Connection,
    number: u64,
    theirs: Vec<u8>,
) -> Result<(), End> {
    let (pair, step) = match connection.role {
        Role::Called { .. } if theirs.is_empty() => (None, Step::Answer(theirs)),
        Role::Called { .. } => (my_pair(shared, connection)?, Step::Answer(theirs)),
        Role::Stranger { .. } | Role::Guest { .. } => {
            let pair = connection.way.pair.take();
            let unasked = || End::refuse("it answers where nothing was offered".into());
            (Some(pair.ok_or_else(unasked)?), Step::Accept(theirs))
        }
    };
    match pair {
        Some(pair) => work(shared, connection, number, pair, step),
        None => conclude(connection, Err(NONE.to_owned()))?,
    }
    Ok(())
}

/// Has a thread do it.
fn work(shared: &Arc<Shared>, connection: &mut Connection, number: u64, pair: Pair, step: Step) {
    connection.phase = Phase::Pair;
    let door = Arc::clone(shared);
    // For the case that there is no thread.
    let failed = step.fail("there is no thread to set up a queue pair".to_owned());
    let work = move || {
        let done = step.take(&pair);
        let mut state = door.state();
        // It may be gone, and the queue pair with it.
        if let Some(connection) = state.connections.get_mut(&number) {
            connection.way.pair = Some(pair);
            connection.way.done = Some(done);
        }
        drop(state);
        door.kick();
    };
    let thread = thread::Builder::new().name("spindle-pair".into());
    if thread.spawn(work).is_err() {
        connection.way.done = Some(failed);
        shared.kick();
    }
}

/// Goes on with what a thread has done, or with a queue pair that works by now, or has
/// had its time.
pub(super) fn look(shared: &Shared, connection: &mut Connection) -> Result<(), End> {
    match connection.way.done.take() {
        Some(Done::Offered(Ok(mine))) => offer(shared, connection, mine),
        Some(Done::Offered(Err(reason))) => {
            if let Some(other) = connection.talk.other() {
                warn(other.id, &reason);
            }
            connection.way.pair = None;
            offer(shared, connection, Vec::new())
        }
        Some(Done::Answered(Ok(mine))) => {
            say(connection, &Frame::Offer(mine).write())?;
            prove(connection);
            Ok(())
        }
        Some(Done::Accepted(Ok(()))) => {
            prove(connection);
            Ok(())
        }
        Some(Done::Answered(Err(reason)) | Done::Accepted(Err(reason))) => {
            conclude(connection, Err(reason))
        }
        None if connection.phase == Phase::Verdict => match connection.way.decide() {
            Some(mine) => conclude(connection, mine),
            None => Ok(()),
        },
        None => Ok(()),
    }
}

/// From here on the queue pair has to show that it works.
fn prove(connection: &mut Connection) {
    connection.way.prove_by = Some(Instant::now() + PROVE_WITHIN);
    connection.phase = Phase::Verdict;
}

/// I know what I think of the queue pairs. The one called keeps it to itself until the
/// caller has said what it thinks.
fn conclude(connection: &mut Connection, mine: Verdict) -> Result<(), End> {
    connection.phase = Phase::Verdict;
    connection.way.mine = Some(mine.clone());
    match connection.role {
        Role::Called { .. } => say(connection, &Frame::Verdict(mine).write()),
        Role::Stranger { .. } | Role::Guest { .. } => Ok(()),
    }
}

/// The other's verdict: a caller's may be faster than its word over the queue pair.
pub(super) fn hear_verdict(connection: &mut Connection, theirs: Verdict) -> Result<(), End> {
    let called = matches!(connection.role, Role::Called { .. });
    let way = &mut connection.way;
    if called && way.mine.is_none() || way.theirs.is_some() {
        return Err(End::refuse("it sent what does not belong here".into()));
    }
    if theirs.is_ok() && way.pair.is_none() {
        return Err(End::refuse("it says yes to what was not offered".into()));
    }
    if theirs.is_err() {
        way.mine.get_or_insert_with(|| Err(NONE.to_owned()));
    }
    way.theirs = Some(theirs);
    connection.phase = Phase::Verdict;
    Ok(())
}

/// Whether both have given their verdicts: then they can be peers.
pub(super) fn is_settled(connection: &Connection) -> bool {
    let way = &connection.way;
    connection.phase == Phase::Verdict && way.mine.is_some() && way.theirs.is_some()
}

/// The two are peers from now on, if they have not become that meanwhile.
pub(super) fn connect(shared: &Shared, state: &mut State, number: u64) -> Result<(), End> {
    let Some(connection) = state.connections.get_mut(&number) else {
        return Ok(());
    };
    let (Some(id), Some(mine), Some(theirs)) = (
        connection.talk.other().map(|other| other.id),
        connection.way.mine.take(),
        connection.way.theirs.take(),
    ) else {
        return Ok(());
    };
    let last_words = match connection.role {
        Role::Called { .. } => Vec::new(),
        Role::Stranger { .. } | Role::Guest { .. } => Frame::Verdict(mine.clone()).write(),
    };
    let (stream, pair) = (&connection.stream, connection.way.pair.take());
    let peer = || shared.streams.connect(id, stream, &last_words);
    // Who hears why not before it has found out by itself has nothing to say of its own.
    let verdict = match (mine, theirs) {
        (Err(nothing), Err(theirs)) if nothing == NONE => Err(theirs),
        (mine, theirs) => mine.and(theirs),
    };
    let connected = match (verdict, pair) {
        (Ok(()), Some(pair)) => pair.keep(peer),
        (Ok(()), None) => Err(StationError::Refused {
            id,
            reason: "there is no queue pair to say yes to".to_owned(),
        }),
        (Err(reason), pair) => {
            drop(pair);
            if shared.rdma.as_ref().is_some_and(|rdma| rdma.required) {
                let has_none = reason == NONE;
                let why = if has_none {
                    "the other has none"
                } else {
                    &reason
                };
                return Err(End::Refuse {
                    // Words may have been lost, as anything may: who calls does so again, as
                    // long as it has time. Else the two would never reach each other, and
                    // their group would be rid of both.
                    already: !has_none,
                    reason: format!("RDMA is required, and {why}"),
                });
            }
            warn(id, &reason);
            peer()
        }
    };
    connected.map_err(|error| End::refuse(error.to_string()))?;
    state.end(number, Answer::Connected(id));
    Ok(())
}

/// One that could have gone by RDMA goes by streams.
fn warn(id: u128, reason: &str) {
    if reason != NONE {
        let peer = format_args!("{id:032x}");
        tracing::warn!(%peer, reason, "RDMA does not work with a peer: it is reached by streams");
    }
}
