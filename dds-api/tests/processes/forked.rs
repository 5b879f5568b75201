//! A process that forks: whatever its child does with the participants that it inherits, those of
//! the parent go on, and the child is told.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use std::{fs, thread};

use spindle_dds::qos::{DataReaderQos, DataWriterQos, History, Reliability};
use spindle_dds::{
    DataReader, DataWriter, DomainParticipant, Error, InstanceHandle, Result, StateMasks, WaitSet,
};
use spindle_dds_test_types::flight::State;
use tempfile::TempDir;

use crate::scene::{self, Child};

/// What the child does.
const ACTS: [&str; 6] = ["drop", "close", "use", "exit", "new", "exec"];
/// Children of one process, one after the other.
const CHILDREN: u32 = 4;
const CHILDREN_UNDER_LOAD: u32 = 25;
/// Why the child fails, if it does.
type Outcome = std::result::Result<(), String>;
/// Samples that the parent writes after each child has ended.
const AFTERWARDS: u32 = 20;
const PATIENCE: Duration = Duration::from_secs(60);

#[test]
fn a_child_that_drops_what_it_inherits_does_not_disturb_its_parent() {
    scene::play("forked::process", "drop");
}

#[test]
fn a_child_that_closes_what_it_inherits_is_refused_and_does_not_disturb_its_parent() {
    scene::play("forked::process", "close");
}

#[test]
fn a_child_that_uses_what_it_inherits_is_refused_and_does_not_disturb_its_parent() {
    scene::play("forked::process", "use");
}

#[test]
fn a_child_that_exits_does_not_disturb_its_parent() {
    scene::play("forked::process", "exit");
}

#[test]
fn a_child_that_makes_a_participant_of_its_own_is_a_member_like_any_other() {
    scene::play("forked::process", "new");
}

#[test]
fn a_program_that_a_child_executes_has_no_descriptor_of_the_library() {
    scene::play("forked::process", "exec");
}

#[test]
fn a_child_does_not_disturb_connections_to_other_hosts() {
    scene::play("forked::process_of_two_hosts", "drop");
}

#[test]
fn no_lock_that_another_thread_had_holds_up_a_child() {
    scene::play("forked::process_under_load", "drop");
}

/// Not a test by itself.
#[test]
fn process() {
    let Some(act) = scene::current() else { return };
    assert!(ACTS.contains(&&*act));
    let directory = tempfile::tempdir().expect("a directory");
    let before = descriptors();
    let mut pair = Some(Pair::on_one_host(&directory));
    for _ in 0..CHILDREN {
        let executed = directory.path().join("executed");
        let child = Pair::fork(&mut pair, |pair| {
            pair.act(&act, directory.path(), &executed)
        });
        parent(&mut pair).go_on(child);
        if act == "exec" {
            let executed = fs::read_to_string(&executed).expect("what it has written");
            let links = executed.lines().filter_map(|line| line.split_once(" -> "));
            let targets: Vec<&str> = links.map(|(_, target)| target).collect();
            assert!(targets.len() >= 3, "{executed}");
            let is_known = |target: &&&str| {
                // Its output, and the directory that it reads.
                before.iter().any(|known| known == **target)
                    || target.ends_with("executed")
                    || target.ends_with("/fd")
            };
            let inherited: Vec<_> = targets.iter().filter(|it| !is_known(it)).collect();
            assert!(inherited.is_empty(), "{inherited:?}");
        }
    }
    pair.expect("a pair").end();
}

/// Not a test by itself.
#[test]
fn process_of_two_hosts() {
    let Some(act) = scene::current() else { return };
    let directory = tempfile::tempdir().expect("a directory");
    let mut pair = Some(Pair::on_two_hosts(&directory));
    for _ in 0..CHILDREN {
        let unused = directory.path();
        let child = Pair::fork(&mut pair, |pair| pair.act(&act, unused, unused));
        parent(&mut pair).go_on(child);
    }
    pair.expect("a pair").end();
}

/// Not a test by itself.
#[test]
fn process_under_load() {
    let Some(act) = scene::current() else { return };
    let directory = tempfile::tempdir().expect("a directory");
    let mut pair = Some(Pair::on_one_host(&directory));
    let is_over = AtomicBool::new(false);
    let published = thread::scope(|scope| {
        let (writer, is_over) = (parent(&mut pair).writer.clone(), &is_over);
        let publishing = scope.spawn(move || {
            let mut number = 0;
            while !is_over.load(Ordering::Acquire) {
                write(&writer, number);
                number += 1;
            }
            number
        });
        for _ in 0..CHILDREN_UNDER_LOAD {
            let unused = directory.path();
            let child = Pair::fork(&mut pair, |pair| pair.act(&act, unused, unused));
            while !child.has_ended() {
                parent(&mut pair).take();
            }
        }
        is_over.store(true, Ordering::Release);
        // It may wait for room.
        while !publishing.is_finished() {
            parent(&mut pair).take();
        }
        publishing.join().expect("it publishes")
    });
    let mut pair = pair.expect("a pair");
    pair.written = published;
    pair.end();
}

