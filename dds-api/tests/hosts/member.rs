//! A member in a process of its own: it publishes, and logs the samples that it takes.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use spindle_dds::qos::{
    DataReaderQos, DataWriterQos, History, Presentation, PresentationAccessScope, PublisherQos,
    Reliability, SubscriberQos,
};
use spindle_dds::{
    DataReader, DataWriter, DomainParticipant, DomainParticipantListener, Error, MembershipStatus,
    StatusMask,
};

use crate::network::Network;
use spindle_dds_test_types::flight::State;

const CHILD: &str = "SPINDLE_TEST_HOSTS_CHILD";
/// The number of a member's last sample.
const LAST: u32 = u32::MAX;
const HANGS_AFTER: Duration = Duration::from_secs(60);

/// A running member.
pub(crate) struct Member {
    pub(crate) host: usize,
    number: u32,
    child: Child,
    /// The lines of its standard output.
    lines: Receiver<String>,
    /// The file with the samples that it took.
    log: PathBuf,
}

/// A member that has ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) number: u32,
    /// The samples in the order in which it took them: writer and number.
    pub(crate) order: Vec<(u32, u32)>,
    /// The error that ended it, if any.
    pub(crate) failed: Option<String>,
    /// How often it lost its group.
    pub(crate) outages: u64,
    /// Samples that its reader missed.
    pub(crate) lost: u64,
    /// Samples that its writer lost.
    pub(crate) gone: u64,
    /// Samples that it wrote, without the last.
    pub(crate) written: u64,
}

