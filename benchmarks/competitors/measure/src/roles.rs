//! The loops of the four roles.

use std::io::Write;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Parser;
use rustix::process::{Signal, set_parent_process_death_signal};

use crate::clock::{monotonic_ns, process_cpu_ns};
use crate::meter::Meter;
use crate::report::Report;
use crate::schedule::Schedule;
use crate::{Arguments, Failure, Read, Role, Stamp, Wait};

/// A middleware.
pub trait Peer {
    /// The writer type.
    type Outlet: Outlet;
    /// The reader type.
    type Inlet: Inlet;

    /// Creates a writer of this topic.
    fn outlet(&mut self, topic: &str) -> Result<Self::Outlet, Failure>;
    /// Creates a reader of this topic.
    fn inlet(&mut self, topic: &str) -> Result<Self::Inlet, Failure>;
}

/// A writer.
pub trait Outlet {
    /// How many readers are connected.
    fn readers(&mut self) -> Result<usize, Failure>;

    /// Sends a sample; `write` fills in its payload. Blocks while there is no room.
    fn send(&mut self, stamp: Stamp, write: impl Fn(&mut [u8])) -> Result<(), Failure>;
}

/// A reader.
pub trait Inlet {
    /// Whether its writers are connected, as far as the middleware can tell.
    fn is_ready(&mut self) -> Result<bool, Failure> {
        Ok(true)
    }

    /// Passes the samples that have arrived to `each`, and returns their number. With
    /// [`Wait::Block`] it sleeps until one arrives, at most for `limit`.
    fn receive(
        &mut self,
        limit: Duration,
        each: &mut impl FnMut(Stamp, &[u8]),
    ) -> Result<usize, Failure>;
}

/// Runs the role that the command line names, over the middleware that `open` opens.
pub fn run<P: Peer>(open: impl FnOnce(&Arguments) -> Result<P, Failure>) -> ExitCode {
    let arguments = Arguments::parse();
    let outcome = end_with_the_runner()
        .and_then(|()| open(&arguments))
        .and_then(|mut peer| match arguments.role {
            Role::Publisher => publish(&mut peer, &arguments),
            Role::Subscriber => subscribe(&mut peer, &arguments),
            Role::Ping => ping(&mut peer, &arguments),
            Role::Pong => pong(&mut peer, &arguments),
        });
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("{failure}");
            ExitCode::FAILURE
        }
    }
}

/// Ends this process with its runner, even if the runner is killed.
fn end_with_the_runner() -> Result<(), Failure> {
    Ok(set_parent_process_death_signal(Some(Signal::KILL))?)
}

fn publish(peer: &mut impl Peer, arguments: &Arguments) -> Result<(), Failure> {
    let mut outlet = peer.outlet("data")?;
    wait_for_readers(&mut outlet, arguments.readers)?;
    let started_cpu_ns = process_cpu_ns();
    let schedule = Schedule::new(arguments);
    let started_ns = schedule.started_ns();
    let mut samples = 0;
    for stamp in schedule {
        outlet.send(stamp, writer_of(stamp, arguments.read))?;
        samples += 1;
    }
    print(&Report {
        role: "publisher",
        samples,
        seconds: (monotonic_ns() - started_ns) as f64 / 1e9,
        lost: 0,
        late: 0,
        complete: true,
        cpu_seconds: (process_cpu_ns() - started_cpu_ns) as f64 / 1e9,
        latency: None,
    })?;
    wait_for_their_end(&mut outlet)
}

fn subscribe(peer: &mut impl Peer, arguments: &Arguments) -> Result<(), Failure> {
    let mut inlet = peer.inlet("data")?;
    let mut meter = Meter::new("subscriber", "one_way", arguments)?;
    let mut patience = Patience::new(arguments.wait);
    while !meter.is_complete() {
        let came = inlet.receive(RECEIVE_LIMIT, &mut |stamp, payload| {
            meter.sample(stamp, payload);
        })?;
        if !patience.go_on(came, meter.samples()) {
            break;
        }
    }
    print(&meter.report())
}

