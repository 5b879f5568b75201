//! Encrypted connections, and a station in the middle that passes on what it likes.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use spindle_dds_transport::hybrid::{
    CallFailureCause, EncryptionUse, HybridError, NetworkOptions, PeerPath, RdmaUse, Station,
    StationOptions,
};
use spindle_dds_transport::{
    FABRIC_AREA, Fabric, PeerSet, Rank, RdmaOptions, StationEvent, WakeReason,
};

use super::group::{alone, event, host, loss, network, options, segment, soon, until};
use super::raw::{connect_raw, read_frame, refusal};

const A: usize = FABRIC_AREA;

/// Hello and key exchange; what follows is encrypted.
const PLAIN_FRAMES: usize = 2;

/// The caller's first frame that is not of the handshake: its verdict goes before.
const FIRST: usize = PLAIN_FRAMES + 1;

fn encrypting(encryption: EncryptionUse) -> NetworkOptions {
    NetworkOptions {
        secret: Some("open sesame".into()),
        encryption,
        ..network()
    }
}

fn pair() -> (Station, Station) {
    let one = |id| alone(id, encrypting(EncryptionUse::Auto));
    (one(1), one(2))
}

/// What a station in the middle makes of the caller's frames: they are numbered from 0.
type Tamper = Box<dyn FnMut(usize, Vec<u8>) -> Vec<u8> + Send>;

/// A station in the middle, which has no secret.
struct Between {
    contact: SocketAddr,
    /// What the caller has sent.
    heard: Arc<Mutex<Vec<u8>>>,
    /// What the called side says from now on is swallowed.
    silenced: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl Between {
    fn start(called: &Station, mut tamper: Tamper) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a listener");
        let contact = listener.local_addr().expect("bound");
        let to = called.listening().expect("it listens");
        let (heard, silenced) = (
            Arc::<Mutex<Vec<u8>>>::default(),
            Arc::<AtomicBool>::default(),
        );
        let (hears, silences) = (Arc::clone(&heard), Arc::clone(&silenced));
        let thread = thread::spawn(move || {
            let (near, _) = listener.accept().expect("called");
            let far = TcpStream::connect(to).expect("connected");
            let clone = |stream: &TcpStream| stream.try_clone().expect("a copy");
            let (near_too, far_too) = (clone(&near), clone(&far));
            let back = thread::spawn(move || {
                let silenced = || silences.load(Ordering::Relaxed);
                pass(&far_too, &near_too, |_, unit| match silenced() {
                    true => Vec::new(),
                    false => unit,
                });
                // The end of what is swallowed is swallowed, too.
                if !silenced() {
                    end(&far_too, &near_too);
                }
            });
            pass(&near, &far, |at, unit| {
                hears.lock().expect("no panic").extend(&unit);
                tamper(at, unit)
            });
            end(&near, &far);
            back.join().expect("no panic");
        });
        Self {
            contact,
            heard,
            silenced,
            thread,
        }
    }

    fn end(self) -> Vec<u8> {
        self.thread.join().expect("no panic");
        core::mem::take(&mut self.heard.lock().expect("no panic"))
    }
}

/// Passes frames until either side has ended.
fn pass(
    mut from: &TcpStream,
    mut to: &TcpStream,
    mut change: impl FnMut(usize, Vec<u8>) -> Vec<u8>,
) {
    for at in 0.. {
        let unit = match at < PLAIN_FRAMES {
            true => read_frame(&mut from),
            false => read_sealed(&mut from),
        };
        let Some(unit) = unit else {
            break;
        };
        if to.write_all(&change(at, unit)).is_err() {
            break;
        }
    }
}

fn end(from: &TcpStream, to: &TcpStream) {
    // They may have ended already.
    let _ = to.shutdown(Shutdown::Write);
    let _ = from.shutdown(Shutdown::Read);
}

/// An encrypted frame; `None` at the end.
fn read_sealed(stream: &mut &TcpStream) -> Option<Vec<u8>> {
    let mut prefix = [0; 2];
    stream.read_exact(&mut prefix).ok()?;
    let mut body = vec![0; usize::from(u16::from_le_bytes(prefix))];
    stream.read_exact(&mut body).ok()?;
    Some([&prefix[..], &body].concat())
}

