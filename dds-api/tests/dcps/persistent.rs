//! Topics that are logged.

use spindle_dds::qos::{
    DataReaderQos, DataWriterQos, Durability, DurabilityKind, History, Reliability,
};
use spindle_dds::{DataWriter, DomainParticipant, Duration, Error, testing};

use crate::flight::State;
use crate::meeting::{
    Meeting, PATIENCE, enable, keep_all_reader, reader_with, reliable_writer, state, take, until,
    writer_with,
};

const PERSISTENT: Durability = Durability {
    kind: DurabilityKind::Persistent,
};

/// How long is waited for what does not come.
const SHORT: Duration = Duration::from_millis(20);

const NO_LOG: &str = "no participant logs the topic (spindle.log.directory)";

fn persistent_writer(history: History) -> DataWriterQos {
    DataWriterQos {
        durability: PERSISTENT,
        history,
        reliability: Reliability::reliable(SHORT),
        ..reliable_writer()
    }
}

fn persistent_reader() -> DataReaderQos {
    DataReaderQos {
        durability: PERSISTENT,
        ..keep_all_reader()
    }
}

fn says<T: std::fmt::Debug>(result: Result<T, Error>, what: &str) {
    match result {
        Err(Error::Timeout(text)) => assert!(text.contains(what), "{text}"),
        other => panic!("{other:?}"),
    }
}

fn two(meeting: &Meeting) -> [DomainParticipant; 2] {
    meeting.participants()
}

#[test]
fn a_writer_without_any_log_says_so() {
    let meeting = Meeting::new();
    let participants @ [writes, reads] = &two(&meeting);
    let keeps_all = writer_with(writes, "State", persistent_writer(History::keep_all()));
    let keeps_last = writer_with(writes, "State", persistent_writer(History::keep_last(1)));
    let volatile = writer_with(writes, "State", reliable_writer());
    let reader = reader_with(reads, "State", keep_all_reader());
    enable(participants);
    for writer in [&keeps_all, &keeps_last, &volatile] {
        until("they match", || {
            writer.matched_subscriptions().expect("enabled").len() == 1
        });
    }
    // KEEP_ALL waits, and KEEP_LAST keeps the sample: it is not acknowledged.
    says(keeps_all.write(&state(1, 1)), NO_LOG);
    let receipt = keeps_last.write(&state(2, 2)).expect("it waits");
    assert!(receipt.had_to_wait());
    says(keeps_last.wait_for_acknowledgments(SHORT), NO_LOG);
    says(keeps_last.wait_for(&receipt, SHORT), NO_LOG);
    // Another writer of the topic pays nothing.
    volatile.write(&state(3, 3)).expect("sent");
    volatile
        .wait_for_acknowledgments(PATIENCE)
        .expect("accepted");
    assert_eq!(take(&reader, 1, |it| it.data().expect("data").number), [3]);
}

#[test]
fn a_reader_awaits_history_where_there_is_a_writer() {
    let meeting = Meeting::new();
    let participants @ [writes, reads] = &two(&meeting);
    let reader = reader_with(reads, "State", persistent_reader());
    let alone = reader_with(reads, "Other", persistent_reader());
    let writer = writer_with(writes, "State", persistent_writer(History::keep_last(1)));
    enable(participants);
    until("they match", || {
        writer.matched_subscriptions().expect("enabled").len() == 1
    });
    says(reader.wait_for_historical_data(SHORT), NO_LOG);
    assert!(reader.historical_data().expect("alive").is_awaiting);
    alone
        .wait_for_historical_data(PATIENCE)
        .expect("there is nothing to await");
}

/// A position beyond all samples of a test.
const ALL: u64 = 1 << 20;

/// The logs of these participants are the loggers of the topic.
fn make_logs(participants: &[DomainParticipant]) {
    for (log, participant) in (1..).zip(participants) {
        let first = (log > 1).then_some(1);
        testing::announce_log(participant, "State", (log, first)).expect("enabled");
        wait_for_loggers(participants, log as usize);
    }
}

fn wait_for_loggers(participants: &[DomainParticipant], loggers: usize) {
    for participant in participants {
        until(&format!("{loggers} log"), || {
            testing::loggers(participant, "State").expect("enabled").0 == loggers
        });
    }
}

/// They have recorded what came before the epoch.
fn record(participants: &[DomainParticipant]) {
    for participant in participants {
        let (_, base) = testing::loggers(participant, "State").expect("enabled");
        testing::persist(participant, "State", base).expect("enabled");
    }
}

fn matched(writer: &DataWriter<State>, readers: usize) {
    until("they match", || {
        writer.matched_subscriptions().expect("enabled").len() == readers
    });
}

