//! Connecting to a peer, from the calling thread.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::io::Errno;

use super::address::Address;
use super::doorbell_row::DOORBELLS;
use super::shared::Shared;
use super::state::{CallFailure, Connection, Life, Role, State};
use crate::retry;
use crate::shm::error::SetupError;
use crate::shm::socket;
use crate::station::error::StationError;

/// Pause between two calls of a peer that is busy or is calling this station.
const CALL_AGAIN_AFTER: Duration = Duration::from_millis(5);

/// How long a socket of a living process that is missing, or cannot be connected to, is tried
/// again: a missing one is made anew at once by a member that records the view of a newcomer.
const SOCKET_WITHIN: Duration = Duration::from_millis(500);

/// See [`Station::connect`](super::Station::connect).
pub(super) fn connect(
    shared: &Arc<Shared>,
    target: &Address,
    deadline: Instant,
) -> Result<u128, StationError> {
    let id = target.id;
    if id == shared.id() {
        let reason = "it is this station itself".to_owned();
        return Err(StationError::Refused { id, reason });
    }
    let unreachable = |reason: String| Err(StationError::Unreachable { id, reason });
    let mut excuse = "it did not answer in time".to_owned();
    let socket_until = deadline.min(Instant::now() + SOCKET_WITHIN);
    let mut state = shared.state();
    loop {
        if state.stopped {
            return Err(StationError::Closed);
        }
        match state.peers.get(&id).map(|peer| &peer.life) {
            Some(Life::Open { .. }) => return Ok(id),
            Some(Life::Closed(cause)) => return unreachable(cause.to_string()),
            Some(Life::Closing { .. }) | None => {}
        }
        // The outcome of a call that led to no connection.
        let mut until = deadline.min(Instant::now() + CALL_AGAIN_AFTER);
        match state.answers.remove(&id) {
            Some(CallFailure::Refused(reason)) => return Err(StationError::Refused { id, reason }),
            Some(CallFailure::Lost(reason)) => return unreachable(reason),
            Some(CallFailure::Lack(error)) => return Err(error.into()),
            // The peer's own call is on its way, or has arrived.
            Some(CallFailure::Already(reason)) => excuse = reason,
            None if state.peers.contains_key(&id) => {}
            None => {
                if state.call_to(id).is_some() || call(shared, &mut state, target, socket_until)? {
                    until = deadline;
                }
            }
        }
        if Instant::now() >= deadline {
            if let Some(number) = state.call_to(id) {
                state.end_call(number, None);
            }
            return unreachable(excuse);
        }
        state = shared.wait(state, until).0;
    }
}

/// Starts a call for a later [`connect`], unless one has been made.
pub(super) fn begin(shared: &Arc<Shared>, target: &Address) {
    let id = target.id;
    let mut state = shared.state();
    let is_made = state.peers.contains_key(&id)
        || state.answers.contains_key(&id)
        || state.call_to(id).is_some();
    if !is_made && !state.stopped && id != shared.id() {
        // What fails here fails again for the caller that waits for it.
        let _ = call(shared, &mut state, target, Instant::now());
    }
}

/// Starts a call; false if the peer's backlog is full, or another attempt may succeed.
fn call(
    shared: &Arc<Shared>,
    state: &mut State,
    target: &Address,
    socket_until: Instant,
) -> Result<bool, StationError> {
    let id = target.id;
    let unreachable = |reason: String| StationError::Unreachable { id, reason };
    let socket = match socket::connect(&shared.domain.file_path(&target.file()).path) {
        Ok(socket) => socket,
        Err(Errno::AGAIN) => return Ok(false),
        // One error says nothing about a process that lives.
        Err(_) if Instant::now() < socket_until && target.may_live().unwrap_or(true) => {
            return Ok(false);
        }
        Err(errno @ (Errno::MFILE | Errno::NFILE | Errno::NOMEM | Errno::NOBUFS)) => {
            return Err(SetupError::system("calling a peer")(errno).into());
        }
        Err(errno) => {
            let domain = shared.domain.id;
            return Err(unreachable(format!(
                "no station answers at its socket in the directory of domain {domain} here: {errno}"
            )));
        }
    };
    let peer = retry::repeat(|| socket::peer(&socket));
    let (pid, user) = peer.map_err(SetupError::system("looking at a peer"))?;
    if user != rustix::process::geteuid().as_raw() {
        return Err(unreachable(format!("it belongs to user {user}")));
    }
    let Some(doorbell) = state.take_doorbell() else {
        let most = DOORBELLS - 1;
        return Err(unreachable(format!(
            "this station has {most} peers already"
        )));
    };
    let mut connection = Connection::new(socket, pid, Role::Called { id, doorbell });
    let (bytes, fds) = shared.hello(pid, doorbell);
    connection.put(bytes, fds);
    state.add_connection(connection);
    shared.kick();
    Ok(true)
}
