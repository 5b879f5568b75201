//! From members that know each other to a fabric: rows are made, handed over
//! through the founder, checked and mapped; then the group exists.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;

use super::cancel::Cancel;
use super::domain::Membership;
use super::doorbell::Bell;
use super::error::JoinError;
use super::fabric::{Parts, ShmFabric};
use super::memory::{self, Mapping};
use super::rendezvous::{JoinOptions, called_off};
use super::socket::{self, Deadline, Packet, Received};
use super::wire::Message;
use crate::peers::Rank;

/// One of the group, as the join tells.
#[derive(Debug)]
pub(super) struct Member {
    pub(super) pid: u32,
    pub(super) lifeline: OwnedFd,
    pub(super) bell: Bell,
    pub(super) announcement: Vec<u8>,
}

/// Whom this member talks to while the group is formed.
#[derive(Debug)]
pub(super) enum Hub {
    /// As the founder: with the members from rank 1 on.
    Members(Vec<OwnedFd>),
    /// As another: with the founder.
    Founder(OwnedFd),
}

/// Members that have found each other and share no memory yet. Dropping it
/// gives the group up for all.
#[derive(Debug)]
pub struct Formation {
    me: Rank,
    announcements: Vec<Vec<u8>>,
    pids: Vec<u32>,
    contacts: Vec<Contact>,
    hub: Hub,
    membership: Membership,
    timeout: Option<Duration>,
    cancel: Option<Cancel>,
}

/// How a member's end is noticed, and how it is woken.
type Contact = (OwnedFd, Bell);

/// The rows of all, as far as they have come.
type Rows = Vec<Option<Arc<Mapping>>>;

impl Formation {
    pub(super) fn new(
        me: Rank,
        members: Vec<Member>,
        hub: Hub,
        membership: Membership,
        options: &JoinOptions,
    ) -> Self {
        let (mut announcements, mut pids, mut contacts) = (vec![], vec![], vec![]);
        for member in members {
            announcements.push(member.announcement);
            pids.push(member.pid);
            contacts.push((member.lifeline, member.bell));
        }
        Self {
            me,
            announcements,
            pids,
            contacts,
            hub,
            membership,
            timeout: options.timeout,
            cancel: options.cancel.clone(),
        }
    }

    /// My rank: order of arrival, the founder first.
    pub fn me(&self) -> Rank {
        self.me
    }

    /// What the members announced, by rank.
    pub fn announcements(&self) -> &[Vec<u8>] {
        &self.announcements
    }

    /// Process ids of the members, by rank.
    pub fn pids(&self) -> Vec<u32> {
        self.pids.clone()
    }

    /// A random number that is this group's, the same at all members.
    pub fn group_id(&self) -> u64 {
        self.membership.group
    }

    /// Makes the rows, of these lengths by rank, the same at all members.
    /// Blocks until every member has mapped every row: either the group then
    /// exists for all, or it does not for anybody. Panics unless there is one
    /// length for each member.
    pub fn build(self, row_lens: &[usize]) -> Result<ShmFabric, JoinError> {
        let (domain, cancel) = (self.membership.domain.id, self.cancel.clone());
        called_off(self.exchange(row_lens), domain, cancel.as_ref())
    }

    fn exchange(mut self, row_lens: &[usize]) -> Result<ShmFabric, JoinError> {
        assert_eq!(row_lens.len(), self.pids.len(), "one row for each member");
        let contacts = core::mem::take(&mut self.contacts);
        let cancel = self.cancel.clone();
        let deadline = Deadline::after(self.timeout).or(cancel.as_ref());
        let fabric = match &self.hub {
            Hub::Members(connections) => {
                let lead = Lead {
                    formation: &self,
                    connections,
                    deadline,
                };
                lead.run(row_lens, contacts)
                    .inspect_err(|error| refuse(connections, error))?
            }
            Hub::Founder(connection) => self
                .follow(connection, row_lens, contacts, deadline)
                .inspect_err(|error| refuse([connection], error))?,
        };
        Ok(fabric.with_membership(self.membership))
    }

    /// My own row, and room for those that are to come.
    fn own_row(&self, row_lens: &[usize]) -> Result<(Rows, OwnedFd), JoinError> {
        let (own, file) = memory::create_row(row_lens[self.me.index()])?;
        let mut rows: Rows = vec![None; row_lens.len()];
        rows[self.me.index()] = Some(own);
        Ok((rows, file))
    }

