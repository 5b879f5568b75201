use super::*;
use crate::hybrid::handshake_frame::encryption_code;
use crate::hybrid::testing::{FRAMES, shake_hands};
use crate::sim::Rng;
use EncryptionUse::{Auto, Off, Required};

fn me(domain: u32, id: u128, secret: Option<&str>) -> LocalIdentity {
    let address = Address {
        host: 1,
        id,
        on_host: Vec::new(),
        sockets: Vec::new(),
    };
    LocalIdentity {
        domain,
        id,
        host: 1,
        address: address.write(),
        secret: secret.map(Into::into),
        accepted_secret: None,
        encryption: Auto,
    }
}

fn accepting(accepted: &str, me: LocalIdentity) -> LocalIdentity {
    LocalIdentity {
        accepted_secret: Some(accepted.into()),
        ..me
    }
}

fn secret_of(me: &LocalIdentity) -> Option<&[u8]> {
    me.secret.as_ref().map(Secret::as_bytes)
}

fn hello_of(handshake: &Handshake) -> Hello {
    match Frame::read(handshake.hello()) {
        Some(Frame::Hello(hello)) => hello,
        other => panic!("{other:?}"),
    }
}

fn start(me: &LocalIdentity, role: Role) -> Handshake {
    Handshake::new(me, role).expect("a nonce")
}

fn prove(handshake: &mut Handshake) -> Frame {
    let bytes = handshake.prove().expect("a proof");
    Frame::read(&bytes).expect("a frame")
}

/// Runs the handshake of a caller and a called station.
fn meet(
    caller: &LocalIdentity,
    called: &LocalIdentity,
) -> Result<[Handshake; 2], HandshakeRefusal> {
    let mut calls = start(caller, Role::Caller);
    let mut hears = start(called, Role::Called);
    hears.receive_hello(called, &hello_of(&calls), calls.hello().to_vec())?;
    calls.receive_hello(caller, &hello_of(&hears), hears.hello().to_vec())?;
    let proof = prove(&mut calls);
    hears.check(called, &proof)?;
    // A reflected proof is not accepted.
    let mut reflected = start(caller, Role::Caller);
    (reflected.mine, reflected.theirs) = (calls.mine.clone(), calls.theirs.clone());
    reflected.assurance = calls.assurance;
    let own = prove(&mut reflected);
    assert!(reflected.check(caller, &own).is_err());
    calls.check(caller, &prove(&mut hears))?;
    assert_eq!(calls.is_encrypted(), hears.is_encrypted());
    Ok([calls, hears])
}

#[test]
fn only_stations_of_one_domain_and_secret_accept_each_other() {
    let accepted = |caller: LocalIdentity, called: LocalIdentity, encrypted: bool| {
        let both = meet(&caller, &called).expect("accepted");
        assert!(both.iter().all(|it| it.is_encrypted() == encrypted));
    };
    let (right, wrong) = (Some("open"), Some("shut"));
    accepted(me(3, 1, None), me(3, 2, None), false);
    accepted(me(3, 1, right), me(3, 2, right), true);
    let refused = |caller: LocalIdentity, called: LocalIdentity, words: &str| {
        let refusal = meet(&caller, &called).expect_err("refused");
        assert_eq!(refusal.reason, words);
        let kind = match () {
            () if secret_of(&caller) != secret_of(&called) => RefusalKind::Secret,
            () if caller.domain != called.domain => RefusalKind::Domain,
            () => RefusalKind::Other,
        };
        assert_eq!(refusal.kind, kind);
    };
    let words = "the caller is of domain 3, the one called of 4";
    refused(me(3, 1, None), me(4, 2, None), words);
    let words = "the caller has another secret";
    for encryption in [Auto, Off] {
        let called = LocalIdentity {
            encryption,
            ..me(3, 2, right)
        };
        refused(me(3, 1, wrong), called, words);
    }
    let words = "the caller has no secret, the one called has one";
    refused(me(3, 1, None), me(3, 2, right), words);
    let words = "the caller has a secret, the one called has none";
    refused(me(3, 1, right), me(3, 2, None), words);
    let liar = LocalIdentity {
        address: me(3, 7, None).address,
        ..me(3, 1, None)
    };
    refused(liar, me(3, 2, None), "the caller has no address");
}