/// In the parent, the pair is still there.
fn parent(pair: &mut Option<Pair>) -> &mut Pair {
    pair.as_mut().expect("a pair")
}

/// What the open descriptors of this process are.
fn descriptors() -> Vec<String> {
    let all = fs::read_dir("/proc/self/fd")
        .expect("a directory")
        .flatten();
    let targets = all.filter_map(|entry| fs::read_link(entry.path()).ok());
    targets.map(|target| target.display().to_string()).collect()
}

fn write(writer: &DataWriter<State>, number: u32) {
    let state = State {
        number,
        ..State::default()
    };
    writer.write(&state).expect("written");
}

/// A writer and a reader of one process; the reader checks that it gets each sample.
struct Pair {
    participants: Vec<DomainParticipant>,
    writer: DataWriter<State>,
    reader: DataReader<State>,
    written: u32,
    received: u32,
}

impl Pair {
    fn on_one_host(directory: &TempDir) -> Self {
        let directory = directory.path().join("domains");
        let participant = DomainParticipant::builder(0)
            .property("spindle.directory", &directory.display().to_string())
            .create()
            .expect("a participant");
        Self::of(vec![participant])
    }

    /// The hosts are simulated by directories of their own.
    fn on_two_hosts(directory: &TempDir) -> Self {
        let [low, high, ..] = std::process::id().to_le_bytes();
        let contact = format!("127.{}.{}.3:7400", low.max(1), high);
        let participants = [
            ("first", contact.clone()),
            ("second", contact.replace(".3:", ".4:")),
        ];
        let participants = participants.map(|(host, listen)| {
            let directory = directory.path().join(host);
            DomainParticipant::builder(0)
                .property("spindle.directory", &directory.display().to_string())
                .property("spindle.listen", &listen)
                .property("spindle.contacts", &contact)
                .create()
                .expect("a participant")
        });
        Self::of(participants.into())
    }

    /// The first one writes, the last one reads.
    fn of(participants: Vec<DomainParticipant>) -> Self {
        let [writing, reading] = [participants.first(), participants.last()];
        let (writing, reading) = (writing.expect("one"), reading.expect("one"));
        let topic = writing.topic("State").create().expect("a topic");
        let qos = DataWriterQos {
            reliability: Reliability::reliable(spindle_dds::Duration::INFINITE),
            history: History::keep_all(),
            ..DataWriterQos::default()
        };
        let publisher = writing.publisher().create().expect("a publisher");
        let writer = publisher.writer(&topic).qos(qos).create();
        let writer = writer.expect("a writer");
        let topic = match participants.len() {
            1 => topic,
            _ => reading.topic("State").create().expect("a topic"),
        };
        let qos = DataReaderQos {
            reliability: Reliability::reliable(spindle_dds::Duration::ZERO),
            history: History::keep_all(),
            ..DataReaderQos::default()
        };
        let subscriber = reading.subscriber().create().expect("a subscriber");
        let reader = subscriber.reader(&topic).qos(qos).create();
        let reader = reader.expect("a reader");
        let deadline = Instant::now() + PATIENCE;
        while writer
            .matched_subscriptions()
            .expect("its readers")
            .is_empty()
        {
            assert!(Instant::now() < deadline, "they do not match");
            thread::sleep(Duration::from_millis(1));
        }
        Self {
            participants,
            writer,
            reader,
            written: 0,
            received: 0,
        }
    }

    fn write(&mut self) {
        write(&self.writer, self.written);
        self.written += 1;
    }

    fn take(&mut self) {
        match self.reader.take(64) {
            Ok(samples) => {
                for sample in samples.iter().filter(|sample| sample.info().valid_data) {
                    let number = sample.data().expect("a sample").number;
                    assert_eq!(number, self.received);
                    self.received += 1;
                }
            }
            Err(error) => assert!(error.is_no_data(), "{error}"),
        }
    }

    /// Forks. The child gets the pair itself, the last handles included; the parent keeps it, too.
    fn fork(pair: &mut Option<Self>, act: impl FnOnce(Self) -> Outcome) -> Child {
        Child::fork(|| act(pair.take().ok_or("there is no pair")?))
    }

