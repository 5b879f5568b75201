//! Domains over several hosts: those that meet in different directories are on different
//! hosts, and reach each other over the network only.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use spindle_dds::qos::{DataWriterQos, History};
use spindle_dds::{
    DomainParticipant, Error, ParticipantBuilder, PeerPath, ReturnCode, Sample, testing,
};
use spindle_dds_transport::shm::{DomainRegistry, DomainState, MemberEntry, ViewDecision, host_id};

use crate::acknowledgments::{narrow_reader, number, write};
use crate::flight::State;
use crate::meeting::{
    Meeting, PATIENCE, reader, reliable_writer, state, take, until, wait_for_members, writer,
    writer_with,
};

/// So many hosts, each with a place where it listens.
struct Hosts {
    places: Vec<Meeting>,
    contacts: Vec<String>,
}

impl Hosts {
    /// At an address of their own, so that no other test listens there.
    fn new(count: usize) -> Self {
        static MADE: AtomicU8 = AtomicU8::new(1);
        let [low, high, ..] = std::process::id().to_le_bytes();
        let made = MADE.fetch_add(1, Ordering::Relaxed);
        let contact = |at: usize| format!("127.{made}.{high}.{low}:{}", 7400 + at);
        Self {
            places: (0..count).map(|_| Meeting::new()).collect(),
            contacts: (0..count).map(contact).collect(),
        }
    }

    /// One that comes to a host, with the first `contacts` of them.
    fn builder(&self, at: usize, contacts: usize) -> ParticipantBuilder {
        let builder = self.places[at].builder();
        let builder = builder.property("spindle.listen", &self.contacts[at]);
        builder.property("spindle.contacts", &self.contacts[..contacts].join(","))
    }

    fn participant(&self, at: usize, contacts: usize) -> DomainParticipant {
        self.builder(at, contacts).create().expect("a participant")
    }
}

/// Enables it beside the others; what comes of it comes out.
fn enable(participant: &DomainParticipant) -> Receiver<Result<(), Error>> {
    let (sender, enabled) = channel();
    let participant = participant.clone();
    thread::spawn(move || sender.send(participant.enable()));
    enabled
}

fn is_in(enabled: &Receiver<Result<(), Error>>) {
    let enabled = enabled.recv_timeout(Duration::from_secs(60));
    assert_eq!(enabled.expect("it ends"), Ok(()));
}

#[test]
fn what_a_full_reader_of_another_host_accepts_is_acknowledged() {
    let hosts = Hosts::new(2);
    let participants = [0, 1].map(|at| hosts.participant(at, 1));
    let writer = writer(&participants[0], "State");
    let reader = narrow_reader(&participants[1], "State");
    let second = enable(&participants[1]);
    participants[0].enable().expect("it founds the group");
    is_in(&second);
    wait_for_members(&participants, 2);
    write(&writer, 0..1);
    writer
        .wait_for_acknowledgments(PATIENCE)
        .expect("in the cache");
    for next in 1..20 {
        write(&writer, next..next + 1);
        let waited = writer.wait_for_acknowledgments(spindle_dds::Duration::from_millis(5));
        assert!(matches!(waited, Err(Error::Timeout(_))), "{waited:?}");
        thread::scope(|scope| {
            let waiting = scope.spawn(|| writer.wait_for_acknowledgments(PATIENCE));
            assert_eq!(take(&reader, 1, number), [next - 1]);
            waiting.join().expect("it ends").expect("accepted");
        });
    }
}

#[test]
fn two_hosts_have_one_order() {
    let hosts = Hosts::new(2);
    let participants = [0, 1].map(|at| hosts.participant(at, 1));
    let writers = participants.each_ref().map(|it| writer(it, "State"));
    let readers = participants.each_ref().map(|it| reader(it, "State"));
    // The second one waits for the first.
    let second = enable(&participants[1]);
    until("it joins", || testing::is_enabling(&participants[1]));
    participants[0].enable().expect("it founds the group");
    is_in(&second);
    wait_for_members(&participants, 2);
    thread::scope(|scope| {
        for (icao, writer) in (0..).zip(&writers) {
            scope.spawn(move || {
                for number in 0..500 {
                    writer.write(&state(icao, number)).expect("sent");
                }
            });
        }
    });
    let orders = readers.each_ref().map(|reader| {
        take(reader, 1000, |sample| {
            let state = sample.data().expect("data");
            (state.icao, state.number)
        })
    });
    assert_eq!(orders[0], orders[1]);
    // The founder leaves; the other one goes on.
    participants[0].close().expect("it leaves");
    wait_for_members(&participants[1..], 1);
    writers[1].write(&state(1, 500)).expect("it goes on");
    let third = hosts.participant(0, 1);
    let heard = reader(&third, "State");
    let enabled = enable(&third);
    // Its first contact is itself; but its host remembers where the others are.
    is_in(&enabled);
    wait_for_members(&[participants[1].clone(), third], 2);
    writers[1].write(&state(1, 501)).expect("it goes on");
    assert_eq!(
        take(&heard, 1, |sample| sample.data().expect("data").number),
        [501]
    );
}

