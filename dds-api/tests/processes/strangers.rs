//! Processes that connect to members and are not members.

use std::io::IoSlice;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use rustix::net::{
    AddressFamily, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketType,
};

use crate::member::Member;
use crate::times;

/// The number of connections; half of them stay open.
const STRANGERS: u64 = 1_000;
/// Maximum number of connections of strangers that a member keeps at once.
const STRANGERS_MAX: usize = 64;
/// Received descriptors that are not closed yet.
const IN_FLIGHT: usize = 16;
/// Memory in kB that the allocator may keep.
const MEMORY_KB: u64 = 16 << 10;

fn stations(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).expect("a directory");
    let names = entries.map(|entry| entry.expect("an entry").path());
    names
        .filter(|path| path.extension().is_some_and(|end| end == "station"))
        .collect()
}

fn connect(path: &Path) -> OwnedFd {
    let socket = rustix::net::socket(AddressFamily::UNIX, SocketType::SEQPACKET, None);
    let socket = socket.expect("a socket");
    let address = SocketAddrUnix::new(path).expect("an address");
    rustix::net::connect(&socket, &address).expect("connected");
    socket
}

/// Sends bytes and a number of descriptors. Ignores errors: the connection may be closed.
fn send(socket: &OwnedFd, bytes: &[u8], descriptors: usize) {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(8))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let descriptors = vec![socket.as_fd(); descriptors];
    if !descriptors.is_empty() {
        control.push(SendAncillaryMessage::ScmRights(&descriptors));
    }
    let iov = [IoSlice::new(bytes)];
    let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    let _ = rustix::net::sendmsg(socket, &iov, &mut control, flags);
}

/// Sends one of several kinds of invalid data.
fn send_invalid(socket: &OwnedFd, index: u64, random: u64) {
    let mut bytes: Vec<u8> = (0..random % 300)
        .map(|at| (random >> (at % 56)) as u8)
        .collect();
    match index % 8 {
        // Sends nothing.
        0 => return,
        // A hello without descriptors, with wrong ones, or with too many.
        1..=4 => bytes = [b"SPST\x01\x01", &random.to_le_bytes()[..], &[7; 10]].concat(),
        // A packet that may follow a hello.
        5 => bytes = [b"SPST\x01", &[2 + (random >> 32) as u8 % 4][..], &bytes].concat(),
        // Longer than any packet.
        6 => bytes = vec![random as u8; 100_000],
        _ => {}
    }
    let descriptors = [0, 0, 3, 8, 1, 3, 0, 2][(index % 8) as usize];
    send(socket, &bytes, descriptors);
}

#[test]
fn a_group_does_not_notice_strangers() {
    let directory = tempfile::tempdir().expect("a directory");
    let directory = directory.path().join("domains");
    let mut members: [Member; 2] = Member::group(&directory, 60_000);
    members[0].ask("publish");
    members[1].wait_for_samples(1, 2_000);
    let stations = stations(&directory);
    assert_eq!(stations.len(), 2);
    let before = members.each_ref().map(Member::descriptors);
    let memory = members.each_ref().map(Member::memory_kb);
    let mut open = Vec::new();
    let mut random = 1_u64;
    let strangers = STRANGERS * u64::from(times());
    for index in 0..strangers {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(index);
        let socket = connect(&stations[(random >> 60) as usize % 2]);
        send_invalid(&socket, index, random);
        if random >> 63 == 0 {
            open.push(socket);
        }
        if index % 64 == 0 {
            for (member, before) in members.iter().zip(before) {
                let now = member.descriptors();
                assert!(now <= before + STRANGERS_MAX + IN_FLIGHT, "{before} {now}");
            }
        }
    }
    assert!(open.len() as u64 > strangers / 3);
    let start = Instant::now();
    while members.each_ref().map(Member::descriptors) != before {
        let now = members.each_ref().map(Member::descriptors);
        assert!(
            start.elapsed() < Duration::from_secs(20),
            "{before:?} {now:?}"
        );
        thread::sleep(Duration::from_millis(1));
    }
    let after = members.each_ref().map(Member::memory_kb);
    for (before, after) in memory.iter().zip(after) {
        assert!(after <= before + MEMORY_KB, "{memory:?} {after}");
    }
    let published = members[0].count("rest");
    for member in &mut members {
        member.wait_for_samples(1, published);
        assert_eq!(member.count("received 1"), published);
        member.wait_for_members(2, Duration::ZERO);
        assert_eq!(member.ask("failed"), "");
    }
}
