//! Connections to a station from processes that are not members.

use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketAddrUnix, SocketType};

use crate::child::{Process, ask_all};
use crate::directory;

fn socket_in(directory: &std::path::Path) -> PathBuf {
    let entries = std::fs::read_dir(directory).expect("a directory");
    let mut names = entries.map(|entry| entry.expect("an entry").path());
    names
        .find(|path| path.extension().is_some_and(|end| end == "station"))
        .expect("a station")
}

fn connect(path: &PathBuf) -> OwnedFd {
    let socket = rustix::net::socket(AddressFamily::UNIX, SocketType::SEQPACKET, None);
    let socket = socket.expect("a socket");
    let address = SocketAddrUnix::new(path).expect("an address");
    rustix::net::connect(&socket, &address).expect("connected");
    socket
}

fn send(socket: &OwnedFd, bytes: &[u8]) {
    // It may have been closed by now.
    let _ = rustix::net::send(socket, bytes, SendFlags::NOSIGNAL);
}

/// What the station sends; empty once it has closed.
fn hear(socket: &OwnedFd) -> Vec<u8> {
    let mut bytes = [0; 1000];
    let read = rustix::net::recv(socket, &mut bytes, RecvFlags::empty());
    let read = read.map_or(0, |(read, _)| read);
    bytes[..read].to_vec()
}

#[test]
fn a_thousand_invalid_connections_change_nothing() {
    let directory = directory();
    let mut all = vec![Process::start(directory.path(), 1)];
    let path = socket_in(directory.path());
    all.push(Process::start(directory.path(), 2));
    let connect_to_first = format!("connect {}", all[0].address);
    assert_eq!(all[1].ask(&connect_to_first), "connected 1");
    let before = all[0].ask("spare");
    let mut open = Vec::new();
    let mut random = 1_u64;
    for index in 0..1000 {
        let socket = connect(&path);
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(index);
        let mut bytes: Vec<_> = (0..random % 300)
            .map(|at| (random >> (at % 56)) as u8)
            .collect();
        match index % 4 {
            // A hello without descriptors, and packets that may follow one.
            0 => bytes = [b"SPST\x04", &[1 + (random >> 32) as u8 % 6][..], &bytes].concat(),
            1 => bytes = [b"SPST\x04\x01", &[7; 18][..]].concat(),
            _ => {}
        }
        if index % 3 > 0 {
            send(&socket, &bytes);
        }
        if index % 2 == 0 {
            open.push(socket);
        }
        if index == 500 {
            let made = ask_all(&mut all, |_| "make 1 1,2".into());
            assert_eq!(made, ["made, without {}"; 2], "among strangers");
        }
    }
    assert_eq!(
        ask_all(&mut all, |_| "make 2 1,2".into()),
        ["made, without {}"; 2]
    );
    let spare = |text: &str| -> usize {
        let digits: String = text
            .chars()
            .skip(1)
            .take_while(char::is_ascii_digit)
            .collect();
        digits.parse().expect("a number")
    };
    // Silent connections; and of each segment two rows: the peer's, and the own one while it
    // is in flight.
    let during = all[0].ask("spare");
    assert!(
        spare(&during) <= spare(&before) + 64 + 4,
        "{before} {during}"
    );
    drop(open);
    for epoch in [1, 2] {
        all[0].ask(&format!("drop {epoch}"));
    }
    let start = Instant::now();
    while all[0].ask("spare") != before {
        assert!(
            start.elapsed() < Duration::from_secs(20),
            "{before} {}",
            all[0].ask("spare")
        );
        thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn a_silent_connection_is_closed_in_time() {
    let directory = directory();
    let _station = Process::start(directory.path(), 1);
    let silent = connect(&socket_in(directory.path()));
    assert_eq!(hear(&silent), b"");
}

#[test]
fn another_version_is_refused_and_both_are_named() {
    let directory = directory();
    let _station = Process::start(directory.path(), 1);
    let stranger = connect(&socket_in(directory.path()));
    send(&stranger, b"SPST\x09whatever");
    let answer = hear(&stranger);
    let text = String::from_utf8_lossy(&answer);
    assert!(answer.starts_with(b"SPST"), "{text}");
    assert!(
        text.contains("version 9") && text.contains("station 4"),
        "{text}"
    );
    assert_eq!(hear(&stranger), b"", "and closed");
}

#[test]
fn a_closed_connection_ends_though_a_child_holds_the_socket() {
    let directory = directory();
    let mut station = Process::start(directory.path(), 1);
    let before = station.descriptors();
    let stranger = connect(&socket_in(directory.path()));
    while station.descriptors() == before {
        thread::sleep(Duration::from_millis(1));
    }
    let heir = station.fork();
    send(&stranger, b"nonsense");
    // Whatever is sent to that: it closes.
    while !hear(&stranger).is_empty() {}
    assert!(heir.lives());
}
