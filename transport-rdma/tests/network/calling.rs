//! Calls: which are accepted, and which are refused with which reason.

use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use spindle_dds_transport::hybrid::{
    CallFailureCause, EncryptionUse, HybridError, NetworkOptions, Station, host_of,
};
use spindle_dds_transport::{StationError, StationEvent, shm};

use super::group::{DOMAIN, LONG, alone, apart, event, host, loss, network, options, soon, until};
use super::raw::{self, HELLO, connect_raw, frame, hello, is_closed, peer, read_frame, refusal};

fn at(station: &Station) -> SocketAddr {
    station.listening().expect("it listens")
}

fn with_secret(secret: &str) -> NetworkOptions {
    NetworkOptions {
        secret: Some(secret.into()),
        ..network()
    }
}

#[test]
fn a_call_connects_both_and_both_get_an_event() {
    for network in [network(), with_secret("open")] {
        let (one, two) = (alone(1, network.clone()), alone(2, network));
        assert_eq!(one.call(at(&two), soon()).expect("called"), 2);
        assert_eq!(event(&one), StationEvent::Connected { id: 2 });
        assert_eq!(event(&two), StationEvent::Connected { id: 1 });
        // A second call changes nothing.
        assert_eq!(one.call(at(&two), soon()).expect("called"), 2);
        assert_eq!(two.call(at(&one), soon()).expect("called"), 1);
        assert_eq!(two.connect(&one.address(), soon()).expect("there"), 1);
        for station in [&one, &two] {
            assert_eq!(station.next_event(Duration::ZERO), None);
        }
    }
}

#[test]
fn a_station_knows_itself() {
    let station = alone(1, network());
    let called = station.call(at(&station), soon());
    assert!(
        matches!(called, Err(HybridError::ThisStation)),
        "{called:?}"
    );
    let called = station.connect(&station.address(), soon());
    assert!(
        matches!(called, Err(HybridError::ThisStation)),
        "{called:?}"
    );
    assert_eq!(station.next_event(Duration::ZERO), None);
}

/// Otherwise no station would listen where others look for one, once the other process is gone.
#[test]
fn a_station_listens_at_its_port_once_that_is_free() {
    let [low, high, ..] = std::process::id().to_le_bytes();
    // Only this process uses it.
    let port: SocketAddr = ([127, 78, high, low], 7400).into();
    let other = TcpListener::bind(port).expect("a listener");
    let listen = NetworkOptions {
        listen: port,
        ..network()
    };
    let (one, two) = (alone(1, listen), alone(2, network()));
    assert_ne!(at(&one), port);
    assert_eq!(one.missing_port(), Some(port));
    let called = one.call(port, Instant::now() + Duration::from_millis(50));
    assert!(matches!(called, Err(HybridError::Unreachable { .. })));
    drop(other);
    until(|| one.missing_port().is_none());
    assert_eq!(two.call(port, soon()).expect("called"), 1);
    let called = one.call(port, soon());
    assert!(
        matches!(called, Err(HybridError::ThisStation)),
        "{called:?}"
    );
    // It is also reached at its first port.
    let three = alone(3, network());
    assert_eq!(three.connect(&one.address(), soon()).expect("there"), 1);
}

#[test]
fn a_closed_station_is_known_on_its_host() {
    let (here, there) = (host(), host());
    let open = |directory, id| Station::open(&options(directory, id, network()));
    let [one, two] = [1, 2].map(|id| open(&here, id).expect("a station"));
    let three = open(&there, 3).expect("a station");
    let [two_at, three_at] = [&two, &three].map(Station::address);
    assert!(!one.has_closed(&two_at) && !one.has_closed(b"what"));
    two.close();
    three.close();
    assert!(one.has_closed(&two_at));
    assert!(!one.has_closed(&three_at), "unknown on this host");
}