fn untouched() -> Tamper {
    Box::new(|_, unit| unit)
}

fn events(station: &Station) -> Vec<StationEvent> {
    core::iter::from_fn(|| station.next_event(Duration::from_millis(20))).collect()
}

#[test]
fn what_goes_between_hosts_cannot_be_read() {
    const MARK: &[u8; 24] = b"here is what is not hid!";
    let (one, two) = pair();
    let between = Between::start(&two, untouched());
    assert_eq!(one.call(between.contact, soon()).expect("called"), 2);
    for (station, other) in [(&one, 2), (&two, 1)] {
        assert!(station.is_encrypted(other));
        assert_eq!(station.path(other), Some(PeerPath::Stream));
        assert!(!station.is_encrypted(9));
    }
    let stations = [one, two];
    let fabrics = segment(&stations, 4096);
    let to: PeerSet = [Rank(1)].into_iter().collect();
    for (at, word) in MARK.chunks_exact(8).enumerate() {
        let word = u64::from_le_bytes(word.try_into().expect("a word"));
        fabrics[0].store(A + 8 * at, word);
    }
    fabrics[0].push(A, MARK.len(), &to);
    fabrics[0].push_word(A + 512, 7, &to);
    fabrics[0].wake(&to, WakeReason::Data);
    until(|| fabrics[1].row(Rank(0)).load(A + 512) == 7);
    assert_eq!(
        fabrics[1].row(Rank(0)).load(A),
        u64::from_le_bytes(*b"here is ")
    );
    stations[0].send(2, MARK).expect("sent");
    assert_eq!(event(&stations[1]), StationEvent::Connected { id: 1 });
    let bytes = MARK.to_vec();
    let message = StationEvent::Message { from: 1, bytes };
    assert_eq!(event(&stations[1]), message);
    stations.iter().for_each(Station::close);
    let heard = between.end();
    assert!(heard.len() > 300);
    assert!(!heard.windows(8).any(|part| part == &MARK[..8]));
}

/// The first frame behind the handshake, or two, are changed, left out, repeated, exchanged, or
/// cut; the called side ends the link, once, and says why.
#[test]
fn a_link_ends_with_the_first_frame_that_was_tampered_with() {
    let mut kept = Vec::new();
    let exchange: Tamper = Box::new(move |at, unit| match at {
        FIRST => {
            kept = unit;
            Vec::new()
        }
        at if at == FIRST + 1 => [unit, core::mem::take(&mut kept)].concat(),
        _ => unit,
    });
    let at_first = |change: fn(Vec<u8>) -> Vec<u8>| -> Tamper {
        Box::new(move |at, unit| match at {
            FIRST => change(unit),
            _ => unit,
        })
    };
    let change = |mut unit: Vec<u8>| {
        unit[9] ^= 1;
        unit
    };
    let shorten = |mut unit: Vec<u8>| {
        unit.truncate(8);
        [&6_u16.to_le_bytes()[..], &unit[2..]].concat()
    };
    let prefix = |unit: Vec<u8>| {
        let len = unit.len() as u16 - 3;
        [&len.to_le_bytes()[..], &unit[2..]].concat()
    };
    let not_opened = "that does not open";
    for (what, words, delivered, tamper) in [
        ("changed", not_opened, 0, at_first(change)),
        ("left out", not_opened, 0, at_first(|_| Vec::new())),
        ("repeated", not_opened, 1, at_first(|unit| unit.repeat(2))),
        ("exchanged", not_opened, 0, exchange),
        ("shortened", "which is too short", 0, at_first(shorten)),
        ("of another length", not_opened, 0, at_first(prefix)),
        (
            "from elsewhere",
            not_opened,
            0,
            at_first(|unit| [&[20, 0, 7][..], &[1; 19], &unit].concat()),
        ),
    ] {
        let (one, two) = pair();
        let between = Between::start(&two, tamper);
        one.call(between.contact, soon()).expect("called");
        assert_eq!(event(&two), StationEvent::Connected { id: 1 });
        let mut sent = 0;
        while two.stream_state(1).is_some_and(|link| link.receiving) {
            // The link ends meanwhile.
            sent += usize::from(one.send(2, &[sent as u8; 100]).is_ok());
            thread::sleep(Duration::from_millis(1));
        }
        let mut said = Vec::new();
        let mut messages = 0;
        for event in events(&two) {
            match event {
                StationEvent::Closed { id: 1, cause } => said.push(cause.to_string()),
                StationEvent::Message { from: 1, .. } => messages += 1,
                other => panic!("{what}: {other:?}"),
            }
        }
        assert_eq!(said.len(), 1, "{what}: {said:?}");
        let is_named = said[0].contains("it sent an encrypted frame") && said[0].contains(words);
        assert!(is_named, "{what}: {said:?}");
        assert_eq!(messages, delivered, "{what}");
        assert_eq!(loss(&one).0, 2, "{what}");
        drop((one, two));
        between.end();
    }
}