impl Member {
    /// Starts one of `members` members. The first contact is on the first host.
    pub(crate) fn start(
        network: &Network,
        directory: &Path,
        host: usize,
        number: usize,
        members: usize,
        rejoin: &str,
    ) -> Self {
        let program = std::env::current_exe().expect("this test");
        let log = directory.join(format!("{number}.log"));
        let setup = Setup {
            directory: directory.join(format!("host-{host}")),
            listen: format!("{}:7400", network.address(host)),
            contact: format!("{}:7400", network.address(0)),
            number: number as u32,
            members,
            rejoin: rejoin.to_owned(),
            log: log.clone(),
        };
        let mut child = network
            .command(host, program.to_str().expect("UTF-8"))
            .args([
                "--exact",
                "member::child",
                "--nocapture",
                "--test-threads=1",
            ])
            .env(CHILD, setup.write())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a child");
        let (sender, lines) = channel();
        let stdout = BufReader::new(child.stdout.take().expect("piped"));
        thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                if let Some(report) = line.strip_prefix("member: ") {
                    let _ = sender.send(report.to_owned());
                }
            }
        });
        Self {
            host,
            number: number as u32,
            child,
            lines,
            log,
        }
    }

    pub(crate) fn wait_for(&mut self, what: &str) {
        let line = self.lines.recv_timeout(HANGS_AFTER);
        assert_eq!(line.as_deref(), Ok(what));
    }

    /// Waits until it has taken a sample of each member.
    pub(crate) fn wait_until_it_hears_all(&mut self) {
        self.wait_for("publishing");
        self.wait_for("hears all");
    }

    /// Makes it stop publishing, and leave once it has taken the last samples of the other
    /// members, which have to leave as well.
    pub(crate) fn tell_to_leave(&mut self) {
        drop(self.child.stdin.take());
    }

    /// Waits until it has left, or failed.
    pub(crate) fn finish(mut self) -> Ended {
        self.tell_to_leave();
        let line = self.lines.recv_timeout(HANGS_AFTER);
        let line = line.unwrap_or_else(|_| format!("member {} hangs", self.number));
        let log = std::fs::read_to_string(&self.log).expect("its log");
        let counts = line.strip_prefix("done ").map(|counts| {
            let mut counts = counts.split(' ').map(|it| it.parse().expect("a count"));
            [(); 4].map(|()| counts.next().expect("four counts"))
        });
        let failed = counts.is_none().then_some(line);
        let [outages, lost, gone, written] = counts.unwrap_or_default();
        Ended {
            number: self.number,
            order: read(&log),
            failed,
            outages,
            lost,
            gone,
            written,
        }
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn read(log: &str) -> Vec<(u32, u32)> {
    let number = |text: &str| text.parse().expect("a number");
    let line = |line: &str| {
        let (writer, sample) = line.split_once(' ').expect("two numbers");
        (number(writer), number(sample))
    };
    log.lines().map(line).collect()
}

/// The parameters of a member, passed in an environment variable.
struct Setup {
    directory: PathBuf,
    listen: String,
    contact: String,
    number: u32,
    members: usize,
    rejoin: String,
    log: PathBuf,
}

impl Setup {
    fn write(&self) -> String {
        let (directory, log) = (self.directory.display(), self.log.display());
        let Self {
            listen,
            contact,
            number,
            members,
            rejoin,
            ..
        } = self;
        format!("{listen} {contact} {number} {members} {rejoin} {directory} {log}")
    }

    fn read(text: &str) -> Self {
        let fields: Vec<&str> = text.split(' ').collect();
        let [listen, contact, number, members, rejoin, directory, log] = fields[..] else {
            panic!("{text:?} has not all fields");
        };
        Self {
            directory: directory.into(),
            listen: listen.to_owned(),
            contact: contact.to_owned(),
            number: number.parse().expect("a number"),
            members: members.parse().expect("a number"),
            rejoin: rejoin.to_owned(),
            log: log.into(),
        }
    }
}

/// Not a test by itself: the process of a [`Member`].
#[test]
fn child() {
    let Ok(setup) = std::env::var(CHILD) else {
        return;
    };
    let setup = Setup::read(&setup);
    let participant = DomainParticipant::builder(0)
        .property("spindle.directory", &setup.directory.to_string_lossy())
        .property("spindle.listen", &setup.listen)
        .property("spindle.contacts", &setup.contact)
        .property("spindle.failure.limit_ms", "700")
        .property("spindle.rejoin", &setup.rejoin)
        .listener(StatusMask::NONE, Told)
        .disabled()
        .create()
        .expect("a participant");
    let (writer, reader) = endpoints(&participant);
    participant.enable().expect("it joins");
    let others = || Some(participant.discovered_participants().ok()?.len());
    while others().expect("all join") + 1 < setup.members {
        thread::sleep(Duration::from_millis(1));
    }
    println!("\nmember: publishing");
    let is_over = AtomicBool::new(false);
    let logged = thread::scope(|scope| {
        scope.spawn(|| {
            // Blocks until the test closes it.
            let _ = std::io::stdin().lines().next();
            is_over.store(true, Ordering::Release);
        });
        let publishing = scope.spawn(|| publish(&writer, setup.number, &is_over));
        let members = || others().map(|it| it + 1);
        let logged = log_samples(&reader, &setup.log, setup.members, members);
        is_over.store(true, Ordering::Release);
        let written = publishing.join().expect("no panic");
        logged.map(|()| written)
    });
    match logged {
        Ok(written) => {
            let status = participant.membership_status().expect("alive");
            let lost = reader.sample_lost_status().expect("alive").total_count;
            participant.close().expect("it leaves");
            let (outages, gone) = (status.total_count, status.samples_gone);
            println!("\nmember: done {outages} {lost} {gone} {written}");
        }
        Err(error) => println!("\nmember: failed: {error}"),
    }
}

/// Prints when the participant loses its group, and when it comes back.
struct Told;

impl DomainParticipantListener for Told {
    fn on_membership_changed(&mut self, _: &DomainParticipant, status: &MembershipStatus) {
        let what = if status.is_member { "back" } else { "out" };
        println!("\nmember: {what}");
    }
}

/// Writes about one sample each millisecond. Returns how many it wrote before the last.
fn publish(writer: &DataWriter<State>, icao: u32, is_over: &AtomicBool) -> u32 {
    let state = |number| State {
        icao,
        number,
        ..State::default()
    };
    let mut number = 0;
    while !is_over.load(Ordering::Acquire) && writer.write(&state(number)).is_ok() {
        number += 1;
        thread::sleep(Duration::from_millis(1));
    }
    // An error is reported by the reader.
    let _ = writer.write(&state(LAST));
    number
}

/// Logs samples until the last sample of each remaining member has arrived. Says when it has one of each
/// of the `first` members.
fn log_samples(
    reader: &DataReader<State>,
    log: &Path,
    first: usize,
    members: impl Fn() -> Option<usize>,
) -> spindle_dds::Result<()> {
    let mut log = std::fs::File::create(log).expect("its log");
    let mut ended = 0;
    let mut heard = BTreeSet::new();
    loop {
        let samples = match reader.take(1000) {
            Ok(samples) => samples,
            Err(error) if error.is_no_data() => {
                if members().is_some_and(|members| ended >= members) {
                    return Ok(());
                }
                thread::sleep(Duration::from_millis(1));
                continue;
            }
            Err(Error::AlreadyDeleted(_)) => return Ok(()),
            Err(error) => return Err(error),
        };
        let mut text = String::new();
        for sample in samples.iter().filter(|it| it.info().valid_data) {
            let state = sample.data().expect("data");
            if heard.insert(state.icao) && heard.len() == first {
                println!("\nmember: hears all");
            }
            if state.number == LAST {
                ended += 1;
            } else {
                text += &format!("{} {}\n", state.icao, state.number);
            }
        }
        log.write_all(text.as_bytes()).expect("logged");
    }
}

fn endpoints(participant: &DomainParticipant) -> (DataWriter<State>, DataReader<State>) {
    let presentation = Presentation {
        access_scope: PresentationAccessScope::Topic,
        coherent_access: false,
        ordered_access: true,
    };
    let topic = participant.topic("State").create().expect("a topic");
    let publisher = participant.publisher().qos(PublisherQos {
        presentation,
        ..PublisherQos::default()
    });
    let publisher = publisher.create().expect("a publisher");
    let writer = publisher.writer(&topic).qos(DataWriterQos {
        reliability: Reliability::reliable(spindle_dds::Duration::from_secs(60)),
        history: History::keep_all(),
        ..DataWriterQos::default()
    });
    let subscriber = participant.subscriber().qos(SubscriberQos {
        presentation,
        ..SubscriberQos::default()
    });
    let subscriber = subscriber.create().expect("a subscriber");
    let reader = subscriber.reader(&topic).qos(DataReaderQos {
        reliability: Reliability::reliable(spindle_dds::Duration::ZERO),
        history: History::keep_all(),
        ..DataReaderQos::default()
    });
    (
        writer.create().expect("a writer"),
        reader.create().expect("a reader"),
    )
}