/// A contact on the same host is connected by shared memory.
#[test]
fn stations_of_one_host_connect_by_shared_memory() {
    let directory = host();
    let open = |id| Station::open(&options(&directory, id, network())).expect("a station");
    let (one, two) = (open(1), open(2));
    assert_eq!(one.call(at(&two), soon()).expect("called"), 2);
    assert!(one.stream_state(2).is_none() && two.stream_state(1).is_none());
    one.send(2, b"near").expect("sent");
    let message = StationEvent::Message {
        from: 1,
        bytes: b"near".to_vec(),
    };
    assert_eq!(event(&two), StationEvent::Connected { id: 1 });
    assert_eq!(event(&two), message);
}

#[test]
fn hosts_differ_by_their_directories() {
    let (here, there) = (host(), host());
    let id =
        |directory: &tempfile::TempDir| shm::host_id(7, Some(directory.path())).expect("an id");
    assert_eq!(id(&here), id(&here));
    assert_ne!(id(&here), id(&there));
    let station = Station::open(&options(&here, 1, network())).expect("a station");
    assert_eq!(host_of(&station.address()), Some(id(&here)));
    assert!(station.address().len() <= 1024);
    assert_eq!(host_of(b"what"), None);
}

#[test]
fn simultaneous_calls_make_one_connection() {
    for round in 0..50 {
        let (one, two) = (alone(1, network()), alone(2, network()));
        let by_contact = round % 2 == 0;
        let call = |from: &Station, to: &Station| match by_contact {
            true => from.call(at(to), soon()).expect("called"),
            false => from.connect(&to.address(), soon()).expect("called"),
        };
        thread::scope(|scope| {
            let called = scope.spawn(|| call(&one, &two));
            assert_eq!(call(&two, &one), 1);
            assert_eq!(called.join().expect("no panic"), 2);
        });
        for (station, id) in [(&one, 2), (&two, 1)] {
            assert_eq!(event(station), StationEvent::Connected { id });
            assert_eq!(station.next_event(Duration::ZERO), None, "{round}");
            assert!(station.stream_state(id).is_some_and(|link| link.sending));
        }
        one.send(2, b"?").expect("sent");
        assert!(matches!(event(&two), StationEvent::Message { from: 1, .. }));
        two.send(1, b"!").expect("sent");
        assert!(matches!(event(&one), StationEvent::Message { from: 2, .. }));
    }
}

/// Many simultaneous calls of one station make one connection each.
#[test]
fn all_stations_may_call_each_other_at_once() {
    let stations: Vec<_> = (1..=5).map(|id| alone(id, network())).collect();
    thread::scope(|scope| {
        for one in &stations {
            for other in stations.iter().filter(|other| other.id() != one.id()) {
                scope.spawn(|| one.connect(&other.address(), soon()).expect("called"));
            }
        }
    });
    for station in &stations {
        let events = core::iter::from_fn(|| station.next_event(Duration::ZERO));
        let mut from: Vec<_> = events
            .map(|event| match event {
                StationEvent::Connected { id } => id,
                other => panic!("{other:?}"),
            })
            .collect();
        from.sort_unstable();
        let others = (1..=5).filter(|&id| id != station.id());
        assert_eq!(from, others.collect::<Vec<_>>());
    }
}

fn refused(one: &Station, two: &Station, cause: CallFailureCause, words: &str) {
    let called = one.call(at(two), soon()).expect_err("refused");
    assert!(matches!(called, HybridError::Refused { .. }), "{called}");
    assert_eq!(called.call_failure(), cause);
    assert!(called.to_string().contains(words), "{called}");
    let called = one.connect(&two.address(), soon()).expect_err("refused");
    let kind = matches!(called, HybridError::Station(StationError::Refused { .. }));
    assert!(kind && called.to_string().contains(words), "{called}");
    for station in [one, two] {
        assert_eq!(station.next_event(Duration::ZERO), None);
    }
}