#[test]
fn a_writer_sends_when_all_logs_have_recorded_what_came_before() {
    let meeting = Meeting::new();
    let participants @ [writes, logs] = &two(&meeting);
    let writer = writer_with(writes, "State", persistent_writer(History::keep_all()));
    let reader = reader_with(logs, "State", keep_all_reader());
    enable(participants);
    matched(&writer, 1);
    make_logs(std::slice::from_ref(logs));
    wait_for_loggers(participants, 1);
    let receipt = writer.write(&state(1, 1)).expect("it waits");
    assert!(receipt.had_to_wait());
    says(
        writer.wait_for_acknowledgments(SHORT),
        "has not recorded yet",
    );
    assert!(reader.take(1).is_err());
    // It is sent by the thread that finds that the log has recorded it.
    record(std::slice::from_ref(logs));
    assert_eq!(take(&reader, 1, |it| it.data().expect("data").number), [1]);
    says(
        writer.wait_for(&receipt, SHORT),
        "less than a majority of the logs",
    );
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| writer.wait_for_acknowledgments(PATIENCE));
        testing::persist(logs, "State", ALL).expect("enabled");
        waits.join().expect("it ends").expect("it is on disk");
    });
    writer.wait_for(&receipt, PATIENCE).expect("it is on disk");
    let receipt = writer.write(&state(1, 2)).expect("sent");
    assert!(!receipt.had_to_wait());
}

#[test]
fn samples_of_an_earlier_epoch_are_acknowledged_when_the_present_one_has_begun() {
    let meeting = Meeting::new();
    let participants @ [writes, logs] = &two(&meeting);
    let writer = writer_with(writes, "State", persistent_writer(History::keep_all()));
    let reader = reader_with(logs, "State", keep_all_reader());
    enable(participants);
    matched(&writer, 1);
    make_logs(std::slice::from_ref(logs));
    record(std::slice::from_ref(logs));
    writer.write(&state(1, 1)).expect("sent");
    assert_eq!(take(&reader, 1, |it| it.data().expect("data").number), [1]);
    // Its message is released by all, and gone from the ring.
    let _second = reader_with(logs, "State", keep_all_reader());
    matched(&writer, 2);
    says(
        writer.wait_for_acknowledgments(SHORT),
        "has not recorded yet",
    );
    record(std::slice::from_ref(logs));
    writer
        .wait_for_acknowledgments(PATIENCE)
        .expect("it is on disk");
}

#[test]
fn one_log_a_majority_or_all_acknowledge() {
    for (ack, needed) in [("local", 1), ("quorum", 2), ("all", 3)] {
        let meeting = Meeting::new();
        let logs: [DomainParticipant; 3] = meeting.participants();
        let writes = meeting.builder().property("spindle.log.ack", ack);
        let writes = writes.create().expect("a participant");
        let writer = writer_with(&writes, "State", persistent_writer(History::keep_all()));
        let readers = logs
            .each_ref()
            .map(|it| reader_with(it, "State", keep_all_reader()));
        let [one, two, three] = &logs;
        let all = [one.clone(), two.clone(), three.clone(), writes.clone()];
        enable(&all);
        matched(&writer, 3);
        make_logs(&logs);
        wait_for_loggers(&all, 3);
        record(&logs);
        writer.write(&state(1, 1)).expect("sent");
        for reader in &readers {
            assert_eq!(take(reader, 1, |it| it.data().expect("data").number), [1]);
        }
        for (has, log) in logs.iter().enumerate() {
            if has < needed {
                says(writer.wait_for_acknowledgments(SHORT), "recorded it");
            }
            testing::persist(log, "State", ALL).expect("enabled");
        }
        writer
            .wait_for_acknowledgments(PATIENCE)
            .expect("it is on disk");
        // Two of three go on, one of two does not.
        three.close().expect("it leaves");
        wait_for_loggers(&all[..2], 2);
        record(&logs[..2]);
        writer.write(&state(1, 2)).expect("sent");
        two.close().expect("it leaves");
        wait_for_loggers(&all[..1], 1);
        until("it is shut", || match writer.write(&state(1, 3)) {
            Ok(_) => false,
            shut => {
                says(shut, "the log is shut: 1 of 2 logs of its roster are there");
                true
            }
        });
    }
}

#[test]
fn a_reader_shows_what_logs_have() {
    let meeting = Meeting::new();
    for deliver in ["after_local", "after_all"] {
        let logs = meeting.builder().property("spindle.log.deliver", deliver);
        let logs = logs.create().expect("a participant");
        let writes = meeting.participant();
        let writer = writer_with(&writes, "State", persistent_writer(History::keep_all()));
        let reader = reader_with(&logs, "State", persistent_reader());
        let before = reader_with(&writes, "State", persistent_reader());
        enable(&[writes.clone(), logs.clone()]);
        matched(&writer, 2);
        make_logs(std::slice::from_ref(&logs));
        wait_for_loggers(std::slice::from_ref(&writes), 1);
        record(std::slice::from_ref(&logs));
        reader
            .wait_for_historical_data(PATIENCE)
            .expect("there is none");
        for number in 0..10 {
            writer.write(&state(1, number)).expect("sent");
        }
        let numbers: Vec<u32> = (0..10).collect();
        assert_eq!(
            take(&before, 10, |it| it.data().expect("data").number),
            numbers
        );
        assert!(reader.take(1).is_err());
        testing::persist(&logs, "State", ALL).expect("enabled");
        assert_eq!(
            take(&reader, 10, |it| it.data().expect("data").number),
            numbers
        );
        writer
            .wait_for_acknowledgments(PATIENCE)
            .expect("it is on disk");
    }
}
