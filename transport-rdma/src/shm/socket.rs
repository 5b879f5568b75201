//! Packets with descriptors between processes of one host, over Unix sockets.

use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, Timespec};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags,
    SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketFlags, SocketType,
};

use crate::retry::{self, Classified, ErrorClass};

/// Longest packet, in bytes.
pub(super) const PACKET_LEN_MAX: usize = 64 * 1024 + 64;

/// Most descriptors in one packet.
pub(super) const FDS_MAX: usize = 16;

/// When a wait ends.
#[derive(Debug, Clone, Copy)]
pub(super) struct Deadline {
    /// `None` is never.
    end: Option<Instant>,
}

impl Deadline {
    pub(super) fn after(timeout: Duration) -> Self {
        Self::at(Instant::now().checked_add(timeout))
    }

    pub(super) fn at(end: Option<Instant>) -> Self {
        Self { end }
    }

    pub(super) fn is_over(self) -> bool {
        self.end.is_some_and(|end| end <= Instant::now())
    }

    fn left(self) -> Option<Timespec> {
        let left = self.end?.saturating_duration_since(Instant::now());
        Timespec::try_from(left).ok()
    }
}

/// Waits until one of `fds` is ready; false at the deadline. Polling is repeated for a while where
/// it fails for want of memory.
pub(super) fn wait(fds: &mut [PollFd<'_>], deadline: Deadline) -> Result<bool, Errno> {
    loop {
        match retry::repeat(|| rustix::event::poll(fds, deadline.left().as_ref())) {
            Ok(0) if deadline.is_over() => return Ok(false),
            Ok(0) => {}
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
    let socket = retry::repeat(socket)?;
    let address = SocketAddrUnix::new(path)?;
    rustix::io::retry_on_intr(|| rustix::net::connect(&socket, &address))?;
    Ok(socket)
}

/// The next pending connection, if any.
pub(super) fn accept(listener: &OwnedFd) -> Result<Option<OwnedFd>, Errno> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    match rustix::net::accept_with(listener, flags) {
        Ok(connection) => Ok(Some(connection)),
        Err(Errno::AGAIN | Errno::INTR | Errno::CONNABORTED) => Ok(None),
        Err(errno) => Err(errno),
    }
}

/// Process and user at the other end of a connection. The process is 0 if it is not visible
/// in the pid namespace of this one.
pub(super) fn peer(connection: &OwnedFd) -> Result<(u32, u32), Errno> {
    // Not by rustix, whose process ids are never 0.
    let [pid, uid, _] = peer_option(connection, libc::SO_PEERCRED)?;
    Ok((pid as u32, uid as u32))
}

/// A pidfd of the process at the other end of a connection; `None` if it has ended and its
/// parent has waited for it. Fails where the kernel is older than 6.5.
pub(super) fn peer_pidfd(connection: &OwnedFd) -> Result<Option<OwnedFd>, Errno> {
    const SO_PEERPIDFD: libc::c_int = 77;
    match peer_option(connection, SO_PEERPIDFD) {
        // SAFETY: the kernel has just made this descriptor for this process, and nothing else
        // knows its number.
        Ok([fd]) => Ok(Some(unsafe { OwnedFd::from_raw_fd(fd) })),
        Err(Errno::SRCH | Errno::INVAL) => Ok(None),
        Err(errno) => Err(errno),
    }
}

/// Reads an option of a Unix socket that is `N` integers.
fn peer_option<const N: usize>(
    connection: &OwnedFd,
    option: libc::c_int,
) -> Result<[libc::c_int; N], Errno> {
    let mut value = [-1; N];
    let mut len = size_of_val(&value) as libc::socklen_t;
    // SAFETY: `value` has `len` bytes, of which the kernel writes at most `len`, and any bytes
    // are integers; `connection` is open.
    let done = unsafe {
        libc::getsockopt(
            connection.as_raw_fd(),
            libc::SOL_SOCKET,
            option,
            value.as_mut_ptr().cast(),
            &raw mut len,
        )
    };
    match done {
        0 => Ok(value),
        _ => Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO)),
    }
}

/// Sends one packet if the socket has room.
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

/// A received packet.
#[derive(Debug)]
pub(super) struct Packet {
    pub(super) bytes: Vec<u8>,
    pub(super) fds: Vec<OwnedFd>,
    /// Descriptors of it are lost: this process, or the system, had no more.
    pub(super) lacks_fds: bool,
}

/// The result of reading without waiting.
#[derive(Debug)]
pub(super) enum Received {
    Packet(Packet),
    Nothing,
    /// The kernel lacks memory now.
    Later,
    /// A packet whose bytes were truncated.
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
        Err(errno) => {
            return match errno.class() {
                ErrorClass::Transient => Received::Nothing,
                ErrorClass::OutOfResources => Received::Later,
                ErrorClass::Final => Received::End,
            };
        }
    };
    let mut fds = Vec::new();
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(sent) = message {
            fds.extend(sent);
        }
    }
    let (len, flags) = (message.bytes, message.flags);
    if flags.contains(ReturnFlags::TRUNC) {
        return Received::Cut;
    }
    if len == 0 {
        return Received::End;
    }
    bytes.truncate(len);
    Received::Packet(Packet {
        bytes,
        fds,
        lacks_fds: flags.contains(ReturnFlags::CTRUNC),
    })
}