/// What is on its way to the other host when the group is lost is sent again, and nothing twice.
#[test]
fn what_was_under_way_to_another_host_comes_once_after_a_return() {
    const SAMPLES: u32 = 300;
    let hosts = Hosts::new(2);
    // Two of three are a majority.
    let [stays, other, goes] = [0, 0, 1].map(|at| hosts.participant(at, 1));
    let heard = reader(&stays, "State");
    let keeps_all = DataWriterQos {
        history: History::keep_all(),
        ..reliable_writer()
    };
    let own = writer_with(&goes, "State", keeps_all);
    stays.enable().expect("it founds the group");
    for one in [&other, &goes] {
        one.enable().expect("it is let in");
    }
    wait_for_members(&[stays.clone(), other.clone(), goes.clone()], 3);
    let over = AtomicBool::new(false);
    // What another thread writes all the time stays in its order, too.
    let write_on = || {
        let mut numbers = 0..;
        while !over.load(Ordering::Relaxed) {
            let number = numbers.next().expect("a number");
            own.write(&state(2, number)).expect("it comes back");
            // The ring is not to be full while the other thread takes nothing.
            thread::sleep(Duration::from_millis(1));
        }
        numbers.start
    };
    let mut beside = Vec::new();
    let take_next = |beside: &mut Vec<u32>| {
        let data = |sample: Sample<'_, State>| {
            let data = sample.info().valid_data.then(|| sample.data());
            data.map(|data| data.expect("data"))
        };
        let next = take(&heard, 1, data).pop().flatten()?;
        if next.icao == 2 {
            beside.push(next.number);
        }
        Some((next.icao, next.number))
    };
    let written = thread::scope(|scope| {
        let writing = scope.spawn(write_on);
        for round in 0..5 {
            let numbers = round * SAMPLES..(round + 1) * SAMPLES;
            let mut receipts = Vec::new();
            for number in numbers.clone() {
                receipts.push(own.write(&state(1, number)).expect("it comes back"));
            }
            testing::fail(&goes, "this is a test").expect("enabled");
            let mut come = Vec::new();
            while come.last() != Some(&(numbers.end - 1)) {
                let own = take_next(&mut beside).filter(|(icao, _)| *icao == 1);
                come.extend(own.map(|(_, number)| number));
            }
            assert_eq!(come, numbers.collect::<Vec<_>>());
            until("it is back", || {
                let status = goes.membership_status().expect("alive");
                status.is_member && status.total_count == round as i32 + 1
            });
            for receipt in [&receipts[0], &receipts[receipts.len() - 1]] {
                own.wait_for(receipt, spindle_dds::Duration::INFINITE)
                    .expect("it is received");
            }
        }
        over.store(true, Ordering::Relaxed);
        // A full reader would hold the writer back.
        until("it has written all", || {
            let _ = heard.read(1).is_ok() && take_next(&mut beside).is_some();
            writing.is_finished()
        });
        writing.join().expect("no panic")
    });
    while beside.last() != Some(&(written - 1)) {
        take_next(&mut beside);
    }
    assert_eq!(beside, (0..written).collect::<Vec<_>>());
    assert_eq!(heard.sample_lost_status().expect("alive").total_count, 0);
    assert_eq!(goes.membership_status().expect("alive").samples_gone, 0);
}

