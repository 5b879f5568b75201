//! What is read from a connection, and written to it, without waiting.

use std::time::{Duration, Instant};

use rustix::io::Errno;

use super::hello;
use super::packet::{NoPacket, Packet, VERSION};
use super::shared::{Shared, borrow, say};
use super::state::{Answer, EarlyRow, Life, Role, State};
use crate::fabric::FailureCause;
use crate::shm::socket::{self, Received};
use crate::station_event::{LEFT, MESSAGE_LEN_MAX};

/// How long the kernel's word of a peer's end is awaited once its connection
/// has closed without a farewell: it comes a moment later.
const VERDICT_WITHIN: Duration = Duration::from_secs(1);

/// Pause in writing after the system ran out of room for descriptors.
const REST: Duration = Duration::from_millis(5);

/// Reads what has come, so many packets at most.
pub(super) fn read(shared: &Shared, state: &mut State, number: u64, packets_max: usize) {
    for _ in 0..packets_max {
        let Some(link) = state.links.get(&number) else {
            return;
        };
        let heard = match socket::receive(&link.socket) {
            Received::Nothing => return,
            Received::Packet(packet) => hear(shared, state, number, packet),
            Received::Cut => {
                Err("what it sent did not fit, or no descriptors were left (ulimit -n)".to_owned())
            }
            Received::End => {
                end(state, number);
                return;
            }
        };
        if let Err(reason) = heard {
            refuse(shared, state, number, reason);
            return;
        }
    }
}

/// One packet; an error is told to whoever sent it.
fn hear(
    shared: &Shared,
    state: &mut State,
    number: u64,
    mut received: socket::Packet,
) -> Result<(), String> {
    let bytes = core::mem::take(&mut received.bytes);
    let packet = Packet::read(&bytes).map_err(|problem| match problem {
        NoPacket::Version(theirs) => {
            format!("it speaks version {theirs} of the protocol, this station {VERSION}")
        }
        NoPacket::Nonsense => "it sent what is no packet of this protocol".to_owned(),
    })?;
    let Some(link) = state.links.get_mut(&number) else {
        return Ok(());
    };
    let from = match link.role {
        Role::Member(id) => id,
        Role::Stranger { .. } | Role::Called { .. } => {
            return match packet {
                Packet::Hello { id, doorbell } => {
                    hello::welcome(shared, state, number, id, doorbell, received.fds)
                }
                Packet::Refused { already, reason } => {
                    let answer = match already {
                        true => Answer::Already(reason),
                        false => Answer::Refused(reason),
                    };
                    state.end_call(number, Some(answer));
                    Ok(())
                }
                _ => Err("it did not say hello first".to_owned()),
            };
        }
    };
    match (packet, received.fds.pop()) {
        (Packet::Part { last, bytes }, None) => {
            link.partial.extend(bytes);
            if link.partial.len() > MESSAGE_LEN_MAX {
                return Err(format!("it sent more than {MESSAGE_LEN_MAX} bytes at once"));
            }
            if last {
                let bytes = core::mem::take(&mut link.partial);
                state.news.deliver(from, bytes)?;
                shared.sleep.wake_myself();
            }
            Ok(())
        }
        (Packet::Row { key, rank, len }, Some(file)) if received.fds.is_empty() => {
            state.keep_row(from, key, EarlyRow { rank, len, file });
            Ok(())
        }
        (Packet::Bye, None) => {
            let cause = FailureCause::Unreachable(LEFT.into());
            state.close_peer(from, cause, &shared.sleep);
            Ok(())
        }
        (Packet::Refused { reason, .. }, None) => {
            let cause = FailureCause::Unreachable(format!("it closed: {reason}"));
            state.close_peer(from, cause, &shared.sleep);
            Ok(())
        }
        _ => Err("it sent what does not belong here".to_owned()),
    }
}

/// A connection is closed by this side, with a word about why.
fn refuse(shared: &Shared, state: &mut State, number: u64, reason: String) {
    let Some(link) = state.links.get(&number) else {
        return;
    };
    let refused = Packet::Refused {
        already: false,
        reason: reason.clone(),
    };
    say(&link.socket, &refused);
    match link.role {
        Role::Stranger { .. } => {
            tracing::debug!(pid = link.pid, reason, "a connection is refused");
            state.links.remove(&number);
        }
        Role::Called { .. } => {
            state.end_call(number, Some(Answer::Refused(reason)));
        }
        Role::Member(id) => {
            state.close_peer(id, FailureCause::Unreachable(reason), &shared.sleep);
        }
    }
}

/// The other side has closed a connection.
fn end(state: &mut State, number: u64) {
    let Some(link) = state.links.get(&number) else {
        return;
    };
    match link.role {
        Role::Stranger { .. } => drop(state.links.remove(&number)),
        Role::Called { .. } => {
            let lost = "it closed the connection without a word".to_owned();
            state.end_call(number, Some(Answer::Lost(lost)));
        }
        Role::Member(id) => {
            state.links.remove(&number);
            if let Some(peer) = state.peers.get_mut(&id) {
                let until = Instant::now() + VERDICT_WITHIN;
                peer.life = Life::Closing { until };
            }
        }
    }
}

/// Sends a connection's queue as far as it takes it.
pub(super) fn write(state: &mut State, number: u64) {
    let Some(link) = state.links.get_mut(&number) else {
        return;
    };
    while let Some(next) = link.out.pop_front() {
        match socket::send_now(&link.socket, &next.bytes, &borrow(&next.fds)) {
            Ok(()) => link.out_len -= next.bytes.len(),
            Err(Errno::AGAIN) => return link.out.push_front(next),
            Err(Errno::TOOMANYREFS | Errno::NOBUFS | Errno::NOMEM) => {
                link.rest_until = Some(Instant::now() + REST);
                return link.out.push_front(next);
            }
            // It has closed: reading tells how.
            Err(_) => {
                link.out.clear();
                link.out_len = 0;
            }
        }
    }
}
