//! A host that vanishes: its connections do not end, they fall silent. Hosts are network
//! namespaces; skipped where these cannot be created.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, ChildStdout, Stdio};
use std::time::Duration;

use spindle_dds_transport::hybrid::NetworkOptions;
use spindle_dds_transport::{StationEvent, tcp};

use super::group::{LONG, alone, event, loss, soon};
use super::namespaces::Network;
use super::processes::{PART, part};

/// User timeout; the kernel probes a silent peer after half of it, but not before a second.
const USER_TIMEOUT: Duration = Duration::from_millis(1_500);
/// Longer than an absent peer stays undetected.
const IDLE: Duration = Duration::from_millis(3_000);

struct Process {
    child: Child,
    said: BufReader<ChildStdout>,
}

impl Process {
    /// A process on a host that is to `listen` or `call` at an address.
    fn start(network: &Network, host: usize, what: &str, at: &str) -> Self {
        let program = std::env::current_exe().expect("this program");
        let mut child = network
            .command(host, program.to_str().expect("UTF-8"))
            .args(["--exact", "silence::process", "--nocapture"])
            .env(PART, format!("{what} {at}"))
            .stdout(Stdio::piped())
            .spawn()
            .expect("a process");
        let said = BufReader::new(child.stdout.take().expect("piped"));
        Self { child, said }
    }

    fn hear(&mut self) -> String {
        loop {
            let mut line = String::new();
            let read = self.said.read_line(&mut line).expect("it speaks");
            assert!(read > 0, "it has ended");
            if let Some((_, said)) = line.split_once('@') {
                return said.trim_end().to_owned();
            }
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It has ended already, or ends now.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Not a test by itself: the process of a [`Process`].
#[test]
fn process() {
    let Some(part) = part() else {
        return;
    };
    let (what, at) = part.split_once(' ').expect("two words");
    let at: SocketAddr = at.parse().expect("an address");
    let listens = what == "listen";
    let anywhere = ([0, 0, 0, 0], 0).into();
    let network = NetworkOptions {
        listen: if listens { at } else { anywhere },
        streams: tcp::StreamOptions {
            user_timeout: USER_TIMEOUT,
            ..tcp::StreamOptions::default()
        },
        ..NetworkOptions::default()
    };
    let station = alone(if listens { 1 } else { 2 }, network);
    println!("@ready");
    if !listens {
        station.call(at, soon()).expect("called");
    }
    let connected = event(&station);
    assert!(
        matches!(connected, StationEvent::Connected { .. }),
        "{connected:?}"
    );
    // Nothing is sent, and no peer is lost.
    assert_eq!(station.next_event(IDLE), None);
    println!("@idle");
    let (id, cause) = loss(&station);
    println!("@lost {id}: {cause}");
    // Until the test has read it.
    let _ = station.next_event(LONG);
}

#[test]
fn a_host_that_vanishes_while_nothing_is_sent_is_noticed() {
    let Some(network) = Network::new(2) else {
        return;
    };
    let at = format!("{}:7400", network.address(0));
    let mut listens = Process::start(&network, 0, "listen", &at);
    assert_eq!(listens.hear(), "ready");
    let mut calls = Process::start(&network, 1, "call", &at);
    assert_eq!(calls.hear(), "ready");
    for process in [&mut listens, &mut calls] {
        assert_eq!(process.hear(), "idle");
    }
    network.set_reached(1, false);
    for (process, peer) in [(&mut listens, 2), (&mut calls, 1)] {
        let said = process.hear();
        let lost = format!("lost {peer}: ");
        assert!(
            said.starts_with(&lost) && said.contains("timed out"),
            "{said}"
        );
    }
}