#[test]
fn idle_participants_sleep_across_hosts_too() {
    let hosts = Hosts::new(2);
    let participants = [0, 0, 1].map(|at| hosts.participant(at, 1));
    let writers = participants.each_ref().map(|it| writer(it, "State"));
    let readers = participants.each_ref().map(|it| reader(it, "State"));
    let enabled = participants.each_ref().map(enable);
    enabled.iter().for_each(is_in);
    wait_for_members(&participants, 3);
    let steps = || {
        participants.each_ref().map(|participant| {
            let counters = participant.counters().expect("enabled").engine;
            counters.steps + counters.idle_steps
        })
    };
    for (number, writer) in (0..).zip(&writers) {
        let rests = (0..100).any(|_| {
            let before = steps();
            thread::sleep(Duration::from_millis(200));
            steps() == before
        });
        assert!(rests, "a participant steps all the time");
        writer.write(&state(1, number)).expect("sent");
        for reader in &readers {
            let numbers = take(reader, 1, |sample| sample.data().expect("data").number);
            assert_eq!(numbers, [number], "a sleeper is woken");
        }
    }
}

#[test]
fn some_on_one_host_and_one_elsewhere() {
    let hosts = Hosts::new(2);
    let participants = [0, 0, 1].map(|at| hosts.participant(at, 1));
    let readers = participants.each_ref().map(|it| reader(it, "State"));
    let writers = participants.each_ref().map(|it| writer(it, "State"));
    let enabled = participants.each_ref().map(enable);
    enabled.iter().for_each(is_in);
    wait_for_members(&participants, 3);
    for (icao, writer) in (0..).zip(&writers) {
        writer.write(&state(icao, 7)).expect("sent");
    }
    let orders = readers
        .each_ref()
        .map(|reader| take(reader, 3, |sample| sample.data().expect("data").icao));
    assert!(orders.iter().all(|order| *order == orders[0]), "{orders:?}");
}

#[test]
fn the_first_contact_waits_for_a_majority() {
    let hosts = Hosts::new(3);
    let [first, second, third] = [0, 1, 2].map(|at| hosts.participant(at, 3));
    let founds = enable(&first);
    let alone = founds.recv_timeout(Duration::from_millis(300));
    assert!(alone.is_err(), "one of three is no majority: {alone:?}");
    let joins = enable(&third);
    is_in(&founds);
    is_in(&joins);
    second.enable().expect("it is let in");
    wait_for_members(&[first, second, third], 3);
}

#[test]
fn only_the_first_contact_founds_a_domain() {
    let hosts = Hosts::new(2);
    let builder = hosts.builder(1, 2);
    let hasty = builder.property("spindle.join.timeout_ms", "200");
    let hasty = hasty.create().expect("a participant");
    let error = hasty.enable().expect_err("it may not found");
    assert!(matches!(error, Error::Timeout(_)), "{error}");
    let text = error.to_string();
    let first = format!("first contact {}: no station answers", hosts.contacts[0]);
    assert!(text.contains(&first), "{text}");
    assert!(
        text.contains("the domain is not founded until it runs"),
        "{text}"
    );
}

#[test]
fn with_prefer_availability_a_group_is_founded_without_a_majority() {
    let hosts = Hosts::new(2);
    let builder = hosts.builder(0, 2);
    let first = builder
        .property("spindle.prefer_availability", "true")
        .property("spindle.failure.limit_ms", "100")
        .create()
        .expect("a participant");
    let started = Instant::now();
    first.enable().expect("it founds the group");
    assert!(started.elapsed() >= Duration::from_millis(100));
}

/// A file with a secret.
fn secret(directory: &Path, name: &str, text: &str) -> String {
    let path = directory.join(name);
    std::fs::write(&path, text).expect("written");
    let owner_only = std::fs::Permissions::from_mode(0o600);
    std::fs::set_permissions(&path, owner_only).expect("set");
    path.to_str().expect("UTF-8").to_owned()
}

/// Secrets change while the group goes on, and encryption may be required.
#[test]
fn participants_of_two_secrets_meet_encrypted() {
    let hosts = Hosts::new(3);
    let secrets = tempfile::tempdir().expect("a directory");
    let [old, new] = ["old", "new"].map(|it| secret(secrets.path(), it, it));
    let with = |at: usize, own: &str, accepted: &str, encryption: &str| {
        let builder = hosts.builder(at, 1).property("spindle.secret_file", own);
        let builder = builder.property("spindle.accepted_secret_file", accepted);
        let builder = builder.property("spindle.encryption", encryption);
        let builder = builder.property("spindle.join.timeout_ms", "600");
        builder.create().expect("a participant")
    };
    let participants = [with(0, &old, &new, "required"), with(1, &new, &old, "auto")];
    for participant in &participants {
        participant.enable().expect("it is let in");
    }
    wait_for_members(&participants, 2);
    for participant in &participants {
        let peers = participant.peers().expect("it lives");
        let reach = peers.iter().map(|peer| (&peer.path, peer.encrypted));
        assert_eq!(reach.collect::<Vec<_>>(), [(&PeerPath::Stream, true)]);
    }
    let error = with(2, &old, &new, "off").enable().expect_err("refused");
    assert!(matches!(error, Error::Timeout(_)), "{error}");
    let text = error.to_string();
    assert!(text.contains("has turned encryption off"), "{text}");
}