    /// Takes from the system all that the fabric needs, its thread included:
    /// before the others are told that this member is ready. Afterwards the
    /// group may exist, and nothing may fail any more.
    fn start(&self, rows: Rows, contacts: Vec<Contact>) -> Result<ShmFabric, JoinError> {
        let lost = JoinError::Nonsense {
            pid: self.pids[0],
            what: "not all rows".into(),
        };
        let mappings = rows.into_iter().collect::<Option<Vec<_>>>().ok_or(lost)?;
        let mut bells = Vec::new();
        let mut lifelines = Vec::new();
        for (rank, (lifeline, bell)) in contacts.into_iter().enumerate() {
            bells.push(bell);
            if rank != self.me.index() {
                lifelines.push((Rank(rank as u16), lifeline));
            }
        }
        ShmFabric::new(Parts {
            me: self.me,
            mappings,
            bells,
            lifelines,
        })
    }

    fn timed_out(&self) -> JoinError {
        JoinError::Timeout {
            domain: self.membership.domain.id,
            wanted: self.pids.len(),
            come: Some(self.pids.len()),
        }
    }

    /// Takes over a row that came in a packet from `from`.
    fn take_row(
        &self,
        from: u32,
        mut packet: Packet,
        rows: &mut Rows,
        row_lens: &[usize],
        expected: Option<Rank>,
    ) -> Result<Rank, JoinError> {
        let nonsense = |what: &str| JoinError::Nonsense {
            pid: from,
            what: what.into(),
        };
        let (rank, len) = match Message::read(&packet.bytes) {
            Some(Message::Row { rank, len }) => (rank, len),
            Some(Message::Refused { reason }) => {
                let founder = from;
                return Err(JoinError::Refused { founder, reason });
            }
            _ => return Err(nonsense("no row")),
        };
        let free = rows.get(rank.index()).is_some_and(Option::is_none);
        if !free || expected.is_some_and(|expected| expected != rank) {
            return Err(nonsense("a row of somebody else"));
        }
        let ours = row_lens[rank.index()];
        if len != ours as u64 {
            return Err(JoinError::RowMismatch {
                rank: rank.0,
                ours: ours as u64,
                theirs: len,
            });
        }
        let file = packet
            .fds
            .pop()
            .ok_or_else(|| nonsense("a row without memory"))?;
        rows[rank.index()] = Some(memory::open_row(file, rank.0, from, ours)?);
        Ok(rank)
    }

    /// As a member that did not found.
    fn follow(
        &self,
        connection: &OwnedFd,
        row_lens: &[usize],
        contacts: Vec<Contact>,
        deadline: Deadline<'_>,
    ) -> Result<ShmFabric, JoinError> {
        let founder = self.pids[0];
        let (mut rows, file) = self.own_row(row_lens)?;
        let lost = |errno| match errno {
            Errno::TIMEDOUT => self.timed_out(),
            _ => JoinError::MemberLost { pid: founder },
        };
        let row = Message::Row {
            rank: self.me,
            len: row_lens[self.me.index()] as u64,
        };
        socket::send(connection, &row.write(), &[file.as_fd()], deadline).map_err(lost)?;
        while rows.iter().any(Option::is_none) {
            let packet = socket::receive_until(connection, deadline).map_err(lost)?;
            self.take_row(founder, packet, &mut rows, row_lens, None)?;
        }
        let fabric = self.start(rows, contacts)?;
        let mapped = Message::Mapped.write();
        socket::send(connection, &mapped, &[], deadline).map_err(lost)?;
        let said = socket::receive_until(connection, deadline);
        match said.map(|packet| Message::read(&packet.bytes)) {
            Ok(Some(Message::Formed)) => Ok(fabric),
            Ok(Some(Message::Refused { reason })) => Err(JoinError::Refused { founder, reason }),
            Ok(_) => Err(JoinError::Nonsense {
                pid: founder,
                what: "not whether the group is formed".into(),
            }),
            // The founder may have died after the decision: the record tells.
            Err(_) if self.membership.formed_or_void()? => Ok(fabric),
            Err(errno) => Err(lost(errno)),
        }
    }
}

/// The founder's part of the exchange.
struct Lead<'a> {
    formation: &'a Formation,
    connections: &'a [OwnedFd],
    deadline: Deadline<'a>,
}

