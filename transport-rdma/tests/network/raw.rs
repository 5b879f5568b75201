//! A peer that is a plain socket, and the frames of stations.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use spindle_dds_transport::hybrid::Station;

use super::group::{DOMAIN, LONG};

pub(crate) const VERSION: u8 = 4;
pub(crate) const HELLO: u8 = 1;
pub(crate) const REFUSED: u8 = 2;
pub(crate) const PROOF: u8 = 3;
pub(crate) const OFFER: u8 = 4;
pub(crate) const VERDICT: u8 = 5;
pub(crate) const KEY_EXCHANGE: u8 = 6;
/// The code of a refusal of another version.
pub(crate) const OF_VERSION: u8 = 4;

pub(crate) fn frame(version: u8, kind: u8, body: &[u8]) -> Vec<u8> {
    let len = (body.len() as u16).to_le_bytes();
    [b"SPNT", &[version, kind][..], &len, body].concat()
}

/// The address of a station on a host of its own.
pub(crate) fn hello(domain: u32, id: u128, has_secret: bool) -> Vec<u8> {
    hello_of(domain, id, u8::from(has_secret))
}

/// With the code of its use of encryption: 0 without a secret; 1 is off, 2 auto, 3 required.
pub(crate) fn hello_of(domain: u32, id: u128, encryption: u8) -> Vec<u8> {
    let host = id ^ 0xffff;
    let address = [b"net1", &host.to_le_bytes()[..], &id.to_le_bytes(), &[0]].concat();
    let body = [
        &domain.to_le_bytes()[..],
        &id.to_le_bytes(),
        &[encryption],
        &[7; 32],
        &address,
    ];
    frame(VERSION, HELLO, &body.concat())
}

pub(crate) fn proof(secret: &[u8], role: u8, caller: &[u8], called: &[u8]) -> Vec<u8> {
    let mac = Hmac::<Sha256>::new_from_slice(secret).expect("any key");
    let mac = mac
        .chain_update(b"spindle-dds handshake 1")
        .chain_update([role])
        .chain_update(caller)
        .chain_update(called);
    frame(VERSION, PROOF, &mac.finalize().into_bytes())
}

/// Reads one frame; `None` if the stream ends.
pub(crate) fn read_frame(stream: &mut impl Read) -> Option<Vec<u8>> {
    let mut header = [0; 8];
    stream.read_exact(&mut header).ok()?;
    let mut body = vec![0; usize::from(u16::from_le_bytes([header[6], header[7]]))];
    stream.read_exact(&mut body).ok()?;
    Some([&header[..], &body].concat())
}

/// The reason of a refusal.
pub(crate) fn refusal(stream: &mut TcpStream) -> String {
    let frame = read_frame(stream).expect("a refusal");
    assert_eq!(frame[5], REFUSED, "{frame:?}");
    String::from_utf8(frame[9..].to_vec()).expect("text")
}

pub(crate) fn connect_raw(station: &Station) -> TcpStream {
    let stream = TcpStream::connect(station.listening().expect("it listens"));
    let stream = stream.expect("connected");
    stream.set_read_timeout(Some(LONG)).expect("set");
    stream
}

/// The verdict of a station without RDMA.
pub(crate) fn no_rdma() -> Vec<u8> {
    frame(VERSION, VERDICT, &[0])
}

/// A peer of a station without a secret, with the handshake done.
pub(crate) fn peer(station: &Station, id: u128) -> TcpStream {
    let mut stream = authenticated(station, id);
    stream.write_all(&no_rdma()).expect("sent");
    let answer = read_frame(&mut stream).expect("its verdict");
    assert_eq!(answer, no_rdma());
    stream
}

/// An authenticated connection to a station without a secret and without RDMA.
pub(crate) fn authenticated(station: &Station, id: u128) -> TcpStream {
    let mut stream = connect_raw(station);
    let mine = hello(DOMAIN, id, false);
    stream.write_all(&mine).expect("sent");
    let theirs = read_frame(&mut stream).expect("its hello");
    stream
        .write_all(&proof(b"", 0, &mine, &theirs))
        .expect("sent");
    let answer = read_frame(&mut stream).expect("its proof");
    assert_eq!(answer, proof(b"", 1, &mine, &theirs));
    let offer = read_frame(&mut stream).expect("its offer");
    assert_eq!(offer, frame(VERSION, OFFER, b""));
    stream
}

/// Whether the other side has closed or reset it.
pub(crate) fn is_closed(mut stream: &TcpStream) -> bool {
    stream.set_nonblocking(true).expect("set");
    loop {
        match stream.read(&mut [0; 4096]) {
            Ok(0) => return true,
            Ok(_) => {}
            Err(error) => return error.kind() != ErrorKind::WouldBlock,
        }
    }
}
