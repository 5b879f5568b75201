//! Stations in different processes: this test binary again, running one of its tests.

use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use spindle_dds_transport::StationEvent;

use super::fork::{Heir, fork};
use super::group::{LONG, alone, event, loss, network, soon};

/// Set where a test is run as a part of another.
pub(crate) const PART: &str = "SPINDLE_TEST_PART";

/// Starts another process in which the test `part` runs.
pub(crate) fn start(part: &str, what: &str) -> Child {
    Command::new(std::env::current_exe().expect("this program"))
        .args(["--exact", part, "--nocapture"])
        .env(PART, what)
        .stdout(Stdio::null())
        .spawn()
        .expect("a process")
}

/// The argument of this process; `None` if it was not started by another test.
pub(crate) fn part() -> Option<String> {
    std::env::var(PART).ok()
}

/// Calls, reports it, and waits to be killed.
#[test]
fn caller() {
    let Some(contact) = part() else {
        return;
    };
    let contact: SocketAddr = contact.parse().expect("an address");
    let station = alone(7, network());
    station.call(contact, soon()).expect("called");
    station.send(1, b"here").expect("sent");
    // It is killed.
    while station.next_event(LONG).is_some() {}
}

/// The same with a forked child that keeps all descriptors open.
#[test]
fn caller_that_forks() {
    let Some(contact) = part() else {
        return;
    };
    let contact: SocketAddr = contact.parse().expect("an address");
    let station = alone(7, network());
    station.call(contact, soon()).expect("called");
    station.send(1, &fork().to_le_bytes()).expect("sent");
    while station.next_event(LONG).is_some() {}
}

/// Streams end when no process has them any more: a killed process is silent until then, and
/// can be replaced all the same.
#[test]
fn a_process_that_is_killed_is_replaced_though_a_child_holds_its_streams() {
    let station = alone(1, network());
    let contact = station.listening().expect("it listens").to_string();
    let mut child = start("processes::caller_that_forks", &contact);
    assert_eq!(event(&station), StationEvent::Connected { id: 7 });
    let StationEvent::Message { from: 7, bytes } = event(&station) else {
        panic!("it tells of its child");
    };
    let heir = Heir::of_pid(i32::from_le_bytes(bytes.try_into().expect("a process id")));
    child.kill().expect("killed");
    child.wait().expect("it has ended");
    assert_eq!(station.next_event(Duration::from_millis(100)), None);
    station.drop_peer(7);
    let mut child = start("processes::caller", &contact);
    assert_eq!(event(&station), StationEvent::Connected { id: 7 });
    assert!(matches!(
        event(&station),
        StationEvent::Message { from: 7, .. }
    ));
    assert!(heir.lives());
    child.kill().expect("killed");
    child.wait().expect("it has ended");
    let (id, cause) = loss(&station);
    assert!(id == 7 && cause.contains("its stream"), "{cause}");
}

/// The kernel closes the connections of a killed process, and its peers notice.
#[test]
fn the_end_of_a_killed_process_is_noticed() {
    let station = alone(1, network());
    let contact = station.listening().expect("it listens").to_string();
    let mut child = start("processes::caller", &contact);
    assert_eq!(event(&station), StationEvent::Connected { id: 7 });
    assert!(matches!(
        event(&station),
        StationEvent::Message { from: 7, .. }
    ));
    child.kill().expect("killed");
    let (id, cause) = loss(&station);
    assert!(id == 7 && cause.contains("its stream"), "{cause}");
    child.wait().expect("it has ended");
    // Another station with the same id may connect.
    station.drop_peer(7);
    let mut child = start("processes::caller", &contact);
    assert_eq!(event(&station), StationEvent::Connected { id: 7 });
    child.kill().expect("killed");
    child.wait().expect("it has ended");
}
