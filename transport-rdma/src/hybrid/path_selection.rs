//! The path of pushes between two authenticated stations: RDMA or streams.
//!
//! The called side offers a queue pair, or none. The caller answers with its own, and each
//! side waits for the other's hello over it. Then the caller sends its verdict, and the called
//! side sends the last one. Steps that may block run on a thread of their own.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::handshake_frame::{Frame, Verdict};
use super::path_state::{PairResult, PairStep};
use super::pending::{
    CallOutcome, Ending, PendingConnection, Phase, Role, Shared, State, send_bytes, send_frame,
};
use super::rdma::TrialPair;
use super::refusal::HandshakeRefusal;
use crate::library_thread::LibraryThread;
use crate::station::error::StationError;
use crate::tcp::PushPath;

/// How long a queue pair has to prove that it works.
const PROVE_WITHIN: Duration = Duration::from_millis(1500);

/// The reason of a station that has no RDMA.
const NONE: &str = "";

/// The caller has proved itself: offers it a queue pair, if this station has RDMA.
pub(super) fn begin(
    shared: &Arc<Shared>,
    connection: &mut PendingConnection,
    number: u64,
) -> Result<(), Ending> {
    match my_pair(shared, connection)? {
        Some(pair) => work(shared, connection, number, pair, PairStep::Offer),
        None => offer(connection, Vec::new())?,
    }
    Ok(())
}

/// A new queue pair for the other side, if this station has RDMA.
fn my_pair(shared: &Shared, connection: &PendingConnection) -> Result<Option<TrialPair>, Ending> {
    let (Some(rdma), Some(other)) = (&shared.rdma, connection.handshake.other()) else {
        return Ok(None);
    };
    let pair = TrialPair::begin(rdma, other.id);
    pair.map(Some)
        .ok_or_else(|| Ending::already(format!("member {:032x} is being connected", other.id)))
}

/// Sends an offer, with my proof before it.
fn offer(connection: &mut PendingConnection, offer: Vec<u8>) -> Result<(), Ending> {
    connection.phase = Phase::Offer;
    let handshake = &mut connection.handshake;
    let proof = handshake.prove().map_err(|error| Ending::no_keys(&error))?;
    let offer = handshake.seal(Frame::Offer(offer).write());
    send_bytes(connection, &[proof, offer].concat())
}

/// Handles the other side's offer, which is empty if it has no queue pair.
pub(super) fn receive_offer(
    shared: &Arc<Shared>,
    connection: &mut PendingConnection,
    number: u64,
    theirs: Vec<u8>,
) -> Result<(), Ending> {
    let (pair, step) = match connection.role {
        Role::Called { .. } if theirs.is_empty() => (None, PairStep::Answer(theirs)),
        Role::Called { .. } => (my_pair(shared, connection)?, PairStep::Answer(theirs)),
        Role::Stranger { .. } | Role::Authenticated { .. } => {
            let pair = connection.path.pair.take();
            let unasked = || Ending::refuse("it answers where nothing was offered");
            (Some(pair.ok_or_else(unasked)?), PairStep::Accept(theirs))
        }
    };
    match pair {
        Some(pair) => work(shared, connection, number, pair, step),
        None => conclude(shared, connection, Err(NONE.to_owned()))?,
    }
    Ok(())
}

/// Runs a step on a thread of its own.
fn work(
    shared: &Arc<Shared>,
    connection: &mut PendingConnection,
    number: u64,
    pair: TrialPair,
    step: PairStep,
) {
    connection.phase = Phase::SettingUpPair;
    let acceptor = Arc::clone(shared);
    // The result if no thread can be started.
    let failed = step.fail("there is no thread to set up a queue pair".to_owned());
    let work = move || {
        let done = step.take(&pair);
        let mut state = acceptor.state();
        // The connection may be gone; then the queue pair is dropped here.
        if let Some(connection) = state.connections.get_mut(&number) {
            connection.path.pair = Some(pair);
            connection.path.done = Some(done);
        }
        drop(state);
        acceptor.kick();
    };
    let thread = LibraryThread::named("spindle-pair");
    if thread.spawn(work).is_err() {
        connection.path.done = Some(failed);
        shared.kick();
    }
}

/// Continues with the result of a step, or with a queue pair that works by now or is out of
/// time.
pub(super) fn advance(shared: &Shared, connection: &mut PendingConnection) -> Result<(), Ending> {
    match connection.path.done.take() {
        Some(PairResult::Offered(Ok(mine))) => offer(connection, mine),
        Some(PairResult::Offered(Err(reason))) => {
            if let Some(other) = connection.handshake.other() {
                warn(other.id, &reason);
            }
            connection.path.pair = None;
            offer(connection, Vec::new())
        }
        Some(PairResult::Answered(Ok(mine))) => {
            send_frame(connection, Frame::Offer(mine).write())?;
            prove(connection);
            Ok(())
        }
        Some(PairResult::Accepted(Ok(()))) => {
            prove(connection);
            Ok(())
        }
        Some(PairResult::Answered(Err(reason)) | PairResult::Accepted(Err(reason))) => {
            conclude(shared, connection, Err(reason))
        }
        None if connection.phase == Phase::Verdict => match connection.path.decide() {
            Some(mine) => conclude(shared, connection, mine),
            None => Ok(()),
        },
        None => Ok(()),
    }
}

