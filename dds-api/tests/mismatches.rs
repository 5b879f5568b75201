//! Writers and readers of one topic that do not match are told of: once in the log, and to monitors.
//! A binary of its own: `tracing` decides once for the process which subscriber gets a log line.

mod warnings;

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use spindle_dds::monitor::{MismatchFigures, Monitor};
use spindle_dds::qos::{
    DataReaderQos, DataWriterQos, Incompatibility, LatencyBudget, PolicyId, Reliability,
};
use spindle_dds::{DataReader, DataWriter, DomainParticipant, Topic};
use spindle_dds_test_types::flight::{Other, State};
use warnings::Warnings;

/// Participants of one test.
struct Group {
    directory: tempfile::TempDir,
    participants: Vec<DomainParticipant>,
}

impl Group {
    fn new() -> Self {
        Self {
            directory: tempfile::tempdir().expect("a directory"),
            participants: Vec::new(),
        }
    }

    fn join(&mut self, name: &str) -> DomainParticipant {
        let directory = self.directory.path().join("domains");
        let participant = DomainParticipant::builder(0)
            .name(name)
            .property("spindle.directory", directory.to_str().expect("UTF-8"))
            .create()
            .expect("a participant");
        self.participants.push(participant.clone());
        until("all know of all", || {
            let others = |it: &DomainParticipant| it.discovered_participants().expect("enabled");
            let all = self.participants.len();
            let mut each = self.participants.iter();
            each.all(|it| others(it).len() + 1 == all)
        });
        participant
    }

    /// What each participant tells of endpoints that do not match.
    fn told(&self) -> Vec<Vec<MismatchFigures>> {
        let directory = self.directory.path().join("domains");
        let mut monitor = Monitor::new(0, Some(Path::new(&directory)));
        let seen = monitor.observe(Duration::from_secs(60)).expect("a domain");
        let told = |it: spindle_dds::monitor::ObservedMember| {
            let figures = it.figures.expect("it answers");
            assert_eq!(figures.unlisted_mismatches, 0);
            figures.mismatches
        };
        seen.into_iter().map(told).collect()
    }
}

fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !condition() {
        assert!(Instant::now() < deadline, "{what}: never");
        thread::sleep(Duration::from_millis(1));
    }
}

fn topic(participant: &DomainParticipant, name: &str) -> Topic<State> {
    participant.topic(name).create().expect("a topic")
}

fn modest_writer(participant: &DomainParticipant, topic: &Topic<State>) -> DataWriter<State> {
    let publisher = participant.publisher().create().expect("a publisher");
    let qos = DataWriterQos {
        reliability: Reliability::best_effort(),
        latency_budget: LatencyBudget::from(spindle_dds::Duration::from_secs(2)),
        ..DataWriterQos::default()
    };
    let writer = publisher.writer(topic).qos(qos).create();
    writer.expect("a writer")
}

fn demanding_reader(participant: &DomainParticipant, topic: &Topic<State>) -> DataReader<State> {
    let subscriber = participant.subscriber().create().expect("a subscriber");
    let qos = DataReaderQos {
        reliability: Reliability::reliable(spindle_dds::Duration::ZERO),
        latency_budget: LatencyBudget::from(spindle_dds::Duration::from_secs(1)),
        ..DataReaderQos::default()
    };
    let reader = subscriber.reader(topic).qos(qos).create();
    reader.expect("a reader")
}

