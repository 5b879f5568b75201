//! How the members of a domain on one host find each other.
//!
//! Whoever finds no living record founds the group: it listens, writes the
//! record, and is member 0. The others find the record and say hello to it.
//! When all are there it tells everybody who they are. If it dies before that,
//! the others start over, and one of them founds.

use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use rustix::event::{EventfdFlags, PollFd, PollFlags};
use rustix::io::Errno;
use rustix::process::PidfdFlags;

use super::doorbell::{Bell, DoorbellChoice, DoorbellKind};
use super::error::JoinError;
use super::record::{self, Domain, Entry, Membership, Record, Stage};
use super::setup::{Formation, Hub, Member};
use super::socket::{self, Deadline, Packet, Received};
use super::wire::{self, ANNOUNCEMENT_LEN_MAX, Message};
use crate::peers::{MEMBERS_MAX, Rank};

/// How long a connection may stay silent before it is closed.
const HELLO_WITHIN: Duration = Duration::from_secs(2);

/// Most connections that have not said hello yet; the oldest gives way.
const STRANGERS_MAX: usize = 64;

/// Between two looks at a record whose founder is on its way in or out.
const LOOK_AGAIN_AFTER: Duration = Duration::from_millis(5);

/// How to join a domain on this host.
#[derive(Debug, Clone)]
pub struct JoinOptions {
    /// The domain.
    pub domain: u32,
    /// How many members the group has; the same at all.
    pub group_size: usize,
    /// Where the domain is recorded: a directory of this user alone, in one pid
    /// namespace. By default `$SPINDLE_DDS_DIR`, else
    /// `$XDG_RUNTIME_DIR/spindle-dds`, else `/dev/shm/spindle-dds-<uid>`.
    pub directory: Option<PathBuf>,
    /// How long `join`, and then `build`, wait for the others; `None`: as long
    /// as it takes.
    pub timeout: Option<Duration>,
    /// How this member sleeps. Members of a group may differ.
    pub doorbell: DoorbellChoice,
}

impl JoinOptions {
    /// The defaults for a group of a given size.
    pub fn new(domain: u32, group_size: usize) -> Self {
        Self {
            domain,
            group_size,
            directory: None,
            timeout: None,
            doorbell: DoorbellChoice::Auto,
        }
    }
}

/// Joins the domain's group on this host: blocks until `group_size` members
/// have come. Each gets what the others announced, at most
/// [`ANNOUNCEMENT_LEN_MAX`] bytes.
pub fn join(options: &JoinOptions, announcement: &[u8]) -> Result<Formation, JoinError> {
    if options.group_size == 0 || options.group_size > MEMBERS_MAX {
        return Err(JoinError::GroupSize {
            wanted: options.group_size,
            max: MEMBERS_MAX,
        });
    }
    if announcement.len() > ANNOUNCEMENT_LEN_MAX {
        return Err(JoinError::AnnouncementTooLong {
            len: announcement.len(),
            max: ANNOUNCEMENT_LEN_MAX,
        });
    }
    let joiner = Joiner {
        options,
        announcement,
        domain: Arc::new(Domain::open(options.domain, options.directory.as_deref())?),
        doorbell: DoorbellKind::choose(options.doorbell, options.group_size)?,
        me: Entry::here(random_word()?)?,
        deadline: Deadline::after(options.timeout),
    };
    loop {
        let attempt = match joiner.look()? {
            Found::Nothing(founder) => founder.gather(&joiner)?,
            Found::Gathering(record) => joiner.say_hello(&record)?,
        };
        if let Some(formation) = attempt {
            return Ok(formation);
        }
        if joiner.deadline.is_over() {
            return Err(joiner.timeout(None));
        }
        thread::sleep(LOOK_AGAIN_AFTER);
    }
}

/// Descriptors of this process for the others.
pub(super) fn own_descriptors(kind: DoorbellKind) -> Result<(OwnedFd, Bell), JoinError> {
    let pid = rustix::process::getpid();
    let lifeline = rustix::process::pidfd_open(pid, PidfdFlags::empty())
        .map_err(JoinError::system("opening a pidfd of the own process"))?;
    let event = rustix::event::eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
        .map_err(JoinError::system("making an event descriptor"))?;
    Ok((lifeline, Bell { kind, event }))
}

fn random_word() -> Result<u64, JoinError> {
    let mut bytes = [0; 8];
    let flags = rustix::rand::GetRandomFlags::empty();
    rustix::io::retry_on_intr(|| rustix::rand::getrandom(&mut bytes, flags))
        .map_err(JoinError::system("drawing a random number"))?;
    Ok(u64::from_le_bytes(bytes))
}

/// What the record says.
enum Found {
    /// No living group: this process founds it, and has written that down.
    Nothing(Founder),
    /// A founder that waits for members.
    Gathering(Record),
}

struct Joiner<'a> {
    options: &'a JoinOptions,
    announcement: &'a [u8],
    domain: Arc<Domain>,
    doorbell: DoorbellKind,
    me: Entry,
    deadline: Deadline,
}

