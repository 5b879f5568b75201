//! The letter of the standard, where it is easily missed: which of listeners and wait-sets comes
//! first, when a status is reset, what can change before an entity is enabled, what may be deleted.

use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex};

use spindle_dds::psm::{self, Received, SharedListener};
use spindle_dds::qos::{
    DataReaderQos, DataWriterQos, History, PresentationAccessScope, Reliability, TopicQos,
};
use spindle_dds::{
    AnyEntity, DataReader, DataReaderListener, DataWriter, DomainParticipant, Duration, Error,
    InstanceHandle, InstanceStateMask, ReturnCode, SampleStateMask, StateMasks, StatusMask,
    Subscriber, SubscriberListener, SubscriptionMatchedStatus, ViewStateMask, WaitSet, testing,
};

use crate::flight::{Other, State};
use crate::meeting::{
    Meeting, PATIENCE, enable, keep_all_reader, reader, reader_with, reliable_writer, state, take,
    until, wait_in, wait_until, writer, writer_with,
};

/// Blocks the dispatch thread each time, until told to go on.
struct Gate(Sender<()>, Receiver<()>);

impl DataReaderListener<State> for Gate {
    fn on_data_available(&mut self, reader: &DataReader<State>) {
        let _ = reader.take(100);
        let _ = self.0.send(());
        let _ = self.1.recv();
    }
}

/// A reader, and its writer, whose samples block the dispatch thread.
struct Blocked {
    writer: DataWriter<State>,
    _reader: DataReader<State>,
    is_blocked: Receiver<()>,
    go_on: Sender<()>,
}

impl Blocked {
    fn new(participant: &DomainParticipant) -> Self {
        let (blocking, is_blocked) = mpsc::channel();
        let (go_on, wait) = mpsc::channel();
        let reader = reader(participant, "Gate");
        let gate = Box::new(Gate(blocking, wait));
        reader
            .set_listener(StatusMask::DATA_AVAILABLE, Some(gate))
            .expect("alive");
        Self {
            writer: writer(participant, "Gate"),
            _reader: reader,
            is_blocked,
            go_on,
        }
    }

    fn block(&self) {
        self.writer.write(&state(1, 1)).expect("sent");
        self.is_blocked.recv().expect("its listener is called");
    }
}

fn has_changed(reader: &DataReader<State>, status: StatusMask) -> bool {
    reader.status_changes().expect("alive").contains(status)
}

#[test]
fn listeners_come_before_wait_sets() {
    let data = StatusMask::DATA_AVAILABLE;
    let meeting = Meeting::new();
    let participant = meeting.participant();
    let gate = Blocked::new(&participant);
    let (writer, reader) = (writer(&participant, "State"), reader(&participant, "State"));
    // A nil listener swallows, and leaves the status as it is.
    reader.set_listener(data, None).expect("alive");
    enable(std::slice::from_ref(&participant));
    gate.block();
    writer.write(&state(1, 1)).expect("sent");
    until("it has data", || has_changed(&reader, data));
    let status = reader.status_condition().expect("alive");
    status.set_enabled_statuses(data);
    assert!(status.trigger_value(), "the status has changed");
    let waits = WaitSet::new();
    waits.attach(&status);
    let waited = waits.wait(Duration::from_millis(5));
    assert!(matches!(waited, Err(Error::Timeout(_))), "{waited:?}");
    // Samples are no status.
    let samples = reader.read_condition(StateMasks::ANY).expect("alive");
    let of_samples = WaitSet::new();
    of_samples.attach(&samples);
    of_samples.wait(PATIENCE).expect("they are there");
    // Other statuses have no listener.
    status.set_enabled_statuses(StatusMask::SUBSCRIPTION_MATCHED);
    waits.wait(PATIENCE).expect("its writer has matched");
    status.set_enabled_statuses(data);
    std::thread::scope(|scope| {
        let waiting = wait_in(scope, &waits, PATIENCE);
        gate.go_on.send(()).expect("it blocks");
        let held = waiting.join().expect("it ends");
        assert_eq!(held, Ok(vec![(&status).into()]), "swallowed: its turn");
    });
}

