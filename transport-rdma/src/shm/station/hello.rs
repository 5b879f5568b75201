//! Receiving a hello: checking it, and keeping one connection for each peer.
//!
//! Two stations may call each other at the same moment. Then the call of the station with the
//! lower id counts: it refuses the other's call.

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use super::doorbell_row::{DOORBELL_ROW_LEN, DOORBELLS, WakeTarget};
use super::packet::Packet;
use super::packet_io::Objection;
use super::shared::Shared;
use super::state::{Life, Peer, Role, State, try_send};
use crate::memory::mapping::Mapping;
use crate::shm::descriptor;
use crate::shm::error::SetupError;
use crate::shm::memory;
use crate::station::event::StationEvent;

/// Makes a peer of the station that said hello. An error is sent to it.
pub(super) fn welcome(
    shared: &Shared,
    state: &mut State,
    number: u64,
    id: u128,
    their_doorbell: u16,
    fds: Vec<OwnedFd>,
) -> Result<(), Objection> {
    let Some(connection) = state.connections.get(&number) else {
        return Ok(());
    };
    let (pid, called) = match connection.role {
        Role::Called {
            id: called,
            doorbell,
        } if called == id => (connection.pid, Some(doorbell)),
        Role::Called { id: called, .. } => {
            return Err(
                format!("member {id:032x} answers where member {called:032x} was called").into(),
            );
        }
        Role::Stranger { .. } => (connection.pid, None),
        Role::Member(_) => return Err("it said hello twice".into()),
    };
    if id == shared.id() {
        return Err(format!("member {id:032x} is this station itself").into());
    }
    if called.is_none() && is_connecting(shared, state, id) || state.peers.contains_key(&id) {
        return Ok(refuse_duplicate(state, number, id)?);
    }
    let (row, event, lifeline) = check_descriptors(pid, their_doorbell, fds)?;
    let Some(doorbell) = called.or_else(|| state.take_doorbell()) else {
        return Err(format!("this station has {} peers already", DOORBELLS - 1).into());
    };
    let row = row.region();
    let wake_target = WakeTarget::new(row.clone(), event, doorbell, their_doorbell);
    let wake_target = Arc::new(wake_target);
    shared.sleep.add_peer(&wake_target);
    let life = Life::Open { connection: number };
    let peer = Peer {
        pid,
        wake_target,
        row,
        lifeline: Arc::new(lifeline),
        life,
        doorbell,
        rows: BTreeMap::new(),
    };
    state.peers.insert(id, peer);
    state.answers.remove(&id);
    if let Some(connection) = state.connections.get_mut(&number) {
        connection.role = Role::Member(id);
        if called.is_none() {
            let (bytes, fds) = shared.hello(pid, doorbell);
            connection.put(bytes, fds);
        }
    }
    state.events.push(StationEvent::Connected { id });
    shared.sleep.wake_myself();
    Ok(())
}

/// Whether a call of mine counts, and not the one that arrived.
fn is_connecting(shared: &Shared, state: &State, id: u128) -> bool {
    shared.id() < id && state.call_to(id).is_some()
}

/// Refuses the connection: there is one already, or a peer of that id was lost.
fn refuse_duplicate(state: &mut State, number: u64, id: u128) -> Result<(), String> {
    let life = state.peers.get(&id).map(|peer| (&peer.life, peer.pid));
    if let Some((Life::Closed(cause), pid)) = life {
        return Err(format!(
            "member {id:032x} was process {pid} here, and is lost: {cause}"
        ));
    }
    let reason = match life {
        Some((_, pid)) => format!("member {id:032x} is connected as process {pid}"),
        None => format!("member {id:032x} is being called"),
    };
    let already = true;
    if let Some(connection) = state.connections.get(&number) {
        try_send(&connection.socket, &Packet::Refused { already, reason });
    }
    if matches!(
        state
            .connections
            .get(&number)
            .map(|connection| &connection.role),
        Some(Role::Called { .. })
    ) {
        state.end_call(number, None);
    } else {
        state.connections.remove(&number);
    }
    Ok(())
}

type Descriptors = (Arc<Mapping>, OwnedFd, OwnedFd);

/// Doorbell row, event descriptor and lifeline of process `pid`, if they are valid.
fn check_descriptors(pid: u32, doorbell: u16, fds: Vec<OwnedFd>) -> Result<Descriptors, Objection> {
    let fds: [OwnedFd; 3] = fds
        .try_into()
        .map_err(|fds: Vec<_>| format!("3 descriptors belong to a hello, not {}", fds.len()))?;
    let [row, event, lifeline] = fds;
    if !(1..DOORBELLS).contains(&usize::from(doorbell)) {
        return Err(format!("there is no doorbell {doorbell}").into());
    }
    let row = memory::open_lasting_row(&row, pid, DOORBELL_ROW_LEN).map_err(|error| match error
        .is_out_of_resources()
    {
        true => Objection::Lack(error),
        false => format!("its doorbell row cannot be used: {error}").into(),
    })?;
    let unchecked = |error: SetupError| match error.is_out_of_resources() {
        true => Objection::Lack(error),
        false => format!("its descriptors cannot be checked: {error}").into(),
    };
    if !descriptor::is_event(&event).map_err(unchecked)? {
        return Err("its event descriptor is none, or blocks".into());
    }
    let good = match pid == std::process::id() {
        true => descriptor::is_event(&lifeline),
        false => descriptor::pid_of(&lifeline).map(|of| of == Some(pid)),
    };
    if !good.map_err(unchecked)? {
        return Err(format!("its lifeline is not that of process {pid}").into());
    }
    Ok((row, event, lifeline))
}