impl Joiner<'_> {
    /// The one decision: found, join or go away. Under the lock.
    fn look(&self) -> Result<Found, JoinError> {
        let locked = self.domain.lock()?;
        if let Some(record) = locked.load()? {
            return match record.stage {
                Stage::Full | Stage::Formed => Err(JoinError::GroupExists {
                    domain: self.domain.id,
                    members: record.living(),
                }),
                Stage::Gathering if record.size != self.options.group_size => {
                    Err(JoinError::SizeMismatch {
                        domain: self.domain.id,
                        ours: self.options.group_size,
                        theirs: record.size,
                        founder: record.founder().pid,
                    })
                }
                Stage::Gathering => Ok(Found::Gathering(record)),
            };
        }
        let group = random_word()?;
        let listener = socket::listen(&self.domain.socket_path(group), MEMBERS_MAX as i32)
            .map_err(JoinError::system("listening for members"))?;
        // From here on the membership clears away what was made.
        let membership = Membership::new(Arc::clone(&self.domain), group, self.me.nonce);
        let record = Record {
            stage: Stage::Gathering,
            size: self.options.group_size,
            group,
            namespace: record::namespace()?,
            members: vec![self.me.clone()],
        };
        locked.save(&record)?;
        Ok(Found::Nothing(Founder {
            listener,
            membership,
            record,
            guests: Vec::new(),
        }))
    }

    fn timeout(&self, come: Option<usize>) -> JoinError {
        JoinError::Timeout {
            domain: self.domain.id,
            wanted: self.options.group_size,
            come,
        }
    }

    /// Joins a founder. `None` if it went away: look again.
    fn say_hello(&self, record: &Record) -> Result<Option<Formation>, JoinError> {
        let founder = record.founder().pid;
        let connection = match socket::connect(&self.domain.socket_path(record.group)) {
            Ok(connection) => connection,
            // Gone, or its queue is full.
            Err(Errno::NOENT | Errno::CONNREFUSED | Errno::AGAIN) => return Ok(None),
            Err(errno) => return Err(JoinError::system("connecting to the founder")(errno)),
        };
        let (lifeline, bell) = own_descriptors(self.doorbell)?;
        let hello = Message::Hello {
            nonce: self.me.nonce,
            size: self.options.group_size as u32,
            doorbell: self.doorbell,
            announcement: self.announcement.to_vec(),
        };
        let fds = [lifeline.as_fd(), bell.event.as_fd()];
        match socket::send(&connection, &hello.write(), &fds, self.deadline) {
            Ok(()) => {}
            Err(Errno::PIPE | Errno::CONNRESET) => return Ok(None),
            Err(Errno::TIMEDOUT) => return Err(self.timeout(None)),
            Err(errno) => return Err(JoinError::system("saying hello to the founder")(errno)),
        }
        self.be_told(record, founder, connection)
    }

    /// Waits to be told who the members are.
    fn be_told(
        &self,
        record: &Record,
        founder: u32,
        connection: OwnedFd,
    ) -> Result<Option<Formation>, JoinError> {
        let nonsense = |what: &str| JoinError::Nonsense {
            pid: founder,
            what: what.into(),
        };
        let mut me = None;
        let mut members: Vec<Member> = Vec::with_capacity(record.size);
        while members.len() < record.size {
            let mut packet = match socket::receive_until(&connection, self.deadline) {
                Ok(packet) => packet,
                Err(Errno::TIMEDOUT) => return Err(self.timeout(None)),
                Err(_) => return Ok(None),
            };
            match Message::read(&packet.bytes) {
                Some(Message::Member {
                    group,
                    you,
                    rank,
                    pid,
                    doorbell,
                    announcement,
                }) if group == record.group
                    && rank.index() == members.len()
                    && me.is_none_or(|me| me == you) =>
                {
                    me = Some(you);
                    let Some((lifeline, bell)) =
                        wire::check_descriptors(&mut packet, pid, doorbell)
                    else {
                        // That member has died already, and with it this attempt.
                        return Ok(None);
                    };
                    members.push(Member {
                        pid,
                        lifeline,
                        bell,
                        announcement,
                    });
                }
                Some(Message::Refused { reason }) => {
                    return Err(JoinError::Refused { founder, reason });
                }
                _ => return Err(nonsense("not the list of members")),
            }
        }
        let me = me.filter(|me| me.index() > 0 && me.index() < record.size);
        let me = me.ok_or_else(|| nonsense("a rank outside the group"))?;
        let membership = Membership::new(Arc::clone(&self.domain), record.group, self.me.nonce);
        Ok(Some(Formation::new(
            me,
            members,
            Hub::Founder(connection),
            membership,
            self.options.timeout,
        )))
    }
}

/// A connection to the founder.
struct Guest {
    connection: OwnedFd,
    pid: u32,
    speak_until: Deadline,
    hello: Option<Hello>,
}

/// What a guest has said.
struct Hello {
    entry: Entry,
    member: Member,
}

struct Founder {
    listener: OwnedFd,
    membership: Membership,
    record: Record,
    guests: Vec<Guest>,
}

impl Founder {
    /// Receives members until all are there.
    fn gather(mut self, joiner: &Joiner<'_>) -> Result<Option<Formation>, JoinError> {
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

    fn wait(&self, deadline: Deadline) -> Result<(), JoinError> {
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
            Received::End => false,
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
        let locked = joiner.domain.lock()?;
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
            joiner.options.timeout,
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
