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

use rustix::io::Errno;

use super::cancel::Cancel;
use super::descriptor;
use super::domain::{Domain, Membership};
use super::doorbell::{Bell, DoorbellChoice, DoorbellKind};
use super::error::JoinError;
use super::founder::Founder;
use super::process::{self, random_word};
use super::record::{Entry, Record, Stage};
use super::setup::{Formation, Hub, Member};
use super::socket::{self, Deadline};
use super::wire::{self, ANNOUNCEMENT_LEN_MAX, Message};
use crate::peers::MEMBERS_MAX;

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
    /// Ends `join`, and then `build`, before their time.
    pub cancel: Option<Cancel>,
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
            cancel: None,
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
        deadline: Deadline::after(options.timeout).or(options.cancel.as_ref()),
    };
    let joined = joiner.join();
    called_off(joined, options.domain, options.cancel.as_ref())
}

/// Whatever a join that was called off failed of, that is why.
pub(super) fn called_off<T>(
    result: Result<T, JoinError>,
    domain: u32,
    cancel: Option<&Cancel>,
) -> Result<T, JoinError> {
    let cancelled = cancel.is_some_and(Cancel::is_cancelled);
    result.map_err(|error| match cancelled {
        true => JoinError::Cancelled { domain },
        false => error,
    })
}

/// Descriptors of this process for the others.
pub(super) fn own_descriptors(kind: DoorbellKind) -> Result<(OwnedFd, Bell), JoinError> {
    let (lifeline, event) = (descriptor::own_pidfd()?, descriptor::event()?);
    Ok((lifeline, Bell { kind, event }))
}

/// What the record says.
enum Found {
    /// No living group: this process founds it, and has written that down.
    Nothing(Founder),
    /// A founder that waits for members.
    Gathering(Record),
}

/// One call of [`join`].
pub(super) struct Joiner<'a> {
    pub(super) options: &'a JoinOptions,
    pub(super) announcement: &'a [u8],
    pub(super) domain: Arc<Domain>,
    pub(super) doorbell: DoorbellKind,
    pub(super) me: Entry,
    pub(super) deadline: Deadline<'a>,
}

impl Joiner<'_> {
    /// Tries until the group has come together, or the time is over.
    fn join(&self) -> Result<Formation, JoinError> {
        loop {
            let attempt = match self.look()? {
                Found::Nothing(founder) => founder.gather(self)?,
                Found::Gathering(record) => self.say_hello(&record)?,
            };
            if let Some(formation) = attempt {
                return Ok(formation);
            }
            if self.deadline.is_over() {
                return Err(self.timeout(None));
            }
            thread::sleep(LOOK_AGAIN_AFTER);
        }
    }

    /// The one decision: found, join or go away. Under the lock.
    fn look(&self) -> Result<Found, JoinError> {
        let locked = self.domain.lock(self.deadline)?;
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
        self.domain.sweep();
        let group = random_word()?;
        let listener = socket::listen(&self.domain.socket_path(group), MEMBERS_MAX as i32)
            .map_err(JoinError::system("listening for members"))?;
        // From here on the membership clears away what was made.
        let membership = Membership::new(Arc::clone(&self.domain), group, self.me.nonce);
        let record = Record {
            stage: Stage::Gathering,
            size: self.options.group_size,
            group,
            namespace: process::namespace()?,
            members: vec![self.me.clone()],
        };
        locked.save(&record)?;
        Ok(Found::Nothing(Founder::new(listener, membership, record)))
    }

    pub(super) fn timeout(&self, come: Option<usize>) -> JoinError {
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
        let me = me.filter(|me| me.index() > 0);
        let me = me.filter(|me| {
            members
                .get(me.index())
                .is_some_and(|m| m.pid == self.me.pid)
        });
        let me = me.ok_or_else(|| nonsense("a rank outside the group"))?;
        let membership = Membership::new(Arc::clone(&self.domain), record.group, self.me.nonce);
        Ok(Some(Formation::new(
            me,
            members,
            Hub::Founder(connection),
            membership,
            self.options,
        )))
    }
}
