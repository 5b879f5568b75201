//! Loans of both sides, held while the group goes from view to view. Its own binary: it
//! is run under AddressSanitizer too.

use spindle_dds::qos::{DataReaderQos, DataWriterQos, History, Reliability};
use spindle_dds::{
    DataReader, DataWriter, DomainParticipant, Duration, Error, Loan, Sample, Samples, StatusMask,
    WaitSet,
};

use spindle_dds_test_types::flight::{Blob, BlobBuilder, State, StateBuilder};

/// Changes of the group while loans are held.
const VIEWS: u64 = 100;
/// Of each sender, in bytes: little, so that it is used again and again.
const RING: &str = "4096";
const BLOB_LEN: usize = 1000;
const PATIENCE: Duration = Duration::from_secs(60);

/// A participant with a topic, both ways.
struct Member {
    participant: DomainParticipant,
    states: DataWriter<State>,
    blobs: DataWriter<Blob>,
}

impl Member {
    fn new(directory: &str) -> Self {
        let participant = DomainParticipant::builder(0)
            .property("spindle.directory", directory)
            .property("spindle.ring.messages", "16")
            .property("spindle.ring.bytes", RING)
            // Both topics in one subgroup, whose epoch each change replaces.
            .property("spindle.topic.State.subgroup", "1")
            .property("spindle.topic.Blob.subgroup", "1")
            .disabled()
            .create()
            .expect("a participant");
        let publisher = participant.publisher().create().expect("a publisher");
        let qos = DataWriterQos {
            reliability: Reliability::reliable(PATIENCE),
            history: History::keep_all(),
            ..DataWriterQos::default()
        };
        let states = participant.topic("State").create().expect("a topic");
        let blobs = participant.topic("Blob").create().expect("a topic");
        let states = publisher.writer(&states).qos(qos.clone()).create();
        let blobs = publisher.writer(&blobs).qos(qos).create();
        Self {
            participant,
            states: states.expect("a writer"),
            blobs: blobs.expect("a writer"),
        }
    }

    fn reader(&self, storage: &str) -> DataReader<State> {
        let mut qos = DataReaderQos {
            reliability: Reliability::reliable(Duration::ZERO),
            history: History::keep_all(),
            ..DataReaderQos::default()
        };
        qos.property.set("spindle.reader.storage", storage);
        let subscriber = self.participant.subscriber().create();
        let subscriber = subscriber.expect("a subscriber");
        let reader = subscriber.reader(&self.states.topic()).qos(qos).create();
        reader.expect("a reader")
    }

    fn blob_reader(&self) -> DataReader<Blob> {
        let qos = DataReaderQos {
            reliability: Reliability::reliable(Duration::ZERO),
            history: History::keep_all(),
            ..DataReaderQos::default()
        };
        let subscriber = self.participant.subscriber().create();
        let subscriber = subscriber.expect("a subscriber");
        let reader = subscriber.reader(&self.blobs.topic()).qos(qos).create();
        reader.expect("a reader")
    }

    fn view(&self) -> u64 {
        self.participant.counters().expect("enabled").view
    }

    fn send(&self, number: u32) {
        let state = State {
            icao: number,
            number,
            callsign: "DLH4AB".to_owned(),
            ..State::default()
        };
        self.states.write(&state).expect("room comes back");
    }
}

/// Blocks until there are so many samples, and takes them.
fn take<T: spindle_dds::idl::TopicType>(reader: &DataReader<T>, count: usize) -> Vec<Samples<T>> {
    let waits = WaitSet::new();
    let condition = reader.read_condition(Default::default());
    waits.attach(condition.expect("alive"));
    let mut all: Vec<Samples<T>> = Vec::new();
    while all.iter().map(Samples::len).sum::<usize>() < count {
        match reader.take(1) {
            Ok(samples) => all.push(samples),
            Err(Error::NoData(_)) => drop(waits.wait(PATIENCE).expect("something comes")),
            Err(error) => panic!("{error}"),
        }
    }
    all
}

fn check(samples: &[Samples<State>], first: u32) {
    let each = samples.iter().flat_map(|samples| samples.iter());
    let read = |sample: Sample<'_, State>| {
        let view = sample.view().expect("as it was");
        assert_eq!(view.callsign(), "DLH4AB");
        (view.icao(), view.number())
    };
    let numbers: Vec<_> = each.map(read).collect();
    let wanted: Vec<_> = (first..).map(|number| (number, number)).take(4).collect();
    assert_eq!(numbers, wanted);
}