#[test]
fn stations_of_other_domains_and_secrets_are_refused_with_the_reason() {
    let mut other = options(&host(), 2, network());
    other.host.domain = 9;
    let other = Station::open(&other).expect("a station");
    let words = "the caller is of domain 3, the one called of 9";
    refused(
        &alone(1, network()),
        &other,
        CallFailureCause::Domain,
        words,
    );
    let station = |id, secret| alone(id, with_secret(secret));
    let refused = |one: &Station, two: &Station, words: &str| {
        refused(one, two, CallFailureCause::Secret, words);
    };
    let words = "the caller has another secret";
    refused(&station(1, "shut"), &station(2, "open"), words);
    let words = "the caller has no secret, the one called has one";
    refused(&alone(1, network()), &station(2, "open"), words);
    let words = "the caller has a secret, the one called has none";
    refused(&station(1, "open"), &alone(2, network()), words);
    let empty = Station::open(&options(&host(), 1, with_secret("")));
    assert!(matches!(empty, Err(HybridError::EmptySecret)), "{empty:?}");
}

#[test]
fn other_versions_are_refused_in_both_directions() {
    let station = alone(1, network());
    let mut stream = connect_raw(&station);
    stream
        .write_all(&frame(9, HELLO, b"who knows"))
        .expect("sent");
    let words = "that is version 9 of the protocol, here it is 4";
    assert_eq!(refusal(&mut stream), words);
    until(|| is_closed(&stream));
    // A refusal is understood in all versions.
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a listener");
    let contact = listener.local_addr().expect("bound");
    thread::scope(|scope| {
        scope.spawn(|| {
            let (mut stream, _) = listener.accept().expect("called");
            read_frame(&mut stream).expect("a hello");
            let reason = b"that is version 4 of the protocol, here it is 9";
            let later = [&[raw::OF_VERSION][..], reason].concat();
            stream
                .write_all(&frame(9, raw::REFUSED, &later))
                .expect("sent");
        });
        let called = station.call(contact, soon()).expect_err("refused");
        assert!(called.to_string().contains("here it is 9"), "{called}");
        assert_eq!(called.call_failure(), CallFailureCause::Version);
    });
}

/// A recorded handshake of a caller with the secret is useless, also where nothing is encrypted.
#[test]
fn a_handshake_cannot_be_replayed() {
    let proves = || NetworkOptions {
        encryption: EncryptionUse::Off,
        ..with_secret("open")
    };
    let (one, two) = (alone(1, proves()), alone(2, proves()));
    let between = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a listener");
    let contact = between.local_addr().expect("bound");
    let overheard = thread::scope(|scope| {
        let overhears = scope.spawn(|| {
            let (mut near, _) = between.accept().expect("called");
            let mut far = connect_raw(&two);
            let hello = read_frame(&mut near).expect("a hello");
            far.write_all(&hello).expect("sent");
            near.write_all(&read_frame(&mut far).expect("a hello"))
                .expect("sent");
            let proof = read_frame(&mut near).expect("a proof");
            far.write_all(&proof).expect("sent");
            for what in ["a proof", "an offer"] {
                near.write_all(&read_frame(&mut far).expect(what))
                    .expect("sent");
            }
            far.write_all(&read_frame(&mut near).expect("a verdict"))
                .expect("sent");
            near.write_all(&read_frame(&mut far).expect("a verdict"))
                .expect("sent");
            [hello, proof].concat()
        });
        assert_eq!(one.call(contact, soon()).expect("called"), 2);
        overhears.join().expect("no panic")
    });
    assert_eq!(loss(&two).0, 1);
    two.drop_peer(1);
    let mut replays = connect_raw(&two);
    replays.write_all(&overheard).expect("sent");
    assert_eq!(read_frame(&mut replays).expect("a hello")[5], HELLO);
    assert_eq!(refusal(&mut replays), "the caller has another secret");
    assert_eq!(two.next_event(Duration::from_millis(10)), None);
}

