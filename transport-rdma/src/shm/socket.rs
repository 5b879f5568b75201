//! Packets with descriptors between processes of a host, in time.

use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags,
    SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketFlags, SocketType,
};

use super::cancel::Cancel;

/// Longest packet.
pub(super) const PACKET_LEN_MAX: usize = 64 * 1024 + 64;

/// Most descriptors in one packet.
const FDS_MAX: usize = 3;

/// When a wait ends: at a time, or when it is called off.
#[derive(Debug, Clone, Copy)]
pub(super) struct Deadline<'a> {
    /// `None` is never.
    end: Option<Instant>,
    cancel: Option<&'a Cancel>,
}

impl<'a> Deadline<'a> {
    pub(super) fn after(timeout: Option<Duration>) -> Self {
        Self {
            end: timeout.and_then(|timeout| Instant::now().checked_add(timeout)),
            cancel: None,
        }
    }

    /// Over also when `cancel` is said.
    pub(super) fn or(self, cancel: Option<&'a Cancel>) -> Self {
        Self { cancel, ..self }
    }

    pub(super) fn at(end: Option<Instant>) -> Self {
        Self { end, cancel: None }
    }

    pub(super) fn is_over(self) -> bool {
        self.is_cancelled() || self.end.is_some_and(|end| end <= Instant::now())
    }

    fn is_cancelled(self) -> bool {
        self.cancel.is_some_and(Cancel::is_cancelled)
    }

    /// The time of whichever is earlier; called off like the first.
    pub(super) fn earlier(self, other: Deadline<'_>) -> Self {
        let end = match (self.end, other.end) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        Self { end, ..self }
    }

    fn left(self) -> Option<Timespec> {
        let left = self.end?.saturating_duration_since(Instant::now());
        Timespec::try_from(left).ok()
    }
}

/// Waits until one of `fds` is ready; false when the time is over.
pub(super) fn wait<'a>(fds: &mut Vec<PollFd<'a>>, deadline: Deadline<'a>) -> Result<bool, Errno> {
    let Some(cancel) = deadline.cancel else {
        return wait_for(fds, deadline);
    };
    fds.push(PollFd::new(cancel.event(), PollFlags::IN));
    let ready = wait_for(fds, deadline);
    fds.pop();
    Ok(ready? && !cancel.is_cancelled())
}

fn wait_for(fds: &mut [PollFd<'_>], deadline: Deadline<'_>) -> Result<bool, Errno> {
    loop {
        match rustix::event::poll(fds, deadline.left().as_ref()) {
            Ok(0) if deadline.is_over() => return Ok(false),
            Ok(0) | Err(Errno::INTR) => {}
            Ok(_) => return Ok(true),
            Err(errno) => return Err(errno),
        }
    }
}

fn socket() -> Result<OwnedFd, Errno> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    rustix::net::socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)
}

pub(super) fn listen(path: &Path, backlog: i32) -> Result<OwnedFd, Errno> {
    let socket = socket()?;
    rustix::net::bind(&socket, &SocketAddrUnix::new(path)?)?;
    rustix::net::listen(&socket, backlog)?;
    Ok(socket)
}

pub(super) fn connect(path: &Path) -> Result<OwnedFd, Errno> {
    let socket = socket()?;
    let address = SocketAddrUnix::new(path)?;
    rustix::io::retry_on_intr(|| rustix::net::connect(&socket, &address))?;
    Ok(socket)
}

/// The next waiting connection, if any.
pub(super) fn accept(listener: &OwnedFd) -> Result<Option<OwnedFd>, Errno> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    match rustix::net::accept_with(listener, flags) {
        Ok(connection) => Ok(Some(connection)),
        Err(Errno::AGAIN | Errno::INTR | Errno::CONNABORTED) => Ok(None),
        Err(errno) => Err(errno),
    }
}

/// Process and user at the other end.
pub(super) fn peer(connection: &OwnedFd) -> Result<(u32, u32), Errno> {
    // (A process of another pid namespace would be 0 here; the record's
    // namespace keeps such processes from connecting.)
    let cred = rustix::net::sockopt::socket_peercred(connection)?;
    Ok((cred.pid.as_raw_nonzero().get() as u32, cred.uid.as_raw()))
}

/// Sends one packet; waits for room until the deadline.
pub(super) fn send(
    connection: &OwnedFd,
    bytes: &[u8],
    fds: &[BorrowedFd<'_>],
    deadline: Deadline<'_>,
) -> Result<(), Errno> {
    loop {
        match send_now(connection, bytes, fds) {
            Err(Errno::AGAIN) => {
                let mut fds = vec![PollFd::new(connection, PollFlags::OUT)];
                if !wait(&mut fds, deadline)? {
                    return Err(Errno::TIMEDOUT);
                }
            }
            sent => return sent,
        }
    }
}

/// Sends one packet if there is room.
pub(super) fn send_now(
    connection: &OwnedFd,
    bytes: &[u8],
    fds: &[BorrowedFd<'_>],
) -> Result<(), Errno> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FDS_MAX))];
    loop {
        let mut control = SendAncillaryBuffer::new(&mut space);
        if !fds.is_empty() && !control.push(SendAncillaryMessage::ScmRights(fds)) {
            return Err(Errno::INVAL);
        }
        let iov = [IoSlice::new(bytes)];
        match rustix::net::sendmsg(connection, &iov, &mut control, SendFlags::NOSIGNAL) {
            Ok(_) => return Ok(()),
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
}

/// A packet that has arrived.
#[derive(Debug)]
pub(super) struct Packet {
    pub(super) bytes: Vec<u8>,
    pub(super) fds: Vec<OwnedFd>,
}

/// What there is to read right now.
#[derive(Debug)]
pub(super) enum Received {
    Packet(Packet),
    Nothing,
    /// A packet of which bytes or descriptors are lost.
    Cut,
    /// The other end is closed.
    End,
}

/// Reads one packet without waiting.
pub(super) fn receive(connection: &OwnedFd) -> Received {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FDS_MAX))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut bytes = vec![0; PACKET_LEN_MAX];
    let flags = RecvFlags::CMSG_CLOEXEC;
    let iov = &mut [IoSliceMut::new(&mut bytes)];
    let message = match rustix::net::recvmsg(connection, iov, &mut control, flags) {
        Ok(message) => message,
        Err(Errno::AGAIN | Errno::INTR) => return Received::Nothing,
        Err(_) => return Received::End,
    };
    let mut fds = Vec::new();
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(sent) = message {
            fds.extend(sent);
        }
    }
    let cut = ReturnFlags::TRUNC | ReturnFlags::CTRUNC;
    if message.flags.intersects(cut) {
        return Received::Cut;
    }
    if message.bytes == 0 {
        return Received::End;
    }
    bytes.truncate(message.bytes);
    Received::Packet(Packet { bytes, fds })
}

/// Reads one packet, waiting for it until the deadline.
pub(super) fn receive_until(connection: &OwnedFd, deadline: Deadline<'_>) -> Result<Packet, Errno> {
    loop {
        match receive(connection) {
            Received::Packet(packet) => return Ok(packet),
            Received::End | Received::Cut => return Err(Errno::CONNRESET),
            Received::Nothing => {
                let mut fds = vec![PollFd::from_borrowed_fd(connection.as_fd(), PollFlags::IN)];
                if !wait(&mut fds, deadline)? {
                    return Err(Errno::TIMEDOUT);
                }
            }
        }
    }
}