/// Says what the subscriber's statuses are, when it is called for a reader.
struct StatusesOfSubscriber(Sender<StatusMask>);

impl DataReaderListener<State> for StatusesOfSubscriber {
    fn on_data_available(&mut self, reader: &DataReader<State>) {
        let subscriber = reader.subscriber().expect("alive");
        let _ = self.0.send(subscriber.status_changes().expect("alive"));
    }
}

#[test]
fn on_data_available_resets_data_on_readers() {
    let (told, statuses) = mpsc::channel();
    let meeting = Meeting::new();
    let participant = meeting.participant();
    let (writer, reader) = (writer(&participant, "State"), reader(&participant, "State"));
    let listener = Box::new(StatusesOfSubscriber(told));
    reader
        .set_listener(StatusMask::DATA_AVAILABLE, Some(listener))
        .expect("alive");
    enable(std::slice::from_ref(&participant));
    writer.write(&state(1, 1)).expect("sent");
    let statuses = statuses.recv().expect("it is called");
    assert!(
        !statuses.contains(StatusMask::DATA_ON_READERS),
        "{statuses:?}"
    );
}

struct OnReaders(Sender<()>);

impl SubscriberListener for OnReaders {
    fn on_data_on_readers(&mut self, _: &Subscriber) {
        let _ = self.0.send(());
    }
}

#[test]
fn on_data_on_readers_is_called_once_for_all_readers() {
    let data = StatusMask::DATA_AVAILABLE;
    let (told, calls) = mpsc::channel();
    let meeting = Meeting::new();
    let participant = meeting.participant();
    let gate = Blocked::new(&participant);
    let (writer, first) = (writer(&participant, "State"), reader(&participant, "State"));
    let subscriber = first.subscriber().expect("alive");
    let topic = first.topic();
    let second = subscriber.reader(&topic).qos(keep_all_reader());
    let second = second.create().expect("a reader");
    let mask = StatusMask::DATA_ON_READERS;
    let listener = Box::new(OnReaders(told));
    subscriber
        .set_listener(mask, Some(listener))
        .expect("alive");
    enable(std::slice::from_ref(&participant));
    gate.block();
    writer.write(&state(1, 1)).expect("sent");
    until("both have data", || {
        [&first, &second]
            .iter()
            .all(|reader| has_changed(reader, data))
    });
    gate.go_on.send(()).expect("it blocks");
    calls.recv().expect("it is called");
    // What is dispatched after this comes after both readers.
    gate.block();
    assert!(calls.try_recv().is_err(), "once for both");
    gate.go_on.send(()).expect("it blocks");
    assert_eq!(take(&second, 1, |_| ()).len(), 1);
    writer.write(&state(1, 2)).expect("sent");
    calls.recv().expect("again for what is new");
}

/// Delegates to the readers' listeners, and gets more data meanwhile.
struct Delegates {
    writer: DataWriter<State>,
    reader: DataReader<State>,
    told: Sender<usize>,
    calls: usize,
}

impl SubscriberListener for Delegates {
    fn on_data_on_readers(&mut self, subscriber: &Subscriber) {
        self.calls += 1;
        if self.calls == 1 {
            subscriber.notify_datareaders().expect("alive");
            self.writer.write(&state(1, 2)).expect("sent");
            until("it has come", || {
                self.reader.read(10).is_ok_and(|samples| samples.len() == 2)
            });
        }
        let _ = self.told.send(self.calls);
    }
}

#[test]
fn what_comes_after_notify_datareaders_is_told_as_well() {
    let (told, calls) = mpsc::channel();
    let meeting = Meeting::new();
    let participant = meeting.participant();
    let (writer, reader) = (writer(&participant, "State"), reader(&participant, "State"));
    let delegates = Delegates {
        writer: writer.clone(),
        reader: reader.clone(),
        told,
        calls: 0,
    };
    let subscriber = reader.subscriber().expect("alive");
    subscriber
        .set_listener(StatusMask::DATA_ON_READERS, Some(Box::new(delegates)))
        .expect("alive");
    enable(std::slice::from_ref(&participant));
    writer.write(&state(1, 1)).expect("sent");
    assert_eq!(calls.recv(), Ok(1));
    assert_eq!(calls.recv(), Ok(2));
    participant.close().expect("it leaves");
}

