//! Async: a reader as a `Stream` inside tokio, beside a timer. Any other executor works as well.
//!
//! Reading needs no thread. Writing may block until there is room, so it is done by a thread that
//! may block.
#![forbid(unsafe_code)]

use std::time::Duration;

use chat::Message;
use spindle_dds::qos::{DataReaderQos, History, Reliability};
use spindle_dds::{DomainParticipant, Error, StatusMask, WaitSet};
use tokio::task::spawn_blocking;
use tokio::time::interval;
use tokio_stream::StreamExt;

spindle_dds::include_idl!("chat");

const MESSAGES: u32 = 5;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    // Creating a participant blocks too, until it is in the group.
    let participant = spawn_blocking(|| DomainParticipant::builder(0).create());
    let participant = participant.await.expect("it does not panic")?;
    let topic = participant.topic::<Message>("Chat").create()?;
    let qos = DataReaderQos {
        reliability: Reliability::reliable(Duration::ZERO.into()),
        history: History::keep_all(),
        ..DataReaderQos::default()
    };
    let subscriber = participant.subscriber().create()?;
    let reader = subscriber.reader(&topic).qos(qos).create()?;

    let talking = spawn_blocking(talk);
    let mut batches = reader.stream(16);
    let mut ticks = interval(Duration::from_millis(100));
    let mut received = 0;
    while received < MESSAGES {
        tokio::select! {
            Some(batch) = batches.next() => {
                for sample in batch?.iter().filter(|sample| sample.info().valid_data) {
                    let message = sample.view()?;
                    println!("message {}: {}", message.number(), message.text());
                    received += 1;
                }
            }
            _ = ticks.tick() => println!("tick"),
        }
    }
    talking.await.expect("it does not panic")?;
    spawn_blocking(move || participant.close())
        .await
        .expect("it does not panic")
}

/// A participant of its own, that sends a few messages and leaves.
fn talk() -> Result<(), Error> {
    let participant = DomainParticipant::builder(0).create()?;
    let topic = participant.topic::<Message>("Chat").create()?;
    let writer = participant.publisher().create()?.writer(&topic).create()?;
    let matched = writer.status_condition()?;
    matched.set_enabled_statuses(StatusMask::PUBLICATION_MATCHED);
    let waits = WaitSet::new();
    waits.attach(&matched);
    waits.wait(Duration::from_secs(10))?;
    for number in 1..=MESSAGES {
        let text = format!("hello from a thread, {number}");
        writer.write(&Message { number, text })?;
    }
    participant.close()
}
