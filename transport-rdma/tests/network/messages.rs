//! Messages over streams.

use std::io::{Read, Write};
use std::thread;
use std::time::Duration;

use spindle_dds_transport::hybrid::HybridError;
use spindle_dds_transport::{
    FABRIC_AREA, Fabric, MESSAGE_LEN_MAX, Park, PeerSet, Rank, StationError, StationEvent,
    WakeInterest, WakeReason,
};

use super::group::{self, alone, apart, event, loss, network, segment, soon, until};
use super::raw::peer;

const A: usize = FABRIC_AREA;

#[test]
fn messages_arrive_whole_and_in_order_in_both_directions() {
    let stations = apart(2, &network());
    let lens = [0, 1, 7, 16_383, 16_384, 16_385, 100_000, MESSAGE_LEN_MAX];
    let message = |from: u128, at: usize| {
        let byte = |index: usize| (index * 7 + at * 31) as u8 ^ from as u8;
        (0..lens[at]).map(byte).collect::<Vec<_>>()
    };
    thread::scope(|scope| {
        for (me, other) in [(0, 1), (1, 0)] {
            let (station, peer) = (&stations[me], &stations[other]);
            scope.spawn(move || {
                for at in 0..lens.len() {
                    let bytes = message(station.id(), at);
                    station.send(peer.id(), &bytes).expect("sent");
                }
            });
            scope.spawn(move || {
                let from = peer.id();
                assert_eq!(event(station), StationEvent::Connected { id: from });
                for at in 0..lens.len() {
                    let bytes = message(from, at);
                    assert!(
                        event(station) == StationEvent::Message { from, bytes },
                        "{at}"
                    );
                }
            });
        }
    });
    let long = stations[0].send(2, &vec![0; MESSAGE_LEN_MAX + 1]);
    let long = long.expect_err("too long");
    assert!(
        matches!(long, HybridError::Station(StationError::TooLong { .. })),
        "{long}"
    );
    let unknown = stations[0].send(9, b"?").expect_err("unknown").to_string();
    assert!(unknown.contains("is not connected"), "{unknown}");
}

/// A peer that reads no messages costs its sender a bounded number of bytes.
#[test]
fn messages_that_a_peer_does_not_read_are_refused_at_the_bound() {
    let station = alone(1, network());
    let _silent = peer(&station, 7);
    let message = vec![0; MESSAGE_LEN_MAX];
    let mut sent = 0;
    let refused = loop {
        match station.send(7, &message) {
            Ok(()) => sent += 1,
            Err(error) => break error,
        }
    };
    assert!((16..100).contains(&sent), "{sent}");
    assert!(
        matches!(
            refused,
            HybridError::Station(StationError::Full { id: 7, .. })
        ),
        "{refused}"
    );
}

/// A peer that sends more than is taken here is lost: memory is bounded.
#[test]
fn messages_that_are_not_taken_become_their_senders_failure() {
    let stations = apart(2, &network());
    let message = vec![0; MESSAGE_LEN_MAX];
    // Until the failure is reported.
    while stations[0].send(2, &message).is_ok()
        || stations[0].stream_state(2).is_some_and(|link| link.sending)
    {
        thread::sleep(Duration::from_millis(1));
    }
    let (id, cause) = loss(&stations[1]);
    assert!(id == 1 && cause.contains("wait here"), "{cause}");
}

/// Messages pass while records of rows wait for a segment.
#[test]
fn messages_do_not_wait_for_segments() {
    let stations = apart(2, &network());
    let request = |me| group::request(&stations, me, 0, 4096);
    let early = stations[0].segment(&request(0), soon()).expect("a segment");
    let to: PeerSet = [Rank(1)].into_iter().collect();
    early.push_word(A, 7, &to);
    early.wake(&to, WakeReason::Data);
    until(|| stations[1].stream_state(1).is_some_and(|link| link.blocked));
    stations[0].send(2, b"make it").expect("sent");
    assert!(matches!(
        event(&stations[1]),
        StationEvent::Connected { id: 1 }
    ));
    assert!(matches!(
        event(&stations[1]),
        StationEvent::Message { from: 1, .. }
    ));
    early.push_word(A + 8, 8, &to);
    early.wake(&to, WakeReason::Data);
    let late = stations[1].segment(&request(1), soon()).expect("a segment");
    until(|| late.row(Rank(0)).load(A + 8) == 8);
    assert_eq!(late.row(Rank(0)).load(A), 7);
    assert_eq!(late.poll(), None);
}