impl Lead<'_> {
    fn pid(&self, at: usize) -> u32 {
        self.formation.pids[at + 1]
    }

    fn run(&self, row_lens: &[usize], contacts: Vec<Contact>) -> Result<ShmFabric, JoinError> {
        let (mut rows, own) = self.formation.own_row(row_lens)?;
        let mut files: Vec<Option<OwnedFd>> = row_lens.iter().map(|_| None).collect();
        files[0] = Some(own);
        self.one_each(|at, packet| {
            let copy = packet.fds.first().map(OwnedFd::try_clone);
            let expected = Some(Rank(at as u16 + 1));
            let rank =
                self.formation
                    .take_row(self.pid(at), packet, &mut rows, row_lens, expected)?;
            let copy = copy
                .transpose()
                .map_err(JoinError::system("keeping a row"))?;
            files[rank.index()] = copy;
            Ok(())
        })?;
        for at in 0..self.connections.len() {
            self.hand_out(at, &files, row_lens)?;
        }
        drop(files);
        let fabric = self.formation.start(rows, contacts)?;
        self.one_each(|at, packet| match Message::read(&packet.bytes) {
            Some(Message::Mapped) => Ok(()),
            _ => Err(JoinError::Nonsense {
                pid: self.pid(at),
                what: "not that it has mapped the rows".into(),
            }),
        })?;
        if !self.formation.membership.commit(self.deadline)? {
            let domain = self.formation.membership.domain.id;
            return Err(JoinError::GivenUp { domain });
        }
        for connection in self.connections {
            // Whoever cannot be told reads the record, or is dead by now.
            let _ = socket::send(connection, &Message::Formed.write(), &[], self.deadline);
        }
        Ok(fabric)
    }

    /// Sends a member the rows of all others.
    fn hand_out(
        &self,
        at: usize,
        files: &[Option<OwnedFd>],
        row_lens: &[usize],
    ) -> Result<(), JoinError> {
        for (rank, file) in files.iter().enumerate().filter(|&(rank, _)| rank != at + 1) {
            let row = Message::Row {
                rank: Rank(rank as u16),
                len: row_lens[rank] as u64,
            };
            let fds: Vec<_> = file.iter().map(OwnedFd::as_fd).collect();
            socket::send(&self.connections[at], &row.write(), &fds, self.deadline).map_err(
                |errno| match errno {
                    Errno::TIMEDOUT => self.formation.timed_out(),
                    _ => JoinError::MemberLost { pid: self.pid(at) },
                },
            )?;
        }
        Ok(())
    }

    /// Takes one packet from every member, in the order they come; the death
    /// of any of them ends it.
    fn one_each(
        &self,
        mut take: impl FnMut(usize, Packet) -> Result<(), JoinError>,
    ) -> Result<(), JoinError> {
        let mut silent: Vec<usize> = (0..self.connections.len()).collect();
        while !silent.is_empty() {
            let mut fds: Vec<_> = (0..self.connections.len())
                .map(|at| {
                    let events = if silent.contains(&at) {
                        PollFlags::IN
                    } else {
                        // Ready only when it is closed.
                        PollFlags::empty()
                    };
                    PollFd::new(&self.connections[at], events)
                })
                .collect();
            if !socket::wait(&mut fds, self.deadline)
                .map_err(JoinError::system("waiting for members"))?
            {
                return Err(self.formation.timed_out());
            }
            let ready: Vec<_> = fds.iter().map(PollFd::revents).collect();
            for (at, ready) in ready.into_iter().enumerate().filter(|(_, r)| !r.is_empty()) {
                let waiting = silent.iter().position(|&silent| silent == at);
                match (waiting, socket::receive(&self.connections[at])) {
                    (Some(place), Received::Packet(packet)) => {
                        if let Some(Message::Refused { reason }) = Message::read(&packet.bytes) {
                            let pid = self.pid(at);
                            return Err(JoinError::MemberFailed { pid, reason });
                        }
                        take(at, packet)?;
                        silent.swap_remove(place);
                    }
                    (_, Received::Nothing) if !ready.contains(PollFlags::HUP) => {}
                    _ => return Err(JoinError::MemberLost { pid: self.pid(at) }),
                }
            }
        }
        Ok(())
    }
}

/// Tells those at the other end why there is no group.
fn refuse<'a>(connections: impl IntoIterator<Item = &'a OwnedFd>, error: &JoinError) {
    let reason = error.to_string();
    let refused = Message::Refused { reason }.write();
    let at_once = Deadline::after(Some(Duration::ZERO));
    for connection in connections {
        // Whoever cannot be told sees the connection close.
        let _ = socket::send(connection, &refused, &[], at_once);
    }
}
