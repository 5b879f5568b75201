//! Topics that are logged.

use spindle_dds::qos::{
    DataReaderQos, DataWriterQos, Durability, DurabilityKind, History, Reliability,
};
use spindle_dds::{DomainParticipant, Duration, Error};

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
