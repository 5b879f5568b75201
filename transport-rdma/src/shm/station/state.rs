//! What a station knows: its connections, its peers, and what has come of them.
//!
//! ```text
//!   accepted: Stranger --hello--> Member        a peer:  Open -> Closing -> Closed
//!   called:   Caller ----hello--> Member                  the kernel's word is
//!                                                         awaited in Closing
//! ```
//! Changed by the background thread, but for what callers put in and take out.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Instant;

use super::packet::Packet;
use super::shared::say;
use super::sleep_state::{DOORBELLS, SleepState, WakeTarget};
use crate::fabric::FailureCause;
use crate::failures::Control;
use crate::mem::Region;
use crate::segment::SegmentKey;
use crate::station_event::{EventQueue, QUEUE_LEN_MAX, StationEvent};

/// Most rows of one peer that wait until they are asked for; the oldest epoch
/// gives way.
const EARLY_ROWS_MAX: usize = 4096;

/// Most packets that wait for a peer: rows among them hold descriptors.
const OUTGOING_MAX: usize = 4096;

/// Something to be sent.
#[derive(Debug)]
pub(super) struct Outgoing {
    pub(super) bytes: Vec<u8>,
    pub(super) fds: Vec<Arc<OwnedFd>>,
}

/// Who is at the other end of a connection.
#[derive(Debug)]
pub(super) enum Role {
    /// Somebody who has called and said nothing yet.
    Stranger {
        until: Instant,
    },
    /// Whom I have called; one of my bells is for it.
    Called {
        id: u128,
        doorbell: u16,
    },
    Member(u128),
}

/// A connection.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) socket: Arc<OwnedFd>,
    pub(super) pid: u32,
    pub(super) role: Role,
    pub(super) out: VecDeque<Outgoing>,
    /// Bytes in `out`.
    pub(super) out_len: usize,
    /// Of a message that has come in part.
    pub(super) partial: Vec<u8>,
    /// Nothing is sent before: the kernel has too many descriptors on their way.
    pub(super) rest_until: Option<Instant>,
}

impl Connection {
    pub(super) fn new(socket: OwnedFd, pid: u32, role: Role) -> Self {
        Self {
            socket: Arc::new(socket),
            pid,
            role,
            out: VecDeque::new(),
            out_len: 0,
            partial: Vec::new(),
            rest_until: None,
        }
    }

    pub(super) fn put(&mut self, bytes: Vec<u8>, fds: Vec<Arc<OwnedFd>>) {
        self.out_len += bytes.len();
        self.out.push_back(Outgoing { bytes, fds });
    }

    /// Whether nothing more is to be put in its queue.
    pub(super) fn is_full(&self) -> bool {
        self.out_len > QUEUE_LEN_MAX || self.out.len() > OUTGOING_MAX
    }
}

impl Drop for Connection {
    /// Others may have the socket open too: children that this process has forked.
    fn drop(&mut self) {
        let _ = rustix::net::shutdown(&*self.socket, rustix::net::Shutdown::Both);
    }
}

/// Whether a peer is there.
#[derive(Debug)]
pub(super) enum Life {
    Open {
        link: u64,
    },
    /// Its connection has closed; whether it has ended is not known yet.
    Closing {
        until: Instant,
    },
    Closed(FailureCause),
}

/// A row of a peer that nobody has asked for yet.
#[derive(Debug)]
pub(super) struct EarlyRow {
    pub(super) rank: u16,
    pub(super) len: u64,
    pub(super) file: OwnedFd,
}

/// One that has said hello.
#[derive(Debug)]
pub(super) struct Peer {
    pub(super) pid: u32,
    pub(super) wake_target: Arc<WakeTarget>,
    /// Its doorbell row, as long as I listen to it.
    pub(super) row: Region,
    /// Readable once it has ended.
    pub(super) lifeline: Arc<OwnedFd>,
    pub(super) life: Life,
    /// Which of my bells is for it.
    pub(super) doorbell: u16,
    pub(super) rows: BTreeMap<SegmentKey, EarlyRow>,
}

/// How a call has ended that did not lead to a hello.
#[derive(Debug)]
pub(super) enum Answer {
    Refused(String),
    /// For being connected, or about to be.
    Already(String),
    Lost(String),
}

#[derive(Debug)]
pub(super) struct State {
    pub(super) links: BTreeMap<u64, Connection>,
    next_link: u64,
    pub(super) peers: BTreeMap<u128, Peer>,
    /// Those who are not there and will not come, and why.
    pub(super) absent: BTreeMap<u128, FailureCause>,
    /// Of calls of mine, by whom they were for, until the caller has looked.
    pub(super) answers: BTreeMap<u128, Answer>,
    pub(super) news: Arc<EventQueue>,
    pub(super) controls: Vec<Control>,
    /// Segments that I have asked for and not forgotten.
    pub(super) asked: BTreeSet<SegmentKey>,
    /// Bells that are somebody's. The first is my own.
    doorbells_taken: [bool; DOORBELLS],
    pub(super) stopped: bool,
}

impl State {
    pub(super) fn new() -> Self {
        let mut doorbells_taken = [false; DOORBELLS];
        doorbells_taken[0] = true;
        Self {
            links: BTreeMap::new(),
            next_link: 0,
            peers: BTreeMap::new(),
            absent: BTreeMap::new(),
            answers: BTreeMap::new(),
            news: Arc::default(),
            controls: Vec::new(),
            asked: BTreeSet::new(),
            doorbells_taken,
            stopped: false,
        }
    }