/// The table of docs/guide/security.md.
#[test]
fn two_stations_encrypt_unless_one_has_turned_it_off() {
    let with = |id, encryption| LocalIdentity {
        encryption,
        ..me(3, id, Some("open"))
    };
    for (caller, called, expected) in [
        (Auto, Auto, Ok(true)),
        (Auto, Off, Ok(false)),
        (Auto, Required, Ok(true)),
        (Off, Auto, Ok(false)),
        (Off, Off, Ok(false)),
        (
            Off,
            Required,
            Err("the caller has turned encryption off, which the one called requires"),
        ),
        (Required, Auto, Ok(true)),
        (
            Required,
            Off,
            Err("the caller requires encryption, which the one called has turned off"),
        ),
        (Required, Required, Ok(true)),
    ] {
        let met = meet(&with(1, caller), &with(2, called));
        let met = met.map(|[one, _]| one.is_encrypted()).map_err(|refusal| {
            assert_eq!(refusal.kind, RefusalKind::Encryption);
            refusal.reason
        });
        let expected = expected.map_err(str::to_owned);
        assert_eq!(met, expected, "{caller:?} calls {called:?}");
    }
}

/// The called side takes its caller's secret, if it accepts it; the caller only its own.
#[test]
fn a_called_station_accepts_a_second_secret() {
    let old = |id| accepting("new", me(3, id, Some("old")));
    let new = |id| accepting("old", me(3, id, Some("new")));
    for encryption in [Auto, Off] {
        let all = |me| LocalIdentity { encryption, ..me };
        let is_by_accepted = |caller: LocalIdentity, called: LocalIdentity| {
            let [_, called] = meet(&all(caller), &all(called)).expect("accepted");
            called.uses_accepted_secret()
        };
        assert!(is_by_accepted(old(1), new(2)));
        assert!(is_by_accepted(new(1), old(2)));
        assert!(!is_by_accepted(new(1), new(2)));
        assert!(!is_by_accepted(me(3, 1, Some("old")), old(2)));
        assert!(is_by_accepted(me(3, 1, Some("new")), old(2)));
        let refused = meet(&all(old(1)), &all(me(3, 2, Some("new"))));
        let reason = refused.expect_err("refused").reason;
        assert_eq!(reason, "the caller has another secret");
        let refused = meet(&all(me(3, 1, Some("third"))), &all(new(2)));
        assert!(refused.is_err());
    }
}

#[test]
fn an_overheard_proof_proves_nothing() {
    for encryption in [Auto, Off] {
        let with = |id| LocalIdentity {
            encryption,
            ..me(0, id, Some("open"))
        };
        let (caller, called) = (with(1), with(2));
        let mut calls = start(&caller, Role::Caller);
        let answers = || {
            let mut handshake = start(&called, Role::Called);
            let hello = calls.hello().to_vec();
            handshake
                .receive_hello(&called, &hello_of(&calls), hello)
                .expect("heard");
            handshake
        };
        let (mut first, mut again) = (answers(), answers());
        let hello = first.hello().to_vec();
        calls
            .receive_hello(&caller, &hello_of(&first), hello)
            .expect("heard");
        let proof = prove(&mut calls);
        assert_eq!(first.check(&called, &proof), Ok(()));
        let replayed = again.check(&called, &proof).expect_err("refused");
        assert_eq!(replayed.reason, "the caller has another secret");
    }
}