/// From now on the queue pair must prove that it works.
fn prove(connection: &mut PendingConnection) {
    connection.path.prove_by = Some(Instant::now() + PROVE_WITHIN);
    connection.phase = Phase::Verdict;
}

/// Sets my verdict. A caller sends it at once; the called side sends it after the caller's.
/// All that its stream needs is there before: the called side takes the two for connected then.
fn conclude(
    shared: &Shared,
    connection: &mut PendingConnection,
    mine: Verdict,
) -> Result<(), Ending> {
    if let Role::Called { .. } = connection.role {
        make_ready(shared, connection)?;
    }
    connection.phase = Phase::Verdict;
    connection.path.mine = Some(mine.clone());
    match connection.role {
        Role::Called { .. } => send_frame(connection, Frame::Verdict(mine).write()),
        Role::Stranger { .. } | Role::Authenticated { .. } => Ok(()),
    }
}

/// Gets what it takes to serve the connection as a peer's.
fn make_ready(shared: &Shared, connection: &mut PendingConnection) -> Result<(), Ending> {
    if let (None, Some(other)) = (&connection.path.stream, connection.handshake.other()) {
        let ready = shared.streams.ready(other.id, &connection.stream);
        connection.path.stream = Some(ready.map_err(|error| lacking(&error))?);
    }
    Ok(())
}

/// What this station lacks it may have at another call.
fn lacking(error: &StationError) -> Ending {
    match error {
        StationError::System(error) => Ending::already(error.to_string()),
        error => Ending::refuse(error.to_string()),
    }
}

/// Handles the other side's verdict. A caller's may arrive before its hello by RDMA.
pub(super) fn receive_verdict(
    connection: &mut PendingConnection,
    theirs: Verdict,
) -> Result<(), Ending> {
    let called = matches!(connection.role, Role::Called { .. });
    let path = &mut connection.path;
    if called && path.mine.is_none() || path.theirs.is_some() {
        return Err(Ending::Refuse(HandshakeRefusal::out_of_place()));
    }
    if theirs.is_ok() && path.pair.is_none() {
        return Err(Ending::refuse("it says yes to what was not offered"));
    }
    if theirs.is_err() {
        path.mine.get_or_insert_with(|| Err(NONE.to_owned()));
    }
    path.theirs = Some(theirs);
    connection.phase = Phase::Verdict;
    Ok(())
}

/// Whether both sides have given their verdicts: then they can become peers.
pub(super) fn is_settled(connection: &PendingConnection) -> bool {
    let path = &connection.path;
    connection.phase == Phase::Verdict && path.mine.is_some() && path.theirs.is_some()
}

/// Makes a peer of the other side, unless it has become one meanwhile.
pub(super) fn connect(shared: &Shared, state: &mut State, number: u64) -> Result<(), Ending> {
    let Some(connection) = state.connections.get_mut(&number) else {
        return Ok(());
    };
    make_ready(shared, connection)?;
    let (Some(id), Some(mine), Some(theirs), Some(stream)) = (
        connection.handshake.other().map(|other| other.id),
        connection.path.mine.take(),
        connection.path.theirs.take(),
        connection.path.stream.take(),
    ) else {
        return Ok(());
    };
    let final_frame = match connection.role {
        Role::Called { .. } => Vec::new(),
        Role::Stranger { .. } | Role::Authenticated { .. } => {
            let verdict = Frame::Verdict(mine.clone()).write();
            connection.handshake.seal(verdict)
        }
    };
    if connection.handshake.uses_accepted_secret() {
        let peer = format_args!("{id:032x}");
        tracing::info!(%peer, "a peer has the accepted secret, not this participant's own");
    }
    let channel = connection.handshake.take_channel();
    let pair = connection.path.pair.take();
    let peer = |path| shared.streams.connect(stream, path, &final_frame, channel);
    // A side that received the reason before it had one of its own reports the other's.
    let verdict = match (mine, theirs) {
        (Err(nothing), Err(theirs)) if nothing == NONE => Err(theirs),
        (mine, theirs) => mine.and(theirs),
    };
    let connected = match (verdict, pair) {
        (Ok(()), Some(pair)) => pair.keep(|| peer(PushPath::Rdma)),
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
                let reason = format!("RDMA is required, and {why}");
                // Packets may have been lost, so the caller may call again within its
                // deadline. Otherwise the two would never reach each other, and their
                // group would expel both.
                return Err(match has_none {
                    true => Ending::refuse(reason),
                    false => Ending::already(reason),
                });
            }
            warn(id, &reason);
            peer(PushPath::Stream)
        }
    };
    connected.map_err(|error| lacking(&error))?;
    state.end(number, CallOutcome::Connected(id));
    Ok(())
}

/// Warns that a peer with RDMA is reached by streams.
fn warn(id: u128, reason: &str) {
    if reason != NONE {
        let peer = format_args!("{id:032x}");
        tracing::warn!(%peer, reason, "RDMA does not work with a peer: it is reached by streams");
    }
}