fn ping(peer: &mut impl Peer, arguments: &Arguments) -> Result<(), Failure> {
    let mut inlet = peer.inlet("pong")?;
    let mut outlet = peer.outlet("ping")?;
    wait_for_readers(&mut outlet, 1)?;
    while !inlet.is_ready()? {
        std::thread::sleep(POLL_INTERVAL);
    }
    let mut meter = Meter::new("ping", "round_trip", arguments)?;
    let mut patience = Patience::new(arguments.wait);
    for stamp in Schedule::new(arguments) {
        let stamp = Stamp {
            sent_at_ns: monotonic_ns(),
            ..stamp
        };
        outlet.send(stamp, writer_of(stamp, arguments.read))?;
        let echoed = meter.samples();
        while meter.samples() == echoed {
            let came = inlet.receive(RECEIVE_LIMIT, &mut |stamp, payload| {
                meter.sample(stamp, payload);
            })?;
            if !patience.go_on(came, meter.samples()) {
                return print(&meter.report());
            }
        }
    }
    print(&meter.report())
}

fn pong(peer: &mut impl Peer, arguments: &Arguments) -> Result<(), Failure> {
    let mut outlet = peer.outlet("pong")?;
    let mut inlet = peer.inlet("ping")?;
    let mut patience = Patience::new(arguments.wait);
    let mut samples = 0;
    let mut pings = Vec::new();
    loop {
        pings.clear();
        let came = inlet.receive(RECEIVE_LIMIT, &mut |stamp, _| pings.push(stamp))?;
        for stamp in &pings {
            outlet.send(*stamp, writer_of(*stamp, arguments.read))?;
        }
        samples += pings.len() as u64;
        if pings.iter().any(|stamp| stamp.last) {
            return wait_for_their_end(&mut outlet);
        }
        if !patience.go_on(came, samples) {
            return Err("no further ping arrives".into());
        }
    }
}

fn writer_of(stamp: Stamp, read: Read) -> impl Fn(&mut [u8]) {
    let byte = stamp.number as u8;
    move |payload| {
        if read == Read::Sum {
            payload.fill(byte);
            return;
        }
        if let Some(first) = payload.first_mut() {
            *first = byte;
        }
        if let Some(last) = payload.last_mut() {
            *last = byte;
        }
    }
}

fn wait_for_readers(outlet: &mut impl Outlet, readers: u32) -> Result<(), Failure> {
    while outlet.readers()? < readers as usize {
        std::thread::sleep(POLL_INTERVAL);
    }
    // Endpoints may be connected in one direction before the other.
    std::thread::sleep(SETTLE);
    Ok(())
}

/// Waits until the readers disconnect: samples in flight are lost when the publisher ends.
fn wait_for_their_end(outlet: &mut impl Outlet) -> Result<(), Failure> {
    let deadline = Instant::now() + LINGER;
    while outlet.readers()? > 0 && Instant::now() < deadline {
        std::thread::sleep(POLL_INTERVAL);
    }
    Ok(())
}

fn print(report: &Report) -> Result<(), Failure> {
    let line = serde_json::to_string(report)?;
    Ok(writeln!(std::io::stdout(), "{line}")?)
}

/// How a reader waits while no sample arrives, and for how long.
struct Patience {
    wait: Wait,
    idle: u32,
    idle_since: Option<Instant>,
}

impl Patience {
    fn new(wait: Wait) -> Self {
        Self {
            wait,
            idle: 0,
            idle_since: None,
        }
    }

    /// False if no sample has arrived for [`IDLE_LIMIT`] after the first one. The runner limits the
    /// time until the first.
    fn go_on(&mut self, came: usize, samples: u64) -> bool {
        if came > 0 {
            self.idle = 0;
            self.idle_since = None;
            return true;
        }
        self.idle = self.idle.saturating_add(1);
        if self.wait == Wait::Poll {
            if self.idle <= SPINS {
                std::hint::spin_loop();
                return true;
            }
            std::thread::yield_now();
        }
        let since = *self.idle_since.get_or_insert_with(Instant::now);
        samples == 0 || since.elapsed() < IDLE_LIMIT
    }
}

/// Few, since there may be more readers than processors.
const SPINS: u32 = 200;
const IDLE_LIMIT: Duration = Duration::from_secs(2);
const RECEIVE_LIMIT: Duration = Duration::from_millis(500);
const POLL_INTERVAL: Duration = Duration::from_millis(1);
const SETTLE: Duration = Duration::from_millis(100);
const LINGER: Duration = Duration::from_secs(3);
