//! Segments with members on several hosts.

use std::thread;
use std::time::{Duration, Instant};

use spindle_dds_transport::hybrid::{HybridError, HybridSegment, Station};
use spindle_dds_transport::{
    FABRIC_AREA, Fabric, FailureCause, PeerSet, Rank, StationError, StationEvent, WakeReason,
};

use super::group::{
    LONG, alone, apart, connect, host, network, options, request, segment, soon, until,
};

const A: usize = FABRIC_AREA;
const ROW_LEN: usize = 4096;

/// Each member pushes to each other, and sees all pushes.
fn exchange(fabrics: &[HybridSegment]) {
    for fabric in fabrics {
        let me = fabric.me();
        let others = (0..fabrics.len() as u16).map(Rank);
        let to: PeerSet = others.filter(|&rank| rank != me).collect();
        fabric.push_word(A, 100 + u64::from(me.0), &to);
        fabric.wake(&to, WakeReason::Data);
    }
    for fabric in fabrics {
        for of in (0..fabrics.len() as u16).map(Rank) {
            until(|| fabric.row(of).load(A) == 100 + u64::from(of.0));
        }
    }
}

/// Two members on one host, one on another.
#[test]
fn views_of_several_hosts() {
    let (near, far) = (host(), host());
    let places = [&near, &far, &near];
    let open = |(at, place)| Station::open(&options(place, 1 + at as u128, network()));
    let stations: Result<Vec<_>, _> = places.into_iter().enumerate().map(open).collect();
    let stations = stations.expect("stations");
    connect(&stations);
    let link = |one: usize, id| stations[one].stream_state(id).is_some();
    assert!(link(0, 2) && !link(0, 3) && link(1, 1) && link(1, 3) && !link(2, 1));
    let fabrics = segment(&stations, ROW_LEN);
    exchange(&fabrics);
    // The remote member learns it from the stream, the other one from the kernel.
    stations[1].close();
    stations[2].pretend_process_ended();
    let mut causes = [(); 2].map(|()| {
        loop {
            match fabrics[0].poll() {
                Some(failure) => break (failure.peer.0, failure.cause.to_string()),
                None => thread::yield_now(),
            }
        }
    });
    causes.sort();
    assert!(
        causes[0].1.contains("has closed the connection"),
        "{causes:?}"
    );
    let ended = FailureCause::ProcessEnded.to_string();
    assert_eq!((causes[0].0, &causes[1]), (1, &(2, ended)));
}

/// Expected members are waited for, whichever side calls, and whenever.
#[test]
fn members_that_call_later_are_waited_for() {
    let stations: Vec<_> = (1..=3).map(|id| alone(id, network())).collect();
    for one in &stations {
        for other in stations.iter().filter(|other| other.id() != one.id()) {
            one.expect_peer(&other.address()).expect("an address");
        }
    }
    let fabrics = thread::scope(|scope| {
        let stations = &stations;
        let make = move |me: usize| {
            let made = stations[me].segment(&request(stations, me, 0, ROW_LEN), soon());
            made.expect("a segment")
        };
        let makes: Vec<_> = (0..3).map(|me| scope.spawn(move || make(me))).collect();
        thread::sleep(Duration::from_millis(20));
        connect(stations);
        let made = makes.into_iter().map(|made| made.join().expect("no panic"));
        made.collect::<Vec<_>>()
    });
    exchange(&fabrics);
    assert!(fabrics.iter().all(|fabric| fabric.poll().is_none()));
}

/// A member that has not called by the deadline is reported, and its row is zeros.
#[test]
fn members_that_do_not_call_are_reported() {
    let (one, two) = (alone(1, network()), alone(2, network()));
    one.expect_peer(&two.address()).expect("an address");
    let stations = [one, two];
    let deadline = Instant::now() + Duration::from_millis(30);
    let made = stations[0].segment(&request(&stations, 0, 0, ROW_LEN), deadline);
    let fabric = made.expect("a segment");
    let failure = fabric.poll().expect("it is told");
    let cause = FailureCause::Unreachable("it is not connected".into());
    assert_eq!((failure.peer, failure.cause), (Rank(1), cause));
    assert_eq!(fabric.row(Rank(1)).load(A), 0);
    fabric.push_word(A, 1, &[Rank(1)].into_iter().collect());
}

/// A member that is lost while others wait for it is not waited for any longer.
#[test]
fn members_that_are_lost_are_not_waited_for() {
    let stations = apart(2, &network());
    stations[1].close();
    assert!(matches!(
        stations[0].next_event(LONG),
        Some(StationEvent::Connected { .. })
    ));
    assert!(matches!(
        stations[0].next_event(LONG),
        Some(StationEvent::Closed { .. })
    ));
    let start = Instant::now();
    let made = stations[0].segment(&request(&stations, 0, 0, ROW_LEN), soon());
    assert!(start.elapsed() < LONG, "it was waited for");
    let failure = made.expect("a segment").poll().expect("it is told");
    assert!(
        failure
            .cause
            .to_string()
            .contains("has closed the connection")
    );
}

/// Nor is a member, on this host or another, that was given up.
#[test]
fn members_that_are_given_up_are_not_waited_for() {
    let here = host();
    let one = Station::open(&options(&here, 1, network())).expect("a station");
    let near = Station::open(&options(&here, 2, network())).expect("a station");
    let far = alone(3, network());
    one.expect_peer(&far.address()).expect("an address");
    let stations = [one, near, far];
    let start = Instant::now();
    let made = thread::scope(|scope| {
        let makes = scope.spawn(|| stations[0].segment(&request(&stations, 0, 0, ROW_LEN), soon()));
        thread::sleep(Duration::from_millis(20));
        stations[0].give_up(2, "it has ended");
        stations[0].give_up(3, "it has ended");
        makes.join().expect("no panic")
    });
    assert!(start.elapsed() < LONG, "they were waited for");
    let fabric = made.expect("a segment");
    let told: PeerSet = [(); 2]
        .map(|()| fabric.poll().expect("it is told").peer)
        .into_iter()
        .collect();
    assert_eq!(told, [Rank(1), Rank(2)].into_iter().collect());
    assert!(fabric.poll().is_none());
}

#[test]
fn closing_ends_waiting_for_members() {
    let (one, two) = (alone(1, network()), alone(2, network()));
    one.expect_peer(&two.address()).expect("an address");
    let stations = [one, two];
    thread::scope(|scope| {
        let makes = scope.spawn(|| stations[0].segment(&request(&stations, 0, 0, ROW_LEN), soon()));
        thread::sleep(Duration::from_millis(20));
        stations[0].close();
        let made = makes.join().expect("no panic").expect_err("closed");
        let closed = matches!(made, HybridError::Station(StationError::Closed));
        assert!(closed, "{made}");
    });
}