#[test]
fn a_disabled_endpoint_becomes_what_its_qos_says_in_the_end() {
    let meeting = Meeting::new();
    let participant = meeting.participant();
    let best_effort = DataWriterQos {
        reliability: Reliability::best_effort(),
        ..DataWriterQos::default()
    };
    let writer = writer_with(&participant, "State", best_effort);
    let reader = reader_with(&participant, "State", keep_all_reader());
    let ordered = reader.subscriber().expect("alive");
    writer.set_qos(reliable_writer()).expect("it is disabled");
    let last = DataReaderQos {
        history: History::keep_last(2),
        ..keep_all_reader()
    };
    reader.set_qos(last.clone()).expect("it is disabled");
    let mut unordered = ordered.qos().expect("alive");
    unordered.presentation.access_scope = PresentationAccessScope::Instance;
    ordered.set_qos(unordered).expect("it is disabled");
    enable(std::slice::from_ref(&participant));
    // RELIABLE offers what the reader requests.
    wait_until(writer.status_condition().expect("alive"), || {
        writer.matched_subscriptions().expect("enabled").len() == 1
    });
    for (icao, number) in [(2, 0), (2, 1), (1, 1), (2, 2), (1, 2)] {
        writer.write(&state(icao, number)).expect("sent");
    }
    writer.wait_for_acknowledgments(PATIENCE).expect("received");
    // Acknowledged is what the reader will have, whatever happens.
    let expected = [(2, 1), (2, 2), (1, 1), (1, 2)];
    until("KEEP_LAST 2, by instance", || {
        let Ok(there) = reader.read(10) else {
            return false;
        };
        let there = there.iter().map(|sample| sample.data().expect("data"));
        there.map(|it| (it.icao, it.number)).eq(expected)
    });
    let mut changed = last;
    changed.history = History::keep_all();
    let refused = reader.set_qos(changed);
    assert_eq!(ReturnCode::of(&refused), ReturnCode::ImmutablePolicy);
}

#[test]
fn conditions_keep_their_reader() {
    let meeting = Meeting::new();
    let participant = meeting.participant();
    let [first, second, other] = ["A", "B", "C"].map(|topic| reader(&participant, topic));
    let refused = |code: ReturnCode| assert_eq!(code, ReturnCode::PreconditionNotMet);
    let subscriber = psm::Subscriber(first.subscriber().expect("alive"));
    let any = (
        SampleStateMask::ANY,
        ViewStateMask::ANY,
        InstanceStateMask::ANY,
    );
    let first = psm::DataReader(first);
    let condition = first.create_readcondition(any.0, any.1, any.2);
    let condition = condition.expect("alive");
    let of = condition.get_datareader().expect("alive");
    assert_eq!(of.instance_handle(), first.get_instance_handle());
    refused(subscriber.delete_datareader(&first));
    refused(psm::DataReader(other.clone()).delete_readcondition(&condition));
    let waits = WaitSet::new();
    waits.attach(&condition.0);
    assert_eq!(first.delete_readcondition(&condition), ReturnCode::Ok);
    refused(first.delete_readcondition(&condition));
    assert!(!condition.get_trigger_value());
    assert!(waits.attached().is_empty());
    assert_eq!(subscriber.delete_datareader(&first), ReturnCode::Ok);
    assert!(condition.get_datareader().is_none());

    let kept = second.read_condition(StateMasks::ANY).expect("alive");
    let subscriber = second.subscriber().expect("alive");
    refused(ReturnCode::of(&subscriber.delete_datareader(&second)));
    second.delete_contained_entities().expect("alive");
    subscriber.delete_datareader(&second).expect("it has none");
    // Those that delete all delete conditions, too.
    let held = other.read_condition(StateMasks::ANY).expect("alive");
    participant.delete_contained_entities().expect("no loans");
    assert!(
        held.trigger_value() && kept.trigger_value(),
        "they are over"
    );
}