#[test]
fn a_participant_without_the_secret_is_refused() {
    let hosts = Hosts::new(3);
    let secrets = tempfile::tempdir().expect("a directory");
    let secret = |name: &str, text: &str| secret(secrets.path(), name, text);
    let (right, wrong) = (
        secret("right", "open sesame"),
        secret("wrong", "open barley"),
    );
    let first = hosts.builder(0, 1).property("spindle.secret_file", &right);
    let first = first.create().expect("a participant");
    first.enable().expect("it founds the group");
    for path in [Some(&wrong), None] {
        let mut builder = hosts.builder(1, 1);
        // It does not wait for that.
        builder = builder.property("spindle.join.timeout_ms", "600000");
        if let Some(path) = path {
            builder = builder.property("spindle.secret_file", path);
        }
        let stranger = builder.create().expect("a participant");
        let error = stranger.enable().expect_err("a stranger");
        assert_eq!(error.return_code(), ReturnCode::NotAllowedBySecurity);
        let text = error.to_string();
        let first = format!("first contact {}: it refuses", hosts.contacts[0]);
        assert!(text.contains("secret") && text.contains(&first), "{text}");
        assert!(!stranger.is_enabled());
    }
    // As long as another contact may come, it waits for it.
    let patient = hosts.builder(1, 3).property("spindle.secret_file", &wrong);
    let patient = patient.property("spindle.join.timeout_ms", "300").create();
    let error = patient.expect("a participant").enable();
    let error = error.expect_err("the third one is not there");
    assert!(matches!(error, Error::Timeout(_)), "{error}");
    let friend = hosts.builder(1, 1).property("spindle.secret_file", &right);
    let friend = friend.create().expect("a participant");
    friend.enable().expect("it is let in");
    wait_for_members(&[first.clone(), friend.clone()], 2);
    for participant in [&first, &friend] {
        let peers = participant.peers().expect("it lives");
        let reach = peers.iter().map(|peer| (&peer.path, peer.encrypted));
        assert_eq!(reach.collect::<Vec<_>>(), [(&PeerPath::Stream, true)]);
    }
    let missing = hosts
        .builder(1, 1)
        .property("spindle.secret_file", "/nowhere");
    let missing = missing.create().expect("a participant");
    let text = missing.enable().expect_err("no file").to_string();
    assert!(text.contains("spindle.secret_file"), "{text}");
}

#[test]
fn a_participant_with_incompatible_settings_is_refused() {
    let hosts = Hosts::new(2);
    let first = hosts.participant(0, 1);
    first.enable().expect("it founds the group");
    let other = hosts.builder(1, 1).property("spindle.subgroups", "5");
    let other = other.create().expect("a participant");
    let text = other.enable().expect_err("it differs").to_string();
    assert!(text.contains("spindle.subgroups"), "{text}");
    // On the host of the first, but unheard by others.
    let second = hosts.participant(1, 1);
    second.enable().expect("it is let in");
    let deaf = hosts.places[0].participant();
    let text = deaf.enable().expect_err("it does not listen").to_string();
    assert!(text.contains("spindle.listen"), "{text}");
}

#[test]
fn a_returning_participant_finds_the_members_that_its_host_recorded() {
    let hosts = Hosts::new(3);
    let [first, stays, goes] = [0, 1, 2].map(|at| hosts.participant(at, 1));
    first.enable().expect("it founds the group");
    stays.enable().expect("it is let in");
    goes.enable().expect("it is let in");
    wait_for_members(&[first.clone(), stays.clone(), goes.clone()], 3);
    first.close().expect("it leaves");
    goes.close().expect("it leaves");
    wait_for_members(std::slice::from_ref(&stays), 1);
    // The only contact is gone.
    let back = hosts.participant(2, 1);
    back.enable().expect("it is let in");
    wait_for_members(&[stays, back], 2);
}

