//! Reading packets from a connection and writing them to it, without blocking.

use std::time::{Duration, Instant};

use rustix::io::Errno;

use super::hello;
use super::packet::{Packet, PacketError, VERSION};
use super::shared::Shared;
use super::state::{CallFailure, EarlyRow, Life, Role, State, borrow, try_send};
use crate::fabric::FailureCause;
use crate::retry::Classified;
use crate::shm::error::SetupError;
use crate::shm::socket::{self, Received};
use crate::station::event::{CLOSED_BY_PEER, MESSAGE_LEN_MAX};

/// How long to wait for the kernel's report that a process has ended, after its connection
/// closed without a final packet.
const EXIT_REPORT_WITHIN: Duration = Duration::from_secs(1);

/// Pause in reading and writing after the kernel ran out of memory, or of room for descriptors in
/// flight.
const PAUSE: Duration = Duration::from_millis(5);

/// Why a packet is not taken.
pub(super) enum Objection {
    /// What is wrong with it.
    ToPacket(String),
    /// This process lacks something for it, and nothing is wrong with the sender.
    Lack(SetupError),
}

impl From<String> for Objection {
    fn from(reason: String) -> Self {
        Self::ToPacket(reason)
    }
}

impl From<&str> for Objection {
    fn from(reason: &str) -> Self {
        Self::ToPacket(reason.to_owned())
    }
}

impl Objection {
    /// For the sender.
    fn reason(&self) -> String {
        match self {
            Self::ToPacket(reason) => reason.clone(),
            Self::Lack(error) => format!("process {} lacks it: {error}", std::process::id()),
        }
    }
}

/// The descriptors of a packet did not arrive.
fn no_descriptors() -> Objection {
    let error = SetupError::system("taking a peer's descriptors (ulimit -n)")(Errno::MFILE);
    Objection::Lack(error)
}

/// Reads up to `packets_max` packets.
pub(super) fn read(shared: &Shared, state: &mut State, number: u64, packets_max: usize) {
    for _ in 0..packets_max {
        let Some(connection) = state.connections.get(&number) else {
            return;
        };
        let heard = match socket::receive(&connection.socket) {
            Received::Nothing => return,
            Received::Later => return pause(state, number),
            Received::Packet(packet) => receive_packet(shared, state, number, packet),
            Received::Cut => Err("what it sent did not fit".into()),
            Received::End => {
                end(state, number);
                return;
            }
        };
        if let Err(objection) = heard {
            refuse(shared, state, number, objection);
            return;
        }
    }
}

fn pause(state: &mut State, number: u64) {
    if let Some(connection) = state.connections.get_mut(&number) {
        connection.paused_until = Some(Instant::now() + PAUSE);
    }
}