/// Sends, and has all taken and given back: rings are used again.
fn use_rings(from: &Member, readers: &[&DataReader<State>], first: u32) {
    for number in first..first + 8 {
        from.send(number);
        for reader in readers {
            let samples = take(reader, 1);
            let sample = samples[0].iter().next().expect("one");
            assert_eq!(sample.view().expect("as it was").number(), number);
        }
    }
}

struct Built {
    state: StateBuilder<Loan<State>>,
    blob: BlobBuilder<Loan<Blob>>,
    /// It is withdrawn at the end.
    never: StateBuilder<Loan<State>>,
}

fn build(member: &Member) -> Built {
    let mut state = member.states.loan().expect("room");
    state.set_icao(7).set_number(7_000).set_altitude(-300);
    let mut blob = member.blobs.loan_with(BLOB_LEN + 64).expect("room");
    blob.set_number(7_001);
    let mut never = member.states.loan().expect("room");
    never.set_icao(8);
    Built { state, blob, never }
}

/// Finishes them in whatever memory they are by now.
fn publish(built: Built) {
    let Built { state, blob, never } = built;
    drop(never);
    let state = state.callsign("AFR1").expect("short");
    state.publish().expect("room");
    let fill = |bytes: &mut [u8]| {
        let numbered = bytes.iter_mut().zip(0_usize..);
        numbered.for_each(|(to, at)| *to = at as u8);
    };
    let blob = blob.bytes_reuse_with(BLOB_LEN, fill).expect("it fits");
    blob.publish().expect("room");
}

#[test]
fn loans_of_both_sides_live_through_a_hundred_views() {
    let directory = tempfile::tempdir().expect("a directory");
    let directory = directory.path().join("domains");
    let directory = directory.to_str().expect("UTF-8");
    let [holder, changes] = [(); 2].map(|()| Member::new(directory));
    let copies = holder.reader("copy");
    let rings = holder.reader("ring");
    let blobs = holder.blob_reader();
    holder.participant.enable().expect("it founds the group");
    changes.participant.enable().expect("it is let in");
    (0..4).for_each(|number| changes.send(number));
    let held = [take(&copies, 4), take(&rings, 4)];
    let built = build(&holder);

    let before = holder.view();
    let mut number = 100;
    while holder.view() < before + VIEWS {
        let comes = changes.reader("copy");
        wait_for_writers(&comes, 2);
        use_rings(&changes, &[&copies, &rings], number);
        number += 8;
        let subscriber = comes.subscriber().expect("alive");
        subscriber.delete_datareader(&comes).expect("no samples");
        let guest = (number % 5 == 0).then(|| Member::new(directory));
        if let Some(guest) = &guest {
            guest.participant.enable().expect("it is let in");
            guest.send(number);
            for reader in [&copies, &rings] {
                take(reader, 1);
            }
            number += 1;
            guest.participant.close().expect("it leaves");
            for reader in [&copies, &rings] {
                // Its instance has lost its writer.
                take(reader, 1);
            }
        }
        held.iter().for_each(|samples| check(samples, 0));
    }

    publish(built);
    for reader in [&copies, &rings] {
        let taken = take(reader, 1);
        let sample = taken[0].iter().next().expect("one");
        let state = sample.data().expect("data");
        let told = (state.icao, state.number, state.altitude, &*state.callsign);
        assert_eq!(told, (7, 7_000, -300, "AFR1"));
    }
    let taken = take(&blobs, 1);
    let blob = taken[0].iter().next().expect("one").data().expect("data");
    let bytes: Vec<u8> = (0..BLOB_LEN).map(|at| at as u8).collect();
    assert_eq!((blob.number, &blob.bytes), (7_001, &bytes));
    held.iter().for_each(|samples| check(samples, 0));
    drop(held);
    // All room is there again.
    let loans: Vec<_> = (0..8)
        .map(|_| holder.states.loan().expect("room"))
        .collect();
    drop(loans);
    use_rings(&holder, &[&copies, &rings], 50_000);
    for member in [holder, changes] {
        member.participant.close().expect("it leaves");
    }
}

fn wait_for_writers(reader: &DataReader<State>, count: i32) {
    let condition = reader.status_condition().expect("alive");
    condition.set_enabled_statuses(StatusMask::SUBSCRIPTION_MATCHED);
    let waits = WaitSet::new();
    waits.attach(&condition);
    let matched = || reader.subscription_matched_status().expect("alive");
    while matched().current_count < count {
        waits.wait(PATIENCE).expect("they match");
    }
}