/// Finding out that a queue pair does not work takes longer than some callers have.
#[test]
fn an_authenticated_call_has_time_for_path_selection() {
    const BRIEF: Duration = Duration::from_secs(1);
    let (one, two) = (alone(1, network()), alone(2, network()));
    let between = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a listener");
    let contact = between.local_addr().expect("bound");
    let pass = |from: &mut TcpStream, to: &mut TcpStream| {
        to.write_all(&read_frame(from).expect("a frame"))
            .expect("sent");
    };
    thread::scope(|scope| {
        scope.spawn(|| {
            let (mut near, _) = between.accept().expect("called");
            let mut far = connect_raw(&two);
            // Hellos, proofs and an offer, verdicts.
            for back in [1, 2] {
                pass(&mut near, &mut far);
                for _ in 0..back {
                    pass(&mut far, &mut near);
                }
            }
            thread::sleep(BRIEF.mul_f32(1.2));
            pass(&mut near, &mut far);
            pass(&mut far, &mut near);
        });
        let called = one.call(contact, Instant::now() + BRIEF);
        assert_eq!(called.expect("called"), 2);
    });
}

/// A connected or lost peer is not replaced by another station of its id.
#[test]
fn an_id_belongs_to_one_peer() {
    let station = alone(1, network());
    let there = peer(&station, 7);
    let again = |words: &str| {
        let mut stream = connect_raw(&station);
        let mine = hello(DOMAIN, 7, false);
        stream.write_all(&mine).expect("sent");
        let theirs = read_frame(&mut stream).expect("a hello");
        stream
            .write_all(&raw::proof(b"", 0, &mine, &theirs))
            .expect("sent");
        let reason = refusal(&mut stream);
        assert!(reason.contains(words), "{reason}");
    };
    again("is connected");
    drop(there);
    assert_eq!(loss(&station).0, 7);
    again("is lost: the fabric cannot reach it: it ended its stream");
    station.drop_peer(7);
    let _back = peer(&station, 7);
    let mut itself = connect_raw(&station);
    let mine = hello(DOMAIN, 1, false);
    itself.write_all(&mine).expect("sent");
    let theirs = read_frame(&mut itself).expect("a hello");
    itself
        .write_all(&raw::proof(b"", 0, &mine, &theirs))
        .expect("sent");
    assert_eq!(refusal(&mut itself), "that is this station itself");
}

#[test]
fn a_dropped_peer_is_told_and_may_connect_again() {
    let stations = apart(2, &network());
    let [one, two] = &stations[..] else {
        panic!("two")
    };
    one.send(2, b"last words").expect("sent");
    one.drop_peer(2);
    assert!(matches!(event(two), StationEvent::Connected { .. }));
    assert!(matches!(event(two), StationEvent::Message { .. }));
    let (id, cause) = loss(two);
    assert!(
        id == 1 && cause.contains("has closed the connection"),
        "{cause}"
    );
    let unsent = one.send(2, b"?").expect_err("dropped").to_string();
    assert!(unsent.contains("is not connected"), "{unsent}");
    let unsent = two.send(1, b"?").expect_err("lost").to_string();
    assert!(unsent.contains("has closed the connection"), "{unsent}");
    // The other side still has it as lost.
    let back = one.connect(&two.address(), soon()).expect_err("refused");
    assert!(back.to_string().contains("is lost"), "{back}");
    two.drop_peer(1);
    assert_eq!(one.connect(&two.address(), soon()).expect("back"), 2);
    assert_eq!(event(two), StationEvent::Connected { id: 1 });
}

#[test]
fn calls_end_in_time_with_a_reason() {
    let station = alone(1, network());
    let closed = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a listener");
    let contact = closed.local_addr().expect("bound");
    let called = station.call(contact, Instant::now() + Duration::from_millis(50));
    let error = called.expect_err("silent");
    assert_eq!(error.call_failure(), CallFailureCause::Other);
    assert!(
        error.to_string().contains("did not answer in time"),
        "{error}"
    );
    drop(closed);
    let error = station.call(contact, soon()).expect_err("gone");
    assert_eq!(error.call_failure(), CallFailureCause::NotListening);
    assert!(error.to_string().contains("no station answers"), "{error}");
    let elsewhere = alone(2, network()).address();
    let error = station.connect(&elsewhere, soon()).expect_err("gone");
    assert!(error.to_string().contains("no station answers"), "{error}");
    let error = station.connect(b"what", soon()).expect_err("nonsense");
    assert!(error.to_string().contains("no address"), "{error}");
}