/// Handles one packet; an error is sent to its sender.
fn receive_packet(
    shared: &Shared,
    state: &mut State,
    number: u64,
    mut received: socket::Packet,
) -> Result<(), Objection> {
    let bytes = core::mem::take(&mut received.bytes);
    let packet = Packet::read(&bytes).map_err(|problem| match problem {
        PacketError::Version(theirs) => {
            format!("it speaks version {theirs} of the protocol, this station {VERSION}")
        }
        PacketError::ProtocolViolation => "it sent what is no packet of this protocol".to_owned(),
    })?;
    let Some(connection) = state.connections.get_mut(&number) else {
        return Ok(());
    };
    let pid = connection.pid;
    let from = match connection.role {
        Role::Member(id) => id,
        Role::Stranger { .. } | Role::Called { .. } => {
            return match packet {
                Packet::Hello { .. } if received.lacks_fds => Err(no_descriptors()),
                Packet::Hello { id, doorbell } => {
                    hello::welcome(shared, state, number, id, doorbell, received.fds)
                }
                Packet::Refused { already, reason } => {
                    let answer = match already {
                        true => CallFailure::Already(reason),
                        false => CallFailure::Refused(reason),
                    };
                    state.end_call(number, Some(answer));
                    Ok(())
                }
                _ => Err("it did not say hello first".into()),
            };
        }
    };
    if let Packet::Rows(rows) = packet {
        let (fds, lacks_fds) = (received.fds.len(), received.lacks_fds);
        if fds > rows.len() || (fds < rows.len()) != lacks_fds {
            return Err("it sent rows without their memory, or memory without its row".into());
        }
        let mut files = received.fds.into_iter();
        for row in rows {
            // Without its descriptor, what waits for the row fails.
            let made = EarlyRow::made(pid, row.rank, row.len, files.next().as_ref());
            state.keep_early_row(from, row.key, made);
        }
        return Ok(());
    }
    match (packet, received.fds.pop()) {
        (Packet::Part { last, bytes }, None) => {
            connection.partial.extend(bytes);
            if connection.partial.len() > MESSAGE_LEN_MAX {
                return Err(format!("it sent more than {MESSAGE_LEN_MAX} bytes at once").into());
            }
            if last {
                let bytes = core::mem::take(&mut connection.partial);
                state.events.deliver(from, bytes)?;
                shared.sleep.wake_myself();
            }
            Ok(())
        }
        (Packet::NoRow { key, reason }, None) => {
            state.keep_early_row(from, key, EarlyRow::Lacking(reason));
            Ok(())
        }
        (Packet::Bye, None) => {
            let cause = FailureCause::Unreachable(CLOSED_BY_PEER.into());
            state.close_peer(from, cause, &shared.sleep);
            Ok(())
        }
        (Packet::Refused { reason, .. }, None) => {
            let cause = FailureCause::Unreachable(format!("it closed: {reason}"));
            state.close_peer(from, cause, &shared.sleep);
            Ok(())
        }
        _ => Err("it sent what does not belong here".into()),
    }
}

/// Closes a connection and sends the reason.
fn refuse(shared: &Shared, state: &mut State, number: u64, objection: Objection) {
    let Some(connection) = state.connections.get(&number) else {
        return;
    };
    let reason = objection.reason();
    let refused = Packet::Refused {
        already: false,
        reason: reason.clone(),
    };
    try_send(&connection.socket, &refused);
    match connection.role {
        Role::Stranger { .. } => {
            tracing::debug!(pid = connection.pid, reason, "a connection is refused");
            state.connections.remove(&number);
        }
        Role::Called { .. } => {
            let failure = match objection {
                Objection::ToPacket(reason) => CallFailure::Refused(reason),
                Objection::Lack(error) => CallFailure::Lack(error),
            };
            state.end_call(number, Some(failure));
        }
        Role::Member(id) => {
            state.close_peer(id, FailureCause::Unreachable(reason), &shared.sleep);
        }
    }
}

/// Handles a connection that the other side has closed.
fn end(state: &mut State, number: u64) {
    let Some(connection) = state.connections.get(&number) else {
        return;
    };
    match connection.role {
        Role::Stranger { .. } => drop(state.connections.remove(&number)),
        Role::Called { .. } => {
            let lost = "it closed the connection without a word".to_owned();
            state.end_call(number, Some(CallFailure::Lost(lost)));
        }
        Role::Member(id) => {
            state.connections.remove(&number);
            if let Some(peer) = state.peers.get_mut(&id) {
                let until = Instant::now() + EXIT_REPORT_WITHIN;
                peer.life = Life::Closing { until };
            }
        }
    }
}

/// Writes a connection's queue as far as the socket accepts it.
pub(super) fn write(state: &mut State, number: u64) {
    let State {
        connections, sent, ..
    } = state;
    let Some(connection) = connections.get_mut(&number) else {
        return;
    };
    while let Some(next) = connection.out.pop_front() {
        match socket::send_now(&connection.socket, &next.bytes, &borrow(&next.fds)) {
            Ok(()) => {
                connection.out_len -= next.bytes.len();
                sent.packets += 1;
                sent.bytes += next.bytes.len() as u64;
                sent.rows += next.rows;
            }
            Err(Errno::AGAIN) => return connection.out.push_front(next),
            Err(errno) if errno.may_pass() => {
                connection.paused_until = Some(Instant::now() + PAUSE);
                return connection.out.push_front(next);
            }
            // It is closed: reading finds out how.
            Err(_) => {
                connection.out.clear();
                connection.out_len = 0;
            }
        }
    }
}