/// The verdict, the last frame of the handshake, does not open: the caller's call fails, or is
/// made again, and no side becomes a peer.
#[test]
fn a_handshake_that_was_tampered_with_makes_no_peer() {
    for bad in 0..FIRST {
        let (one, two) = pair();
        let between = Between::start(
            &two,
            Box::new(move |at, mut unit| {
                if at == bad {
                    let last = unit.len() - 1;
                    unit[last] ^= 1;
                }
                unit
            }),
        );
        let soon = std::time::Instant::now() + Duration::from_millis(700);
        let called = one.call(between.contact, soon);
        assert!(called.is_err(), "frame {bad}: {called:?}");
        for station in [&one, &two] {
            assert_eq!(station.next_event(Duration::ZERO), None, "frame {bad}");
        }
        drop((one, two));
        between.end();
    }
}

/// All that a member has sent, sent again to the same station, is refused.
#[test]
fn a_recorded_session_is_useless() {
    let (one, two) = pair();
    let between = Between::start(&two, untouched());
    one.call(between.contact, soon()).expect("called");
    one.send(2, b"once").expect("sent");
    assert_eq!(event(&two), StationEvent::Connected { id: 1 });
    assert!(matches!(event(&two), StationEvent::Message { from: 1, .. }));
    one.close();
    assert_eq!(loss(&two).0, 1);
    two.drop_peer(1);
    let recorded = between.end();
    let mut again = connect_raw(&two);
    again.write_all(&recorded).expect("sent");
    read_frame(&mut again).expect("a hello");
    assert_eq!(refusal(&mut again), "the caller has another secret");
    assert_eq!(two.next_event(Duration::from_millis(10)), None);
}

/// A member that was dropped goes on sending, as it does not learn of it: nothing arrives.
#[test]
fn what_a_dropped_member_sends_is_worth_nothing() {
    let (one, two) = pair();
    let between = Between::start(&two, untouched());
    one.call(between.contact, soon()).expect("called");
    let stations = [one, two];
    let fabrics = segment(&stations, 4096);
    let to: PeerSet = [Rank(1)].into_iter().collect();
    let push = |value| {
        fabrics[0].push_word(A, value, &to);
        fabrics[0].wake(&to, WakeReason::Data);
    };
    push(7);
    until(|| fabrics[1].row(Rank(0)).load(A) == 7);
    between.silenced.store(true, Ordering::Relaxed);
    assert_eq!(event(&stations[1]), StationEvent::Connected { id: 1 });
    stations[1].drop_peer(1);
    assert!(!stations[1].is_encrypted(1));
    let heard = || between.heard.lock().expect("no panic").len();
    let before = heard();
    for value in 8..60 {
        push(value);
        let _ = stations[0].send(2, b"still here");
        thread::sleep(Duration::from_millis(1));
    }
    until(|| heard() > before);
    assert_eq!(events(&stations[1]), []);
    assert_eq!(fabrics[1].row(Rank(0)).load(A), 7);
    drop((fabrics, stations));
    between.end();
}