#[test]
fn conditions_know_their_entities() {
    let meeting = Meeting::new();
    let participant = meeting.participant();
    let (writer, reader) = (writer(&participant, "State"), reader(&participant, "State"));
    let (publisher, subscriber) = (
        writer.publisher().expect("alive"),
        reader.subscriber().expect("alive"),
    );
    let topic = writer.topic();
    let conditions = [
        participant.status_condition(),
        topic.status_condition(),
        publisher.status_condition(),
        subscriber.status_condition(),
        writer.status_condition(),
        reader.status_condition(),
    ];
    let entities = conditions
        .each_ref()
        .map(|it| it.as_ref().expect("alive").entity().expect("alive"));
    let handles = entities.each_ref().map(AnyEntity::instance_handle);
    assert_eq!(
        handles,
        [
            participant.instance_handle(),
            topic.instance_handle(),
            publisher.instance_handle(),
            subscriber.instance_handle(),
            writer.instance_handle(),
            reader.instance_handle(),
        ]
    );
    assert!(matches!(&entities[5], AnyEntity::Reader(it) if it.downcast::<State>().is_some()));
    let condition = psm::StatusCondition(writer.status_condition().expect("alive"));
    publisher.delete_datawriter(&writer).expect("no loans");
    assert!(condition.get_entity().is_none());
}

/// Counts matches.
#[derive(Default)]
struct Matches(usize);

impl DataReaderListener<State> for Matches {
    fn on_subscription_matched(
        &mut self,
        _: &DataReader<State>,
        status: &SubscriptionMatchedStatus,
    ) {
        self.0 += usize::try_from(status.total_count_change).expect("a count");
    }
}

#[test]
fn a_listener_is_there_from_the_start_and_can_be_asked_for() {
    let meeting = Meeting::new();
    let participant = meeting.participant();
    let matched = StatusMask::SUBSCRIPTION_MATCHED;
    let writer = writer(&participant, "State");
    enable(std::slice::from_ref(&participant));
    let topic = psm::Topic(writer.topic());
    let subscriber = psm::DomainParticipant(participant.clone())
        .create_subscriber(None, None, StatusMask::NONE)
        .expect("a subscriber");
    assert!(subscriber.get_listener().is_none());
    let matches: Arc<Mutex<Matches>> = Arc::default();
    let listener: SharedListener<dyn DataReaderListener<State>> = matches.clone();
    let reader = subscriber
        .create_datareader(&topic, None, Some(listener.clone()), matched)
        .expect("a reader");
    until("the first match is told", || {
        matches.lock().expect("no panic").0 == 1
    });
    let found = reader.get_listener().expect("it is set");
    assert!(Arc::ptr_eq(&found, &listener));
    // By any handle of the entity.
    let again = subscriber.lookup_datareader::<State>("State");
    assert!(again.expect("alive").get_listener().is_some());
    assert_eq!(reader.set_listener(None, matched), ReturnCode::Ok);
    assert!(reader.get_listener().is_none());
}

#[test]
fn special_values_stand_for_a_qos() {
    let meeting = Meeting::new();
    let participant = psm::DomainParticipant(meeting.participant());
    let none = StatusMask::NONE;
    let topic_qos = TopicQos {
        history: History::keep_last(9),
        ..TopicQos::default()
    };
    let topic = participant
        .create_topic::<State>("State", "flight::State", Some(&topic_qos), None, none)
        .expect("a topic");
    let publisher = participant.create_publisher(Some(&psm::PUBLISHER_QOS_DEFAULT), None, none);
    let publisher = publisher.expect("a publisher");
    let default = DataWriterQos {
        history: History::keep_last(3),
        latency_budget: Duration::from_millis(7).into(),
        ..DataWriterQos::default()
    };
    let set = publisher.set_default_datawriter_qos(&default);
    assert_eq!(set, ReturnCode::Ok);
    let depths = |qos: &DataWriterQos| {
        let writer = publisher.create_datawriter(&topic, Some(qos), None, none);
        let mut qos = DataWriterQos::default();
        let got = writer.expect("a writer").get_qos(&mut qos);
        assert_eq!(got, ReturnCode::Ok);
        (qos.history.depth, qos.latency_budget)
    };
    let budget = default.latency_budget;
    let zero = DataWriterQos::default().latency_budget;
    assert_eq!(depths(&psm::DATAWRITER_QOS_DEFAULT), (3, budget));
    // A TopicQos has all of a writer's policies that it can have.
    assert_eq!(depths(&psm::DATAWRITER_QOS_USE_TOPIC_QOS), (9, zero));
    let copy = psm::DATAWRITER_QOS_DEFAULT.clone();
    assert_eq!(depths(&copy), (1, zero), "a copy is a QoS like any other");
    let reset = publisher.set_default_datawriter_qos(&psm::DATAWRITER_QOS_DEFAULT);
    assert_eq!(reset, ReturnCode::Ok);
    assert_eq!(depths(&psm::DATAWRITER_QOS_DEFAULT), (1, zero));
    let set = participant.set_default_topic_qos(&topic_qos);
    assert_eq!(set, ReturnCode::Ok);
    let reset = participant.set_default_topic_qos(&psm::TOPIC_QOS_DEFAULT);
    assert_eq!(reset, ReturnCode::Ok);
    let mut qos = topic_qos;
    participant.get_default_topic_qos(&mut qos);
    assert_eq!(qos, TopicQos::default());
}