/// A station that closes a connection at once may be busy: it is called again until it is not.
#[test]
fn a_busy_station_is_called_again() {
    let (station, other) = (alone(1, network()), alone(2, network()));
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a listener");
    let contact = listener.local_addr().expect("bound");
    thread::scope(|scope| {
        scope.spawn(|| {
            drop(listener.accept().expect("called"));
            let (near, _) = listener.accept().expect("called again");
            let far = connect_raw(&other);
            let pass = |mut from: TcpStream, mut to: TcpStream| {
                // Until one of the stations closes.
                let _ = std::io::copy(&mut from, &mut to);
                let _ = to.shutdown(std::net::Shutdown::Write);
            };
            let copy = |stream: &TcpStream| stream.try_clone().expect("a copy");
            let (back, forth) = ((copy(&far), copy(&near)), (near, far));
            scope.spawn(move || pass(back.0, back.1));
            pass(forth.0, forth.1);
        });
        assert_eq!(station.call(contact, soon()).expect("called"), 2);
        assert!(matches!(event(&other), StationEvent::Connected { id: 1 }));
        station.close();
        other.close();
    });
}

/// Threads that block in a call of a closed station return.
#[test]
fn closing_ends_blocked_calls() {
    let station = alone(1, network());
    let silent = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a listener");
    let contact = silent.local_addr().expect("bound");
    thread::scope(|scope| {
        let calls = scope.spawn(|| station.call(contact, soon()));
        let looks = scope.spawn(|| station.next_event(LONG));
        // They probably block by now; if not, they must not.
        thread::sleep(Duration::from_millis(20));
        let start = Instant::now();
        station.close();
        let called = calls.join().expect("no panic").expect_err("closed");
        let closed = matches!(called, HybridError::Station(StationError::Closed));
        assert!(closed, "{called}");
        assert_eq!(looks.join().expect("no panic"), None);
        assert!(start.elapsed() < LONG, "they gave up by themselves");
    });
    station.close();
    let called = station.call(contact, soon()).expect_err("closed");
    assert!(
        matches!(called, HybridError::Station(StationError::Closed)),
        "{called}"
    );
    assert!(TcpStream::connect(at(&station)).is_err(), "it listens");
}

#[test]
fn closing_tells_the_peers() {
    let stations = apart(3, &network());
    stations[0].close();
    for other in &stations[1..] {
        let (id, cause) = loss(other);
        assert!(
            id == 1 && cause.contains("has closed the connection"),
            "{cause}"
        );
    }
    until(|| {
        stations[1]
            .stream_state(1)
            .is_some_and(|link| !link.sending && !link.receiving)
    });
}

#[test]
fn a_taken_port_is_replaced_by_another() {
    let one = alone(1, network());
    let same = NetworkOptions {
        listen: at(&one),
        ..network()
    };
    let two = alone(2, same);
    assert_ne!(at(&one), at(&two));
    assert_eq!(one.connect(&two.address(), soon()).expect("called"), 2);
    // Listening on all addresses, it is reached at one of them.
    let all = NetworkOptions {
        listen: (Ipv4Addr::UNSPECIFIED, 0).into(),
        ..network()
    };
    let three = alone(3, all);
    assert_eq!(one.connect(&three.address(), soon()).expect("called"), 3);
}

/// Without a network other hosts cannot be reached, and the error says so.
#[test]
fn a_station_without_network_refuses_other_hosts() {
    let mut only = options(&host(), 1, network());
    only.network = None;
    let (one, two) = (
        Station::open(&only).expect("a station"),
        alone(2, network()),
    );
    assert_eq!(one.listening(), None);
    let error = one.connect(&two.address(), soon()).expect_err("far");
    assert!(matches!(error, HybridError::NoNetwork { id: 2 }), "{error}");
    let error = one.expect_peer(&two.address()).expect_err("far");
    assert!(matches!(error, HybridError::NoNetwork { id: 2 }), "{error}");
    let error = one.call(at(&two), soon()).expect_err("far");
    assert!(matches!(error, HybridError::Unreachable { .. }), "{error}");
    one.expect_peer(&one.address()).expect("near");
}