/// As in the table of docs/guide/security.md.
#[test]
fn both_sides_agree_on_encryption() {
    use EncryptionUse::{Auto, Off, Required};
    for (caller, called, encrypted) in [
        (Auto, Auto, Some(true)),
        (Auto, Off, Some(false)),
        (Auto, Required, Some(true)),
        (Off, Auto, Some(false)),
        (Off, Off, Some(false)),
        (Off, Required, None),
        (Required, Auto, Some(true)),
        (Required, Off, None),
        (Required, Required, Some(true)),
    ] {
        let [one, two] = [(1, caller), (2, called)].map(|(id, it)| alone(id, encrypting(it)));
        let met = one.call(two.listening().expect("it listens"), soon());
        match (encrypted, met) {
            (Some(encrypted), Ok(2)) => {
                assert_eq!(one.is_encrypted(2), encrypted, "{caller:?} {called:?}");
                assert_eq!(two.is_encrypted(1), encrypted, "{caller:?} {called:?}");
                two.send(1, b"there").expect("sent");
                assert_eq!(event(&one), StationEvent::Connected { id: 2 });
                let came = event(&one);
                assert!(matches!(came, StationEvent::Message { from: 2, .. }));
            }
            (None, Err(error)) => {
                assert_eq!(
                    error.call_failure(),
                    CallFailureCause::Encryption,
                    "{error}"
                );
            }
            (_, met) => panic!("{caller:?} calls {called:?}: {met:?}"),
        }
    }
    // Without a secret there is nothing to encrypt with, and only `Required` needs it.
    let stations = [1, 2].map(|id| alone(id, network()));
    super::group::connect(&stations);
    assert!(!stations[0].is_encrypted(2));
    let one = alone(3, encrypting(Required));
    let refused = one.connect(&stations[0].address(), soon());
    let refused = refused.expect_err("no secret").to_string();
    assert!(
        refused.contains("has no secret") || refused.contains("has none"),
        "{refused}"
    );
}

#[test]
fn required_encryption_needs_a_secret_and_does_without_rdma() {
    let open = |network: NetworkOptions| {
        let options: StationOptions = options(&host(), 1, network);
        Station::open(&options)
    };
    let required = |rdma| NetworkOptions {
        rdma,
        ..encrypting(EncryptionUse::Required)
    };
    let bare = NetworkOptions {
        secret: None,
        ..required(RdmaUse::Off)
    };
    let refused = open(bare);
    assert!(matches!(refused, Err(HybridError::NoSecret)), "{refused:?}");
    let refused = open(required(RdmaUse::Required(RdmaOptions::default())));
    let is_named = matches!(refused, Err(HybridError::EncryptionByRdma));
    assert!(is_named, "{refused:?}");
    open(required(RdmaUse::Auto(RdmaOptions::default()))).expect("over streams");
    let empty = NetworkOptions {
        accepted_secret: Some("".into()),
        ..encrypting(EncryptionUse::Auto)
    };
    assert!(matches!(open(empty), Err(HybridError::EmptySecret)));
}

/// From one secret to another without a pause: first all accept the new one, then all change to
/// it, then none accepts the old one any more. At each moment any two reach each other.
#[test]
fn secrets_are_changed_in_three_steps() {
    let with = |own: &str, accepted: Option<&str>| NetworkOptions {
        secret: Some(own.into()),
        accepted_secret: accepted.map(Into::into),
        ..network()
    };
    let steps = [
        with("old", None),
        with("old", Some("new")),
        with("new", Some("old")),
        with("new", None),
    ];
    for next in 1..steps.len() {
        for (caller, called) in [(next - 1, next), (next, next - 1), (next, next)] {
            let one = alone(1, steps[caller].clone());
            let two = alone(2, steps[called].clone());
            let called = one.connect(&two.address(), soon());
            assert_eq!(called.expect("called"), 2);
            assert!(one.is_encrypted(2) && two.is_encrypted(1));
        }
    }
    // Steps must not be left out.
    let one = alone(1, steps[0].clone());
    let two = alone(2, steps[2].clone());
    assert_eq!(one.connect(&two.address(), soon()).expect("accepted"), 2);
    let two = alone(2, steps[3].clone());
    let refused = alone(3, steps[0].clone()).connect(&two.address(), soon());
    assert!(
        refused
            .expect_err("refused")
            .to_string()
            .contains("another secret")
    );
}
