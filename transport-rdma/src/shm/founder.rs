//! The member that came first: it receives the others and tells them who all are.

use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;

use super::domain::Membership;
use super::error::JoinError;
use super::record::{Entry, Record, Stage};
use super::rendezvous::{Joiner, own_descriptors};
use super::setup::{Formation, Hub, Member};
use super::socket::{self, Deadline, Packet, Received};
use super::wire::{self, ANNOUNCEMENT_LEN_MAX, Message};
use crate::peers::Rank;

/// How long a connection may stay silent before it is closed.
const HELLO_WITHIN: Duration = Duration::from_secs(2);

/// Most connections that have not said hello yet; the oldest gives way.
const STRANGERS_MAX: usize = 64;

/// A connection to the founder.
struct Guest {
    connection: OwnedFd,
    pid: u32,
    speak_until: Deadline<'static>,
    hello: Option<Hello>,
}

/// What a guest has said.
struct Hello {
    entry: Entry,
    member: Member,
}

/// The founder of a group, while it is gathering.
pub(super) struct Founder {
    listener: OwnedFd,
    membership: Membership,
    record: Record,
    guests: Vec<Guest>,
}

impl Founder {
    /// `record` is written down and `listener` is where it says.
    pub(super) fn new(listener: OwnedFd, membership: Membership, record: Record) -> Self {
        Self {
            listener,
            membership,
            record,
            guests: Vec::new(),
        }
    }

    /// Receives members until all are there. `None` if the group came to
    /// nothing: look again.
    pub(super) fn gather(mut self, joiner: &Joiner<'_>) -> Result<Option<Formation>, JoinError> {
        while self.come() < self.record.size {
            if joiner.deadline.is_over() {
                return Err(joiner.timeout(Some(self.come())));
            }
            self.wait(joiner.deadline)?;
            for at in (0..self.guests.len()).rev() {
                if !self.listen_to(at) {
                    self.guests.remove(at);
                }
            }
            while let Some(connection) =
                socket::accept(&self.listener).map_err(JoinError::system("accepting members"))?
            {
                self.admit(connection);
            }
        }
        self.close(joiner)
    }

    /// How many are there, with myself.
    fn come(&self) -> usize {
        1 + self
            .guests
            .iter()
            .filter(|guest| guest.hello.is_some())
            .count()
    }

    fn wait(&self, deadline: Deadline<'_>) -> Result<(), JoinError> {
        let mut until = deadline;
        let mut fds = vec![PollFd::new(&self.listener, PollFlags::IN)];
        for guest in &self.guests {
            fds.push(PollFd::new(&guest.connection, PollFlags::IN));
            if guest.hello.is_none() {
                until = until.earlier(guest.speak_until);
            }
        }
        socket::wait(&mut fds, until).map_err(JoinError::system("waiting for members"))?;
        Ok(())
    }

    /// Lets in who is of the same user.
    fn admit(&mut self, connection: OwnedFd) {
        let user = rustix::process::geteuid().as_raw();
        let Ok((pid, uid)) = socket::peer(&connection) else {
            return;
        };
        if uid != user {
            tracing::warn!(pid, uid, "a process of another user tried to join");
            return;
        }
        let silent = |guest: &Guest| guest.hello.is_none();
        if self.guests.iter().filter(|guest| silent(guest)).count() >= STRANGERS_MAX
            && let Some(oldest) = self.guests.iter().position(silent)
        {
            self.guests.remove(oldest);
        }
        self.guests.push(Guest {
            connection,
            pid,
            speak_until: Deadline::after(Some(HELLO_WITHIN)),
            hello: None,
        });
    }

    /// Reads what a guest has to say; false if it is to go.
    fn listen_to(&mut self, at: usize) -> bool {
        let full = self.come() == self.record.size;
        let size = self.record.size;
        let guest = &mut self.guests[at];
        match socket::receive(&guest.connection) {
            Received::Nothing => guest.hello.is_some() || !guest.speak_until.is_over(),
            Received::End | Received::Cut => false,
            Received::Packet(_) if guest.hello.is_some() || full => false,
            Received::Packet(packet) => {
                guest.hello = hello(packet, guest.pid, size);
                if guest.hello.is_none() {
                    let reason = "that was no hello of this version and group size".into();
                    let refused = Message::Refused { reason }.write();
                    let at_once = Deadline::after(Some(Duration::ZERO));
                    // Whoever cannot be told is none of ours.
                    let _ = socket::send(&guest.connection, &refused, &[], at_once);
                }
                guest.hello.is_some()
            }
        }
    }

    /// All are there: writes down who they are, and tells them.
    fn close(mut self, joiner: &Joiner<'_>) -> Result<Option<Formation>, JoinError> {
        let (lifeline, bell) = own_descriptors(joiner.doorbell)?;
        let mut members = vec![Member {
            pid: joiner.me.pid,
            lifeline,
            bell,
            announcement: joiner.announcement.to_vec(),
        }];
        let mut connections = Vec::new();
        self.record.stage = Stage::Full;
        for guest in self.guests {
            if let Some(hello) = guest.hello {
                self.record.members.push(hello.entry);
                members.push(hello.member);
                connections.push(guest.connection);
            }
        }
        let locked = joiner.domain.lock(joiner.deadline)?;
        if self.membership.load(&locked)?.is_none() {
            return Ok(None);
        }
        locked.save(&self.record)?;
        drop(locked);
        joiner.domain.remove_socket(self.record.group);
        match tell(&self.record, &members, &connections, joiner) {
            Ok(()) => {}
            // Nobody has been promised anything yet: start over.
            Err(JoinError::MemberLost { .. }) => return Ok(None),
            Err(error) => return Err(error),
        }
        Ok(Some(Formation::new(
            Rank(0),
            members,
            Hub::Members(connections),
            self.membership,
            joiner.options,
        )))
    }
}

/// Tells each member who all are.
fn tell(
    record: &Record,
    members: &[Member],
    connections: &[OwnedFd],
    joiner: &Joiner<'_>,
) -> Result<(), JoinError> {
    for (at, connection) in connections.iter().enumerate() {
        for (rank, member) in members.iter().enumerate() {
            let message = Message::Member {
                group: record.group,
                you: Rank(at as u16 + 1),
                rank: Rank(rank as u16),
                pid: member.pid,
                doorbell: member.bell.kind,
                announcement: member.announcement.clone(),
            };
            let fds = [member.lifeline.as_fd(), member.bell.event.as_fd()];
            socket::send(connection, &message.write(), &fds, joiner.deadline).map_err(|errno| {
                match errno {
                    Errno::TIMEDOUT => joiner.timeout(Some(members.len())),
                    _ => JoinError::MemberLost {
                        pid: members[at + 1].pid,
                    },
                }
            })?;
        }
    }
    Ok(())
}

fn hello(mut packet: Packet, from: u32, wanted: usize) -> Option<Hello> {
    let Some(Message::Hello {
        nonce,
        size,
        doorbell,
        announcement,
    }) = Message::read(&packet.bytes)
    else {
        return None;
    };
    let (lifeline, bell) = wire::check_descriptors(&mut packet, from, doorbell)?;
    let entry = Entry::of(nonce, from)?;
    let fits = size as usize == wanted && announcement.len() <= ANNOUNCEMENT_LEN_MAX;
    fits.then_some(Hello {
        entry,
        member: Member {
            pid: from,
            lifeline,
            bell,
            announcement,
        },
    })
}