/// What a station in the middle changes in a hello, to make the two do without encryption,
/// shows in the proofs.
#[test]
fn encryption_cannot_be_turned_off_on_the_way() {
    let (caller, called) = (me(3, 1, Some("open")), me(3, 2, Some("open")));
    let as_off = |hello: &[u8]| {
        let mut changed = hello.to_vec();
        // Behind domain and id.
        changed[HEADER_LEN + 20] = encryption_code(Some(Off));
        match Frame::read(&changed) {
            Some(Frame::Hello(hello)) => (hello, changed),
            other => panic!("{other:?}"),
        }
    };
    let mut calls = start(&caller, Role::Caller);
    let mut hears = start(&called, Role::Called);
    let (hello, frame) = as_off(calls.hello());
    hears.receive_hello(&called, &hello, frame).expect("heard");
    let (hello, frame) = as_off(hears.hello());
    calls.receive_hello(&caller, &hello, frame).expect("heard");
    let proof = prove(&mut calls);
    assert!(matches!(proof, Frame::Proof(_)));
    let reason = hears.check(&called, &proof).expect_err("refused").reason;
    assert_eq!(reason, "the caller has another secret");
    assert!(calls.check(&caller, &prove(&mut hears)).is_err());
}

/// Frames behind the key exchange are sealed, and bounded.
#[test]
fn frames_behind_the_key_exchange_are_sealed() {
    let (caller, called) = (me(3, 1, Some("open")), me(3, 2, Some("open")));
    let [mut calls, mut hears] = meet(&caller, &called).expect("accepted");
    let verdict = Frame::Verdict(Err("none".to_owned()));
    let sealed = hears.seal(verdict.write());
    assert!(!sealed.windows(4).any(|part| part == b"none"));
    for len in 0..PREFIX_LEN {
        assert_eq!(calls.received_len(&sealed[..len]), Ok(PREFIX_LEN));
    }
    assert_eq!(calls.received_len(&sealed), Ok(sealed.len()));
    let opened = calls.open(sealed.clone()).expect("opened");
    assert_eq!(Frame::read(&opened), Some(verdict.clone()));
    assert_eq!(calls.open(sealed), Err(FrameError::NotOpened), "again");
    let long = [u8::MAX; PREFIX_LEN];
    assert_eq!(hears.received_len(&long), Err(FrameError::NotOpened));
    // A frame that is not encrypted any more.
    let plain = verdict.write();
    assert!(hears.received_len(&plain).is_err() || hears.open(plain).is_err());
    // Sealed by a peer, but no frame, or more than one.
    for nonsense in [b"short".to_vec(), [verdict.write(), vec![0]].concat()] {
        let [mut calls, mut hears] = meet(&caller, &called).expect("accepted");
        let sealed = calls.seal(nonsense);
        assert_eq!(hears.open(sealed), Err(FrameError::ProtocolViolation));
    }
}

/// A bit of a frame is changed, or bytes are cut off or added: that frame is refused, and of
/// a hello the proof that follows. Set the variable for more.
#[test]
fn changed_handshakes_are_refused() {
    let rounds = std::env::var("SPINDLE_TEST_FRAMES").ok();
    // A handshake takes a thousand times as long as a frame.
    let rounds = rounds.map_or(500, |it| it.parse::<u32>().expect("a number") / 5);
    let rng = &mut Rng::new(5);
    let secrets = [Some(&b"open"[..]); 2];
    for (encryption, frames) in [(Auto, FRAMES), (Off, 4)] {
        let whole = shake_hands(secrets, [encryption; 2], |_, frame| frame);
        assert_eq!(whole, FRAMES);
        for round in 0..rounds {
            let which = rng.below(frames);
            let accepted = shake_hands(secrets, [encryption; 2], |at, frame| match at == which {
                true => change(frame, rng),
                false => frame,
            });
            assert!(accepted <= which.max(2), "round {round}: message {which}");
        }
    }
}

/// Another frame than this one.
fn change(mut frame: Vec<u8>, rng: &mut Rng) -> Vec<u8> {
    match rng.below(8) {
        0 => frame.truncate(rng.below(frame.len())),
        1 => frame.push(rng.below(256) as u8),
        _ => {
            let at = rng.below(frame.len());
            frame[at] ^= 1 << rng.below(8);
        }
    }
    frame
}