    pub(super) fn add_link(&mut self, link: Connection) -> u64 {
        let number = self.next_link;
        self.next_link += 1;
        self.links.insert(number, link);
        number
    }

    /// A doorbell that is nobody's; `None` if there are as many peers as can be.
    pub(super) fn take_doorbell(&mut self) -> Option<u16> {
        let free = self.doorbells_taken.iter().position(|&taken| !taken)?;
        self.doorbells_taken[free] = true;
        Some(free as u16)
    }

    pub(super) fn return_doorbell(&mut self, doorbell: u16) {
        self.doorbells_taken[usize::from(doorbell)] = false;
    }

    /// A call of mine has come to an end without a hello.
    pub(super) fn end_call(&mut self, number: u64, answer: Option<Answer>) {
        let Some(&Role::Called { id, doorbell }) = self.links.get(&number).map(|link| &link.role)
        else {
            return;
        };
        self.return_doorbell(doorbell);
        self.links.remove(&number);
        if let Some(answer) = answer {
            self.answers.insert(id, answer);
        }
    }

    /// A call of mine that is under way.
    pub(super) fn call_to(&self, id: u128) -> Option<u64> {
        let is_call =
            |link: &Connection| matches!(link.role, Role::Called { id: to, .. } if to == id);
        let mut calls = self.links.iter().filter(|(_, link)| is_call(link));
        calls.next().map(|(&number, _)| number)
    }

    /// The connection to a peer that is there.
    pub(super) fn link_of(&mut self, id: u128) -> Option<&mut Connection> {
        match self.peers.get(&id)?.life {
            Life::Open { link } => self.links.get_mut(&link),
            _ => None,
        }
    }

    /// Keeps a row until it is asked for.
    pub(super) fn keep_row(&mut self, from: u128, key: SegmentKey, row: EarlyRow) {
        let Some(peer) = self.peers.get_mut(&from) else {
            return;
        };
        if let Some((oldest, _)) = keep(&mut peer.rows, key, row, EARLY_ROWS_MAX) {
            tracing::warn!(from, ?oldest, "a row that nobody asked for is thrown away");
        }
    }

    /// A peer is lost for good: everybody who has to know is told.
    pub(super) fn close_peer(&mut self, id: u128, cause: FailureCause, sleep: &SleepState) {
        let Some(peer) = self.peers.get_mut(&id) else {
            return;
        };
        match peer.life {
            Life::Open { link } => drop(self.links.remove(&link)),
            Life::Closing { .. } => {}
            Life::Closed(_) => return,
        }
        peer.life = Life::Closed(cause.clone());
        sleep.remove_peer(&peer.row);
        Control::tell_all(&mut self.controls, id, &cause);
        self.news.tell(StationEvent::Closed { id, cause });
        sleep.wake_myself();
    }

    /// Why a peer is lost, if it is.
    pub(super) fn fate_of(&self, id: u128) -> Option<&FailureCause> {
        match &self.peers.get(&id)?.life {
            Life::Closed(cause) => Some(cause),
            _ => None,
        }
    }

    /// Takes a peer out, with its doorbell and what is left of it.
    pub(super) fn drop_peer(&mut self, id: u128, sleep: &SleepState) {
        self.absent.remove(&id);
        let Some(peer) = self.peers.remove(&id) else {
            return;
        };
        if let Life::Open { link } = peer.life
            && let Some(link) = self.links.remove(&link)
        {
            say(&link.socket, &Packet::Bye);
        }
        sleep.remove_peer(&peer.row);
        self.answers.remove(&id);
        self.return_doorbell(peer.doorbell);
        self.news.forget(id);
    }

    /// What has come for a segment goes. What is on its way to others does not:
    /// they may wait for it.
    pub(super) fn forget(&mut self, key: SegmentKey) {
        self.asked.remove(&key);
        for peer in self.peers.values_mut() {
            peer.rows.remove(&key);
        }
    }
}

/// Puts something in, and what comes first out if there are too many then.
fn keep<K: Ord, V>(kept: &mut BTreeMap<K, V>, key: K, value: V, max: usize) -> Option<(K, V)> {
    kept.insert(key, value);
    let over = kept.len() > max;
    over.then(|| kept.pop_first()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_rows_give_way() {
        let mut kept = BTreeMap::new();
        let key = |epoch, index| SegmentKey { epoch, index };
        assert_eq!(keep(&mut kept, key(2, 0), 'a', 2), None);
        assert_eq!(keep(&mut kept, key(1, 9), 'b', 2), None);
        assert_eq!(keep(&mut kept, key(2, 0), 'c', 2), None, "in its place");
        assert_eq!(keep(&mut kept, key(2, 1), 'd', 2), Some((key(1, 9), 'b')));
        assert_eq!(kept.into_values().collect::<String>(), "cd");
    }

    #[test]
    fn bells_are_given_out_once_and_again_when_they_are_returned() {
        let mut state = State::new();
        let all: BTreeSet<_> = core::iter::from_fn(|| state.take_doorbell()).collect();
        assert_eq!(all.len(), DOORBELLS - 1);
        assert!(!all.contains(&0), "that is its own");
        state.return_doorbell(7);
        assert_eq!(state.take_doorbell(), Some(7));
    }
}