/// A long message does not hold up later pushes.
#[test]
fn long_messages_and_pushes_share_a_stream() {
    let stations = apart(2, &network());
    let fabrics = segment(&stations, 4096);
    let to: PeerSet = [Rank(1)].into_iter().collect();
    let message = vec![5; MESSAGE_LEN_MAX];
    for value in 1..=100 {
        if value % 10 == 0 {
            stations[0].send(2, &message).expect("sent");
        }
        fabrics[0].push_word(A, value, &to);
        fabrics[0].wake(&to, WakeReason::Data);
    }
    until(|| fabrics[1].row(Rank(0)).load(A) == 100);
    assert!(matches!(
        event(&stations[1]),
        StationEvent::Connected { .. }
    ));
    for _ in 0..10 {
        let bytes = message.clone();
        assert!(event(&stations[1]) == StationEvent::Message { from: 1, bytes });
    }
}

/// A sleeper in a segment is woken by a message.
#[test]
fn messages_wake_a_sleeper() {
    let stations = apart(2, &network());
    let fabrics = segment(&stations, 4096);
    fabrics[1].announce_sleep(WakeInterest::Data);
    stations[0].send(2, b"wake up").expect("sent");
    assert!(fabrics[1].park(Some(group::LONG)));
    fabrics[1].announce_awake();
}

/// An invalid message is its sender's failure.
#[test]
fn an_invalid_record_among_messages_is_its_senders_failure() {
    let part = |at: u64, len: u32, slot: u16, kind: &[u8; 2]| {
        let [at, len, slot] = [
            &at.to_le_bytes()[..],
            &len.to_le_bytes(),
            &slot.to_le_bytes(),
        ];
        [at, len, slot, kind].concat()
    };
    let check = |bytes: &[u8], words: &str| {
        let station = alone(1, network());
        let mut peer = peer(&station, 7);
        peer.write_all(bytes).expect("sent");
        let (id, cause) = loss(&station);
        assert!(id == 7 && cause.contains(words), "{cause}");
    };
    check(&part(1, 8, 0, b"mp"), "which it cannot have");
    check(&part(0, u32::MAX, 0, b"ml"), "which it cannot have");
    check(&part(0, 8, 1, b"ml"), "belongs in none");
    let whole = [part(0, 16_384, 0, b"mp"), vec![0; 16_384]].concat();
    check(&whole.repeat(65), "of a message of more than");
    check(&part(0, 0, 0, b"by"), "has closed the connection");
}

/// A dropped peer is told, behind what is in flight, although it is slow and keeps sending.
#[test]
fn a_final_record_follows_what_is_in_flight() {
    let station = alone(1, network());
    let mut peer = peer(&station, 7);
    let message = vec![0; MESSAGE_LEN_MAX];
    while station.send(7, &message).is_ok() {}
    station.drop_peer(7);
    for _ in 0..10 {
        let ring = [&[0; 14][..], b"ra"].concat();
        peer.write_all(&ring).expect("sent");
    }
    let mut header = [0; 16];
    let mut kinds = Vec::new();
    while peer.read_exact(&mut header).is_ok() {
        let len = u32::from_le_bytes(header[8..12].try_into().expect("four bytes"));
        let mut bytes = vec![0; len as usize];
        peer.read_exact(&mut bytes).expect("a whole record");
        kinds.push([header[14], header[15]]);
    }
    assert_eq!(kinds.pop(), Some(*b"by"));
    assert!(kinds.iter().all(|kind| matches!(kind, b"mp" | b"ml")));
    // It did not wait for everything that was queued.
    assert!(kinds.len() < 16 * 64, "{}", kinds.len());
}