    /// What a child does with what it has inherited.
    fn act(self, act: &str, directory: &Path, executed: &Path) -> Outcome {
        match act {
            "drop" => {
                drop(self);
                Ok(())
            }
            "close" => {
                for participant in &self.participants {
                    refused("close", participant.close())?;
                }
                drop(self);
                Ok(())
            }
            "use" => self.use_all(),
            "exit" => std::process::exit(0),
            "new" => {
                let directory = directory.join("domains").display().to_string();
                let participant =
                    DomainParticipant::builder(0).property("spindle.directory", &directory);
                let participant = participant.create().map_err(|error| error.to_string())?;
                let mut own = Self::of(vec![participant]);
                // The parent writes on.
                let deadline = Instant::now() + PATIENCE;
                let mut foreign = 0;
                while foreign < 3 && Instant::now() < deadline {
                    let taken = own.reader.take(64).map_or(0, |samples| samples.len());
                    foreign += taken;
                }
                let close = own.participants.remove(0).close();
                close.map_err(|error| error.to_string())?;
                (foreign >= 3)
                    .then_some(())
                    .ok_or_else(|| "it receives nothing".to_owned())
            }
            "exec" => {
                let file = fs::File::create(executed).map_err(|error| error.to_string())?;
                let mut list = Command::new("ls");
                let error = list.args(["-l", "/proc/self/fd"]).stdout(file).exec();
                Err(error.to_string())
            }
            _ => Err(format!("what is {act}?")),
        }
    }

    /// Each operation says that the handles are of another process.
    fn use_all(self) -> Outcome {
        let participant = &self.participants[0];
        let handle = InstanceHandle::NIL;
        refused("write", self.writer.write(&State::default()))?;
        refused("loan", self.writer.loan().map(drop))?;
        refused("take", self.reader.take(1))?;
        refused("read", self.reader.read(1))?;
        refused("matched", self.writer.matched_subscriptions())?;
        refused(
            "matched data",
            self.writer.matched_subscription_data(handle),
        )?;
        let second = spindle_dds::Duration::from_secs(1);
        refused("wait", self.writer.wait_for_acknowledgments(second))?;
        refused("qos", self.writer.qos())?;
        refused("status", self.reader.status_changes())?;
        refused("condition", self.reader.status_condition())?;
        refused(
            "read condition",
            self.reader.read_condition(StateMasks::ANY),
        )?;
        refused("enable", participant.enable())?;
        refused("topic", participant.topic::<State>("Other").create())?;
        refused("publisher", participant.publisher().create())?;
        refused("peers", participant.peers())?;
        refused("counters", participant.counters())?;
        refused("discovered", participant.discovered_participants())?;
        refused("delete", participant.delete_contained_entities())?;
        refused("close", participant.close())
    }

    /// The parent writes and receives until the child has ended, and some more.
    fn go_on(&mut self, child: Child) {
        while !child.has_ended() {
            self.write();
            self.take();
            thread::sleep(Duration::from_millis(1));
        }
        for _ in 0..AFTERWARDS {
            self.write();
            self.take();
        }
        self.wait_for_all();
    }

    fn wait_for_all(&mut self) {
        let deadline = Instant::now() + PATIENCE;
        while self.received < self.written {
            let (received, written) = (self.received, self.written);
            assert!(Instant::now() < deadline, "{received} of {written}");
            self.take();
        }
    }

    fn end(mut self) {
        self.wait_for_all();
        for participant in self.participants {
            participant.close().expect("closed");
        }
    }
}

fn refused<T>(what: &str, result: Result<T>) -> Outcome {
    match result {
        Err(Error::AlreadyDeleted(text)) if text.contains("inherited by fork") => Ok(()),
        Err(other) => Err(format!("{what}: {other}")),
        Ok(_) => Err(format!("{what} is accepted")),
    }
}

/// Not a test by itself: loans, samples and wait-sets that a child has inherited.
#[test]
fn process_with_loans() {
    if scene::current().is_none() {
        return;
    }
    let directory = tempfile::tempdir().expect("a directory");
    let mut pair = Pair::on_one_host(&directory);
    let wait_set = WaitSet::new();
    wait_set.attach(pair.reader.status_condition().expect("a condition"));
    for _ in 0..CHILDREN {
        pair.write();
        let samples = loop {
            if let Ok(samples) = pair.reader.take(1) {
                break samples;
            }
        };
        pair.received += 1;
        let mut loan = pair.writer.loan().expect("a loan");
        loan.set_number(pair.written);
        let (mut loan, mut samples) = (Some(loan), Some(samples));
        let child = Child::fork(|| {
            drop(samples.take());
            let mut loan = loan.take().ok_or("there is no loan")?;
            loan.set_number(u32::MAX);
            let loan = loan.callsign("child").map_err(|error| error.to_string())?;
            refused("publish", loan.publish())?;
            let second = spindle_dds::Duration::from_secs(1);
            refused("wait", wait_set.wait(second))
        });
        child.join();
        let loan = loan.take().expect("a loan").callsign("parent");
        loan.expect("it fits").publish().expect("published");
        pair.written += 1;
        drop(samples);
        pair.wait_for_all();
    }
    pair.end();
}

#[test]
fn a_child_can_neither_publish_a_loan_nor_wait_nor_give_back_a_sample_of_its_parent() {
    scene::play("forked::process_with_loans", "loans");
}