/// Makes an entry one of a process that is no more: it has started at another time, which its
/// address says, too.
fn make_ended(member: &mut MemberEntry) {
    let process = format!("-{}-{}-", member.pid, member.start);
    let mut bytes = member.address.windows(process.len());
    let at = bytes.position(|it| it == process.as_bytes());
    // The tens of its ticks.
    let tens = at.expect("in its address") + process.len() - 3;
    member.address[tens] ^= 1;
}

/// All hosts' records name members of others; when all have ended, each host knows it of
/// its own, and the domain is founded anew.
#[test]
fn a_domain_whose_members_have_all_ended_is_founded_anew() {
    let hosts = Hosts::new(2);
    let record = |at: usize| {
        let directory = hosts.places[at].directory();
        let directory = Some(Path::new(&directory));
        let host = host_id(0, directory).expect("a directory");
        let observer = MemberEntry::here(0, host, Vec::new()).expect("this process");
        DomainRegistry::open(0, directory, observer).expect("a record")
    };
    let remembered: Vec<_> = {
        let participants = [0, 1].map(|at| hosts.participant(at, 2));
        let enabled = participants.each_ref().map(enable);
        enabled.iter().for_each(is_in);
        wait_for_members(&participants, 2);
        let records = [0, 1].map(|at| {
            let record = record(at);
            let Ok(DomainState::Present(mut members)) = record.living_members() else {
                panic!("no members");
            };
            members.iter_mut().for_each(make_ended);
            let (view, digest) = (100, 1);
            let ended = ViewDecision {
                view,
                digest,
                members,
            };
            (record, ended)
        });
        participants
            .iter()
            .for_each(|it| it.close().expect("it leaves"));
        records.into()
    };
    for (record, ended) in remembered {
        record.record(&ended).expect("written");
    }
    let hasty = hosts
        .builder(0, 1)
        .property("spindle.join.timeout_ms", "300");
    let hasty = hasty.create().expect("a participant");
    let text = hasty
        .enable()
        .expect_err("the other host is silent")
        .to_string();
    assert!(text.contains(&hosts.contacts[1]), "{text}");
    drop(hasty);
    let participants = [0, 1].map(|at| hosts.participant(at, 2));
    let enabled = participants.each_ref().map(enable);
    enabled.iter().for_each(is_in);
    wait_for_members(&participants, 2);
}

/// A device of a name that none has: it cannot be had, whatever this host has.
#[test]
fn rdma_that_cannot_be_had_is_told_if_it_is_required() {
    let hosts = Hosts::new(2);
    let with = |at, rdma| {
        let builder = hosts.builder(at, 1).property("spindle.rdma", rdma);
        let builder = builder.property("spindle.rdma.device", "none_of_them");
        builder.create().expect("a participant")
    };
    let words = match cfg!(feature = "verbs") {
        true => "RDMA device",
        false => "built without the feature `verbs`",
    };
    let error = with(0, "required").enable().expect_err("there is none");
    let text = error.to_string();
    let unsupported = matches!(error, Error::Unsupported(_));
    assert_eq!(unsupported, !cfg!(feature = "verbs"), "{text}");
    assert!(text.contains("spindle.rdma is required"), "{text}");
    assert!(text.contains(words), "{text}");
    // The rest works, by streams.
    let [first, second] = [0, 1].map(|at| with(at, "auto"));
    assert_eq!([first.enable(), second.enable()], [Ok(()), Ok(())]);
    wait_for_members(&[first.clone(), second.clone()], 2);
    for participant in [&first, &second] {
        let peers = participant.peers().expect("it lives");
        let paths: Vec<_> = peers.iter().map(|peer| &peer.path).collect();
        assert_eq!(paths, [&PeerPath::Stream]);
    }
    let guid = |it: &DomainParticipant| it.instance_handle().guid().expect("an entity");
    let near = hosts.participant(0, 1);
    near.enable().expect("it joins");
    wait_for_members(std::slice::from_ref(&near), 3);
    let others: BTreeMap<_, _> = near
        .peers()
        .expect("it lives")
        .into_iter()
        .map(|peer| (peer.guid, peer.path))
        .collect();
    assert_eq!(others.get(&guid(&first)), Some(&PeerPath::SharedMemory));
    assert_eq!(others.get(&guid(&second)), Some(&PeerPath::Stream));
}