#[test]
fn endpoints_that_do_not_match_are_told_of() {
    let warnings = Warnings::default();
    tracing::subscriber::set_global_default(warnings.clone()).expect("the only one");
    let lines = |topic: &str| {
        let lines = warnings.0.lock().expect("no panic").clone();
        let of_topic = |line: &String| line.contains(&format!("topic=\"{topic}\""));
        lines.into_iter().filter(of_topic).collect::<Vec<_>>()
    };
    let mut group = Group::new();
    let (one, other) = (group.join("one"), group.join("other"));

    // In two participants: each logs it, once.
    let writer = modest_writer(&one, &topic(&one, "Apart"));
    let reader = demanding_reader(&other, &topic(&other, "Apart"));
    until("both are told", || {
        let offered = writer.offered_incompatible_qos_status().expect("alive");
        let requested = reader.requested_incompatible_qos_status().expect("alive");
        (offered.total_count, requested.total_count) == (1, 1)
    });
    // In one participant: at the writer.
    let both = topic(&one, "Alone");
    let alone = modest_writer(&one, &both);
    let own = demanding_reader(&one, &both);
    until("both are told", || {
        let offered = alone.offered_incompatible_qos_status().expect("alive");
        let requested = own.requested_incompatible_qos_status().expect("alive");
        (offered.total_count, requested.total_count) == (1, 1)
    });
    // Further views have nothing new to tell of these.
    let third = group.join("third");
    let _unrelated = modest_writer(&third, &topic(&third, "Elsewhere"));
    let _second = modest_writer(&third, &topic(&third, "Apart"));
    until("the reader hears of the second writer", || {
        let status = reader.requested_incompatible_qos_status().expect("alive");
        status.total_count == 2
    });

    // The participants get to the view one after the other.
    until("all have logged", || lines("Apart").len() >= 4);
    let told = lines("Apart");
    let from = |writer: &str| {
        let fields = format!("writer=\"{writer}\" reader=\"other\" pairs=1 ");
        told.iter().filter(|line| line.contains(&fields)).count()
    };
    assert_eq!(
        (from("one"), from("third"), told.len()),
        (2, 2, 4),
        "{told:?}"
    );
    let policies = [
        "LATENCY_BUDGET: offered 2s, requested 1s",
        "RELIABILITY: offered BEST_EFFORT_RELIABILITY_QOS, requested RELIABLE_RELIABILITY_QOS",
    ];
    for line in told.iter().chain(&lines("Alone")) {
        assert!(policies.iter().all(|it| line.contains(it)), "{line}");
    }
    assert_eq!(lines("Alone").len(), 1);
    assert_eq!(lines("Elsewhere"), Vec::<String>::new());

    // A monitor is told by both sides, with what each offers and requests.
    let told = group.told();
    let of_topic = |topic: &str| {
        let all = told.iter().flatten().filter(|it| it.topic == topic);
        all.cloned().collect::<Vec<_>>()
    };
    let apart = of_topic("Apart");
    assert_eq!(apart.len(), 4, "{apart:?}");
    let [alone] = &of_topic("Alone")[..] else {
        panic!("{told:?}");
    };
    assert_eq!(alone.writer, alone.reader);
    for mismatch in apart.iter().chain([alone]) {
        let named = |it: &Incompatibility| it.policy;
        let policies: Vec<PolicyId> = mismatch.policies.iter().map(named).collect();
        assert_eq!(policies, [PolicyId::LatencyBudget, PolicyId::Reliability]);
        assert_eq!((mismatch.pairs, &mismatch.types), (1, &None));
    }
    let twice = apart.iter().filter(|it| **it == apart[0]).count();
    assert_eq!(twice, 2, "both sides tell the same");

    // Nothing is left of an endpoint that is gone.
    let subscriber = reader.subscriber().expect("alive");
    subscriber.delete_datareader(&reader).expect("deleted");
    until("it is forgotten", || {
        let told = group.told();
        told.iter().flatten().all(|it| it.topic != "Apart")
    });

    // Types that differ are told of with the reason.
    let odd = other.topic::<Other>("Alone").create().expect("a topic");
    let subscriber = other.subscriber().create().expect("a subscriber");
    let _odd = subscriber.reader(&odd).create().expect("a reader");
    until("the types are told of", || {
        let told = group.told();
        told.iter()
            .flatten()
            .filter(|it| it.types.is_some())
            .count()
            == 2
    });
    let told = lines("Alone");
    let types = told.iter().filter(|line| line.contains("types: "));
    assert_eq!((types.count(), told.len()), (2, 3), "{told:?}");
}