#[test]
fn samples_are_copied_into_room_of_the_applications() {
    let meeting = Meeting::new();
    let participant = meeting.participant();
    let (writer, reader) = (writer(&participant, "State"), reader(&participant, "State"));
    let other = psm::DataReader(crate::meeting::reader(&participant, "State"));
    enable(std::slice::from_ref(&participant));
    for number in 1..=3 {
        writer.write(&state(1, number)).expect("sent");
    }
    writer.dispose(&state(1, 0)).expect("sent");
    writer.wait_for_acknowledgments(PATIENCE).expect("received");
    // Acknowledged is what the readers will have, whatever happens.
    let has_all = |it: &DataReader<State>| it.read(10).is_ok_and(|samples| samples.len() == 4);
    until("all is there", || has_all(&reader) && has_all(&other.0));
    let reader = psm::DataReader(reader);
    let any = (
        SampleStateMask::ANY,
        ViewStateMask::ANY,
        InstanceStateMask::ANY,
    );
    let mut copies = Received::with_max_len(3);
    let too_many = reader.take(&mut copies, 4, any.0, any.1, any.2);
    assert_eq!(too_many, ReturnCode::PreconditionNotMet);
    let taken = reader.take(&mut copies, -1, any.0, any.1, any.2);
    assert_eq!(taken, ReturnCode::Ok);
    let numbers = [0, 1, 2].map(|at| copies.copy(at).map(|it| it.number));
    assert_eq!(numbers, [Some(1), Some(2), Some(3)]);
    assert_eq!(
        (copies.len(), copies.max_len(), copies.owns()),
        (3, 3, true)
    );
    assert_eq!(reader.return_loan(&mut copies), ReturnCode::Ok, "no effect");
    assert_eq!(copies.len(), 3);
    let taken = reader.take(&mut copies, -1, any.0, any.1, any.2);
    assert_eq!(taken, ReturnCode::Ok);
    assert_eq!(copies.info(0).map(|info| info.valid_data), Some(false));
    assert!(copies.copy(0).is_none());
    let taken = reader.take(&mut copies, -1, any.0, any.1, any.2);
    assert_eq!((taken, copies.is_empty()), (ReturnCode::NoData, true));

    let mut loan = Received::default();
    let read = other.read(&mut loan, 2, any.0, any.1, any.2);
    assert_eq!((read, loan.owns(), loan.len()), (ReturnCode::Ok, false, 2));
    let strange = reader.return_loan(&mut loan);
    assert_eq!(strange, ReturnCode::PreconditionNotMet, "of another reader");
    assert_eq!(other.return_loan(&mut loan), ReturnCode::Ok);
    assert_eq!(
        other.return_loan(&mut loan),
        ReturnCode::Ok,
        "there is none"
    );
}

#[test]
fn a_topic_of_another_participant_is_found() {
    let meeting = Meeting::new();
    let participants: [_; 2] = meeting.participants();
    let seeks = psm::DomainParticipant(participants[1].clone());
    assert!(seeks.find_topic::<State>("State", Duration::ZERO).is_none());
    let disabled = participants[1].find_topic::<State>("State", Duration::ZERO);
    assert!(
        matches!(disabled, Err(Error::NotEnabled(_))),
        "{disabled:?}"
    );
    enable(&participants);
    let absent = participants[1].find_topic::<State>("State", Duration::from_millis(1));
    assert!(matches!(absent, Err(Error::Timeout(_))), "{absent:?}");
    let found = std::thread::scope(|scope| {
        let seeking = scope.spawn(|| participants[1].find_topic::<State>("State", PATIENCE));
        let _writer = writer(&participants[0], "State");
        seeking.join().expect("it ends")
    });
    let found = psm::Topic(found.expect("it is announced"));
    assert_eq!(
        (found.get_name(), found.get_type_name()),
        ("State", "flight::State")
    );
    let again = seeks.find_topic::<State>("State", Duration::ZERO);
    assert!(again.is_some_and(|again| again.0.instance_handle() == found.0.instance_handle()));
    let other = participants[1].find_topic::<Other>("State", Duration::ZERO);
    assert!(matches!(other, Err(Error::PreconditionNotMet(_))));
    // As often as it was found; this one was created as well.
    assert_eq!(seeks.delete_topic(&found), ReturnCode::Ok);
    assert_eq!(seeks.delete_topic(&found), ReturnCode::Ok);
    assert_eq!(seeks.delete_topic(&found), ReturnCode::AlreadyDeleted);
    // One that is created by another thread is found, too.
    let local = std::thread::scope(|scope| {
        let seeking = scope.spawn(|| participants[0].find_topic::<State>("Local", PATIENCE));
        let created = participants[0].topic::<State>("Local").create();
        created.expect("it has none of this name");
        seeking.join().expect("it ends")
    });
    local.expect("it exists");
    std::thread::scope(|scope| {
        let seeking = scope.spawn(|| participants[0].find_topic::<State>("Never", PATIENCE));
        participants[0].close().expect("it leaves");
        let ended = seeking.join().expect("it ends");
        assert!(matches!(ended, Err(Error::AlreadyDeleted(_))), "{ended:?}");
    });
}

#[test]
fn what_needs_no_service_says_so() {
    let meeting = Meeting::new();
    let participant = psm::DomainParticipant(meeting.participant());
    let writer = psm::DataWriter(writer(&participant.0, "State"));
    let reader = psm::DataReader(reader(&participant.0, "State"));
    let publisher = writer.get_publisher().expect("alive");
    let mut now = 0;
    let operations = |now: &mut i64| {
        [
            participant.assert_liveliness(),
            participant.get_current_time(now),
            writer.assert_liveliness(),
            reader.wait_for_historical_data(Duration::INFINITE),
            publisher.suspend_publications(),
            publisher.resume_publications(),
        ]
    };
    assert_eq!(operations(&mut now), [ReturnCode::NotEnabled; 6]);
    // Statuses can be read before, and do not change.
    let statuses = || {
        let (mut lost, mut offered, mut requested) = Default::default();
        let codes = [
            writer.get_liveliness_lost_status(&mut lost),
            writer.get_offered_deadline_missed_status(&mut offered),
            reader.get_requested_deadline_missed_status(&mut requested),
        ];
        assert_eq!(codes, [ReturnCode::Ok; 3]);
        [lost.total_count, offered.total_count, requested.total_count]
    };
    assert_eq!(statuses(), [0; 3]);
    assert_eq!(participant.enable(), ReturnCode::Ok);
    assert_eq!(operations(&mut now), [ReturnCode::Ok; 6]);
    assert!(now > 0);
    assert_eq!(
        publisher.resume_publications(),
        ReturnCode::PreconditionNotMet
    );
    assert_eq!(statuses(), [0; 3]);
    assert_eq!(
        writer.write(&state(1, 1), InstanceHandle::NIL),
        ReturnCode::Ok
    );
    testing::fail(&participant.0, "this is a test").expect("enabled");
    until("its writer is not alive to others", || {
        statuses() == [1, 0, 0]
    });
}
